/* Blocks, which a placement gives offsets to. A block is one lone storage, or the members of one
 * contiguous group, back to back: exact bytes, or in a padded group each padded to the alignment.
 * If given groups share members, members may overlap (streams/graph/layout.c).
 *
 *     offset                                          offset + size
 *     │ member 0 │ member 1 │ ... │ member k-1 ░░░░░░░│   ░ padding, reserved by the last member
 *     └ multiple of the block's alignment             └ multiple of the plan's alignment
 */
#ifndef TARN_PLANNER_PLACE_PROBLEM_BLOCK_H
#define TARN_PLANNER_PLACE_PROBLEM_BLOCK_H

#include "streams/base/region.h"
#include "streams/graph/graph.h"

struct tarn_block {
    const uint32_t *members; /* storage indices */
    uint32_t members_count;
    uint64_t size;      /* reserved */
    uint64_t alignment; /* of its offset */
};

/* All planned storages of a graph as blocks, or all persistent ones. Blocks stand in the order of
 * their first member's storage index; tarn_block_at puts one together. */
struct tarn_blocks {
    uint32_t count;
    uint32_t storages_begin, storages_count; /* the blocks' storages */
    uint32_t *members;                       /* block by block */
    uint32_t *members_begin;                 /* block -> the start of its members; count + 1 */
    uint8_t *alignment_shift;                /* by block: log2 of its alignment */
    /* By storage, counted from storages_begin. */
    uint64_t *reserved; /* reserved bytes: the last of an exact group has its padding */
    uint64_t *within;   /* its place inside its block */
};

static inline struct tarn_block tarn_block_at(const struct tarn_blocks *blocks, uint32_t b)
{
    uint32_t begin = blocks->members_begin[b], end = blocks->members_begin[b + 1];
    uint32_t first = blocks->members[begin] - blocks->storages_begin;
    uint32_t last = blocks->members[end - 1] - blocks->storages_begin;
    uint64_t size = blocks->within[last] + blocks->reserved[last];
    if (blocks->reserved[first] > size) size = blocks->reserved[first];
    return (struct tarn_block){.members = blocks->members + begin,
                               .members_count = end - begin,
                               .size = size,
                               .alignment = UINT64_C(1) << blocks->alignment_shift[b]};
}

/* Lives in the region. alignment: a power of two. TARN_BAD_INPUT: an arena in which
 * no two storages share bytes cannot be addressed with 64 bits. TARN_SYSTEM: no memory. */
enum tarn_status tarn_blocks_init(struct tarn_blocks *blocks, struct tarn_region *region,
                                  const struct tarn_graph *graph, bool persistent,
                                  uint64_t alignment, struct tarn_error *error);

/* Writes the offsets of the members of a block that begins at `start`: by storage, counted from
 * storages_begin. */
static inline void tarn_block_put(const struct tarn_blocks *blocks, struct tarn_block block,
                                  uint64_t start, uint64_t *offset)
{
    for (uint32_t i = 0; i < block.members_count; i++) {
        uint32_t a = block.members[i] - blocks->storages_begin;
        offset[a] = start + blocks->within[a];
    }
}

/* Places one block after the other, with offsets as above; returns the end. */
uint64_t tarn_blocks_place_in_a_row(const struct tarn_blocks *blocks, uint64_t *offset);

/* The highest reserved end; offset as above. */
uint64_t tarn_blocks_footprint(const struct tarn_blocks *blocks, const uint64_t *offset);

/* Do the blocks have all storages, as members that leave no bytes between them? For tests and
 * assertions; cost: linear in storages. */
bool tarn_blocks_is_valid(const struct tarn_blocks *blocks);

#endif
