/* Finds which write each read sees: one pass that stores the last version of every part of a
 * storage. The result for list order is the meaning of a graph; a plan must give the same result
 * for its launch order. Cost: linear in ops and the parts of their inputs and outputs. */
#include "versions.h"

#include "streams/base/region.h"

static void run_op(struct tarn_versions *versions, const struct tarn_graph *graph, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    uint32_t *found = versions->found + versions->begin[v];
    for (uint32_t k = 0; k < tarn_slots_count(op); k++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[tarn_slot_tensor(op, k)];
        for (uint32_t i = 0; i < tensor->parts_count; i++)
            *found++ = versions->last[tensor->part + i];
    }
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t t = tarn_outputs(op)[k], *left = versions->left + versions->left_begin[t];
        for (uint32_t i = 0; i < graph->tensors[t].parts_count; i++) {
            uint32_t *last = &versions->last[graph->tensors[t].part + i];
            if (!op->view && tarn_version_writer(graph, *last) != v) *last = t;
            *left++ = *last;
        }
    }
}

static void fill(uint32_t *items, size_t count)
{
    for (size_t i = 0; i < count; i++) items[i] = TARN_NONE;
}

static uint32_t count_parts(const struct tarn_graph *graph, const struct tarn_graph_op *op)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < tarn_slots_count(op); k++)
        count += graph->tensors[tarn_slot_tensor(op, k)].parts_count;
    return count;
}

enum tarn_status tarn_versions_init(struct tarn_versions *versions, struct tarn_region *region,
                                    const struct tarn_graph *graph, const uint32_t *ops,
                                    uint32_t count)
{
    uint32_t slots = 0, left = 0;
    versions->begin =
        tarn_region_take(region, (size_t)graph->ops_count + 1, sizeof *versions->begin);
    versions->left_begin =
        tarn_region_take(region, graph->tensors_count, sizeof *versions->left_begin);
    versions->last = tarn_region_take(region, graph->parts_count, sizeof *versions->last);
    if (!versions->begin || !versions->left_begin || !versions->last) return TARN_SYSTEM;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        versions->begin[v] = slots;
        slots += count_parts(graph, &graph->ops[v]);
    }
    versions->begin[graph->ops_count] = slots;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        versions->left_begin[t] = left;
        left += graph->tensors[t].parts_count;
    }
    versions->found = tarn_region_take(region, slots, sizeof *versions->found);
    versions->left = tarn_region_take(region, left, sizeof *versions->left);
    if (!versions->found || !versions->left) return TARN_SYSTEM;
    fill(versions->found, slots);
    fill(versions->left, left);
    fill(versions->last, graph->parts_count);
    for (uint32_t i = 0; i < count; i++) run_op(versions, graph, ops[i]);
    return TARN_OK;
}
