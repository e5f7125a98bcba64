/* The iteration boundary: which ops wait for ops of the previous iteration. */
#ifndef TARN_STREAMS_ORDER_EVENTS_BOUNDARY_H
#define TARN_STREAMS_ORDER_EVENTS_BOUNDARY_H

#include "cells.h"
#include "events.h"

/* In the waits of both rules `on` is an op of the previous iteration; they are taken from the
 * region. TARN_SYSTEM: no memory. */

/* The first launched op of every stream waits for the last launched op of every other stream. */
enum tarn_status tarn_boundary_simple(const struct tarn_graph *graph, struct tarn_region *region,
                                      struct tarn_wait **waits, uint32_t *count);

/* The inner waits and the layout of an iteration. */
struct tarn_boundary_inside {
    struct tarn_cell_layout layout; /* storages that share reserved bytes are safe pairs */
    const struct tarn_wait *waits;
    uint32_t waits_count;
};

/* Every op comes after the users of its reserved bytes in the previous iteration, if one of the two
 * writes: the transitive reduction of that order. Sorted by rank of `op`, then by stream of `on`.
 */
enum tarn_status tarn_boundary_refined(const struct tarn_graph *graph,
                                       const struct tarn_boundary_inside *inside,
                                       struct tarn_region *region, struct tarn_wait **waits,
                                       uint32_t *count);

#endif
