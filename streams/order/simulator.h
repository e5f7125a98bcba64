/* The pieces of tarn_graph_simulate (see tarn/simulate.h for the model), for transforms that
 * evaluate many timings. */
#ifndef TARN_STREAMS_ORDER_SIMULATOR_H
#define TARN_STREAMS_ORDER_SIMULATOR_H

#include "streams/order/events/events.h"
#include "tarn/simulate.h"

struct tarn_region;

/* When the ops run: by op, views included. */
struct tarn_timeline {
    uint64_t *begin_ns, *end_ns;
    uint64_t makespan_ns;
};

/* Waits sorted by rank of `op`, as tarn_events_minimal gives them; arrays from the region.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_timeline_init(struct tarn_timeline *timeline, struct tarn_region *region,
                                    const struct tarn_graph *graph, const struct tarn_wait *waits,
                                    uint32_t waits_count, uint32_t wait_ns);

/* The times of tarn_graph_simulate without its memory, whose worst moment takes longer to find: the
 * fewest waits of the graph, and the timeline with them; arrays from the region. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_timeline_of(struct tarn_timeline *timeline, struct tarn_region *region,
                                  const struct tarn_graph *graph, uint32_t wait_ns);

#endif
