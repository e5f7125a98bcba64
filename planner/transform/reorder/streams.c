/* A list of all ops gives every stream its order; data, control and hazards between streams are the
 * same for all lists. So an order is weighed on a copy of the graph in which only positions,
 * ranks and the order of touchers are new. Tried first are orders between the one that came in and
 * the one that is best where everything runs in one stream. Then the heaviest antichain names its
 * witness: the storages that cannot share bytes. Of the largest of them, the producer is put off
 * behind where the antichain lies in its stream, or the touchers beyond that are pulled before it;
 * what lowers the weight is kept. Cost: tries times the clocks and the antichain of the graph. */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

#include "planner/transform/constraints.h"
#include "streams/base/region.h"
#include "streams/order/antichain.h"
#include "streams/order/simulator.h"

enum { MEMBERS_MAX = 12 };

struct weighing {
    struct tarn_graph graph; /* a view of the one that came in, in the order that is weighed */
    const uint64_t *reserved;
    struct tarn_constraints constraints;
    uint32_t *begin[2], *arcs[2]; /* predecessors and successors in other streams */
    uint32_t *places;             /* what the streams' lists point into */
    uint32_t *touchers;
    uint32_t *rank;
    bool *mark; /* op */
    uint32_t *attempt, *room;
    uint64_t *key;
    /* Of the order that was weighed last: */
    struct tarn_region witness; /* of the next two */
    struct tarn_reuse reuse;
    struct tarn_antichain antichain;
};

/* ---- The graph in another order ---- */

static enum tarn_status copy_arcs(struct weighing *all, unsigned k, const struct tarn_arcs *from)
{
    const struct tarn_graph *graph = &all->graph;
    uint32_t *begin = calloc((size_t)graph->ops_count + 1, sizeof *begin), count = 0;
    uint32_t *ops = malloc(((size_t)all->constraints.arcs_count + 1) * sizeof *ops);
    all->begin[k] = begin;
    all->arcs[k] = ops;
    if (!begin || !ops) return TARN_SYSTEM;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        for (uint32_t i = from->begin[v]; i < from->begin[v + 1]; i++) {
            uint32_t u = from->ops[i];
            if (graph->ops[u].stream != graph->ops[v].stream) ops[count++] = u;
        }
        begin[v + 1] = count;
    }
    return TARN_OK;
}

static enum tarn_status copy_storages(struct weighing *all)
{
    struct tarn_graph *graph = &all->graph;
    size_t count = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) count += graph->storages[a].touchers_count;
    struct tarn_storage *storages = malloc(((size_t)graph->storages_count + 1) * sizeof *storages);
    all->touchers = malloc((count + 1) * sizeof *all->touchers);
    if (storages)
        memcpy(storages, graph->storages, (size_t)graph->storages_count * sizeof *storages);
    graph->storages = storages;
    if (!storages || !all->touchers) return TARN_SYSTEM;
    uint32_t *next = all->touchers;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        uint32_t touchers = storages[a].touchers_count;
        memcpy(next, storages[a].touchers, touchers * sizeof *next);
        storages[a].touchers = next;
        next += touchers;
    }
    return TARN_OK;
}

static void finish(struct weighing *all)
{
    tarn_region_finish(&all->witness);
    tarn_constraints_finish(&all->constraints);
    for (unsigned k = 0; k < 2; k++) {
        free(all->begin[k]);
        free(all->arcs[k]);
    }
    free(all->graph.ops);
    free(all->graph.streams);
    free(all->graph.storages);
    free(all->places);
    free(all->touchers);
    free(all->rank);
    free(all->mark);
    free(all->attempt);
    free(all->room);
    free(all->key);
}

static enum tarn_status copy_records(struct weighing *all)
{
    struct tarn_graph *graph = &all->graph;
    size_t count = (size_t)graph->ops_count + 1, streams_count = (size_t)graph->streams_count + 1;
    const struct tarn_graph_op *ops = graph->ops;
    const struct tarn_graph_stream *streams = graph->streams;
    graph->ops = malloc(count * sizeof *graph->ops);
    graph->streams = malloc(streams_count * sizeof *graph->streams);
    all->places = malloc(count * sizeof *all->places);
    all->rank = malloc(count * sizeof *all->rank);
    all->mark = malloc(count * sizeof *all->mark);
    all->attempt = malloc(count * sizeof *all->attempt);
    all->room = malloc(count * sizeof *all->room);
    all->key = malloc(count * sizeof *all->key);
    if (graph->ops) memcpy(graph->ops, ops, graph->ops_count * sizeof *ops);
    if (graph->streams) memcpy(graph->streams, streams, graph->streams_count * sizeof *streams);
    enum tarn_status status = copy_storages(all);
    if (!graph->ops || !graph->streams || !all->places || !all->rank || !all->mark ||
        !all->attempt || !all->room || !all->key)
        return TARN_SYSTEM;
    return status;
}

static enum tarn_status init(struct weighing *all, const struct tarn_graph *graph,
                             const uint64_t *reserved)
{
    *all = (struct weighing){.graph = *graph, .reserved = reserved};
    all->graph.references = NULL;
    enum tarn_status status = copy_records(all);
    if (status == TARN_OK) status = tarn_constraints_init(&all->constraints, graph);
    if (status == TARN_OK) status = copy_arcs(all, 0, &all->constraints.predecessors);
    if (status == TARN_OK) status = copy_arcs(all, 1, &all->constraints.successors);
    all->graph.predecessors = (struct tarn_arcs){all->begin[0], all->arcs[0]};
    all->graph.successors = (struct tarn_arcs){all->begin[1], all->arcs[1]};
    all->graph.rank = all->rank;
    return status;
}

/* Few touchers, and nearly in order. */
static void sort_touchers(const struct weighing *all, uint32_t *touchers, uint32_t count)
{
    for (uint32_t k = 1; k < count; k++) {
        uint32_t v = touchers[k], i = k;
        for (; i > 0 && all->rank[touchers[i - 1]] > all->rank[v]; i--)
            touchers[i] = touchers[i - 1];
        touchers[i] = v;
    }
}

static void take_order(struct weighing *all, const uint32_t *order)
{
    struct tarn_graph *graph = &all->graph;
    uint32_t begin = 0;
    graph->order = order;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        graph->streams[s].ops = all->places + begin;
        begin += graph->streams[s].ops_count;
        graph->streams[s].ops_count = 0;
    }
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = order[i];
        struct tarn_graph_stream *stream = &graph->streams[graph->ops[v].stream];
        all->rank[v] = i;
        graph->ops[v].position = stream->ops_count;
        all->places[(size_t)(stream->ops - all->places) + stream->ops_count++] = v;
    }
    for (uint32_t *next = all->touchers, a = 0; a < graph->planned_count; a++) {
        sort_touchers(all, next, graph->storages[a].touchers_count);
        next += graph->storages[a].touchers_count;
    }
}

/* Leaves the witness in `reuse` and `antichain`. */
static enum tarn_status weigh(struct weighing *all, const uint32_t *order, uint64_t *weight)
{
    struct tarn_clocks clocks;
    struct tarn_region region = {.chunks = NULL};
    tarn_region_finish(&all->witness);
    take_order(all, order);
    enum tarn_status status = tarn_clocks_init(&clocks, &region, &all->graph);
    if (status == TARN_OK)
        status = tarn_reuse_init(&all->reuse, &all->witness, &clocks, &all->graph);
    tarn_region_finish(&region);
    if (status == TARN_OK)
        status = tarn_antichain_init(&all->antichain, &all->witness, &all->reuse, &all->graph,
                                     all->reserved);
    if (status == TARN_OK) *weight = all->antichain.bound;
    return status;
}

/* The modelled critical path of the order that was taken last. */
static enum tarn_status find_time(const struct weighing *all, uint64_t *ns)
{
    struct tarn_wait *waits = NULL;
    struct tarn_timeline timeline;
    struct tarn_region region = {.chunks = NULL};
    uint32_t count;
    enum tarn_status status = tarn_events_minimal(&all->graph, &waits, &count);
    if (status == TARN_OK)
        status = tarn_timeline_init(&timeline, &region, &all->graph, waits, count, TARN_WAIT_NS);
    if (status == TARN_OK) *ns = timeline.makespan_ns;
    tarn_region_finish(&region);
    free(waits);
    return status;
}

/* ---- Changes ---- */

static bool has_marked(const struct weighing *all, const struct tarn_arcs *arcs, uint32_t v)
{
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
        if (all->mark[arcs->ops[i]]) return true;
    }
    return false;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Puts `early`, and all between that comes after it, behind `late`. False: late comes after it. */
static bool put_off(struct weighing *all, const uint32_t *order, uint32_t early, uint32_t late)
{
    uint32_t begin = all->rank[early], end = all->rank[late], kept = begin, put = 0;
    if (begin >= end) return false;
    memset(all->mark, 0, all->graph.ops_count * sizeof *all->mark);
    memcpy(all->attempt, order, all->graph.ops_count * sizeof *order);
    for (uint32_t i = begin; i <= end; i++) {
        uint32_t v = order[i];
        all->mark[v] = v == early || has_marked(all, &all->constraints.predecessors, v);
        if (all->mark[v])
            all->room[put++] = v;
        else
            all->attempt[kept++] = v;
    }
    memcpy(all->attempt + kept, all->room, put * sizeof *order);
    return !all->mark[late];
}

/* Puts `late`, and all between that comes before it, before `early`. False: early comes before it.
 */
static bool pull(struct weighing *all, const uint32_t *order, uint32_t early, uint32_t late)
{
    uint32_t begin = all->rank[early], end = all->rank[late], place = begin;
    if (begin >= end) return false;
    memset(all->mark, 0, all->graph.ops_count * sizeof *all->mark);
    memcpy(all->attempt, order, all->graph.ops_count * sizeof *order);
    for (uint32_t i = end + 1; i-- > begin;) {
        uint32_t v = order[i];
        all->mark[v] = v == late || has_marked(all, &all->constraints.successors, v);
    }
    for (uint32_t part = 0; part < 2; part++) {
        for (uint32_t i = begin; i <= end; i++) {
            if (all->mark[order[i]] == (part == 0)) all->attempt[place++] = order[i];
        }
    }
    return !all->mark[early];
}

/* Between two orders: every op at the weighted mean of its places, `part` eighths of the second.
 * Whoever comes first in both comes first. */
static void mix(struct weighing *all, uint32_t *const order[2], uint32_t part)
{
    uint32_t count = all->graph.ops_count;
    for (uint32_t i = 0; i < count; i++) all->room[order[0][i]] = (8 - part) * i;
    for (uint32_t i = 0; i < count; i++) all->room[order[1][i]] += part * i;
    for (uint32_t i = 0; i < count; i++) all->key[i] = (uint64_t)all->room[order[0][i]] << 32 | i;
    qsort(all->key, count, sizeof *all->key, compare_keys);
    for (uint32_t i = 0; i < count; i++) all->attempt[i] = order[0][(uint32_t)all->key[i]];
}

/* ---- The search ---- */

struct search {
    struct weighing *all;
    uint32_t *best;
    struct tarn_reorder_weights *weights;
    uint64_t weight;
    uint32_t tries;                /* left */
    uint32_t given_up;             /* of them, not taken when the search was ended */
    uint32_t members[MEMBERS_MAX]; /* of the best order's antichain, the heaviest first */
    uint32_t members_count;
    uint32_t *threshold; /* its place in every stream */
};

static void find_members(struct search *search)
{
    const struct weighing *all = search->all;
    search->members_count = 0;
    memcpy(search->threshold, all->antichain.threshold,
           all->graph.streams_count * sizeof *search->threshold);
    for (uint32_t a = 0; a < all->reuse.count; a++) {
        if (!tarn_antichain_has(search->threshold, &all->reuse, a)) continue;
        uint32_t i = search->members_count;
        if (i == MEMBERS_MAX && all->reserved[search->members[i - 1]] >= all->reserved[a]) continue;
        if (i == MEMBERS_MAX) i--;
        for (; i > 0 && all->reserved[search->members[i - 1]] < all->reserved[a]; i--)
            search->members[i] = search->members[i - 1];
        search->members[i] = a;
        if (search->members_count < MEMBERS_MAX) search->members_count++;
    }
}

/* Is an order of that weight, the one weighed last, better than the best? */
static enum tarn_status judge(const struct search *search, uint64_t weight, bool *better)
{
    uint64_t ns;
    *better = weight < search->weight;
    if (!*better || !search->weights->keep_time) return TARN_OK;
    enum tarn_status status = find_time(search->all, &ns);
    *better = status == TARN_OK && ns <= search->weights->before_ns;
    return status;
}

/* Weighs the attempt; the best order's ranks are back afterwards. */
static enum tarn_status try_attempt(struct search *search, bool *better)
{
    struct weighing *all = search->all;
    uint64_t weight;
    *better = false;
    if (!tarn_steps_next(search->weights->steps, search->weight)) {
        search->given_up += search->tries;
        search->tries = 0;
        return TARN_OK;
    }
    search->tries--;
    enum tarn_status status = weigh(all, all->attempt, &weight);
    if (status == TARN_OK) status = judge(search, weight, better);
    if (status != TARN_OK) return status;
    if (*better) {
        search->weight = weight;
        memcpy(search->best, all->attempt, all->graph.ops_count * sizeof *search->best);
    }
    take_order(all, search->best);
    return status;
}

/* The op before which, or behind which, the antichain lies in the stream; TARN_NONE: none. */
static uint32_t last_before(const struct search *search, uint32_t stream)
{
    uint32_t x = search->threshold[stream];
    return x > 0 ? search->all->graph.streams[stream].ops[x - 1] : TARN_NONE;
}

static enum tarn_status try_member(struct search *search, uint32_t a, bool *better)
{
    struct weighing *all = search->all;
    const struct tarn_storage *storage = &all->graph.storages[a];
    uint32_t end = last_before(search, all->graph.ops[storage->producer].stream);
    enum tarn_status status = TARN_OK;
    if (end != TARN_NONE && put_off(all, search->best, storage->producer, end))
        status = try_attempt(search, better);
    for (uint32_t k = storage->touchers_count; k-- > 0 && status == TARN_OK && !*better;) {
        uint32_t v = storage->touchers[k], early = last_before(search, all->graph.ops[v].stream);
        if (search->tries == 0) break;
        if (early != TARN_NONE && pull(all, search->best, early, v))
            status = try_attempt(search, better);
    }
    return status;
}

static enum tarn_status improve(struct search *search)
{
    bool better = true;
    enum tarn_status status = TARN_OK;
    while (status == TARN_OK && better && search->tries > 0) {
        uint64_t weight;
        better = false;
        status = weigh(search->all, search->best, &weight);
        if (status != TARN_OK) return status;
        find_members(search);
        for (uint32_t k = 0; k < search->members_count && !better && search->tries > 0; k++) {
            status = try_member(search, search->members[k], &better);
            if (status != TARN_OK) return status;
        }
    }
    return status;
}

/* Begins with the best of the two orders and of those between them. order[1] becomes the best. */
static enum tarn_status start(struct search *search, uint32_t *const order[2])
{
    struct weighing *all = search->all;
    struct tarn_reorder_weights *weights = search->weights;
    bool better;
    enum tarn_status status = weigh(all, order[0], &weights->before);
    if (status == TARN_OK) status = find_time(all, &weights->before_ns);
    search->weight = weights->before;
    memcpy(search->best, order[0], all->graph.ops_count * sizeof *search->best);
    for (uint32_t part = 8; part > 0 && status == TARN_OK; part--) {
        uint64_t weight;
        mix(all, order, part);
        status = weigh(all, all->attempt, &weight);
        if (status == TARN_OK) status = judge(search, weight, &better);
        if (status != TARN_OK || !better) continue;
        search->weight = weight;
        memcpy(search->best, all->attempt, all->graph.ops_count * sizeof *search->best);
    }
    weights->start = search->weight;
    return status;
}

enum tarn_status tarn_reorder_streams(const struct tarn_graph *graph, const uint64_t *reserved,
                                      uint32_t *const order[2],
                                      struct tarn_reorder_weights *weights)
{
    struct weighing all;
    struct search search = {.all = &all, .weights = weights, .tries = weights->tries};
    search.threshold = malloc(((size_t)graph->streams_count + 1) * sizeof *search.threshold);
    search.best = malloc(((size_t)graph->ops_count + 1) * sizeof *search.best);
    enum tarn_status status = init(&all, graph, reserved);
    if (!search.threshold || !search.best) status = TARN_SYSTEM;
    if (status == TARN_OK) status = start(&search, order);
    if (status == TARN_OK) status = improve(&search);
    if (status == TARN_OK) {
        memcpy(order[1], search.best, graph->ops_count * sizeof *order[1]);
        take_order(&all, order[1]);
        status = find_time(&all, &weights->after_ns);
    }
    weights->after = search.weight;
    weights->tried = weights->tries - search.tries - search.given_up;
    finish(&all);
    free(search.threshold);
    free(search.best);
    return status;
}
