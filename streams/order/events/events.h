/* The smallest set of event waits that keeps happens-before among launched ops. */
#ifndef TARN_STREAMS_ORDER_EVENTS_EVENTS_H
#define TARN_STREAMS_ORDER_EVENTS_EVENTS_H

#include "streams/graph/graph.h"
#include "tarn/plan.h"

/* Waits inside an iteration: sorted by rank of `op`, then by stream of `on`; from the region.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_events_minimal(const struct tarn_graph *graph, struct tarn_region *region,
                                     struct tarn_wait **waits, uint32_t *count);

/* Ops in streams, and arcs between the streams: a graph, or several iterations. Ops in no stream
 * are ignored. */
struct tarn_event_graph {
    uint32_t ops_count, streams_count;
    uint32_t *stream, *position;   /* by op */
    bool *view;                    /* by op: carries order, but is never launched */
    uint32_t *begin;               /* streams_count + 1 */
    uint32_t *ops;                 /* of stream s, in order: ops[begin[s]..begin[s + 1]) */
    const uint32_t *order;         /* the ops of all streams, in topological order */
    struct tarn_arcs predecessors; /* in other streams */
};

/* Allocates all arrays but order and predecessors from a region, zero-filled. False: no memory. */
bool tarn_event_graph_take(struct tarn_event_graph *graph, struct tarn_region *region,
                           uint32_t ops_count, uint32_t streams_count);

/* The minimal waits of such a graph, sorted by position in `order`. */
enum tarn_status tarn_events_reduce(const struct tarn_event_graph *graph,
                                    struct tarn_region *region, struct tarn_wait **waits,
                                    uint32_t *count);

#endif
