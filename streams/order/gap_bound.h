/* The bound with contiguous groups: an antichain, plus bytes between its members that they cannot
 * fill. It is at least the heaviest antichain's weight, and no safe plan is smaller. */
#ifndef TARN_STREAMS_ORDER_GAP_BOUND_H
#define TARN_STREAMS_ORDER_GAP_BOUND_H

#include "antichain.h"

/* The reserved sizes and the alignment of the arena. */
struct tarn_reserve {
    const struct tarn_reuse *reuse;
    const struct tarn_graph *graph;
    const uint64_t *reserved; /* by planned storage: the last member of a group has the padding */
    uint64_t alignment;       /* the plan's: lone storages and groups begin at multiples of it */
};

/* The certificate: thresholds, which name an antichain as in antichain.h, and gaps, each by the
 * storage that is its first member. The proof is in gaps.c. */
struct tarn_gap_bound {
    uint64_t bound; /* a multiple of the alignment, as every footprint is */
    uint32_t streams_count;
    uint32_t *threshold; /* by stream: each right after a launched op, or 0 */
    uint32_t gaps_count;
    uint32_t *gaps; /* storages, ascending; NULL: no group has several members */
};

/* Effort: about twice as many steps are spent in addition to O(storages * streams); a million steps
 * take a few milliseconds. */
enum { TARN_GAP_EFFORT_LOW = 1 << 16, TARN_GAP_EFFORT_HIGH = 1 << 22 };

/* Starts from the heaviest antichain. Deterministic; without groups of several members it only
 * copies. Its arrays are from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_gap_bound_init(struct tarn_gap_bound *bound, struct tarn_region *region,
                                     const struct tarn_antichain *antichain,
                                     const struct tarn_reserve *reserve, uint32_t effort);

#endif
