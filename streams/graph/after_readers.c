/* Writers that come after all readers so far: control arcs from each op that reads a storage which
 * the writer writes. Cost: linear in the ops and their lists. */
#include "builder.h"

/* TARN_NONE: there is no such tensor yet. */
static uint32_t root_of(const struct tarn_graph *graph, uint32_t tensor)
{
    if (tensor >= graph->tensors_count) return TARN_NONE;
    uint32_t root = graph->tensors[tensor].root;
    return root == TARN_NONE ? tensor : root;
}

static bool touches(const struct tarn_graph *graph, const uint32_t *tensors, uint32_t count,
                    uint32_t root)
{
    for (uint32_t i = 0; i < count; i++) {
        if (root_of(graph, tensors[i]) == root) return true;
    }
    return false;
}

static bool reads_what_is_written(const struct tarn_graph *graph,
                                  const struct tarn_graph_op *reader,
                                  const struct tarn_graph_op *writer)
{
    for (uint32_t i = 0; i < reader->inputs_count; i++) {
        uint32_t root = root_of(graph, reader->inputs[i]);
        if (root != TARN_NONE && touches(graph, writer->outputs, writer->outputs_count, root))
            return true;
    }
    return false;
}

void tarn_builder_after_readers(struct tarn_builder *builder, tarn_op writer)
{
    const struct tarn_graph *graph = tarn_builder_graph(builder);
    if (!graph) return;
    if (writer >= graph->ops_count) {
        tarn_builder_control(builder, writer, 0); /* tells what is wrong */
        return;
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (v == writer || graph->ops[v].stream == graph->ops[writer].stream) continue;
        if (reads_what_is_written(graph, &graph->ops[v], &graph->ops[writer]))
            tarn_builder_control(builder, writer, v);
    }
}
