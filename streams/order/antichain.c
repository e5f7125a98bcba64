/* The heaviest antichain, as a maximum flow: a storage's bytes may be handed on to any op at or
 * beyond first[a][s] in some stream s, and an op asks for as many bytes as it produces. By duality
 * (Dilworth, weighted) the bytes that no op can be given are the weight of the heaviest antichain.
 *
 *   1. Greedy in topological order: a set per stream holds the released storages; an op takes from
 *      those that become usable elsewhere latest. Nearly always this is already maximal.
 *   2. Augment (augment.c): search from the storages with bytes left. What they may reach is a
 *      suffix of every stream, so one pointer per stream is the whole visited set. When no op in
 *      reach lacks bytes the flow is maximal and the pointers are the certificate.
 *   3. If the work limit ended that early, the pointers still name an antichain. Another one is
 *      what cannot be reused yet after the first ops of list order, at the best of all points; the
 *      heavier of the two is taken. It may weigh less than the heaviest.
 *
 * Source: DESIGN.md, section 3. Cost: O(T S) for the greedy, then up to the work limit; 40 bytes
 * for each storage, and 1.2 for each and every stream, beside what comes in. */
#include "antichain.h"

#include <stdlib.h>
#include <string.h>

#include "augment.h"

static uint32_t first_of(const struct tarn_flow *flow, uint32_t a, uint32_t s)
{
    return flow->reuse->first[(size_t)s * flow->reuse->count + a];
}

/* ---- Greedy ---- */

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
    for (uint32_t i = 0; i < ranks->levels; i++, rank /= 64)
        ranks->level[i][rank / 64] |= UINT64_C(1) << rank % 64;
}

static void ranks_remove(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t i = 0; i < ranks->levels; i++, rank /= 64) {
        ranks->level[i][rank / 64] &= ~(UINT64_C(1) << rank % 64);
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

/* Storages by increasing first[.][s] for one stream s, some at a time: those of the positions up to
 * `until`. How many there are of every 256th of the stream tells how far that may be. Few streams
 * have little in memory beside what is sorted, and sort it in more parts. */
enum { SHARES = 256, PARTS_MAX = 4, PARTS_STREAMS = 32 };
struct queue {
    uint32_t *storages;
    uint32_t capacity, count;
    uint32_t next;     /* those before it are released or used up */
    uint32_t deadline; /* a whole share's end */
    uint32_t share_shift;
    uint32_t shares[SHARES];
};

/* How late a storage becomes usable elsewhere than in the stream where it is usable first: this
 * ranks storages, the same in every stream. */
struct greedy {
    struct ranks *released; /* stream -> ranks of storages that may be taken there */
    uint64_t *words;        /* what they are made of */
    struct queue *queues;   /* by stream */
    uint32_t streams_count;
    uint32_t *rank;       /* storage -> the second lowest place in list order of ops that may take
                             its bytes, then its rank by that */
    uint32_t *storage_at; /* rank -> storage */
};

static void greedy_finish(struct greedy *greedy)
{
    free(greedy->released);
    free(greedy->words);
    for (uint32_t s = 0; greedy->queues && s < greedy->streams_count; s++)
        free(greedy->queues[s].storages);
    free(greedy->queues);
    free(greedy->rank);
    free(greedy->storage_at);
}

/* ---- Greedy: what is released ---- */

static void start_queue(struct queue *queue, const struct tarn_flow *flow, uint32_t s)
{
    const uint32_t *first = flow->reuse->first + (size_t)s * flow->reuse->count;
    uint32_t length = flow->graph->streams[s].ops_count;
    while (length >> queue->share_shift >= SHARES) queue->share_shift++;
    for (uint32_t a = 0; a < flow->reuse->count; a++)
        if (first[a] < length) queue->shares[first[a] >> queue->share_shift]++;
}

/* As many shares as there is room for, and at least one. */
static uint32_t count_next(const struct queue *queue, uint32_t most, uint32_t length, uint32_t *end)
{
    uint32_t count = 0, share = queue->deadline >> queue->share_shift;
    do count += queue->shares[share++];
    while (share << queue->share_shift < length && count + queue->shares[share] <= most);
    *end = share << queue->share_shift < length ? share << queue->share_shift : length;
    return count;
}

/* Counting sort of those of positions [until, end). */
static void sort_next(struct queue *queue, const uint32_t *first, uint32_t count, uint32_t end,
                      uint32_t *at)
{
    uint32_t begin = queue->deadline, positions = end - begin;
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

static bool refill(struct queue *queue, const struct tarn_flow *flow, uint32_t s)
{
    const struct tarn_reuse *reuse = flow->reuse;
    uint32_t end, length = flow->graph->streams[s].ops_count;
    uint32_t count = count_next(queue, part_size(reuse), length, &end);
    if (count > queue->capacity) {
        free(queue->storages);
        queue->storages = malloc(count * sizeof *queue->storages);
        queue->capacity = queue->storages ? count : 0;
    }
    uint32_t *at = malloc(((size_t)(end - queue->deadline) + 1) * sizeof *at);
    bool ok = at && queue->capacity >= count;
    if (ok && count > 0)
        sort_next(queue, reuse->first + (size_t)s * reuse->count, reuse->count, end, at);
    free(at);
    queue->next = 0;
    queue->count = ok ? count : 0;
    queue->deadline = end;
    return ok;
}

/* ---- Greedy: what is usable latest ---- */

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
    uint32_t count = flow->reuse->count;
    uint32_t *begin = calloc((size_t)flow->graph->ops_count + 2, sizeof *begin);
    if (!begin) return false;
    for (uint32_t a = 0; a < count; a++) begin[greedy->rank[a] + 1]++;
    for (uint32_t place = 0; place <= flow->graph->ops_count; place++)
        begin[place + 1] += begin[place];
    for (uint32_t a = 0; a < count; a++) {
        greedy->rank[a] = begin[greedy->rank[a]]++;
        greedy->storage_at[greedy->rank[a]] = a;
    }
    free(begin);
    return true;
}

static bool greedy_init(struct greedy *greedy, const struct tarn_flow *flow)
{
    size_t count = flow->reuse->count, streams_count = flow->reuse->streams_count;
    struct ranks shape;
    size_t words = ranks_shape(&shape, NULL, count);
    memset(greedy, 0, sizeof *greedy);
    greedy->released = malloc((streams_count + 1) * sizeof *greedy->released);
    greedy->words = calloc(words * streams_count + 1, sizeof *greedy->words);
    greedy->queues = calloc(streams_count + 1, sizeof *greedy->queues);
    greedy->streams_count = (uint32_t)streams_count;
    greedy->rank = malloc((count + 1) * sizeof *greedy->rank);
    greedy->storage_at = malloc((count + 1) * sizeof *greedy->storage_at);
    if (!greedy->released || !greedy->words || !greedy->queues || !greedy->rank ||
        !greedy->storage_at)
        return false;
    for (uint32_t s = 0; s < streams_count; s++) {
        ranks_shape(&greedy->released[s], greedy->words + s * words, count);
        start_queue(&greedy->queues[s], flow, s);
    }
    find_second_places(flow, greedy->rank);
    return rank_places(greedy, flow);
}

/* ---- Greedy: handing out ---- */

static bool enter_released(struct greedy *greedy, const struct tarn_flow *flow, uint32_t s,
                           uint32_t pos)
{
    struct queue *queue = &greedy->queues[s];
    while (queue->next < queue->count || queue->deadline <= pos) {
        if (queue->next == queue->count) {
            if (!refill(queue, flow, s)) return false;
            continue;
        }
        uint32_t a = queue->storages[queue->next];
        if (first_of(flow, a, s) > pos) break;
        if (flow->left[a] > 0) ranks_insert(&greedy->released[s], greedy->rank[a]);
        queue->next++;
    }
    return true;
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

static bool greedy_run(struct tarn_flow *flow)
{
    struct greedy greedy;
    bool ok = greedy_init(&greedy, flow);
    for (uint32_t i = 0; ok && i < flow->graph->ops_count; i++) {
        uint32_t op = flow->graph->order[i], stream = flow->graph->ops[op].stream;
        if (flow->lacking[op] == 0) continue;
        ok = enter_released(&greedy, flow, stream, flow->graph->ops[op].position) &&
             serve(flow, &greedy.released[stream], greedy.storage_at, op);
    }
    greedy_finish(&greedy);
    return ok;
}

/* ---- The bound ---- */

static void flow_finish(struct tarn_flow *flow)
{
    free(flow->left);
    free(flow->lacking);
    free(flow->gifts_of);
    free(flow->gifts);
}

static bool flow_init(struct tarn_flow *flow, const struct tarn_reuse *reuse,
                      const struct tarn_graph *graph, const uint64_t *reserved)
{
    *flow = (struct tarn_flow){.reuse = reuse, .graph = graph};
    flow->left = malloc(((size_t)reuse->count + 1) * sizeof *flow->left);
    flow->lacking = calloc((size_t)graph->ops_count + 1, sizeof *flow->lacking);
    flow->gifts_of = calloc((size_t)graph->ops_count + 1, sizeof *flow->gifts_of);
    if (!flow->left || !flow->lacking || !flow->gifts_of) return false;
    for (uint32_t a = 0; a < reuse->count; a++) {
        flow->left[a] = reserved[a];
        flow->lacking[graph->storages[a].producer] += reserved[a];
    }
    return true;
}

uint64_t tarn_antichain_weight(const uint32_t *threshold, const struct tarn_reuse *reuse,
                               const uint64_t *reserved)
{
    uint64_t weight = 0;
    for (uint32_t a = 0; a < reuse->count; a++)
        if (tarn_antichain_has(threshold, reuse, a)) weight += reserved[a];
    return weight;
}

/* ---- A cut of list order ---- */

/* Storage a is in the antichain of the first n ops of list order from behind its producer up to the
 * first op that may overwrite it, so a sum of differences weighs all of them. */
static bool find_list_cut(const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                          const uint64_t *reserved, uint32_t *threshold)
{
    uint64_t *change = calloc((size_t)graph->ops_count + 2, sizeof *change);
    if (!change) return false;
    for (uint32_t a = 0; a < reuse->count; a++) {
        uint32_t end = graph->ops_count;
        for (uint32_t s = 0; s < reuse->streams_count; s++) {
            uint32_t first = reuse->first[(size_t)s * reuse->count + a];
            if (first == graph->streams[s].ops_count) continue;
            uint32_t rank = graph->rank[graph->streams[s].ops[first]];
            if (rank < end) end = rank;
        }
        change[graph->rank[graph->storages[a].producer] + 1] += reserved[a];
        change[end + 1] -= reserved[a];
    }
    uint64_t weight = 0, heaviest = 0;
    uint32_t best = 0;
    for (uint32_t n = 0; n <= graph->ops_count; n++) {
        weight += change[n];
        if (weight <= heaviest) continue;
        heaviest = weight;
        best = n;
    }
    free(change);
    memset(threshold, 0, reuse->streams_count * sizeof *threshold);
    for (uint32_t i = 0; i < best; i++) threshold[graph->ops[graph->order[i]].stream]++;
    return true;
}

/* Takes the cut if its antichain is heavier. */
static bool compare_with_list_cut(struct tarn_antichain *antichain, const struct tarn_reuse *reuse,
                                  const struct tarn_graph *graph, const uint64_t *reserved)
{
    uint32_t *threshold = malloc(((size_t)reuse->streams_count + 1) * sizeof *threshold);
    bool ok = threshold && find_list_cut(reuse, graph, reserved, threshold);
    uint64_t weight = ok ? tarn_antichain_weight(threshold, reuse, reserved) : 0;
    if (weight > antichain->bound) {
        antichain->bound = weight;
        memcpy(antichain->threshold, threshold, reuse->streams_count * sizeof *threshold);
    }
    free(threshold);
    return ok;
}

/* About a second. Small graphs are never near it. */
static uint64_t default_work(const struct tarn_reuse *reuse)
{
    return (UINT64_C(1) << 26) + 128 * (uint64_t)reuse->count;
}

enum tarn_status tarn_antichain_init(struct tarn_antichain *antichain,
                                     const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                                     const uint64_t *reserved)
{
    return tarn_antichain_init_within(antichain, reuse, graph, reserved, default_work(reuse));
}

enum tarn_status tarn_antichain_init_within(struct tarn_antichain *antichain,
                                            const struct tarn_reuse *reuse,
                                            const struct tarn_graph *graph,
                                            const uint64_t *reserved, uint64_t work)
{
    struct tarn_flow flow;
    bool maximal = false;
    memset(antichain, 0, sizeof *antichain);
    antichain->streams_count = reuse->streams_count;
    antichain->threshold = malloc(((size_t)reuse->streams_count + 1) * sizeof(uint32_t));
    bool ok = flow_init(&flow, reuse, graph, reserved) && antichain->threshold;
    ok = ok && greedy_run(&flow) && tarn_flow_augment(&flow, work, antichain->threshold, &maximal);
    flow_finish(&flow);
    if (ok) antichain->bound = tarn_antichain_weight(antichain->threshold, reuse, reserved);
    if (ok && !maximal) ok = compare_with_list_cut(antichain, reuse, graph, reserved);
    if (!ok) tarn_antichain_finish(antichain);
    return ok ? TARN_OK : TARN_SYSTEM;
}

void tarn_antichain_finish(struct tarn_antichain *antichain)
{
    free(antichain->threshold);
    memset(antichain, 0, sizeof *antichain);
}
