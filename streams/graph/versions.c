/* Which write each read sees: one pass that remembers the last version of every storage. The
 * meaning of a graph is what this gives for its list order; a plan must give the same for the
 * order in which it launches. Cost: linear in ops and their inputs and outputs. */
#include "versions.h"

#include "streams/base/region.h"

static void run_op(struct tarn_versions *versions, const struct tarn_graph *graph, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    uint32_t *found = versions->found + versions->begin[v];
    for (uint32_t k = 0; k < tarn_slots_count(op); k++)
        found[k] = versions->last[tarn_slot_storage(graph, op, k)];
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t t = tarn_outputs(op)[k], *last = &versions->last[graph->tensors[t].storage];
        if (!op->view && tarn_version_writer(graph, *last) != v) *last = t;
        versions->left[t] = *last;
    }
}

static void fill(uint32_t *items, size_t count)
{
    for (size_t i = 0; i < count; i++) items[i] = TARN_NONE;
}

enum tarn_status tarn_versions_init(struct tarn_versions *versions, struct tarn_region *region,
                                    const struct tarn_graph *graph, const uint32_t *ops,
                                    uint32_t count)
{
    uint32_t slots = 0;
    versions->begin =
        tarn_region_take(region, (size_t)graph->ops_count + 1, sizeof *versions->begin);
    versions->left = tarn_region_take(region, graph->tensors_count, sizeof *versions->left);
    versions->last = tarn_region_take(region, graph->storages_count, sizeof *versions->last);
    if (!versions->begin || !versions->left || !versions->last) return TARN_SYSTEM;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        versions->begin[v] = slots;
        slots += tarn_slots_count(&graph->ops[v]);
    }
    versions->begin[graph->ops_count] = slots;
    versions->found = tarn_region_take(region, slots, sizeof *versions->found);
    if (!versions->found) return TARN_SYSTEM;
    fill(versions->found, slots);
    fill(versions->left, graph->tensors_count);
    fill(versions->last, graph->storages_count);
    for (uint32_t i = 0; i < count; i++) run_op(versions, graph, ops[i]);
    return TARN_OK;
}
