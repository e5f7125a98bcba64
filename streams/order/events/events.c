/* Finds the minimal event set. K[v][s] is the highest position in stream s of a launched op
 * strictly before v. C[v][s] is the highest position of such an op that is also strictly before
 * another launched op before v. Views are ordinary nodes of the order but are not launched: K and C
 * look through them.
 *
 *     v must wait for u = the op at K[v][s]
 *         unless the launched op before v in its own stream already happens after u,
 *         or C[v][s] = K[v][s]: another op before v already happens after u.
 *
 * The remaining waits are the unique transitive reduction on cross-stream arcs of the order among
 * launched ops: happens-before is unchanged, so every safe pair stays safe. Source:
 * docs/how-it-works.md, "Event waits". Cost: O((V + E) S); a row of S entries for every op with
 * cross-stream predecessors, and a second row if the op is a view. */
#include "events.h"

#include <assert.h>
#include <string.h>

#include "streams/base/region.h"

/* Entries are positions + 1 (0: none). row_of[v] is the row of K of the latest op of v's stream up
 * to v that has cross-stream predecessors; row 0 is empty. A row has no entry for its own stream:
 * launched[v] has it, the position + 1 of the latest launched op of v's stream up to v.
 * covered_of[v] is the row of the ops before a launched op up to v: the row of C for a view, of K
 * for a launched op, since then all ops before v are before a launched op. */
struct past {
    uint32_t streams_count;
    uint32_t *row_of, *covered_of;
    uint32_t *launched;
    uint32_t *rows;
};

struct wait_list {
    struct tarn_region *region;
    struct tarn_wait *items;
    size_t room;
    uint32_t count;
};

static bool append(struct wait_list *list, uint32_t op, uint32_t on)
{
    struct tarn_wait *items = tarn_region_grow(list->region, list->items, &list->room,
                                               (size_t)list->count + 1, sizeof *items);
    if (!items) return false;
    list->items = items;
    list->items[list->count++] = (struct tarn_wait){op, on};
    return true;
}

static uint32_t op_at(const struct tarn_event_graph *graph, uint32_t s, uint32_t position)
{
    assert(position < graph->begin[s + 1] - graph->begin[s]);
    return graph->ops[graph->begin[s] + position];
}

static bool has_predecessors(const struct tarn_event_graph *graph, uint32_t v)
{
    return graph->predecessors.begin[v] != graph->predecessors.begin[v + 1];
}

static uint32_t number_rows(struct past *past, const struct tarn_event_graph *graph)
{
    uint32_t rows = 1;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        uint32_t row = 0, covered = 0, launched = 0;
        for (uint32_t i = graph->begin[s]; i < graph->begin[s + 1]; i++) {
            uint32_t op = graph->ops[i];
            if (has_predecessors(graph, op)) row = rows++;
            if (!graph->view[op]) covered = row;
            if (graph->view[op] && has_predecessors(graph, op)) covered = rows++;
            if (!graph->view[op]) launched = i - graph->begin[s] + 1;
            past->row_of[op] = row;
            past->covered_of[op] = covered;
            past->launched[op] = launched;
        }
    }
    return rows;
}

static uint32_t *row_at(const struct past *past, uint32_t row)
{
    return past->rows + (size_t)row * past->streams_count;
}

/* The op before v in its stream, or TARN_NONE. */
static uint32_t op_before(const struct tarn_event_graph *graph, uint32_t v)
{
    uint32_t position = graph->position[v];
    return position > 0 ? op_at(graph, graph->stream[v], position - 1) : TARN_NONE;
}

static void raise_to(uint32_t *restrict row, const uint32_t *restrict other, uint32_t count)
{
    for (uint32_t s = 0; s < count; s++) row[s] = other[s] > row[s] ? other[s] : row[s];
}

static void raise_entry(uint32_t *row, uint32_t s, uint32_t least)
{
    if (row[s] < least) row[s] = least;
}

/* K[v]: the maximum of the row of the op before v, and the predecessors with their rows. */
static void fill_row(const struct past *past, const struct tarn_event_graph *graph, uint32_t v)
{
    uint32_t *row = row_at(past, past->row_of[v]), before = op_before(graph, v);
    assert(past->row_of[v] > 0); /* row 0 belongs to ops without earlier ops */
    if (before != TARN_NONE) raise_to(row, row_at(past, past->row_of[before]), past->streams_count);
    for (uint32_t k = graph->predecessors.begin[v]; k < graph->predecessors.begin[v + 1]; k++) {
        uint32_t u = graph->predecessors.ops[k];
        raise_to(row, row_at(past, past->row_of[u]), past->streams_count);
        raise_entry(row, graph->stream[u], past->launched[u]);
    }
}

/* C[v]: as K[v], without the latest launched ops themselves. */
static void fill_covered(const struct past *past, const struct tarn_event_graph *graph, uint32_t v,
                         uint32_t *row)
{
    uint32_t before = op_before(graph, v);
    memset(row, 0, past->streams_count * sizeof *row);
    if (before != TARN_NONE)
        raise_to(row, row_at(past, past->covered_of[before]), past->streams_count);
    for (uint32_t k = graph->predecessors.begin[v]; k < graph->predecessors.begin[v + 1]; k++) {
        uint32_t u = graph->predecessors.ops[k];
        raise_to(row, row_at(past, past->covered_of[u]), past->streams_count);
        if (past->launched[u] > 0) raise_entry(row, graph->stream[u], past->launched[u] - 1);
    }
}

static bool past_init(struct past *past, struct tarn_region *region,
                      const struct tarn_event_graph *graph)
{
    past->streams_count = graph->streams_count;
    past->row_of = tarn_region_take(region, graph->ops_count, sizeof *past->row_of);
    past->covered_of = tarn_region_take(region, graph->ops_count, sizeof *past->covered_of);
    past->launched = tarn_region_take(region, graph->ops_count, sizeof *past->launched);
    if (region->is_exhausted) return false;
    size_t rows = number_rows(past, graph);
    past->rows = tarn_region_take(region, rows * past->streams_count, sizeof *past->rows);
    if (!past->rows) return false;
    for (uint32_t i = 0; i < graph->begin[graph->streams_count]; i++) {
        uint32_t v = graph->order[i];
        if (!has_predecessors(graph, v)) continue;
        fill_row(past, graph, v);
        if (graph->view[v]) fill_covered(past, graph, v, row_at(past, past->covered_of[v]));
    }
    return true;
}

/* `covered`: room for a row. */
static bool append_waits_of(struct wait_list *list, const struct past *past,
                            const struct tarn_event_graph *graph, uint32_t v, uint32_t *covered)
{
    uint32_t own = graph->stream[v], latest = op_before(graph, v), row = 0;
    uint32_t launched = latest != TARN_NONE ? past->launched[latest] : 0;
    uint32_t before = launched > 0 ? op_at(graph, own, launched - 1) : TARN_NONE;
    if (before != TARN_NONE) row = past->row_of[before];
    if (past->row_of[v] == row) return true;
    fill_covered(past, graph, v, covered);
    raise_to(covered, row_at(past, row), past->streams_count);
    for (uint32_t s = 0; s < past->streams_count; s++) {
        uint32_t last = row_at(past, past->row_of[v])[s];
        if (s == own || last <= covered[s]) continue;
        assert(!graph->view[op_at(graph, s, last - 1)]);
        if (!append(list, v, op_at(graph, s, last - 1))) return false;
    }
    return true;
}

enum tarn_status tarn_events_reduce(const struct tarn_event_graph *graph,
                                    struct tarn_region *region, struct tarn_wait **waits,
                                    uint32_t *count)
{
    struct past past;
    struct tarn_region working = {.chunks = NULL};
    struct wait_list list = {.region = &working};
    uint32_t *covered = tarn_region_take(&working, graph->streams_count, sizeof *covered);
    bool ok = covered && past_init(&past, &working, graph);
    for (uint32_t i = 0; ok && i < graph->begin[graph->streams_count]; i++) {
        uint32_t v = graph->order[i];
        if (!graph->view[v]) ok = append_waits_of(&list, &past, graph, v, covered);
    }
    struct tarn_wait *found = NULL;
    if (ok) found = tarn_region_copy(region, list.items, list.count, sizeof *found);
    tarn_region_finish(&working);
    if (!found) return TARN_SYSTEM;
    *waits = found;
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

enum tarn_status tarn_events_minimal(const struct tarn_graph *graph, struct tarn_region *region,
                                     struct tarn_wait **waits, uint32_t *count)
{
    enum tarn_status status = TARN_SYSTEM;
    struct tarn_event_graph ops = {.order = graph->order, .predecessors = graph->predecessors};
    struct tarn_region working = {.chunks = NULL};
    if (tarn_event_graph_take(&ops, &working, graph->ops_count, graph->streams_count)) {
        fill_ops(&ops, graph);
        status = tarn_events_reduce(&ops, region, waits, count);
    }
    tarn_region_finish(&working);
    return status;
}
