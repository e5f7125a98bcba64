/* Bundles. Blocks that are produced in the same window and released in the same one have the same
 * conflicts as far as windows can tell, and are stacked; what is left to place are some thousand
 * bundles with lifetimes in windows: a single-stream problem. Exact conflicts come back when the
 * windows are placed around the blocks, each by itself.
 * Cost: linear in the blocks, and a decode of the bundles. */
#include "bundles.h"

#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "radix.h"

struct bundle {
    uint32_t begin, end; /* in the order of blocks */
    uint32_t first, last;
    int32_t size, alignment, floor;
    bool in_antichain;
};

struct bundles {
    struct tarn_bundled *blocks;
    uint32_t *order; /* of blocks */
    struct bundle *list;
    uint32_t count, windows_count;
};

/* ---- Stacking ---- */

/* By window of production, then of release. */
static bool sort(struct bundles *bundles, uint32_t count)
{
    uint64_t *packed = malloc(((size_t)count + 1) * sizeof *packed);
    uint64_t *spare = malloc(((size_t)count + 1) * sizeof *spare);
    uint32_t key_max = bundles->windows_count;
    bool ok = packed && spare;
    if (ok) {
        for (uint32_t i = 0; i < count; i++)
            packed[i] = tarn_radix_pack(bundles->blocks[i].last, i);
        uint64_t *sorted = tarn_radix_sort(packed, spare, count, key_max);
        for (uint32_t n = 0; n < count; n++) {
            uint32_t i = tarn_radix_number(sorted[n]);
            sorted[n] = tarn_radix_pack(bundles->blocks[i].first, i);
        }
        sorted = tarn_radix_sort(sorted, sorted == packed ? spare : packed, count, key_max);
        for (uint32_t n = 0; n < count; n++) bundles->order[n] = tarn_radix_number(sorted[n]);
    }
    free(packed);
    free(spare);
    return ok;
}

/* Puts a block on top of the bundle, whose start is a multiple of every alignment in it. */
static void stack(struct bundle *bundle, struct tarn_bundled *block)
{
    block->offset = (bundle->size + block->alignment - 1) & ~(block->alignment - 1);
    bundle->size = block->offset + block->size;
    bundle->end++;
    if (block->alignment > bundle->alignment) bundle->alignment = block->alignment;
    if (block->floor > bundle->floor) bundle->floor = block->floor;
    bundle->in_antichain = bundle->in_antichain || block->in_antichain;
}

static void stack_all(struct bundles *bundles, uint32_t count, int32_t size_max)
{
    struct bundle *bundle = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct tarn_bundled *block = &bundles->blocks[bundles->order[i]];
        if (!bundle || block->first != bundle->first || block->last != bundle->last ||
            block->size > size_max - bundle->size - block->alignment) {
            bundle = &bundles->list[bundles->count++];
            *bundle = (struct bundle){
                .begin = i, .end = i, .first = block->first, .last = block->last, .alignment = 1};
        }
        stack(bundle, block);
    }
}

/* ---- Placing ---- */

/* The bundles as a problem: ops are windows, a storage is produced by the first and read by the
 * last of its own. */
struct frame {
    struct tarn_graph graph;
    struct tarn_graph_stream stream;
    struct tarn_reuse reuse;
    struct tarn_blocks blocks;
    struct tarn_conflicts conflicts;
    struct tarn_problem problem;
    uint32_t *windows; /* 0, 1, 2, ... */
};

static bool frame_init(struct frame *frame, const struct bundles *bundles)
{
    size_t count = (size_t)bundles->count + 1;
    memset(frame, 0, sizeof *frame);
    frame->windows = malloc(((size_t)bundles->windows_count + 1) * sizeof *frame->windows);
    frame->graph.storages = calloc(count, sizeof *frame->graph.storages);
    frame->reuse.first = malloc(count * sizeof *frame->reuse.first);
    frame->reuse.position = malloc(count * sizeof *frame->reuse.position);
    frame->reuse.stream = calloc(count, sizeof *frame->reuse.stream);
    frame->blocks.members_begin = malloc(count * sizeof *frame->blocks.members_begin);
    frame->blocks.alignment_shift = malloc(count);
    frame->blocks.members = malloc(count * sizeof *frame->blocks.members);
    frame->blocks.reserved = malloc(count * sizeof *frame->blocks.reserved);
    frame->blocks.within = calloc(count, sizeof *frame->blocks.within);
    return frame->windows && frame->graph.storages && frame->reuse.first && frame->reuse.position &&
           frame->reuse.stream && frame->blocks.members_begin && frame->blocks.alignment_shift &&
           frame->blocks.members && frame->blocks.reserved && frame->blocks.within;
}

static enum tarn_status frame_fill(struct frame *frame, const struct bundles *bundles)
{
    for (uint32_t w = 0; w <= bundles->windows_count; w++) frame->windows[w] = w;
    frame->stream =
        (struct tarn_graph_stream){.ops = frame->windows, .ops_count = bundles->windows_count};
    frame->graph.streams = &frame->stream;
    frame->graph.rank = frame->windows;
    frame->graph.ops_count = bundles->windows_count;
    frame->graph.streams_count = frame->reuse.streams_count = 1;
    frame->graph.planned_count = frame->reuse.count = bundles->count;
    frame->blocks.count = frame->blocks.storages_count = bundles->count;
    for (uint32_t i = 0; i < bundles->count; i++) {
        const struct bundle *bundle = &bundles->list[i];
        frame->graph.storages[i] = (struct tarn_storage){.producer = bundle->first,
                                                         .touchers = &frame->windows[bundle->last],
                                                         .touchers_count = 1};
        frame->reuse.position[i] = bundle->first;
        frame->reuse.first[i] = bundle->last + 1;
        frame->blocks.members[i] = i;
        frame->blocks.reserved[i] = (uint64_t)bundle->size;
        frame->blocks.members_begin[i] = i;
        frame->blocks.alignment_shift[i] = (uint8_t)__builtin_ctz((uint32_t)bundle->alignment);
    }
    frame->blocks.members_begin[bundles->count] = bundles->count;
    frame->problem = (struct tarn_problem){&frame->graph, &frame->blocks, &frame->conflicts};
    return tarn_conflicts_init_slots(&frame->conflicts, &frame->reuse, &frame->graph);
}

static void frame_finish(struct frame *frame)
{
    free(frame->windows);
    free(frame->graph.storages);
    tarn_reuse_finish(&frame->reuse);
    tarn_blocks_finish(&frame->blocks);
    tarn_conflicts_finish(&frame->conflicts);
}

static void take_offsets(struct bundles *bundles, const struct tarn_decoder *decoder)
{
    for (uint32_t place = 0; place < decoder->lowest->count; place++) {
        const struct bundle *bundle = &bundles->list[decoder->lowest->block[place]];
        for (uint32_t i = bundle->begin; i < bundle->end; i++)
            bundles->blocks[bundles->order[i]].offset += decoder->offset[place];
    }
}

static bool decode(struct bundles *bundles, const struct frame *frame, int32_t *top, bool *placed)
{
    struct tarn_obstacles none = {.reuse = &frame->reuse}; /* sizes are in units already */
    struct tarn_lowest lowest = {0};
    struct tarn_traits traits = {0};
    struct tarn_decoder decoder = {0};
    size_t count = (size_t)bundles->count + 1;
    bool *inside = malloc(count);
    int32_t *key = malloc(count * sizeof *key), *floor = malloc(count * sizeof *floor);
    for (uint32_t i = 0; inside && i < bundles->count; i++)
        inside[i] = bundles->list[i].in_antichain;
    bool ok = inside && key && floor && tarn_obstacles_sort(&none) == TARN_OK &&
              tarn_lowest_init_around(&lowest, &frame->problem, &none) == TARN_OK &&
              tarn_traits_init(&traits, &lowest, inside) == TARN_OK &&
              tarn_decoder_init(&decoder, &lowest) == TARN_OK &&
              tarn_keys_fill(&lowest, &traits, 0, key) == TARN_OK;
    if (ok) {
        for (uint32_t place = 0; place < lowest.count; place++)
            floor[place] = bundles->list[lowest.block[place]].floor;
        tarn_decoder_start(&decoder, floor);
        *placed = tarn_decoder_advance(&decoder, key, floor, (struct tarn_objective){0, 1, 0},
                                       TARN_MISS_MAX, lowest.count);
        if (*placed) take_offsets(bundles, &decoder);
        *top = decoder.top;
    }
    tarn_decoder_finish(&decoder);
    tarn_traits_finish(&traits);
    tarn_lowest_finish(&lowest);
    tarn_obstacles_finish(&none);
    free(inside);
    free(key);
    free(floor);
    return ok;
}

enum tarn_status tarn_bundles_place(struct tarn_bundled *blocks, uint32_t count,
                                    uint32_t windows_count, int32_t size_max, int32_t *top,
                                    bool *placed)
{
    struct bundles bundles = {.blocks = blocks, .windows_count = windows_count};
    bundles.order = malloc(((size_t)count + 1) * sizeof *bundles.order);
    bundles.list = malloc(((size_t)count + 1) * sizeof *bundles.list);
    bool ok = bundles.order && bundles.list && sort(&bundles, count);
    if (ok) {
        struct frame frame;
        stack_all(&bundles, count, size_max);
        ok = frame_init(&frame, &bundles) && frame_fill(&frame, &bundles) == TARN_OK &&
             decode(&bundles, &frame, top, placed);
        frame_finish(&frame);
    }
    free(bundles.order);
    free(bundles.list);
    return ok ? TARN_OK : TARN_SYSTEM;
}
