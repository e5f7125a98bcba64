/* Finds all storages that must not share bytes with a given one, from `first`.
 *
 * Planned storages are numbered anew, by (stream, position) of their producer: slots. Since the
 * storages that may reuse a storage's bytes are a suffix of every stream, the conflicts of storage
 * a, produced at position p of stream t, are
 *
 *     slots   │ stream 0 ██████████······ │ stream 1 ████············ │ ...
 *                        └ before first[a][0]        └ before first[a][1]
 *
 * the storages in the marked prefixes whose own first[.][t] is beyond p. A list of conflicts is a
 * bit mask, 64 slots a word; maxima over the words skip storages that were released long before. */
#ifndef TARN_PLANNER_PLACE_PROBLEM_CONFLICT_H
#define TARN_PLANNER_PLACE_PROBLEM_CONFLICT_H

#include "streams/order/reuse.h"

struct tarn_conflicts {
    struct tarn_reuse reuse;
    uint32_t words_count; /* of 64 slots */
    uint32_t *slot_of;    /* storage -> slot */
    uint32_t *begin;      /* stream -> its first slot; streams_count + 1 */
    uint32_t *ops_begin;  /* stream -> the start of its entries in slot_at */
    uint32_t *slot_at;    /* [ops_begin[s] + position]: first slot of stream s at or beyond it */
    uint32_t *row;     /* [stream][slot]: first; padded to whole words with 0, released at once */
    uint32_t *highest; /* [stream][word]: the highest first of its slots */
};

/* Numbers the slots of a reuse that is there already. Lives in the region. TARN_SYSTEM: no memory.
 */
enum tarn_status tarn_conflicts_init(struct tarn_conflicts *conflicts, struct tarn_region *region);
/* Makes the rows, which only masks read; they live in a region of their own or in the same one.
 * TARN_SYSTEM: no memory, and there are no rows. */
enum tarn_status tarn_conflicts_init_rows(struct tarn_conflicts *conflicts,
                                          struct tarn_region *region);

/* Writes the slots in conflict with a storage, itself included: bit i % 64 of mask[i / 64]. */
void tarn_conflicts_mask(const struct tarn_conflicts *conflicts, uint32_t storage, uint64_t *mask);

/* By storage: with how many others it is in conflict. No pair is looked at. TARN_SYSTEM: no memory.
 */
enum tarn_status tarn_conflicts_count(const struct tarn_conflicts *conflicts, uint32_t *degree);

/* How many pairs are in conflict. TARN_SYSTEM: no memory. */
enum tarn_status tarn_conflicts_pairs(const struct tarn_conflicts *conflicts, uint64_t *pairs);

/* Are the slots numbered by (stream, position) of the producers, each once, and do the rows, if
 * they are made, equal what the reuse says? For tests and assertions; cost: linear in storages and
 * ops, with rows also O(storages * streams). */
bool tarn_conflicts_is_valid(const struct tarn_conflicts *conflicts);

#endif
