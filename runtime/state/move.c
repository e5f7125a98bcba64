/* Runs moves, which need no kernel: one copy on the stream's queue. Cost: one call of the
 * device. */
#include "settings.h"
#include "state.h"

/* On the host device, whose workers have the addresses of the iteration in the call. */
int tarn_session_move(void *user, const struct tarn_call *call)
{
    const struct tarn_session *session = user;
    return session->device.table->copy_enqueue(session->device.self, call->queue, call->outputs[0],
                                               call->inputs[0], call->output_sizes[0]);
}

/* Work enqueued now belongs to the last submit, so it uses the addresses bound now, even if earlier
 * kernels, which are closures, have not run yet. */
int tarn_session_enqueue_move(const struct tarn_session *session, tarn_op op)
{
    const struct tarn_graph_op *record = &session->graph->ops[op];
    const struct tarn_device *device = &session->device;
    uint32_t from = record->inputs[0], to = tarn_outputs(record)[0];
    return device->table->copy_enqueue(
        device->self, session->calls[op].queue, tarn_plan_memory_address(&session->memory, to),
        tarn_plan_memory_address(&session->memory, from), session->graph->tensors[to].size);
}

void tarn_session_bind_moves(struct tarn_session *session)
{
    if (!tarn_device_copies(session->device.table)) return;
    for (uint32_t v = 0; v < session->graph->ops_count; v++) {
        if (session->graph->ops[v].move && !session->bindings[v].own)
            session->bindings[v] = (struct tarn_binding){tarn_session_move, session, false};
    }
}
