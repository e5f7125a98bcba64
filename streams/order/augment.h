/* The flow behind the heaviest antichain: bytes handed from storages to ops (antichain.c), and the
 * search that makes it maximal. */
#ifndef TARN_STREAMS_ORDER_AUGMENT_H
#define TARN_STREAMS_ORDER_AUGMENT_H

#include "streams/graph/clocks.h"

/* Bytes handed from a storage to an op; the gifts of one op form a list. */
struct tarn_gift {
    uint64_t bytes;
    uint32_t storage;
    uint32_t next; /* gift + 1; 0 ends the list */
};

struct tarn_flow {
    const struct tarn_reuse *reuse;
    const struct tarn_graph *graph;
    uint64_t *left;     /* storage -> bytes not yet handed on */
    uint64_t *lacking;  /* op -> bytes not yet given */
    uint32_t *gifts_of; /* op -> gift + 1 */
    struct tarn_gift *gifts;
    uint32_t gifts_count, gifts_capacity;
    uint32_t unused; /* gift + 1: a list of gifts that may be used again */
};

/* The first gift of a storage to an op. False: no memory. */
bool tarn_flow_give(struct tarn_flow *flow, uint32_t storage, uint32_t op, uint64_t bytes);

/* Hands on as much as the ops can be given, within about `work` visits of a few nanoseconds.
 * threshold: one for each stream; ops from there on can be given bytes that are left. *maximal: no
 * such op lacks bytes, so that the thresholds name the heaviest antichain. False: no memory. */
bool tarn_flow_augment(struct tarn_flow *flow, uint64_t work, uint32_t *threshold, bool *maximal);

#endif
