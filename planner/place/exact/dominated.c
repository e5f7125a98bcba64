/* Finds blocks in conflict with all others, which need no search.
 *
 *     a solution ▐ others ▐ b ▐ others ▐ c ▐ others      the same ▐ b ▐ c ▐ others
 *
 * No other block shares bytes with such a block: it can be cut out of any solution, the blocks
 * above it sink by its size, and it goes to the bottom. Only blocks whose sizes keep all others
 * aligned are taken. Most blocks of an antichain outlive all other blocks of a core, so few blocks
 * are left to search. Cost: a mask of conflicts for each free storage. */
#include "instance.h"

#include <assert.h>
#include <string.h>

#include "streams/base/bitset.h"

/* Notes the free blocks; returns their largest alignment. */
static uint64_t note_free(struct tarn_exact_dominated *dominated)
{
    const struct tarn_blocks *blocks = &dominated->problem->blocks;
    uint64_t alignment = 1;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        if (dominated->is_left_out[b]) continue;
        if (block.alignment > alignment) alignment = block.alignment;
        for (uint32_t k = 0; k < block.members_count; k++)
            tarn_set_add(dominated->free, dominated->problem->conflicts.slot_of[block.members[k]]);
    }
    return alignment;
}

static bool meets_all(struct tarn_exact_dominated *dominated, struct tarn_block block)
{
    const struct tarn_conflicts *conflicts = &dominated->problem->conflicts;
    for (uint32_t k = 0; k < block.members_count; k++) {
        tarn_conflicts_mask(conflicts, block.members[k], dominated->mask);
        for (uint32_t m = 0; m < block.members_count; m++)
            tarn_set_add(dominated->mask, conflicts->slot_of[block.members[m]]);
        for (uint32_t w = 0; w < conflicts->words_count; w++)
            if (dominated->free[w] & ~dominated->mask[w]) return false;
    }
    return true;
}

/* Has the block no bytes that another one could have, but for lifetimes? */
static bool is_solid(const struct tarn_blocks *blocks, struct tarn_block block)
{
    uint64_t end = 0;
    for (uint32_t k = 0; k < block.members_count; k++) {
        uint32_t a = block.members[k] - blocks->storages_begin;
        if (blocks->within[a] != end) return false;
        end += blocks->reserved[a];
    }
    return end == block.size;
}

static void take_to_bottom(struct tarn_exact_dominated *dominated)
{
    const struct tarn_blocks *blocks = &dominated->problem->blocks;
    uint64_t alignment = note_free(dominated);
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        if (dominated->is_left_out[b] || block.size % alignment != 0) continue;
        if (!is_solid(blocks, block) || !meets_all(dominated, block)) continue;
        dominated->blocks[dominated->count++] = b;
        dominated->size += block.size;
    }
    for (uint32_t i = 0; i < dominated->count; i++)
        dominated->is_left_out[dominated->blocks[i]] = true;
}

enum tarn_status tarn_exact_dominated_init(struct tarn_exact_dominated *dominated,
                                           struct tarn_region *region,
                                           const struct tarn_problem *problem,
                                           const bool *is_left_out, const uint32_t *leader)
{
    size_t count = problem->blocks.count, words = problem->conflicts.words_count;
    *dominated = (struct tarn_exact_dominated){.problem = problem};
    assert(problem->conflicts.row);
    dominated->is_left_out = tarn_region_take(region, count, sizeof *dominated->is_left_out);
    dominated->free = tarn_region_take(region, words, sizeof *dominated->free);
    dominated->mask = tarn_region_take(region, words, sizeof *dominated->mask);
    dominated->blocks = tarn_region_take(region, count, sizeof *dominated->blocks);
    if (region->is_exhausted) return TARN_SYSTEM;
    if (is_left_out) memcpy(dominated->is_left_out, is_left_out, count * sizeof *is_left_out);
    for (uint32_t b = 0; leader && b < count; b++)
        if (leader[b] != b) dominated->is_left_out[b] = true;
    take_to_bottom(dominated);
    return TARN_OK;
}

void tarn_exact_dominated_lift(const struct tarn_exact_dominated *dominated, uint64_t *offset)
{
    const struct tarn_blocks *blocks = &dominated->problem->blocks;
    uint64_t top = 0;
    for (uint32_t b = 0; b < blocks->count && dominated->count > 0; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        if (!dominated->is_left_out[b])
            tarn_block_put(blocks, block, dominated->size + offset[block.members[0]], offset);
    }
    for (uint32_t i = 0; i < dominated->count; i++) {
        const struct tarn_block block = tarn_block_at(blocks, dominated->blocks[i]);
        tarn_block_put(blocks, block, top, offset);
        top += block.size;
    }
}
