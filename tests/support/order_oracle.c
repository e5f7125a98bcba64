/* As many passes over all arcs as there are ops: slow, and too simple to be wrong. */
#include "order_oracle.h"

#include <assert.h>
#include <string.h>

static void add_arc(uint64_t *reach, uint32_t later, uint32_t earlier)
{
    reach[later] |= reach[earlier] | UINT64_C(1) << earlier;
}

static void add_arcs(uint64_t *reach, const struct tarn_graph *graph, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    if (op->position > 0) add_arc(reach, v, graph->streams[op->stream].ops[op->position - 1]);
    for (uint32_t i = 0; i < extra->control_count; i++) add_arc(reach, v, extra->control[i]);
    for (uint32_t i = 0; i < op->inputs_count; i++) {
        uint32_t producer = graph->tensors[op->inputs[i]].producer;
        if (producer != TARN_NONE) add_arc(reach, v, producer);
    }
}

void order_oracle_init(struct order_oracle *oracle, const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    assert(graph->ops_count <= ORDER_ORACLE_OPS);
    memset(oracle, 0, sizeof *oracle);
    oracle->plan = plan;
    uint64_t launched = 0;
    for (uint32_t pass = 0; pass < graph->ops_count; pass++) {
        for (uint32_t v = 0; v < graph->ops_count; v++) add_arcs(oracle->ancestors, graph, v);
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (!graph->ops[v].view) launched |= UINT64_C(1) << v;
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) oracle->ancestors[v] &= launched;
}

bool order_oracle_start(struct order_oracle *oracle, tarn_op op, uint64_t iteration)
{
    const struct tarn_plan *plan = oracle->plan;
    for (uint32_t a = 0; a < plan->graph->ops_count; a++) {
        bool is_before = oracle->ancestors[op] >> a & 1;
        if (is_before && atomic_load(&oracle->ended[a]) < iteration + 1) return false;
    }
    for (uint32_t i = 0; i < plan->boundary_waits_count; i++) {
        bool is_before = plan->boundary_waits[i].op == op;
        if (is_before && atomic_load(&oracle->ended[plan->boundary_waits[i].on]) < iteration)
            return false;
    }
    return true;
}

bool order_oracle_end(struct order_oracle *oracle, tarn_op op, uint64_t iteration)
{
    return atomic_fetch_add(&oracle->ended[op], 1) == iteration;
}
