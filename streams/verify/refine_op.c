/* Refinement, the record of one op: every field of it is that of its origin, or follows from the
 * implementation that was chosen. A field of ops that is new gets a row in the table below. What
 * lists of tensors and of control arcs say is for refine_versions.c and refine_control.c to see.
 * Cost: linear in the record. */
#include <string.h>

#include "refine.h"
#include "streams/graph/report.h"

struct run {
    const struct tarn_comparison *comparison;
    uint32_t v;
    const struct tarn_graph_op *op, *origin;
    const struct tarn_op_extra *extra, *of_origin;
    const struct tarn_implementation *chosen; /* NULL: as written */
    bool is_copy;                             /* it makes again what another op makes */
};

static bool is_same_list(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof *a) == 0);
}

static bool has_name(const struct run *run)
{
    return strcmp(run->op->name, run->origin->name) == 0;
}

static bool has_kind(const struct run *run)
{
    return run->op->kind == run->origin->kind || strcmp(run->op->kind, run->origin->kind) == 0;
}

static bool has_class(const struct run *run) { return run->op->op_class == run->origin->op_class; }

/* Where ops are assigned to streams, all of them may move; a copy runs where it is needed. */
static bool has_stream(const struct run *run)
{
    return run->comparison->may_assign || run->is_copy || run->op->stream == run->origin->stream;
}

static bool has_cost(const struct run *run)
{
    return run->op->cost == (run->chosen ? run->chosen->cost : run->origin->cost);
}

static bool has_flops(const struct run *run) { return run->extra->flops == run->of_origin->flops; }

static bool has_workspace(const struct run *run)
{
    return run->extra->workspace ==
           (run->chosen ? run->chosen->workspace : run->of_origin->workspace);
}

static bool has_workspace_first(const struct run *run)
{
    return run->op->workspace_first ==
           (run->chosen ? run->chosen->workspace_first : run->origin->workspace_first);
}

/* Files leave it out where there is no workspace. */
static bool has_workspace_space(const struct run *run)
{
    return run->extra->workspace_space == run->of_origin->workspace_space ||
           (run->extra->workspace == 0 && run->extra->workspace_space == 0);
}

/* Recomputing leaves the pairs out, which name tensors that a copy has not. */
static bool has_inplace(const struct run *run)
{
    return run->extra->inplace_count == 0 ||
           is_same_list((const uint32_t *)run->extra->inplace,
                        2 * (size_t)run->extra->inplace_count,
                        (const uint32_t *)run->of_origin->inplace,
                        2 * (size_t)run->of_origin->inplace_count);
}

static bool has_recomputable(const struct run *run)
{
    return run->op->recomputable == run->origin->recomputable;
}

static bool is_same_implementation(const struct tarn_implementation *a,
                                   const struct tarn_implementation *b)
{
    return strcmp(a->name, b->name) == 0 && a->cost == b->cost && a->workspace == b->workspace &&
           a->workspace_first == b->workspace_first &&
           is_same_list(a->inputs.ids, a->inputs.count, b->inputs.ids, b->inputs.count) &&
           is_same_list(a->outputs.ids, a->outputs.count, b->outputs.ids, b->outputs.count);
}

/* Where one was chosen, or the op is a copy, there is nothing left to choose. */
static bool has_implementations(const struct run *run)
{
    uint32_t count = run->extra->implementations_count;
    if (run->chosen || run->is_copy) return count == 0;
    if (count != run->of_origin->implementations_count) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_same_implementation(&run->extra->implementations[i],
                                    &run->of_origin->implementations[i]))
            return false;
    }
    return true;
}

/* Else checked execution would not prove that all runs make the same. */
static bool has_common(const struct run *run)
{
    return !run->extra->common == !run->of_origin->common &&
           is_same_list(run->extra->common, run->extra->common_count, run->of_origin->common,
                        run->of_origin->common_count);
}

static const struct {
    const char *what, *field; /* the field where its name says more */
    bool (*holds)(const struct run *run);
} fields[] = {
    {"name", "", has_name},
    {"kind", "", has_kind},
    {"class", "", has_class},
    {"stream", "", has_stream},
    {"cost", "", has_cost},
    {"flops", "", has_flops},
    {"workspace", "", has_workspace},
    {"workspace", " (workspace_first)", has_workspace_first},
    {"workspace", " (workspace_space)", has_workspace_space},
    {"inplace pairs", "", has_inplace},
    {"recomputable", "", has_recomputable},
    {"implementations", "", has_implementations},
    {"common inputs", "", has_common},
};

void tarn_refine_op_record(struct tarn_comparison *comparison, uint32_t v)
{
    if (comparison->final == comparison->source) return;
    struct run run = {.comparison = comparison,
                      .v = v,
                      .op = &comparison->final->ops[v],
                      .origin = tarn_refine_origin(comparison, v),
                      .chosen = tarn_refine_implementation(comparison, v),
                      .is_copy = !comparison->final->ops[v].view &&
                                 !tarn_refine_is_primary(comparison, v)};
    run.extra = tarn_extra(run.op);
    run.of_origin = tarn_extra(run.origin);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].holds(&run)) continue;
        struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
        violation.op = v;
        tarn_refine_add(
            comparison, violation, "%s has not the %s of its origin%s: %s of the source graph%s",
            tarn_op_label(comparison->final, v).text, fields[i].what, fields[i].field,
            tarn_op_label(comparison->source, tarn_plan_op_origin(comparison->plan, v)).text,
            run.chosen ? ", by the implementation that it names" : "");
    }
}
