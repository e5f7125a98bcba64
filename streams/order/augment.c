/* Makes a flow maximal by augmenting paths. What a storage may be given to is a suffix of every
 * stream, so what can be reached from the storages with bytes left is one, too, and a search is a
 * list of steps, each of which moves one stream's threshold down:
 *
 *     a storage with bytes left ──► step: stream 2 from position 900 on
 *        an op there holds a transfer of b ──► step: stream 0 from position 700 on
 *           an op there holds a transfer of c ──► step: stream 2 from position 650 on, lacking op
 *
 * Only the transfer that moves a threshold furthest matters, and every 64 positions of a stream
 * know the lowest positions that theirs may move to. So a search looks at few transfers, and costs
 * O(V S / 64) and a little for each step. It hands bytes along every path that it meets, as far as
 * earlier ones have left room. When no op in reach lacks bytes the flow is maximal. */
#include <assert.h>
#include <string.h>

#include "flow.h"
#include "streams/base/region.h"

enum { BLOCK = 64 };

/* ---- What is known of 64 positions ---- */

/* A stream's threshold moves from `above` to `position`. */
struct step {
    uint32_t stream;
    uint32_t position, above;
    uint32_t storage;  /* whose reach that is */
    uint32_t transfer; /* transfer + 1 that brought the storage in; 0: it has bytes left */
    uint32_t op;       /* that has the transfer */
    uint32_t parent;   /* the step that brought the op in */
};

/* The transfer that may move a threshold furthest; once it is empty, the next one is not known. */
struct holder {
    uint32_t op;
    uint32_t transfer; /* transfer + 1; 0: not known */
};

struct search {
    struct tarn_flow *flow;
    uint32_t *threshold; /* stream -> ops from this position on are in reach */
    uint64_t work_left;
    uint32_t *begin;   /* stream -> its first block */
    uint64_t *lacking; /* block -> a bit for each op that lacks bytes */
    uint32_t *lowest; /* [block][stream]: at most first of any storage with a transfer to its ops */
    struct holder *holder; /* the same: whose first that is */
    uint32_t *best;        /* the same of a step */
    struct step *best_step;
    uint32_t *wanted;  /* streams that a block's transfers are looked at for */
    uint32_t *source;  /* stream -> the storage with bytes left that is usable there first */
    uint32_t *sources; /* storages with bytes left, and some that had */
    uint32_t sources_count;
    uint32_t emptied; /* transfer + 1: a list of those to use again after this search */
    struct step *steps;
    size_t steps_room;
    uint32_t steps_count;
};

static void spend(struct search *search, uint64_t work)
{
    search->work_left -= work < search->work_left ? work : search->work_left;
}

static uint32_t first_of(const struct search *search, uint32_t a, uint32_t s)
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
        uint32_t first = first_of(search, storage, t);
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
        if (!tarn_flow_give(flow, storage, op, bytes)) return false;
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
    uint32_t first = first_of(search, storage, t);
    if (first >= search->best[t]) return;
    search->best[t] = first;
    search->best_step[t] =
        (struct step){t, first, search->threshold[t], storage, holder.transfer, holder.op, parent};
}

/* Takes note of the transfers to ops [begin, end) that move the wanted thresholds furthest. */
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

/* Takes note of what the ops [begin, end) of a block bring to a step. */
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

/* Hands bytes to the ops [begin, end) of one block that lack some. */
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

/* Brings in the ops of one step, and adds the steps that follow from it. */
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

/* Storages only ever run out of bytes: one that was the first stays so until it has none left. */
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
        if (first_of(search, a, s) >= first) continue;
        first = first_of(search, a, s);
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
        struct step step = {s,        first_of(search, a, s), search->threshold[s], a, 0, TARN_NONE,
                            TARN_NONE};
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
