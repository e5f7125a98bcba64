/* Summarises a graph, for `tarn info`. Counts and sums come from the graph's arrays, except event
 * waits and the serial peak. The bound takes every size as it is: a plan at any alignment is also
 * one at alignment 1. Cost: O((V + E) S); for the bound see gap_bound.c. */
#include <inttypes.h>
#include <string.h>

#include "gap_bound.h"
#include "peak.h"
#include "reserved.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/base/region.h"
#include "streams/order/events/events.h"
#include "view.h"

static void count_ops(const struct tarn_graph *graph, struct tarn_graph_summary *summary)
{
    summary->ops = graph->ops_count;
    for (uint32_t op = 0; op < graph->ops_count; op++) {
        summary->views += graph->ops[op].view;
        summary->cost += graph->ops[op].cost;
    }
}

static bool sum_storages(const struct tarn_graph *graph, struct tarn_graph_summary *summary)
{
    summary->storages = graph->planned_count;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        uint64_t *sum = storage->persistent ? &summary->persistent : &summary->sum;
        if (!tarn_size_add(*sum, storage->size, sum)) return false;
        summary->workspaces += storage->tensor == TARN_NONE;
    }
    return true;
}

static enum tarn_status count_waits(const struct tarn_graph *graph, uint32_t *count)
{
    struct tarn_wait *waits;
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status = tarn_events_minimal(graph, &region, &waits, count);
    tarn_region_finish(&region);
    return status;
}

static enum tarn_status summarize(const struct tarn_graph *graph,
                                  struct tarn_graph_summary *summary, struct tarn_error *error)
{
    summary->streams = graph->streams_count;
    summary->tensors = graph->tensors_count;
    summary->groups = graph->given_count;
    summary->arcs = graph->predecessors.begin[graph->ops_count];
    count_ops(graph, summary);
    if (!sum_storages(graph, summary))
        return tarn_error_set(error, TARN_BAD_INPUT, "the sizes of all tensors exceed 64 bits");
    if (count_waits(graph, &summary->arcs_kept) != TARN_OK ||
        tarn_peak_serial(graph, &summary->serial_peak) != TARN_OK)
        return tarn_error_no_memory(error);
    return TARN_OK;
}

enum tarn_status tarn_graph_summarize_sized(const struct tarn_graph *graph,
                                            struct tarn_graph_summary *summary, size_t size,
                                            struct tarn_error *error)
{
    struct tarn_graph_summary known = {0};
    if (summary) memset(summary, 0, size);
    if (!graph || !summary) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = summarize(graph, &known, error);
    tarn_struct_give(summary, size, &known, sizeof known);
    return status;
}

/* ---- The bound ---- */

static enum tarn_status find_bound(const struct tarn_graph *graph, struct tarn_region *region,
                                   uint64_t *bound)
{
    struct tarn_clocks clocks;
    struct tarn_reuse reuse;
    struct tarn_antichain antichain;
    struct tarn_gap_bound found;
    struct tarn_view view;
    uint64_t *size = tarn_region_take(region, graph->planned_count, sizeof *size);
    enum tarn_status status = size ? tarn_view_init(&view, region, graph) : TARN_SYSTEM;
    if (status == TARN_OK) status = tarn_clocks_init(&clocks, region, view.graph);
    if (status == TARN_OK) status = tarn_reuse_init(&reuse, region, &clocks, view.graph);
    if (status != TARN_OK) return status;
    for (uint32_t a = 0; a < graph->planned_count; a++) size[a] = graph->storages[a].size;
    tarn_sizes_of_first_space(graph, size);
    struct tarn_graph bare = *view.graph; /* gaps may be filled by other arms */
    if (graph->conditionals_count > 0) bare.groups_count = 0;
    for (uint32_t a = 0; graph->conditionals_count > 0 && a < graph->planned_count; a++) {
        const struct tarn_op_extra *extra = tarn_extra(&graph->ops[graph->storages[a].producer]);
        for (uint32_t i = 0; i < extra->branch_count; i++)
            if (extra->branch[i][1] > 0)
                size[a] = 0; /* the first arm of each conditional is
                              * taken */
    }
    struct tarn_reserve reserve = {&reuse, &bare, size, 1};
    status = tarn_antichain_init(&antichain, region, &reuse, view.graph, size);
    if (status == TARN_OK)
        status = tarn_gap_bound_init(&found, region, &antichain, &reserve, TARN_GAP_EFFORT_HIGH);
    if (status == TARN_OK) *bound = found.bound;
    return status;
}

enum tarn_status tarn_graph_bound(const struct tarn_graph *graph, uint64_t *bound,
                                  struct tarn_error *error)
{
    if (bound) *bound = 0;
    if (!graph || !bound) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status = find_bound(graph, &region, bound);
    tarn_region_finish(&region);
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(error);
}

/* ---- One memory space ---- */

enum tarn_status tarn_graph_summarize_space_sized(const struct tarn_graph *graph, tarn_space space,
                                                  struct tarn_graph_space_summary *summary,
                                                  size_t size, struct tarn_error *error)
{
    struct tarn_graph_space_summary known = {0};
    struct tarn_graph_summary sums = {0};
    struct tarn_region region = {.chunks = NULL};
    struct tarn_graph view;
    uint32_t *origin;
    if (summary) memset(summary, 0, size);
    if (!graph || !summary) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    if (space >= tarn_graph_spaces_count(graph))
        return tarn_error_set(error, TARN_USAGE, "there is no memory space %" PRIu32, space);
    enum tarn_status status = tarn_view_of_space(&view, &region, graph, space, &origin);
    view.spaces_count = 1; /* the first space is this one now */
    if (status == TARN_OK) status = tarn_peak_serial(&view, &known.serial_peak);
    if (status == TARN_OK) status = find_bound(&view, &region, &known.bound);
    if (status != TARN_OK)
        tarn_error_no_memory(error);
    else if (!sum_storages(&view, &sums))
        status = tarn_error_set(error, TARN_BAD_INPUT, "the sizes of all tensors exceed 64 bits");
    tarn_region_finish(&region);
    known.storages = sums.storages;
    known.sum = sums.sum;
    known.persistent = sums.persistent;
    if (status == TARN_OK) tarn_struct_give(summary, size, &known, sizeof known);
    return status;
}
