/* Refinement, third part: checks control arcs of the source graph, between launched ops directly or
 * through views. In every legal order of the program all primary runs of the earlier op must come
 * before all primary runs of the later op; copies are not restricted.
 *
 * The final graph has all of these arcs, between the ops that replace their ends. It may have more
 * arcs, which the program keeps as well.
 * Cost: clocks along one legal order, and a walk through views, see control.h; for the arcs, linear
 * in the arcs of the final graph. */
#include "control.h"
#include "past.h"
#include "refine.h"
#include "streams/graph/report.h"

struct control_check {
    struct tarn_comparison *comparison;
    struct tarn_past past;
    struct tarn_control source, final; /* of either graph */
};

/* ---- Order of the program ---- */

/* Checks that the run of the present step comes after op e of the final graph. */
static void check_order(const struct control_check *check, uint32_t e, const char *whose)
{
    const struct tarn_comparison *comparison = check->comparison;
    uint32_t v = check->past.step->op;
    if (tarn_past_has(&check->past, comparison->final->ops[e].stream,
                      comparison->program->step_of[e]))
        return;
    struct tarn_violation violation = tarn_violation_of(TARN_HAZARD_LOST);
    violation.op = v;
    violation.other_op = e;
    tarn_verdict_add(comparison->verdict, violation, TARN_NO_SUSPECTS,
                     "%s may start before %s has finished, which a control arc of the %s graph "
                     "forbids",
                     tarn_op_label(comparison->final, v).text,
                     tarn_op_label(comparison->final, e).text, whose);
}

/* Checks that the run comes after all primary runs of op u of the source graph. */
static void check_demand(void *context, uint32_t u)
{
    const struct control_check *check = context;
    const struct tarn_comparison *comparison = check->comparison;
    for (uint32_t e = comparison->first_primary[u]; e != TARN_NONE; e = comparison->next_primary[e])
        check_order(check, e, "source");
}

static void check_own_demand(void *context, uint32_t e) { check_order(context, e, "plan's"); }

static enum tarn_status check_runs(struct control_check *check)
{
    const struct tarn_comparison *comparison = check->comparison;
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < comparison->program->steps_count && status == TARN_OK; i++) {
        tarn_past_enter(&check->past, comparison->program->order[i]);
        const struct tarn_program_step *step = check->past.step;
        if (check->source.graph && tarn_refine_is_primary(comparison, step->op))
            tarn_control_visit(&check->source, tarn_plan_op_origin(comparison->plan, step->op),
                               step->stream, check_demand, check);
        if (check->final.graph)
            tarn_control_visit(&check->final, step->op, step->stream, check_own_demand, check);
        status = tarn_past_leave(&check->past);
    }
    return status;
}

/* ---- Arcs of the records ---- */

/* stamp: op of the final graph -> 1 + the last op whose control list has it. */
static void check_arcs(struct tarn_comparison *comparison, uint32_t v, uint32_t *stamp)
{
    const struct tarn_op_extra *extra = tarn_extra(&comparison->final->ops[v]);
    const struct tarn_op_extra *wanted = tarn_extra(tarn_refine_origin(comparison, v));
    for (uint32_t k = 0; k < extra->control_count; k++) stamp[extra->control[k]] = v + 1;
    for (uint32_t k = 0; k < wanted->control_count; k++) {
        for (uint32_t e = comparison->first_primary[wanted->control[k]]; e != TARN_NONE;
             e = comparison->next_primary[e]) {
            if (stamp[e] == v + 1) continue;
            struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
            violation.op = v;
            violation.other_op = e;
            tarn_verdict_add(comparison->verdict, violation, TARN_NO_SUSPECTS,
                             "%s has no control arc from %s in the plan's graph, which the source "
                             "graph has",
                             tarn_op_label(comparison->final, v).text,
                             tarn_op_label(comparison->final, e).text);
        }
    }
}

static enum tarn_status check_records(struct tarn_comparison *comparison)
{
    const struct tarn_graph *final = comparison->final;
    uint32_t *stamp = tarn_region_take(comparison->region, final->ops_count, sizeof *stamp);
    if (!stamp) return TARN_SYSTEM;
    for (uint32_t v = 0; v < final->ops_count; v++)
        if (final->ops[v].view || tarn_refine_is_primary(comparison, v))
            check_arcs(comparison, v, stamp);
    return TARN_OK;
}

/* ---- Both ---- */

static bool has_control(const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++)
        if (tarn_extra(&graph->ops[v])->control_count > 0) return true;
    return false;
}

static enum tarn_status check_all(struct tarn_comparison *comparison, bool source, bool final)
{
    struct control_check check = {.comparison = comparison};
    struct tarn_region *region = comparison->region;
    uint32_t streams_count = comparison->program->streams_count;
    enum tarn_status status = TARN_OK;
    if (source)
        status = tarn_control_init(&check.source, region, comparison->source, streams_count);
    if (final && status == TARN_OK)
        status = tarn_control_init(&check.final, region, comparison->final, streams_count);
    if (status == TARN_OK) status = tarn_past_init(&check.past, region, comparison->program);
    if (status == TARN_OK) status = check_runs(&check);
    return status;
}

enum tarn_status tarn_refine_control(struct tarn_comparison *comparison)
{
    bool is_changed = comparison->final != comparison->source;
    bool source = has_control(comparison->source);
    bool final = is_changed && has_control(comparison->final);
    if (!source && !final) return TARN_OK; /* most graphs: no clocks are needed */
    struct tarn_region_mark mark = tarn_region_mark(comparison->region);
    enum tarn_status status = is_changed ? check_records(comparison) : TARN_OK;
    if (status == TARN_OK) status = check_all(comparison, source, final);
    tarn_region_release(comparison->region, mark);
    return status;
}
