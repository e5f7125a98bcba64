/* Cuts. With the place in the global order of the last op before first[a][s], in any stream s, as
 * the end of storage a, storages in conflict have intervals that meet: if `until` of a is at or
 * before the producer of b, that producer is at or beyond first[a] in its stream, and a precedes b.
 * So storages of two windows are never in conflict, unless one of them crosses a cut.
 * Source: DESIGN.md, section 3 (Windows). Cost: O(T S + V). */
#include "cuts.h"

#include <stdlib.h>
#include <string.h>

/* ---- Intervals ---- */

/* One stream's part in the ends of all storages. */
static void extend(struct tarn_cuts *cuts, const struct tarn_reuse *reuse,
                   const struct tarn_graph *graph, uint32_t s, uint32_t *place)
{
    const struct tarn_graph_stream *stream = &graph->streams[s];
    const uint32_t *first = reuse->first + (size_t)s * reuse->count;
    for (uint32_t i = 0; i < stream->ops_count; i++) place[i + 1] = graph->rank[stream->ops[i]];
    place[stream->ops_count + 1] = graph->ops_count;
    for (uint32_t a = 0; a < reuse->count; a++) {
        uint32_t before = place[first[a]], from = place[first[a] + 1];
        if (first[a] > 0 && before + 1 > cuts->until[a]) cuts->until[a] = before + 1;
        if (from < cuts->whole[a]) cuts->whole[a] = from;
    }
}

static bool find_intervals(struct tarn_cuts *cuts, const struct tarn_problem *problem)
{
    const struct tarn_reuse *reuse = problem->conflicts->reuse;
    const struct tarn_graph *graph = problem->graph;
    uint32_t longest = 0; /* a part's stream may have more positions than the graph has ops */
    for (uint32_t s = 0; s < reuse->streams_count; s++)
        if (graph->streams[s].ops_count > longest) longest = graph->streams[s].ops_count;
    uint32_t *place = calloc((size_t)longest + 2, sizeof *place);
    if (!place) return false;
    for (uint32_t a = 0; a < reuse->count; a++) {
        cuts->since[a] = graph->rank[graph->storages[a].producer];
        cuts->until[a] = cuts->since[a] + 1;
        cuts->whole[a] = graph->ops_count;
    }
    for (uint32_t s = 0; s < reuse->streams_count; s++)
        if (graph->streams[s].ops_count > 0) extend(cuts, reuse, graph, s, place);
    free(place);
    return true;
}

/* ---- Cutting ---- */

static void span_of(const struct tarn_cuts *cuts, const struct tarn_block *block, uint32_t *begin,
                    uint32_t *end)
{
    *begin = UINT32_MAX;
    *end = 0;
    for (uint32_t i = 0; i < block->members_count; i++) {
        uint32_t a = block->members[i];
        if (cuts->since[a] < *begin) *begin = cuts->since[a];
        if (cuts->until[a] > *end) *end = cuts->until[a];
    }
}

/* crossing[i]: how many storages a cut before the i-th op crosses; produced[i]: how many storages
 * the ops before it produce. */
static void count_crossings(const struct tarn_cuts *cuts, const struct tarn_blocks *blocks,
                            uint32_t ops_count, int32_t *crossing, uint32_t *produced)
{
    for (uint32_t b = 0; b < blocks->count; b++) {
        uint32_t begin, end;
        span_of(cuts, &blocks->blocks[b], &begin, &end);
        crossing[begin + 1] += (int32_t)blocks->blocks[b].members_count;
        crossing[end] -= (int32_t)blocks->blocks[b].members_count;
    }
    for (uint32_t a = 0; a < blocks->storages_count; a++) produced[cuts->since[a] + 1]++;
    for (uint32_t i = 0; i < ops_count; i++) {
        crossing[i + 1] += crossing[i];
        produced[i + 1] += produced[i];
    }
}

static void cut_where_few_cross(struct tarn_cuts *cuts, uint32_t ops_count, uint32_t width,
                                const int32_t *crossing, const uint32_t *produced)
{
    uint32_t begin = 0, best = 0;
    cuts->count = 0;
    cuts->at[0] = 0;
    for (uint32_t i = 1; i <= ops_count; i++) {
        uint32_t many = produced[i] - produced[begin];
        if (many < width / 2 + 1) continue;
        if (best == begin || crossing[i] < crossing[best]) best = i;
        if (many < width + width / 2 || produced[ops_count] - produced[best] < width / 2) continue;
        cuts->at[++cuts->count] = best;
        i = begin = best;
    }
    if (cuts->at[cuts->count] < ops_count) cuts->at[++cuts->count] = ops_count;
    for (uint32_t w = 0; w < cuts->count; w++)
        for (uint32_t i = cuts->at[w]; i < cuts->at[w + 1]; i++) cuts->window_of[i] = w;
    cuts->window_of[ops_count] = cuts->count;
}

static bool cut(struct tarn_cuts *cuts, const struct tarn_problem *problem, uint32_t width)
{
    uint32_t ops_count = problem->graph->ops_count;
    int32_t *crossing = calloc((size_t)ops_count + 2, sizeof *crossing);
    uint32_t *produced = calloc((size_t)ops_count + 2, sizeof *produced);
    cuts->at = malloc(((size_t)ops_count + 2) * sizeof *cuts->at);
    cuts->window_of = malloc(((size_t)ops_count + 1) * sizeof *cuts->window_of);
    bool ok = crossing && produced && cuts->at && cuts->window_of;
    if (ok) {
        count_crossings(cuts, problem->blocks, ops_count, crossing, produced);
        cut_where_few_cross(cuts, ops_count, width, crossing, produced);
    }
    free(crossing);
    free(produced);
    return ok;
}

/* ---- Who is where ---- */

/* storage -> window; `count` for what crosses. */
static void find_windows(const struct tarn_cuts *cuts, const struct tarn_blocks *blocks,
                         uint32_t *window)
{
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block *block = &blocks->blocks[b];
        uint32_t begin, end;
        span_of(cuts, block, &begin, &end);
        uint32_t own = cuts->window_of[begin];
        if (cuts->window_of[end - 1] != own) own = cuts->count;
        for (uint32_t i = 0; i < block->members_count; i++) window[block->members[i]] = own;
    }
}

static bool sort_storages(struct tarn_cuts *cuts, const struct tarn_problem *problem)
{
    uint32_t count = problem->conflicts->reuse->count;
    uint32_t *window = malloc(((size_t)count + 1) * sizeof *window);
    uint32_t *storage_at = malloc(((size_t)count + 1) * sizeof *storage_at);
    uint32_t *next = calloc((size_t)cuts->count + 2, sizeof *next);
    cuts->begin = calloc((size_t)cuts->count + 2, sizeof *cuts->begin);
    bool ok = window && storage_at && next && cuts->begin;
    if (ok) {
        find_windows(cuts, problem->blocks, window);
        for (uint32_t a = 0; a < count; a++) {
            storage_at[problem->conflicts->slot_of[a]] = a;
            cuts->begin[window[a] + 1]++;
        }
        for (uint32_t w = 0; w <= cuts->count; w++) {
            cuts->begin[w + 1] += cuts->begin[w];
            next[w] = cuts->begin[w];
        }
        for (uint32_t slot = 0; slot < count; slot++) {
            uint32_t a = storage_at[slot];
            cuts->storages[next[window[a]]++] = a;
        }
    }
    free(window);
    free(storage_at);
    free(next);
    return ok;
}

enum tarn_status tarn_cuts_init(struct tarn_cuts *cuts, const struct tarn_problem *problem,
                                uint32_t width)
{
    size_t count = (size_t)problem->conflicts->reuse->count + 1;
    memset(cuts, 0, sizeof *cuts);
    cuts->since = malloc(count * sizeof *cuts->since);
    cuts->until = malloc(count * sizeof *cuts->until);
    cuts->whole = malloc(count * sizeof *cuts->whole);
    cuts->storages = malloc(count * sizeof *cuts->storages);
    if (cuts->since && cuts->until && cuts->whole && cuts->storages &&
        find_intervals(cuts, problem) && cut(cuts, problem, width) && sort_storages(cuts, problem))
        return TARN_OK;
    tarn_cuts_finish(cuts);
    return TARN_SYSTEM;
}

void tarn_cuts_finish(struct tarn_cuts *cuts)
{
    free(cuts->since);
    free(cuts->until);
    free(cuts->whole);
    free(cuts->at);
    free(cuts->window_of);
    free(cuts->storages);
    free(cuts->begin);
    memset(cuts, 0, sizeof *cuts);
}
