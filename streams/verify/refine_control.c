/* Refinement, third part: control arcs of the source graph, which may stand for what no tensor
 * shows, between launched ops or with views between them. In every legal order of the program all
 * primary runs of the earlier op must come before all of the later one; copies are free.
 * Cost: clocks along one legal order, and a walk through views, see control.h. */
#include "control.h"
#include "past.h"
#include "refine.h"
#include "streams/graph/report.h"

struct control_check {
    struct tarn_comparison *comparison;
    struct tarn_past past;
    struct tarn_control control; /* of the source graph */
};

/* Checks that the run of the present step comes after all primary runs of op u of the source graph.
 */
static void check_demand(void *context, uint32_t u)
{
    const struct control_check *check = context;
    const struct tarn_comparison *comparison = check->comparison;
    uint32_t v = check->past.step->op;
    for (uint32_t e = comparison->first_primary[u]; e != TARN_NONE;
         e = comparison->next_primary[e]) {
        if (tarn_past_has(&check->past, comparison->final->ops[e].stream,
                          comparison->program->step_of[e]))
            continue;
        struct tarn_violation violation = tarn_violation_of(TARN_HAZARD_LOST);
        violation.op = v;
        violation.other_op = e;
        tarn_verdict_add(comparison->verdict, violation, TARN_NO_SUSPECTS,
                         "%s may start before %s has finished, which a control arc of the source "
                         "graph forbids",
                         tarn_op_label(comparison->final, v).text,
                         tarn_op_label(comparison->final, e).text);
    }
}

static enum tarn_status check_runs(struct control_check *check)
{
    const struct tarn_comparison *comparison = check->comparison;
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < comparison->program->steps_count && !status; i++) {
        tarn_past_enter(&check->past, comparison->program->order[i]);
        const struct tarn_program_step *step = check->past.step;
        if (tarn_refine_is_primary(comparison, step->op))
            tarn_control_visit(&check->control, tarn_plan_op_origin(comparison->plan, step->op),
                               step->stream, check_demand, check);
        status = tarn_past_leave(&check->past);
    }
    return status;
}

static bool has_control(const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++)
        if (tarn_extra(&graph->ops[v])->control_count > 0) return true;
    return false;
}

enum tarn_status tarn_refine_control(struct tarn_comparison *comparison)
{
    struct control_check check = {.comparison = comparison};
    if (!has_control(comparison->source)) return TARN_OK; /* most graphs: no clocks are needed */
    struct tarn_region_mark mark = tarn_region_mark(comparison->region);
    enum tarn_status status = tarn_control_init(
        &check.control, comparison->region, comparison->source, comparison->program->streams_count);
    if (status == TARN_OK)
        status = tarn_past_init(&check.past, comparison->region, comparison->program);
    if (status == TARN_OK) status = check_runs(&check);
    tarn_region_release(comparison->region, mark);
    return status;
}
