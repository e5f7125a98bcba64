/* The input of exact search: blocks, which of them must not share bytes, and the distances between
 * them.
 *
 * Sizes and positions count units: the greatest common divisor of all numbers whose sums can be
 * positions. Sets of blocks are bits in words. Pieces are the members of the blocks, in order;
 * members side by side that are in conflict with the same storages of other blocks are one:
 *
 *     blocks   0 ──────────── 1 ───── 2 ──────────────────
 *     pieces   0              1       2 │ 3 │ 4            piece_begin[2] = 2, piece_begin[3] = 5
 *     section  {0, 3}: no two of them may overlap, whatever else is where
 *
 * Two lone blocks b, c in conflict are apart by size[b] or size[c]. A pair of blocks of which one
 * has several members has forbidden intervals: open ranges in which position of c - position of b
 * must not be; between two of them, c fits beside a member of b with which it is safe. */
#ifndef TARN_PLANNER_PLACE_EXACT_INSTANCE_H
#define TARN_PLANNER_PLACE_EXACT_INSTANCE_H

#include "planner/place/problem/problem.h"
#include "streams/base/deadline.h"
#include "streams/base/region.h"

/* An interval in which the position of another block less that of this block must not be. */
struct tarn_exact_forbidden {
    uint32_t other;
    int64_t low, high; /* units; both ends are allowed */
};

struct tarn_exact_instance {
    uint64_t unit; /* bytes */
    uint32_t count;
    uint32_t set_words;
    uint32_t *block; /* -> of the problem */
    int64_t *size, *alignment;
    bool *plain;        /* lone, and all its neighbours lone */
    uint64_t *adjacent; /* [block][set_words] */

    uint32_t *forbidden_begin; /* block -> its intervals, by other, then low; count + 1 */
    struct tarn_exact_forbidden *forbidden;

    uint32_t *piece_begin; /* block -> its pieces; count + 1 */
    uint32_t *piece_block;
    int64_t *piece_within, *piece_size;

    uint32_t sections_count;
    uint32_t section_words;
    uint32_t *section_begin; /* section -> its pieces; sections_count + 1 */
    uint32_t *section_pieces;
    uint64_t *section_sets; /* [block][section_words]: the sections in which it has pieces */

    /* By block, to guide the search: steps of list order that it lives, and the heaviest section
     * that it is in. */
    int64_t *life, *load;
};

/* is_left_out: block of the problem -> whether it is ignored; NULL: no block is. leader: see
 * exact.h; all blocks but leaders are left out, and their conflicts become conflicts of their
 * leaders. work_max: see work.h, 0: no limit; *work: the work that was done. TARN_USAGE: too large
 * for this search, or time or work was over. TARN_SYSTEM: no memory. The instance lives in the
 * region, and reads the problem only here. */
enum tarn_status tarn_exact_instance_init(struct tarn_exact_instance *instance,
                                          struct tarn_region *region,
                                          const struct tarn_problem *problem,
                                          const bool *is_left_out, const uint32_t *leader,
                                          const struct tarn_deadline *deadline, uint64_t work_max,
                                          uint64_t *work);

/* Are both blocks lone, so that no forbidden interval says how far apart they must be? */
static inline bool tarn_exact_is_simple(const struct tarn_exact_instance *instance, uint32_t b,
                                        uint32_t c)
{
    return instance->piece_begin[b + 1] - instance->piece_begin[b] == 1 &&
           instance->piece_begin[c + 1] - instance->piece_begin[c] == 1;
}

/* ---- Blocks that need no search because they can lie at the bottom of the arena ---- */

struct tarn_exact_dominated {
    const struct tarn_problem *problem;
    bool *is_left_out; /* by block: it is not asked for, or lies at the bottom */
    uint64_t *free;    /* set of slots of storages that are not left out */
    uint64_t *mask;    /* set of slots to work in */
    uint32_t *blocks;  /* at the bottom, from there upwards */
    uint32_t count;
    uint64_t size; /* of all these blocks: the other blocks fit a capacity if they fit the capacity
                      less this size */
};

/* is_left_out: by block; NULL: no block is. leader: see exact.h; blocks that have a leader other
 * than themselves are left out. The result lives in the region and reads the problem. TARN_SYSTEM:
 * no memory. */
enum tarn_status tarn_exact_dominated_init(struct tarn_exact_dominated *dominated,
                                           struct tarn_region *region,
                                           const struct tarn_problem *problem,
                                           const bool *is_left_out, const uint32_t *leader);

/* offset, by storage: a placement without the blocks at the bottom becomes one with them. */
void tarn_exact_dominated_lift(const struct tarn_exact_dominated *dominated, uint64_t *offset);

#endif
