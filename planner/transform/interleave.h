/* The list of a graph of several streams in another sequence, which every stream and wait allows.
 */
#ifndef TARN_PLANNER_TRANSFORM_INTERLEAVE_H
#define TARN_PLANNER_TRANSFORM_INTERLEAVE_H

#include "streams/graph/graph.h"

/* Makes a graph with the same streams and waits, with a list in which far fewer bytes are alive at
 * once, one op after the other; NULL if none was found. alignment: of the plan. Origins are ops of
 * the graph. The caller destroys it. TARN_SYSTEM; TARN_BAD_INPUT: sizes that need more than 64
 * bits. O(ops × streams). */
enum tarn_status tarn_graph_interleave(struct tarn_graph *graph, uint64_t alignment,
                                       struct tarn_graph **result, struct tarn_error *error);

#endif
