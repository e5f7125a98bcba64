/* Unsafe pairs on the stream graph: the SOMAS paper's Algorithm 2, with Algorithms 3 (tensors of
 * streams in ancestor relation), 4 (valid ancestor) and 5 (tensors of one stream), section 3.2.
 *
 * Differences to the paper: orders are 1-based, so that 0 can mean none; a stream is never its own
 * ancestor, even if the stream graph has cycles (Algorithm 4 treats it separately); a tensor
 * without consumers is consumed by its producer, an output at the end of every stream; Algorithm
 * 5 has the branch that the paper's text describes (two tensors that both stay within the stream:
 * disjoint lifetimes) and its listing may lack.
 * Cost: O((V + E + T) S) for the values, O(T^2 S) at worst for the pairs. */
#include "pairs.h"

#include <assert.h>
#include <string.h>

/* ---- The values ---- */

static void raise(uint32_t *value, uint32_t to)
{
    if (to > *value) *value = to;
}

static void inherit(const struct tarn_graph *graph, uint32_t *rows, uint32_t op,
                    uint32_t predecessor)
{
    size_t streams_count = graph->streams_count;
    const struct tarn_graph_op *u = &graph->ops[predecessor];
    for (uint32_t s = 0; s < streams_count; s++)
        raise(&rows[op * streams_count + s], rows[predecessor * streams_count + s]);
    raise(&rows[op * streams_count + u->stream], u->position + 1);
}

/* rows[op][s]: highest order in s of an ancestor of op, by one pass in topological order. */
static void fill_ancestor_orders(const struct tarn_graph *graph, uint32_t *rows)
{
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t op = graph->order[i];
        const struct tarn_graph_op *v = &graph->ops[op];
        if (v->position > 0)
            inherit(graph, rows, op, graph->streams[v->stream].ops[v->position - 1]);
        for (uint32_t k = graph->predecessors.begin[op]; k < graph->predecessors.begin[op + 1]; k++)
            inherit(graph, rows, op, graph->predecessors.ops[k]);
    }
}

/* The last op of a stream has all ancestors that any op of the stream has. */
static void fill_anc_streams(struct tarn_stream_graph *streams, const struct tarn_graph *graph,
                             const uint32_t *rows)
{
    size_t streams_count = streams->streams_count;
    for (uint32_t s1 = 0; s1 < streams_count; s1++) {
        const struct tarn_graph_stream *stream = &graph->streams[s1];
        if (stream->ops_count == 0) continue;
        const uint32_t *row = rows + stream->ops[stream->ops_count - 1] * streams_count;
        for (uint32_t s2 = 0; s2 < streams_count; s2++)
            streams->anc_streams[s1 * streams_count + s2] = s1 != s2 && row[s2] > 0;
    }
}

static void fill_end_time(struct tarn_stream_graph *streams, const struct tarn_graph *graph,
                          uint32_t t)
{
    const struct tarn_storage *storage = &graph->storages[t];
    uint32_t *end_time = streams->end_time + (size_t)t * streams->streams_count;
    if (storage->pinned) {
        for (uint32_t s = 0; s < streams->streams_count; s++) end_time[s] = TARN_ORDER_END;
        return;
    }
    assert(storage->users_count > 0);
    uint32_t skipped = storage->users_count > 1; /* the producer, unless it is alone */
    for (uint32_t k = skipped; k < storage->users_count; k++) {
        const struct tarn_graph_op *op = &graph->ops[tarn_storage_users(graph, storage)[k]];
        raise(&end_time[op->stream], op->position + 1);
    }
}

static void fill_tensor(struct tarn_stream_graph *streams, const struct tarn_graph *graph,
                        const uint32_t *rows, uint32_t t)
{
    size_t streams_count = streams->streams_count;
    uint32_t producer = graph->storages[t].producer;
    streams->start_time[t] = graph->ops[producer].position + 1;
    memcpy(streams->max_anc_id + t * streams_count, rows + producer * streams_count,
           streams_count * sizeof *rows);
    fill_end_time(streams, graph, t);
    for (uint32_t s = 0; s < streams_count; s++) {
        if (s != graph->ops[producer].stream && streams->end_time[t * streams_count + s] > 0)
            streams->between_streams[t] = true;
    }
}

static uint32_t stream_of(const struct tarn_graph *graph, uint32_t t)
{
    return graph->ops[graph->storages[t].producer].stream;
}

/* Counting sort. begin is shifted by one while it fills: begin[s + 1] is the index of stream s's
 * next tensor, and so ends up as the start of stream s + 1. */
static void fill_tensors_of_streams(struct tarn_stream_graph *streams,
                                    const struct tarn_graph *graph)
{
    uint32_t *begin = streams->begin;
    for (uint32_t t = 0; t < graph->planned_count; t++) begin[stream_of(graph, t) + 2]++;
    for (uint32_t s = 0; s < streams->streams_count; s++) begin[s + 2] += begin[s + 1];
    for (uint32_t t = 0; t < graph->planned_count; t++)
        streams->tensors[begin[stream_of(graph, t) + 1]++] = t;
}

enum tarn_status tarn_stream_graph_init(struct tarn_stream_graph *streams,
                                        struct tarn_region *region, const struct tarn_graph *graph)
{
    size_t count = graph->planned_count, streams_count = graph->streams_count;
    size_t entries = count * streams_count;
    memset(streams, 0, sizeof *streams);
    streams->streams_count = graph->streams_count;
    streams->start_time = tarn_region_take(region, count, sizeof *streams->start_time);
    streams->end_time = tarn_region_take(region, entries, sizeof *streams->end_time);
    streams->max_anc_id = tarn_region_take(region, entries, sizeof *streams->max_anc_id);
    streams->between_streams = tarn_region_take(region, count, sizeof *streams->between_streams);
    streams->anc_streams =
        tarn_region_take(region, streams_count * streams_count, sizeof *streams->anc_streams);
    streams->tensors = tarn_region_take(region, count, sizeof *streams->tensors);
    streams->begin = tarn_region_take(region, streams_count + 2, sizeof *streams->begin);
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint32_t *rows = tarn_region_take(region, graph->ops_count * streams_count, sizeof *rows);
    if (region->is_exhausted) return TARN_SYSTEM;
    fill_ancestor_orders(graph, rows);
    fill_anc_streams(streams, graph, rows);
    for (uint32_t t = 0; t < count; t++) fill_tensor(streams, graph, rows, t);
    fill_tensors_of_streams(streams, graph);
    tarn_region_release(region, mark);
    return TARN_OK;
}

/* ---- Algorithms 2 to 5 ---- */

/* Algorithm 4: has every consumer of t2 finished before t1, of stream s1, is produced? */
static bool is_valid_ancestor(const struct tarn_stream_graph *streams, uint32_t t2, uint32_t t1,
                              uint32_t s1)
{
    size_t streams_count = streams->streams_count;
    const uint32_t *end_time = streams->end_time + t2 * streams_count;
    const uint32_t *max_anc_id = streams->max_anc_id + t1 * streams_count;
    const bool *anc_streams = streams->anc_streams + s1 * streams_count;
    for (uint32_t s = 0; s < streams_count; s++) {
        if (end_time[s] == 0) continue; /* not in DestStreams[t2] */
        if (s == s1) {
            if (end_time[s] >= streams->start_time[t1]) return false;
        } else if (!anc_streams[s] || end_time[s] > max_anc_id[s]) {
            return false;
        }
    }
    return true;
}

/* Algorithm 3's body: t2 of stream s2, an ancestor of s1, against all tensors of s1. */
static void reuse_ancestor_tensor(const struct tarn_stream_graph *streams, uint32_t t2, uint32_t s2,
                                  uint32_t s1, struct tarn_pair_matrix *matrix)
{
    size_t streams_count = streams->streams_count;
    uint32_t end_time = streams->end_time[t2 * streams_count + s2];
    bool between = streams->between_streams[t2];
    for (uint32_t k = streams->begin[s1]; k < streams->begin[s1 + 1]; k++) {
        uint32_t t1 = streams->tensors[k];
        bool safe = between ? is_valid_ancestor(streams, t2, t1, s1)
                            : end_time <= streams->max_anc_id[t1 * streams_count + s2];
        if (safe) tarn_pair_matrix_clear(matrix, t1, t2);
    }
}

/* Algorithm 3. */
static void ancestor_streams_reuse(const struct tarn_stream_graph *streams,
                                   struct tarn_pair_matrix *matrix)
{
    for (uint32_t s1 = 0; s1 < streams->streams_count; s1++) {
        for (uint32_t s2 = 0; s2 < streams->streams_count; s2++) {
            if (!streams->anc_streams[(size_t)s1 * streams->streams_count + s2]) continue;
            for (uint32_t k = streams->begin[s2]; k < streams->begin[s2 + 1]; k++)
                reuse_ancestor_tensor(streams, streams->tensors[k], s2, s1, matrix);
        }
    }
}

static bool starts_after_end(const struct tarn_stream_graph *streams, uint32_t t1, uint32_t t2,
                             uint32_t s)
{
    return streams->start_time[t1] > streams->end_time[(size_t)t2 * streams->streams_count + s];
}

static bool one_between_is_safe(const struct tarn_stream_graph *streams, uint32_t between,
                                uint32_t within, uint32_t s)
{
    return starts_after_end(streams, between, within, s) ||
           (streams->start_time[between] < streams->start_time[within] &&
            is_valid_ancestor(streams, between, within, s));
}

/* Algorithm 5's body: two tensors of stream s. */
static bool same_stream_is_safe(const struct tarn_stream_graph *streams, uint32_t t1, uint32_t t2,
                                uint32_t s)
{
    bool between1 = streams->between_streams[t1], between2 = streams->between_streams[t2];
    if (streams->start_time[t1] == streams->start_time[t2]) return false;
    if (between1 && between2)
        return is_valid_ancestor(streams, t1, t2, s) || is_valid_ancestor(streams, t2, t1, s);
    if (between1) return one_between_is_safe(streams, t1, t2, s);
    if (between2) return one_between_is_safe(streams, t2, t1, s);
    return starts_after_end(streams, t1, t2, s) || starts_after_end(streams, t2, t1, s);
}

/* Algorithm 5. */
static void same_stream_reuse(const struct tarn_stream_graph *streams,
                              struct tarn_pair_matrix *matrix)
{
    for (uint32_t s = 0; s < streams->streams_count; s++) {
        for (uint32_t i = streams->begin[s]; i < streams->begin[s + 1]; i++) {
            for (uint32_t k = i + 1; k < streams->begin[s + 1]; k++) {
                uint32_t t1 = streams->tensors[i], t2 = streams->tensors[k];
                if (same_stream_is_safe(streams, t1, t2, s)) tarn_pair_matrix_clear(matrix, t1, t2);
            }
        }
    }
}

/* Algorithm 2. */
enum tarn_status tarn_pairs_stream_graph(const struct tarn_graph *graph,
                                         struct tarn_pair_matrix *matrix)
{
    struct tarn_stream_graph streams;
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status = tarn_pair_matrix_init(matrix, graph->planned_count);
    if (status != TARN_OK) return status;
    status = tarn_stream_graph_init(&streams, &region, graph);
    if (status == TARN_OK) {
        ancestor_streams_reuse(&streams, matrix);
        same_stream_reuse(&streams, matrix);
    } else {
        tarn_pair_matrix_finish(matrix);
    }
    tarn_region_finish(&region);
    return status;
}
