/* Runs one candidate: its transforms, one after another, and the plan of the final graph. Each
 * transform is a row of a table: whether it is asked for, and how it is called. The budget comes
 * last, so its plan is the final plan, and the smallest footprint that it reports includes all
 * other transforms. After the first transform that changed something, origins are mapped back to
 * the source graph. Cost: the cost of the transforms and of the plan. */
#include "pipeline.h"

#include <assert.h>

#include "planner/budget/budget.h"
#include "planner/transform/in_place.h"
#include "planner/transform/recipe.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"

#define NO_COUPLING UINT64_MAX /* bytes that are no reason for waits */

/* The inputs and the report of each transform. */
struct stage_call {
    const struct tarn_plan_settings *settings;
    const struct tarn_pipeline_candidate *candidate;
    double seconds; /* that are left; 0: no limit */
    struct tarn_outcome *outcome;
    struct tarn_error *error;
};

typedef enum tarn_status stage_run(const struct stage_call *call, struct tarn_graph *graph,
                                   struct tarn_planned *result);

static enum tarn_status pad_groups(const struct stage_call *call, struct tarn_graph *graph,
                                   struct tarn_planned *result)
{
    return tarn_graph_pad_groups(graph, call->candidate->padding, &result->graph, call->error);
}

static enum tarn_status assign(const struct stage_call *call, struct tarn_graph *graph,
                               struct tarn_planned *result)
{
    struct tarn_assign_options assign = call->settings->assign;
    assign.report = &call->outcome->assigned;
    assign.report_size = sizeof call->outcome->assigned;
    return tarn_graph_assign(graph, &assign, &result->graph, call->error);
}

static enum tarn_status reorder(const struct stage_call *call, struct tarn_graph *graph,
                                struct tarn_planned *result)
{
    enum tarn_status status = tarn_joint_reorder(graph, call->settings, call->seconds,
                                                 &call->outcome->reordered, result, call->error);
    call->outcome->has_other_order = status == TARN_OK && result->graph != graph;
    return status;
}

/* Without a capacity of its own it aims at the capacity of plan and graph. */
static enum tarn_status couple(const struct stage_call *call, struct tarn_graph *graph,
                               struct tarn_planned *result)
{
    const struct tarn_plan_settings *settings = call->settings;
    struct tarn_couple_options couple = settings->couple;
    struct tarn_transform_control control =
        tarn_plan_settings_control(&settings->couple_control, call->seconds);
    couple.control = &control;
    couple.slowdown_max = call->candidate->slowdown;
    couple.report = &call->outcome->coupled;
    couple.report_size = sizeof call->outcome->coupled;
    enum tarn_status status = TARN_OK;
    if (call->candidate->without_waits)
        couple.capacity = NO_COUPLING;
    else if (couple.capacity == 0)
        status = tarn_plan_capacity(graph, &settings->plan, &couple.capacity, call->error);
    if (status == TARN_OK) status = tarn_graph_couple(graph, &couple, &result->graph, call->error);
    if (couple.capacity == NO_COUPLING)
        call->outcome->coupled.target = call->outcome->coupled.bound;
    return status;
}

static enum tarn_status in_place(const struct stage_call *call, struct tarn_graph *graph,
                                 struct tarn_planned *result)
{
    struct tarn_in_place_options in_place = call->settings->in_place;
    in_place.report = &call->outcome->merged;
    in_place.report_size = sizeof call->outcome->merged;
    enum tarn_in_place_inputs inputs = TARN_OVER_ANY;
    if (call->settings->plan.budget || call->settings->plan.offload)
        inputs = call->candidate->merges_paired ? TARN_OVER_PAIRED : TARN_OVER_READ;
    return tarn_in_place_run(graph, &in_place, inputs, &result->graph, call->error);
}

/* If another order is asked for, the budget's result is reordered, too. If moves are asked for
 * without a budget, only moves for which no op waits are made, as long as that keeps to the
 * capacity. */
static enum tarn_status budget(const struct stage_call *call, struct tarn_graph *graph,
                               struct tarn_planned *result)
{
    const struct tarn_plan_settings *settings = call->settings;
    struct tarn_budget_options budget = settings->budget;
    struct tarn_reorder_options reorder = settings->reorder;
    struct tarn_plan_options planning = settings->plan;
    struct tarn_transform_control control = tarn_plan_settings_control(&settings->budget_control,
                                                                       call->seconds),
                                  of_reorder = tarn_plan_settings_control(
                                      &settings->reorder_control, call->seconds);
    budget.control = &control;
    budget.report = &call->outcome->budgeted;
    budget.report_size = sizeof call->outcome->budgeted;
    reorder.control = &of_reorder;
    if (planning.reorder) planning.reorder = &reorder;
    if (!planning.offload)
        return tarn_budgeting_run(graph, &budget, 0, &planning, result, &call->outcome->refusal,
                                  call->error);
    struct tarn_offload_options offload = settings->offload;
    offload.report = &call->outcome->offloaded;
    offload.report_size = sizeof call->outcome->offloaded;
    planning.seconds = control.seconds;
    return tarn_offloading_run(graph, &budget, &offload, &planning, result, call->error);
}

struct stage {
    bool is_wanted;
    stage_run *run;
};

/* source: the graph that origins are mapped back to. The seconds are for all stages together; if
 * another order has been found, the budget leaves half of them for the given order. */
static enum tarn_status run_stages(struct stage_call *call, const struct stage *stages,
                                   size_t count, struct tarn_graph *source,
                                   struct tarn_graph *graph, struct tarn_planned *result)
{
    const struct tarn_deadline deadline = tarn_deadline_in(NULL, call->seconds);
    struct tarn_planned now = {.graph = tarn_graph_retain(graph)};
    *result = (struct tarn_planned){0};
    for (size_t i = 0; i < count; i++) {
        struct tarn_planned next = {0};
        bool leaves_half = call->settings->plan.budget && call->outcome->has_other_order;
        if (!stages[i].is_wanted) continue;
        call->seconds = tarn_deadline_left(&deadline) / (leaves_half ? 2 : 1);
        enum tarn_status status = stages[i].run(call, now.graph, &next);
        bool changed = next.graph != now.graph;
        assert(status != TARN_OK || tarn_planned_is_valid(&next));
        if (status == TARN_OK && changed && now.graph != source)
            status = tarn_transform_compose(now.graph, next.graph, call->error);
        if (status == TARN_OK && !changed && !next.plan) {
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

enum tarn_status tarn_pipeline_begin(struct tarn_graph *source,
                                     const struct tarn_plan_settings *settings,
                                     const struct tarn_pipeline_candidate *candidate,
                                     struct tarn_assign_report *assigned,
                                     struct tarn_graph **result, struct tarn_error *error)
{
    const struct stage stages[] = {
        {candidate->padding != TARN_GROUPS_AS_GIVEN, pad_groups},
        {settings->plan.assign, assign},
    };
    struct tarn_outcome outcome = {0};
    struct stage_call call = {settings, candidate, candidate->seconds, &outcome, error};
    struct tarn_planned begun;
    enum tarn_status status = run_stages(&call, stages, 2, source, source, &begun);
    assert(!begun.plan);
    *assigned = outcome.assigned;
    *result = begun.graph;
    return status;
}

bool tarn_has_other_capacity(const struct tarn_graph *graph)
{
    for (uint32_t s = 1; s < graph->spaces_count; s++)
        if (graph->spaces[s].capacity > 0) return true;
    return false;
}

void tarn_pipeline_end(struct tarn_graph *source, struct tarn_graph *begun,
                       const struct tarn_plan_settings *settings,
                       const struct tarn_pipeline_candidate *candidate, tarn_pipeline_plan *plan,
                       struct tarn_outcome *outcome)
{
    bool merges = settings->plan.in_place && !candidate->without_merges;
    const struct stage stages[] = {
        {merges && candidate->merges_first, in_place},
        {settings->plan.reorder && !candidate->keeps_order, reorder},
        {settings->plan.couple, couple},
        {merges && !candidate->merges_first, in_place},
        {settings->plan.budget || settings->plan.offload, budget},
    };
    const struct tarn_deadline deadline = tarn_deadline_in(NULL, candidate->seconds);
    struct stage_call call = {settings, candidate, candidate->seconds, outcome, &outcome->error};
    struct tarn_pipeline_candidate rest = *candidate;
    tarn_error_clear(&outcome->error);
    outcome->status =
        run_stages(&call, stages, sizeof stages / sizeof *stages, source, begun, &outcome->made);
    bool leaves_half = outcome->has_other_order && tarn_has_other_capacity(source);
    rest.seconds = tarn_deadline_left(&deadline) / (leaves_half ? 2 : 1);
    if (outcome->status == TARN_OK && plan)
        outcome->status = plan(settings, &rest, &outcome->made, &outcome->error);
    outcome->needed = outcome->made.needed;
    if (outcome->status != TARN_OK) tarn_planned_finish(&outcome->made);
}

void tarn_outcome_finish(struct tarn_outcome *outcome)
{
    tarn_couple_report_finish(&outcome->coupled);
    tarn_planned_finish(&outcome->made);
}
