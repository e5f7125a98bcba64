/* Blocks in conflict with all others.
 *
 *     a solution ▐ others ▐ b ▐ others ▐ c ▐ others      the same ▐ b ▐ c ▐ others
 *
 * Nothing else lies where such a block does: it can be cut out of any solution, what is above it
 * sinks by its size, and it goes to the bottom. Only those are taken whose sizes keep all others
 * aligned. Most blocks of an antichain
 * outlive all the rest of a core, so that few are left to be searched.
 * Cost: a mask of conflicts for each free storage. */
#include "ground.h"

#include <stdlib.h>
#include <string.h>

#include "streams/base/bitset.h"

/* Notes what is free; returns the largest alignment of it. */
static uint64_t note_free(struct tarn_exact_ground *ground)
{
    const struct tarn_blocks *blocks = ground->problem->blocks;
    uint64_t alignment = 1;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        if (ground->is_left_out[b]) continue;
        if (block.alignment > alignment) alignment = block.alignment;
        for (uint32_t k = 0; k < block.members_count; k++)
            tarn_set_add(ground->free, ground->problem->conflicts->slot_of[block.members[k]]);
    }
    return alignment;
}

static bool meets_all(struct tarn_exact_ground *ground, struct tarn_block block)
{
    const struct tarn_conflicts *conflicts = ground->problem->conflicts;
    for (uint32_t k = 0; k < block.members_count; k++) {
        tarn_conflicts_mask(conflicts, block.members[k], ground->mask);
        for (uint32_t m = 0; m < block.members_count; m++)
            tarn_set_add(ground->mask, conflicts->slot_of[block.members[m]]);
        for (uint32_t w = 0; w < conflicts->words_count; w++)
            if (ground->free[w] & ~ground->mask[w]) return false;
    }
    return true;
}

static void take_to_bottom(struct tarn_exact_ground *ground)
{
    const struct tarn_blocks *blocks = ground->problem->blocks;
    uint64_t alignment = note_free(ground);
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        if (ground->is_left_out[b] || block.size % alignment != 0) continue;
        if (!meets_all(ground, block)) continue;
        ground->blocks[ground->count++] = b;
        ground->size += block.size;
    }
    for (uint32_t i = 0; i < ground->count; i++) ground->is_left_out[ground->blocks[i]] = true;
}

static bool allocate(struct tarn_exact_ground *ground, const struct tarn_problem *problem,
                     const bool *is_left_out)
{
    size_t count = (size_t)problem->blocks->count + 1;
    size_t words = (size_t)problem->conflicts->words_count + 1;
    *ground = (struct tarn_exact_ground){.problem = problem};
    ground->is_left_out = calloc(count, sizeof *ground->is_left_out);
    ground->free = calloc(words, sizeof *ground->free);
    ground->mask = calloc(words, sizeof *ground->mask);
    ground->blocks = calloc(count, sizeof *ground->blocks);
    if (!ground->is_left_out || !ground->free || !ground->mask || !ground->blocks) return false;
    if (is_left_out) memcpy(ground->is_left_out, is_left_out, problem->blocks->count);
    return true;
}

enum tarn_status tarn_exact_ground_init(struct tarn_exact_ground *ground,
                                        const struct tarn_problem *problem, const bool *is_left_out)
{
    if (!allocate(ground, problem, is_left_out)) return TARN_SYSTEM;
    take_to_bottom(ground);
    return TARN_OK;
}

void tarn_exact_ground_finish(struct tarn_exact_ground *ground)
{
    free(ground->is_left_out);
    free(ground->free);
    free(ground->mask);
    free(ground->blocks);
}

void tarn_exact_ground_lift(const struct tarn_exact_ground *ground, uint64_t *offset)
{
    const struct tarn_blocks *blocks = ground->problem->blocks;
    uint64_t top = 0;
    for (uint32_t b = 0; b < blocks->count && ground->count > 0; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        if (!ground->is_left_out[b])
            tarn_block_put(blocks, block, ground->size + offset[block.members[0]], offset);
    }
    for (uint32_t i = 0; i < ground->count; i++) {
        const struct tarn_block block = tarn_block_at(blocks, ground->blocks[i]);
        tarn_block_put(blocks, block, top, offset);
        top += block.size;
    }
}
