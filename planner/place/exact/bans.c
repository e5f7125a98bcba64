/* What must not meet, for an instance of exact search: conflicts of pieces become adjacency of
 * blocks, and bans where groups are concerned.
 * Cost: of a piece its conflicts, and sorting the bans. */
#include "making.h"
#include "planner/place/work.h"

static int compare_bans(const void *a, const void *b)
{
    const struct tarn_exact_ban *x = a, *y = b;
    if (x->other != y->other) return x->other < y->other ? -1 : 1;
    return (x->low > y->low) - (x->low < y->low);
}

/* Sorts and merges what overlaps; both ends of a ban are allowed, so that those that only meet stay
 * apart. Returns how many are left. */
static uint32_t merge_bans(struct tarn_exact_ban *bans, uint32_t count)
{
    uint32_t kept = 0;
    qsort(bans, count, sizeof *bans, compare_bans);
    for (uint32_t i = 0; i < count; i++) {
        struct tarn_exact_ban *last = kept > 0 ? &bans[kept - 1] : NULL;
        if (!last || last->other != bans[i].other || bans[i].low >= last->high)
            bans[kept++] = bans[i];
        else if (bans[i].high > last->high)
            last->high = bans[i].high;
    }
    return kept;
}

/* Piece p, at `within` of its block, must not meet `size` units that begin at `start` of the other
 * block: where p's block must not begin, counted in the same way. */
static struct tarn_exact_ban ban_of(const struct tarn_exact_instance *instance, uint32_t p,
                                    int64_t start, int64_t size, uint32_t other)
{
    int64_t within = instance->piece_within[p];
    return (struct tarn_exact_ban){other, start - within - instance->piece_size[p],
                                   start + size - within};
}

/* What piece p in conflict with storage a means. Every pair is met from both sides. */
static bool take_conflict(struct tarn_exact_making *making, uint32_t p, uint32_t a, uint32_t *bans)
{
    struct tarn_exact_instance *instance = making->instance;
    uint32_t b = instance->piece_block[p], q = making->piece_of[a];
    if (making->block_of[a] == instance->block[b]) return true;
    if (tarn_exact_is_left_out(making, making->block_of[a])) return true;
    if (making->storage[q] != a) return true; /* another one stands for it */
    uint32_t c = instance->piece_block[q];
    tarn_set_add(making->adjacent + (size_t)making->turn_of[p] * making->words, making->turn_of[q]);
    tarn_set_add(instance->adjacent + (size_t)b * instance->set_words, c);
    if (tarn_exact_is_simple(instance, b, c)) return true;
    if (!tarn_exact_grow((void **)&instance->bans, &making->bans_room, *bans,
                         sizeof *instance->bans))
        return false;
    /* Of b against c: c's position less b's is in the negative of where b must not be from c. */
    struct tarn_exact_ban ban =
        ban_of(instance, p, instance->piece_within[q], instance->piece_size[q], c);
    instance->bans[(*bans)++] = (struct tarn_exact_ban){c, -ban.high, -ban.low};
    return true;
}

static bool take_conflicts_of(struct tarn_exact_making *making, uint32_t b,
                              const uint32_t *storage_at, uint64_t *mask)
{
    const struct tarn_conflicts *conflicts = making->problem->conflicts;
    struct tarn_exact_instance *instance = making->instance;
    uint32_t bans = instance->bans_begin[b];
    for (uint32_t p = instance->piece_begin[b]; p < instance->piece_begin[b + 1]; p++) {
        tarn_conflicts_mask(conflicts, making->storage[p], mask);
        for (uint32_t w = 0; w < conflicts->words_count; w++) {
            for (uint64_t rest = mask[w]; rest != 0; rest &= rest - 1) {
                uint32_t slot = tarn_set_next(w, rest);
                if (!take_conflict(making, p, storage_at[slot], &bans)) return false;
            }
        }
    }
    making->work += (uint64_t)TARN_WORK_EXACT_CONFLICT * conflicts->words_count *
                    (instance->piece_begin[b + 1] - instance->piece_begin[b]);
    making->work += (uint64_t)TARN_WORK_EXACT_CONFLICT * 4 * (bans - instance->bans_begin[b]);
    instance->bans_begin[b + 1] = instance->bans_begin[b];
    if (bans > instance->bans_begin[b])
        instance->bans_begin[b + 1] +=
            merge_bans(instance->bans + instance->bans_begin[b], bans - instance->bans_begin[b]);
    instance->plain[b] = bans == instance->bans_begin[b] &&
                         instance->piece_begin[b + 1] - instance->piece_begin[b] == 1;
    return true;
}

bool tarn_exact_take_conflicts(struct tarn_exact_making *making)
{
    uint32_t count = making->problem->blocks->storages_count;
    uint32_t *storage_at = malloc(((size_t)count + 1) * sizeof *storage_at);
    uint64_t *mask = calloc((size_t)making->problem->conflicts->words_count + 1, sizeof *mask);
    bool ok = storage_at && mask;
    for (uint32_t a = 0; ok && a < count; a++)
        storage_at[making->problem->conflicts->slot_of[a]] = a;
    for (uint32_t b = 0; ok && b < making->instance->count; b++)
        ok = !tarn_exact_making_is_over(making) && take_conflicts_of(making, b, storage_at, mask);
    free(storage_at);
    free(mask);
    return ok;
}
