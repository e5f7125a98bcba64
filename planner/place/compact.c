/* Pushes all blocks down, the lowest first, each to the lowest place where it is free of those
 * before it; then up against the highest end, the highest first; and so on:
 *
 *     ▐bb▐  ▐dd▐          ▐bb▐dd▐              ▐dd▐
 *     ▐  ▐cc▐  ▐   down   ▐  ▐cc▐      up      ▐bb▐cc▐      ...
 *     ▐aa▐  ▐ee▐   ───▶   ▐aa▐ee▐     ───▶     ▐aa▐ee▐
 *
 * In a plan that is pushed down every block has its old place to fall back on, so no plan gets
 * higher, unless an alignment of a storage's own is in the way. The order changes from one push to
 * the next, and gaps that were too narrow come to lie beside each other. Bands of streams
 * (apart.h) and plans of a coarse problem (coarse.h) gain most: what was kept apart comes together.
 * The idea is known from compaction of layouts of circuits, and of strip packing.
 *
 * Cost of a push: for each storage a mask of its conflicts and a look at the storages that were
 * placed before it, up to the place it gets; for members of a group again each time that the group
 * has moved on. */
#include "compact.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "planner/place/effort/effort.h"
#include "streams/base/bitset.h"
#include "streams/base/checked.h"

/* It ends after IDLE rounds without a lower plan, and in any case after ROUNDS_MAX. */
enum { IDLE = 3, ROUNDS_MAX = 64 };
/* The most work of a push. None is begun that is expected to do more, and one that does is given
 * up. */
#define PUSH_WORK_MAX UINT64_C(500000000)

/* A block in the order of a push. */
struct ordered {
    uint64_t key, size;
    uint32_t block;
};

/* A storage that is placed. */
struct piece {
    uint64_t begin, end;
    uint32_t slot;
};

struct compact {
    const struct tarn_problem *problem;
    struct tarn_region region;
    struct ordered *order;
    uint64_t *offset;     /* storage -> in the present plan */
    struct piece *pieces; /* pushing down: by begin; up: the highest end first */
    uint32_t pieces_count;
    uint64_t *mask; /* slots in conflict with a storage */
    uint64_t work, work_max;
};

static int compare_ordered(const void *left, const void *right)
{
    const struct ordered *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

/* ---- Free places for one storage ---- */

/* The lowest begin from `from` on at which `size` bytes are free. */
static uint64_t find_lowest(struct compact *compact, uint64_t from, uint64_t size)
{
    uint32_t i = 0;
    for (; i < compact->pieces_count; i++) {
        const struct piece *piece = &compact->pieces[i];
        if (piece->begin >= from && piece->begin - from >= size) break;
        if (piece->end > from && tarn_set_has(compact->mask, piece->slot)) from = piece->end;
    }
    compact->work += (uint64_t)TARN_WORK_OBSTACLE * i;
    return from;
}

/* The highest begin up to `from`; false: there is none. */
static bool find_highest(struct compact *compact, uint64_t *from, uint64_t size)
{
    uint32_t i = 0;
    for (; i < compact->pieces_count; i++) {
        const struct piece *piece = &compact->pieces[i];
        if (piece->end <= *from) break;
        if (piece->begin >= *from && piece->begin - *from >= size) continue;
        if (!tarn_set_has(compact->mask, piece->slot)) continue;
        if (piece->begin < size) return false;
        *from = piece->begin - size;
    }
    compact->work += (uint64_t)TARN_WORK_OBSTACLE * i;
    return true;
}

static void add_piece(struct compact *compact, struct piece piece, bool up)
{
    uint32_t i = compact->pieces_count++;
    for (; i > 0; i--) {
        const struct piece *before = &compact->pieces[i - 1];
        if (up ? before->end >= piece.end : before->begin <= piece.begin) break;
        compact->pieces[i] = *before;
    }
    compact->pieces[i] = piece;
}

/* ---- Pushes ---- */

/* Moves *at to where the block's m-th member is free of all placed storages. */
static bool fit_member(struct compact *compact, struct tarn_block block, uint32_t m, bool up,
                       uint64_t *at)
{
    const struct tarn_blocks *blocks = &compact->problem->blocks;
    uint32_t a = block.members[m];
    uint64_t begin = *at + blocks->within[a], size = blocks->reserved[a];
    if (block.members_count > 1) {
        tarn_conflicts_mask(&compact->problem->conflicts, a, compact->mask);
        compact->work +=
            (uint64_t)TARN_WORK_EXACT_CONFLICT * compact->problem->conflicts.words_count;
    }
    if (!up) {
        begin = find_lowest(compact, begin, size) - blocks->within[a];
        return tarn_size_round_up(begin, block.alignment, at);
    }
    if (!find_highest(compact, &begin, size) || begin < blocks->within[a]) return false;
    *at = (begin - blocks->within[a]) / block.alignment * block.alignment;
    return true;
}

/* Members are looked at in turn until none moves the block any more. False: there is no room for
 * it, or too much work was done. */
static bool fit_block(struct compact *compact, struct tarn_block block, bool up, uint64_t *at)
{
    uint64_t before;
    if (block.members_count == 1) {
        tarn_conflicts_mask(&compact->problem->conflicts, block.members[0], compact->mask);
        compact->work +=
            (uint64_t)TARN_WORK_EXACT_CONFLICT * compact->problem->conflicts.words_count;
    }
    do {
        if (compact->work > compact->work_max) return false;
        before = *at;
        for (uint32_t m = 0; m < block.members_count; m++)
            if (!fit_member(compact, block, m, up, at)) return false;
    } while (*at != before);
    return true;
}

/* top: up: no block may end above. False: there is no room for a block, or too much work was done.
 */
static bool push(struct compact *compact, bool up, uint64_t top)
{
    const struct tarn_blocks *blocks = &compact->problem->blocks;
    compact->work_max = compact->work + PUSH_WORK_MAX;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        uint64_t begin = compact->offset[block.members[0]] - blocks->within[block.members[0]];
        compact->order[b] =
            (struct ordered){up ? top - (begin + block.size) : begin, block.size, b};
    }
    qsort(compact->order, blocks->count, sizeof *compact->order, compare_ordered);
    compact->pieces_count = 0;
    for (uint32_t i = 0; i < blocks->count; i++) {
        struct tarn_block block = tarn_block_at(blocks, compact->order[i].block);
        uint64_t at = up ? (top - block.size) / block.alignment * block.alignment : 0;
        if (!fit_block(compact, block, up, &at)) return false;
        tarn_block_put(blocks, block, at, compact->offset);
        for (uint32_t m = 0; m < block.members_count; m++) {
            uint32_t a = block.members[m];
            uint64_t begin = compact->offset[a];
            add_piece(compact,
                      (struct piece){begin, begin + blocks->reserved[a],
                                     compact->problem->conflicts.slot_of[a]},
                      up);
        }
    }
    compact->work += (uint64_t)TARN_WORK_PLACE * blocks->count;
    return true;
}

uint64_t tarn_compact_estimate(const struct tarn_problem *problem)
{
    uint64_t count = problem->blocks.storages_count;
    uint64_t mask = (uint64_t)TARN_WORK_EXACT_CONFLICT * problem->conflicts.words_count;
    return count * (mask + TARN_WORK_PLACE + TARN_WORK_OBSTACLE * count / 2);
}

/* Could the next push cost more than what is left? */
static bool is_over(const struct compact *compact, const struct tarn_compact_options *options,
                    uint64_t next)
{
    if (next > PUSH_WORK_MAX || tarn_deadline_is_over(&options->deadline)) return true;
    return options->work_max > 0 && compact->work + next >= options->work_max;
}

static void run(struct compact *compact, const struct tarn_compact_options *options,
                uint64_t *offset, uint64_t *footprint)
{
    const struct tarn_blocks *blocks = &compact->problem->blocks;
    uint64_t next = tarn_compact_estimate(compact->problem);
    for (uint32_t round = 0, idle = 0; round < ROUNDS_MAX && idle < IDLE; round++) {
        uint64_t begun = compact->work;
        if (is_over(compact, options, next) || !push(compact, false, 0)) break;
        uint64_t found = tarn_blocks_footprint(blocks, compact->offset);
        idle = found < *footprint ? 0 : idle + 1;
        if (found < *footprint) {
            memcpy(offset, compact->offset, blocks->storages_count * sizeof *offset);
            *footprint = found;
        }
        next = compact->work - begun;
        if (*footprint <= options->aim || is_over(compact, options, next)) break;
        if (!push(compact, true, found)) break;
    }
}

/* ---- The whole ---- */

enum tarn_status tarn_compact_place(const struct tarn_problem *problem,
                                    const struct tarn_compact_options *options, uint64_t *offset,
                                    uint64_t *footprint, uint64_t *work)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    struct compact compact = {.problem = problem};
    struct tarn_region *region = &compact.region;
    uint32_t storages_count = blocks->storages_count;
    assert(problem->conflicts.row);
    compact.order = tarn_region_take(region, blocks->count, sizeof *compact.order);
    compact.offset = tarn_region_copy(region, offset, storages_count, sizeof *offset);
    compact.pieces = tarn_region_take(region, storages_count, sizeof *compact.pieces);
    compact.mask = tarn_region_take(region, problem->conflicts.words_count, sizeof *compact.mask);
    bool ok = !region->is_exhausted;
    if (ok) run(&compact, options, offset, footprint);
    *work = compact.work;
    tarn_region_finish(region);
    return ok ? TARN_OK : TARN_SYSTEM;
}
