/* Segments are cut into blocks; a request takes the smallest free block of its stream and size
 * class that is large enough, and leaves the rest as a block where that is worth it; a freed block
 * merges with free neighbours; a segment is never given back. Sizes and rules as in PyTorch's
 * c10/cuda/CUDACachingAllocator.cpp with default settings. Cost: a scan of all blocks per request.
 */
#include "caching_allocator.h"

#include <stdbool.h>
#include <stdlib.h>

#include "streams/graph/graph.h"

#define UNIT UINT64_C(512)
#define SMALL_MAX (UINT64_C(1) << 20)       /* requests up to this come from small segments */
#define SMALL_SEGMENT (UINT64_C(2) << 20)   /* of that size */
#define MIDDLE_SEGMENT (UINT64_C(20) << 20) /* for larger ones below ... */
#define MIDDLE_MAX (UINT64_C(10) << 20)     /* ... this; others get a segment of their own, */
#define LARGE_UNIT (UINT64_C(2) << 20)      /* in multiples of this */

struct block {
    struct block *before, *after; /* neighbours in the segment */
    struct block *next;           /* of all */
    uint64_t size;
    uint32_t stream;
    bool small, used;
};

struct allocator {
    struct block *blocks;
    uint64_t reserved;
};

static struct block *make_block(struct allocator *allocator, uint64_t size, uint32_t stream,
                                bool small)
{
    struct block *block = calloc(1, sizeof *block);
    if (!block) abort();
    block->size = size;
    block->stream = stream;
    block->small = small;
    block->next = allocator->blocks;
    allocator->blocks = block;
    return block;
}

static struct block *best_fit(const struct allocator *allocator, uint64_t size, uint32_t stream)
{
    struct block *best = NULL;
    for (struct block *block = allocator->blocks; block; block = block->next) {
        bool fits = !block->used && block->size >= size && block->stream == stream &&
                    block->small == (size <= SMALL_MAX);
        if (fits && (!best || block->size < best->size)) best = block;
    }
    return best;
}

static struct block *make_segment(struct allocator *allocator, uint64_t size, uint32_t stream)
{
    uint64_t segment = (size + LARGE_UNIT - 1) / LARGE_UNIT * LARGE_UNIT;
    if (size <= SMALL_MAX)
        segment = SMALL_SEGMENT;
    else if (size < MIDDLE_MAX)
        segment = MIDDLE_SEGMENT;
    allocator->reserved += segment;
    return make_block(allocator, segment, stream, size <= SMALL_MAX);
}

static struct block *allocate(struct allocator *allocator, uint64_t size, uint32_t stream)
{
    size = size < UNIT ? UNIT : (size + UNIT - 1) / UNIT * UNIT;
    struct block *block = best_fit(allocator, size, stream);
    if (!block) block = make_segment(allocator, size, stream);
    uint64_t rest = block->size - size;
    if (block->small ? rest >= UNIT : rest > SMALL_MAX) {
        struct block *left = make_block(allocator, rest, stream, block->small);
        left->before = block;
        left->after = block->after;
        if (left->after) left->after->before = left;
        block->after = left;
        block->size = size;
    }
    block->used = true;
    return block;
}

/* `second` becomes part of `first`, and an empty block that nobody finds. */
static void merge(struct block *first, struct block *second)
{
    first->size += second->size;
    first->after = second->after;
    if (first->after) first->after->before = first;
    second->used = true;
    second->size = 0;
}

static void give_back(struct block *block)
{
    block->used = false;
    if (block->after && !block->after->used) merge(block, block->after);
    if (block->before && !block->before->used) merge(block->before, block);
}

/* Last user of every storage, by place in list order. */
static uint32_t *find_ends(const struct tarn_graph *graph)
{
    uint32_t *ends = calloc((size_t)graph->storages_count + 1, sizeof *ends);
    if (!ends) abort();
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        ends[a] = graph->rank[storage->producer];
        for (uint32_t i = 0; i < storage->users_count; i++) {
            uint32_t rank = graph->rank[tarn_storage_users(graph, storage)[i]];
            if (rank > ends[a]) ends[a] = rank;
        }
        if (storage->pinned) ends[a] = graph->ops_count;
    }
    return ends;
}

/* Storages sorted by where they begin, and by where they end, would be faster; this is not what is
 * measured. */
static void run_iteration(struct allocator *allocator, const struct tarn_graph *graph,
                          const uint32_t *ends, struct block **blocks)
{
    for (uint32_t rank = 0; rank <= graph->ops_count; rank++) {
        for (uint32_t a = 0; a < graph->planned_count && rank < graph->ops_count; a++) {
            if (graph->rank[graph->storages[a].producer] == rank)
                blocks[a] = allocate(allocator, graph->storages[a].size,
                                     graph->ops[graph->storages[a].producer].stream);
        }
        for (uint32_t a = 0; a < graph->planned_count; a++) {
            if (ends[a] == rank) give_back(blocks[a]);
        }
    }
}

uint64_t caching_allocator_replay(const struct tarn_graph *graph, uint32_t iterations)
{
    struct allocator allocator = {0};
    uint32_t *ends = find_ends(graph);
    struct block **blocks = calloc((size_t)graph->planned_count + 1, sizeof(struct block *));
    if (!blocks) abort();
    for (uint32_t i = 0; i < iterations; i++) run_iteration(&allocator, graph, ends, blocks);
    while (allocator.blocks) {
        struct block *block = allocator.blocks;
        allocator.blocks = block->next;
        free(block);
    }
    free(blocks);
    free(ends);
    return allocator.reserved;
}
