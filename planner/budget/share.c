/* A budget as a share of the footprint that the plan would have without it: the graph is planned by
 * the same options, but for the budget and what would end the search early, and the budget becomes
 * that share of the footprint, of several memory spaces of the first one's. No report is filled in
 * by this plan. Cost: that of a plan. */
#include "budget.h"
#include "streams/base/error.h"
#include "streams/base/options.h"

/* The transforms' options, for as long as the plan is made. */
struct alone {
    struct tarn_plan_options plan;
    struct tarn_assign_options assign;
    struct tarn_reorder_options reorder;
    struct tarn_couple_options couple;
    struct tarn_in_place_options in_place;
};

static enum tarn_status take_alone(struct alone *alone, const struct tarn_plan_options *options,
                                   struct tarn_error *error)
{
    struct tarn_plan_options *plan = &alone->plan;
    enum tarn_status status = TARN_OK;
    *plan = *options;
    plan->budget = NULL;
    plan->capacity = 0;
    plan->seconds = 0;
    plan->progress = NULL;
#define TAKE(name, what)                                                                          \
    if (!status && plan->name) {                                                                  \
        status = tarn_options_take(&alone->name, sizeof alone->name, plan->name, what " options", \
                                   error);                                                        \
        alone->name.report = NULL;                                                                \
        plan->name = &alone->name;                                                                \
    }
    TAKE(assign, "assign")
    TAKE(reorder, "reorder")
    TAKE(couple, "couple")
    TAKE(in_place, "in-place")
#undef TAKE
    return status;
}

/* No capacity of the graph's memory spaces counts: the budget is there to keep to it. */
static enum tarn_status plan_alone(struct tarn_plan_options *options, struct tarn_planned *made,
                                   struct tarn_error *error)
{
    if (made->plan && made->plan->alignment == options->alignment) return TARN_OK;
    tarn_plan_destroy(made->plan);
    made->plan = NULL;
    return tarn_plan_make(made->graph, options, TARN_ALL_UNLIMITED, &made->plan, error);
}

static enum tarn_status find_footprint(struct tarn_graph *graph,
                                       const struct tarn_plan_options *options, tarn_share_run *run,
                                       uint64_t *footprint, struct tarn_error *error)
{
    struct alone alone;
    struct tarn_planned made = {0};
    enum tarn_status status = take_alone(&alone, options, error);
    if (status == TARN_OK) status = run(graph, &alone.plan, plan_alone, &made, error);
    if (status != TARN_OK) return status;
    *footprint = made.plan->spaces ? made.plan->spaces[0].footprint : made.plan->footprint;
    tarn_planned_finish(&made);
    return TARN_OK;
}

enum tarn_status tarn_share_settle(struct tarn_share *share, struct tarn_graph *graph,
                                   const struct tarn_plan_options **options, tarn_share_run *run,
                                   struct tarn_error *error)
{
    uint64_t footprint;
    struct tarn_budget_options *budget = &share->budget;
    if (!(*options)->budget) return TARN_OK;
    enum tarn_status status =
        tarn_options_take(budget, sizeof *budget, (*options)->budget, "budget options", error);
    if (status != TARN_OK || (budget->share >= 0 && budget->share <= 0)) return status;
    if (!(budget->share > 0 && budget->share <= 1))
        return tarn_error_set(error, TARN_USAGE,
                              "a share of %g is no budget: give one above 0 and up to 1, which is "
                              "the footprint without a budget",
                              budget->share);
    status = find_footprint(graph, *options, run, &footprint, error);
    if (status != TARN_OK) return status;
    uint64_t bytes = (uint64_t)((double)footprint * budget->share);
    if (bytes == 0) bytes = 1; /* 0 would be no budget */
    if (budget->budget == 0 || bytes < budget->budget) budget->budget = bytes;
    budget->share = 0;
    share->options = **options;
    share->options.budget = budget;
    *options = &share->options;
    return TARN_OK;
}
