/* The bound: the heaviest antichain of "precedes" in reserved sizes. No safe plan is smaller. */
#ifndef TARN_STREAMS_ORDER_ANTICHAIN_H
#define TARN_STREAMS_ORDER_ANTICHAIN_H

#include "reuse.h"

/* The certificate is one threshold per stream, a position x[s]. The antichain is
 *
 *     { a : pos(producer a) < x[stream of producer a]  and  first[a][s] >= x[s] for all s }
 *
 * A verifier checks in O(storages * streams) that `bound` is its weight. That it is an antichain
 * needs no check: if a preceded b, then pos(b) >= first[a][stream b] >= x[stream b]. */
struct tarn_antichain {
    uint64_t bound;
    uint32_t streams_count;
    uint32_t *threshold; /* by stream, from the region */
    uint64_t visits;     /* of the search, beyond O(storages * streams) */
    /* If all storages have one size: storage -> chain, from the region, else NULL. Each storage of
     * a chain precedes the next, so one range of bytes serves the whole chain. By Dilworth's
     * theorem there are as many chains as the antichain has members, or more if the search reached
     * its limit. */
    uint32_t *chain;
    uint32_t chains_count;
};

/* Finds the heaviest antichain. reserved: bytes by planned storage; their sum must fit in 64 bits.
 * TARN_SYSTEM: no memory. The search has a limit, which only large and loosely coupled graphs can
 * reach: then the antichain may not be the heaviest, but its weight is still a bound. */
enum tarn_status tarn_antichain_init(struct tarn_antichain *antichain, struct tarn_region *region,
                                     const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                                     const uint64_t *reserved);

/* tarn_antichain_init within about `work` visits of a few nanoseconds, beyond O(storages *
 * streams). */
enum tarn_status tarn_antichain_init_within(struct tarn_antichain *antichain,
                                            struct tarn_region *region,
                                            const struct tarn_reuse *reuse,
                                            const struct tarn_graph *graph,
                                            const uint64_t *reserved, uint64_t work);

/* Is a storage in the antichain that the thresholds name? */
static inline bool tarn_antichain_has(const uint32_t *threshold, const struct tarn_reuse *reuse,
                                      uint32_t a)
{
    if (reuse->position[a] >= threshold[reuse->stream[a]]) return false;
    for (uint32_t s = 0; s < reuse->streams_count; s++)
        if (reuse->first[(size_t)s * reuse->count + a] < threshold[s]) return false;
    return true;
}

/* Lists the heaviest members of the antichain, the heaviest first, equal ones in order; at most
 * `room` of them. Returns the number of its members. */
uint32_t tarn_antichain_heaviest(const uint32_t *threshold, const struct tarn_reuse *reuse,
                                 const uint64_t *reserved, uint32_t *list, uint32_t room);

/* The weight of the antichain that the thresholds name. */
uint64_t tarn_antichain_weight(const uint32_t *threshold, const struct tarn_reuse *reuse,
                               const uint64_t *reserved);

#endif
