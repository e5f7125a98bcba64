/* The minimal event set. K[v][s] is the highest position in stream s of a launched op strictly
 * before v. Views are ordinary nodes of the order but are not launched: K looks through them.
 *
 *     v must wait for u = the op at K[v][s]
 *         unless the launched op before v in its own stream already happens after u,
 *         or another op that v must wait for already happens after u.
 *
 * What is left is the unique transitive reduction on cross-stream arcs of the order among launched
 * ops: happens-before is unchanged, so every safe pair stays safe. Source: DESIGN.md, section 3.
 * Cost: O((V + E) S); a row of S entries for every op with cross-stream predecessors only. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

#include "streams/base/region.h"

/* Entries are positions + 1 (0: none). row_of[v] is the row of the latest op of v's stream up to v
 * that has cross-stream predecessors; row 0 is empty. A row does not speak of its own stream:
 * launched[v] does, the position + 1 of the latest launched op of v's stream up to v. */
struct past {
    uint32_t streams_count;
    uint32_t *row_of;
    uint32_t *launched;
    uint32_t *rows;
};

struct wait_list {
    struct tarn_wait *items;
    uint32_t count, capacity;
};

static bool append(struct wait_list *list, uint32_t op, uint32_t on)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? 2 * list->capacity : 64;
        struct tarn_wait *items = realloc(list->items, capacity * sizeof *items);
        if (!items) return false;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = (struct tarn_wait){op, on};
    return true;
}

static uint32_t op_at(const struct tarn_event_graph *graph, uint32_t s, uint32_t position)
{
    return graph->ops[graph->begin[s] + position];
}

static uint32_t number_rows(struct past *past, const struct tarn_event_graph *graph)
{
    uint32_t rows = 1;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        uint32_t row = 0, launched = 0;
        for (uint32_t i = graph->begin[s]; i < graph->begin[s + 1]; i++) {
            uint32_t op = graph->ops[i];
            if (graph->predecessors.begin[op] != graph->predecessors.begin[op + 1]) row = rows++;
            if (!graph->view[op]) launched = i - graph->begin[s] + 1;
            past->row_of[op] = row;
            past->launched[op] = launched;
        }
    }
    return rows;
}

/* The entry of stream s up to and including op v. */
static uint32_t entry(const struct past *past, const struct tarn_event_graph *graph, uint32_t v,
                      uint32_t s)
{
    if (graph->stream[v] == s) return past->launched[v];
    return past->rows[(size_t)past->row_of[v] * past->streams_count + s];
}

static void fill_row(struct past *past, const struct tarn_event_graph *graph, uint32_t v)
{
    uint32_t *row = past->rows + (size_t)past->row_of[v] * past->streams_count;
    if (graph->position[v] > 0) {
        uint32_t before = past->row_of[op_at(graph, graph->stream[v], graph->position[v] - 1)];
        memcpy(row, past->rows + (size_t)before * past->streams_count,
               past->streams_count * sizeof *row);
    }
    for (uint32_t k = graph->predecessors.begin[v]; k < graph->predecessors.begin[v + 1]; k++) {
        for (uint32_t s = 0; s < past->streams_count; s++) {
            uint32_t other = entry(past, graph, graph->predecessors.ops[k], s);
            if (other > row[s]) row[s] = other;
        }
    }
}

static void past_finish(struct past *past)
{
    free(past->row_of);
    free(past->launched);
    free(past->rows);
}

static bool past_init(struct past *past, const struct tarn_event_graph *graph)
{
    memset(past, 0, sizeof *past);
    past->streams_count = graph->streams_count;
    past->row_of = malloc(((size_t)graph->ops_count + 1) * sizeof *past->row_of);
    past->launched = malloc(((size_t)graph->ops_count + 1) * sizeof *past->launched);
    if (!past->row_of || !past->launched) return false;
    size_t rows = number_rows(past, graph);
    past->rows = calloc(rows * past->streams_count + 1, sizeof *past->rows);
    if (!past->rows) return false;
    for (uint32_t i = 0; i < graph->begin[graph->streams_count]; i++) {
        uint32_t v = graph->order[i];
        if (graph->predecessors.begin[v] != graph->predecessors.begin[v + 1])
            fill_row(past, graph, v);
    }
    return true;
}

/* The ops that v must wait for although the launched op before it does not, one per stream. */
static uint32_t news(const struct past *past, const struct tarn_event_graph *graph, uint32_t v,
                     uint32_t before, uint32_t *ops)
{
    uint32_t count = 0;
    if (before != TARN_NONE && past->row_of[before] == past->row_of[v]) return 0;
    for (uint32_t s = 0; s < past->streams_count; s++) {
        if (s == graph->stream[v]) continue;
        uint32_t known = before == TARN_NONE ? 0 : entry(past, graph, before, s);
        uint32_t latest = entry(past, graph, v, s);
        if (latest > known) ops[count++] = op_at(graph, s, latest - 1);
    }
    return count;
}

static bool is_implied(const struct past *past, const struct tarn_event_graph *graph,
                       const uint32_t *ops, uint32_t count, uint32_t u)
{
    for (uint32_t k = 0; k < count; k++) {
        if (ops[k] == u) continue;
        uint32_t reached = entry(past, graph, ops[k], graph->stream[u]);
        if (reached > graph->position[u]) return true;
    }
    return false;
}

static bool append_waits_of(struct wait_list *list, const struct past *past,
                            const struct tarn_event_graph *graph, uint32_t v, uint32_t *scratch)
{
    uint32_t s = graph->stream[v], position = graph->position[v];
    uint32_t launched_before = position > 0 ? past->launched[op_at(graph, s, position - 1)] : 0;
    uint32_t before = launched_before > 0 ? op_at(graph, s, launched_before - 1) : TARN_NONE;
    uint32_t count = news(past, graph, v, before, scratch);
    for (uint32_t k = 0; k < count; k++) {
        if (is_implied(past, graph, scratch, count, scratch[k])) continue;
        if (!append(list, v, scratch[k])) return false;
    }
    return true;
}

enum tarn_status tarn_events_reduce(const struct tarn_event_graph *graph, struct tarn_wait **waits,
                                    uint32_t *count)
{
    struct past past;
    struct wait_list list = {0};
    uint32_t *scratch = malloc(((size_t)graph->streams_count + 1) * sizeof *scratch);
    bool ok = past_init(&past, graph) && scratch;
    for (uint32_t i = 0; ok && i < graph->begin[graph->streams_count]; i++) {
        uint32_t v = graph->order[i];
        if (!graph->view[v]) ok = append_waits_of(&list, &past, graph, v, scratch);
    }
    past_finish(&past);
    free(scratch);
    if (!ok) {
        free(list.items);
        return TARN_SYSTEM;
    }
    *waits = list.items;
    *count = list.count;
    return TARN_OK;
}

/* ---- A whole graph ---- */

static void fill_ops(struct tarn_event_graph *ops, const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        ops->stream[v] = graph->ops[v].stream;
        ops->position[v] = graph->ops[v].position;
        ops->view[v] = graph->ops[v].view;
    }
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        const struct tarn_graph_stream *stream = &graph->streams[s];
        ops->begin[s + 1] = ops->begin[s] + stream->ops_count;
        if (stream->ops_count > 0)
            memcpy(ops->ops + ops->begin[s], stream->ops, stream->ops_count * sizeof *ops->ops);
    }
}

bool tarn_event_graph_take(struct tarn_event_graph *graph, struct tarn_region *region,
                           uint32_t ops_count, uint32_t streams_count)
{
    graph->ops_count = ops_count;
    graph->streams_count = streams_count;
    graph->stream = tarn_region_take(region, ops_count, sizeof *graph->stream);
    graph->position = tarn_region_take(region, ops_count, sizeof *graph->position);
    graph->view = tarn_region_take(region, ops_count, sizeof *graph->view);
    graph->begin = tarn_region_take(region, (size_t)streams_count + 1, sizeof *graph->begin);
    graph->ops = tarn_region_take(region, ops_count, sizeof *graph->ops);
    return graph->stream && graph->position && graph->view && graph->begin && graph->ops;
}

enum tarn_status tarn_events_minimal(const struct tarn_graph *graph, struct tarn_wait **waits,
                                     uint32_t *count)
{
    enum tarn_status status = TARN_SYSTEM;
    struct tarn_event_graph ops = {.order = graph->order, .predecessors = graph->predecessors};
    struct tarn_region region = {.chunks = NULL};
    if (tarn_event_graph_take(&ops, &region, graph->ops_count, graph->streams_count)) {
        fill_ops(&ops, graph);
        status = tarn_events_reduce(&ops, waits, count);
    }
    tarn_region_finish(&region);
    return status;
}
