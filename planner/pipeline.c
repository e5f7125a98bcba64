/* The transforms of a plan, one after another. Each is a row of a table: whether the options ask
 * for it, and how it is called. The budget is the last one, so that what it finds is the final
 * plan, and the least that it tells is the least of all of them together. After the first one that
 * changed something, origins are brought back to the source graph. Cost: the transforms'. */
#include "pipeline.h"
#include "planner/budget/budget.h"

#include <assert.h>

#include "planner/transform/heartbeat.h"
#include "planner/transform/in_place.h"
#include "planner/transform/recipe.h"
#include "streams/base/deadline.h"
#include "streams/base/options.h"

static enum tarn_status pad_groups(struct tarn_graph *graph,
                                   const struct tarn_plan_options *options,
                                   struct tarn_planned *result, struct tarn_error *error)
{
    return tarn_graph_pad_groups(graph, options->pad_groups, &result->graph, error);
}

static enum tarn_status assign(struct tarn_graph *graph, const struct tarn_plan_options *options,
                               struct tarn_planned *result, struct tarn_error *error)
{
    struct tarn_assign_options assign;
    enum tarn_status status =
        tarn_options_take(&assign, sizeof assign, options->assign, "assign options", error);
    if (status != TARN_OK) return status;
    if (assign.alignment == 0) assign.alignment = options->alignment;
    return tarn_graph_assign(graph, &assign, &result->graph, error);
}

/* The plan's own stop and seconds end the searches of transforms, too, where their control has
 * none. */
static enum tarn_status take_control(struct tarn_transform_control *taken,
                                     const struct tarn_transform_control **control,
                                     const struct tarn_plan_options *options,
                                     struct tarn_error *error)
{
    const struct tarn_transform_control none = {.struct_size = sizeof none};
    if (!*control) *control = &none;
    enum tarn_status status = tarn_control_take(taken, control, error);
    if (!taken->stop) taken->stop = options->stop;
    if (taken->seconds == 0 || (options->seconds > 0 && options->seconds < taken->seconds))
        taken->seconds = options->seconds;
    taken->heartbeat = NULL;
    return status;
}

/* What reordering is asked for; what the options leave open is the plan's. */
static enum tarn_status take_reorder(struct tarn_reorder_options *reorder,
                                     struct tarn_transform_control *control,
                                     const struct tarn_plan_options *options,
                                     struct tarn_error *error)
{
    enum tarn_status status =
        tarn_options_take(reorder, sizeof *reorder, options->reorder, "reorder options", error);
    if (status != TARN_OK) return status;
    if (reorder->alignment == 0) reorder->alignment = options->alignment;
    return take_control(control, &reorder->control, options, error);
}

/* Where another order is asked for, what comes of the budget is put in order, too. */
static enum tarn_status budget(struct tarn_graph *graph, const struct tarn_plan_options *options,
                               struct tarn_planned *result, struct tarn_error *error)
{
    struct tarn_budget_options budget;
    struct tarn_reorder_options reorder;
    struct tarn_transform_control control, of_reorder;
    struct tarn_plan_options planning = *options;
    enum tarn_status status =
        tarn_options_take(&budget, sizeof budget, options->budget, "budget options", error);
    if (status == TARN_OK && options->reorder)
        status = take_reorder(&reorder, &of_reorder, options, error);
    if (status != TARN_OK) return status;
    if (options->reorder) planning.reorder = &reorder;
    if (budget.alignment == 0) budget.alignment = options->alignment;
    status = take_control(&control, &budget.control, options, error);
    return status ? status : tarn_budgeting_run(graph, &budget, 0, &planning, result, error);
}

static enum tarn_status reorder(struct tarn_graph *graph, const struct tarn_plan_options *options,
                                struct tarn_planned *result, struct tarn_error *error)
{
    struct tarn_reorder_options reorder;
    struct tarn_transform_control control;
    enum tarn_status status = take_reorder(&reorder, &control, options, error);
    if (status != TARN_OK) return status;
    return tarn_joint_reorder(graph, &reorder, options, result, error);
}

/* Without a capacity of its own it aims at that of plan and graph. */
static enum tarn_status couple(struct tarn_graph *graph, const struct tarn_plan_options *options,
                               struct tarn_planned *result, struct tarn_error *error)
{
    struct tarn_couple_options couple;
    struct tarn_transform_control control;
    enum tarn_status status =
        tarn_options_take(&couple, sizeof couple, options->couple, "couple options", error);
    if (status != TARN_OK) return status;
    if (couple.alignment == 0) couple.alignment = options->alignment;
    if (couple.capacity == 0) status = tarn_plan_capacity(graph, options, &couple.capacity, error);
    if (status == TARN_OK) status = take_control(&control, &couple.control, options, error);
    return status ? status : tarn_graph_couple(graph, &couple, &result->graph, error);
}

static enum tarn_status in_place(struct tarn_graph *graph, const struct tarn_plan_options *options,
                                 struct tarn_planned *result, struct tarn_error *error)
{
    return tarn_in_place_run(graph, options->in_place, options->budget, &result->graph, error);
}

typedef enum tarn_status stage_run(struct tarn_graph *graph,
                                   const struct tarn_plan_options *options,
                                   struct tarn_planned *result, struct tarn_error *error);

struct stage {
    bool is_wanted;
    stage_run *run;
};

/* source: what origins are brought back to. changed: by stage. The options' seconds are for all
 * stages together; where the first one has found another order, the budget leaves half of them for
 * the order that came in. */
static enum tarn_status run_stages(const struct stage *stages, size_t count,
                                   struct tarn_graph *source, struct tarn_graph *graph,
                                   const struct tarn_plan_options *options, bool *changed,
                                   struct tarn_planned *result, struct tarn_error *error)
{
    const struct tarn_deadline deadline = tarn_deadline_in(NULL, options->seconds);
    struct tarn_planned now = {.graph = tarn_graph_retain(graph)};
    *result = (struct tarn_planned){0};
    for (size_t i = 0; i < count; i++) {
        struct tarn_planned next = {0};
        struct tarn_plan_options within = *options;
        if (!stages[i].is_wanted) continue;
        within.seconds = tarn_deadline_left(&deadline) / (options->budget && changed[0] ? 2 : 1);
        enum tarn_status status = stages[i].run(now.graph, &within, &next, error);
        changed[i] = next.graph != now.graph;
        assert(status != TARN_OK || tarn_planned_is_valid(&next));
        if (status == TARN_OK && changed[i] && now.graph != source)
            status = tarn_transform_compose(now.graph, next.graph, error);
        if (status == TARN_OK && !changed[i] && !next.plan) {
            next.plan = now.plan; /* it is still a plan of the graph */
            now.plan = NULL;
        }
        tarn_planned_finish(&now);
        now = next;
        if (status == TARN_OK) continue;
        tarn_planned_finish(&now);
        return status;
    }
    *result = now;
    return TARN_OK;
}

enum tarn_status tarn_pipeline_begin(struct tarn_graph *graph,
                                     const struct tarn_plan_options *options,
                                     struct tarn_graph **result, struct tarn_error *error)
{
    const struct stage stages[] = {
        {options->pad_groups != TARN_GROUPS_AS_GIVEN, pad_groups},
        {options->assign, assign},
    };
    struct tarn_planned begun;
    bool changed[2] = {false};
    enum tarn_status status = run_stages(stages, 2, graph, graph, options, changed, &begun, error);
    assert(!begun.plan);
    *result = begun.graph;
    return status;
}

enum tarn_status tarn_pipeline_end(struct tarn_graph *source, struct tarn_graph *graph,
                                   const struct tarn_plan_options *options, bool *reorders,
                                   struct tarn_planned *result, struct tarn_error *error)
{
    const struct stage stages[] = {
        {options->reorder && *reorders, reorder},
        {options->couple, couple},
        {options->in_place, in_place},
        {options->budget, budget},
    };
    bool changed[4] = {false};
    enum tarn_status status = run_stages(stages, 4, source, graph, options, changed, result, error);
    *reorders = changed[0];
    return status;
}
