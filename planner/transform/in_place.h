/* In-place as a step before another one. */
#ifndef TARN_PLANNER_TRANSFORM_IN_PLACE_H
#define TARN_PLANNER_TRANSFORM_IN_PLACE_H

#include "streams/graph/graph.h"
#include "tarn/transform.h"

/* Which inputs an op may write over, if a later transform may run it by another implementation. One
 * that does not read such an input would destroy what it was not given: it cannot be chosen. */
enum tarn_in_place_inputs {
    TARN_OVER_ANY,   /* no later transform chooses */
    TARN_OVER_READ,  /* only what every implementation reads, so that each can be chosen */
    TARN_OVER_PAIRED /* also what the op's own pairs allow: they tell the later transform which
                        implementations cannot be chosen */
};

/* May the op run by an implementation with these inputs and outputs? Each output that it makes, and
 * that lies on an input as a pair of the op allows, must lie on an input that it reads, and that it
 * reads by no other name. */
bool tarn_in_place_may_run(const struct tarn_graph *graph, const struct tarn_graph_op *op,
                           struct tarn_list inputs, struct tarn_list outputs);

/* Does what tarn_graph_in_place does. */
enum tarn_status tarn_in_place_run(struct tarn_graph *graph,
                                   const struct tarn_in_place_options *given,
                                   enum tarn_in_place_inputs inputs, struct tarn_graph **result,
                                   struct tarn_error *error);

/* Is there a pair that TARN_OVER_READ leaves out and TARN_OVER_PAIRED does not? */
bool tarn_in_place_is_choice(const struct tarn_graph *graph);

#endif
