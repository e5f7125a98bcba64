/* Completes the options of a planning call. Cost: constant. */
#include "settings.h"

#include "planner/plan_graph/plan_graph.h"
#include "streams/base/options.h"

static enum tarn_status take_control(struct tarn_transform_control *taken,
                                     const struct tarn_transform_control **given,
                                     const struct tarn_plan_options *plan, struct tarn_error *error)
{
    static const struct tarn_transform_control none = {.struct_size = sizeof none};
    enum tarn_status status = tarn_options_take(taken, sizeof *taken, *given ? *given : &none,
                                                "the control of a transform", error);
    if (status == TARN_OK) status = tarn_options_seconds(taken->seconds, error);
    if (!taken->stop) taken->stop = plan->stop;
    taken->heartbeat = NULL;
    *given = NULL;
    return status;
}

enum tarn_status tarn_plan_settings_take(struct tarn_plan_settings *settings,
                                         const struct tarn_plan_options *given,
                                         struct tarn_error *error)
{
    struct tarn_plan_settings *s = settings;
    struct tarn_plan_options *plan = &s->plan;
    *s = (struct tarn_plan_settings){0};
    enum tarn_status status = tarn_plan_options_take(plan, given, error);
#define TAKE(name, what)                 \
    if (status == TARN_OK && plan->name) \
        status = tarn_options_take(&s->name, sizeof s->name, plan->name, what " options", error);
    TAKE(assign, "assign")
    TAKE(reorder, "reorder")
    TAKE(couple, "couple")
    TAKE(in_place, "in-place")
    TAKE(budget, "budget")
    TAKE(offload, "offload")
#undef TAKE
    if (status == TARN_OK)
        status = take_control(&s->reorder_control, &s->reorder.control, plan, error);
    if (status == TARN_OK)
        status = take_control(&s->couple_control, &s->couple.control, plan, error);
    if (status == TARN_OK)
        status = take_control(&s->budget_control, &s->budget.control, plan, error);
    if (s->assign.alignment == 0) s->assign.alignment = plan->alignment;
    if (s->reorder.alignment == 0) s->reorder.alignment = plan->alignment;
    if (s->couple.alignment == 0) s->couple.alignment = plan->alignment;
    if (s->budget.alignment == 0) s->budget.alignment = plan->alignment;
    return status;
}

struct tarn_transform_control
tarn_plan_settings_control(const struct tarn_transform_control *control, double seconds)
{
    struct tarn_transform_control within = *control;
    if (within.seconds == 0 || (seconds > 0 && seconds < within.seconds)) within.seconds = seconds;
    return within;
}
