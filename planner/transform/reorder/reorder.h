/* Reorders a graph with some stages left out: for comparisons, and for the planner, which tries
 * several orders. tarn_graph_reorder of tarn/transform.h is the same with all stages. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_REORDER_H
#define TARN_PLANNER_TRANSFORM_REORDER_REORDER_H

#include "exact.h"
#include "tarn/transform.h"

/* left_out: the sum of 1u << stage over the stages (enum tarn_reorder_stage) that are not to run;
 * other bits mean nothing. The options are complete. All else as in tarn_graph_reorder. */
enum tarn_status tarn_reorder_without(struct tarn_graph *graph,
                                      const struct tarn_reorder_options *options, uint32_t left_out,
                                      struct tarn_graph **result, struct tarn_error *error);

#endif
