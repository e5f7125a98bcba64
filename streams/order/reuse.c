/* Reuse: the elementwise maximum of the clocks of a storage's last users gives `first`, the
 * positions from which its bytes may be reused. With it every safety question is answered in O(1)
 * without a matrix of pairs. Source: docs/how-it-works.md, "Reuse". Equal to Algorithms 1 and 2 of
 * the SOMAS paper. Cost: O(touches S + storages S). */
#include "reuse.h"

#include <assert.h>
#include <string.h>

#include "streams/base/region.h"

struct first_scratch {
    uint32_t *row;  /* the row being built */
    uint32_t *seen; /* stream -> storage + 1 whose last user there is already in */
};

/* Users come in topological order: walking back, only the first user found in a stream counts. */
static void fill_row(const struct first_scratch *scratch, const struct tarn_clocks *clocks,
                     const struct tarn_graph *graph, uint32_t a)
{
    const struct tarn_storage *storage = &graph->storages[a];
    memset(scratch->row, 0, clocks->streams_count * sizeof *scratch->row);
    for (uint32_t k = storage->users_count; k-- > 0;) {
        uint32_t op = tarn_storage_users(graph, storage)[k];
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

static enum tarn_status fill_first(struct tarn_reuse *reuse, struct tarn_region *region,
                                   const struct tarn_clocks *clocks, const struct tarn_graph *graph)
{
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct first_scratch scratch = {
        tarn_region_take(region, reuse->streams_count, sizeof *scratch.row),
        tarn_region_take(region, reuse->streams_count, sizeof *scratch.seen)};
    bool ok = scratch.row && scratch.seen;
    for (uint32_t a = 0; ok && a < reuse->count; a++) {
        if (graph->storages[a].pinned)
            memcpy(scratch.row, reuse->length, reuse->streams_count * sizeof *scratch.row);
        else
            fill_row(&scratch, clocks, graph, a);
        for (uint32_t s = 0; s < reuse->streams_count; s++)
            reuse->first[(size_t)s * reuse->count + a] = scratch.row[s];
    }
    tarn_region_release(region, mark);
    return ok ? TARN_OK : TARN_SYSTEM;
}

enum tarn_status tarn_reuse_init(struct tarn_reuse *reuse, struct tarn_region *region,
                                 const struct tarn_clocks *clocks, const struct tarn_graph *graph)
{
    assert(clocks->streams_count == graph->streams_count);
    *reuse =
        (struct tarn_reuse){.streams_count = graph->streams_count, .count = graph->planned_count};
    reuse->length = tarn_region_take(region, reuse->streams_count, sizeof *reuse->length);
    reuse->first =
        tarn_region_take(region, (size_t)reuse->count * reuse->streams_count, sizeof *reuse->first);
    reuse->position = tarn_region_take(region, reuse->count, sizeof *reuse->position);
    reuse->stream = tarn_region_take(region, reuse->count, sizeof *reuse->stream);
    if (!reuse->length || !reuse->first || !reuse->position || !reuse->stream) return TARN_SYSTEM;
    for (uint32_t s = 0; s < reuse->streams_count; s++)
        reuse->length[s] = graph->streams[s].ops_count;
    for (uint32_t a = 0; a < reuse->count; a++) {
        const struct tarn_graph_op *producer = &graph->ops[graph->storages[a].producer];
        reuse->position[a] = producer->position;
        reuse->stream[a] = producer->stream;
    }
    return fill_first(reuse, region, clocks, graph);
}

bool tarn_reuse_is_valid(const struct tarn_reuse *reuse)
{
    for (uint32_t a = 0; a < reuse->count; a++) {
        if (reuse->stream[a] >= reuse->streams_count) return false;
        for (uint32_t s = 0; s < reuse->streams_count; s++)
            if (reuse->first[(size_t)s * reuse->count + a] > reuse->length[s]) return false;
        if (tarn_reuse_precedes(reuse, a, a)) return false;
    }
    return true;
}
