/* What an iteration waits for in the one before it. Source: DESIGN.md, section 3.
 *
 * Refined rule. The storages that share a byte follow each other inside an iteration, so of all
 * that an iteration and the next one do to that byte only two storages meet at the boundary: the
 * last one here and the first one there.
 *
 *     bytes   ├──────── A ────────┤             order of producers: A, B, C
 *                  ├────── B ──────────┤
 *                       ├── C ──┤
 *     cells   │ A  │ A  │ A     │ A │ B│        first of the next iteration ...
 *             │ A  │ B  │ C     │ B │ B│        ... waits for the last of this one
 *
 * So the producer of a cell's first storage needs the last toucher in each stream of its last one.
 * A persistent storage has no first write: what touches it up to its first writer needs its last
 * writer, and its first writer needs what touches it from its last writer on. All else, and all
 * larger distances, follow from the order inside an iteration and that of the streams.
 *
 * These needs and the waits inside, in two copies of the program one behind the other, are one
 * graph, whose unique transitive reduction (events.c) is the least set of waits.
 * Cost: a sort of storage ends; O(S) for every need and wait; needs at most 2 T S, mostly few. */
#include "boundary.h"

#include <stdlib.h>
#include <string.h>

#include "../graph/pool.h"

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

enum tarn_status tarn_boundary_simple(const struct tarn_graph *graph, struct tarn_wait **waits,
                                      uint32_t *count)
{
    size_t busy = count_busy(graph);
    struct tarn_wait *list = malloc((busy * busy + 1) * sizeof *list);
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

/* ---- Cells ---- */

/* Stretches of the arena between two ends of storages, and who lies there first and last. */
struct cells {
    uint32_t count;
    uint32_t *begin, *end; /* by planned storage */
    uint32_t *first;       /* by cell: storage, or TARN_NONE */
    uint32_t *last;
};

/* One end of a storage: 2 * storage, + 1 for the end behind its last byte. */
struct point {
    uint64_t address;
    uint32_t name;
};

static int compare_points(const void *a, const void *b)
{
    uint64_t x = ((const struct point *)a)->address, y = ((const struct point *)b)->address;
    return x < y ? -1 : x > y;
}

static bool number_cells(struct cells *cells, const struct tarn_graph *graph,
                         const uint64_t *offset)
{
    size_t count = 2 * (size_t)graph->planned_count;
    struct point *points = malloc((count + 1) * sizeof *points);
    if (!points) return false;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        points[2 * a] = (struct point){offset[a], 2 * a};
        points[2 * a + 1] = (struct point){offset[a] + graph->storages[a].size, 2 * a + 1};
    }
    qsort(points, count, sizeof *points, compare_points);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && points[i].address != points[i - 1].address) cells->count++;
        (points[i].name & 1 ? cells->end : cells->begin)[points[i].name / 2] = cells->count;
    }
    free(points);
    return true;
}

/* The next cell from c on that nobody has painted: skip[c] leads there, and the way is halved. */
static uint32_t find_bare(uint32_t *skip, uint32_t c)
{
    while (skip[c] != c) {
        skip[c] = skip[skip[c]];
        c = skip[c];
    }
    return c;
}

static void paint(const struct cells *cells, uint32_t *owner, uint32_t *skip, uint32_t storage)
{
    uint32_t end = cells->end[storage];
    for (uint32_t c = find_bare(skip, cells->begin[storage]); c < end; c = find_bare(skip, c)) {
        owner[c] = storage;
        skip[c] = c + 1;
    }
}

/* Paints what the op produces, where nobody has painted yet. */
static void paint_products(const struct cells *cells, const struct tarn_graph *graph, uint32_t op,
                           uint32_t *owner, uint32_t *skip)
{
    const struct tarn_graph_op *info = &graph->ops[op];
    if (info->view) return;
    if (info->workspace_storage != TARN_NONE) paint(cells, owner, skip, info->workspace_storage);
    for (uint32_t k = 0; k < info->outputs_count; k++) {
        uint32_t storage = graph->tensors[info->outputs[k]].storage;
        if (graph->storages[storage].producer == op) paint(cells, owner, skip, storage);
    }
}

static void bare_all(const struct cells *cells, uint32_t *owner, uint32_t *skip)
{
    for (uint32_t c = 0; c <= cells->count; c++) {
        owner[c] = TARN_NONE;
        skip[c] = c;
    }
}

static bool find_owners(struct cells *cells, const struct tarn_graph *graph, struct tarn_pool *pool)
{
    cells->first = tarn_pool_take(pool, (size_t)cells->count + 1, sizeof *cells->first);
    cells->last = tarn_pool_take(pool, (size_t)cells->count + 1, sizeof *cells->last);
    uint32_t *skip = tarn_pool_take(pool, (size_t)cells->count + 1, sizeof *skip);
    if (!cells->first || !cells->last || !skip) return false;
    bare_all(cells, cells->first, skip);
    for (uint32_t i = 0; i < graph->ops_count; i++)
        paint_products(cells, graph, graph->order[i], cells->first, skip);
    bare_all(cells, cells->last, skip);
    for (uint32_t i = graph->ops_count; i-- > 0;)
        paint_products(cells, graph, graph->order[i], cells->last, skip);
    return true;
}

static bool cells_init(struct cells *cells, const struct tarn_graph *graph, const uint64_t *offset,
                       struct tarn_pool *pool)
{
    memset(cells, 0, sizeof *cells);
    cells->begin = tarn_pool_take(pool, graph->planned_count, sizeof *cells->begin);
    cells->end = tarn_pool_take(pool, graph->planned_count, sizeof *cells->end);
    return cells->begin && cells->end && number_cells(cells, graph, offset) &&
           find_owners(cells, graph, pool);
}

/* ---- Two iterations ---- */

/* Op v of the first iteration is node v, of the second ops_count + v. */
struct unrolled {
    const struct tarn_graph *graph;
    struct tarn_pool *pool;
    struct tarn_event_graph nodes;
    uint32_t *begin;  /* of arcs: counted two entries further on, filled one, so that all is right
                         in the end */
    uint32_t *before; /* the arcs' ops; NULL while they are only counted */
    uint32_t *seen;   /* stream -> storage + 1 whose last toucher there was found */
};

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
    const struct tarn_graph *graph = unrolled->graph;
    if (graph->ops[op].stream == graph->ops[on].stream) return;
    add_arc(unrolled, graph->ops_count + op, on);
}

/* Those who produce what lies first on the cells of a list wait for `on`. */
static void need_on_cells(struct unrolled *unrolled, const struct cells *cells,
                          const uint32_t *next_cell, uint32_t c, uint32_t on)
{
    uint32_t done = TARN_NONE;
    for (; c != TARN_NONE; c = next_cell[c]) {
        if (cells->first[c] == done) continue;
        done = cells->first[c];
        need(unrolled, unrolled->graph->storages[done].producer, on);
    }
}

/* Walking back through the touchers, the first one met in a stream is its last. */
static void need_last_touchers(struct unrolled *unrolled, const struct cells *cells,
                               const uint32_t *next_cell, uint32_t c, uint32_t storage)
{
    const struct tarn_graph *graph = unrolled->graph;
    const struct tarn_storage *record = &graph->storages[storage];
    for (uint32_t k = record->touchers_count; k-- > 0;) {
        uint32_t stream = graph->ops[record->touchers[k]].stream;
        if (unrolled->seen[stream] == storage + 1) continue;
        unrolled->seen[stream] = storage + 1;
        need_on_cells(unrolled, cells, next_cell, c, record->touchers[k]);
    }
}

static bool need_planned(struct unrolled *unrolled, const struct cells *cells)
{
    uint32_t planned_count = unrolled->graph->planned_count;
    uint32_t *head = tarn_pool_take(unrolled->pool, planned_count, sizeof *head);
    uint32_t *next = tarn_pool_take(unrolled->pool, (size_t)cells->count + 1, sizeof *next);
    if (!head || !next) return false;
    for (uint32_t a = 0; a < planned_count; a++) head[a] = TARN_NONE;
    for (uint32_t c = cells->count; c-- > 0;) {
        if (cells->last[c] == TARN_NONE) continue;
        next[c] = head[cells->last[c]];
        head[cells->last[c]] = c;
    }
    memset(unrolled->seen, 0, unrolled->graph->streams_count * sizeof *unrolled->seen);
    for (uint32_t a = 0; a < planned_count; a++) {
        if (head[a] != TARN_NONE) need_last_touchers(unrolled, cells, next, head[a], a);
    }
    return true;
}

/* The writers of a persistent storage; TARN_NONE: nobody writes it. */
struct writers {
    uint32_t first, last;
};

static void find_writers(struct writers *writers, const struct tarn_graph *graph)
{
    uint32_t planned_count = graph->planned_count;
    for (uint32_t i = 0; i < graph->storages_count - planned_count; i++)
        writers[i] = (struct writers){TARN_NONE, TARN_NONE};
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        const struct tarn_graph_op *op = &graph->ops[graph->order[i]];
        for (uint32_t k = 0; k < op->outputs_count && !op->view; k++) {
            uint32_t storage = graph->tensors[op->outputs[k]].storage;
            if (storage < planned_count) continue;
            struct writers *found = &writers[storage - planned_count];
            found->last = graph->order[i];
            if (found->first == TARN_NONE) found->first = graph->order[i];
        }
    }
}

static bool need_persistent(struct unrolled *unrolled)
{
    const struct tarn_graph *graph = unrolled->graph;
    uint32_t count = graph->storages_count - graph->planned_count;
    struct writers *writers = tarn_pool_take(unrolled->pool, count, sizeof *writers);
    if (!writers) return false;
    find_writers(writers, graph);
    for (uint32_t i = 0; i < count; i++) {
        const struct tarn_storage *storage = &graph->storages[graph->planned_count + i];
        struct writers by = writers[i];
        for (uint32_t k = 0; k < storage->touchers_count && by.first != TARN_NONE; k++) {
            uint32_t op = storage->touchers[k];
            if (graph->rank[op] <= graph->rank[by.first]) need(unrolled, op, by.last);
            if (graph->rank[op] >= graph->rank[by.last]) need(unrolled, by.first, op);
        }
    }
    return true;
}

static bool add_arcs(struct unrolled *unrolled, const struct tarn_boundary_inside *inside,
                     const struct cells *cells)
{
    for (uint32_t i = 0; i < inside->waits_count; i++) {
        uint32_t op = inside->waits[i].op, on = inside->waits[i].on;
        add_arc(unrolled, op, on);
        add_arc(unrolled, unrolled->graph->ops_count + op, unrolled->graph->ops_count + on);
    }
    return need_planned(unrolled, cells) && need_persistent(unrolled);
}

static bool fill_arcs(struct unrolled *unrolled, const struct tarn_boundary_inside *inside,
                      const struct cells *cells)
{
    size_t nodes_count = unrolled->nodes.ops_count;
    unrolled->begin = tarn_pool_take(unrolled->pool, nodes_count + 2, sizeof *unrolled->begin);
    unrolled->seen =
        tarn_pool_take(unrolled->pool, unrolled->graph->streams_count, sizeof *unrolled->seen);
    if (!unrolled->begin || !unrolled->seen || !add_arcs(unrolled, inside, cells)) return false;
    for (size_t v = 0; v < nodes_count; v++) unrolled->begin[v + 2] += unrolled->begin[v + 1];
    unrolled->before =
        tarn_pool_take(unrolled->pool, unrolled->begin[nodes_count + 1], sizeof *unrolled->before);
    if (!unrolled->before || !add_arcs(unrolled, inside, cells)) return false;
    unrolled->nodes.predecessors = (struct tarn_arcs){unrolled->begin, unrolled->before};
    return true;
}

/* Both copies of every stream in one list. Views launch nothing, and the waits inside know what
 * they order: they are left out. */
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
                       struct tarn_pool *pool)
{
    uint32_t *order = tarn_pool_take(pool, nodes->ops_count, sizeof *order), next = 0;
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
    struct cells cells;
    if (!tarn_event_graph_take(&unrolled->nodes, unrolled->pool, 2 * graph->ops_count,
                               graph->streams_count) ||
        !cells_init(&cells, graph, inside->offset, unrolled->pool))
        return false;
    fill_streams(&unrolled->nodes, graph);
    return fill_order(&unrolled->nodes, graph, unrolled->pool) &&
           fill_arcs(unrolled, inside, &cells);
}

/* Of the waits of two iterations, those of the second on the first. */
static void keep_crossing(struct tarn_wait *waits, uint32_t *count, uint32_t ops_count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        if (waits[i].op < ops_count || waits[i].on >= ops_count) continue;
        waits[kept++] = (struct tarn_wait){waits[i].op - ops_count, waits[i].on};
    }
    *count = kept;
}

enum tarn_status tarn_boundary_refined(const struct tarn_graph *graph,
                                       const struct tarn_boundary_inside *inside,
                                       struct tarn_wait **waits, uint32_t *count)
{
    enum tarn_status status = TARN_SYSTEM;
    struct unrolled unrolled = {.graph = graph, .pool = tarn_pool_create()};
    if (unrolled.pool && unroll(&unrolled, inside))
        status = tarn_events_reduce(&unrolled.nodes, waits, count);
    if (status == TARN_OK) keep_crossing(*waits, count, graph->ops_count);
    tarn_pool_destroy(unrolled.pool);
    return status;
}
