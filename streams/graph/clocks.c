/* Clocks: one pass in reverse topological order gives R, what each op strictly reaches; the
 * elementwise maximum over a storage's last touchers gives `first`, from where its bytes may be
 * reused. Together they answer every safety question in O(1) without a matrix of pairs.
 * Source: DESIGN.md, section 3. Equal to Algorithms 1 and 2 of the SOMAS paper.
 * Cost: O((V + E) S) time; a row of S entries for every op with cross-stream successors only. */
#include "clocks.h"

#include <stdlib.h>
#include <string.h>

/* ---- R ---- */

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

enum tarn_status tarn_clocks_init(struct tarn_clocks *clocks, const struct tarn_graph *graph)
{
    memset(clocks, 0, sizeof *clocks);
    clocks->streams_count = graph->streams_count;
    clocks->row_of = malloc((graph->ops_count + 1) * sizeof *clocks->row_of);
    if (!clocks->row_of) goto fail;
    clocks->rows_count = number_rows(clocks, graph);
    clocks->rows =
        malloc(((size_t)clocks->rows_count * clocks->streams_count + 1) * sizeof *clocks->rows);
    if (!clocks->rows) goto fail;
    fill_rows(clocks, graph);
    return TARN_OK;
fail:
    tarn_clocks_finish(clocks);
    return TARN_SYSTEM;
}

void tarn_clocks_finish(struct tarn_clocks *clocks)
{
    free(clocks->row_of);
    free(clocks->rows);
    memset(clocks, 0, sizeof *clocks);
}

/* ---- first ---- */

struct first_scratch {
    uint32_t *row;  /* the row being built */
    uint32_t *seen; /* stream -> storage + 1 whose last toucher there is already in */
};

/* Touchers come in topological order: walking back, only the first one met in a stream counts. */
static void fill_row(const struct first_scratch *scratch, const struct tarn_clocks *clocks,
                     const struct tarn_graph *graph, uint32_t a)
{
    const struct tarn_storage *storage = &graph->storages[a];
    memset(scratch->row, 0, clocks->streams_count * sizeof *scratch->row);
    for (uint32_t k = storage->touchers_count; k-- > 0;) {
        uint32_t op = storage->touchers[k];
        uint32_t own = graph->ops[op].stream;
        if (scratch->seen[own] == a + 1) continue;
        scratch->seen[own] = a + 1;
        const uint32_t *reach = clocks->rows + (size_t)clocks->row_of[op] * clocks->streams_count;
        for (uint32_t s = 0; s < clocks->streams_count; s++) {
            if (s != own && reach[s] > scratch->row[s]) scratch->row[s] = reach[s];
        }
        uint32_t next = graph->ops[op].position + 1;
        if (next > scratch->row[own]) scratch->row[own] = next;
    }
}

static void never_release(uint32_t *row, const struct tarn_graph *graph)
{
    for (uint32_t s = 0; s < graph->streams_count; s++) row[s] = graph->streams[s].ops_count;
}

static enum tarn_status fill_first(struct tarn_reuse *reuse, const struct tarn_clocks *clocks,
                                   const struct tarn_graph *graph)
{
    struct first_scratch scratch = {calloc((size_t)reuse->streams_count + 1, sizeof(uint32_t)),
                                    calloc((size_t)reuse->streams_count + 1, sizeof(uint32_t))};
    if (scratch.row && scratch.seen) {
        for (uint32_t a = 0; a < reuse->count; a++) {
            if (graph->storages[a].pinned)
                never_release(scratch.row, graph);
            else
                fill_row(&scratch, clocks, graph, a);
            for (uint32_t s = 0; s < reuse->streams_count; s++)
                reuse->first[(size_t)s * reuse->count + a] = scratch.row[s];
        }
    }
    enum tarn_status status = scratch.row && scratch.seen ? TARN_OK : TARN_SYSTEM;
    free(scratch.row);
    free(scratch.seen);
    return status;
}

enum tarn_status tarn_reuse_init(struct tarn_reuse *reuse, const struct tarn_clocks *clocks,
                                 const struct tarn_graph *graph)
{
    memset(reuse, 0, sizeof *reuse);
    reuse->streams_count = graph->streams_count;
    reuse->count = graph->planned_count;
    reuse->first = malloc(((size_t)reuse->count * reuse->streams_count + 1) * sizeof *reuse->first);
    reuse->position = malloc((reuse->count + 1) * sizeof *reuse->position);
    reuse->stream = malloc((reuse->count + 1) * sizeof *reuse->stream);
    if (!reuse->first || !reuse->position || !reuse->stream) goto fail;
    for (uint32_t a = 0; a < reuse->count; a++) {
        const struct tarn_graph_op *producer = &graph->ops[graph->storages[a].producer];
        reuse->position[a] = producer->position;
        reuse->stream[a] = producer->stream;
    }
    if (fill_first(reuse, clocks, graph) != TARN_OK) goto fail;
    return TARN_OK;
fail:
    tarn_reuse_finish(reuse);
    return TARN_SYSTEM;
}

void tarn_reuse_finish(struct tarn_reuse *reuse)
{
    free(reuse->first);
    free(reuse->position);
    free(reuse->stream);
    memset(reuse, 0, sizeof *reuse);
}
