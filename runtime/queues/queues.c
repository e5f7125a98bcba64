/* The queues, events and closures of one device.
 *
 *     step:   event_wait ...   kernel   event_record
 *
 * A recorded step has two events, for even and for odd iterations: a wait on the previous iteration
 * must not see this iteration's record when the awaited step comes first in the order. A kernel
 * enqueues its work, or is itself enqueued as a closure. Source: docs/how-it-works.md, "Executors".
 * Cost: one call of the device per wait, launch and record; nothing allocated after creation. */
#include "queues.h"

#include <assert.h>
#include <string.h>

#include "runtime/state/failure.h"
#include "runtime/state/flight.h"
#include "streams/graph/report.h"

enum tarn_status tarn_queues_status(struct tarn_queues *queues, const char *what, tarn_op op,
                                    uint64_t iteration, int code, struct tarn_error *error)
{
    return tarn_session_op_status(queues->session, queues->device, what, op, iteration, code,
                                  error);
}

uint32_t tarn_queues_last_op(const struct tarn_queues *queues, uint32_t stream)
{
    const struct tarn_program *program = queues->session->program;
    assert(program->begin[stream] < program->begin[stream + 1]);
    return program->steps[program->begin[stream + 1] - 1].op;
}

/* ---- Closures ---- */

static void note_failure(struct tarn_queues *queues, uint32_t op, uint64_t iteration, int code)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&queues->failed, &none, 1)) return;
    queues->failed_op = op;
    queues->failed_iteration = iteration;
    queues->failed_code = code;
    atomic_store(&queues->failed, 2);
}

static void call_kernel(void *argument)
{
    struct tarn_closure *closure = argument;
    struct tarn_queues *queues = closure->queues;
    struct tarn_session *session = queues->session;
    uint64_t iteration = closure->iteration++;
    if (atomic_load(&queues->failed) != 0 || atomic_load(&queues->halted)) return;
    uint32_t stream = session->calls[closure->op].stream;
    tarn_flight_begin(session->flight, stream, closure->op, iteration);
    int code = tarn_session_launch(session, closure->op, iteration);
    tarn_flight_end(session->flight, stream);
    if (code) note_failure(queues, closure->op, iteration, code);
}

enum tarn_status tarn_queues_failure(struct tarn_queues *queues, struct tarn_error *error)
{
    if (atomic_load(&queues->failed) != 2) return TARN_OK;
    assert(queues->failed_code != 0);
    return tarn_session_kernel_failed(queues->session, queues->failed_op, queues->failed_iteration,
                                      queues->failed_code, error);
}

void tarn_queues_halt(struct tarn_queues *queues) { atomic_store(&queues->halted, true); }

/* ---- Enqueueing ---- */

static enum tarn_status wait_for_event(struct tarn_queues *queues,
                                       const struct tarn_program_step *step,
                                       const struct tarn_program_wait *wait, uint64_t iteration,
                                       struct tarn_error *error)
{
    if (iteration < wait->previous) return TARN_OK;
    uint32_t on = queues->session->program->begin[wait->stream] + wait->place;
    void *event = queues->events[(iteration - wait->previous) & 1][on];
    assert(event && queues->queues[step->stream]);
    tarn_session_enqueues(queues->session);
    int code =
        queues->device.table->event_wait(queues->device.self, event, queues->queues[step->stream]);
    return tarn_queues_status(queues, "waiting for an event", step->op, iteration, code, error);
}

static enum tarn_status launch_closure(struct tarn_queues *queues, uint32_t index,
                                       uint64_t iteration, struct tarn_error *error)
{
    const struct tarn_program_step *step = &queues->session->program->steps[index];
    int code = queues->device.table->launch(queues->device.self, queues->queues[step->stream],
                                            call_kernel, &queues->closures[index]);
    return tarn_queues_status(queues, "launching", step->op, iteration, code, error);
}

static enum tarn_status stamp(struct tarn_queues *queues, const struct tarn_program_step *step,
                              uint64_t iteration, bool is_end, struct tarn_error *error)
{
    int code = tarn_flight_stamp(queues->session->flight, step->stream,
                                 queues->queues[step->stream], is_end);
    return tarn_queues_status(queues, "recording a stamp", step->op, iteration, code, error);
}

static enum tarn_status launch(struct tarn_queues *queues, uint32_t index, uint64_t iteration,
                               struct tarn_error *error)
{
    struct tarn_session *session = queues->session;
    const struct tarn_program_step *step = &session->program->steps[index];
    const struct tarn_device_table *table = queues->device.table;
    assert(queues->queues[step->stream]);
    tarn_session_enqueues(queues->session);
    bool moves = tarn_session_moves(session, step->op);
    if (!moves && tarn_session_calls(session, table))
        return launch_closure(queues, index, iteration, error);
    tarn_flight_begin(session->flight, step->stream, step->op, iteration);
    enum tarn_status status = stamp(queues, step, iteration, false, error);
    if (status != TARN_OK) return status;
    if (!moves && table->range_begin)
        table->range_begin(queues->device.self, session->graph->ops[step->op].name);
    int code = moves ? tarn_session_enqueue_move(session, step->op)
                     : tarn_session_launch(session, step->op, iteration);
    if (!moves && table->range_end) table->range_end(queues->device.self);
    if (code && moves)
        return tarn_queues_status(queues, "enqueueing a move", step->op, iteration, code, error);
    if (code) return tarn_session_kernel_failed(session, step->op, iteration, code, error);
    status = stamp(queues, step, iteration, true, error);
    tarn_flight_end(session->flight, step->stream);
    return status;
}

static enum tarn_status record(struct tarn_queues *queues, uint32_t index, uint64_t iteration,
                               struct tarn_error *error)
{
    const struct tarn_program_step *step = &queues->session->program->steps[index];
    void *event = queues->events[iteration & 1][index];
    if (!event) return TARN_OK;
    int code = queues->device.table->event_record(queues->device.self, event,
                                                  queues->queues[step->stream]);
    return tarn_queues_status(queues, "recording an event", step->op, iteration, code, error);
}

/* Waits for the last work of other sessions on the arena. */
static enum tarn_status wait_for_turns(struct tarn_queues *queues, uint32_t index,
                                       uint64_t iteration, struct tarn_error *error)
{
    const struct tarn_program_step *step = &queues->session->program->steps[index];
    for (uint32_t i = 0; i < queues->follows_count; i++) {
        const struct tarn_queues *other = queues->follows[i];
        const struct tarn_program *program = other->session->program;
        const struct tarn_arena *arena = queues->session->settings.options.arena;
        const struct tarn_turn *turn =
            &queues->session->member->turns[other->session->member - arena->members];
        void **events = other->events[(other->session->submitted - 1) & 1];
        for (uint32_t k = turn->begin[index]; k < turn->begin[index + 1]; k++) {
            void *event = events[program->begin[turn->waits[k].stream] + turn->waits[k].place];
            assert(event);
            tarn_session_enqueues(queues->session);
            int code = queues->device.table->event_wait(queues->device.self, event,
                                                        queues->queues[step->stream]);
            if (code)
                return tarn_queues_status(queues, "waiting for another session", step->op,
                                          iteration, code, error);
        }
    }
    return TARN_OK;
}

enum tarn_status tarn_queues_enqueue_step(struct tarn_queues *queues, uint32_t index,
                                          uint64_t iteration, struct tarn_error *error)
{
    const struct tarn_program *program = queues->session->program;
    const struct tarn_program_step *step = &program->steps[index];
    enum tarn_status status = wait_for_turns(queues, index, iteration, error);
    for (uint32_t i = step->waits_begin; i < step->waits_end && status == TARN_OK; i++)
        status = wait_for_event(queues, step, &program->waits[i], iteration, error);
    if (status == TARN_OK) status = launch(queues, index, iteration, error);
    if (status == TARN_OK) status = record(queues, index, iteration, error);
    return status;
}

enum tarn_status tarn_queues_enqueue(struct tarn_queues *queues, uint64_t iteration,
                                     struct tarn_error *error)
{
    const struct tarn_program *program = queues->session->program;
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < program->steps_count && status == TARN_OK; i++)
        status = tarn_queues_enqueue_step(queues, program->order[i], iteration, error);
    queues->follows_count = 0;
    return status;
}

/* ---- Creation and destruction ---- */

static int create_queue(struct tarn_queues *queues, uint32_t stream)
{
    const struct tarn_session *session = queues->session;
    void *const *adopted = session->settings.options.queues;
    queues->is_adopted[stream] = adopted && adopted[stream];
    if (queues->is_adopted[stream]) queues->queues[stream] = adopted[stream];
    if (queues->is_adopted[stream]) return 0;
    struct tarn_queue_info info = {.name = session->graph->streams[stream].name,
                                   .urgent = session->settings.streams[stream].urgent};
    return queues->device.table->queue_create(queues->device.self, &info, &queues->queues[stream]);
}

static int create_queues(struct tarn_queues *queues)
{
    struct tarn_session *session = queues->session;
    const struct tarn_program *program = session->program;
    for (uint32_t s = 0; s < program->streams_count; s++) {
        if (program->begin[s] == program->begin[s + 1]) continue;
        int code = create_queue(queues, s);
        if (code) {
            queues->queues[s] = NULL;
            return code;
        }
        for (uint32_t i = program->begin[s]; i < program->begin[s + 1]; i++)
            session->calls[program->steps[i].op].queue = queues->queues[s];
    }
    return 0;
}

static int create_events(struct tarn_queues *queues, uint32_t index)
{
    int code = 0;
    for (uint32_t parity = 0; parity < 2 && !code; parity++) {
        void **event = &queues->events[parity][index];
        code = queues->device.table->event_create(queues->device.self, event);
        if (code) *event = NULL;
    }
    return code;
}

static int create_all_events(struct tarn_queues *queues)
{
    const struct tarn_program *program = queues->session->program;
    int code = 0;
    for (uint32_t i = 0; i < program->steps_count && !code; i++) {
        const bool *exits = queues->session->exits;
        if (program->steps[i].record || (exits && exits[i])) code = create_events(queues, i);
    }
    return code;
}

static bool allocate(struct tarn_queues *queues)
{
    const struct tarn_program *program = queues->session->program;
    struct tarn_region *region = &queues->session->region;
    uint32_t steps = program->steps_count;
    queues->queues = tarn_region_take(region, program->streams_count, sizeof(void *));
    queues->is_adopted = tarn_region_take(region, program->streams_count, sizeof(bool));
    queues->events[0] = tarn_region_take(region, steps, sizeof(void *));
    queues->events[1] = tarn_region_take(region, steps, sizeof(void *));
    if (queues->session->member)
        queues->follows =
            tarn_region_take(region, queues->session->settings.options.arena->members_count,
                             sizeof *queues->follows);
    if (region->is_exhausted) return false;
    if (!queues->device.table->launch) return true;
    queues->closures = tarn_region_take(region, steps, sizeof *queues->closures);
    for (uint32_t i = 0; queues->closures && i < steps; i++)
        queues->closures[i] = (struct tarn_closure){queues, program->steps[i].op, 0};
    return queues->closures;
}

enum tarn_status tarn_queues_init(struct tarn_queues *queues, struct tarn_session *session,
                                  struct tarn_error *error)
{
    memset(queues, 0, sizeof *queues);
    queues->session = session;
    queues->device = session->device;
    if (!allocate(queues)) return tarn_error_no_memory(error);
    int code = create_queues(queues);
    if (code) return tarn_device_status(queues->device, "creating a queue", code, error);
    code = create_all_events(queues);
    return tarn_device_status(queues->device, "creating an event", code, error);
}

void tarn_queues_finish(struct tarn_queues *queues)
{
    const struct tarn_device *device = &queues->device;
    if (!queues->session) return;
    const struct tarn_program *program = queues->session->program;
    for (uint32_t parity = 0; parity < 2; parity++) {
        void **events = queues->events[parity];
        for (uint32_t i = 0; events && i < program->steps_count; i++) {
            if (events[i]) device->table->event_destroy(device->self, events[i]);
        }
    }
    for (uint32_t s = 0; queues->queues && s < program->streams_count; s++) {
        if (queues->queues[s] && !queues->is_adopted[s])
            device->table->queue_destroy(device->self, queues->queues[s]);
    }
    memset(queues, 0, sizeof *queues);
}
