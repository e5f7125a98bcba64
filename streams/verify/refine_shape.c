/* Refinement, first part: what runs there are. An output that is the origin's own tensor is made by
 * a primary run, an output that names the origin's tensor is a copy. As every tensor has one
 * producer, what is left to see is whether each of the source graph's is made at all.
 * Cost: linear in inputs and outputs. */
#include "refine.h"
#include "streams/graph/recomputable_kinds.h"
#include "streams/graph/report.h"

static bool add_shape(struct tarn_comparison *comparison, uint32_t v, const char *what)
{
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
    violation.op = v;
    tarn_verdict_add(comparison->verdict, violation, TARN_NO_SUSPECTS, "%s %s",
                     tarn_op_label(comparison->final, v).text, what);
    return false;
}

static void add_missing(struct tarn_comparison *comparison, uint32_t origin, uint32_t tensor,
                        const char *what)
{
    struct tarn_violation violation = tarn_violation_of(TARN_MISSING);
    violation.op = origin;
    violation.tensor = tensor;
    tarn_verdict_add(comparison->verdict, violation, TARN_NO_SUSPECTS,
                     "%s of the source graph %s%s", tarn_op_label(comparison->source, origin).text,
                     what,
                     tensor == TARN_NONE ? "" : tarn_tensor_label(comparison->source, tensor).text);
}

/* ---- A run and its origin ---- */

static bool is_alike(const struct tarn_comparison *comparison, uint32_t final, uint32_t source)
{
    const struct tarn_graph_tensor *a = &comparison->final->tensors[final];
    const struct tarn_graph_tensor *b = &comparison->source->tensors[source];
    return a->size == b->size && a->space == b->space &&
           tarn_kind_is_persistent(a->kind) == tarn_kind_is_persistent(b->kind);
}

static bool has_inputs(const struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *op = &comparison->final->ops[v];
    struct tarn_list inputs = tarn_refine_inputs(comparison, v);
    if (op->inputs_count != inputs.count) return false;
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        if (!is_alike(comparison, op->inputs[k], inputs.ids[k])) return false;
    }
    return true;
}

static bool has_outputs(const struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *op = &comparison->final->ops[v];
    struct tarn_list outputs = tarn_refine_outputs(comparison, v);
    if (op->outputs_count != outputs.count) return false;
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t made = tarn_outputs(op)[k], wanted = outputs.ids[k];
        if (tarn_plan_tensor_origin(comparison->plan, made) != wanted ||
            !is_alike(comparison, made, wanted))
            return false;
        bool is_pinned = comparison->final->tensors[made].kind == TARN_OUTPUT;
        if (made == wanted && !is_pinned && comparison->source->tensors[wanted].kind == TARN_OUTPUT)
            return false;
    }
    return true;
}

/* Else checked execution would not prove that all runs make the same. */
static bool has_common(const struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_op_extra *extra = tarn_extra(&comparison->final->ops[v]);
    const struct tarn_op_extra *origin = tarn_extra(tarn_refine_origin(comparison, v));
    if (!extra->common != !origin->common || extra->common_count != origin->common_count)
        return false;
    for (uint32_t k = 0; k < extra->common_count; k++) {
        if (extra->common[k] != origin->common[k]) return false;
    }
    return true;
}

static bool has_workspace(const struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *op = &comparison->final->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    const struct tarn_graph_op *origin = tarn_refine_origin(comparison, v);
    const struct tarn_implementation *chosen = tarn_refine_implementation(comparison, v);
    if (extra->workspace > 0 && extra->workspace_space != tarn_extra(origin)->workspace_space)
        return false;
    return extra->workspace == (chosen ? chosen->workspace : tarn_extra(origin)->workspace) &&
           op->workspace_first == (chosen ? chosen->workspace_first : origin->workspace_first);
}

static bool check_run(struct tarn_comparison *comparison, uint32_t v)
{
    uint32_t origin = tarn_plan_op_origin(comparison->plan, v);
    uint32_t implementation = tarn_plan_op_implementation(comparison->plan, v);
    if (origin >= comparison->source->ops_count || comparison->source->ops[origin].view)
        return add_shape(comparison, v, "names no launched op of the source graph as its origin");
    if (implementation != TARN_NONE &&
        implementation >= tarn_extra(&comparison->source->ops[origin])->implementations_count)
        return add_shape(comparison, v, "names an implementation that its origin has not");
    if (!has_inputs(comparison, v) || !has_outputs(comparison, v))
        return add_shape(comparison, v, "has not the inputs and outputs of its origin");
    if (!has_common(comparison, v))
        add_shape(comparison, v, "has not the common inputs of its origin");
    if (!has_workspace(comparison, v))
        add_shape(comparison, v, "has not the workspace of its origin");
    return true;
}

/* ---- All runs ---- */

static void check_runs(struct tarn_comparison *comparison)
{
    for (uint32_t v = 0; v < comparison->source->ops_count; v++)
        comparison->first_primary[v] = TARN_NONE;
    for (uint32_t v = 0; v < comparison->final->ops_count; v++) {
        comparison->next_primary[v] = TARN_NONE;
        if (comparison->final->ops[v].view || !check_run(comparison, v)) continue;
        uint32_t origin = tarn_plan_op_origin(comparison->plan, v);
        uint32_t *first = &comparison->first_primary[origin];
        bool again = *first != TARN_NONE && comparison->final->ops[v].outputs_count == 0;
        if (tarn_refine_is_primary(comparison, v) && !again) {
            comparison->next_primary[v] = *first;
            *first = v;
        } else if (!tarn_op_repeats(comparison->source, origin,
                                    tarn_plan_op_implementation(comparison->plan, v))) {
            add_missing(comparison, origin, TARN_NONE,
                        "runs more than once, but is not recomputable");
        }
    }
}

/* Transforms keep the tensors of the source graph under their ids. */
static bool is_made(const struct tarn_comparison *comparison, uint32_t origin, uint32_t t)
{
    uint32_t producer = comparison->final->tensors[t].producer;
    return producer != TARN_NONE && !comparison->final->ops[producer].view &&
           tarn_plan_op_origin(comparison->plan, producer) == origin;
}

static void check_made(struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *op = &comparison->source->ops[v];
    if (comparison->first_primary[v] == TARN_NONE) {
        add_missing(comparison, v, TARN_NONE, "is absent from the plan's graph");
        return;
    }
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        if (!is_made(comparison, v, tarn_outputs(op)[k]))
            add_missing(comparison, v, tarn_outputs(op)[k], "runs in parts, of which none makes ");
    }
}

/* ---- Spaces ---- */

static void check_spaces(struct tarn_comparison *comparison)
{
    const struct tarn_graph *source = comparison->source, *final = comparison->final;
    bool equal = source->spaces_count == final->spaces_count;
    for (uint32_t s = 0; s < source->spaces_count && equal; s++)
        equal = source->spaces[s].kind == final->spaces[s].kind &&
                source->spaces[s].alignment == final->spaces[s].alignment &&
                source->spaces[s].capacity == final->spaces[s].capacity;
    if (equal) return;
    tarn_verdict_add(comparison->verdict, tarn_violation_of(TARN_WRONG_GRAPH), TARN_NO_SUSPECTS,
                     "the plan's graph has not the memory spaces of the source graph");
}

/* ---- Groups ---- */

/* The group of the final graph that has the same roots in the same order, or NULL. */
static const struct tarn_group *find_group(const struct tarn_comparison *comparison,
                                           const struct tarn_group *group)
{
    const struct tarn_graph *final = comparison->final;
    uint32_t first = group->tensors[0], g = final->storages[final->tensors[first].storage].group;
    if (g == TARN_NONE || final->groups[g].storages_count != group->storages_count) return NULL;
    for (uint32_t i = 0; i < group->storages_count; i++)
        if (final->groups[g].tensors[i] != group->tensors[i]) return NULL;
    return &final->groups[g];
}

static void check_group(struct tarn_comparison *comparison, const struct tarn_group *group)
{
    enum tarn_group_padding padding = comparison->plan->pad_groups;
    bool padded = padding == TARN_GROUPS_AS_GIVEN ? group->padded : padding == TARN_GROUPS_PADDED;
    const struct tarn_group *found = find_group(comparison, group);
    if (found && found->padded == padded) return;
    struct tarn_violation violation = tarn_violation_of(TARN_GROUP_BROKEN);
    violation.tensor = group->tensors[0];
    tarn_verdict_add(comparison->verdict, violation, TARN_NO_SUSPECTS,
                     "the contiguous group of the source graph that begins with %s %s",
                     tarn_tensor_label(comparison->source, violation.tensor).text,
                     !found          ? "is not in the plan's graph"
                     : found->padded ? "is padded in the plan's graph, which nobody asked for"
                                     : "is not padded in the plan's graph");
}

bool tarn_refine_shape(struct tarn_comparison *comparison)
{
    size_t before = comparison->verdict->count;
    if (comparison->final->tensors_count < comparison->source->tensors_count) {
        tarn_verdict_add(comparison->verdict, tarn_violation_of(TARN_WRONG_GRAPH), TARN_NO_SUSPECTS,
                         "the plan's graph has %u tensors, the source graph %u",
                         comparison->final->tensors_count, comparison->source->tensors_count);
        return false;
    }
    check_runs(comparison);
    for (uint32_t v = 0; v < comparison->source->ops_count; v++) {
        if (!comparison->source->ops[v].view) check_made(comparison, v);
    }
    check_spaces(comparison);
    for (uint32_t g = 0; g < comparison->source->groups_count; g++)
        check_group(comparison, &comparison->source->groups[g]);
    return comparison->verdict->count == before && !comparison->verdict->no_memory;
}
