/* Collects the additions of ops before the graph is built, all in one region: lists grow there, and
 * an implementation's own lists are copied to it. Cost: linear in the additions; a name is looked
 * up in the op's list. */
#include "additions.h"

#include <assert.h>
#include <string.h>

enum tarn_status tarn_additions_init(struct tarn_additions *additions, struct tarn_region *region,
                                     const struct tarn_graph *graph,
                                     const struct tarn_cost_table *costs)
{
    size_t longest = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++)
        if (graph->ops[v].inputs_count > longest) longest = graph->ops[v].inputs_count;
    *additions = (struct tarn_additions){.graph = graph, .costs = costs, .region = region};
    additions->ops = tarn_region_take(region, graph->ops_count, sizeof *additions->ops);
    additions->ids = tarn_region_take(region, longest + 3, sizeof *additions->ids);
    if (!additions->ops || !additions->ids) return TARN_SYSTEM;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        struct tarn_addition *addition = &additions->ops[v];
        addition->cost = op->cost;
        addition->workspace = extra->workspace;
        if (extra->implementations_count == 0) continue;
        addition->list = tarn_region_copy(region, extra->implementations,
                                          extra->implementations_count, sizeof *addition->list);
        addition->room = addition->count = extra->implementations_count;
        if (!addition->list) return TARN_SYSTEM;
    }
    return tarn_pairing_init(&additions->pairing, region, graph);
}

bool tarn_addition_is_valid(const struct tarn_additions *additions, uint32_t v)
{
    const struct tarn_addition *addition = &additions->ops[v];
    const struct tarn_graph_op *op = &additions->graph->ops[v];
    if (addition->count < tarn_extra(op)->implementations_count || addition->count > addition->room)
        return false;
    if (addition->outputs && addition->outputs_count <= op->outputs_count) return false;
    for (uint32_t i = 0; i < addition->count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(addition->list[i].name, addition->list[k].name) == 0) return false;
    return true;
}

/* ---- Implementations ---- */

bool tarn_additions_has(const struct tarn_addition *addition, const char *name)
{
    for (uint32_t i = 0; i < addition->count; i++)
        if (strcmp(addition->list[i].name, name) == 0) return true;
    return false;
}

static bool copy_list(struct tarn_region *region, struct tarn_list *list)
{
    if (list->count > 0)
        list->ids = tarn_region_copy(region, list->ids, list->count, sizeof *list->ids);
    return list->count == 0 || list->ids;
}

enum tarn_status tarn_additions_append(struct tarn_additions *additions, uint32_t v,
                                       const struct tarn_implementation *implementation)
{
    assert(v < additions->graph->ops_count && implementation->name);
    struct tarn_addition *addition = &additions->ops[v];
    if (tarn_additions_has(addition, implementation->name)) return TARN_OK;
    struct tarn_implementation copy = *implementation;
    struct tarn_implementation *list =
        tarn_region_grow(additions->region, addition->list, &addition->room,
                         (size_t)addition->count + 1, sizeof *list);
    if (!list || !copy_list(additions->region, &copy.inputs) ||
        !copy_list(additions->region, &copy.outputs))
        return TARN_SYSTEM;
    list[addition->count++] = copy;
    addition->list = list;
    additions->report.implementations++;
    return TARN_OK;
}

/* ---- Tensors ---- */

static enum tarn_status add_output(struct tarn_additions *additions, uint32_t v, uint32_t t)
{
    const struct tarn_graph_op *op = &additions->graph->ops[v];
    struct tarn_addition *addition = &additions->ops[v];
    uint32_t count = addition->outputs ? addition->outputs_count : op->outputs_count;
    const uint32_t *before = addition->outputs ? addition->outputs : tarn_outputs(op);
    uint32_t *outputs = tarn_region_take(additions->region, (size_t)count + 1, sizeof *outputs);
    if (!outputs) return TARN_SYSTEM;
    if (count > 0) memcpy(outputs, before, count * sizeof *outputs);
    outputs[count] = t;
    addition->outputs = outputs;
    addition->outputs_count = count + 1;
    return TARN_OK;
}

enum tarn_status tarn_additions_keep(struct tarn_additions *additions, uint32_t v, const char *name,
                                     uint64_t size, uint32_t *tensor)
{
    assert(v < additions->graph->ops_count && size > 0);
    struct tarn_tensor_info *kept =
        tarn_region_grow(additions->region, additions->kept, &additions->kept_room,
                         (size_t)additions->kept_count + 1, sizeof *kept);
    if (!kept) return TARN_SYSTEM;
    additions->kept = kept;
    *tensor = additions->graph->tensors_count + additions->kept_count;
    kept[additions->kept_count++] =
        (struct tarn_tensor_info){.name = name, .size = size, .kind = TARN_INTERMEDIATE};
    additions->report.tensors++;
    additions->report.bytes += size;
    return add_output(additions, v, *tensor);
}
