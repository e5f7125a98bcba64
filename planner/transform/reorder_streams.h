/* Reordering several streams: what counts is the heaviest antichain of the graph that an order
 * gives to the streams, not what is alive in one step of the list. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_STREAMS_H
#define TARN_PLANNER_TRANSFORM_REORDER_STREAMS_H

#include "../../streams/graph/graph.h"

/* order: two legal orders of all ops; the first one is that of the graph that came in. Afterwards
 * the second one is the best that was found from either, never worse than the first.
 * reserved: by planned storage, the sum fits in 64 bits. tries: changes to look at. *before,
 * *after: weights of the first order and of the result. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_streams(const struct tarn_graph *graph, const uint64_t *reserved,
                                      uint32_t *const order[2], uint32_t tries, uint64_t *before,
                                      uint64_t *after);

#endif
