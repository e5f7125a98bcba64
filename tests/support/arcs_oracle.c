/* Pair by pair, from the definition. */
#include "arcs_oracle.h"

#include "plan_oracle.h"

bool must_come_before(const struct tarn_graph *graph, uint32_t u, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t k = 0; k < extra->control_count; k++)
        if (extra->control[k] == u) return true;
    for (uint32_t k = 0; k < op->inputs_count; k++)
        if (graph->tensors[op->inputs[k]].producer == u) return true;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        if (!oracle_touches(graph, u, a) || !oracle_touches(graph, v, a)) continue;
        if (oracle_writes(graph, u, a) || oracle_writes(graph, v, a)) return true;
    }
    return false;
}
