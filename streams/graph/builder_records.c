/* Adds records of ops and groups, and later details of them: control arcs, origins. A writer that
 * comes after all readers so far gets control arcs from each op that reads a storage which it
 * writes. Cost: every list is copied once; after all readers, linear in the ops and their lists.
 */
#include <string.h>

#include "builder_state.h"
#include "derive.h"
#include "streams/base/error.h"
#include "validate.h"

/* ---- Lists ---- */

/* Counts a list of `count` entries; false: it is missing, or too long. */
static bool take_references(struct tarn_builder *builder, const void *list, size_t count)
{
    if (count > TARN_REFERENCES_MAX - builder->references) {
        tarn_report_bad(&builder->report, tarn_location_at(TARN_NONE, TARN_NONE, "%s", ""),
                        "all lists together have more than 2^30 entries");
        return false;
    }
    if (!list && count > 0) {
        tarn_error_set(&builder->error, TARN_USAGE, "a list of %zu entries is NULL", count);
        return false;
    }
    builder->references += (uint32_t)count;
    return true;
}

/* Copies a list of `count` entries of `size` bytes; an empty one is NULL. */
static void *copy_list(struct tarn_builder *builder, const void *list, size_t count, size_t size)
{
    if (count == 0 || !take_references(builder, list, count)) return NULL;
    void *copy = tarn_region_copy(&builder->graph->region, list, count, size);
    if (!copy) tarn_error_no_memory(&builder->error);
    return copy;
}

/* ---- Ops ---- */

static const char *copy_kind(struct tarn_builder *builder, const char *kind, uint32_t id)
{
    uint32_t hash = 0;
    for (const char *c = kind; c && *c; c++) hash = hash * 31 + (unsigned char)*c;
    const char **known = &builder->kinds[(hash ^ hash >> 6) % 64];
    if (!kind || !*known || strcmp(*known, kind) != 0)
        *known = tarn_builder_copy_name(builder, kind, "op", id, "kind");
    return *known;
}

static const struct tarn_implementation *
copy_implementations(struct tarn_builder *builder, const struct tarn_op_info *info, uint32_t id)
{
    size_t count = info->implementations_count;
    struct tarn_implementation *copy =
        copy_list(builder, info->implementations, count, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        struct tarn_list *inputs = &copy[i].inputs, *outputs = &copy[i].outputs;
        copy[i].name = tarn_builder_copy_name(builder, copy[i].name, "op", id, "implementations");
        copy[i].workspace_first = copy[i].workspace_first && copy[i].workspace > 0;
        inputs->ids = copy_list(builder, inputs->ids, inputs->count, sizeof *inputs->ids);
        outputs->ids = copy_list(builder, outputs->ids, outputs->count, sizeof *outputs->ids);
    }
    return copy;
}

/* Target of lists without entries: C allows no arithmetic on NULL, not even + 0. */
static const uint32_t nothing;

/* An empty list differs from NULL. */
static const uint32_t *copy_common(struct tarn_builder *builder, struct tarn_list common)
{
    if (!common.ids || common.count > 0)
        return copy_list(builder, common.ids, common.ids ? common.count : 0, sizeof *common.ids);
    return &nothing;
}

static bool has_extra(const struct tarn_op_info *info)
{
    return info->control.count > 0 || info->inplace_count > 0 || info->implementations_count > 0 ||
           info->branch_count > 0 || info->common.ids || info->workspace > 0 ||
           info->workspace_space > 0 || info->flops > 0;
}

static struct tarn_op_extra *copy_extra(struct tarn_builder *builder,
                                        const struct tarn_op_info *info, uint32_t id)
{
    if (!has_extra(info)) return NULL;
    const struct tarn_op_extra extra = {
        .control = copy_list(builder, info->control.ids, info->control.count, sizeof(uint32_t)),
        .control_count = (uint32_t)info->control.count,
        .inplace = copy_list(builder, info->inplace, info->inplace_count, sizeof *info->inplace),
        .inplace_count = (uint32_t)info->inplace_count,
        .branch = copy_list(builder, info->branch, info->branch_count, sizeof *info->branch),
        .branch_count = (uint32_t)info->branch_count,
        .implementations = copy_implementations(builder, info, id),
        .implementations_count = (uint32_t)info->implementations_count,
        .common = copy_common(builder, info->common),
        .common_count = info->common.ids ? (uint32_t)info->common.count : 0,
        .common_is_given = info->common.ids != NULL,
        .workspace = info->workspace,
        .workspace_space = space_of(info->workspace_space),
        .flops = info->flops,
        .workspace_storage = TARN_NONE,
        .implementation = TARN_NONE,
    };
    struct tarn_op_extra *copy = tarn_region_copy(&builder->graph->region, &extra, 1, sizeof extra);
    if (!copy) tarn_error_no_memory(&builder->error);
    return copy;
}

/* Inputs, then outputs; NULL: an error. */
static const uint32_t *copy_ids(struct tarn_builder *builder, struct tarn_list inputs,
                                struct tarn_list outputs)
{
    if (!take_references(builder, inputs.ids, inputs.count) ||
        !take_references(builder, outputs.ids, outputs.count))
        return NULL;
    uint32_t count = (uint32_t)(inputs.count + outputs.count);
    if (count == 0) return &nothing;
    uint32_t *ids =
        tarn_builder_room(builder, builder->ids, count - 1, &builder->ids_capacity, sizeof *ids);
    if (!ids) return NULL;
    builder->ids = ids;
    if (inputs.count > 0) memcpy(ids, inputs.ids, inputs.count * sizeof *ids);
    if (outputs.count > 0) memcpy(ids + inputs.count, outputs.ids, outputs.count * sizeof *ids);
    uint32_t *copy = tarn_region_copy(&builder->graph->region, ids, count, sizeof *ids);
    if (!copy) tarn_error_no_memory(&builder->error);
    return copy;
}

static struct tarn_graph_op copy_op(struct tarn_builder *builder, const struct tarn_op_info *info,
                                    uint32_t id)
{
    return (struct tarn_graph_op){
        .name = tarn_builder_copy_name(builder, info->name, "op", id, "name"),
        .kind = copy_kind(builder, info->kind, id),
        .inputs = copy_ids(builder, info->inputs, info->outputs),
        .inputs_count = (uint32_t)info->inputs.count,
        .outputs_count = (uint32_t)info->outputs.count,
        .extra = copy_extra(builder, info, id),
        .stream = info->stream,
        .origin = info->move ? TARN_NONE : id,
        .cost = info->cost,
        .view = info->view,
        .move = info->move,
        .workspace_first = info->workspace_first && info->workspace > 0,
        .says_workspace_first = info->workspace_first,
        .recomputable = byte_of(info->recomputable),
        .op_class = byte_of(info->op_class),
    };
}

tarn_op tarn_builder_op_sized(struct tarn_builder *builder, const struct tarn_op_info *given,
                              size_t size)
{
    struct tarn_op_info info;
    if (!tarn_builder_take_info(builder, &info, sizeof info, given, size, __func__))
        return TARN_NONE;
    struct tarn_graph *graph = builder->graph;
    uint32_t id = graph->ops_count;
    if (!tarn_builder_has_id_left(builder, "ops", id, TARN_OPS_MAX)) return TARN_NONE;
    struct tarn_graph_op *ops =
        tarn_builder_room(builder, graph->ops, id, &builder->ops_capacity, sizeof *ops);
    if (!ops) return TARN_NONE;
    graph->ops = ops;
    ops[id] = copy_op(builder, &info, id);
    if (!is_usable(builder)) return TARN_NONE;
    return graph->ops_count++;
}

/* ---- Control arcs ---- */

void tarn_builder_control(struct tarn_builder *builder, tarn_op later, tarn_op earlier)
{
    if (!is_usable(builder)) return;
    if (later >= builder->graph->ops_count) {
        tarn_report_bad(&builder->report, tarn_location_at(later, TARN_NONE, "%s", ""),
                        "a control arc to op %u was asked for, but there are %u ops so far", later,
                        builder->graph->ops_count);
        return;
    }
    struct tarn_control_arc *arcs = tarn_builder_room(builder, builder->arcs, builder->arcs_count,
                                                      &builder->arcs_capacity, sizeof *arcs);
    if (!arcs) return;
    builder->arcs = arcs;
    if (!take_references(builder, &earlier, 1)) return;
    arcs[builder->arcs_count++] = (struct tarn_control_arc){later, earlier};
}

/* Do two tensors have a byte in common? A tensor that is not added yet has none. */
static bool share_bytes(const struct tarn_graph *graph, uint32_t a, uint32_t b)
{
    if (a >= graph->tensors_count || b >= graph->tensors_count) return false;
    const struct tarn_graph_tensor *x = &graph->tensors[a], *y = &graph->tensors[b];
    uint32_t x_root = x->root == TARN_NONE ? a : x->root,
             y_root = y->root == TARN_NONE ? b : y->root;
    uint64_t x_begin = tarn_tensor_begin(x), y_begin = tarn_tensor_begin(y);
    bool begins_inside =
        x_begin <= y_begin ? y_begin - x_begin < x->size : x_begin - y_begin < y->size;
    return x_root == y_root && begins_inside && x->size > 0 && y->size > 0;
}

static bool reads_what_is_written(const struct tarn_graph *graph,
                                  const struct tarn_graph_op *reader,
                                  const struct tarn_graph_op *writer)
{
    for (uint32_t i = 0; i < reader->inputs_count; i++)
        for (uint32_t k = 0; k < writer->outputs_count; k++)
            if (share_bytes(graph, reader->inputs[i], tarn_outputs(writer)[k])) return true;
    return false;
}

void tarn_builder_after_readers(struct tarn_builder *builder, tarn_op writer)
{
    const struct tarn_graph *graph = tarn_builder_graph(builder);
    if (!graph) return;
    if (writer >= graph->ops_count) {
        tarn_builder_control(builder, writer, 0); /* reports the error */
        return;
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (v == writer || graph->ops[v].stream == graph->ops[writer].stream) continue;
        if (reads_what_is_written(graph, &graph->ops[v], &graph->ops[writer]))
            tarn_builder_control(builder, writer, v);
    }
}

/* ---- Groups ---- */

static void add_group(struct tarn_builder *builder, struct tarn_list tensors,
                      const uint64_t *offsets, bool padded)
{
    if (!is_usable(builder)) return;
    uint32_t g = builder->graph->groups_count;
    if (!tarn_builder_has_id_left(builder, "contiguous", g, TARN_TENSORS_MAX)) return;
    struct tarn_group *groups =
        tarn_builder_room(builder, builder->groups, g, &builder->groups_capacity, sizeof *groups);
    if (!groups) return;
    builder->groups = groups;
    groups[g] = (struct tarn_group){
        .tensors = copy_list(builder, tensors.ids, tensors.count, sizeof *tensors.ids),
        .tensors_count = (uint32_t)tensors.count,
        .padded = padded};
    if (offsets && is_usable(builder))
        groups[g].offsets = copy_list(builder, offsets, tensors.count, sizeof *offsets);
    if (is_usable(builder)) builder->graph->groups_count++;
}

void tarn_builder_group(struct tarn_builder *builder, struct tarn_list tensors)
{
    add_group(builder, tensors, NULL, false);
}

void tarn_builder_group_padded(struct tarn_builder *builder, struct tarn_list tensors)
{
    add_group(builder, tensors, NULL, true);
}

void tarn_builder_group_offsets(struct tarn_builder *builder, struct tarn_list tensors,
                                const uint64_t *offsets)
{
    if (is_usable(builder) && !offsets && tensors.count > 0)
        tarn_error_set(&builder->error, TARN_USAGE, "%s: offsets is NULL", __func__);
    add_group(builder, tensors, offsets, false);
}

void tarn_builder_group_symmetric(struct tarn_builder *builder, uint32_t group, const char *name)
{
    struct tarn_graph *graph = tarn_builder_graph(builder);
    if (!graph) return;
    if (!name || group >= graph->groups_count) {
        tarn_error_set(&builder->error, TARN_USAGE,
                       name ? "%s: there is no group %u" : "%s: the name of group %u is NULL",
                       __func__, group);
        return;
    }
    builder->groups[group].symmetric = tarn_region_string(&graph->region, name);
    if (!builder->groups[group].symmetric) tarn_error_no_memory(&builder->error);
}

/* ---- Origins ---- */

void tarn_builder_origin(struct tarn_builder *builder, tarn_op origin, uint32_t implementation)
{
    struct tarn_graph *graph = tarn_builder_graph(builder);
    if (!graph || graph->ops_count == 0) return;
    graph->ops[graph->ops_count - 1].origin = origin;
    if (!tarn_graph_choose(graph, graph->ops_count - 1, implementation))
        tarn_error_no_memory(&builder->error);
}

void tarn_builder_tensor_origin(struct tarn_builder *builder, tarn_tensor origin)
{
    struct tarn_graph *graph = tarn_builder_graph(builder);
    if (graph && graph->tensors_count > 0) graph->tensors[graph->tensors_count - 1].origin = origin;
}
