/* Extra arcs on a graph: a view of it, of which arcs, order and ranks are replaced. Storages
 * stay as they are: of the users of a stream the order is the same.
 * Cost: O((V + E) S) and an antichain; the pace O((V + E) S). */
#include "coupled.h"

#include <assert.h>
#include <string.h>

#include "streams/base/region.h"
#include "streams/graph/derive.h"

/* ---- Arcs ---- */

/* Neighbours of op v by an extra arc, when looked at from this side. */
struct side {
    const struct tarn_recipe_arc *arcs;
    uint32_t arcs_count;
    bool is_later; /* v is the later end */
};

static uint32_t own_end(const struct side *side, uint32_t i)
{
    return side->is_later ? side->arcs[i].later : side->arcs[i].earlier;
}

static uint32_t other_end(const struct side *side, uint32_t i)
{
    return side->is_later ? side->arcs[i].earlier : side->arcs[i].later;
}

static enum tarn_status add_arcs(struct tarn_graph *graph, struct tarn_arcs *arcs,
                                 const struct tarn_arcs *given, const struct side *side)
{
    uint32_t count = graph->ops_count;
    size_t total = (size_t)given->begin[count] + side->arcs_count;
    uint32_t *begin = tarn_region_take(&graph->region, (size_t)count + 1, sizeof *begin);
    uint32_t *ops = tarn_region_take(&graph->region, total, sizeof *ops);
    uint32_t *next = tarn_region_take(&graph->region, count, sizeof *next);
    if (!begin || !ops || !next) return TARN_SYSTEM;
    for (uint32_t i = 0; i < side->arcs_count; i++) next[own_end(side, i)]++;
    for (uint32_t v = 0; v < count; v++) {
        uint32_t given_count = given->begin[v + 1] - given->begin[v];
        begin[v + 1] = begin[v] + given_count + next[v];
        memcpy(ops + begin[v], given->ops + given->begin[v], given_count * sizeof *ops);
        next[v] = begin[v] + given_count;
    }
    for (uint32_t i = 0; i < side->arcs_count; i++)
        ops[next[own_end(side, i)]++] = other_end(side, i);
    *arcs = (struct tarn_arcs){begin, ops};
    return TARN_OK;
}

static enum tarn_status init_graph(struct tarn_graph *coupled, const struct tarn_graph *graph,
                                   const struct tarn_recipe_arc *arcs, uint32_t arcs_count)
{
    struct side later = {arcs, arcs_count, true}, earlier = {arcs, arcs_count, false};
    for (uint32_t i = 0; i < arcs_count; i++)
        assert(graph->ops[arcs[i].later].stream != graph->ops[arcs[i].earlier].stream);
    struct tarn_report nobody = {.error = NULL};
    *coupled = tarn_graph_view(graph);
    enum tarn_status status =
        add_arcs(coupled, &coupled->predecessors, &graph->predecessors, &later);
    if (status == TARN_OK)
        status = add_arcs(coupled, &coupled->successors, &graph->successors, &earlier);
    if (status == TARN_OK) status = tarn_derive_order(coupled, &nobody);
    assert(status != TARN_OK || tarn_graph_is_valid(coupled));
    return status;
}

/* ---- The bound ---- */

static enum tarn_status find_bound(struct tarn_coupled *coupled, const uint64_t *reserved,
                                   uint64_t alignment)
{
    struct tarn_reserve reserve = {&coupled->reuse, &coupled->graph, reserved, alignment};
    struct tarn_region *region = &coupled->graph.region;
    struct tarn_antichain antichain;
    enum tarn_status status =
        tarn_antichain_init(&antichain, region, &coupled->reuse, &coupled->graph, reserved);
    if (status != TARN_OK) return status;
    const struct tarn_graph *graph = &coupled->graph;
    coupled->work = antichain.visits + ((uint64_t)graph->ops_count + coupled->reuse.count) *
                                           (graph->streams_count + 1);
    return tarn_gap_bound_init(&coupled->bound, region, &antichain, &reserve, TARN_GAP_EFFORT_LOW);
}

enum tarn_status tarn_coupled_init(struct tarn_coupled *coupled, const struct tarn_graph *graph,
                                   const struct tarn_recipe_arc *arcs, uint32_t arcs_count,
                                   const uint64_t *reserved, uint64_t alignment)
{
    memset(coupled, 0, sizeof *coupled);
    enum tarn_status status = init_graph(&coupled->graph, graph, arcs, arcs_count);
    struct tarn_region *region = &coupled->graph.region;
    if (status == TARN_OK) status = tarn_clocks_init(&coupled->clocks, region, &coupled->graph);
    if (status == TARN_OK)
        status = tarn_reuse_init(&coupled->reuse, region, &coupled->clocks, &coupled->graph);
    if (status == TARN_OK) status = find_bound(coupled, reserved, alignment);
    if (status != TARN_OK) tarn_coupled_finish(coupled);
    return status;
}

void tarn_coupled_finish(struct tarn_coupled *coupled)
{
    tarn_region_finish(&coupled->graph.region);
    memset(coupled, 0, sizeof *coupled);
}

/* ---- The pace ---- */

static void raise(uint64_t *ns, uint64_t to)
{
    if (*ns < to) *ns = to;
}

/* At first tail_ns[v] is the time after v. */
static void fill_tails(struct tarn_pace *pace, const struct tarn_graph *graph,
                       const struct tarn_wait *waits)
{
    uint32_t left = pace->waits_count;
    for (uint32_t i = graph->ops_count; i-- > 0;) {
        uint32_t v = graph->order[i];
        const struct tarn_graph_op *op = &graph->ops[v];
        pace->tail_ns[v] += pace->timeline.end_ns[v] - pace->timeline.begin_ns[v];
        if (op->position > 0)
            raise(&pace->tail_ns[graph->streams[op->stream].ops[op->position - 1]],
                  pace->tail_ns[v]);
        for (; left > 0 && waits[left - 1].op == v; left--)
            raise(&pace->tail_ns[waits[left - 1].on], pace->wait_ns + pace->tail_ns[v]);
    }
}

enum tarn_status tarn_pace_init(struct tarn_pace *pace, const struct tarn_graph *graph,
                                uint32_t wait_ns)
{
    struct tarn_wait *waits;
    struct tarn_region working = {.chunks = NULL};
    *pace = (struct tarn_pace){.wait_ns = wait_ns};
    pace->tail_ns = tarn_region_take(&pace->region, graph->ops_count, sizeof *pace->tail_ns);
    enum tarn_status status = pace->tail_ns ? TARN_OK : TARN_SYSTEM;
    if (status == TARN_OK)
        status = tarn_events_minimal(graph, &working, &waits, &pace->waits_count);
    if (status == TARN_OK)
        status = tarn_timeline_init(&pace->timeline, &pace->region, graph, waits, pace->waits_count,
                                    wait_ns);
    if (status == TARN_OK)
        fill_tails(pace, graph, waits);
    else
        tarn_pace_finish(pace);
    tarn_region_finish(&working);
    return status;
}

void tarn_pace_finish(struct tarn_pace *pace)
{
    tarn_region_finish(&pace->region);
    memset(pace, 0, sizeof *pace);
}
