/* Refinement, third part: control arcs between launched ops of the source graph, which may stand
 * for what no tensor shows. In every legal order of the program all primary runs of the earlier op
 * must come before all of the later one; copies are free. Cost: clocks along one legal order. */
#include "../graph/report.h"
#include "past.h"
#include "refine.h"

static void check_arc(const struct tarn_comparison *all, const struct tarn_past *past, uint32_t u)
{
    uint32_t v = past->step->op;
    for (uint32_t e = all->first_primary[u]; e != TARN_NONE; e = all->next_primary[e]) {
        uint32_t step = all->program->step_of[e];
        if (tarn_past_has(past, all->final->ops[e].stream, step)) continue;
        struct tarn_violation violation = tarn_violation_of(TARN_HAZARD_LOST);
        violation.op = v;
        violation.other_op = e;
        tarn_verdict_add(all->verdict, &violation, NULL,
                         "%s may start before %s has finished, which a control arc of the source "
                         "graph forbids",
                         tarn_op_label(all->final, v).text, tarn_op_label(all->final, e).text);
    }
}

static void check_run(const struct tarn_comparison *all, const struct tarn_past *past)
{
    uint32_t v = past->step->op;
    const struct tarn_graph_op *origin = &all->source->ops[tarn_plan_origin(all->plan, v)];
    if (origin->control_count == 0 || !tarn_refine_is_primary(all, v)) return;
    for (uint32_t k = 0; k < origin->control_count; k++) {
        if (!all->source->ops[origin->control[k]].view) check_arc(all, past, origin->control[k]);
    }
}

enum tarn_status tarn_refine_control(struct tarn_comparison *all)
{
    struct tarn_past past;
    enum tarn_status status = tarn_past_init(&past, all->program);
    if (status != TARN_OK) return status;
    for (uint32_t i = 0; i < all->program->steps_count && !status; i++) {
        tarn_past_enter(&past, all->program->order[i]);
        check_run(all, &past);
        status = tarn_past_leave(&past);
    }
    tarn_past_finish(&past);
    return status;
}
