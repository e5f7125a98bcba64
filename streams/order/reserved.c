/* Computes what storages reserve: lone storages first, then the groups, each in one pass over its
 * members. A group's padding fills its end up to a multiple of the alignment. A storage's own
 * alignment restricts offsets only, and counts as bytes that may be left free before the storage.
 * Cost: linear. */
#include "reserved.h"

#include <assert.h>

#include "streams/base/checked.h"
#include "streams/base/error.h"

bool tarn_reserve(uint64_t *reserved, uint32_t first, const struct tarn_graph *graph,
                  struct tarn_list members, uint64_t alignment, uint64_t *block_alignment,
                  uint64_t *sum)
{
    const struct tarn_storage *record = &graph->storages[members.ids[0]];
    bool is_padded = record->group != TARN_NONE && graph->groups[record->group].padded;
    uint64_t end = 0, top = 0, padded;
    alignment = tarn_storage_alignment(graph, members.ids[0], alignment);
    *block_alignment = alignment;
    const uint64_t *within =
        record->group != TARN_NONE ? graph->groups[record->group].within : NULL;
    for (size_t i = 0; i < members.count; i++) {
        uint64_t *size = &reserved[members.ids[i] - first];
        uint64_t own = tarn_own_alignment(graph, &graph->storages[members.ids[i]]);
        if (own > *block_alignment) *block_alignment = own; /* of one where the group begins */
        if (within) end = within[i];                        /* over others at times */
        if (!tarn_size_round_up(graph->storages[members.ids[i]].size, is_padded ? alignment : 1,
                                size))
            return false;
        if (!tarn_size_add(end, *size, &end)) return false;
        if (end > top) top = end;
    }
    if (!tarn_size_round_up(top, alignment, &padded)) return false;
    for (size_t i = 0; i < members.count; i++)
        if (within ? within[i] + graph->storages[members.ids[i]].size == top
                   : i + 1 == members.count)
            reserved[members.ids[i] - first] += padded - top;
    return tarn_size_add(*sum, padded, sum) && tarn_size_add(*sum, *block_alignment, sum);
}

static bool reserve_planned(uint64_t *reserved, const struct tarn_graph *graph, uint64_t alignment)
{
    uint64_t sum = 0, block_alignment;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        struct tarn_list lone = {&a, 1};
        if (graph->storages[a].group == TARN_NONE &&
            !tarn_reserve(reserved, 0, graph, lone, alignment, &block_alignment, &sum))
            return false;
    }
    for (uint32_t g = 0; g < graph->groups_count; g++) {
        const struct tarn_group *group = &graph->groups[g];
        struct tarn_list members = {group->storages, group->storages_count};
        if (!group->persistent && group->storages_count > 0 &&
            !tarn_reserve(reserved, 0, graph, members, alignment, &block_alignment, &sum))
            return false;
    }
    return true;
}

/* Bytes of the storages that op v makes; several outputs of an op may name one storage. */
static uint64_t made_by(const struct tarn_graph *graph, const uint64_t *sizes, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    uint64_t sum = 0;
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[tarn_outputs(op)[k]];
        bool is_new = tensor->root == tarn_outputs(op)[k] &&
                      tensor->storage < graph->planned_count &&
                      tensor->space == tarn_extra(op)->workspace_space;
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
        uint64_t *size = &sizes[tarn_extra(&graph->ops[v])->workspace_storage];
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
