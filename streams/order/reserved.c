/* Lone storages first, then the groups, each in one pass over its members; the padding of a group
 * is what is missing to a multiple of the alignment at its end. An alignment of a storage's own
 * restricts offsets only, and counts as bytes that may be left free before it. Cost: linear. */
#include "reserved.h"

#include <assert.h>

#include "streams/base/checked.h"
#include "streams/base/error.h"

/* Members that lie back to back, each rounded up to `step`; false: a size, or the sum, does not fit
 * in 64 bits. */
static bool reserve(uint64_t *reserved, const struct tarn_graph *graph, struct tarn_list list,
                    uint64_t step, uint64_t alignment, uint64_t *sum)
{
    const uint32_t *members = list.ids;
    uint64_t end = 0, padded, own = graph->storages[members[0]].alignment;
    alignment = tarn_storage_alignment(graph, members[0], alignment);
    for (size_t i = 0; i < list.count; i++) {
        if (!tarn_size_round_up(graph->storages[members[i]].size, step, &reserved[members[i]]))
            return false;
        if (!tarn_size_add(end, reserved[members[i]], &end)) return false;
    }
    if (!tarn_size_round_up(end, alignment, &padded)) return false;
    reserved[members[list.count - 1]] += padded - end;
    return tarn_size_add(*sum, padded, sum) &&
           tarn_size_add(*sum, own > alignment ? own : alignment, sum);
}

static bool reserve_planned(uint64_t *reserved, const struct tarn_graph *graph, uint64_t alignment)
{
    uint64_t sum = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (graph->storages[a].group != TARN_NONE) continue;
        struct tarn_list lone = {&a, 1};
        if (!reserve(reserved, graph, lone, 1, alignment, &sum)) return false;
    }
    for (uint32_t g = 0; g < graph->groups_count; g++) {
        const struct tarn_group *group = &graph->groups[g];
        if (group->persistent) continue;
        struct tarn_list members = {group->storages, group->storages_count};
        uint64_t step =
            group->padded ? tarn_storage_alignment(graph, members.ids[0], alignment) : 1;
        if (!reserve(reserved, graph, members, step, alignment, &sum)) return false;
    }
    return true;
}

/* What op v makes: an op may name one storage by several outputs. */
static uint64_t made_by(const struct tarn_graph *graph, const uint64_t *sizes, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    uint64_t sum = 0;
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[op->outputs[k]];
        bool is_new = tensor->root == op->outputs[k] && tensor->storage < graph->planned_count &&
                      tensor->space == op->workspace_space;
        if (is_new) sum += sizes[tensor->storage];
    }
    return sum;
}

void tarn_sizes_of_first_space(const struct tarn_graph *graph, uint64_t *sizes)
{
    for (uint32_t a = 0; graph->spaces_count > 1 && a < graph->planned_count; a++)
        if (graph->storages[a].space > 0) sizes[a] = 0;
}

void tarn_workspaces_fold(const struct tarn_graph *graph, uint64_t *sizes)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (!graph->ops[v].workspace_first) continue;
        uint64_t *size = &sizes[graph->ops[v].workspace_storage];
        uint64_t made = made_by(graph, sizes, v);
        *size = *size > made ? *size - made : 0;
    }
}

enum tarn_status tarn_reserved_sizes(const uint64_t **result, struct tarn_region *region,
                                     const struct tarn_graph *graph, uint64_t alignment,
                                     struct tarn_error *error)
{
    assert(tarn_is_power_of_two(alignment));
    uint64_t *reserved = tarn_region_take(region, graph->planned_count, sizeof *reserved);
    *result = reserved;
    if (!reserved) return tarn_error_no_memory(error);
    if (reserve_planned(reserved, graph, alignment)) {
        tarn_workspaces_fold(graph, reserved);
        tarn_sizes_of_first_space(graph, reserved);
        return TARN_OK;
    }
    return tarn_error_set(error, TARN_BAD_INPUT,
                          "the planned tensors need more than 2^64 bytes at alignment %llu; use a "
                          "smaller alignment",
                          (unsigned long long)alignment);
}
