/* The list of a graph with what frees bytes as early as it can be. */
#ifndef TARN_PLANNER_TRANSFORM_RELEASE_H
#define TARN_PLANNER_TRANSFORM_RELEASE_H

#include "streams/graph/graph.h"

/* Makes a graph in which each op that frees at least as many bytes as it makes runs as soon as the
 * ops before it have run; NULL: that is so in this one. alignment: of the plan. Origins are ops of
 * the graph. The caller destroys it. TARN_SYSTEM; TARN_BAD_INPUT: sizes that need more than 64
 * bits. O(ops + arcs). */
enum tarn_status tarn_graph_release_early(struct tarn_graph *graph, uint64_t alignment,
                                          struct tarn_graph **result, struct tarn_error *error);

#endif
