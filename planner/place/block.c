/* Blocks from storages: lone ones keep their order, a group appears where its first member would.
 * Reserved sizes follow DESIGN.md, section 4: a lone storage is rounded up to the alignment, a
 * group is packed exactly and padded at its end, an alignment of one's own restricts offsets only.
 * Once a set of blocks exists, every sum of sizes, offsets and padding is known to fit in 64 bits.
 * Cost: linear. */
#include "block.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../../streams/graph/error.h"
#include "../../streams/graph/size.h"

/* ---- Making ---- */

/* Lays the members out from the block's start; false when a size overflows. */
static bool measure(struct tarn_blocks *blocks, struct tarn_block *block,
                    const struct tarn_graph *graph, uint64_t alignment)
{
    uint64_t end = 0, own = graph->storages[block->members[0]].alignment;
    uint32_t last = block->members[block->members_count - 1] - blocks->storages_begin;
    for (uint32_t i = 0; i < block->members_count; i++) {
        uint64_t size = graph->storages[block->members[i]].size;
        blocks->within[block->members[i] - blocks->storages_begin] = end;
        blocks->reserved[block->members[i] - blocks->storages_begin] = size;
        if (!tarn_size_add(end, size, &end)) return false;
    }
    if (!tarn_size_round_up(end, alignment, &block->size)) return false;
    blocks->reserved[last] = block->size - blocks->within[last];
    block->alignment = own > alignment ? own : alignment;
    return true;
}

static void collect_members(struct tarn_blocks *blocks, const struct tarn_graph *graph)
{
    uint32_t *members = blocks->members;
    for (uint32_t i = 0; i < blocks->storages_count; i++) {
        uint32_t a = blocks->storages_begin + i, group = graph->storages[a].group;
        struct tarn_block *block = &blocks->blocks[blocks->count];
        if (group == TARN_NONE) {
            *members = a;
            *block = (struct tarn_block){.members = members, .members_count = 1};
        } else if (blocks->within[i] == 0) { /* first of its group to be met */
            const struct tarn_group *list = &graph->groups[group];
            memcpy(members, list->storages, list->storages_count * sizeof *members);
            *block = (struct tarn_block){.members = members, .members_count = list->storages_count};
            for (uint32_t k = 0; k < list->storages_count; k++)
                blocks->within[list->storages[k] - blocks->storages_begin] = 1; /* met */
        } else {
            continue;
        }
        members += block->members_count;
        blocks->count++;
    }
}

/* Can the blocks stand in a row, whatever their order? Then no offset in any placement overflows.
 */
static bool measure_all(struct tarn_blocks *blocks, const struct tarn_graph *graph,
                        uint64_t alignment)
{
    uint64_t sum = 0;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block *block = &blocks->blocks[b];
        if (!measure(blocks, block, graph, alignment) || !tarn_size_add(sum, block->size, &sum) ||
            !tarn_size_add(sum, block->alignment, &sum))
            return false;
    }
    return true;
}

static bool allocate(struct tarn_blocks *blocks)
{
    size_t count = (size_t)blocks->storages_count + 1;
    blocks->blocks = calloc(count, sizeof *blocks->blocks);
    blocks->members = calloc(count, sizeof *blocks->members);
    blocks->reserved = calloc(count, sizeof *blocks->reserved);
    blocks->within = calloc(count, sizeof *blocks->within);
    return blocks->blocks && blocks->members && blocks->reserved && blocks->within;
}

enum tarn_status tarn_blocks_init(struct tarn_blocks *blocks, const struct tarn_graph *graph,
                                  bool persistent, uint64_t alignment, struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    assert(tarn_is_power_of_two(alignment));
    memset(blocks, 0, sizeof *blocks);
    blocks->storages_begin = persistent ? graph->planned_count : 0;
    blocks->storages_count =
        persistent ? graph->storages_count - graph->planned_count : graph->planned_count;
    if (!allocate(blocks)) {
        status = tarn_error_no_memory(error);
        goto fail;
    }
    collect_members(blocks, graph);
    if (!measure_all(blocks, graph, alignment)) {
        status =
            tarn_error_set(error, TARN_BAD_INPUT,
                           "the %s tensors need more than 2^64 bytes at alignment %llu; use a "
                           "smaller alignment",
                           persistent ? "persistent" : "planned", (unsigned long long)alignment);
        goto fail;
    }
    return TARN_OK;
fail:
    tarn_blocks_finish(blocks);
    return status;
}

void tarn_blocks_finish(struct tarn_blocks *blocks)
{
    free(blocks->blocks);
    free(blocks->members);
    free(blocks->reserved);
    free(blocks->within);
    memset(blocks, 0, sizeof *blocks);
}

/* ---- The simplest placement ---- */

uint64_t tarn_blocks_place_in_a_row(const struct tarn_blocks *blocks, uint64_t *offset)
{
    uint64_t end = 0;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block *block = &blocks->blocks[b];
        uint64_t start = 0;
        bool addressable = tarn_size_round_up(end, block->alignment, &start);
        assert(addressable);
        (void)addressable;
        for (uint32_t i = 0; i < block->members_count; i++) {
            uint32_t a = block->members[i] - blocks->storages_begin;
            offset[a] = start + blocks->within[a];
        }
        end = start + block->size;
    }
    return end;
}

uint64_t tarn_blocks_footprint(const struct tarn_blocks *blocks, const uint64_t *offset)
{
    uint64_t footprint = 0;
    for (uint32_t a = 0; a < blocks->storages_count; a++) {
        uint64_t end = offset[a] + blocks->reserved[a];
        if (end > footprint) footprint = end;
    }
    return footprint;
}
