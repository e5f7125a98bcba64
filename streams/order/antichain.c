/* The heaviest antichain, as a maximum flow: a storage's bytes may be handed on to any op at or
 * beyond first[a][s] in some stream s, and an op asks for as many bytes as it produces. By duality
 * (Dilworth, weighted) the bytes that no op can be given are the weight of the heaviest antichain.
 *
 *   1. Greedy in topological order: a set per stream holds the released storages; an op takes from
 *      those that become usable elsewhere latest. Nearly always this is already maximal.
 *   2. Augment: search from every storage with bytes left. What it may reach is a suffix of every
 *      stream, so one pointer per stream is the whole visited set. When no op in reach lacks bytes
 *      the flow is maximal and the pointers are the certificate.
 *
 * Source: DESIGN.md, section 3. Cost: O(T S) for the greedy and for each search; 46 bytes for each
 * storage, and 1.2 for each and every stream, beside what comes in. */
#include "antichain.h"

#include <stdlib.h>
#include <string.h>

/* Bytes handed from a storage to an op; the gifts of one op form a list. */
struct gift {
    uint64_t bytes;
    uint32_t storage;
    uint32_t next; /* gift + 1; 0 ends the list */
};

struct flow {
    const struct tarn_reuse *reuse;
    const struct tarn_graph *graph;
    uint64_t *left;     /* storage -> bytes not yet handed on */
    uint64_t *lacking;  /* op -> bytes not yet given */
    uint32_t *gifts_of; /* op -> gift + 1 */
    struct gift *gifts;
    uint32_t gifts_count, gifts_capacity;
};

/* The first gift of a storage to an op. */
static bool give(struct flow *flow, uint32_t storage, uint32_t op, uint64_t bytes)
{
    if (flow->gifts_count == flow->gifts_capacity) {
        uint32_t capacity = flow->gifts_capacity ? 2 * flow->gifts_capacity : 1024;
        struct gift *gifts = realloc(flow->gifts, capacity * sizeof *gifts);
        if (!gifts) return false;
        flow->gifts = gifts;
        flow->gifts_capacity = capacity;
    }
    flow->gifts[flow->gifts_count++] = (struct gift){bytes, storage, flow->gifts_of[op]};
    flow->gifts_of[op] = flow->gifts_count;
    return true;
}

static bool give_more(struct flow *flow, uint32_t storage, uint32_t op, uint64_t bytes)
{
    for (uint32_t g = flow->gifts_of[op]; g; g = flow->gifts[g - 1].next) {
        if (flow->gifts[g - 1].storage != storage) continue;
        flow->gifts[g - 1].bytes += bytes;
        return true;
    }
    return give(flow, storage, op, bytes);
}

static uint32_t first_of(const struct flow *flow, uint32_t a, uint32_t s)
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
    uint32_t next;  /* those before it are released or used up */
    uint32_t until; /* a whole share's end */
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

static void start_queue(struct queue *queue, const struct flow *flow, uint32_t s)
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
    uint32_t count = 0, share = queue->until >> queue->share_shift;
    do count += queue->shares[share++];
    while (share << queue->share_shift < length && count + queue->shares[share] <= most);
    *end = share << queue->share_shift < length ? share << queue->share_shift : length;
    return count;
}

/* Counting sort of those of positions [until, end). */
static void sort_next(struct queue *queue, const uint32_t *first, uint32_t count, uint32_t end,
                      uint32_t *at)
{
    uint32_t begin = queue->until, positions = end - begin;
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

static bool refill(struct queue *queue, const struct flow *flow, uint32_t s)
{
    const struct tarn_reuse *reuse = flow->reuse;
    uint32_t end, length = flow->graph->streams[s].ops_count;
    uint32_t count = count_next(queue, part_size(reuse), length, &end);
    if (count > queue->capacity) {
        free(queue->storages);
        queue->storages = malloc(count * sizeof *queue->storages);
        queue->capacity = queue->storages ? count : 0;
    }
    uint32_t *at = malloc(((size_t)(end - queue->until) + 1) * sizeof *at);
    bool ok = at && queue->capacity >= count;
    if (ok && count > 0)
        sort_next(queue, reuse->first + (size_t)s * reuse->count, reuse->count, end, at);
    free(at);
    queue->next = 0;
    queue->count = ok ? count : 0;
    queue->until = end;
    return ok;
}

/* ---- Greedy: what is usable latest ---- */

enum { SOME = 4096 };

/* Stream s's part in the two lowest places of storages begin..end. */
static void find_places(const struct flow *flow, uint32_t s, uint32_t begin, uint32_t end,
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
static void find_second_places(const struct flow *flow, uint32_t *second)
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
static bool rank_places(struct greedy *greedy, const struct flow *flow)
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

static bool greedy_init(struct greedy *greedy, const struct flow *flow)
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

static bool enter_released(struct greedy *greedy, const struct flow *flow, uint32_t s, uint32_t pos)
{
    struct queue *queue = &greedy->queues[s];
    while (queue->next < queue->count || queue->until <= pos) {
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
static bool serve(struct flow *flow, struct ranks *released, const uint32_t *storage_at,
                  uint32_t op)
{
    bool ok = true;
    while (ok && flow->lacking[op] > 0 && !ranks_is_empty(released)) {
        uint32_t rank = ranks_greatest(released), a = storage_at[rank];
        uint64_t bytes = flow->left[a] < flow->lacking[op] ? flow->left[a] : flow->lacking[op];
        if (bytes > 0) ok = give(flow, a, op, bytes);
        flow->left[a] -= bytes;
        flow->lacking[op] -= bytes;
        if (flow->left[a] == 0) ranks_remove(released, rank);
    }
    return ok;
}

static bool greedy_run(struct flow *flow)
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

/* ---- Augmenting search ---- */

struct search {
    uint32_t *threshold;    /* stream -> ops from this position on are in reach */
    uint32_t *from_storage; /* op -> the storage whose reach brought it in */
    uint32_t *from_gift;    /* storage -> gift + 1 that brought it in; 0: it has bytes left */
    uint32_t *from_op;      /* storage -> the op that has that gift */
    uint32_t *queue;        /* storages in reach */
    bool *reached;          /* storage */
    uint32_t queued;
};

static void search_finish(struct search *search)
{
    free(search->from_storage);
    free(search->from_gift);
    free(search->from_op);
    free(search->queue);
    free(search->reached);
}

static bool search_init(struct search *search, const struct flow *flow, uint32_t *threshold)
{
    size_t count = flow->reuse->count;
    memset(search, 0, sizeof *search);
    search->threshold = threshold;
    search->from_storage = malloc(((size_t)flow->graph->ops_count + 1) * sizeof(uint32_t));
    search->from_gift = malloc((count + 1) * sizeof(uint32_t));
    search->from_op = malloc((count + 1) * sizeof(uint32_t));
    search->queue = malloc((count + 1) * sizeof(uint32_t));
    search->reached = malloc(count + 1);
    return search->from_storage && search->from_gift && search->from_op && search->queue &&
           search->reached;
}

static void reach(struct search *search, uint32_t storage, uint32_t gift, uint32_t op)
{
    if (search->reached[storage]) return;
    search->reached[storage] = true;
    search->from_gift[storage] = gift;
    search->from_op[storage] = op;
    search->queue[search->queued++] = storage;
}

/* Hands bytes along the path that ends at op, as far as earlier paths of the same search have left
 * room on it. *moved tells whether it was any. */
static bool augment(struct flow *flow, const struct search *search, uint32_t op, bool *moved)
{
    uint64_t bytes = flow->lacking[op];
    for (uint32_t v = op;;) {
        uint32_t a = search->from_storage[v], gift = search->from_gift[a];
        uint64_t room = gift ? flow->gifts[gift - 1].bytes : flow->left[a];
        if (room < bytes) bytes = room;
        if (!gift) break;
        v = search->from_op[a];
    }
    if (bytes == 0) return true;
    *moved = true;
    flow->lacking[op] -= bytes;
    for (uint32_t v = op;;) {
        uint32_t a = search->from_storage[v], gift = search->from_gift[a];
        if (!give_more(flow, a, v, bytes)) return false;
        if (!gift) {
            flow->left[a] -= bytes;
            return true;
        }
        flow->gifts[gift - 1].bytes -= bytes;
        v = search->from_op[a];
    }
}

static bool bring_in(struct flow *flow, struct search *search, uint32_t storage, uint32_t op,
                     bool *moved)
{
    search->from_storage[op] = storage;
    if (flow->lacking[op] > 0 && !augment(flow, search, op, moved)) return false;
    for (uint32_t g = flow->gifts_of[op]; g; g = flow->gifts[g - 1].next) {
        if (flow->gifts[g - 1].bytes > 0) reach(search, flow->gifts[g - 1].storage, g, op);
    }
    return true;
}

/* One search from all storages with bytes left; augments wherever an op in reach lacks bytes. */
static bool search_once(struct flow *flow, struct search *search, bool *moved)
{
    *moved = false;
    search->queued = 0;
    memset(search->reached, 0, flow->reuse->count);
    for (uint32_t s = 0; s < flow->reuse->streams_count; s++)
        search->threshold[s] = flow->graph->streams[s].ops_count;
    for (uint32_t a = 0; a < flow->reuse->count; a++) {
        if (flow->left[a] > 0) reach(search, a, 0, TARN_NONE);
    }
    for (uint32_t n = 0; n < search->queued; n++) {
        uint32_t a = search->queue[n];
        for (uint32_t s = 0; s < flow->reuse->streams_count; s++) {
            while (search->threshold[s] > first_of(flow, a, s)) {
                uint32_t op = flow->graph->streams[s].ops[--search->threshold[s]];
                if (!bring_in(flow, search, a, op, moved)) return false;
            }
        }
    }
    return true;
}

static bool augment_all(struct flow *flow, uint32_t *threshold)
{
    struct search search;
    bool moved = true;
    bool ok = search_init(&search, flow, threshold);
    while (ok && moved) ok = search_once(flow, &search, &moved);
    search_finish(&search);
    return ok;
}

/* ---- The bound ---- */

static void flow_finish(struct flow *flow)
{
    free(flow->left);
    free(flow->lacking);
    free(flow->gifts_of);
    free(flow->gifts);
}

static bool flow_init(struct flow *flow, const struct tarn_reuse *reuse,
                      const struct tarn_graph *graph, const uint64_t *reserved)
{
    *flow = (struct flow){.reuse = reuse, .graph = graph};
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

enum tarn_status tarn_antichain_init(struct tarn_antichain *antichain,
                                     const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                                     const uint64_t *reserved)
{
    struct flow flow;
    memset(antichain, 0, sizeof *antichain);
    antichain->streams_count = reuse->streams_count;
    antichain->threshold = malloc(((size_t)reuse->streams_count + 1) * sizeof(uint32_t));
    bool ok = flow_init(&flow, reuse, graph, reserved) && antichain->threshold;
    ok = ok && greedy_run(&flow) && augment_all(&flow, antichain->threshold);
    flow_finish(&flow);
    if (!ok) {
        tarn_antichain_finish(antichain);
        return TARN_SYSTEM;
    }
    antichain->bound = tarn_antichain_weight(antichain->threshold, reuse, reserved);
    return TARN_OK;
}

void tarn_antichain_finish(struct tarn_antichain *antichain)
{
    free(antichain->threshold);
    memset(antichain, 0, sizeof *antichain);
}
