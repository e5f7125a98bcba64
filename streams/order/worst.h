/* The maximum memory that may be alive at one moment, over all legal timings.
 *
 * A state of an iteration is a set of started ops and a subset of ended ops: an op has started only
 * if every op that happens before it has ended. In a state a storage is alive if its producer has
 * started and not all of its users have ended (an output: if its producer has started). Timings are
 * legal if they pass through states only; the costs of the ops do not matter. Asked by the
 * simulator, for `tarn_simulation`'s `worst`. */
#ifndef TARN_STREAMS_ORDER_WORST_H
#define TARN_STREAMS_ORDER_WORST_H

#include "reuse.h"

struct tarn_worst {
    uint64_t reached; /* bytes alive in the state below */
    uint64_t bound;   /* no state has more: the heaviest antichain */
    uint32_t *begun;  /* stream -> how many of its ops have started in the reached state; an op has
                       * ended if a started op depends on it */
};

/* reserved: bytes by planned storage; their sum fits in 64 bits. begun: by stream, how many ops
 * have started in the state to search from first, for example the state of a simulated peak.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_worst_init(struct tarn_worst *worst, struct tarn_region *region,
                                 const struct tarn_clocks *clocks, const struct tarn_reuse *reuse,
                                 const struct tarn_graph *graph, const uint64_t *reserved,
                                 const uint32_t *begun);

#endif
