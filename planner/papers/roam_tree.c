/* Places by ROAM's tree. Each leaf gets a layout of its own: its activations side by side from
 * offset 0, with the ones that die last at the bottom. All other storages are placed above them, or
 * in their bytes while they are not alive, by best-fit in the best of a few orders. (The paper
 * solves an integer program.) Then layouts are concatenated:
 *
 *     leaf 0   │              │         │ act. │ temporaries    │   base[0] = base[1] + act. of 1
 *     leaf 1   │              │   act.  │ temporaries    │          base[1] = base[2] + act. of 2
 *     leaf 2   │ activations  │ temporaries │                       base[2] = 0
 *
 * So activations of different leaves never overlap. Temporaries may; overlapping ones are taken
 * out, small ones before large ones, and placed anew by best-fit. Conflicts do not depend on
 * leaves: they follow from the order of the streams, so the result is safe for any number of
 * streams. Blocks of several members move as one. Source: H. Shu et al., "ROAM", section IV-B. As
 * printed, equation 9 puts the longest-lived layout on top; its text and Figure 5 say the opposite,
 * which works. Cost: the cost of Single Object, for each order of the leaves' blocks. */
#include "papers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "planner/place/somas/somas.h"
#include "roam_leaves.h"
#include "streams/base/checked.h"
#include "subgraph_tree.h"

enum order { BY_SIZE, BY_LIFE, BY_AREA, ORDERS };

struct layout {
    const struct tarn_problem *problem;
    struct tarn_region region;
    struct tarn_roam_leaves leaves;
    struct tarn_placer *placer;
    uint64_t *offset; /* written by the placer */
    uint64_t *start;  /* block -> its offset in the layout of its leaf, then in the whole layout */
    uint32_t *queue;  /* blocks, leaf by leaf from the innermost */
    double *priority; /* by block: the higher, the earlier */
    uint64_t *base;   /* by leaf; before that the end of its activations */
    uint64_t alignment; /* of all blocks */
};

/* ---- Orders ---- */

static double life_of(const struct tarn_roam_block *block)
{
    return block->death - block->birth + 1.0;
}

static void priority_blocks(struct layout *layout, const uint32_t *blocks, uint32_t count,
                            enum order order)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t b = blocks[i];
        double life = life_of(&layout->leaves.blocks[b]);
        double size = (double)tarn_block_at(&layout->problem->blocks, b).size;
        layout->priority[b] = order == BY_SIZE ? size : order == BY_LIFE ? life : size * life;
    }
}

/* The data that a comparison needs, so that sorting needs no state of its own. */
struct ranked {
    double priority;
    uint32_t birth, block;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->priority != b->priority) return a->priority > b->priority ? -1 : 1;
    if (a->birth != b->birth) return a->birth < b->birth ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

static bool sort_blocks(struct layout *layout, uint32_t *blocks, uint32_t count)
{
    struct tarn_region_mark mark = tarn_region_mark(&layout->region);
    struct ranked *ranked = tarn_region_take(&layout->region, count, sizeof *ranked);
    if (!ranked) return false;
    for (uint32_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){layout->priority[blocks[i]],
                                    layout->leaves.blocks[blocks[i]].birth, blocks[i]};
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    for (uint32_t i = 0; i < count; i++) blocks[i] = ranked[i].block;
    tarn_region_release(&layout->region, mark);
    return true;
}

static struct tarn_block block_at(const struct layout *layout, uint32_t b)
{
    return tarn_block_at(&layout->problem->blocks, b);
}

static uint64_t placed_at(const struct layout *layout, uint32_t b)
{
    return layout->offset[block_at(layout, b).members[0]];
}

/* Rounding cannot fail: blocks that are stacked are addressable. */
static uint64_t round_up(uint64_t bytes, uint64_t alignment)
{
    uint64_t rounded = bytes;
    (void)tarn_size_round_up(bytes, alignment, &rounded);
    return rounded;
}

/* ---- Leaves ---- */

/* Puts the activations of a leaf, which come first in its blocks, from the bottom up; returns their
 * end. */
static uint64_t put_activations(struct layout *layout, const uint32_t *blocks, uint32_t count)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        end = round_up(end, block_at(layout, blocks[i]).alignment);
        tarn_placer_put(layout->placer, block_at(layout, blocks[i]), end);
        end += block_at(layout, blocks[i]).size;
    }
    return end;
}

/* Makes one layout of a leaf; *peak: its end. */
static enum tarn_status lay_out(struct layout *layout, const uint32_t *blocks, uint32_t activations,
                                uint32_t count, uint64_t *peak)
{
    tarn_placer_clear(layout->placer);
    *peak = put_activations(layout, blocks, activations);
    for (uint32_t i = activations; i < count; i++) {
        const struct tarn_block block = block_at(layout, blocks[i]);
        if (tarn_placer_place(layout->placer, block) != TARN_OK) return TARN_SYSTEM;
        uint64_t end = placed_at(layout, blocks[i]) + block.size;
        if (end > *peak) *peak = end;
    }
    return TARN_OK;
}

/* Sorts blocks that are alive across the turning cut to the front, the last one to die first. */
static bool front_activations(struct layout *layout, uint32_t *blocks, uint32_t count,
                              uint32_t *activations)
{
    *activations = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct tarn_roam_block *known = &layout->leaves.blocks[blocks[i]];
        layout->priority[blocks[i]] = known->activation ? known->death : 0;
        *activations += known->activation;
    }
    return sort_blocks(layout, blocks, count);
}

static enum tarn_status solve_leaf(struct layout *layout, uint32_t *blocks, uint32_t count,
                                   uint32_t leaf)
{
    uint32_t activations;
    uint64_t best = UINT64_MAX, peak;
    if (!front_activations(layout, blocks, count, &activations)) return TARN_SYSTEM;
    for (enum order order = BY_SIZE; order < ORDERS; order++) {
        priority_blocks(layout, blocks + activations, count - activations, order);
        if (!sort_blocks(layout, blocks + activations, count - activations)) return TARN_SYSTEM;
        if (lay_out(layout, blocks, activations, count, &peak) != TARN_OK) return TARN_SYSTEM;
        if (peak >= best) continue;
        best = peak;
        for (uint32_t i = 0; i < count; i++)
            layout->start[blocks[i]] = placed_at(layout, blocks[i]);
    }
    uint32_t top = activations > 0 ? blocks[activations - 1] : TARN_NONE;
    layout->base[leaf] =
        top == TARN_NONE
            ? 0
            : round_up(layout->start[top] + block_at(layout, top).size, layout->alignment);
    return TARN_OK;
}

/* Lists the blocks leaf by leaf; begin: by leaf, and the end. */
static void queue_leaves(struct layout *layout, uint32_t *begin)
{
    uint32_t count = layout->problem->blocks.count, leaves = layout->leaves.count;
    for (uint32_t b = 0; b < count; b++) begin[layout->leaves.blocks[b].leaf + 2]++;
    for (uint32_t l = 0; l < leaves; l++) begin[l + 2] += begin[l + 1];
    for (uint32_t b = 0; b < count; b++)
        layout->queue[begin[layout->leaves.blocks[b].leaf + 1]++] = b;
}

static enum tarn_status solve_leaves(struct layout *layout)
{
    uint32_t *begin =
        tarn_region_take(&layout->region, (size_t)layout->leaves.count + 2, sizeof *begin);
    enum tarn_status status = begin ? TARN_OK : TARN_SYSTEM;
    if (begin) queue_leaves(layout, begin);
    for (uint32_t l = 0; l < layout->leaves.count && status == TARN_OK; l++)
        status = solve_leaf(layout, layout->queue + begin[l], begin[l + 1] - begin[l], l);
    return status;
}

/* ---- Concatenation ---- */

static void add_bases(struct layout *layout)
{
    uint64_t base = 0;
    for (uint32_t l = layout->leaves.count; l-- > 0;) {
        uint64_t activations = layout->base[l];
        layout->base[l] = base;
        base += activations;
    }
    for (uint32_t b = 0; b < layout->problem->blocks.count; b++)
        layout->start[b] += layout->base[layout->leaves.blocks[b].leaf];
}

/* Places every block at its layout's offset, in that order. If a block overlaps an earlier one, it
 * is placed by best-fit. */
static enum tarn_status join(struct layout *layout, const uint32_t *temporaries, uint32_t count)
{
    tarn_placer_clear(layout->placer);
    for (uint32_t b = 0; b < layout->problem->blocks.count; b++)
        if (layout->leaves.blocks[b].activation)
            tarn_placer_put(layout->placer, block_at(layout, b), layout->start[b]);
    for (uint32_t i = 0; i < count; i++) {
        const struct tarn_block block = block_at(layout, temporaries[i]);
        bool fits;
        if (tarn_placer_try(layout->placer, block, layout->start[temporaries[i]], &fits) != TARN_OK)
            return TARN_SYSTEM;
        if (!fits && tarn_placer_place(layout->placer, block) != TARN_OK) return TARN_SYSTEM;
    }
    return TARN_OK;
}

/* With each order of the temporaries; the best one stays. */
static enum tarn_status concatenate(struct layout *layout, uint64_t *result, uint64_t *footprint)
{
    const struct tarn_blocks *blocks = &layout->problem->blocks;
    uint32_t count = 0;
    *footprint = UINT64_MAX;
    add_bases(layout);
    for (uint32_t b = 0; b < blocks->count; b++)
        if (!layout->leaves.blocks[b].activation) layout->queue[count++] = b;
    for (enum order order = BY_SIZE; order < ORDERS; order++) {
        priority_blocks(layout, layout->queue, count, order);
        if (!sort_blocks(layout, layout->queue, count)) return TARN_SYSTEM;
        if (join(layout, layout->queue, count) != TARN_OK) return TARN_SYSTEM;
        uint64_t end = tarn_blocks_footprint(blocks, layout->offset);
        if (end >= *footprint) continue;
        *footprint = end;
        memcpy(result, layout->offset, blocks->storages_count * sizeof *result);
    }
    return TARN_OK;
}

/* ---- The layout ---- */

static bool init(struct layout *layout, uint32_t node_limit)
{
    const struct tarn_blocks *blocks = &layout->problem->blocks;
    struct tarn_region *region = &layout->region;
    size_t count = blocks->count;
    if (tarn_roam_leaves_init(&layout->leaves, region, layout->problem, node_limit) != TARN_OK)
        return false;
    for (uint32_t b = 0; b < blocks->count; b++)
        if (tarn_block_at(blocks, b).alignment > layout->alignment)
            layout->alignment = tarn_block_at(blocks, b).alignment;
    layout->offset = tarn_region_take(region, blocks->storages_count, sizeof *layout->offset);
    layout->start = tarn_region_take(region, count, sizeof *layout->start);
    layout->queue = tarn_region_take(region, count, sizeof *layout->queue);
    layout->priority = tarn_region_take(region, count, sizeof *layout->priority);
    layout->base = tarn_region_take(region, layout->leaves.count, sizeof *layout->base);
    if (region->is_exhausted) return false;
    layout->placer = tarn_placer_create(region, layout->problem, layout->offset);
    return layout->placer != NULL;
}

enum tarn_status tarn_roam_place(const struct tarn_problem *problem, uint32_t node_limit,
                                 uint64_t *offset, uint64_t *footprint)
{
    struct layout layout = {.problem = problem, .alignment = 1};
    assert(problem->conflicts.row);
    enum tarn_status status =
        init(&layout, node_limit > 0 ? node_limit : TARN_NODE_LIMIT) ? TARN_OK : TARN_SYSTEM;
    if (status == TARN_OK) status = solve_leaves(&layout);
    if (status == TARN_OK) status = concatenate(&layout, offset, footprint);
    tarn_region_finish(&layout.region);
    return status;
}
