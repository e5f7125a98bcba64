/* Weighs orders of several streams. The view has copies of the data that an order changes
 * (positions, ranks and the order of users), and shares the rest with the given graph. Cost: the
 * clocks and the antichain of the graph for each order. */
#include "streams.h"

#include <string.h>

#include "streams/order/simulator.h"

/* Thousands of orders are weighed: a quarter of what a bound gets by which a wait is chosen. */
enum { GAP_EFFORT = TARN_GAP_EFFORT_LOW / 4 };

/* ---- The view ---- */

/* Of these arcs those between streams. */
static enum tarn_status take_arcs(struct tarn_weighing *weighing, const struct tarn_arcs *from,
                                  struct tarn_arcs *to)
{
    const struct tarn_graph *graph = &weighing->graph;
    struct tarn_region *region = weighing->region;
    uint32_t *begin = tarn_region_take(region, (size_t)graph->ops_count + 1, sizeof *begin);
    uint32_t *ops = tarn_region_take(region, weighing->constraints.arcs_count, sizeof *ops);
    uint32_t count = 0;
    if (!begin || !ops) return TARN_SYSTEM;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        for (uint32_t i = from->begin[v]; i < from->begin[v + 1]; i++) {
            uint32_t u = from->ops[i];
            if (graph->ops[u].stream != graph->ops[v].stream) ops[count++] = u;
        }
        begin[v + 1] = count;
    }
    *to = (struct tarn_arcs){begin, ops};
    return TARN_OK;
}

static enum tarn_status copy_storages(struct tarn_weighing *weighing)
{
    struct tarn_graph *graph = &weighing->graph;
    struct tarn_storage *storages = tarn_region_copy(weighing->region, graph->storages,
                                                     graph->storages_count, sizeof *storages);
    size_t count = 0;
    for (uint32_t a = 0; a < graph->storages_count; a++) count += graph->storages[a].users_count;
    weighing->users = tarn_region_take(weighing->region, count, sizeof *weighing->users);
    if (!storages || !weighing->users) return TARN_SYSTEM;
    graph->storages = storages;
    uint32_t next = 0;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        uint32_t users = storages[a].users_count;
        memcpy(weighing->users + next, tarn_storage_users(graph, &storages[a]),
               users * sizeof *weighing->users);
        storages[a].users_begin = next;
        next += users;
    }
    graph->users = weighing->users;
    return TARN_OK;
}

static enum tarn_status copy_records(struct tarn_weighing *weighing)
{
    struct tarn_graph *graph = &weighing->graph;
    struct tarn_region *region = weighing->region;
    size_t count = graph->ops_count;
    graph->ops = tarn_region_copy(region, graph->ops, count, sizeof *graph->ops);
    graph->streams =
        tarn_region_copy(region, graph->streams, graph->streams_count, sizeof *graph->streams);
    weighing->places = tarn_region_take(region, count, sizeof *weighing->places);
    weighing->rank = tarn_region_take(region, count, sizeof *weighing->rank);
    graph->rank = weighing->rank;
    return region->is_exhausted ? TARN_SYSTEM : copy_storages(weighing);
}

enum tarn_status tarn_weighing_init(struct tarn_weighing *weighing, struct tarn_region *region,
                                    const struct tarn_graph *graph, const uint64_t *reserved,
                                    uint64_t alignment)
{
    *weighing =
        (struct tarn_weighing){.region = region, .reserved = reserved, .alignment = alignment};
    struct tarn_graph *view = &weighing->graph;
    *view = tarn_graph_view(graph);
    const struct tarn_constraints *constraints = &weighing->constraints;
    enum tarn_status status = copy_records(weighing);
    if (status == TARN_OK) status = tarn_constraints_init(&weighing->constraints, region, graph);
    if (status == TARN_OK)
        status = take_arcs(weighing, &constraints->predecessors, &view->predecessors);
    if (status == TARN_OK)
        status = take_arcs(weighing, &constraints->successors, &view->successors);
    return status;
}

void tarn_weighing_finish(struct tarn_weighing *weighing)
{
    tarn_region_finish(&weighing->witness);
}

/* ---- Orders ---- */

/* Few users, and nearly in order. */
static void sort_users(const struct tarn_weighing *weighing, uint32_t *users, uint32_t count)
{
    for (uint32_t k = 1; k < count; k++) {
        uint32_t v = users[k], i = k;
        for (; i > 0 && weighing->rank[users[i - 1]] > weighing->rank[v]; i--)
            users[i] = users[i - 1];
        users[i] = v;
    }
}

void tarn_weighing_take(struct tarn_weighing *weighing, const uint32_t *order)
{
    struct tarn_graph *graph = &weighing->graph;
    uint32_t begin = 0;
    graph->order = order;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        graph->streams[s].ops = weighing->places + begin;
        begin += graph->streams[s].ops_count;
        graph->streams[s].ops_count = 0;
    }
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = order[i];
        struct tarn_graph_stream *stream = &graph->streams[graph->ops[v].stream];
        weighing->rank[v] = i;
        graph->ops[v].position = stream->ops_count;
        weighing->places[(size_t)(stream->ops - weighing->places) + stream->ops_count++] = v;
    }
    for (uint32_t *next = weighing->users, a = 0; a < graph->planned_count; a++) {
        sort_users(weighing, next, graph->storages[a].users_count);
        next += graph->storages[a].users_count;
    }
}

enum tarn_status tarn_weighing_weigh(struct tarn_weighing *weighing, const uint32_t *order,
                                     uint64_t *weight)
{
    struct tarn_clocks clocks;
    struct tarn_region_mark mark = tarn_region_mark(weighing->region);
    tarn_region_finish(&weighing->witness);
    tarn_weighing_take(weighing, order);
    enum tarn_status status = tarn_clocks_init(&clocks, weighing->region, &weighing->graph);
    if (status == TARN_OK)
        status = tarn_reuse_init(&weighing->reuse, &weighing->witness, &clocks, &weighing->graph);
    tarn_region_release(weighing->region, mark);
    struct tarn_antichain antichain;
    const struct tarn_reserve reserve = {&weighing->reuse, &weighing->graph, weighing->reserved,
                                         weighing->alignment};
    if (status == TARN_OK)
        status = tarn_antichain_init(&antichain, &weighing->witness, &weighing->reuse,
                                     &weighing->graph, weighing->reserved);
    if (status == TARN_OK)
        status = tarn_gap_bound_init(&weighing->bound, &weighing->witness, &antichain, &reserve,
                                     GAP_EFFORT);
    if (status != TARN_OK) return status;
    *weight = weighing->bound.bound;
    weighing->work += weighing->graph.ops_count + antichain.visits +
                      (uint64_t)weighing->graph.planned_count * weighing->graph.streams_count;
    if (weighing->bound.gaps) weighing->work += 2 * GAP_EFFORT;
    return status;
}

enum tarn_status tarn_weighing_time(struct tarn_weighing *weighing, uint64_t *ns)
{
    struct tarn_wait *waits;
    struct tarn_timeline timeline;
    struct tarn_region_mark mark = tarn_region_mark(weighing->region);
    uint32_t count;
    enum tarn_status status =
        tarn_events_minimal(&weighing->graph, weighing->region, &waits, &count);
    if (status == TARN_OK)
        status = tarn_timeline_init(&timeline, weighing->region, &weighing->graph, waits, count,
                                    TARN_WAIT_NS);
    if (status == TARN_OK) *ns = timeline.makespan_ns;
    tarn_region_release(weighing->region, mark);
    return status;
}
