/* Finds the topological order: list order if that is one, else Kahn's algorithm, which always takes
 * the smallest ready id (a heap, of at most one op per stream). If ops are left over, there is a
 * cycle: a walk back along arcs among them must reach an op twice. Cost: O(V + E log S).
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "derive.h"
#include "streams/base/heap.h"
#include "streams/base/region.h"

/* ---- Showing a cycle ---- */

#define CYCLE_SHOWN 6 /* ops of a cycle that a message names */

/* Why u comes before v. */
static struct tarn_label arc_label(const struct tarn_graph *graph, uint32_t u, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    struct tarn_label label = {"stream order"};
    for (uint32_t k = 0; k < tarn_op_arcs_count(op); k++) {
        if (tarn_op_arc(graph, op, k) != u) continue;
        if (k < op->inputs_count)
            snprintf(label.text, sizeof label.text, "tensor %u", op->inputs[k]);
        else
            snprintf(label.text, sizeof label.text, "control");
        break;
    }
    return label;
}

/* ops: in execution order, each before the next and the last before the first. */
static enum tarn_status report_cycle(const struct tarn_graph *graph, const uint32_t *ops,
                                     uint32_t count, const struct tarn_report *report)
{
    char text[(CYCLE_SHOWN + 2) * (2 * sizeof(struct tarn_label))];
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (count > CYCLE_SHOWN && i == CYCLE_SHOWN / 2) {
            uint32_t left_out = count - CYCLE_SHOWN;
            used += (size_t)snprintf(text + used, sizeof text - used, "(%u more) -> ", left_out);
            i += left_out;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s -[%s]-> ",
                                 tarn_op_label(graph, ops[i]).text,
                                 arc_label(graph, ops[i], ops[(i + 1) % count]).text);
    }
    return tarn_report_bad(report, tarn_location_at(ops[0], TARN_NONE, "/ops/%u", ops[0]),
                           "the ops form a cycle: %sop %u; remove one of these arcs", text, ops[0]);
}

/* ---- Finding a cycle ---- */

/* A predecessor of v that is itself waiting. Arcs from other streams come first: they give shorter
 * cycles. */
static uint32_t waiting_predecessor(const struct tarn_graph *graph, const uint32_t *pending,
                                    uint32_t v)
{
    for (uint32_t k = graph->predecessors.begin[v]; k < graph->predecessors.begin[v + 1]; k++) {
        if (pending[graph->predecessors.ops[k]] > 0) return graph->predecessors.ops[k];
    }
    return graph->streams[graph->ops[v].stream].ops[graph->ops[v].position - 1];
}

/* Leaves out ops between two ops of the same stream, since the stream's order implies them. */
static uint32_t drop_stream_runs(const struct tarn_graph *graph, const uint32_t *cycle,
                                 uint32_t count, uint32_t *shorter)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t before = graph->ops[cycle[(i + count - 1) % count]].stream;
        uint32_t after = graph->ops[cycle[(i + 1) % count]].stream;
        uint32_t own = graph->ops[cycle[i]].stream;
        if (before != own || after != own) shorter[kept++] = cycle[i];
    }
    return kept;
}

/* pending[v] > 0 for exactly the ops that could not be ordered. */
static enum tarn_status find_cycle(const struct tarn_graph *graph, const uint32_t *pending,
                                   const struct tarn_report *report)
{
    struct tarn_region region = {.chunks = NULL};
    uint32_t *met =
        tarn_region_take(&region, graph->ops_count, sizeof *met); /* op -> step, from 1 */
    /* Filled from the end: execution order. */
    uint32_t *path = tarn_region_take(&region, graph->ops_count, sizeof *path);
    uint32_t *shorter = tarn_region_take(&region, graph->ops_count, sizeof *shorter);
    enum tarn_status status = TARN_SYSTEM;
    if (!region.is_exhausted) {
        uint32_t v = 0, steps = 0, room = graph->ops_count;
        while (pending[v] == 0) v++;
        while (met[v] == 0) {
            met[v] = ++steps;
            path[room - steps] = v;
            v = waiting_predecessor(graph, pending, v);
        }
        uint32_t length = steps - met[v] + 1;
        uint32_t count = drop_stream_runs(graph, path + room - steps, length, shorter);
        status = report_cycle(graph, shorter, count, report);
    }
    tarn_region_finish(&region);
    return status;
}

/* An arc that contradicts the order of its stream. */
static enum tarn_status check_stream_arcs(const struct tarn_graph *graph,
                                          const struct tarn_report *report)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < tarn_op_arcs_count(op); k++) {
            uint32_t u = tarn_op_arc(graph, op, k);
            if (u == TARN_NONE || u <= v || graph->ops[u].stream != op->stream) continue;
            return report_cycle(graph, (uint32_t[]){v, u}, 2, report);
        }
    }
    return TARN_OK;
}

/* ---- Ordering ---- */

static void release(const struct tarn_graph *graph, uint32_t v, uint32_t *pending,
                    struct tarn_heap *ready)
{
    const struct tarn_graph_stream *stream = &graph->streams[graph->ops[v].stream];
    uint32_t next = graph->ops[v].position + 1;
    if (next < stream->ops_count && --pending[stream->ops[next]] == 0)
        tarn_heap_push(ready, stream->ops[next]);
    for (uint32_t k = graph->successors.begin[v]; k < graph->successors.begin[v + 1]; k++) {
        uint32_t w = graph->successors.ops[k];
        assert(pending[w] > 0);
        if (--pending[w] == 0) tarn_heap_push(ready, w);
    }
}

/* Orders as many ops as possible; returns their number. */
static uint32_t order_smallest_first(const struct tarn_graph *graph, uint32_t *order,
                                     uint32_t *pending, struct tarn_heap *ready)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        pending[v] = graph->predecessors.begin[v + 1] - graph->predecessors.begin[v];
        if (graph->ops[v].position > 0) pending[v]++;
        if (pending[v] == 0) tarn_heap_push(ready, v);
    }
    while (ready->count > 0) {
        uint32_t v = tarn_heap_pop(ready);
        order[count++] = v;
        assert(count <= graph->ops_count && ready->count < graph->streams_count);
        release(graph, v, pending, ready);
    }
    return count;
}

static enum tarn_status order_ops(const struct tarn_graph *graph, uint32_t *order,
                                  const struct tarn_report *report)
{
    struct tarn_region region = {.chunks = NULL};
    uint32_t *pending = tarn_region_take(&region, graph->ops_count, sizeof *pending);
    /* No more ops than streams are ready at once, for ops of a stream follow each other. */
    struct tarn_heap ready = {
        .items = tarn_region_take(&region, graph->streams_count, sizeof *ready.items)};
    enum tarn_status status = TARN_SYSTEM;
    if (!region.is_exhausted) {
        bool is_whole = order_smallest_first(graph, order, pending, &ready) == graph->ops_count;
        status = is_whole ? TARN_OK : find_cycle(graph, pending, report);
    }
    tarn_region_finish(&region);
    return status;
}

static bool list_order_is_topological(const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        for (uint32_t k = graph->predecessors.begin[v]; k < graph->predecessors.begin[v + 1]; k++) {
            if (graph->predecessors.ops[k] > v) return false;
        }
    }
    return true;
}

enum tarn_status tarn_derive_order(struct tarn_graph *graph, const struct tarn_report *report)
{
    uint32_t *order = tarn_region_take(&graph->region, graph->ops_count, sizeof *order);
    if (!order) return TARN_SYSTEM;
    enum tarn_status status = check_stream_arcs(graph, report);
    if (status != TARN_OK) return status;
    graph->order = graph->rank = order;
    if (list_order_is_topological(graph)) {
        for (uint32_t v = 0; v < graph->ops_count; v++) order[v] = v;
        return TARN_OK;
    }
    uint32_t *rank = tarn_region_take(&graph->region, graph->ops_count, sizeof *rank);
    if (!rank) return TARN_SYSTEM;
    status = order_ops(graph, order, report);
    if (status != TARN_OK) return status;
    for (uint32_t i = 0; i < graph->ops_count; i++) rank[order[i]] = i;
    graph->rank = rank;
    return TARN_OK;
}
