/* Makes the arguments of kernels: one struct tarn_call for every op, complete before the first
 * iteration, so that a launch is one indirect call. Addresses and sizes of all inputs and outputs
 * are in two arrays that the calls point into. Cost: O(ops + tensors). */
#include "session.h"

#include <assert.h>

#include "streams/base/options.h"
#include "streams/graph/report.h"

void *tarn_session_address(const struct tarn_session *session, tarn_tensor tensor)
{
    if (!session || tensor >= session->graph->tensors_count) return NULL;
    return tarn_plan_memory_address(&session->memory, tensor);
}

void *tarn_session_workspace(const struct tarn_session *session, tarn_op op)
{
    if (!session || op >= session->graph->ops_count) return NULL;
    uint32_t storage = tarn_extra(&session->graph->ops[op])->workspace_storage;
    return storage != TARN_NONE ? session->memory.addresses[storage] : NULL;
}

void *tarn_session_memory_sized(const struct tarn_session *session, tarn_space space,
                                struct tarn_memory_needs *needs, size_t size)
{
    static const struct tarn_memory_needs none;
    bool is_there = session && space < session->memory.parts_count;
    if (needs)
        tarn_struct_give(needs, size, is_there ? &session->memory.parts[space].needs : &none,
                         sizeof none);
    return is_there ? session->memory.parts[space].memory : NULL;
}

enum tarn_status tarn_session_group(const struct tarn_session *session, uint32_t group,
                                    void **address, uint64_t *size, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session) return tarn_error_set(error, TARN_USAGE, "no session");
    const struct tarn_graph *graph = session->graph;
    if (group >= graph->given_count)
        return tarn_error_set(error, TARN_USAGE, "group %u does not exist; the graph has %u", group,
                              graph->given_count);
    const struct tarn_group *record = &graph->given[group];
    uint32_t begin = graph->tensors[record->tensors[0]].storage;
    if (record->storages_count > 0) begin = record->storages[0];
    char *first = session->memory.addresses[begin];
    uint64_t end = 0, behind = 0; /* of the group, and of the member before */
    if (first && record->within) first -= record->within[0];
    for (uint32_t i = 0; i < record->storages_count; i++) {
        uint32_t storage = record->storages[i];
        char *member = session->memory.addresses[storage];
        if (!member || !tarn_plan_memory_is_address(&session->memory, storage) ||
            (uint64_t)(member - first) != (record->within ? record->within[i] : behind)) {
            if (error) error->tensor = graph->storages[storage].tensor;
            return tarn_error_set(error, TARN_USAGE, "group %u is not one buffer: %s is %s", group,
                                  tarn_storage_label(graph, storage).text,
                                  !member          ? "not bound"
                                  : record->within ? "not at its offset in the group"
                                                   : "not right after the member before it");
        }
        uint64_t bytes = graph->storages[storage].size;
        uint64_t alignment = tarn_storage_alignment(graph, storage, session->plan->alignment);
        behind = (uint64_t)(member - first) + bytes;
        behind += record->padded ? -bytes & (alignment - 1) : 0;
        if (behind > end) end = behind;
    }
    if (address) *address = first;
    if (size) *size = end;
    return TARN_OK;
}

static void **fill_addresses(const struct tarn_session *session, void **next,
                             const uint32_t *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        *next++ = tarn_plan_memory_address(&session->memory, tensors[i]);
    return next;
}

void tarn_session_find_addresses(struct tarn_session *session)
{
    const struct tarn_graph *graph = session->graph;
    void **next = session->addresses;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        struct tarn_call *call = &session->calls[v];
        call->workspace = tarn_session_workspace(session, v);
        call->inputs = next;
        next = fill_addresses(session, next, op->inputs, op->inputs_count);
        call->outputs = next;
        next = fill_addresses(session, next, tarn_outputs(op), op->outputs_count);
    }
    assert(next == session->addresses + session->addresses_count);
}

static uint64_t *fill_sizes(const struct tarn_graph *graph, uint64_t *next, const uint32_t *tensors,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) *next++ = graph->tensors[tensors[i]].size;
    return next;
}

static void fill_calls(struct tarn_session *session)
{
    const struct tarn_graph *graph = session->graph;
    uint64_t *next = session->sizes;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        session->calls[v] = (struct tarn_call){
            .struct_size = sizeof(struct tarn_call),
            .op = v,
            .origin = tarn_plan_op_origin(session->plan, v),
            .implementation = tarn_plan_op_implementation(session->plan, v),
            .recomputed = tarn_plan_op_is_recomputed(session->plan, v),
            .stream = op->stream,
            .inputs_count = op->inputs_count,
            .outputs_count = op->outputs_count,
            .workspace_size = tarn_extra(op)->workspace,
        };
        session->calls[v].input_sizes = next;
        next = fill_sizes(graph, next, op->inputs, op->inputs_count);
        session->calls[v].output_sizes = next;
        next = fill_sizes(graph, next, tarn_outputs(op), op->outputs_count);
    }
    assert(next == session->sizes + session->addresses_count);
}

enum tarn_status tarn_session_make_calls(struct tarn_session *session, struct tarn_error *error)
{
    const struct tarn_graph *graph = session->graph;
    struct tarn_region *region = &session->region;
    size_t count = 0; /* of inputs and outputs */
    for (uint32_t v = 0; v < graph->ops_count; v++)
        count += (size_t)graph->ops[v].inputs_count + graph->ops[v].outputs_count;
    session->bindings = tarn_region_take(region, graph->ops_count, sizeof *session->bindings);
    session->calls = tarn_region_take(region, graph->ops_count, sizeof *session->calls);
    session->addresses = tarn_region_take(region, count, sizeof *session->addresses);
    session->addresses_count = count;
    session->sizes = tarn_region_take(region, count, sizeof *session->sizes);
    if (!session->bindings || !session->calls || !session->addresses || !session->sizes)
        return tarn_error_no_memory(error);
    if (graph->conditionals_count > 0) {
        session->arms = tarn_region_take(region, graph->conditionals_count, sizeof *session->arms);
        session->skipped = tarn_region_take(region, graph->ops_count, sizeof *session->skipped);
        if (!session->arms || !session->skipped) return tarn_error_no_memory(error);
        tarn_session_skip(session);
    }
    fill_calls(session);
    tarn_session_find_addresses(session);
    tarn_session_bind_moves(session);
    return TARN_OK;
}
