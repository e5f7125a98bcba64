/* The transforms that a plan asks for, and those of them that plan to decide. */
#ifndef TARN_PLANNER_PIPELINE_H
#define TARN_PLANNER_PIPELINE_H

#include "plan_graph.h"
#include "tarn/transform.h"

/* What makes a plan of the graph that the transforms have come to, where they have not made it. */
typedef enum tarn_status tarn_pipeline_plan(struct tarn_plan_options *options,
                                            struct tarn_planned *made, struct tarn_error *error);

/* Runs them, in each of the ways that the options leave open (ways.c), and keeps the best. `plan`
 * is called for each; NULL: the graph will do, and the result has a plan only where one of the
 * transforms has made it and these options could have led to it. The result's graph is the given
 * one, shared, where nothing was changed. The options are complete. The caller finishes the result,
 * which is empty where the status is an error. */
enum tarn_status tarn_pipeline_run(struct tarn_graph *graph,
                                   const struct tarn_plan_options *options,
                                   tarn_pipeline_plan *plan, struct tarn_planned *result,
                                   struct tarn_error *error);

/* The transforms that come before an order is looked for. The caller destroys the graph. */
enum tarn_status tarn_pipeline_begin(struct tarn_graph *graph,
                                     const struct tarn_plan_options *options,
                                     struct tarn_graph **result, struct tarn_error *error);
/* Those from then on, on `graph`, which has come of `source`. *reorders: whether another order is
 * looked for, where the options ask for one; receives whether it is another one. */
enum tarn_status tarn_pipeline_end(struct tarn_graph *source, struct tarn_graph *graph,
                                   const struct tarn_plan_options *options, bool *reorders,
                                   struct tarn_planned *result, struct tarn_error *error);

/* Order and address together, as the MODeL paper asks for: an order is worth what it needs when it
 * is placed. */

/* As tarn_graph_reorder, but where storages lie in contiguous groups, or streams are going to be
 * coupled, several orders are coupled and placed, quickly, and the one that needs the least is the
 * result; the graph itself, shared, when that is the order that came in. The plan comes with it
 * where no other one can be better. plan: what the result will be planned by. */
enum tarn_status tarn_joint_reorder(struct tarn_graph *graph,
                                    const struct tarn_reorder_options *options,
                                    const struct tarn_plan_options *plan,
                                    struct tarn_planned *result, struct tarn_error *error);

/* The report of an order that was looked for and then not taken. */
void tarn_joint_tell_kept(struct tarn_reorder_report *report);

/* ---- Budgets: what to keep, what to compute again, and the plan that shows that it fits ---- */

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
