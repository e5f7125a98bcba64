/* Budgets: what to keep, what to compute again, and the plan that shows that it fits. */
#ifndef TARN_PLANNER_BUDGET_H
#define TARN_PLANNER_BUDGET_H

#include "plan_graph.h"
#include "tarn/transform.h"

/* tarn_graph_budget, for a plan by the options `planning`: `result` has the plan that keeps to the
 * budget, too, unless the budget is unlimited. The caller finishes it; it is empty where the status
 * is an error. left_out: of enum tarn_budget_class (see planner/transform/budget/budget.h), the sum
 * of those that the search does without, for comparisons. */
enum tarn_status tarn_budgeting_run(struct tarn_graph *graph,
                                    const struct tarn_budget_options *options, unsigned left_out,
                                    const struct tarn_plan_options *planning,
                                    struct tarn_planned *result, struct tarn_error *error);

#endif
