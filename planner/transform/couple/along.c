/* Adds waits between streams along one order of the ops. A stream that no other stream waits for
 * may be at any op. So a storage that it has read stays alive until the stream is known to be past
 * it. In the model streams run side by side: an op can wait, at no modelled time, for ops that have
 * ended there before it begins. So every stream's ops are visited in the order in which they begin.
 * Once in each block of time an op waits for the last op of every other stream that has ended by
 * then. The same works along the list of ops; there a lag of one place runs the ops one by one: the
 * fewest bytes, and no time saved by streams. Cost: O(ops × streams). */
#include "couple.h"

#include <assert.h>
#include <stdlib.h>

#include "planner/transform/recipe.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/order/reserved.h"
#include "streams/order/simulator.h"

struct along {
    const struct tarn_graph *graph;
    struct tarn_region *region;
    uint64_t *begin, *end; /* op -> when it begins and ends: nanoseconds, or places of the list */
    uint64_t lag;          /* from the end of an op to the start of an op that waits for it */
    uint64_t block;        /* from one op of a stream that waits to the next one */
    uint64_t *alive;       /* rank -> bytes, if bytes count; NULL: they do not */
    uint64_t bytes;        /* that may be alive while an op need not wait for all ops before it */
    uint32_t *order;       /* ops by their start */
    uint32_t *ended;       /* pair of streams -> ops of the first that the second may wait for */
    uint32_t *waited;      /* pair of streams -> of them, those that it waits for */
    struct tarn_recipe_arc *arcs;
    uint32_t arcs_count;
    size_t arcs_room;
};

/* ---- Times ---- */

/* A simulation does not launch views, and the op after a view in its stream need not wait for the
 * tensor that the view shows. An arc to either would count in the graph as an arc after that
 * tensor's op, and could close a cycle. So here every op begins when all ops that come before it in
 * the graph have ended. */
static void wait_for_views(struct along *along)
{
    const struct tarn_graph *graph = along->graph;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i], position = graph->ops[v].position;
        uint64_t begin = along->begin[v], length = along->end[v] - begin;
        if (position > 0)
            begin = tarn_larger(begin,
                                along->end[graph->streams[graph->ops[v].stream].ops[position - 1]]);
        for (uint32_t k = graph->predecessors.begin[v]; k < graph->predecessors.begin[v + 1]; k++)
            begin = tarn_larger(begin, along->end[graph->predecessors.ops[k]]);
        along->begin[v] = begin;
        along->end[v] = begin + length;
    }
}

/* Finds the bytes alive while each op of the list runs, if ops run one after another. */
static enum tarn_status find_alive(struct along *along, uint64_t alignment,
                                   struct tarn_error *error)
{
    const struct tarn_graph *graph = along->graph;
    const uint64_t *reserved;
    uint64_t now = 0;
    enum tarn_status status =
        tarn_reserved_sizes(&reserved, along->region, graph, alignment, error);
    if (status != TARN_OK) return status;
    uint64_t *gone = tarn_region_take(along->region, graph->ops_count, sizeof *gone);
    along->alive = tarn_region_take(along->region, graph->ops_count, sizeof *along->alive);
    if (!gone || !along->alive) return TARN_SYSTEM;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        along->alive[graph->rank[storage->producer]] += reserved[a];
        if (!storage->pinned)
            gone[graph->rank[tarn_storage_users(graph, storage)[storage->users_count - 1]]] +=
                reserved[a];
    }
    for (uint32_t rank = 0; rank < graph->ops_count; rank++) {
        now += along->alive[rank];
        along->alive[rank] = now;
        now -= gone[rank];
    }
    return TARN_OK;
}

static enum tarn_status take_times(struct along *along, struct tarn_graph *graph,
                                   const struct tarn_leeway *leeway, struct tarn_error *error)
{
    struct tarn_timeline timeline;
    along->lag = leeway->in_time ? TARN_WAIT_NS : leeway->ahead;
    along->block = leeway->ahead;
    if (!leeway->in_time) {
        along->begin = tarn_region_take(along->region, graph->ops_count, sizeof *along->begin);
        along->end = tarn_region_take(along->region, graph->ops_count, sizeof *along->end);
        if (!along->begin || !along->end) return TARN_SYSTEM;
        for (uint32_t v = 0; v < graph->ops_count; v++)
            along->begin[v] = along->end[v] = graph->rank[v];
        along->bytes = leeway->bytes;
        return leeway->bytes > 0 ? find_alive(along, leeway->alignment, error) : TARN_OK;
    }
    if (tarn_timeline_of(&timeline, along->region, graph, TARN_WAIT_NS) != TARN_OK)
        return TARN_SYSTEM;
    along->begin = timeline.begin_ns;
    along->end = timeline.end_ns;
    wait_for_views(along);
    return TARN_OK;
}

struct moment {
    uint64_t begin;
    uint32_t rank, op;
};

static int by_begin(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Sorts ops topologically: no op begins before an op that it waits for, and ranks break ties. */
static bool sort_ops(struct along *along)
{
    const struct tarn_graph *graph = along->graph;
    struct tarn_region_mark mark = tarn_region_mark(along->region);
    struct moment *moments = tarn_region_take(along->region, graph->ops_count, sizeof *moments);
    if (!moments) return false;
    for (uint32_t v = 0; v < graph->ops_count; v++)
        moments[v] = (struct moment){along->begin[v], graph->rank[v], v};
    qsort(moments, graph->ops_count, sizeof *moments, by_begin);
    for (uint32_t i = 0; i < graph->ops_count; i++) along->order[i] = moments[i].op;
    tarn_region_release(along->region, mark);
    return true;
}

/* ---- Waits ---- */

static bool push_arc(struct along *along, uint32_t later, uint32_t earlier)
{
    struct tarn_recipe_arc *arcs = tarn_region_grow(along->region, along->arcs, &along->arcs_room,
                                                    (size_t)along->arcs_count + 1, sizeof *arcs);
    if (!arcs) return false;
    along->arcs = arcs;
    arcs[along->arcs_count++] = (struct tarn_recipe_arc){later, earlier};
    return true;
}

/* Are too many bytes alive for another op to run beside this op? */
static bool is_full(const struct along *along, uint32_t v)
{
    return along->alive && along->alive[along->graph->rank[v]] > along->bytes;
}

/* Lets op v wait for the ops that have ended in every other stream. */
static bool wait_for_others(struct along *along, uint32_t v)
{
    const struct tarn_graph *graph = along->graph;
    uint64_t lag = is_full(along, v) ? 1 : along->lag;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        size_t pair = (size_t)s * graph->streams_count + graph->ops[v].stream;
        const struct tarn_graph_stream *other = &graph->streams[s];
        uint32_t *ended = &along->ended[pair];
        if (s == graph->ops[v].stream) continue;
        while (*ended < other->ops_count && along->end[other->ops[*ended]] + lag <= along->begin[v])
            ++*ended;
        if (*ended == along->waited[pair]) continue;
        along->waited[pair] = *ended;
        if (!push_arc(along, v, other->ops[*ended - 1])) return false;
    }
    return true;
}

static bool add_waits(struct along *along)
{
    const struct tarn_graph *graph = along->graph;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        uint64_t next = along->block;
        for (uint32_t i = 0; i < graph->streams[s].ops_count; i++) {
            uint32_t v = graph->streams[s].ops[i];
            if ((along->begin[v] < next && !is_full(along, v)) || graph->ops[v].view) continue;
            if (!wait_for_others(along, v)) return false;
            next = along->begin[v] - along->begin[v] % along->block + along->block;
        }
    }
    return true;
}

/* ---- The graph ---- */

static bool make_room(struct along *along)
{
    size_t ops = along->graph->ops_count, streams = along->graph->streams_count;
    along->order = tarn_region_take(along->region, ops, sizeof *along->order);
    along->ended = tarn_region_take(along->region, streams * streams, sizeof *along->ended);
    along->waited = tarn_region_take(along->region, streams * streams, sizeof *along->waited);
    return !along->region->is_exhausted;
}

enum tarn_status tarn_couple_arcs(struct tarn_graph *graph, const struct tarn_leeway *leeway,
                                  struct tarn_region *region, struct tarn_recipe_arc **arcs,
                                  uint32_t *count, struct tarn_error *error)
{
    struct along along = {.graph = graph, .region = region};
    enum tarn_status status = TARN_SYSTEM;
    if (make_room(&along)) status = take_times(&along, graph, leeway, error);
    if (status == TARN_OK && !(sort_ops(&along) && add_waits(&along))) status = TARN_SYSTEM;
    *arcs = along.arcs;
    *count = along.arcs_count;
    return status;
}

enum tarn_status tarn_couple_along(struct tarn_graph *graph, const struct tarn_leeway *leeway,
                                   struct tarn_graph **result, struct tarn_error *error)
{
    struct tarn_region region = {.chunks = NULL};
    struct along along = {.graph = graph, .region = &region};
    assert(leeway->ahead > 0);
    *result = NULL;
    enum tarn_status status = TARN_SYSTEM;
    if (make_room(&along)) status = take_times(&along, graph, leeway, error);
    if (status == TARN_OK && !(sort_ops(&along) && add_waits(&along))) status = TARN_SYSTEM;
    if (status == TARN_OK) {
        const struct tarn_recipe recipe = {.graph = graph,
                                           .order = along.order,
                                           .arcs = along.arcs,
                                           .arcs_count = along.arcs_count};
        status = tarn_recipe_build(&recipe, result, error);
    }
    tarn_region_finish(&region);
    return status == TARN_SYSTEM ? tarn_error_no_memory(error) : status;
}
