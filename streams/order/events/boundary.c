/* Finds the waits of an iteration for the previous one. Source: docs/how-it-works.md, "Boundary
 * between iterations".
 *
 * Refined rule. Storages that share a reserved byte follow each other inside an iteration. So only
 * two storages of a byte matter at the boundary: its last storage in one iteration and its first
 * storage in the next. The producer of the first storage (cells.h) must wait for the last user of
 * the last storage in every stream. A part of a persistent storage has no first write: its users up
 * to its first writer wait for its last writer, and its first writer waits for its users since its
 * last writer. All other order follows from the order inside an iteration, and for greater
 * distances from the order of the streams.
 *
 *     bytes   iteration k           iteration k + 1
 *     0 a ── b ── c ─────────► a producer of a needs last users of c
 *     512     d ───────────────────► d
 *     weight  read, write ─────────► read, write         read needs write, write needs read
 *
 * These needs and the inner waits, in two consecutive copies of the program, are one graph. Its
 * transitive reduction (events.c) is the unique minimal set of waits for that order.
 * Cost: linear, and O(S) for every need and wait; needs are at most 2 T S, mostly few. */
#include "boundary.h"

#include <assert.h>
#include <string.h>

#include "cells.h"
#include "streams/base/region.h"

/* ---- Simple rule ---- */

static uint32_t first_launched(const struct tarn_graph *graph, uint32_t s)
{
    const struct tarn_graph_stream *stream = &graph->streams[s];
    for (uint32_t i = 0; i < stream->ops_count; i++) {
        if (!graph->ops[stream->ops[i]].view) return stream->ops[i];
    }
    return TARN_NONE;
}

static uint32_t last_launched(const struct tarn_graph *graph, uint32_t s)
{
    const struct tarn_graph_stream *stream = &graph->streams[s];
    for (uint32_t i = stream->ops_count; i-- > 0;) {
        if (!graph->ops[stream->ops[i]].view) return stream->ops[i];
    }
    return TARN_NONE;
}

static size_t count_busy(const struct tarn_graph *graph)
{
    size_t busy = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++)
        busy += first_launched(graph, s) != TARN_NONE;
    return busy;
}

enum tarn_status tarn_boundary_simple(const struct tarn_graph *graph, struct tarn_region *region,
                                      struct tarn_wait **waits, uint32_t *count)
{
    size_t busy = count_busy(graph);
    struct tarn_wait *list =
        tarn_region_take(region, busy > 0 ? busy * (busy - 1) : 0, sizeof *list);
    if (!list) return TARN_SYSTEM;
    *waits = list;
    *count = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        uint32_t first = first_launched(graph, s);
        for (uint32_t t = 0; first != TARN_NONE && t < graph->streams_count; t++) {
            uint32_t last = last_launched(graph, t);
            if (t != s && last != TARN_NONE) list[(*count)++] = (struct tarn_wait){first, last};
        }
    }
    return TARN_OK;
}

/* ---- Two iterations ---- */

/* The writers of a part of a persistent storage; TARN_NONE: no op writes it. */
struct writers {
    uint32_t first, last;
};

/* Op v of the first iteration is node v, of the second ops_count + v. */
struct unrolled {
    const struct tarn_graph *graph;
    struct tarn_region region;
    struct tarn_event_graph nodes;
    uint32_t *begin;  /* of arcs: counted two entries ahead, filled one entry ahead, so that the
                       * array ends up with the starts */
    uint32_t *before; /* the arcs' ops; NULL while they are only counted */
    uint32_t *seen;   /* stream -> storage + 1 whose last user there was found */
    struct tarn_cells cells;
    struct writers *writers; /* by part; of persistent storages */
    uint32_t *mark;          /* part -> op + 1 of its latest user */
};

static bool is_persistent(const struct tarn_graph *graph, const struct tarn_graph_tensor *tensor)
{
    return graph->storages[tensor->storage].persistent;
}

static bool find_writers(struct unrolled *unrolled)
{
    const struct tarn_graph *graph = unrolled->graph;
    uint32_t count = graph->parts_count;
    unrolled->writers = tarn_region_take(&unrolled->region, count, sizeof *unrolled->writers);
    unrolled->mark = tarn_region_take(&unrolled->region, count, sizeof *unrolled->mark);
    if (!unrolled->writers || !unrolled->mark) return false;
    for (uint32_t i = 0; i < count; i++)
        unrolled->writers[i] = (struct writers){TARN_NONE, TARN_NONE};
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        const struct tarn_graph_op *op = &graph->ops[graph->order[i]];
        for (uint32_t k = 0; k < op->outputs_count && !op->view; k++) {
            const struct tarn_graph_tensor *tensor = &graph->tensors[tarn_outputs(op)[k]];
            for (uint32_t n = 0; is_persistent(graph, tensor) && n < tensor->parts_count; n++) {
                struct writers *found = &unrolled->writers[tensor->part + n];
                found->last = graph->order[i];
                if (found->first == TARN_NONE) found->first = graph->order[i];
            }
        }
    }
    return true;
}

static void add_arc(struct unrolled *unrolled, uint32_t node, uint32_t before)
{
    if (unrolled->before)
        unrolled->before[unrolled->begin[node + 1]++] = before;
    else
        unrolled->begin[node + 2]++;
}

/* `op` of the second iteration must come after `on` of the first. */
static void need(struct unrolled *unrolled, uint32_t op, uint32_t on)
{
    const uint32_t *stream = unrolled->nodes.stream;
    assert(!unrolled->graph->ops[op].view && !unrolled->graph->ops[on].view);
    if (stream[op] != stream[on]) add_arc(unrolled, unrolled->graph->ops_count + op, on);
}

/* On cells whose last storage is `a`, the producers of the first storages wait for `on`. */
static void need_on_cells(struct unrolled *unrolled, uint32_t storage, uint32_t on)
{
    const struct tarn_cells *cells = &unrolled->cells;
    uint32_t done = TARN_NONE;
    for (uint32_t c = cells->head[storage]; c != TARN_NONE; c = cells->next[c]) {
        if (cells->first[c] == done) continue;
        done = cells->first[c];
        need(unrolled, unrolled->graph->storages[done].producer, on);
    }
}

/* Walking back through the users, the first user found in a stream is its last user. */
static void need_last_users(struct unrolled *unrolled, uint32_t storage)
{
    const struct tarn_graph *graph = unrolled->graph;
    const struct tarn_storage *record = &graph->storages[storage];
    for (uint32_t k = record->users_count; k-- > 0;) {
        uint32_t stream = unrolled->nodes.stream[tarn_storage_users(graph, record)[k]];
        if (unrolled->seen[stream] == storage + 1) continue;
        unrolled->seen[stream] = storage + 1;
        need_on_cells(unrolled, storage, tarn_storage_users(graph, record)[k]);
    }
}

static void need_planned(struct unrolled *unrolled)
{
    const struct tarn_graph *graph = unrolled->graph;
    memset(unrolled->seen, 0, graph->streams_count * sizeof *unrolled->seen);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (unrolled->cells.head[a] != TARN_NONE) need_last_users(unrolled, a);
    }
}

static void need_part(struct unrolled *unrolled, uint32_t op, uint32_t part)
{
    const uint32_t *rank = unrolled->graph->rank;
    struct writers by = unrolled->writers[part];
    if (by.first == TARN_NONE || unrolled->mark[part] == op + 1) return;
    unrolled->mark[part] = op + 1;
    if (rank[op] <= rank[by.first]) need(unrolled, op, by.last);
    if (rank[op] >= rank[by.last]) need(unrolled, by.first, op);
}

static void need_persistent(struct unrolled *unrolled)
{
    const struct tarn_graph *graph = unrolled->graph;
    memset(unrolled->mark, 0, graph->parts_count * sizeof *unrolled->mark);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; !op->view && k < op->inputs_count + op->outputs_count; k++) {
            const struct tarn_graph_tensor *tensor = &graph->tensors[op->inputs[k]];
            for (uint32_t n = 0; is_persistent(graph, tensor) && n < tensor->parts_count; n++)
                need_part(unrolled, v, tensor->part + n);
        }
    }
}

static void add_arcs(struct unrolled *unrolled, const struct tarn_boundary_inside *inside)
{
    for (uint32_t i = 0; i < inside->waits_count; i++) {
        uint32_t op = inside->waits[i].op, on = inside->waits[i].on;
        add_arc(unrolled, op, on);
        add_arc(unrolled, unrolled->graph->ops_count + op, unrolled->graph->ops_count + on);
    }
    need_planned(unrolled);
    need_persistent(unrolled);
}

static bool fill_arcs(struct unrolled *unrolled, const struct tarn_boundary_inside *inside)
{
    size_t nodes_count = unrolled->nodes.ops_count;
    unrolled->begin = tarn_region_take(&unrolled->region, nodes_count + 2, sizeof *unrolled->begin);
    unrolled->seen =
        tarn_region_take(&unrolled->region, unrolled->graph->streams_count, sizeof *unrolled->seen);
    if (!unrolled->begin || !unrolled->seen) return false;
    add_arcs(unrolled, inside);
    for (size_t v = 0; v < nodes_count; v++) unrolled->begin[v + 2] += unrolled->begin[v + 1];
    unrolled->before = tarn_region_take(&unrolled->region, unrolled->begin[nodes_count + 1],
                                        sizeof *unrolled->before);
    if (!unrolled->before) return false;
    add_arcs(unrolled, inside);
    unrolled->nodes.predecessors = (struct tarn_arcs){unrolled->begin, unrolled->before};
    return true;
}

/* Both copies of every stream in one list. Views launch nothing, and the inner waits include their
 * order, so they are left out. */
static void fill_streams(struct tarn_event_graph *nodes, const struct tarn_graph *graph)
{
    uint32_t next = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        const struct tarn_graph_stream *stream = &graph->streams[s];
        for (uint32_t i = 0; i < 2 * stream->ops_count; i++) {
            uint32_t op = stream->ops[i % stream->ops_count];
            if (graph->ops[op].view) continue;
            uint32_t node = i < stream->ops_count ? op : graph->ops_count + op;
            nodes->stream[node] = s;
            nodes->position[node] = next - nodes->begin[s];
            nodes->ops[next++] = node;
        }
        nodes->begin[s + 1] = next;
    }
}

static bool fill_order(struct tarn_event_graph *nodes, const struct tarn_graph *graph,
                       struct tarn_region *region)
{
    uint32_t *order = tarn_region_take(region, nodes->ops_count, sizeof *order), next = 0;
    if (!order) return false;
    for (uint32_t first = 0; first < nodes->ops_count; first += graph->ops_count) {
        for (uint32_t i = 0; i < graph->ops_count; i++) {
            if (!graph->ops[graph->order[i]].view) order[next++] = first + graph->order[i];
        }
    }
    nodes->order = order;
    return true;
}

/* ---- Refined rule ---- */

static bool unroll(struct unrolled *unrolled, const struct tarn_boundary_inside *inside)
{
    const struct tarn_graph *graph = unrolled->graph;
    if (!tarn_event_graph_take(&unrolled->nodes, &unrolled->region, 2 * graph->ops_count,
                               graph->streams_count))
        return false;
    fill_streams(&unrolled->nodes, graph);
    return fill_order(&unrolled->nodes, graph, &unrolled->region) &&
           tarn_cells_init(&unrolled->cells, &unrolled->region, graph, inside->layout) &&
           find_writers(unrolled) && fill_arcs(unrolled, inside);
}

/* Keeps only the waits of the second iteration on the first. */
static void keep_crossing(struct tarn_wait *waits, uint32_t *count, uint32_t ops_count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        if (waits[i].op < ops_count || waits[i].on >= ops_count) continue;
        assert(waits[i].on < waits[i].op);
        waits[kept++] = (struct tarn_wait){waits[i].op - ops_count, waits[i].on};
    }
    *count = kept;
}

enum tarn_status tarn_boundary_refined(const struct tarn_graph *graph,
                                       const struct tarn_boundary_inside *inside,
                                       struct tarn_region *region, struct tarn_wait **waits,
                                       uint32_t *count)
{
    enum tarn_status status = TARN_SYSTEM;
    struct unrolled unrolled = {.graph = graph};
    struct tarn_wait *of_both = NULL;
    *waits = NULL;
    if (unroll(&unrolled, inside))
        status = tarn_events_reduce(&unrolled.nodes, &unrolled.region, &of_both, count);
    if (status == TARN_OK) {
        keep_crossing(of_both, count, graph->ops_count);
        *waits = tarn_region_copy(region, of_both, *count, sizeof **waits);
    }
    tarn_region_finish(&unrolled.region);
    return *waits ? TARN_OK : TARN_SYSTEM;
}
