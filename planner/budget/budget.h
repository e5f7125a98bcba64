/* Budgets for the arena: what to keep, what to compute again, by which implementation, and the plan
 * that shows that it fits. The door of the folder. */
#ifndef TARN_PLANNER_BUDGET_BUDGET_H
#define TARN_PLANNER_BUDGET_BUDGET_H

#include "planner/plan_graph/plan_graph.h"
#include "tarn/transform.h"

/* A budget as a share of the footprint that a plan has without it (tarn_budget_options.share). */
bool tarn_budget_has_share(const struct tarn_budget_options *options);
/* TARN_USAGE: there is no such share. */
enum tarn_status tarn_budget_check_share(const struct tarn_budget_options *options,
                                         struct tarn_error *error);
/* It becomes bytes, if `plan` is the one without the budget: of several memory spaces the first
 * one's footprint counts. Of bytes and a share the smaller one counts. */
void tarn_budget_settle_share(struct tarn_budget_options *options, const struct tarn_plan *plan);

/* tarn_graph_budget with complete options, for a plan by the options `planning` (of their
 * transforms, only `reorder` counts, which is complete: what keeps to the budget is put in order,
 * too): `result` has the plan that keeps to the budget, too, unless the budget is unlimited. The
 * caller finishes it; it is empty where the status is an error. left_out: of enum tarn_budget_class
 * (see planner/transform/budget/budget.h), the sum of those that the search does without, for
 * comparisons. */
enum tarn_status tarn_budgeting_run(struct tarn_graph *graph,
                                    const struct tarn_budget_options *options, unsigned left_out,
                                    const struct tarn_plan_options *planning,
                                    struct tarn_planned *result, struct tarn_error *error);

/* tarn_budgeting_run with moves (struct tarn_offload_options), which are complete; `budget` NULL:
 * what makes nobody wait. The report of the budget is filled in, too. TARN_DOES_NOT_FIT: neither
 * moves nor anything else, nor all together, keep to the budget. */
enum tarn_status tarn_offloading_run(struct tarn_graph *graph,
                                     const struct tarn_budget_options *budget,
                                     const struct tarn_offload_options *offload,
                                     const struct tarn_plan_options *planning,
                                     struct tarn_planned *result, struct tarn_error *error);

#endif
