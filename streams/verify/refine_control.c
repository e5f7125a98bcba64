/* Refinement, third part: control arcs of the source graph, which may stand for what no tensor
 * shows, between launched ops or with views between them. In every legal order of the program all
 * primary runs of the earlier op must come before all of the later one; copies are free.
 * Cost: clocks along one legal order, and a walk through views, see control.h. */
#include "control.h"
#include "past.h"
#include "refine.h"
#include "streams/graph/report.h"

struct control_check {
    struct tarn_comparison *all;
    struct tarn_past past;
    struct tarn_control control; /* of the source graph */
};

/* The run at hand comes after all primary runs of op u of the source graph. */
static void check_demand(void *context, uint32_t u)
{
    const struct control_check *check = context;
    const struct tarn_comparison *all = check->all;
    uint32_t v = check->past.step->op;
    for (uint32_t e = all->first_primary[u]; e != TARN_NONE; e = all->next_primary[e]) {
        if (tarn_past_has(&check->past, all->final->ops[e].stream, all->program->step_of[e]))
            continue;
        struct tarn_violation violation = tarn_violation_of(TARN_HAZARD_LOST);
        violation.op = v;
        violation.other_op = e;
        tarn_verdict_add(all->verdict, &violation, NULL,
                         "%s may start before %s has finished, which a control arc of the source "
                         "graph forbids",
                         tarn_op_label(all->final, v).text, tarn_op_label(all->final, e).text);
    }
}

static enum tarn_status check_runs(struct control_check *check)
{
    const struct tarn_comparison *all = check->all;
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < all->program->steps_count && !status; i++) {
        tarn_past_enter(&check->past, all->program->order[i]);
        const struct tarn_program_step *step = check->past.step;
        if (tarn_refine_is_primary(all, step->op))
            tarn_control_visit(&check->control, tarn_plan_op_origin(all->plan, step->op),
                               step->stream, check_demand, check);
        status = tarn_past_leave(&check->past);
    }
    return status;
}

enum tarn_status tarn_refine_control(struct tarn_comparison *all)
{
    struct control_check check = {.all = all};
    enum tarn_status status = tarn_past_init(&check.past, all->program);
    if (status == TARN_OK)
        status = tarn_control_init(&check.control, all->source, all->program->streams_count);
    if (status == TARN_OK) status = check_runs(&check);
    tarn_control_finish(&check.control);
    tarn_past_finish(&check.past);
    return status;
}
