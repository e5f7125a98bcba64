/* Reuse positions: where in each stream a storage's bytes may be used again. */
#ifndef TARN_STREAMS_ORDER_REUSE_H
#define TARN_STREAMS_ORDER_REUSE_H

#include "streams/graph/clocks.h"

/* first[a][s]: the lowest position in stream s of an op that may overwrite planned storage a.
 *     a precedes b   <=>   pos(producer b) >= first[a][stream(producer b)]
 * Stored by stream, first[s * count + a], so that conflict tests stream through it. */
struct tarn_reuse {
    uint32_t streams_count;
    uint32_t count;     /* planned storages */
    uint32_t *length;   /* stream -> its length; a first of that value: never */
    uint32_t *first;    /* [stream][storage] */
    uint32_t *position; /* storage -> position of its producer */
    uint32_t *stream;   /* storage -> stream of its producer */
};

/* All arrays from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reuse_init(struct tarn_reuse *reuse, struct tarn_region *region,
                                 const struct tarn_clocks *clocks, const struct tarn_graph *graph);

/* Is every position inside its stream, and is no storage free for its own producer, or an op before
 * it? For tests and assertions; cost: O(storages S). */
bool tarn_reuse_is_valid(const struct tarn_reuse *reuse);

/* The length of the longest stream. */
static inline uint32_t tarn_reuse_longest(const struct tarn_reuse *reuse)
{
    uint32_t longest = 0;
    for (uint32_t s = 0; s < reuse->streams_count; s++)
        if (reuse->length[s] > longest) longest = reuse->length[s];
    return longest;
}

static inline bool tarn_reuse_precedes(const struct tarn_reuse *reuse, uint32_t a, uint32_t b)
{
    return reuse->position[b] >= reuse->first[(size_t)reuse->stream[b] * reuse->count + a];
}

static inline bool tarn_reuse_is_safe(const struct tarn_reuse *reuse, uint32_t a, uint32_t b)
{
    return tarn_reuse_precedes(reuse, a, b) || tarn_reuse_precedes(reuse, b, a);
}

#endif
