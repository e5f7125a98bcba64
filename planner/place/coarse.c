/* Makes coarse problems. If most bytes are in storages whose sizes are multiples of one large size,
 * such as activations of one width, then few other storages, of some bytes each, make every offset
 * a different one, and search looks at thousands of placements that are the same but for them:
 *
 *     grain 4    sizes 12, 4, 8, 9, 1    coarse 12, 4, 8, 8, none
 *
 * The grain is the largest size of a storage such that the storages of the heaviest antichain,
 * rounded down, weigh nearly as much as before. A placement of the coarse problem is made fine by
 * compaction, with the storages that were left out on top: the result is higher by about what was
 * rounded off. Cost: sorting, a look at the antichain for each size, and an antichain. */
#include "coarse.h"

#include <stdlib.h>

/* The coarse antichain weighs at least 1 - 1/LOSS_SHARE of the bound, and at most UNITS_MAX grains:
 * with a smaller grain nothing becomes simpler. */
enum { LOSS_SHARE = 1000, UNITS_MAX = 4096 };
/* Sizes that are tried, the largest first. */
enum { GRAINS_MAX = 256 };

static int compare_sizes(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a < b) - (a > b);
}

static uint64_t round_down(uint64_t size, uint64_t grain) { return size / grain * grain; }

/* The sizes in the heaviest antichain. */
static uint32_t list_antichain(const struct tarn_problem *problem, uint64_t *sizes)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < problem->blocks.storages_count; a++)
        if (tarn_problem_in_antichain(problem, a)) sizes[count++] = problem->blocks.reserved[a];
    return count;
}

/* Do they weigh nearly as much as the bound when they are rounded down? */
static bool keeps_bound(const uint64_t *sizes, uint32_t count, uint64_t grain, uint64_t bound)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += round_down(sizes[i], grain);
    return sum >= bound - bound / LOSS_SHARE;
}

static uint64_t largest_alignment(const struct tarn_blocks *blocks)
{
    uint64_t alignment = 1;
    for (uint32_t b = 0; b < blocks->count; b++)
        if (tarn_block_at(blocks, b).alignment > alignment)
            alignment = tarn_block_at(blocks, b).alignment;
    return alignment;
}

/* 0: there is none. */
static uint64_t find_grain(const struct tarn_problem *problem, struct tarn_region *region,
                           uint64_t bound)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    uint64_t alignment = largest_alignment(blocks), grain = 0;
    uint32_t count = blocks->storages_count;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint64_t *sizes = tarn_region_copy(region, blocks->reserved, count, sizeof *sizes);
    uint64_t *heaviest = tarn_region_take(region, count, sizeof *heaviest);
    if (!sizes || !heaviest) return 0;
    uint32_t heaviest_count = list_antichain(problem, heaviest);
    qsort(sizes, count, sizeof *sizes, compare_sizes);
    for (uint32_t i = 0, tries = 0; i < count && grain == 0 && tries < GRAINS_MAX; i++) {
        if (i > 0 && sizes[i] == sizes[i - 1]) continue;
        if (sizes[i] < bound / UNITS_MAX) break;
        tries++;
        if (sizes[i] % alignment == 0 && keeps_bound(heaviest, heaviest_count, sizes[i], bound))
            grain = sizes[i];
    }
    bool changes = false;
    for (uint32_t i = 0; i < count && grain > 0; i++) changes |= sizes[i] % grain > 0;
    tarn_region_release(region, mark);
    return changes ? grain : 0;
}

/* The storages of the part, coarse, and what the coarse problem weighs. */
static enum tarn_status make_coarse(struct tarn_coarse *coarse, struct tarn_region *region,
                                    const uint32_t *storages, uint32_t count)
{
    const struct tarn_problem *fine = coarse->fine;
    struct tarn_problem *problem = &coarse->part.problem;
    uint32_t storages_count = fine->blocks.storages_count;
    struct tarn_antichain antichain;
    uint32_t *block_of = tarn_region_take(region, storages_count, sizeof *block_of);
    uint64_t *weight = tarn_region_take(region, storages_count, sizeof *weight);
    if (!block_of || !weight) return TARN_SYSTEM;
    for (uint32_t b = 0; b < storages_count; b++)
        block_of[tarn_block_at(&fine->blocks, b).members[0]] = b;
    for (uint32_t a = 0; a < storages_count; a++)
        weight[a] = round_down(fine->blocks.reserved[a], coarse->grain);
    enum tarn_status status =
        tarn_part_init(&coarse->part, region, fine, block_of, storages, count);
    if (status == TARN_OK)
        status =
            tarn_antichain_init(&antichain, region, &fine->conflicts.reuse, fine->graph, weight);
    if (status != TARN_OK) return status;
    coarse->bound = antichain.bound;
    for (uint32_t i = 0; i < count; i++) {
        problem->blocks.reserved[i] = weight[storages[i]];
        problem->in_antichain[i] =
            tarn_antichain_has(antichain.threshold, &fine->conflicts.reuse, storages[i]);
    }
    return TARN_OK;
}

enum tarn_status tarn_coarse_init(struct tarn_coarse *coarse, struct tarn_region *region,
                                  const struct tarn_problem *fine, uint64_t bound, bool *is_worth)
{
    uint32_t count = 0, storages_count = fine->blocks.storages_count;
    *coarse = (struct tarn_coarse){.fine = fine};
    *is_worth = false;
    if (fine->blocks.count != storages_count) return TARN_OK; /* groups are not rounded */
    coarse->grain = find_grain(fine, region, bound);
    if (coarse->grain == 0) return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
    uint32_t *storages = tarn_region_take(region, storages_count, sizeof *storages);
    uint32_t *at = tarn_region_take(region, storages_count, sizeof *at);
    if (!storages || !at) return TARN_SYSTEM;
    for (uint32_t a = 0; a < storages_count; a++) at[fine->conflicts.slot_of[a]] = a;
    for (uint32_t slot = 0; slot < storages_count; slot++)
        if (fine->blocks.reserved[at[slot]] >= coarse->grain) storages[count++] = at[slot];
    *is_worth = true;
    return make_coarse(coarse, region, storages, count);
}

/* ---- Back to the fine problem ---- */

enum tarn_status tarn_coarse_refine(const struct tarn_coarse *coarse, const uint64_t *coarse_offset,
                                    const struct tarn_compact_options *options, uint64_t *offset,
                                    uint64_t *footprint, uint64_t *work)
{
    const struct tarn_blocks *own = &coarse->part.problem.blocks;
    uint64_t last = tarn_blocks_footprint(own, coarse_offset);
    for (uint32_t a = 0; a < coarse->fine->blocks.storages_count; a++) offset[a] = last;
    for (uint32_t i = 0; i < own->storages_count; i++)
        offset[coarse->part.origin[i]] = coarse_offset[i];
    *footprint = UINT64_MAX;
    return tarn_compact_place(coarse->fine, options, offset, footprint, work);
}
