/* Memory spaces, and contiguous groups as callers add them: what a graph says of the memory that
 * its storages lie in. A graph in which no space is declared has one, of the device. Cost:
 * constant, checking linear in tensors and ops. */
#include "builder.h"
#include "graph.h"

/* ---- Groups ---- */

void tarn_builder_group(struct tarn_builder *builder, struct tarn_list tensors)
{
    tarn_builder_add_group(builder, tensors, false);
}

void tarn_builder_group_padded(struct tarn_builder *builder, struct tarn_list tensors)
{
    tarn_builder_add_group(builder, tensors, true);
}

/* ---- Origins ---- */

void tarn_builder_origin(struct tarn_builder *builder, tarn_op origin, uint32_t implementation)
{
    struct tarn_graph *graph = tarn_builder_graph(builder);
    if (!graph || graph->ops_count == 0) return;
    graph->ops[graph->ops_count - 1].origin = origin;
    graph->ops[graph->ops_count - 1].implementation = implementation;
}

void tarn_builder_tensor_origin(struct tarn_builder *builder, tarn_tensor origin)
{
    struct tarn_graph *graph = tarn_builder_graph(builder);
    if (graph && graph->tensors_count > 0) graph->tensors[graph->tensors_count - 1].origin = origin;
}
