/* Computes clocks: one pass in reverse topological order gives R, the ops that each op strictly
 * reaches. An op's row is the row of the next op in its stream, lowered by the rows of its
 * cross-stream successors. So "a happens before b" is answered in O(1) without a matrix of pairs.
 * Source: docs/how-it-works.md, "Happened-before and clocks". Cost: O((V + E) S) time; a row of S
 * entries for every op with cross-stream successors only. */
#include "clocks.h"

#include <string.h>

#include "streams/base/region.h"

static bool has_row_of_its_own(const struct tarn_graph *graph, uint32_t op)
{
    const struct tarn_graph_stream *stream = &graph->streams[graph->ops[op].stream];
    bool is_last = graph->ops[op].position + 1 == stream->ops_count;
    return is_last || graph->successors.begin[op] != graph->successors.begin[op + 1];
}

static uint32_t number_rows(struct tarn_clocks *clocks, const struct tarn_graph *graph)
{
    uint32_t rows = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        const struct tarn_graph_stream *stream = &graph->streams[s];
        for (uint32_t i = stream->ops_count; i-- > 0;) {
            if (has_row_of_its_own(graph, stream->ops[i])) rows++;
            clocks->row_of[stream->ops[i]] = rows - 1;
        }
    }
    return rows;
}

static void start_row(const struct tarn_clocks *clocks, const struct tarn_graph *graph, uint32_t op,
                      uint32_t *row)
{
    uint32_t streams_count = clocks->streams_count;
    const struct tarn_graph_stream *stream = &graph->streams[graph->ops[op].stream];
    uint32_t next = graph->ops[op].position + 1;
    if (next < stream->ops_count) {
        uint32_t after = clocks->row_of[stream->ops[next]];
        memcpy(row, clocks->rows + (size_t)after * streams_count, streams_count * sizeof *row);
    } else {
        for (uint32_t s = 0; s < streams_count; s++) row[s] = graph->streams[s].ops_count;
    }
    row[graph->ops[op].stream] = next;
}

static void join_successor(const struct tarn_clocks *clocks, const struct tarn_graph *graph,
                           uint32_t successor, uint32_t *row)
{
    const struct tarn_graph_op *op = &graph->ops[successor];
    if (row[op->stream] <= op->position) return; /* reached already, with all that follows it */
    const uint32_t *other =
        clocks->rows + (size_t)clocks->row_of[successor] * clocks->streams_count;
    for (uint32_t s = 0; s < clocks->streams_count; s++) {
        if (other[s] < row[s]) row[s] = other[s];
    }
    row[op->stream] = op->position;
}

static void fill_rows(const struct tarn_clocks *clocks, const struct tarn_graph *graph)
{
    for (uint32_t i = graph->ops_count; i-- > 0;) {
        uint32_t op = graph->order[i];
        if (!has_row_of_its_own(graph, op)) continue;
        uint32_t *row = clocks->rows + (size_t)clocks->row_of[op] * clocks->streams_count;
        start_row(clocks, graph, op, row);
        for (uint32_t k = graph->successors.begin[op]; k < graph->successors.begin[op + 1]; k++)
            join_successor(clocks, graph, graph->successors.ops[k], row);
    }
}

enum tarn_status tarn_clocks_init(struct tarn_clocks *clocks, struct tarn_region *region,
                                  const struct tarn_graph *graph)
{
    *clocks = (struct tarn_clocks){.streams_count = graph->streams_count};
    clocks->row_of = tarn_region_take(region, graph->ops_count, sizeof *clocks->row_of);
    if (!clocks->row_of) return TARN_SYSTEM;
    clocks->rows_count = number_rows(clocks, graph);
    clocks->rows = tarn_region_take(region, (size_t)clocks->rows_count * clocks->streams_count,
                                    sizeof *clocks->rows);
    if (!clocks->rows) return TARN_SYSTEM;
    fill_rows(clocks, graph);
    return TARN_OK;
}

/* ---- Validity ---- */

/* Does op v reach u, and all that u reaches? */
static bool reaches(const struct tarn_clocks *clocks, const struct tarn_graph *graph, uint32_t v,
                    uint32_t u)
{
    if (!tarn_clocks_before(clocks, graph, v, u)) return false;
    for (uint32_t s = 0; s < clocks->streams_count; s++)
        if (tarn_clocks_reach(clocks, graph, v, s) > tarn_clocks_reach(clocks, graph, u, s))
            return false;
    return true;
}

bool tarn_clocks_is_valid(const struct tarn_clocks *clocks, const struct tarn_graph *graph)
{
    if (clocks->streams_count != graph->streams_count) return false;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_stream *stream = &graph->streams[graph->ops[v].stream];
        uint32_t next = graph->ops[v].position + 1;
        if (clocks->row_of[v] >= clocks->rows_count) return false;
        if (next < stream->ops_count && !reaches(clocks, graph, v, stream->ops[next])) return false;
        for (uint32_t k = graph->successors.begin[v]; k < graph->successors.begin[v + 1]; k++)
            if (!reaches(clocks, graph, v, graph->successors.ops[k])) return false;
    }
    return true;
}
