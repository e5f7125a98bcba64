/* The flow that gives the heaviest antichain (antichain.c): bytes handed from storages to ops,
 * first greedily, then by a search that makes the flow maximal. */
#ifndef TARN_STREAMS_ORDER_FLOW_H
#define TARN_STREAMS_ORDER_FLOW_H

#include "reuse.h"

/* Bytes handed from a storage to an op; the transfers of one op form a list. */
struct tarn_transfer {
    uint64_t bytes;
    uint32_t storage;
    uint32_t next; /* transfer + 1; 0 ends the list */
};

struct tarn_flow {
    const struct tarn_reuse *reuse;
    const struct tarn_graph *graph;
    uint64_t *left;             /* storage -> bytes not yet handed on */
    uint64_t *lacking;          /* op -> bytes not yet given */
    uint32_t *transfers_of;     /* op -> transfer + 1 */
    struct tarn_region *region; /* of all these arrays */
    struct tarn_transfer *transfers;
    size_t transfers_room; /* at first storages + ops, which is enough for the greedy flow */
    uint32_t transfers_count;
    uint32_t unused; /* transfer + 1: a list of transfers that may be reused */
    uint64_t visits; /* of augmenting, a few nanoseconds each */
};

/* Is every transfer in reach of its storage, and do the bytes taken from storages equal the bytes
 * given to ops? weight: by storage, as tarn_flow_init has it. Linear in transfers; for tests and
 * assertions. */
bool tarn_flow_is_valid(const struct tarn_flow *flow, const uint64_t *weight);

/* Hands on bytes in topological order, starting with a flow in which nothing has been given. False:
 * no memory. */
bool tarn_flow_greedy(struct tarn_flow *flow);

/* Starts a flow in which nothing has been given; arrays from the region. False: no memory. */
bool tarn_flow_init(struct tarn_flow *flow, struct tarn_region *region,
                    const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                    const uint64_t *reserved);

/* Makes the flow maximal, within about `work` visits of a few nanoseconds. threshold: one for each
 * stream; ops at or after it can be given bytes that are left. *maximal: no such op lacks bytes, so
 * that the thresholds name the heaviest antichain. False: no memory. */
bool tarn_flow_augment(struct tarn_flow *flow, uint64_t work, uint32_t *threshold, bool *maximal);

#endif
