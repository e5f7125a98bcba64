/* Checks the rules for single records: tensors first (their aliases), then ops (their names,
 * producers of tensors), then groups, then sums. The first broken rule ends the check.
 * Cost: linear in records and list entries.
 */
#include "validate.h"

#include "streams/base/checked.h"
#include "streams/base/region.h"

/* ---- Tensors ---- */

static enum tarn_status bad_tensor(const struct tarn_graph *graph, const struct tarn_report *report,
                                   uint32_t t, const char *field, const char *what)
{
    return tarn_report_bad(report, tarn_location_at(TARN_NONE, t, "/tensors/%u/%s", t, field),
                           "%s %s", tarn_tensor_label(graph, t).text, what);
}

/* `root` still holds the aliased tensor, or TARN_NONE. */
static enum tarn_status check_alias(const struct tarn_graph *graph,
                                    const struct tarn_report *report, uint32_t t)
{
    const struct tarn_graph_tensor *tensor = &graph->tensors[t];
    if (tensor->root >= graph->tensors_count)
        return tarn_report_bad(report, tarn_location_at(TARN_NONE, t, "/tensors/%u/alias_of", t),
                               "%s aliases tensor %u, but there are %u tensors",
                               tarn_tensor_label(graph, t).text, tensor->root,
                               graph->tensors_count);
    const struct tarn_graph_tensor *root = &graph->tensors[tensor->root];
    if (tensor->root == t || root->root != TARN_NONE)
        return tarn_report_bad(report, tarn_location_at(TARN_NONE, t, "/tensors/%u/alias_of", t),
                               "%s aliases %s, which is %s; name the tensor that owns the storage",
                               tarn_tensor_label(graph, t).text,
                               tarn_tensor_label(graph, tensor->root).text,
                               tensor->root == t ? "itself" : "an alias as well");
    uint64_t begin = tarn_tensor_begin(tensor);
    if (begin > root->size || tensor->size > root->size - begin)
        return tarn_report_bad(report, tarn_location_at(TARN_NONE, t, "/tensors/%u/size", t),
                               "%s has the bytes %llu to %llu of %s, which has %llu; a slice ends "
                               "inside its root",
                               tarn_tensor_label(graph, t).text, (unsigned long long)begin,
                               (unsigned long long)(begin + tensor->size),
                               tarn_tensor_label(graph, tensor->root).text,
                               (unsigned long long)root->size);
    if (tensor->kind != root->kind)
        return bad_tensor(graph, report, t, "kind",
                          "differs in kind from the root that it aliases");
    if (tensor->alignment != 0)
        return bad_tensor(graph, report, t, "alignment",
                          "is an alias and must not have an alignment; give it to its root");
    return TARN_OK;
}

static enum tarn_status check_tensor_origin(const struct tarn_graph *graph,
                                            const struct tarn_report *report, uint32_t t)
{
    const struct tarn_graph_tensor *tensor = &graph->tensors[t];
    if (tensor->origin == t) return TARN_OK;
    if (tensor->origin >= graph->tensors_count)
        return tarn_report_bad(report, tarn_location_at(TARN_NONE, t, "/tensors/%u/origin", t),
                               "%s holds again what tensor %u held, but there are %u tensors",
                               tarn_tensor_label(graph, t).text, tensor->origin,
                               graph->tensors_count);
    const struct tarn_graph_tensor *origin = &graph->tensors[tensor->origin];
    if (origin->origin != tensor->origin)
        return bad_tensor(graph, report, t, "origin",
                          "holds again what a tensor held that is such a copy as well; name the "
                          "tensor of the source graph");
    if (tensor->size != origin->size)
        return bad_tensor(graph, report, t, "origin",
                          "differs in size from the tensor whose content it holds again");
    return TARN_OK;
}

static enum tarn_status check_wanted_offset(const struct tarn_graph *graph,
                                            const struct tarn_report *report, uint32_t t)
{
    const struct tarn_graph_tensor *tensor = &graph->tensors[t];
    const char *field =
        tensor->offset_rule == TARN_OFFSET_FIXED ? "fixed_offset" : "preferred_offset";
    if (tensor->offset_rule > TARN_OFFSET_PREFERRED)
        return bad_tensor(graph, report, t, "fixed_offset", "has an unknown rule for its offset");
    if (tensor->offset_rule == TARN_OFFSET_FREE) return TARN_OK;
    if (tarn_tensor_wanted(tensor) > TARN_NUMBER_MAX)
        return bad_tensor(graph, report, t, field, "is to lie above 2^53 - 1");
    if (tensor->root != TARN_NONE)
        return bad_tensor(graph, report, t, field,
                          "is an alias, whose root alone has an offset; give it to that");
    if (tarn_kind_is_persistent(tensor->kind))
        return bad_tensor(graph, report, t, field,
                          "is persistent, and only planned tensors can be told where to lie; bind "
                          "it to memory of your own");
    if (tensor->size == 0)
        return bad_tensor(graph, report, t, field, "has no bytes that could lie anywhere");
    return TARN_OK;
}

static enum tarn_status check_tensor(const struct tarn_graph *graph,
                                     const struct tarn_report *report, uint32_t t)
{
    const struct tarn_graph_tensor *tensor = &graph->tensors[t];
    if ((unsigned)tensor->kind > TARN_INPUT)
        return bad_tensor(graph, report, t, "kind", "has an unknown kind");
    if (tensor->size > TARN_NUMBER_MAX)
        return bad_tensor(graph, report, t, "size", "has a size above 2^53 - 1");
    if (tensor->alignment != 0 && !tarn_is_power_of_two(tensor->alignment))
        return bad_tensor(graph, report, t, "alignment",
                          "has an alignment that is not a power of two");
    if (tensor->alignment > TARN_ALIGNMENT_MAX)
        return bad_tensor(graph, report, t, "alignment", "has an alignment above 2^30");
    if (tarn_tensor_begin(tensor) > TARN_NUMBER_MAX)
        return bad_tensor(graph, report, t, "offset", "has an offset above 2^53 - 1");
    if (tarn_tensor_begin(tensor) > 0 && tensor->root == TARN_NONE)
        return bad_tensor(graph, report, t, "offset",
                          "has an offset, which only a slice of another tensor has (alias_of)");
    enum tarn_status status = check_tensor_origin(graph, report, t);
    if (status == TARN_OK) status = check_wanted_offset(graph, report, t);
    return status || tensor->root == TARN_NONE ? status : check_alias(graph, report, t);
}

static enum tarn_status check_tensors(struct tarn_graph *graph, const struct tarn_report *report)
{
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        enum tarn_status status = check_tensor(graph, report, t);
        if (status != TARN_OK) return status;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        struct tarn_graph_tensor *tensor = &graph->tensors[t];
        if (tensor->root == TARN_NONE) tensor->root = t;
        tensor->producer = TARN_NONE;
    }
    return TARN_OK;
}

/* ---- Ops: names ---- */

static enum tarn_status bad_op(const struct tarn_graph *graph, const struct tarn_report *report,
                               uint32_t v, const char *field, const char *what)
{
    return tarn_report_bad(report, tarn_location_at(v, TARN_NONE, "/ops/%u/%s", v, field), "%s %s",
                           tarn_op_label(graph, v).text, what);
}

static enum tarn_status check_ids(const struct tarn_graph *graph, const struct tarn_report *report,
                                  uint32_t v, const char *field, const uint32_t *ids,
                                  uint32_t count)
{
    bool are_ops = ids == tarn_extra(&graph->ops[v])->control;
    uint32_t limit = are_ops ? graph->ops_count : graph->tensors_count;
    for (uint32_t k = 0; k < count; k++) {
        if (ids[k] < limit) continue;
        return tarn_report_bad(report, tarn_location_at(v, TARN_NONE, "/ops/%u/%s/%u", v, field, k),
                               "%s names %s %u in its %s, but there are %u",
                               tarn_op_label(graph, v).text, are_ops ? "op" : "tensor", ids[k],
                               field, limit);
    }
    return TARN_OK;
}

static enum tarn_status check_numbers(const struct tarn_graph *graph,
                                      const struct tarn_report *report, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    if (op->op_class > TARN_CLASS_OPTIMIZER)
        return bad_op(graph, report, v, "class", "has an unknown class");
    const struct tarn_op_extra *extra = tarn_extra(op);
    if (op->stream >= graph->streams_count)
        return tarn_report_bad(report, tarn_location_at(v, TARN_NONE, "/ops/%u/stream", v),
                               "%s is in stream %u, but there are %u streams",
                               tarn_op_label(graph, v).text, op->stream, graph->streams_count);
    if (extra->workspace > TARN_NUMBER_MAX)
        return bad_op(graph, report, v, "workspace", "has a workspace above 2^53 - 1");
    if (op->cost > TARN_NUMBER_MAX)
        return bad_op(graph, report, v, "cost", "has a cost above 2^53 - 1");
    if (extra->flops > TARN_NUMBER_MAX)
        return bad_op(graph, report, v, "flops", "has flops above 2^53 - 1");
    if (op->origin >= TARN_OPS_MAX && !(op->move && op->origin == TARN_NONE))
        return bad_op(graph, report, v, "origin", "comes from an op beyond the cap of 2^26 ops");
    return TARN_OK;
}

static enum tarn_status check_arcs(const struct tarn_graph *graph, const struct tarn_report *report,
                                   uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t k = 0; k < extra->control_count; k++) {
        if (extra->control[k] != v) continue;
        return tarn_report_bad(report, tarn_location_at(v, TARN_NONE, "/ops/%u/control/%u", v, k),
                               "%s has a control arc to itself", tarn_op_label(graph, v).text);
    }
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        uint32_t t = op->inputs[k];
        if (graph->tensors[t].producer != v) continue;
        return tarn_report_bad(report, tarn_location_at(v, t, "/ops/%u/inputs/%u", v, k),
                               "%s reads %s, which it makes itself", tarn_op_label(graph, v).text,
                               tarn_tensor_label(graph, t).text);
    }
    return TARN_OK;
}

/* ---- Ops: outputs ---- */

static enum tarn_status claim_output(struct tarn_graph *graph, const struct tarn_report *report,
                                     uint32_t v, uint32_t k)
{
    uint32_t t = tarn_outputs(&graph->ops[v])[k];
    struct tarn_graph_tensor *tensor = &graph->tensors[t];
    if (tensor->producer != TARN_NONE)
        return tarn_report_bad(
            report, tarn_location_at(v, t, "/ops/%u/outputs/%u", v, k),
            "%s makes %s, which %s makes already; a further write needs an alias",
            tarn_op_label(graph, v).text, tarn_tensor_label(graph, t).text,
            tarn_op_label(graph, tensor->producer).text);
    if (tensor->root == t && tarn_kind_is_persistent(tensor->kind))
        return tarn_report_bad(report, tarn_location_at(v, t, "/ops/%u/outputs/%u", v, k),
                               "%s makes %s of kind %s, which is there from the start; write an "
                               "alias of it",
                               tarn_op_label(graph, v).text, tarn_tensor_label(graph, t).text,
                               tarn_kind_text(tensor->kind));
    tensor->producer = v;
    return TARN_OK;
}

static enum tarn_status claim_outputs(struct tarn_graph *graph, const struct tarn_report *report,
                                      uint32_t v)
{
    for (uint32_t k = 0; k < graph->ops[v].outputs_count; k++) {
        enum tarn_status status = claim_output(graph, report, v, k);
        if (status != TARN_OK) return status;
    }
    return TARN_OK;
}

/* mark[root] == v + 1: view v has an input of that storage. */
static enum tarn_status check_view(const struct tarn_graph *graph, const struct tarn_report *report,
                                   uint32_t v, uint32_t *mark)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    if (extra->workspace > 0)
        return bad_op(graph, report, v, "workspace",
                      "is a view, which touches no memory, and must not have a workspace");
    if (extra->implementations_count > 0)
        return bad_op(graph, report, v, "implementations",
                      "is a view, which is never launched, and must not have implementations");
    if (extra->inplace_count > 0)
        return bad_op(graph, report, v, "inplace",
                      "is a view, which writes nothing, and must not write in place");
    for (uint32_t k = 0; k < op->inputs_count; k++)
        mark[graph->tensors[op->inputs[k]].root] = v + 1;
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t t = tarn_outputs(op)[k];
        if (graph->tensors[t].root != t && mark[graph->tensors[t].root] == v + 1) continue;
        return tarn_report_bad(report, tarn_location_at(v, t, "/ops/%u/outputs/%u", v, k),
                               "%s is a view, so its output %s must alias the storage of one of "
                               "its inputs",
                               tarn_op_label(graph, v).text, tarn_tensor_label(graph, t).text);
    }
    return TARN_OK;
}

/* A move has only its two tensors. */
static enum tarn_status check_move(const struct tarn_graph *graph, const struct tarn_report *report,
                                   uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    if (op->view)
        return bad_op(graph, report, v, "move",
                      "is a move, which writes memory, and must not be a view");
    if (op->inputs_count != 1 || op->outputs_count != 1)
        return bad_op(graph, report, v, "move",
                      "is a move, which has exactly one input and one output");
    if (extra->workspace > 0 || extra->inplace_count > 0 || extra->implementations_count > 0 ||
        extra->common_is_given)
        return bad_op(graph, report, v, "move",
                      "is a move, which only copies, and must not have a workspace, inplace pairs, "
                      "implementations or common inputs");
    uint32_t from = op->inputs[0], to = tarn_outputs(op)[0];
    if (graph->tensors[from].root == graph->tensors[to].root)
        return tarn_report_bad(report, tarn_location_at(v, to, "/ops/%u/outputs/0", v),
                               "%s is a move, so its output %s must have another storage than its "
                               "input",
                               tarn_op_label(graph, v).text, tarn_tensor_label(graph, to).text);
    if (graph->tensors[from].size != graph->tensors[to].size)
        return tarn_report_bad(report, tarn_location_at(v, to, "/ops/%u/outputs/0", v),
                               "%s is a move, so its output %s must have the size of its input %s",
                               tarn_op_label(graph, v).text, tarn_tensor_label(graph, to).text,
                               tarn_tensor_label(graph, from).text);
    return TARN_OK;
}

/* ---- Ops ---- */

/* Names first: the other checks look them up. */
static enum tarn_status check_names(struct tarn_graph *graph, const struct tarn_report *report)
{
    enum tarn_status status = TARN_OK;
    for (uint32_t v = 0; status == TARN_OK && v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        status = check_numbers(graph, report, v);
        if (status == TARN_OK)
            status = check_ids(graph, report, v, "inputs", op->inputs, op->inputs_count);
        if (status == TARN_OK)
            status = check_ids(graph, report, v, "outputs", tarn_outputs(op), op->outputs_count);
        if (status == TARN_OK)
            status = check_ids(graph, report, v, "control", extra->control, extra->control_count);
        if (status == TARN_OK) status = claim_outputs(graph, report, v);
    }
    return status;
}

static enum tarn_status check_ops(struct tarn_graph *graph, const struct tarn_report *report)
{
    enum tarn_status status = check_names(graph, report);
    if (status != TARN_OK) return status;
    struct tarn_region scratch = {.chunks = NULL};
    uint32_t *mark = tarn_region_take(&scratch, graph->tensors_count, sizeof *mark);
    if (!mark) return TARN_SYSTEM;
    for (uint32_t v = 0; status == TARN_OK && v < graph->ops_count; v++) {
        status = check_arcs(graph, report, v);
        if (status == TARN_OK && graph->ops[v].move) status = check_move(graph, report, v);
        if (status == TARN_OK && graph->ops[v].view) status = check_view(graph, report, v, mark);
    }
    tarn_region_finish(&scratch);
    return status;
}

static enum tarn_status check_producers(const struct tarn_graph *graph,
                                        const struct tarn_report *report)
{
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[t];
        if (tensor->producer != TARN_NONE) continue;
        if (tensor->root == t && tarn_kind_is_persistent(tensor->kind)) continue;
        return tarn_report_bad(report, tarn_location_at(TARN_NONE, t, "/tensors/%u", t),
                               "no op makes %s; %s", tarn_tensor_label(graph, t).text,
                               tensor->root == t
                                   ? "only parameters, optimizer states and inputs need no producer"
                                   : "an alias is a later write or a view of its root by some op");
    }
    return TARN_OK;
}

/* ---- Groups ---- */

static enum tarn_status bad_member(const struct tarn_graph *graph, const struct tarn_report *report,
                                   uint32_t g, uint32_t k, uint32_t t, const char *what)
{
    return tarn_report_bad(report, tarn_location_at(TARN_NONE, t, "/contiguous/%u/%u", g, k),
                           "%s %s", tarn_tensor_label(graph, t).text, what);
}

static enum tarn_status check_member(const struct tarn_graph *graph,
                                     const struct tarn_report *report,
                                     const struct tarn_group *groups, uint32_t g, uint32_t k)
{
    uint32_t first = groups[g].tensors[0], t = groups[g].tensors[k];
    if (t >= graph->tensors_count)
        return tarn_report_bad(report, tarn_location_at(TARN_NONE, t, "/contiguous/%u/%u", g, k),
                               "contiguous group %u names tensor %u, but there are %u", g, t,
                               graph->tensors_count);
    const struct tarn_graph_tensor *tensor = &graph->tensors[t];
    if (tensor->root != t)
        return bad_member(graph, report, g, k, t,
                          "is an alias; a contiguous group lists the tensors that own storages");
    if (tarn_kind_is_persistent(tensor->kind) !=
        tarn_kind_is_persistent(graph->tensors[first].kind))
        return bad_member(graph, report, g, k, t,
                          "cannot share a contiguous group with the tensors before it: all members "
                          "are planned, or all persistent");
    if (tensor->space != graph->tensors[first].space)
        return bad_member(graph, report, g, k, t,
                          "is in another memory space than the tensors before it");
    if ((groups[g].offsets ? groups[g].offsets[k] > 0 : k > 0) && tensor->alignment != 0)
        return bad_member(graph, report, g, k, t,
                          "has an alignment of its own, which only the first member of a "
                          "contiguous group may have");
    return TARN_OK;
}

/* One member is where the group begins, so that it begins at a multiple of the plan's alignment. */
static enum tarn_status check_offsets(const struct tarn_graph *graph,
                                      const struct tarn_report *report,
                                      const struct tarn_group *group, uint32_t g)
{
    bool is_begun = false, has_bytes = false;
    for (uint32_t k = 0; k < group->tensors_count; k++) {
        if (group->offsets[k] > TARN_NUMBER_MAX)
            return tarn_report_bad(
                report,
                tarn_location_at(TARN_NONE, group->tensors[k], "/contiguous/%u/offsets/%u", g, k),
                "an offset of contiguous group %u is above 2^53-1", g);
        if (graph->tensors[group->tensors[k]].size == 0) continue;
        has_bytes = true;
        is_begun = is_begun || group->offsets[k] == 0;
    }
    if (is_begun || !has_bytes) return TARN_OK;
    return tarn_report_bad(
        report, tarn_location_at(TARN_NONE, group->tensors[0], "/contiguous/%u/offsets", g),
        "no member of contiguous group %u has bytes at offset 0, where the group begins", g);
}

/* group_of[root]: 1 + the last group that has the root. */
static enum tarn_status check_group(const struct tarn_graph *graph,
                                    const struct tarn_report *report,
                                    const struct tarn_group *groups, uint32_t g, uint32_t *group_of)
{
    if (groups[g].tensors_count == 0)
        return tarn_report_bad(report, tarn_location_at(TARN_NONE, TARN_NONE, "/contiguous/%u", g),
                               "contiguous group %u has no members", g);
    for (uint32_t k = 0; k < groups[g].tensors_count; k++) {
        enum tarn_status status = check_member(graph, report, groups, g, k);
        if (status != TARN_OK) return status;
        uint32_t *group = &group_of[groups[g].tensors[k]];
        if (*group == g + 1)
            return bad_member(graph, report, g, k, groups[g].tensors[k],
                              "is in this contiguous group twice");
        *group = g + 1;
    }
    return groups[g].offsets ? check_offsets(graph, report, &groups[g], g) : TARN_OK;
}

static enum tarn_status check_groups(const struct tarn_graph *graph,
                                     const struct tarn_report *report,
                                     const struct tarn_group *groups)
{
    struct tarn_region scratch = {.chunks = NULL};
    uint32_t *group_of = tarn_region_take(&scratch, graph->tensors_count, sizeof *group_of);
    enum tarn_status status = group_of ? TARN_OK : TARN_SYSTEM;
    for (uint32_t g = 0; status == TARN_OK && g < graph->groups_count; g++)
        status = check_group(graph, report, groups, g, group_of);
    tarn_region_finish(&scratch);
    return status;
}

/* ---- Sums ---- */

/* What a group spans by its own offsets, so that no sum of them overflows. */
static uint64_t span_of(const struct tarn_group *group)
{
    uint64_t span = 0;
    for (uint32_t k = 0; group->offsets && k < group->tensors_count; k++)
        if (group->offsets[k] > span) span = group->offsets[k];
    return span;
}

static enum tarn_status check_sums(const struct tarn_graph *graph, const struct tarn_report *report,
                                   const struct tarn_group *groups)
{
    uint64_t bytes = 0, cost = 0; /* each summand is below 2^53 and there are at most 2^27 */
    struct tarn_location whole = tarn_location_at(TARN_NONE, TARN_NONE, "%s", "");
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        uint64_t size = graph->tensors[t].root == t ? graph->tensors[t].size : 0;
        if (!tarn_size_add(bytes, size, &bytes) || bytes > TARN_SUM_MAX)
            return tarn_report_bad(report, whole, "the sizes of all tensors add up to over 2^62");
    }
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (!tarn_size_add(bytes, span_of(&groups[g]), &bytes) || bytes > TARN_SUM_MAX)
            return tarn_report_bad(report, whole,
                                   "the sizes of all tensors and the offsets in contiguous groups "
                                   "add up to over 2^62");
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (!tarn_size_add(bytes, tarn_extra(&graph->ops[v])->workspace, &bytes) ||
            bytes > TARN_SUM_MAX)
            return tarn_report_bad(report, whole,
                                   "the sizes of all tensors and workspaces add up to over 2^62");
        if (!tarn_size_add(cost, graph->ops[v].cost, &cost) || cost > TARN_SUM_MAX)
            return tarn_report_bad(report, whole, "the costs of all ops add up to over 2^62");
    }
    return TARN_OK;
}

enum tarn_status tarn_validate_records(struct tarn_graph *graph, const struct tarn_group *groups,
                                       const struct tarn_report *report)
{
    enum tarn_status status = check_tensors(graph, report);
    if (status == TARN_OK) status = check_ops(graph, report);
    if (status == TARN_OK) status = tarn_validate_choices(graph, report);
    if (status == TARN_OK) status = check_producers(graph, report);
    if (status == TARN_OK) status = tarn_validate_branches(graph, report);
    if (status == TARN_OK) status = tarn_validate_spaces(graph, report);
    if (status == TARN_OK) status = check_groups(graph, report, groups);
    if (status == TARN_OK) status = check_sums(graph, report, groups);
    return status;
}
