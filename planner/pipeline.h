/* The transforms that a plan asks for, and those of them that plan to decide. */
#ifndef TARN_PLANNER_PIPELINE_H
#define TARN_PLANNER_PIPELINE_H

#include "planner/plan_graph/plan_graph.h"
#include "tarn/transform.h"

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

#endif
