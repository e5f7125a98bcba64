/* The transforms of a plan, one after another. Each is a row of the table: whether the options ask
 * for it, and how it is called. After the first one that changed something, origins are brought
 * back to the source graph. Cost: the transforms'. */
#include "pipeline.h"

#include <assert.h>

#include "budget.h"
#include "joint.h"
#include "planner/transform/beat.h"
#include "planner/transform/recipe.h"
#include "streams/base/options.h"

static enum tarn_status pad_groups(struct tarn_graph *graph,
                                   const struct tarn_plan_options *options,
                                   struct tarn_planned *result, struct tarn_error *error)
{
    return tarn_graph_pad_groups(graph, options->pad_groups, &result->graph, error);
}

static bool wants_pad_groups(const struct tarn_plan_options *options)
{
    return options->pad_groups != TARN_GROUPS_AS_GIVEN;
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

static bool wants_assign(const struct tarn_plan_options *options) { return options->assign; }

/* The plan's own stop and seconds end the searches of transforms, too, where they have no control
 * of their own. */
static enum tarn_status take_control(struct tarn_transform_control *taken,
                                     const struct tarn_transform_control **control,
                                     const struct tarn_plan_options *options,
                                     struct tarn_error *error)
{
    const struct tarn_transform_control of_plan = {
        .struct_size = sizeof of_plan, .stop = options->stop, .seconds = options->seconds};
    if (!*control) *control = &of_plan;
    enum tarn_status status = tarn_control_take(taken, control, error);
    taken->beat = NULL;
    return status;
}

static enum tarn_status budget(struct tarn_graph *graph, const struct tarn_plan_options *options,
                               struct tarn_planned *result, struct tarn_error *error)
{
    struct tarn_budget_options budget;
    struct tarn_transform_control control;
    enum tarn_status status =
        tarn_options_take(&budget, sizeof budget, options->budget, "budget options", error);
    if (status != TARN_OK) return status;
    if (budget.alignment == 0) budget.alignment = options->alignment;
    status = take_control(&control, &budget.control, options, error);
    return status ? status : tarn_budgeting_run(graph, &budget, 0, options, result, error);
}

static bool wants_budget(const struct tarn_plan_options *options) { return options->budget; }

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

/* Updates of parameters that come early free gradients before the budget is looked at. */
static enum tarn_status reorder_first(struct tarn_graph *graph,
                                      const struct tarn_plan_options *options,
                                      struct tarn_planned *result, struct tarn_error *error)
{
    struct tarn_reorder_options reorder;
    struct tarn_transform_control control;
    enum tarn_status status = take_reorder(&reorder, &control, options, error);
    if (status != TARN_OK) return status;
    reorder.report = NULL;
    return tarn_graph_reorder(graph, &reorder, &result->graph, error);
}

static bool wants_both(const struct tarn_plan_options *options)
{
    return options->budget && options->reorder;
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

static bool wants_reorder(const struct tarn_plan_options *options) { return options->reorder; }

/* Without a capacity of its own it aims at the plan's. */
static enum tarn_status couple(struct tarn_graph *graph, const struct tarn_plan_options *options,
                               struct tarn_planned *result, struct tarn_error *error)
{
    struct tarn_couple_options couple;
    struct tarn_transform_control control;
    enum tarn_status status =
        tarn_options_take(&couple, sizeof couple, options->couple, "couple options", error);
    if (status != TARN_OK) return status;
    if (couple.alignment == 0) couple.alignment = options->alignment;
    if (couple.capacity == 0) couple.capacity = options->capacity;
    status = take_control(&control, &couple.control, options, error);
    return status ? status : tarn_graph_couple(graph, &couple, &result->graph, error);
}

static bool wants_couple(const struct tarn_plan_options *options) { return options->couple; }

static enum tarn_status in_place(struct tarn_graph *graph, const struct tarn_plan_options *options,
                                 struct tarn_planned *result, struct tarn_error *error)
{
    return tarn_graph_in_place(graph, options->in_place, &result->graph, error);
}

static bool wants_in_place(const struct tarn_plan_options *options) { return options->in_place; }

static const struct {
    bool (*is_wanted)(const struct tarn_plan_options *options);
    enum tarn_status (*run)(struct tarn_graph *graph, const struct tarn_plan_options *options,
                            struct tarn_planned *result, struct tarn_error *error);
} stages[] = {
    {wants_pad_groups, pad_groups}, {wants_assign, assign},   {wants_both, reorder_first},
    {wants_budget, budget},         {wants_reorder, reorder}, {wants_couple, couple},
    {wants_in_place, in_place},
};

enum tarn_status tarn_pipeline_run(struct tarn_graph *graph,
                                   const struct tarn_plan_options *options,
                                   struct tarn_planned *result, struct tarn_error *error)
{
    struct tarn_planned now = {.graph = tarn_graph_retain(graph)};
    *result = (struct tarn_planned){0};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct tarn_planned next = {0};
        if (!stages[i].is_wanted(options)) continue;
        enum tarn_status status = stages[i].run(now.graph, options, &next, error);
        bool changed = next.graph != now.graph;
        assert(status != TARN_OK || tarn_planned_is_valid(&next));
        if (status == TARN_OK && changed && now.graph != graph)
            tarn_transform_compose(now.graph, next.graph);
        if (status == TARN_OK && !changed && !next.plan) {
            next.plan = now.plan; /* it is still a plan of the graph */
            now.plan = NULL;
        }
        tarn_planned_finish(&now);
        if (status != TARN_OK) return status;
        now = next;
    }
    *result = now;
    return TARN_OK;
}

struct transformation {
    struct tarn_graph *graph;
    struct tarn_planned final;
    struct tarn_error *error;
};

static enum tarn_status transform(const struct tarn_plan_options *options, void *subject)
{
    struct transformation *transformation = subject;
    return tarn_pipeline_run(transformation->graph, options, &transformation->final,
                             transformation->error);
}

enum tarn_status tarn_graph_transform(struct tarn_graph *graph,
                                      const struct tarn_plan_options *given,
                                      struct tarn_graph **result, struct tarn_error *error)
{
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    struct tarn_plan_options options;
    struct transformation transformation = {.graph = graph, .error = error};
    tarn_error_clear(error);
    enum tarn_status status = tarn_plan_options_take(&options, given, error);
    if (status == TARN_OK) status = tarn_beat_run(&options, transform, &transformation);
    if (status != TARN_OK) return status;
    *result = transformation.final.graph;
    tarn_plan_destroy(transformation.final.plan);
    return TARN_OK;
}
