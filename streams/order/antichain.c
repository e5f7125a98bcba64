/* Finds the heaviest antichain as a maximum flow: the bytes of storage a may be handed to any op at
 * or after first[a][s] in some stream s, and an op needs as many bytes as it produces. By duality
 * (Dilworth, weighted) the bytes that ops lack in a maximum flow are the weight of the heaviest
 * antichain.
 *
 *   1. Greedy in topological order. Nearly always this is already maximal.
 *   2. Augment: search from the storages with bytes left. The ops that they reach are a suffix of
 *      every stream, so one pointer per stream is the whole visited set. If no op in reach lacks
 *      bytes, the flow is maximal and the pointers are the certificate.
 *   3. If the work limit ended the search early, the pointers still name an antichain. A second
 *      antichain is the set of storages that cannot be reused yet after the first n ops of list
 *      order, for the best n; the heavier of the two is taken. It may weigh less than the heaviest.
 *
 * If all storages have one size, the flow itself places them: an op's outputs lie where the bytes
 * handed to it are.
 *
 * Source: docs/how-it-works.md, "Lower bound". Cost: O(T S) for the greedy, then up to the work
 * limit; memory: 40 bytes for each storage, and 1.2 bytes for each storage and stream, without the
 * input. */
#include "antichain.h"

#include <assert.h>
#include <string.h>

#include "flow.h"
#include "streams/base/bitset.h"
#include "streams/base/region.h"

/* The flow: bytes left in storages, bytes lacking in ops, and the transfers between them. Transfers
 * are records in one array; empty records are reused. Cost: constant for a transfer. */

bool tarn_flow_init(struct tarn_flow *flow, struct tarn_region *region,
                    const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                    const uint64_t *reserved)
{
    *flow = (struct tarn_flow){.reuse = reuse, .graph = graph, .region = region};
    flow->left = tarn_region_take(region, reuse->count, sizeof *flow->left);
    flow->lacking = tarn_region_take(region, graph->ops_count, sizeof *flow->lacking);
    flow->transfers_of = tarn_region_take(region, graph->ops_count, sizeof *flow->transfers_of);
    flow->transfers_room = (size_t)reuse->count + graph->ops_count;
    flow->transfers = tarn_region_take(region, flow->transfers_room, sizeof *flow->transfers);
    if (!flow->left || !flow->lacking || !flow->transfers_of || !flow->transfers) return false;
    for (uint32_t a = 0; a < reuse->count; a++) {
        flow->left[a] = reserved[a];
        flow->lacking[graph->storages[a].producer] += reserved[a];
    }
    return true;
}

/* The first transfer of a storage to an op. False: no memory. */
static bool flow_give(struct tarn_flow *flow, uint32_t storage, uint32_t op, uint64_t bytes)
{
    uint32_t transfer = flow->unused;
    assert(bytes > 0 && storage < flow->reuse->count && op < flow->graph->ops_count);
    if (transfer) {
        flow->unused = flow->transfers[transfer - 1].next;
    } else {
        struct tarn_transfer *transfers =
            tarn_region_grow(flow->region, flow->transfers, &flow->transfers_room,
                             (size_t)flow->transfers_count + 1, sizeof *transfers);
        if (!transfers) return false;
        flow->transfers = transfers;
        transfer = ++flow->transfers_count;
    }
    flow->transfers[transfer - 1] = (struct tarn_transfer){bytes, storage, flow->transfers_of[op]};
    flow->transfers_of[op] = transfer;
    return true;
}

/* May op v reuse the bytes of the transfer's storage? */
static bool is_in_reach(const struct tarn_flow *flow, const struct tarn_transfer *transfer,
                        uint32_t v)
{
    const struct tarn_graph_op *op = &flow->graph->ops[v];
    const struct tarn_reuse *reuse = flow->reuse;
    return op->position >= reuse->first[(size_t)op->stream * reuse->count + transfer->storage];
}

bool tarn_flow_is_valid(const struct tarn_flow *flow, const uint64_t *weight)
{
    uint64_t sum = 0, left = 0, lacking = 0, given = 0;
    for (uint32_t a = 0; a < flow->reuse->count; a++) {
        sum += weight[a];
        left += flow->left[a];
    }
    for (uint32_t v = 0; v < flow->graph->ops_count; v++) {
        lacking += flow->lacking[v];
        for (uint32_t g = flow->transfers_of[v]; g; g = flow->transfers[g - 1].next) {
            const struct tarn_transfer *transfer = &flow->transfers[g - 1];
            if (g > flow->transfers_count ||
                (transfer->bytes > 0 && !is_in_reach(flow, transfer, v)))
                return false;
            given += transfer->bytes;
        }
    }
    return left + given == sum && lacking + given == sum;
}

/* The greedy flow, in topological order: a set per stream holds the released storages. An op takes
 * bytes from the released storages that become usable in another stream latest. Nearly always this
 * is already maximal. Source: docs/how-it-works.md, "Lower bound". Cost: O(T S) time; 12 bytes for
 * each storage, and a little over 4 bytes for each storage and stream. */

static uint32_t first_of(const struct tarn_flow *flow, uint32_t a, uint32_t s)
{
    return flow->reuse->first[(size_t)s * flow->reuse->count + a];
}

/* ---- Released storages ---- */

/* A set of numbers below 64^levels with a fast maximum: bits in levels; a bit of a level is set if
 * its word in the level below is not zero. */
enum { LEVELS_MAX = 6 };
struct ranks {
    uint64_t *level[LEVELS_MAX];
    uint32_t levels;
};

/* Splits words into levels for numbers below `count`; returns the number of words used. */
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

/* Queue of storages by increasing first[.][s] for one stream s, sorted one part of its positions
 * after another. A part is some shares of the stream, each about 1/256 of its positions; the counts
 * of storages in the shares decide how many shares fit into a part. With few streams the sorted
 * storages would dominate memory, so they are sorted in more parts. */
enum { SHARES = 256, PARTS_MAX = 4, PARTS_STREAMS = 32 };
struct queue {
    uint32_t *storages; /* room for the largest part */
    uint32_t count;
    uint32_t next;           /* index into storages: those before it are released or used up */
    uint32_t unsorted;       /* the first position after this part, where a share begins */
    uint32_t share_shift;    /* a share has 2^share_shift positions */
    uint32_t shares[SHARES]; /* share -> its storages */
};

/* Storages are ranked by how late they become usable outside of the stream where they are usable
 * first; the ranks are the same in every stream. */
struct greedy {
    struct ranks *released; /* stream -> ranks of storages that may be taken there */
    struct queue *queues;   /* by stream */
    uint32_t *at;           /* counts of a sort by position, for the part with the largest number of
                             * positions */
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

/* Counts the storages of as many shares as `most` allows, and of at least one share. *end: the
 * position after them. */
static uint32_t count_next(const struct queue *queue, uint32_t most, uint32_t length, uint32_t *end)
{
    uint32_t count = 0, share = queue->unsorted >> queue->share_shift;
    do count += queue->shares[share++];
    while (share << queue->share_shift < length && count + queue->shares[share] <= most);
    *end = share << queue->share_shift < length ? share << queue->share_shift : length;
    return count;
}

/* Counting sort of the storages of positions [unsorted, end). */
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

/* The maximum numbers of storages, and of positions, of any part of a stream that has not begun. */
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

/* Gives an op the bytes that it lacks, as far as they are released. */
static bool serve(struct tarn_flow *flow, struct ranks *released, const uint32_t *storage_at,
                  uint32_t op)
{
    bool ok = true;
    while (ok && flow->lacking[op] > 0 && !ranks_is_empty(released)) {
        uint32_t rank = ranks_greatest(released), a = storage_at[rank];
        uint64_t bytes = flow->left[a] < flow->lacking[op] ? flow->left[a] : flow->lacking[op];
        if (bytes > 0) ok = flow_give(flow, a, op, bytes);
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

/* Makes a flow maximal by augmenting paths. The ops that a storage may be given to are a suffix of
 * every stream. So the ops reached from the storages with bytes left are suffixes, too, and a
 * search is a list of steps, each of which moves one stream's threshold down:
 *
 *     a storage with bytes left ──► step: stream 2 from position 900 on
 *        an op there holds a transfer of b ──► step: stream 0 from position 700 on
 *           an op there holds a transfer of c ──► step: stream 2 from position 650 on, lacking op
 *
 * Only the transfer that moves a threshold furthest matters, and each block of 64 positions stores
 * the lowest positions that its transfers may move thresholds to. So a search looks at few
 * transfers, and costs O(V S / 64) and a little for each step. It hands bytes along every path that
 * it finds, as far as earlier paths have left room. If no op in reach lacks bytes, the flow is
 * maximal. */

enum { BLOCK = 64 };

/* ---- Blocks of 64 positions ---- */

/* A stream's threshold moves from `above` to `position`. */
struct step {
    uint32_t stream;
    uint32_t position, above;
    uint32_t storage;  /* whose reach that is */
    uint32_t transfer; /* transfer + 1 that brought the storage in; 0: it has bytes left */
    uint32_t op;       /* that has the transfer */
    uint32_t parent;   /* the step that brought the op in */
};

/* The transfer that may move a threshold furthest; once that transfer is empty, the next one is not
 * known. */
struct holder {
    uint32_t op;
    uint32_t transfer; /* transfer + 1; 0: not known */
};

struct search {
    struct tarn_flow *flow;
    uint32_t *threshold; /* stream -> ops at or after this position are in reach */
    uint64_t work_left;
    uint32_t *begin;   /* stream -> its first block */
    uint64_t *lacking; /* block -> a bit for each op that lacks bytes */
    uint32_t *lowest; /* [block][stream]: at most first of any storage with a transfer to its ops */
    struct holder *holder; /* [block][stream]: the transfer whose storage has that first */
    uint32_t *best;        /* the same of a step */
    struct step *best_step;
    uint32_t *wanted;  /* streams for which a block's transfers are searched */
    uint32_t *source;  /* stream -> the storage with bytes left that is usable there first */
    uint32_t *sources; /* storages with bytes left, and some with none left */
    uint32_t sources_count;
    uint32_t emptied; /* transfer + 1: a list of transfers to reuse after this search */
    struct step *steps;
    size_t steps_room;
    uint32_t steps_count;
};

static void spend(struct search *search, uint64_t work)
{
    search->work_left -= work < search->work_left ? work : search->work_left;
}

static uint32_t first_reached(const struct search *search, uint32_t a, uint32_t s)
{
    const struct tarn_reuse *reuse = search->flow->reuse;
    return reuse->first[(size_t)s * reuse->count + a];
}

static uint32_t block_of(const struct search *search, uint32_t op)
{
    const struct tarn_graph_op *record = &search->flow->graph->ops[op];
    return search->begin[record->stream] + record->position / BLOCK;
}

static void lower(struct search *search, uint32_t op, uint32_t transfer)
{
    uint32_t storage = search->flow->transfers[transfer - 1].storage;
    uint32_t streams_count = search->flow->reuse->streams_count;
    size_t entry = (size_t)block_of(search, op) * streams_count;
    spend(search, streams_count);
    for (uint32_t t = 0; t < streams_count; t++, entry++) {
        uint32_t first = first_reached(search, storage, t);
        if (first >= search->lowest[entry]) continue;
        search->lowest[entry] = first;
        search->holder[entry] = (struct holder){op, transfer};
    }
}

/* Takes empty transfers out of an op's list. */
static void drop_empty(struct search *search, uint32_t op)
{
    struct tarn_flow *flow = search->flow;
    for (uint32_t *link = &flow->transfers_of[op]; *link;) {
        struct tarn_transfer *transfer = &flow->transfers[*link - 1];
        if (transfer->bytes > 0) {
            link = &transfer->next;
            continue;
        }
        uint32_t next = transfer->next;
        transfer->next = search->emptied;
        search->emptied = *link;
        *link = next;
    }
}

static void refresh(struct search *search, uint32_t s, uint32_t b)
{
    const struct tarn_flow *flow = search->flow;
    const struct tarn_graph_stream *stream = &flow->graph->streams[s];
    assert(b >= search->begin[s] && b - search->begin[s] <= stream->ops_count / BLOCK);
    uint32_t streams_count = flow->reuse->streams_count;
    uint32_t *lowest = search->lowest + (size_t)b * streams_count;
    uint32_t begin = (b - search->begin[s]) * BLOCK;
    for (uint32_t t = 0; t < streams_count; t++) lowest[t] = UINT32_MAX;
    for (uint32_t i = begin; i < begin + BLOCK && i < stream->ops_count; i++) {
        drop_empty(search, stream->ops[i]);
        for (uint32_t g = flow->transfers_of[stream->ops[i]]; g; g = flow->transfers[g - 1].next)
            lower(search, stream->ops[i], g);
    }
}

/* ---- Paths ---- */

static bool give_more(struct search *search, uint32_t storage, uint32_t op, uint64_t bytes)
{
    struct tarn_flow *flow = search->flow;
    uint32_t g = flow->transfers_of[op];
    assert(bytes > 0);
    while (g && flow->transfers[g - 1].storage != storage) {
        spend(search, 1);
        g = flow->transfers[g - 1].next;
    }
    if (g) {
        flow->transfers[g - 1].bytes += bytes;
    } else {
        if (!flow_give(flow, storage, op, bytes)) return false;
        g = flow->transfers_of[op];
    }
    lower(search, op, g);
    return true;
}

/* How many bytes there is room for on the path that ends at an op of a step. */
static uint64_t room_for(struct search *search, uint32_t op, uint32_t last)
{
    const struct tarn_flow *flow = search->flow;
    uint64_t bytes = flow->lacking[op];
    for (const struct step *step = &search->steps[last];; step = &search->steps[step->parent]) {
        uint64_t room =
            step->transfer ? flow->transfers[step->transfer - 1].bytes : flow->left[step->storage];
        if (room < bytes) bytes = room;
        spend(search, 1);
        if (!step->transfer || bytes == 0) return bytes;
    }
}

static bool augment(struct search *search, uint32_t op, uint32_t last)
{
    struct tarn_flow *flow = search->flow;
    uint64_t bytes = room_for(search, op, last);
    if (bytes == 0) return true;
    assert(bytes <= flow->lacking[op]);
    flow->lacking[op] -= bytes;
    if (flow->lacking[op] == 0)
        search->lacking[block_of(search, op)] &=
            ~(UINT64_C(1) << flow->graph->ops[op].position % BLOCK);
    for (const struct step *step = &search->steps[last];; step = &search->steps[step->parent]) {
        if (!give_more(search, step->storage, op, bytes)) return false;
        if (!step->transfer) {
            assert(bytes <= flow->left[step->storage]);
            flow->left[step->storage] -= bytes;
            return true;
        }
        assert(bytes <= flow->transfers[step->transfer - 1].bytes);
        flow->transfers[step->transfer - 1].bytes -= bytes;
        op = step->op;
    }
}

/* ---- Search ---- */

static bool add_step(struct search *search, const struct step *step)
{
    struct step *steps = tarn_region_grow(search->flow->region, search->steps, &search->steps_room,
                                          (size_t)search->steps_count + 1, sizeof *steps);
    if (!steps) return false;
    search->steps = steps;
    assert(step->position < search->threshold[step->stream]);
    search->steps[search->steps_count++] = *step;
    search->threshold[step->stream] = step->position;
    return true;
}

static void note(struct search *search, uint32_t parent, uint32_t t, struct holder holder)
{
    uint32_t storage = search->flow->transfers[holder.transfer - 1].storage;
    uint32_t first = first_reached(search, storage, t);
    if (first >= search->best[t]) return;
    search->best[t] = first;
    search->best_step[t] =
        (struct step){t, first, search->threshold[t], storage, holder.transfer, holder.op, parent};
}

/* Records the transfers to ops [begin, end) that move the wanted thresholds furthest. */
static void look_at_transfers(struct search *search, uint32_t parent, uint32_t begin, uint32_t end,
                              uint32_t wanted_count)
{
    const struct tarn_flow *flow = search->flow;
    for (uint32_t i = begin; i < end; i++) {
        uint32_t op = flow->graph->streams[search->steps[parent].stream].ops[i];
        for (uint32_t g = flow->transfers_of[op]; g; g = flow->transfers[g - 1].next) {
            spend(search, wanted_count);
            for (uint32_t k = 0; k < wanted_count && flow->transfers[g - 1].bytes > 0; k++)
                note(search, parent, search->wanted[k], (struct holder){op, g});
        }
    }
}

static bool may_improve(struct search *search, uint32_t b)
{
    uint32_t streams_count = search->flow->reuse->streams_count, better = 0;
    const uint32_t *lowest = search->lowest + (size_t)b * streams_count;
    spend(search, 1 + streams_count / 8);
    for (uint32_t t = 0; t < streams_count; t++) better |= lowest[t] < search->best[t];
    return better;
}

/* Is every transfer that may improve something known, and not empty? */
static bool are_holders_known(const struct search *search, uint32_t b)
{
    const struct tarn_flow *flow = search->flow;
    size_t entry = (size_t)b * flow->reuse->streams_count;
    for (uint32_t t = 0; t < flow->reuse->streams_count; t++, entry++) {
        uint32_t transfer = search->holder[entry].transfer;
        bool better = search->lowest[entry] < search->best[t];
        if (better && (transfer == 0 || flow->transfers[transfer - 1].bytes == 0)) return false;
    }
    return true;
}

/* Adds the transfers of ops [begin, end) of a block to a step. */
static void look_at_block(struct search *search, uint32_t n, uint32_t b, uint32_t begin,
                          uint32_t end)
{
    const struct tarn_flow *flow = search->flow;
    uint32_t wanted_count = 0;
    size_t entry = (size_t)b * flow->reuse->streams_count;
    if (!are_holders_known(search, b)) refresh(search, search->steps[n].stream, b);
    for (uint32_t t = 0; t < flow->reuse->streams_count; t++, entry++) {
        if (search->lowest[entry] >= search->best[t]) continue;
        uint32_t position = flow->graph->ops[search->holder[entry].op].position;
        if (position >= begin && position < end)
            note(search, n, t, search->holder[entry]);
        else
            search->wanted[wanted_count++] = t;
    }
    if (wanted_count > 0) look_at_transfers(search, n, begin, end, wanted_count);
}

/* Hands bytes to the ops [begin, end) of one block that lack bytes. */
static bool feed(struct search *search, uint32_t n, uint32_t b, uint32_t begin, uint32_t end,
                 bool *fed)
{
    const uint32_t *ops = search->flow->graph->streams[search->steps[n].stream].ops;
    uint64_t lacking = search->lacking[b] & UINT64_MAX << begin % BLOCK;
    if (end % BLOCK) lacking &= ~(UINT64_MAX << end % BLOCK);
    for (; lacking; lacking &= lacking - 1) {
        *fed = true;
        uint32_t i = begin / BLOCK * BLOCK + (uint32_t)__builtin_ctzll(lacking);
        if (!augment(search, ops[i], n)) return false;
    }
    return true;
}

/* Adds the ops of one step to the reach, and the steps that follow from them. */
static bool take_step(struct search *search, uint32_t n, bool *fed)
{
    struct step step = search->steps[n];
    uint32_t streams_count = search->flow->reuse->streams_count;
    memcpy(search->best, search->threshold, streams_count * sizeof *search->best);
    for (uint32_t i = step.position, end; i < step.above; i = end) {
        uint32_t b = search->begin[step.stream] + i / BLOCK;
        end = (i / BLOCK + 1) * BLOCK < step.above ? (i / BLOCK + 1) * BLOCK : step.above;
        if (!feed(search, n, b, i, end, fed)) return false;
        if (may_improve(search, b)) look_at_block(search, n, b, i, end);
    }
    for (uint32_t t = 0; t < streams_count; t++) {
        if (search->best[t] < search->threshold[t] && !add_step(search, &search->best_step[t]))
            return false;
    }
    return true;
}

/* Storages only lose bytes, so the first storage with bytes left stays the first until it has
 * none. */
static void find_source(struct search *search, uint32_t s)
{
    const struct tarn_flow *flow = search->flow;
    if (search->source[s] != TARN_NONE && flow->left[search->source[s]] > 0) return;
    uint32_t first = flow->graph->streams[s].ops_count;
    search->source[s] = TARN_NONE;
    spend(search, search->sources_count);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < search->sources_count; i++) {
        uint32_t a = search->sources[i];
        if (flow->left[a] == 0) continue;
        search->sources[kept++] = a;
        if (first_reached(search, a, s) >= first) continue;
        first = first_reached(search, a, s);
        search->source[s] = a;
    }
    search->sources_count = kept;
}

static bool search_once(struct search *search, bool *fed)
{
    struct tarn_flow *flow = search->flow;
    if (!flow->unused) {
        flow->unused = search->emptied;
        search->emptied = 0;
    }
    *fed = false;
    search->steps_count = 0;
    for (uint32_t s = 0; s < flow->reuse->streams_count; s++) {
        search->threshold[s] = flow->graph->streams[s].ops_count;
        find_source(search, s);
        if (search->source[s] == TARN_NONE) continue;
        uint32_t a = search->source[s];
        struct step step = {
            s, first_reached(search, a, s), search->threshold[s], a, 0, TARN_NONE, TARN_NONE};
        if (!add_step(search, &step)) return false;
    }
    for (uint32_t n = 0; n < search->steps_count; n++)
        if (!take_step(search, n, fed)) return false;
    return true;
}

/* ---- All searches ---- */

static bool search_init(struct search *search, struct tarn_flow *flow, uint64_t work,
                        uint32_t *threshold)
{
    const struct tarn_graph *graph = flow->graph;
    struct tarn_region *region = flow->region;
    size_t streams_count = graph->streams_count, blocks_count = 0;
    *search = (struct search){.flow = flow, .threshold = threshold, .work_left = work};
    search->begin = tarn_region_take(region, streams_count, sizeof *search->begin);
    if (!search->begin) return false;
    for (uint32_t s = 0; s < streams_count; s++) {
        search->begin[s] = (uint32_t)blocks_count;
        blocks_count += graph->streams[s].ops_count / BLOCK + 1;
    }
    size_t entries = blocks_count * streams_count;
    search->lacking = tarn_region_take(region, blocks_count, sizeof *search->lacking);
    search->lowest = tarn_region_take(region, entries, sizeof *search->lowest);
    search->holder = tarn_region_take(region, entries, sizeof *search->holder);
    search->wanted = tarn_region_take(region, streams_count, sizeof *search->wanted);
    search->best = tarn_region_take(region, streams_count, sizeof *search->best);
    search->best_step = tarn_region_take(region, streams_count, sizeof *search->best_step);
    search->sources = tarn_region_take(region, flow->reuse->count, sizeof *search->sources);
    search->source = tarn_region_take(region, streams_count, sizeof *search->source);
    if (!search->lacking || !search->holder || !search->wanted || !search->lowest ||
        !search->best || !search->best_step || !search->source || !search->sources)
        return false;
    for (uint32_t s = 0; s < streams_count; s++) {
        search->source[s] = TARN_NONE;
        threshold[s] = graph->streams[s].ops_count;
    }
    for (uint32_t a = 0; a < flow->reuse->count; a++)
        if (flow->left[a] > 0) search->sources[search->sources_count++] = a;
    for (uint32_t op = 0; op < graph->ops_count; op++)
        if (flow->lacking[op] > 0)
            search->lacking[block_of(search, op)] |= UINT64_C(1) << graph->ops[op].position % BLOCK;
    return true;
}

bool tarn_flow_augment(struct tarn_flow *flow, uint64_t work, uint32_t *threshold, bool *maximal)
{
    struct search search;
    bool fed = true, ok = search_init(&search, flow, work, threshold);
    while (ok && fed && search.work_left > 0) ok = search_once(&search, &fed);
    *maximal = !fed;
    flow->visits += work - search.work_left;
    return ok;
}

uint64_t tarn_antichain_weight(const uint32_t *threshold, const struct tarn_reuse *reuse,
                               const uint64_t *reserved)
{
    uint64_t weight = 0;
    for (uint32_t a = 0; a < reuse->count; a++)
        if (tarn_antichain_has(threshold, reuse, a)) weight += reserved[a];
    return weight;
}

uint32_t tarn_antichain_heaviest(const uint32_t *threshold, const struct tarn_reuse *reuse,
                                 const uint64_t *reserved, uint32_t *list, uint32_t room)
{
    uint32_t members = 0;
    for (uint32_t a = 0; a < reuse->count; a++) {
        if (!tarn_antichain_has(threshold, reuse, a)) continue;
        uint32_t i = members++ < room ? members - 1 : room;
        if (i == room && reserved[list[--i]] >= reserved[a]) continue;
        for (; i > 0 && reserved[list[i - 1]] < reserved[a]; i--) list[i] = list[i - 1];
        list[i] = a;
    }
    return members;
}

/* ---- A cut of list order ---- */

/* Storage a is in the antichain of the first n ops of list order for every n after its producer up
 * to the first op that may overwrite it, so a sum of differences weighs all these antichains. */
static bool find_list_cut(uint32_t *threshold, struct tarn_region *region,
                          const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                          const uint64_t *reserved)
{
    uint64_t *change = tarn_region_take(region, (size_t)graph->ops_count + 2, sizeof *change);
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
    memset(threshold, 0, reuse->streams_count * sizeof *threshold);
    assert(weight == 0 || best <= graph->ops_count);
    for (uint32_t i = 0; i < best; i++) threshold[graph->ops[graph->order[i]].stream]++;
    return true;
}

/* Takes the cut if its antichain is heavier. */
static bool compare_with_list_cut(struct tarn_antichain *antichain, struct tarn_region *region,
                                  const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                                  const uint64_t *reserved)
{
    uint32_t *threshold = tarn_region_take(region, reuse->streams_count, sizeof *threshold);
    bool ok = threshold && find_list_cut(threshold, region, reuse, graph, reserved);
    uint64_t weight = ok ? tarn_antichain_weight(threshold, reuse, reserved) : 0;
    if (weight > antichain->bound) {
        antichain->bound = weight;
        memcpy(antichain->threshold, threshold, reuse->streams_count * sizeof *threshold);
    }
    return ok;
}

/* ---- Chains ---- */

static bool has_one_size(const uint64_t *reserved, uint32_t count)
{
    for (uint32_t a = 1; a < count; a++)
        if (reserved[a] != reserved[0]) return false;
    return count > 0 && reserved[0] > 0;
}

/* Each storage of an op continues the chain of one storage that the op's transfers come from: with
 * one size every transfer is a whole storage. */
static bool find_chains(struct tarn_antichain *antichain, const struct tarn_flow *flow)
{
    uint32_t count = flow->reuse->count, *chain = antichain->chain;
    uint32_t *taken = tarn_region_take(flow->region, flow->graph->ops_count, sizeof *taken);
    uint32_t *before = tarn_region_take(flow->region, count, sizeof *before);
    uint32_t *after = tarn_region_take(flow->region, count, sizeof *after);
    if (!taken || !before || !after) return false;
    memcpy(taken, flow->transfers_of, flow->graph->ops_count * sizeof *taken);
    for (uint32_t a = 0; a < count; a++) before[a] = after[a] = TARN_NONE;
    for (uint32_t b = 0; b < count; b++) {
        uint32_t *transfer = &taken[flow->graph->storages[b].producer];
        while (*transfer && flow->transfers[*transfer - 1].bytes == 0)
            *transfer = flow->transfers[*transfer - 1].next;
        if (!*transfer) continue;
        before[b] = flow->transfers[*transfer - 1].storage;
        assert(after[before[b]] == TARN_NONE);
        after[before[b]] = b;
        *transfer = flow->transfers[*transfer - 1].next;
    }
    for (uint32_t a = 0; a < count; a++) {
        if (before[a] != TARN_NONE) continue;
        for (uint32_t b = a; b != TARN_NONE; b = after[b]) chain[b] = antichain->chains_count;
        antichain->chains_count++;
    }
    return true;
}

/* A work limit of about a second. Small graphs never come near it. */
static uint64_t default_work(const struct tarn_reuse *reuse)
{
    return (UINT64_C(1) << 26) + 128 * (uint64_t)reuse->count;
}

enum tarn_status tarn_antichain_init(struct tarn_antichain *antichain, struct tarn_region *region,
                                     const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                                     const uint64_t *reserved)
{
    return tarn_antichain_init_within(antichain, region, reuse, graph, reserved,
                                      default_work(reuse));
}

enum tarn_status tarn_antichain_init_within(struct tarn_antichain *antichain,
                                            struct tarn_region *region,
                                            const struct tarn_reuse *reuse,
                                            const struct tarn_graph *graph,
                                            const uint64_t *reserved, uint64_t work)
{
    struct tarn_flow flow;
    bool maximal;
    assert(reuse->count == graph->planned_count && reuse->streams_count == graph->streams_count);
    *antichain = (struct tarn_antichain){.streams_count = reuse->streams_count};
    antichain->threshold =
        tarn_region_take(region, reuse->streams_count, sizeof *antichain->threshold);
    if (!antichain->threshold) return TARN_SYSTEM;
    if (has_one_size(reserved, reuse->count)) {
        antichain->chain = tarn_region_take(region, reuse->count, sizeof *antichain->chain);
        if (!antichain->chain) return TARN_SYSTEM;
    }
    struct tarn_region_mark mark = tarn_region_mark(region);
    bool ok = tarn_flow_init(&flow, region, reuse, graph, reserved) && tarn_flow_greedy(&flow) &&
              tarn_flow_augment(&flow, work, antichain->threshold, &maximal);
    assert(!ok || tarn_flow_is_valid(&flow, reserved));
    antichain->visits = flow.visits;
    if (ok && antichain->chain) ok = find_chains(antichain, &flow);
    tarn_region_release(region, mark);
    if (ok) antichain->bound = tarn_antichain_weight(antichain->threshold, reuse, reserved);
    if (ok && !maximal) ok = compare_with_list_cut(antichain, region, reuse, graph, reserved);
    tarn_region_release(region, mark);
    return ok ? TARN_OK : TARN_SYSTEM;
}
