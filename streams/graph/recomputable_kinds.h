/* Which ops may run more than once in an iteration: one rule for the planner, which repeats them,
 * and for the verifier, which checks repetitions. */
#ifndef TARN_STREAMS_GRAPH_RECOMPUTABLE_KINDS_H
#define TARN_STREAMS_GRAPH_RECOMPUTABLE_KINDS_H

#include "graph.h"

/* May the op run again, by one of its own implementations or (TARN_NONE) as written? It must read
 * every storage that it overwrites: a repetition works on a fresh copy. O(inputs and outputs). */
bool tarn_op_repeats(const struct tarn_graph *graph, uint32_t op, uint32_t implementation);

/* Does the graph or the table of kinds say what the op does? */
bool tarn_op_is_known(const struct tarn_graph *graph, uint32_t op);

#endif
