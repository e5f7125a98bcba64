/* Pair by pair, from the definition. */
#include "arcs_oracle.h"

static bool touches(const struct tarn_graph *graph, uint32_t v, uint32_t storage, bool write)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    if (op->view) return false;
    for (uint32_t k = 0; !write && k < op->inputs_count; k++)
        if (graph->tensors[op->inputs[k]].storage == storage) return true;
    for (uint32_t k = 0; k < op->outputs_count; k++)
        if (graph->tensors[tarn_outputs(op)[k]].storage == storage) return true;
    return false;
}

bool must_come_before(const struct tarn_graph *graph, uint32_t u, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t k = 0; k < extra->control_count; k++)
        if (extra->control[k] == u) return true;
    for (uint32_t k = 0; k < op->inputs_count; k++)
        if (graph->tensors[op->inputs[k]].producer == u) return true;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        if (touches(graph, u, a, true) && touches(graph, v, a, false)) return true;
        if (touches(graph, u, a, false) && touches(graph, v, a, true)) return true;
    }
    return false;
}
