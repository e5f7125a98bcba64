/* Derives streams and arcs: the position of every op in its stream, and the ops of other streams
 * that come directly before and after it. Arcs inside a stream are implied by its order and left
 * out. An arc that exists several times (two tensors, a tensor and a control arc) is kept once.
 * Counting sorts throughout; cost: linear in ops and list entries.
 */
#include <string.h>

#include "derive.h"
#include "streams/base/region.h"

enum tarn_status tarn_derive_streams(struct tarn_graph *graph)
{
    uint32_t *ops = tarn_region_take(&graph->region, graph->ops_count, sizeof *ops);
    if (!ops) return TARN_SYSTEM;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        struct tarn_graph_op *op = &graph->ops[v];
        op->position = graph->streams[op->stream].ops_count++;
    }
    uint32_t begin = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        graph->streams[s].ops = ops + begin;
        begin += graph->streams[s].ops_count;
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        ops[(size_t)(graph->streams[op->stream].ops - ops) + op->position] = v;
    }
    return TARN_OK;
}

/* Calls for every distinct cross-stream predecessor u of v: counts it, or stores it as well.
 * mark[u] == v + 1: seen already. Returns how many there are. */
static uint32_t gather_predecessors(const struct tarn_graph *graph, uint32_t v, uint32_t *mark,
                                    uint32_t *list)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    uint32_t count = 0, arcs_count = tarn_op_arcs_count(op);
    for (uint32_t k = 0; k < arcs_count; k++) {
        uint32_t u = tarn_op_arc(graph, op, k);
        if (u == TARN_NONE || graph->ops[u].stream == op->stream || mark[u] == v + 1) continue;
        mark[u] = v + 1;
        if (list) list[count] = u;
        count++;
    }
    return count;
}

static bool fill_predecessors(struct tarn_graph *graph, uint32_t *mark)
{
    uint32_t *begin = tarn_region_take(&graph->region, (size_t)graph->ops_count + 1, sizeof *begin);
    if (!begin) return false;
    for (uint32_t v = 0; v < graph->ops_count; v++)
        begin[v + 1] = begin[v] + gather_predecessors(graph, v, mark, NULL);
    uint32_t *ops = tarn_region_take(&graph->region, begin[graph->ops_count], sizeof *ops);
    if (!ops) return false;
    memset(mark, 0, graph->ops_count * sizeof *mark);
    for (uint32_t v = 0; v < graph->ops_count; v++)
        gather_predecessors(graph, v, mark, ops + begin[v]);
    graph->predecessors = (struct tarn_arcs){begin, ops};
    return true;
}

/* The transpose; `next` is scratch. Every list comes out sorted by id. */
static bool fill_successors(struct tarn_graph *graph, uint32_t *next)
{
    const struct tarn_arcs *arcs = &graph->predecessors;
    uint32_t count = arcs->begin[graph->ops_count];
    uint32_t *begin = tarn_region_take(&graph->region, (size_t)graph->ops_count + 1, sizeof *begin);
    uint32_t *ops = tarn_region_take(&graph->region, count, sizeof *ops);
    if (!begin || !ops) return false;
    for (uint32_t k = 0; k < count; k++) begin[arcs->ops[k] + 1]++;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        next[v] = begin[v];
        begin[v + 1] += begin[v];
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        for (uint32_t k = arcs->begin[v]; k < arcs->begin[v + 1]; k++)
            ops[next[arcs->ops[k]]++] = v;
    }
    graph->successors = (struct tarn_arcs){begin, ops};
    return true;
}

enum tarn_status tarn_derive_arcs(struct tarn_graph *graph)
{
    struct tarn_region scratch = {.chunks = NULL};
    uint32_t *next = tarn_region_take(&scratch, graph->ops_count, sizeof *next);
    bool ok = next && fill_predecessors(graph, next) && fill_successors(graph, next);
    tarn_region_finish(&scratch);
    return ok ? TARN_OK : TARN_SYSTEM;
}

/* added[v]: how many of the arcs end at op v. */
static enum tarn_status append_control(struct tarn_graph *graph,
                                       const struct tarn_control_arc *arcs, uint32_t count,
                                       uint32_t *added)
{
    for (uint32_t i = 0; i < count; i++) added[arcs[i].later]++;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (added[v] == 0) continue;
        struct tarn_op_extra *extra = tarn_graph_own_extra(graph, v);
        if (!extra) return TARN_SYSTEM;
        uint32_t *control = tarn_region_take(
            &graph->region, (size_t)extra->control_count + added[v], sizeof *control);
        if (!control) return TARN_SYSTEM;
        if (extra->control_count > 0)
            memcpy(control, extra->control, extra->control_count * sizeof *control);
        extra->control = control;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct tarn_op_extra *extra = graph->ops[arcs[i].later].extra;
        ((uint32_t *)extra->control)[extra->control_count++] = arcs[i].earlier;
    }
    return TARN_OK;
}

enum tarn_status tarn_derive_control(struct tarn_graph *graph, const struct tarn_control_arc *arcs,
                                     uint32_t count)
{
    if (count == 0) return TARN_OK;
    struct tarn_region scratch = {.chunks = NULL};
    uint32_t *added = tarn_region_take(&scratch, graph->ops_count, sizeof *added);
    enum tarn_status status = added ? append_control(graph, arcs, count, added) : TARN_SYSTEM;
    tarn_region_finish(&scratch);
    return status;
}
