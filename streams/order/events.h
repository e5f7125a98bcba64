/* The fewest event waits that keep happens-before among launched ops. */
#ifndef TARN_STREAMS_ORDER_EVENTS_H
#define TARN_STREAMS_ORDER_EVENTS_H

#include "../graph/graph.h"

struct tarn_wait {
    uint32_t op; /* waits ... */
    uint32_t on; /* ... for this op of another stream */
};

/* Waits inside an iteration: sorted by rank of `op`, then by stream of `on`. The caller frees
 * *waits with free(). TARN_SYSTEM when out of memory. */
enum tarn_status tarn_events_minimal(const struct tarn_graph *graph, struct tarn_wait **waits,
                                     uint32_t *count);

/* Waits on the previous iteration, by the simple rule: the first launched op of every stream waits
 * for the last launched op of every other stream. Same ownership. */
enum tarn_status tarn_events_boundary_simple(const struct tarn_graph *graph,
                                             struct tarn_wait **waits, uint32_t *count);

#endif
