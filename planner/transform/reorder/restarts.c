/* Starts the search for orders of several streams again. The orders to start from are, of the
 * order that came in and of the best one so far:
 *
 *     last    streams that no other waits for run at the end; their components, which do not wait
 *             for each other, one after another, those with the fewest bytes of their own first
 *     first   an op that uses the most bytes, and all that it waits for, run first
 *     fence   all that need not come after such an op runs before it, and not beside it: the op of
 *             each other stream for which the op's own stream waits last is chosen to have the
 *             fewest bytes after it. The same with the arcs turned round, and from where the op is
 *     noise   every op is moved by a random distance, as far as the arcs allow
 *
 * Cost: the rounds for one stream and the search for several, for each start; the number of starts
 * is limited by the visits that these take. */
#include "restarts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/checked.h"
#include "streams/base/heap.h"
#include "streams/base/random.h"
#include "streams/base/union.h"

/* At the default effort: visits after which no start is made, but a few starts in any case; and the
 * most starts. A round for one stream counts as so many visits of each op. */
#define VISITS_MAX UINT64_C(120000000)
/* The same for fences after noise. */
#define FENCES_VISITS_MAX UINT64_C(40000000)
enum { STARTS_MIN = 10, STARTS_MAX = 300, ROUND_VISITS = 16, EFFORT_DEFAULT = 200, HEAVIEST = 4 };

/* Rounds for one stream after noise, but for every fourth start, which has none: more of them bring
 * every start to the same order for one stream. */
enum { NOISE_ROUNDS = 2 };

static const uint32_t distances[] = {5, 20, 80, 300};

struct restarts {
    struct tarn_reordering *reordering;
    struct tarn_reorder_streams *search;
    const struct tarn_graph *graph;
    const uint32_t *given; /* the order that came in */
    uint64_t bound;
    uint32_t effort;
    uint32_t starts, starts_max;
    uint64_t visits, visits_max; /* of the rounds; of them and of orders that are weighed */
    uint32_t *order;             /* of ops: the start */
    uint32_t *nodes;             /* the same of nodes */
    uint32_t *list;              /* the best order for one stream */
    uint64_t *key;               /* op -> what it is sorted by */
    uint32_t *waits;             /* op -> ops that it still waits for */
    uint32_t *items;             /* of a heap */
    uint32_t *base;              /* of ops: what a fence is put into */
    uint32_t *aside;             /* of ops: another order */
    uint64_t aside_weight;
    uint32_t *group;     /* op -> its part of a fenced order, the last is 0 */
    uint32_t *level;     /* stream -> the part that its last op for which others wait is in */
    uint32_t *least;     /* stream -> the op that becomes its fence */
    uint64_t *most;      /* op -> the most bytes that it, or an op after it, uses */
    uint32_t *root;      /* op -> an op of its component */
    uint64_t *own;       /* op -> bytes of the storages that it uses */
    uint64_t *temporary; /* op -> of those, bytes that only its own stream uses */
    bool *mark;          /* op, stream */
    uint32_t heaviest[HEAVIEST];
    uint32_t heaviest_count;
    uint64_t random;
};

static uint64_t visits_of(const struct restarts *restarts)
{
    return restarts->visits + restarts->search->weighing.work;
}

static bool is_over(const struct restarts *restarts)
{
    const struct tarn_reorder_streams *search = restarts->search;
    if (search->weights->after <= restarts->bound) return true;
    if (tarn_steps_is_over(&restarts->reordering->steps)) return true;
    return restarts->starts >= restarts->starts_max ||
           (restarts->starts >= STARTS_MIN && visits_of(restarts) >= restarts->visits_max);
}

/* Searches from the order, with so many rounds for one stream first. */
static enum tarn_status begin(struct restarts *restarts, uint32_t rounds, bool *better)
{
    struct tarn_reordering *reordering = restarts->reordering;
    const struct tarn_reorder_model *model = reordering->model;
    uint32_t count = 0;
    *better = false;
    if (is_over(restarts)) return TARN_OK;
    restarts->starts++;
    for (uint32_t i = 0; i < restarts->graph->ops_count; i++) {
        uint32_t v = restarts->order[i], node = model->node_of[v];
        if (node != TARN_NONE && model->op[node] == v) restarts->nodes[count++] = node;
    }
    assert(count == model->nodes_count);
    tarn_reordering_restart(reordering, restarts->nodes);
    uint32_t before = reordering->report.rounds;
    enum tarn_status status = tarn_reordering_run(reordering, rounds);
    restarts->visits += (uint64_t)(reordering->report.rounds - before) * ROUND_VISITS * count;
    if (status == TARN_OK) status = tarn_reorder_list(model, reordering->best, restarts->list);
    if (status != TARN_OK) return status;
    return tarn_reorder_streams_run(
        restarts->search, (const uint32_t *const[]){restarts->order, restarts->list}, better);
}

/* From the given order, or from the best one. */
static const uint32_t *base_of(const struct restarts *restarts, uint32_t k)
{
    return k % 2 == 0 ? restarts->search->kept : restarts->given;
}

/* ---- Last ---- */

/* By stream: does no other wait for it? False: there is none with several components. */
static bool find_components(struct restarts *restarts)
{
    const struct tarn_graph *graph = restarts->graph;
    const struct tarn_arcs *arcs = &restarts->search->weighing.constraints.predecessors;
    bool several = false;
    for (uint32_t s = 0; s < graph->streams_count; s++) restarts->mark[s] = true;
    for (uint32_t v = 0; v < graph->ops_count; v++) restarts->root[v] = v;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
            uint32_t u = arcs->ops[i];
            if (graph->ops[u].stream != graph->ops[v].stream)
                restarts->mark[graph->ops[u].stream] = false;
            else
                restarts->root[tarn_union_root(restarts->root, u)] =
                    tarn_union_root(restarts->root, v);
        }
    }
    for (uint32_t s = 0; s < graph->streams_count && !several; s++) {
        const struct tarn_graph_stream *stream = &graph->streams[s];
        for (uint32_t i = 1; i < stream->ops_count && restarts->mark[s]; i++)
            several |= tarn_union_root(restarts->root, stream->ops[i]) !=
                       tarn_union_root(restarts->root, stream->ops[0]);
    }
    return several;
}

struct placed {
    uint64_t bytes;        /* of the component */
    uint32_t first, place; /* the place of its first op; the op's own */
    uint32_t op;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static enum tarn_status begin_last(struct restarts *restarts, const uint32_t *base, bool *better)
{
    const struct tarn_graph *graph = restarts->graph;
    struct tarn_region *region = restarts->reordering->region;
    *better = false;
    if (is_over(restarts) || !find_components(restarts)) return TARN_OK;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct placed *list = tarn_region_take(region, graph->ops_count, sizeof *list);
    uint64_t *bytes = tarn_region_take(region, graph->ops_count, sizeof *bytes);
    uint32_t *first = tarn_region_take(region, graph->ops_count, sizeof *first);
    if (region->is_exhausted) return TARN_SYSTEM;
    uint32_t count = 0;
    for (uint32_t i = graph->ops_count; i-- > 0;) {
        uint32_t v = base[i], r = tarn_union_root(restarts->root, v);
        first[r] = i;
        if (restarts->temporary[v] > bytes[r]) bytes[r] = restarts->temporary[v];
    }
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = base[i], r = tarn_union_root(restarts->root, v);
        bool is_last = restarts->mark[graph->ops[v].stream];
        list[i] = is_last ? (struct placed){bytes[r], first[r], i, v} : (struct placed){0, 0, i, v};
        if (!is_last) restarts->order[count++] = v;
    }
    qsort(list, graph->ops_count, sizeof *list, compare_placed);
    for (uint32_t i = 0; i < graph->ops_count; i++)
        if (restarts->mark[graph->ops[list[i].op].stream]) restarts->order[count++] = list[i].op;
    tarn_region_release(region, mark);
    return begin(restarts, restarts->effort, better);
}

/* ---- First ---- */

static enum tarn_status begin_first(struct restarts *restarts, const uint32_t *base, uint32_t op,
                                    bool *better)
{
    const struct tarn_graph *graph = restarts->graph;
    const struct tarn_arcs *arcs = &restarts->search->weighing.constraints.predecessors;
    uint32_t count = 0;
    memset(restarts->mark, 0, graph->ops_count * sizeof *restarts->mark);
    restarts->mark[op] = true;
    for (uint32_t i = graph->ops_count; i-- > 0;) {
        uint32_t v = base[i];
        for (uint32_t k = arcs->begin[v]; restarts->mark[v] && k < arcs->begin[v + 1]; k++)
            restarts->mark[arcs->ops[k]] = true;
    }
    for (uint32_t part = 0; part < 2; part++)
        for (uint32_t i = 0; i < graph->ops_count; i++)
            if (restarts->mark[base[i]] == (part == 0)) restarts->order[count++] = base[i];
    return begin(restarts, restarts->effort, better);
}

/* ---- Fence ---- */

#define FREE UINT32_MAX /* the part of what is in front of all fences */

struct fence {
    const struct tarn_arcs *before, *after; /* in the direction at hand */
    uint32_t op;
    bool from_here; /* what the base has after the op stays there, even if it could come before */
};

/* Adds what comes after v to the part, or leaves it in a later one. The base is searched from v's
 * place. */
static void mark_after(struct restarts *restarts, const struct fence *fence, uint32_t v,
                       uint32_t part)
{
    const struct tarn_arcs *before = fence->before;
    uint32_t count = restarts->graph->ops_count, i = 0;
    restarts->group[v] = part;
    while (restarts->base[i] != v) i++;
    for (i++; i < count; i++) {
        uint32_t u = restarts->base[i];
        for (uint32_t k = before->begin[u]; k < before->begin[u + 1]; k++)
            if (restarts->group[before->ops[k]] == part && restarts->group[u] > part)
                restarts->group[u] = part;
    }
}

static void find_most(struct restarts *restarts, const struct fence *fence)
{
    const struct tarn_arcs *after = fence->after;
    for (uint32_t i = restarts->graph->ops_count; i-- > 0;) {
        uint32_t v = restarts->base[i];
        restarts->most[v] = restarts->own[v];
        for (uint32_t k = after->begin[v]; k < after->begin[v + 1]; k++) {
            uint32_t u = after->ops[k];
            if (restarts->group[u] > 0 && restarts->most[u] > restarts->most[v])
                restarts->most[v] = restarts->most[u];
        }
    }
}

/* Does something in a stream of part `part` - 1, which comes before that stream's fence, wait for
 * v? */
static bool is_waited_for(const struct restarts *restarts, const struct fence *fence, uint32_t v,
                          uint32_t part)
{
    const struct tarn_arcs *after = fence->after;
    for (uint32_t k = after->begin[v]; k < after->begin[v + 1]; k++) {
        uint32_t u = after->ops[k];
        if (restarts->group[u] >= part &&
            restarts->level[restarts->graph->ops[u].stream] == part - 1)
            return true;
    }
    return false;
}

/* Fences of the streams that can have one in this part. False: there is none. */
static bool add_part(struct restarts *restarts, const struct fence *fence, uint32_t part)
{
    const struct tarn_graph *graph = restarts->graph;
    bool any = false;
    for (uint32_t s = 0; s < graph->streams_count; s++) restarts->least[s] = TARN_NONE;
    for (uint32_t i = graph->ops_count; i-- > 0;) {
        uint32_t v = restarts->base[i], *least = &restarts->least[graph->ops[v].stream];
        if (restarts->group[v] < part || restarts->level[graph->ops[v].stream] < part) continue;
        if (*least != TARN_NONE && restarts->most[v] >= restarts->most[*least]) continue;
        if (is_waited_for(restarts, fence, v, part)) *least = v;
    }
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        if (restarts->least[s] == TARN_NONE) continue;
        restarts->level[s] = part;
        mark_after(restarts, fence, restarts->least[s], part);
        any = true;
    }
    return any;
}

/* Puts fences into the base, which is in the direction at hand. */
static void put_fences(struct restarts *restarts, const struct fence *fence)
{
    const struct tarn_graph *graph = restarts->graph;
    uint32_t ops = graph->ops_count, count = 0, parts = 1;
    bool is_after = false;
    for (uint32_t v = 0; v < ops; v++) restarts->group[v] = FREE;
    for (uint32_t s = 0; s < graph->streams_count; s++) restarts->level[s] = FREE;
    restarts->level[graph->ops[fence->op].stream] = 0;
    mark_after(restarts, fence, fence->op, 0);
    for (uint32_t i = 0; i < ops && fence->from_here; i++) {
        is_after |= restarts->base[i] == fence->op;
        if (is_after) restarts->group[restarts->base[i]] = 0;
    }
    find_most(restarts, fence);
    while (add_part(restarts, fence, parts)) parts++;
    for (uint32_t i = 0; i < ops; i++)
        if (restarts->group[restarts->base[i]] == FREE)
            restarts->order[count++] = restarts->base[i];
    for (uint32_t part = parts; part-- > 0;)
        for (uint32_t i = 0; i < ops; i++)
            if (restarts->group[restarts->base[i]] == part)
                restarts->order[count++] = restarts->base[i];
    assert(count == ops);
}

static void turn(uint32_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        uint32_t v = list[i];
        list[i] = list[count - 1 - i];
        list[count - 1 - i] = v;
    }
}

static enum tarn_status begin_fence(struct restarts *restarts, const uint32_t *base, uint32_t op,
                                    bool turned, bool from_here, bool *better)
{
    const struct tarn_constraints *constraints = &restarts->search->weighing.constraints;
    const struct tarn_arcs *before = &constraints->predecessors, *after = &constraints->successors;
    uint32_t ops = restarts->graph->ops_count;
    struct fence fence = {turned ? after : before, turned ? before : after, .op = op,
                          .from_here = from_here};
    memcpy(restarts->base, base, ops * sizeof *base);
    if (turned) turn(restarts->base, ops);
    put_fences(restarts, &fence);
    restarts->visits += (uint64_t)ops * restarts->graph->streams_count;
    if (turned) turn(restarts->order, ops);
    return begin(restarts, 0, better);
}

/* Of an op, in both directions, at the end of what can come before it and where it is. */
static enum tarn_status begin_fences_at(struct restarts *restarts, const uint32_t *base,
                                        uint32_t op, bool *any)
{
    bool better;
    enum tarn_status status = TARN_OK;
    for (uint32_t k = 0; k < 4 && status == TARN_OK && !is_over(restarts); k++) {
        status = begin_fence(restarts, base, op, k & 1, k & 2, &better);
        *any |= better;
    }
    return status;
}

static enum tarn_status begin_fences_at_heaviest(struct restarts *restarts)
{
    bool any = false;
    enum tarn_status status = TARN_OK;
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < restarts->heaviest_count && status == TARN_OK; i++)
            status = begin_fences_at(restarts, base_of(restarts, k), restarts->heaviest[i], &any);
    return status;
}

/* At the ops that make the storages of the best order's heaviest antichain, or use them last, as
 * long as that helps. */
static enum tarn_status begin_fences_at_members(struct restarts *restarts)
{
    struct tarn_reorder_streams *search = restarts->search;
    const struct tarn_graph *graph = &search->weighing.graph;
    bool any = true;
    enum tarn_status status = TARN_OK;
    while (any && status == TARN_OK && !is_over(restarts)) {
        any = false;
        status = tarn_reorder_streams_find_members(search);
        uint32_t members[TARN_REORDER_MEMBERS_MAX], count = search->members_count;
        memcpy(members, search->members, sizeof members);
        for (uint32_t k = 0; k < count && status == TARN_OK; k++) {
            const struct tarn_storage *storage = &graph->storages[members[k]];
            status = begin_fences_at(restarts, search->kept, storage->producer, &any);
            uint32_t last = tarn_storage_users(graph, storage)[storage->users_count - 1];
            if (status == TARN_OK) status = begin_fences_at(restarts, search->kept, last, &any);
        }
    }
    return status;
}

/* ---- Noise ---- */

static enum tarn_status begin_noise(struct restarts *restarts, const uint32_t *base,
                                    uint32_t distance, uint32_t rounds, bool *better)
{
    const struct tarn_graph *graph = restarts->graph;
    const struct tarn_constraints *constraints = &restarts->search->weighing.constraints;
    const struct tarn_arcs *before = &constraints->predecessors, *after = &constraints->successors;
    struct tarn_heap heap = {.key = restarts->key, .items = restarts->items};
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        double moved = (2 * tarn_random_unit(&restarts->random) - 1) * distance;
        restarts->key[base[i]] = (uint64_t)((i + moved + distance) * 1024);
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        restarts->waits[v] = before->begin[v + 1] - before->begin[v];
        if (restarts->waits[v] == 0) tarn_heap_push(&heap, v);
    }
    while (heap.count > 0) {
        uint32_t v = tarn_heap_pop(&heap);
        restarts->order[count++] = v;
        for (uint32_t i = after->begin[v]; i < after->begin[v + 1]; i++)
            if (--restarts->waits[after->ops[i]] == 0) tarn_heap_push(&heap, after->ops[i]);
    }
    assert(count == graph->ops_count);
    return begin(restarts, rounds, better);
}

/* ---- All ---- */

/* Exchanges the best order with the one that was put aside. */
static void exchange_aside(struct restarts *restarts)
{
    struct tarn_reorder_streams *search = restarts->search;
    uint64_t weight = search->weights->after;
    size_t bytes = restarts->graph->ops_count * sizeof *restarts->order;
    memcpy(restarts->order, search->kept, bytes);
    memcpy(search->kept, restarts->aside, bytes);
    memcpy(restarts->aside, restarts->order, bytes);
    search->weights->after = restarts->aside_weight;
    restarts->aside_weight = weight;
}

/* What noise finds hangs on the order that it starts from. It does not start from what fences have
 * found, but only if that meets the bound are fences all that is needed. */
static enum tarn_status run(struct restarts *restarts)
{
    struct tarn_reorder_streams *search = restarts->search;
    bool better;
    enum tarn_status status = TARN_OK;
    for (uint32_t k = 0; k < 2 && status == TARN_OK; k++) {
        status = begin_last(restarts, base_of(restarts, k), &better);
        for (uint32_t i = 0; i < restarts->heaviest_count && status == TARN_OK; i++)
            status = begin_first(restarts, base_of(restarts, k), restarts->heaviest[i], &better);
    }
    uint32_t starts = restarts->starts, starts_max = restarts->starts_max;
    uint64_t visits = visits_of(restarts);
    memcpy(restarts->aside, search->kept, restarts->graph->ops_count * sizeof *restarts->aside);
    restarts->aside_weight = search->weights->after;
    restarts->starts_max = UINT32_MAX;
    if (status == TARN_OK) status = begin_fences_at_heaviest(restarts);
    restarts->starts_max =
        (uint32_t)tarn_smaller((uint64_t)starts_max + restarts->starts - starts, UINT32_MAX);
    if (status != TARN_OK || is_over(restarts)) return status;
    exchange_aside(restarts);
    restarts->visits_max += visits_of(restarts) - visits;
    for (uint32_t k = 0; status == TARN_OK && !is_over(restarts); k++) {
        uint32_t distance = distances[k / 2 % (sizeof distances / sizeof *distances)];
        uint32_t rounds = k % 4 == 0 ? 0 : NOISE_ROUNDS;
        if (rounds > restarts->effort) rounds = restarts->effort;
        status = begin_noise(restarts, base_of(restarts, k), distance, rounds, &better);
        if (status == TARN_OK && better)
            status = begin_last(restarts, base_of(restarts, 0), &better);
    }
    if (restarts->aside_weight < search->weights->after) exchange_aside(restarts);
    restarts->starts_max = UINT32_MAX;
    restarts->visits_max =
        visits_of(restarts) + FENCES_VISITS_MAX / EFFORT_DEFAULT * restarts->effort;
    return status == TARN_OK ? begin_fences_at_members(restarts) : status;
}

static void find_bytes(struct restarts *restarts)
{
    const struct tarn_graph *graph = restarts->graph;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        const uint32_t *users = tarn_storage_users(graph, storage);
        uint64_t bytes = restarts->search->weighing.reserved[a];
        bool is_temporary = !storage->pinned;
        for (uint32_t k = 0; k < storage->users_count; k++) {
            restarts->own[users[k]] += bytes;
            is_temporary &= graph->ops[users[k]].stream == graph->ops[users[0]].stream;
        }
        for (uint32_t k = 0; k < storage->users_count && is_temporary; k++)
            restarts->temporary[users[k]] += bytes;
    }
    for (uint32_t k = 0; k < HEAVIEST && k < graph->ops_count; k++) {
        uint32_t most = TARN_NONE;
        for (uint32_t v = 0; v < graph->ops_count; v++) {
            bool is_listed = false;
            for (uint32_t i = 0; i < k; i++) is_listed |= restarts->heaviest[i] == v;
            if (!is_listed && (most == TARN_NONE || restarts->own[v] > restarts->own[most]))
                most = v;
        }
        restarts->heaviest[restarts->heaviest_count++] = most;
    }
}

enum tarn_status tarn_reorder_restarts(struct tarn_reordering *reordering,
                                       struct tarn_reorder_streams *search, uint64_t bound,
                                       uint32_t effort, uint32_t *starts)
{
    struct tarn_region *region = reordering->region;
    const struct tarn_graph *graph = reordering->model->graph;
    size_t count = graph->ops_count, marks = count + graph->streams_count;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct restarts restarts = {
        .reordering = reordering,
        .search = search,
        .graph = graph,
        .given = graph->order,
        .bound = bound,
        .effort = effort,
        .starts_max =
            (uint32_t)tarn_smaller((uint64_t)STARTS_MAX * effort / EFFORT_DEFAULT, UINT32_MAX),
        .visits_max = search->weighing.work + VISITS_MAX / EFFORT_DEFAULT * effort,
        .order = tarn_region_take(region, count, sizeof *restarts.order),
        .nodes = tarn_region_take(region, count, sizeof *restarts.nodes),
        .list = tarn_region_take(region, count, sizeof *restarts.list),
        .key = tarn_region_take(region, count, sizeof *restarts.key),
        .waits = tarn_region_take(region, count, sizeof *restarts.waits),
        .items = tarn_region_take(region, count, sizeof *restarts.items),
        .base = tarn_region_take(region, count, sizeof *restarts.base),
        .aside = tarn_region_take(region, count, sizeof *restarts.aside),
        .group = tarn_region_take(region, count, sizeof *restarts.group),
        .level = tarn_region_take(region, graph->streams_count, sizeof *restarts.level),
        .least = tarn_region_take(region, graph->streams_count, sizeof *restarts.least),
        .most = tarn_region_take(region, count, sizeof *restarts.most),
        .root = tarn_region_take(region, count, sizeof *restarts.root),
        .own = tarn_region_take(region, count, sizeof *restarts.own),
        .temporary = tarn_region_take(region, count, sizeof *restarts.temporary),
        .mark = tarn_region_take(region, marks, sizeof *restarts.mark),
    };
    enum tarn_status status = region->is_exhausted ? TARN_SYSTEM : TARN_OK;
    if (status == TARN_OK) find_bytes(&restarts);
    if (status == TARN_OK) status = run(&restarts);
    *starts = restarts.starts;
    tarn_region_release(region, mark);
    return status;
}
