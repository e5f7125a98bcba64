/* Counts and sums that describe a graph: what `tarn info` prints. Everything but the event waits
 * and the serial peak is read off the graph's arrays. Cost: that of the minimal event set, O((V +
 * E) S). */
#include <stdlib.h>
#include <string.h>

#include "../graph/error.h"
#include "../graph/size.h"
#include "events.h"
#include "peak.h"

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
    struct tarn_wait *waits = NULL;
    enum tarn_status status = tarn_events_minimal(graph, &waits, count);
    free(waits);
    return status;
}

enum tarn_status tarn_graph_summarize(const struct tarn_graph *graph,
                                      struct tarn_graph_summary *summary, struct tarn_error *error)
{
    tarn_error_clear(error);
    memset(summary, 0, sizeof *summary);
    summary->streams = graph->streams_count;
    summary->tensors = graph->tensors_count;
    summary->groups = graph->groups_count;
    summary->arcs = graph->predecessors.begin[graph->ops_count];
    count_ops(graph, summary);
    if (!sum_storages(graph, summary))
        return tarn_error_set(error, TARN_BAD_INPUT, "the sizes of all tensors exceed 64 bits");
    if (count_waits(graph, &summary->arcs_kept) != TARN_OK ||
        tarn_peak_serial(graph, &summary->serial_peak) != TARN_OK)
        return tarn_error_no_memory(error);
    return TARN_OK;
}
