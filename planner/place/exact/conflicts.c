/* Finds the conflicts of an instance of exact search: conflicts of pieces become adjacency of
 * blocks, and forbidden intervals if groups are concerned. Cost: the conflicts of every piece, and
 * sorting the intervals. */
#include <stdlib.h>

#include "builder.h"
#include "planner/place/effort/effort.h"

static int compare_forbidden(const void *a, const void *b)
{
    const struct tarn_exact_forbidden *x = a, *y = b;
    if (x->other != y->other) return x->other < y->other ? -1 : 1;
    return (x->low > y->low) - (x->low < y->low);
}

/* Sorts intervals and merges overlapping ones; both ends of an interval are allowed, so intervals
 * that only touch stay separate. Returns the number of remaining intervals. pre: count > 0. */
static uint32_t merge_forbidden(struct tarn_exact_forbidden *found, uint32_t count)
{
    uint32_t kept = 1;
    qsort(found, count, sizeof *found, compare_forbidden);
    for (uint32_t i = 1; i < count; i++) {
        struct tarn_exact_forbidden *last = &found[kept - 1];
        if (last->other != found[i].other || found[i].low >= last->high)
            found[kept++] = found[i];
        else if (found[i].high > last->high)
            last->high = found[i].high;
    }
    return kept;
}

/* Piece p, at `within` of its block, must not overlap `size` units that begin at `start` of the
 * other block. Returns the units at which p's block must not begin, counted like `start`. */
static struct tarn_exact_forbidden forbidden_of(const struct tarn_exact_instance *instance,
                                                uint32_t p, int64_t start, int64_t size,
                                                uint32_t other)
{
    int64_t within = instance->piece_within[p];
    return (struct tarn_exact_forbidden){other, start - within - instance->piece_size[p],
                                         start + size - within};
}

/* Is storage a a block that has a leader? */
static bool is_follower(const struct tarn_exact_builder *builder, uint32_t a)
{
    uint32_t leader = builder->block_of[a];
    return builder->follower[leader] != TARN_NONE &&
           tarn_block_at(&builder->problem->blocks, leader).members[0] != a;
}

/* Records that piece p is in conflict with storage a. Every pair is visited from both sides. */
static bool take_conflict(struct tarn_exact_builder *builder, uint32_t p, uint32_t a,
                          uint32_t *found)
{
    struct tarn_exact_instance *instance = builder->instance;
    uint32_t b = instance->piece_block[p], q = builder->piece_of[a];
    if (builder->block_of[a] == instance->block[b]) return true;
    if (tarn_exact_is_left_out(builder, builder->block_of[a])) return true;
    if (builder->storage[q] != a && !is_follower(builder, a))
        return true; /* another one stands for it */
    uint32_t c = instance->piece_block[q];
    tarn_set_add(builder->adjacent + (size_t)builder->rank_of[p] * builder->words,
                 builder->rank_of[q]);
    tarn_set_add(instance->adjacent + (size_t)b * instance->set_words, c);
    if (tarn_exact_is_simple(instance, b, c)) return true;
    instance->forbidden =
        tarn_region_grow(&builder->region, instance->forbidden, &builder->forbidden_room,
                         (size_t)*found + 1, sizeof *instance->forbidden);
    if (!instance->forbidden) return false;
    /* Of b against c: c's position less b's is in the negative of the interval in which b must not
     * be relative to c. */
    struct tarn_exact_forbidden interval =
        forbidden_of(instance, p, instance->piece_within[q], instance->piece_size[q], c);
    instance->forbidden[(*found)++] =
        (struct tarn_exact_forbidden){c, -interval.high, -interval.low};
    return true;
}

/* Writes the slots in conflict with piece p, or with a follower of its block. */
static void look_around(struct tarn_exact_builder *builder, uint32_t p, uint64_t *mask,
                        uint64_t *more)
{
    const struct tarn_conflicts *conflicts = &builder->problem->conflicts;
    uint32_t leader = builder->block_of[builder->storage[p]];
    tarn_conflicts_mask(conflicts, builder->storage[p], mask);
    for (uint32_t b = builder->follower[leader]; b != TARN_NONE; b = builder->follower[b]) {
        tarn_conflicts_mask(conflicts, tarn_block_at(&builder->problem->blocks, b).members[0],
                            more);
        for (uint32_t w = 0; w < conflicts->words_count; w++) mask[w] |= more[w];
        builder->work += (uint64_t)TARN_WORK_EXACT_CONFLICT * conflicts->words_count;
    }
}

static bool take_conflicts_of(struct tarn_exact_builder *builder, uint32_t b,
                              const uint32_t *storage_at, uint64_t *mask, uint64_t *more)
{
    const struct tarn_conflicts *conflicts = &builder->problem->conflicts;
    struct tarn_exact_instance *instance = builder->instance;
    uint32_t found = instance->forbidden_begin[b];
    for (uint32_t p = instance->piece_begin[b]; p < instance->piece_begin[b + 1]; p++) {
        look_around(builder, p, mask, more);
        TARN_SET_EACH(slot, w, conflicts->words_count, mask[w]) {
            if (!take_conflict(builder, p, storage_at[slot], &found)) return false;
        }
    }
    builder->work += (uint64_t)TARN_WORK_EXACT_CONFLICT * conflicts->words_count *
                     (instance->piece_begin[b + 1] - instance->piece_begin[b]);
    builder->work +=
        (uint64_t)TARN_WORK_EXACT_CONFLICT * 4 * (found - instance->forbidden_begin[b]);
    instance->forbidden_begin[b + 1] = instance->forbidden_begin[b];
    if (found > instance->forbidden_begin[b])
        instance->forbidden_begin[b + 1] +=
            merge_forbidden(instance->forbidden + instance->forbidden_begin[b],
                            found - instance->forbidden_begin[b]);
    instance->plain[b] = found == instance->forbidden_begin[b] &&
                         instance->piece_begin[b + 1] - instance->piece_begin[b] == 1;
    return true;
}

bool tarn_exact_take_conflicts(struct tarn_exact_builder *builder)
{
    const struct tarn_conflicts *conflicts = &builder->problem->conflicts;
    uint32_t count = builder->problem->blocks.storages_count;
    uint32_t *storage_at = tarn_region_take(&builder->region, count, sizeof *storage_at);
    uint64_t *mask = tarn_region_take(&builder->region, conflicts->words_count, sizeof *mask);
    uint64_t *more = tarn_region_take(&builder->region, conflicts->words_count, sizeof *more);
    bool ok = storage_at && mask && more;
    for (uint32_t a = 0; ok && a < count; a++) storage_at[conflicts->slot_of[a]] = a;
    for (uint32_t b = 0; ok && b < builder->instance->count; b++)
        ok = !tarn_exact_builder_is_over(builder) &&
             take_conflicts_of(builder, b, storage_at, mask, more);
    return ok;
}
