/* The transforms that a plan asks for. */
#ifndef TARN_PLANNER_PIPELINE_H
#define TARN_PLANNER_PIPELINE_H

#include "plan_graph.h"

/* Runs them, one after another. Where one of them has made a plan of the final graph that these
 * options could have led to, `result` has it, too; its graph is the given one, shared, where
 * nothing was changed. The options are complete. The caller finishes the result, which is empty
 * where the status is an error. */
enum tarn_status tarn_pipeline_run(struct tarn_graph *graph,
                                   const struct tarn_plan_options *options,
                                   struct tarn_planned *result, struct tarn_error *error);

#endif
