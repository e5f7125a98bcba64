/* Refinement, first part: checks runs and views. An output that is the origin's own tensor is made
 * by a primary run; an output that names the origin's tensor is a copy. As every tensor has one
 * producer, it remains to check that each tensor of the source graph is made at all. Cost: linear
 * in inputs and outputs. */
#include "refine.h"
#include "streams/graph/recomputable_kinds.h"
#include "streams/graph/report.h"

static bool add_shape(struct tarn_comparison *comparison, uint32_t v, const char *what)
{
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
    violation.op = v;
    tarn_refine_add(comparison, violation, "%s %s", tarn_op_label(comparison->final, v).text, what);
    return false;
}

static void add_missing(struct tarn_comparison *comparison, uint32_t origin, uint32_t tensor,
                        const char *what)
{
    struct tarn_violation violation = tarn_violation_of(TARN_MISSING);
    violation.op = origin;
    violation.tensor = tensor;
    tarn_refine_add(comparison, violation, "%s of the source graph %s%s",
                    tarn_op_label(comparison->source, origin).text, what,
                    tensor == TARN_NONE ? "" : tarn_tensor_label(comparison->source, tensor).text);
}

/* ---- A run and its origin ---- */

static bool has_outputs(const struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *op = &comparison->final->ops[v];
    struct tarn_list outputs = tarn_refine_outputs(comparison, v);
    uint32_t own = 0, copies = 0;
    if (op->outputs_count != outputs.count) return false;
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t made = tarn_outputs(op)[k], wanted = outputs.ids[k];
        if (tarn_plan_tensor_origin(comparison->plan, made) != wanted) return false;
        bool is_pinned = comparison->final->tensors[made].kind == TARN_OUTPUT;
        if (made == wanted && !is_pinned && comparison->source->tensors[wanted].kind == TARN_OUTPUT)
            return false;
        own += made == wanted;
        copies += made >= comparison->source->tensors_count;
    }
    return own == op->outputs_count || copies == op->outputs_count;
}

static bool is_whole(const struct tarn_graph *graph, uint32_t tensor)
{
    const struct tarn_graph_tensor *record = &graph->tensors[tensor];
    return record->parts_count == 1 &&
           tarn_part(graph, record->part).size == graph->storages[record->storage].size;
}

/* A move added by a transform makes a tensor that holds another tensor's content again. */
static bool check_move(struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *op = &comparison->final->ops[v];
    uint32_t made = tarn_outputs(op)[0];
    bool is_plain = op->recomputable == TARN_RECOMPUTABLE_BY_RULE &&
                    (op->op_class == TARN_CLASS_UNKNOWN || op->op_class == TARN_CLASS_COPY);
    if (!is_plain)
        return add_shape(comparison, v,
                         "is a move, but its class or its recomputation is another op's");
    if (tarn_extra(op)->branch_count > 0)
        return add_shape(comparison, v, "is a move, but in an arm of a conditional");
    if (!is_whole(comparison->final, op->inputs[0]) || !is_whole(comparison->final, made))
        return add_shape(comparison, v,
                         "moves a part of a storage, or a storage that consists of parts");
    if (made < comparison->source->tensors_count ||
        comparison->final->tensors[made].kind == TARN_OUTPUT)
        return add_shape(comparison, v, "is no op of the source graph, but makes a tensor of it");
    return true;
}

/* refine_versions.c checks the content of inputs. */
static bool check_run(struct tarn_comparison *comparison, uint32_t v)
{
    uint32_t origin = tarn_plan_op_origin(comparison->plan, v);
    uint32_t implementation = tarn_plan_op_implementation(comparison->plan, v);
    if (tarn_refine_is_move(comparison, v)) return check_move(comparison, v);
    if (origin >= comparison->source->ops_count || comparison->source->ops[origin].view)
        return add_shape(comparison, v, "names no launched op of the source graph as its origin");
    if (implementation != TARN_NONE &&
        implementation >= tarn_extra(&comparison->source->ops[origin])->implementations_count)
        return add_shape(comparison, v, "names an implementation that its origin has not");
    if (comparison->final->ops[v].inputs_count != tarn_refine_inputs(comparison, v).count ||
        !has_outputs(comparison, v))
        return add_shape(comparison, v, "has not the inputs and outputs of its origin");
    tarn_refine_op_record(comparison, v);
    return true;
}

/* ---- A view and its origin ---- */

/* A view touches no memory: its outputs are the same as in the source graph, and its inputs name
 * the same storages, as in the source graph or by any tensor through which they are written. */
static bool may_view(const struct tarn_comparison *comparison, uint32_t t, uint32_t wanted)
{
    const struct tarn_graph *source = comparison->source;
    if (t == wanted) return true;
    if (t >= source->tensors_count || source->tensors[t].storage != source->tensors[wanted].storage)
        return false;
    uint32_t producer = source->tensors[t].producer;
    return producer != TARN_NONE && !source->ops[producer].view;
}

static bool has_view_tensors(const struct tarn_comparison *comparison, uint32_t v, uint32_t origin)
{
    const struct tarn_graph *source = comparison->source;
    const struct tarn_graph_op *op = &comparison->final->ops[v], *old = &source->ops[origin];
    if (op->inputs_count != old->inputs_count || op->outputs_count != old->outputs_count)
        return false;
    for (uint32_t k = 0; k < op->inputs_count; k++)
        if (!may_view(comparison, op->inputs[k], old->inputs[k])) return false;
    for (uint32_t k = 0; k < op->outputs_count; k++)
        if (tarn_outputs(op)[k] != tarn_outputs(old)[k]) return false;
    return true;
}

static bool check_view(struct tarn_comparison *comparison, uint32_t v)
{
    uint32_t origin = tarn_plan_op_origin(comparison->plan, v);
    if (origin >= comparison->source->ops_count || !comparison->source->ops[origin].view)
        return add_shape(comparison, v, "names no view of the source graph as its origin");
    if (tarn_plan_op_implementation(comparison->plan, v) != TARN_NONE)
        return add_shape(comparison, v, "is a view, but names an implementation");
    if (comparison->first_primary[origin] != TARN_NONE)
        return add_shape(comparison, v, "is a view that is there already");
    if (!has_view_tensors(comparison, v, origin))
        return add_shape(comparison, v, "has not the inputs and outputs of its origin");
    tarn_refine_op_record(comparison, v);
    comparison->first_primary[origin] = v;
    return true;
}

/* ---- All runs ---- */

static void check_runs(struct tarn_comparison *comparison)
{
    for (uint32_t v = 0; v < comparison->source->ops_count; v++)
        comparison->first_primary[v] = TARN_NONE;
    for (uint32_t v = 0; v < comparison->final->ops_count; v++) {
        comparison->next_primary[v] = TARN_NONE;
        if (comparison->final->ops[v].view) {
            check_view(comparison, v);
            continue;
        }
        if (!check_run(comparison, v) || tarn_refine_is_move(comparison, v)) continue;
        uint32_t origin = tarn_plan_op_origin(comparison->plan, v);
        uint32_t *first = &comparison->first_primary[origin];
        bool repeats = *first != TARN_NONE && comparison->final->ops[v].outputs_count == 0;
        if (tarn_refine_is_primary(comparison, v) && !repeats) {
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
    for (uint32_t k = 0; k < op->outputs_count && !op->view; k++) {
        if (!is_made(comparison, v, tarn_outputs(op)[k]))
            add_missing(comparison, v, tarn_outputs(op)[k], "runs in parts, of which none makes ");
    }
}

bool tarn_refine_shape(struct tarn_comparison *comparison)
{
    if (comparison->final->tensors_count < comparison->source->tensors_count) {
        tarn_refine_add(comparison, tarn_violation_of(TARN_WRONG_GRAPH),
                        "the plan's graph has %u tensors, the source graph %u",
                        comparison->final->tensors_count, comparison->source->tensors_count);
        return false;
    }
    bool has_memory = tarn_refine_records(comparison);
    check_runs(comparison);
    for (uint32_t v = 0; v < comparison->source->ops_count; v++) check_made(comparison, v);
    if (!has_memory) comparison->verdict->no_memory = true;
    return !comparison->is_other && !comparison->verdict->no_memory;
}
