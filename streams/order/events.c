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

static uint32_t number_rows(struct past *past, const struct tarn_graph *graph)
{
    uint32_t rows = 1;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        const struct tarn_graph_stream *stream = &graph->streams[s];
        uint32_t row = 0, launched = 0;
        for (uint32_t i = 0; i < stream->ops_count; i++) {
            uint32_t op = stream->ops[i];
            if (graph->predecessors.begin[op] != graph->predecessors.begin[op + 1]) row = rows++;
            if (!graph->ops[op].view) launched = i + 1;
            past->row_of[op] = row;
            past->launched[op] = launched;
        }
    }
    return rows;
}

/* The entry of stream s up to and including op v. */
static uint32_t entry(const struct past *past, const struct tarn_graph *graph, uint32_t v,
                      uint32_t s)
{
    if (graph->ops[v].stream == s) return past->launched[v];
    return past->rows[(size_t)past->row_of[v] * past->streams_count + s];
}

static void fill_row(struct past *past, const struct tarn_graph *graph, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    uint32_t *row = past->rows + (size_t)past->row_of[v] * past->streams_count;
    if (op->position > 0) {
        uint32_t before = past->row_of[graph->streams[op->stream].ops[op->position - 1]];
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

static bool past_init(struct past *past, const struct tarn_graph *graph)
{
    memset(past, 0, sizeof *past);
    past->streams_count = graph->streams_count;
    past->row_of = malloc(((size_t)graph->ops_count + 1) * sizeof *past->row_of);
    past->launched = malloc(((size_t)graph->ops_count + 1) * sizeof *past->launched);
    if (!past->row_of || !past->launched) return false;
    size_t rows = number_rows(past, graph);
    past->rows = calloc(rows * past->streams_count + 1, sizeof *past->rows);
    if (!past->rows) return false;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i];
        if (graph->predecessors.begin[v] != graph->predecessors.begin[v + 1])
            fill_row(past, graph, v);
    }
    return true;
}

/* The ops that v must wait for although the launched op before it does not, one per stream. */
static uint32_t news(const struct past *past, const struct tarn_graph *graph, uint32_t v,
                     uint32_t before, uint32_t *ops)
{
    uint32_t count = 0;
    if (before != TARN_NONE && past->row_of[before] == past->row_of[v]) return 0;
    for (uint32_t s = 0; s < past->streams_count; s++) {
        if (s == graph->ops[v].stream) continue;
        uint32_t known = before == TARN_NONE ? 0 : entry(past, graph, before, s);
        uint32_t latest = entry(past, graph, v, s);
        if (latest > known) ops[count++] = graph->streams[s].ops[latest - 1];
    }
    return count;
}

static bool is_implied(const struct past *past, const struct tarn_graph *graph, const uint32_t *ops,
                       uint32_t count, uint32_t u)
{
    for (uint32_t k = 0; k < count; k++) {
        if (ops[k] == u) continue;
        uint32_t reached = entry(past, graph, ops[k], graph->ops[u].stream);
        if (reached > graph->ops[u].position) return true;
    }
    return false;
}

static bool append_waits_of(struct wait_list *list, const struct past *past,
                            const struct tarn_graph *graph, uint32_t v, uint32_t *scratch)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const uint32_t *stream = graph->streams[op->stream].ops;
    uint32_t launched_before = op->position > 0 ? past->launched[stream[op->position - 1]] : 0;
    uint32_t before = launched_before > 0 ? stream[launched_before - 1] : TARN_NONE;
    uint32_t count = news(past, graph, v, before, scratch);
    for (uint32_t k = 0; k < count; k++) {
        if (is_implied(past, graph, scratch, count, scratch[k])) continue;
        if (!append(list, v, scratch[k])) return false;
    }
    return true;
}

enum tarn_status tarn_events_minimal(const struct tarn_graph *graph, struct tarn_wait **waits,
                                     uint32_t *count)
{
    struct past past;
    struct wait_list list = {0};
    uint32_t *scratch = malloc(((size_t)graph->streams_count + 1) * sizeof *scratch);
    bool ok = past_init(&past, graph) && scratch;
    for (uint32_t i = 0; ok && i < graph->ops_count; i++) {
        uint32_t v = graph->order[i];
        if (!graph->ops[v].view) ok = append_waits_of(&list, &past, graph, v, scratch);
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

/* ---- Iteration boundary ---- */

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

enum tarn_status tarn_events_boundary_simple(const struct tarn_graph *graph,
                                             struct tarn_wait **waits, uint32_t *count)
{
    struct wait_list list = {0};
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        uint32_t first = first_launched(graph, s);
        for (uint32_t t = 0; first != TARN_NONE && t < graph->streams_count; t++) {
            uint32_t last = last_launched(graph, t);
            if (t == s || last == TARN_NONE) continue;
            if (!append(&list, first, last)) {
                free(list.items);
                return TARN_SYSTEM;
            }
        }
    }
    *waits = list.items;
    *count = list.count;
    return TARN_OK;
}
