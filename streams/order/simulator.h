/* The pieces of tarn_graph_simulate (see tarn/simulate.h for the model), for transforms that look
 * at many timings. */
#ifndef TARN_STREAMS_ORDER_SIMULATOR_H
#define TARN_STREAMS_ORDER_SIMULATOR_H

#include "events.h"
#include "tarn/simulate.h"

/* When the ops run: by op, views included. */
struct tarn_timeline {
    uint64_t *begin_ns, *end_ns;
    uint64_t makespan_ns;
};

/* Waits sorted by rank of `op`, as tarn_events_minimal gives them. TARN_SYSTEM: no memory. */
enum tarn_status tarn_timeline_init(struct tarn_timeline *timeline, const struct tarn_graph *graph,
                                    const struct tarn_wait *waits, uint32_t waits_count,
                                    uint32_t wait_ns);
void tarn_timeline_finish(struct tarn_timeline *timeline);

/* Memory over time, and its highest moment. */
struct tarn_memory_curve {
    struct tarn_memory_step *steps;
    size_t steps_count;
    uint64_t peak, peak_ns;
    uint32_t peak_op; /* which begins then; TARN_NONE: nothing is ever alive */
};

/* Of what happens at one moment, ops of some length end first; then the others begin, in
 * topological order, and those without length end at once. reserved: bytes by planned storage;
 * their sum fits in 64 bits. TARN_SYSTEM: no memory. */
enum tarn_status tarn_memory_curve_init(struct tarn_memory_curve *curve,
                                        const struct tarn_timeline *timeline,
                                        const struct tarn_graph *graph, const uint64_t *reserved);
void tarn_memory_curve_finish(struct tarn_memory_curve *curve);

#endif
