/* Makes blocks from storages: lone ones keep their order, a group appears at the place of its first
 * member. Reserved sizes follow docs/how-it-works.md, "Reserved bytes and blocks": a lone storage
 * is rounded up to the alignment, a group is packed exactly and padded at its end, a padded group
 * has every member rounded up, an alignment of a storage's own restricts offsets only. Once a set
 * of blocks exists, every sum of sizes, offsets and padding is known to fit in 64 bits. Cost:
 * linear. */
#include "block.h"

#include <assert.h>

#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/order/reserved.h"

/* ---- Making ---- */

/* Lays the members of block b out from its start, and adds to *sum the bytes that it may take;
 * false: they do not fit in 64 bits. Lone storages are at 0 already, so only pages of `within` that
 * have groups are touched. */
static bool measure(struct tarn_blocks *blocks, uint32_t b, const struct tarn_graph *graph,
                    uint64_t alignment, uint64_t *sum)
{
    const uint32_t *ids = blocks->members + blocks->members_begin[b];
    struct tarn_list members = {ids, blocks->members_begin[b + 1] - blocks->members_begin[b]};
    uint64_t end = 0;
    if (!tarn_reserve(blocks->reserved, blocks->storages_begin, graph, members, alignment,
                      &alignment, sum))
        return false;
    blocks->alignment_shift[b] = (uint8_t)__builtin_ctzll(alignment);
    uint32_t group = graph->storages[ids[0]].group;
    const uint64_t *within = group != TARN_NONE ? graph->groups[group].within : NULL;
    for (size_t i = 0; group != TARN_NONE && i < members.count; i++) {
        uint32_t a = ids[i] - blocks->storages_begin;
        blocks->within[a] = within ? within[i] : end;
        end += blocks->reserved[a];
    }
    return true;
}

static void collect_members(struct tarn_blocks *blocks, const struct tarn_graph *graph)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < blocks->storages_count; i++) {
        uint32_t a = blocks->storages_begin + i, group = graph->storages[a].group;
        if (group != TARN_NONE && blocks->within[i] != 0) continue; /* met with its group */
        blocks->members_begin[blocks->count++] = at;
        if (group == TARN_NONE) {
            blocks->members[at++] = a;
            continue;
        }
        const struct tarn_group *list = &graph->groups[group];
        for (uint32_t k = 0; k < list->storages_count; k++) {
            blocks->within[list->storages[k] - blocks->storages_begin] = 1; /* met */
            blocks->members[at++] = list->storages[k];
        }
    }
    blocks->members_begin[blocks->count] = at;
}

/* Can the blocks be stacked, whatever their order? Then no offset in any placement overflows. */
static bool measure_all(struct tarn_blocks *blocks, const struct tarn_graph *graph,
                        uint64_t alignment)
{
    uint64_t sum = 0;
    for (uint32_t b = 0; b < blocks->count; b++)
        if (!measure(blocks, b, graph, alignment, &sum)) return false;
    return true;
}

static bool take_memory(struct tarn_blocks *blocks, struct tarn_region *region)
{
    size_t count = blocks->storages_count;
    blocks->members = tarn_region_take(region, count, sizeof *blocks->members);
    blocks->members_begin = tarn_region_take(region, count + 1, sizeof *blocks->members_begin);
    blocks->alignment_shift = tarn_region_take(region, count, sizeof *blocks->alignment_shift);
    blocks->reserved = tarn_region_take(region, count, sizeof *blocks->reserved);
    blocks->within = tarn_region_take(region, count, sizeof *blocks->within);
    return blocks->members && blocks->members_begin && blocks->alignment_shift &&
           blocks->reserved && blocks->within;
}

enum tarn_status tarn_blocks_init(struct tarn_blocks *blocks, struct tarn_region *region,
                                  const struct tarn_graph *graph, bool persistent,
                                  uint64_t alignment, struct tarn_error *error)
{
    uint32_t planned = graph->planned_count;
    assert(tarn_is_power_of_two(alignment));
    *blocks = (struct tarn_blocks){.storages_begin = persistent ? planned : 0,
                                   .storages_count =
                                       persistent ? graph->storages_count - planned : planned};
    if (!take_memory(blocks, region)) return tarn_error_no_memory(error);
    collect_members(blocks, graph);
    if (measure_all(blocks, graph, alignment)) {
        assert(tarn_blocks_is_valid(blocks));
        return TARN_OK;
    }
    return tarn_error_set(error, TARN_BAD_INPUT,
                          "the %s tensors need more than 2^64 bytes at alignment %llu; use a "
                          "smaller alignment",
                          persistent ? "persistent" : "planned", (unsigned long long)alignment);
}

/* ---- The simplest placement ---- */

uint64_t tarn_blocks_place_in_a_row(const struct tarn_blocks *blocks, uint64_t *offset)
{
    uint64_t end = 0;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        uint64_t start = 0;
        bool addressable = tarn_size_round_up(end, block.alignment, &start);
        assert(addressable);
        (void)addressable;
        tarn_block_put(blocks, block, start, offset);
        end = start + block.size;
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

/* ---- Validity ---- */

/* Members are storages of the blocks, the first one at the block's start, and the first or the last
 * one ends last. Adds their indices to *sum. */
static bool members_are_valid(const struct tarn_blocks *blocks, uint32_t b, uint64_t *sum)
{
    uint64_t end = 0;
    for (uint32_t i = blocks->members_begin[b]; i < blocks->members_begin[b + 1]; i++) {
        uint32_t a = blocks->members[i] - blocks->storages_begin; /* wraps below the first */
        uint64_t own;
        if (a >= blocks->storages_count) return false;
        if (!tarn_size_add(blocks->within[a], blocks->reserved[a], &own)) return false;
        if (own > end) end = own;
        *sum += a;
    }
    struct tarn_block block = tarn_block_at(blocks, b);
    return block.size == end && blocks->within[block.members[0] - blocks->storages_begin] == 0;
}

/* That no storage is in two blocks is only looked at by the sum of the members. */
bool tarn_blocks_is_valid(const struct tarn_blocks *blocks)
{
    uint64_t sum = 0, count = blocks->storages_count;
    if (blocks->members_begin[0] != 0 || blocks->members_begin[blocks->count] != count)
        return false;
    for (uint32_t b = 0; b < blocks->count; b++) {
        if (blocks->members_begin[b] >= blocks->members_begin[b + 1]) return false;
        if (blocks->alignment_shift[b] >= 64 || !members_are_valid(blocks, b, &sum)) return false;
    }
    return count == 0 || sum == count * (count - 1) / 2;
}
