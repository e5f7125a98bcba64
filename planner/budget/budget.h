/* Budgets for the arena: what to keep, what to compute again, by which implementation, and the plan
 * that shows that it fits. The door of the folder. */
#ifndef TARN_PLANNER_BUDGET_BUDGET_H
#define TARN_PLANNER_BUDGET_BUDGET_H

#include "planner/plan_graph/plan_graph.h"
#include "tarn/transform.h"

/* What options become whose budget is a share of the footprint without one: its bytes. */
struct tarn_share {
    struct tarn_plan_options options;
    struct tarn_budget_options budget;
};

/* What makes the graph of which the footprint without a budget is: tarn_pipeline_run, or one of its
 * kind. */
typedef enum tarn_status tarn_share_run(struct tarn_graph *graph,
                                        const struct tarn_plan_options *options,
                                        tarn_pipeline_plan *plan, struct tarn_planned *result,
                                        struct tarn_error *error);

/* *options, which are complete, become those of *share if they have such a budget, for which the
 * graph is planned without it; else they stay. Of bytes and a share the smaller one counts.
 * TARN_USAGE: there is no such share. */
enum tarn_status tarn_share_settle(struct tarn_share *share, struct tarn_graph *graph,
                                   const struct tarn_plan_options **options, tarn_share_run *run,
                                   struct tarn_error *error);

/* tarn_graph_budget, for a plan by the options `planning` (of their transforms, only `reorder`
 * counts, which is complete: what keeps to the budget is put in order, too): `result` has the plan
 * that keeps to the budget, too, unless the budget is unlimited. The caller finishes it; it is
 * empty where the status is an error. left_out: of enum tarn_budget_class (see
 * planner/transform/budget/budget.h), the sum of those that the search does without, for
 * comparisons. */
enum tarn_status tarn_budgeting_run(struct tarn_graph *graph,
                                    const struct tarn_budget_options *options, unsigned left_out,
                                    const struct tarn_plan_options *planning,
                                    struct tarn_planned *result, struct tarn_error *error);

#endif
