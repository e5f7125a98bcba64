/* The greedy flow, in topological order: a set per stream holds the released storages; an op takes
 * bytes from those that become usable elsewhere latest. Nearly always this is already maximal.
 * Source: docs/how-it-works.md, "Lower bound". Cost: O(T S) time; 12 bytes for each storage, and 4
 * more and a fraction of one for each storage and stream. */
#include <assert.h>
#include <string.h>

#include "flow.h"
#include "streams/base/bitset.h"
#include "streams/base/region.h"

static uint32_t first_of(const struct tarn_flow *flow, uint32_t a, uint32_t s)
{
    return flow->reuse->first[(size_t)s * flow->reuse->count + a];
}

/* ---- Released storages ---- */

/* A set of numbers below 64^levels that knows its greatest one: bits, above each word of which
 * that is not zero a bit is set in the next level. */
enum { LEVELS_MAX = 6 };
struct ranks {
    uint64_t *level[LEVELS_MAX];
    uint32_t levels;
};

/* Splits words into levels for numbers below `count`; returns how many words that takes. */
static size_t ranks_shape(struct ranks *ranks, uint64_t *words, size_t count)
{
    size_t used = 0;
    ranks->levels = 0;
    do {
        count = count / 64 + 1;
        ranks->level[ranks->levels++] = words ? words + used : NULL;
        used += count;
    } while (count > 1);
    return used;
}

static void ranks_insert(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t i = 0; i < ranks->levels; i++, rank /= 64) tarn_set_add(ranks->level[i], rank);
}

static void ranks_remove(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t i = 0; i < ranks->levels; i++, rank /= 64) {
        tarn_set_drop(ranks->level[i], rank);
        if (ranks->level[i][rank / 64]) return;
    }
}

static bool ranks_is_empty(const struct ranks *ranks)
{
    return ranks->level[ranks->levels - 1][0] == 0;
}

static uint32_t ranks_greatest(const struct ranks *ranks)
{
    uint32_t rank = 0;
    for (uint32_t i = ranks->levels; i-- > 0;)
        rank = rank * 64 + 63 - (uint32_t)__builtin_clzll(ranks->level[i][rank]);
    return rank;
}

/* Storages by increasing first[.][s] for one stream s, one part of its positions after the other. A
 * part is some shares of the stream, each about a 256th of its positions; the number of storages in
 * each share tells how many shares fit. Few streams have little in memory beside what is sorted,
 * and sort it in more parts. */
enum { SHARES = 256, PARTS_MAX = 4, PARTS_STREAMS = 32 };
struct queue {
    uint32_t *storages; /* room for the largest part */
    uint32_t count;
    uint32_t next;           /* index into storages: those before it are released or used up */
    uint32_t unsorted;       /* the first position behind this part, where a share begins */
    uint32_t share_shift;    /* a share has 2^share_shift positions */
    uint32_t shares[SHARES]; /* share -> its storages */
};

/* How late a storage becomes usable elsewhere than in the stream where it is usable first: this
 * ranks storages, the same in every stream. */
struct greedy {
    struct ranks *released; /* stream -> ranks of storages that may be taken there */
    struct queue *queues;   /* by stream */
    uint32_t *at;           /* counts of a sort: by position, of the part with the most of them */
    uint32_t *rank;         /* storage -> the second lowest place in list order of ops that may take
                               its bytes, then its rank by that */
    uint32_t *storage_at;   /* rank -> storage */
};

/* ---- What is released ---- */

static void start_queue(struct queue *queue, const struct tarn_flow *flow, uint32_t s)
{
    const uint32_t *first = flow->reuse->first + (size_t)s * flow->reuse->count;
    uint32_t length = flow->graph->streams[s].ops_count;
    while (length >> queue->share_shift >= SHARES) queue->share_shift++;
    for (uint32_t a = 0; a < flow->reuse->count; a++)
        if (first[a] < length) queue->shares[first[a] >> queue->share_shift]++;
}

/* The storages of as many shares as `most` allows, and of at least one. *end: where they end. */
static uint32_t count_next(const struct queue *queue, uint32_t most, uint32_t length, uint32_t *end)
{
    uint32_t count = 0, share = queue->unsorted >> queue->share_shift;
    do count += queue->shares[share++];
    while (share << queue->share_shift < length && count + queue->shares[share] <= most);
    *end = share << queue->share_shift < length ? share << queue->share_shift : length;
    return count;
}

/* Counting sort of those of positions [unsorted, end). */
static void sort_next(struct queue *queue, const uint32_t *first, uint32_t count, uint32_t end,
                      uint32_t *at)
{
    uint32_t begin = queue->unsorted, positions = end - begin;
    memset(at, 0, ((size_t)positions + 1) * sizeof *at);
    for (uint32_t a = 0; a < count; a++)
        if (first[a] - begin < positions) at[first[a] - begin + 1]++;
    for (uint32_t p = 0; p < positions; p++) at[p + 1] += at[p];
    for (uint32_t a = 0; a < count; a++)
        if (first[a] - begin < positions) queue->storages[at[first[a] - begin]++] = a;
}

static uint32_t part_size(const struct tarn_reuse *reuse)
{
    uint32_t parts = PARTS_STREAMS / reuse->streams_count;
    if (parts > PARTS_MAX) parts = PARTS_MAX;
    return parts > 1 ? reuse->count / parts : reuse->count;
}

static void refill(struct queue *queue, const struct tarn_flow *flow, uint32_t s, uint32_t *at)
{
    const struct tarn_reuse *reuse = flow->reuse;
    uint32_t end, length = flow->graph->streams[s].ops_count;
    assert(queue->next == queue->count && queue->unsorted < length);
    queue->count = count_next(queue, part_size(reuse), length, &end);
    if (queue->count > 0)
        sort_next(queue, reuse->first + (size_t)s * reuse->count, reuse->count, end, at);
    queue->next = 0;
    queue->unsorted = end;
}

/* The most storages, and the most positions, of any part of a stream that has not begun. */
static void find_largest(const struct queue *begun, const struct tarn_flow *flow, uint32_t s,
                         uint32_t *storages, uint32_t *positions)
{
    struct queue queue = *begun;
    uint32_t length = flow->graph->streams[s].ops_count;
    *storages = 0;
    while (queue.unsorted < length) {
        uint32_t end, count = count_next(&queue, part_size(flow->reuse), length, &end);
        if (count > *storages) *storages = count;
        if (end - queue.unsorted > *positions) *positions = end - queue.unsorted;
        queue.unsorted = end;
    }
}

/* ---- What is usable latest ---- */

enum { SOME = 4096 };

/* Stream s's part in the two lowest places of storages begin..end. */
static void find_places(const struct tarn_flow *flow, uint32_t s, uint32_t begin, uint32_t end,
                        uint32_t *lowest, uint32_t *second)
{
    const struct tarn_graph_stream *stream = &flow->graph->streams[s];
    const uint32_t *first = flow->reuse->first + (size_t)s * flow->reuse->count;
    for (uint32_t a = begin; a < end; a++) {
        uint32_t *low = &lowest[a - begin];
        if (first[a] == stream->ops_count) continue;
        uint32_t place = flow->graph->rank[stream->ops[first[a]]];
        if (place < *low) {
            second[a] = *low;
            *low = place;
        } else if (place < second[a]) {
            second[a] = place;
        }
    }
}

/* Some storages at a time, which stay in the caches. */
static void find_second_places(const struct tarn_flow *flow, uint32_t *second)
{
    uint32_t count = flow->reuse->count, lowest[SOME];
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        end = count - begin < SOME ? count : begin + SOME;
        for (uint32_t a = begin; a < end; a++)
            lowest[a - begin] = second[a] = flow->graph->ops_count;
        for (uint32_t s = 0; s < flow->reuse->streams_count; s++)
            find_places(flow, s, begin, end, lowest, second);
    }
}

/* Counting sort of all places, which become ranks. */
static bool rank_places(struct greedy *greedy, const struct tarn_flow *flow)
{
    struct tarn_region *region = flow->region;
    uint32_t count = flow->reuse->count;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint32_t *begin = tarn_region_take(region, (size_t)flow->graph->ops_count + 2, sizeof *begin);
    if (!begin) return false;
    for (uint32_t a = 0; a < count; a++) begin[greedy->rank[a] + 1]++;
    for (uint32_t place = 0; place <= flow->graph->ops_count; place++)
        begin[place + 1] += begin[place];
    for (uint32_t a = 0; a < count; a++) {
        greedy->rank[a] = begin[greedy->rank[a]]++;
        greedy->storage_at[greedy->rank[a]] = a;
    }
    tarn_region_release(region, mark);
    return true;
}

static bool start_queues(struct greedy *greedy, const struct tarn_flow *flow)
{
    uint32_t positions = 0;
    for (uint32_t s = 0; s < flow->reuse->streams_count; s++) {
        uint32_t storages;
        struct queue *queue = &greedy->queues[s];
        start_queue(queue, flow, s);
        find_largest(queue, flow, s, &storages, &positions);
        queue->storages = tarn_region_take(flow->region, storages, sizeof *queue->storages);
        if (!queue->storages) return false;
    }
    greedy->at = tarn_region_take(flow->region, (size_t)positions + 1, sizeof *greedy->at);
    return greedy->at;
}

static bool greedy_init(struct greedy *greedy, const struct tarn_flow *flow)
{
    struct tarn_region *region = flow->region;
    size_t count = flow->reuse->count, streams_count = flow->reuse->streams_count;
    struct ranks shape;
    size_t words_count = ranks_shape(&shape, NULL, count);
    uint64_t *words = tarn_region_take(region, words_count * streams_count, sizeof *words);
    memset(greedy, 0, sizeof *greedy);
    greedy->released = tarn_region_take(region, streams_count, sizeof *greedy->released);
    greedy->queues = tarn_region_take(region, streams_count, sizeof *greedy->queues);
    greedy->rank = tarn_region_take(region, count, sizeof *greedy->rank);
    greedy->storage_at = tarn_region_take(region, count, sizeof *greedy->storage_at);
    if (!words || !greedy->released || !greedy->queues || !greedy->rank || !greedy->storage_at)
        return false;
    for (uint32_t s = 0; s < streams_count; s++)
        ranks_shape(&greedy->released[s], words + s * words_count, count);
    find_second_places(flow, greedy->rank);
    return rank_places(greedy, flow) && start_queues(greedy, flow);
}

/* ---- Handing out ---- */

static void enter_released(struct greedy *greedy, const struct tarn_flow *flow, uint32_t s,
                           uint32_t pos)
{
    struct queue *queue = &greedy->queues[s];
    while (queue->next < queue->count || queue->unsorted <= pos) {
        if (queue->next == queue->count) {
            refill(queue, flow, s, greedy->at);
            continue;
        }
        uint32_t a = queue->storages[queue->next];
        if (first_of(flow, a, s) > pos) break;
        if (flow->left[a] > 0) ranks_insert(&greedy->released[s], greedy->rank[a]);
        queue->next++;
    }
}

/* Gives an op what it lacks, as far as that is released. */
static bool serve(struct tarn_flow *flow, struct ranks *released, const uint32_t *storage_at,
                  uint32_t op)
{
    bool ok = true;
    while (ok && flow->lacking[op] > 0 && !ranks_is_empty(released)) {
        uint32_t rank = ranks_greatest(released), a = storage_at[rank];
        uint64_t bytes = flow->left[a] < flow->lacking[op] ? flow->left[a] : flow->lacking[op];
        if (bytes > 0) ok = tarn_flow_give(flow, a, op, bytes);
        flow->left[a] -= bytes;
        flow->lacking[op] -= bytes;
        if (flow->left[a] == 0) ranks_remove(released, rank);
    }
    return ok;
}

bool tarn_flow_greedy(struct tarn_flow *flow)
{
    struct greedy greedy;
    struct tarn_region_mark mark = tarn_region_mark(flow->region);
    size_t transfers_room = flow->transfers_room;
    bool ok = greedy_init(&greedy, flow);
    for (uint32_t i = 0; ok && i < flow->graph->ops_count; i++) {
        uint32_t op = flow->graph->order[i], stream = flow->graph->ops[op].stream;
        if (flow->lacking[op] == 0) continue;
        enter_released(&greedy, flow, stream, flow->graph->ops[op].position);
        ok = serve(flow, &greedy.released[stream], greedy.storage_at, op);
    }
    assert(flow->transfers_room == transfers_room); /* grown ones would end with the mark */
    tarn_region_release(flow->region, mark);
    return ok;
}
