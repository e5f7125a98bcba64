/* Reordering several streams: what counts is the heaviest antichain of the graph that an order
 * gives to the streams, not what is alive in one step of the list. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_STREAMS_H
#define TARN_PLANNER_TRANSFORM_REORDER_STREAMS_H

#include "planner/transform/steps.h"
#include "streams/base/region.h"
#include "streams/graph/graph.h"

struct tarn_reorder_weights {
    uint32_t tries;           /* changes to look at */
    struct tarn_steps *steps; /* one for each change */
    bool keep_time;           /* no order in which the modelled critical path is longer */
    /* Filled in: the heaviest antichain of the first order, of the best one between the two, and
     * of the result; the critical path of the first and of the result; changes looked at. */
    uint64_t before, start, after;
    uint64_t before_ns, after_ns;
    uint32_t tried;
};

/* order: two legal orders of all ops; the first one is that of the graph that came in. Afterwards
 * the second one is the best that was found from either or between, never worse than the first.
 * reserved: planned storage -> bytes, the sum fits in 64 bits. The region is left as it was.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_streams(struct tarn_region *region, const struct tarn_graph *graph,
                                      const uint64_t *reserved, uint32_t *const order[2],
                                      struct tarn_reorder_weights *weights);

#endif
