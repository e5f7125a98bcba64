/* A model of the streams at work: when every op runs, and how much memory is alive when.
 *
 * The model is discrete-event: a stream runs its launched ops in order, one at a time, each for its
 * `cost`. An op begins when the op before it in its stream has ended and every event that it waits
 * for has been seen, `wait_ns` after the event's op has ended. Nothing else takes time and no op
 * slows another op down. The model compares plans; it does not predict real times.
 */
#ifndef TARN_SIMULATE_H
#define TARN_SIMULATE_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A usual cost of an event wait between two streams of an accelerator. */
#define TARN_WAIT_NS 3000

/* Starting at `ns`, until the next step, planned storages that are alive reserve `bytes`. */
struct tarn_memory_step {
    uint64_t ns;
    uint64_t bytes;
};

/* The result; it owns its arrays. A storage is alive from the start of the first op that writes it
 * to the end of the last op that uses it (an output to the end of the iteration). It counts with
 * the bytes that it reserves in a plan of the given alignment. Views are not launched: they begin
 * and end when the op before them in their stream ends.
 */
struct tarn_simulation {
    size_t struct_size;
    uint64_t makespan_ns; /* the longest chain of costs and waits: the modelled critical path */
    uint64_t serial_ns;   /* all launched ops one after another, without waits */
    uint64_t peak;        /* maximum of bytes reserved at a moment of this timing */
    uint64_t peak_ns;     /* the first such moment */
    /* Over all legal timings (any costs, any delays): a legal timing reaches `worst` bytes, and
     * none exceeds `worst_bound`. If they differ, the maximum lies between them; to find it is
     * NP-hard.
     */
    uint64_t worst, worst_bound;
    uint32_t streams_count, ops_count;
    size_t steps_count;
    const uint64_t *busy_ns;              /* by stream: time inside ops */
    const uint64_t *begin_ns;             /* by op */
    const uint64_t *end_ns;               /* by op */
    const struct tarn_memory_step *steps; /* the memory over time; the first at 0 */
};

/* Simulates one iteration of a graph with its fewest event waits; wait_ns may be 0. alignment: of
 * the plan, a power of two; 0: 512; at 1 all bytes are exact. The caller destroys the simulation.
 * TARN_USAGE: not a power of two; TARN_BAD_INPUT: the reserved bytes of all storages exceed 64
 * bits; TARN_SYSTEM: no memory. O((V + E) S + V log V), and a few bounds. */
TARN_API enum tarn_status tarn_graph_simulate(const struct tarn_graph *graph, uint64_t alignment,
                                              uint32_t wait_ns, struct tarn_simulation **simulation,
                                              struct tarn_error *error);
TARN_API void tarn_simulation_destroy(struct tarn_simulation *simulation);

#ifdef __cplusplus
}
#endif

#endif
