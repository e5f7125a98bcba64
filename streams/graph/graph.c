/* Reading a graph: what the public API and the other rooms ask of an immutable graph. The graph,
 * its arrays and its strings live in one region (but ops, tensors and streams, which the builder
 * grew), so that sharing is a counter and destroying is one call. Everything is O(1) but finding by
 * name, which is linear.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "streams/base/region.h"

/* ---- Sharing ---- */

struct tarn_graph *tarn_graph_retain(struct tarn_graph *graph)
{
    atomic_fetch_add_explicit(graph->references, 1, memory_order_relaxed);
    return graph;
}

void tarn_graph_destroy(struct tarn_graph *graph)
{
    if (!graph) return;
    if (atomic_fetch_sub_explicit(graph->references, 1, memory_order_acq_rel) != 1) return;
    free(graph->ops);
    free(graph->tensors);
    free(graph->streams);
    struct tarn_region region = graph->region; /* the graph itself is in it */
    tarn_region_finish(&region);
}

/* ---- Asking ---- */

const char *tarn_kind_text(enum tarn_tensor_kind kind)
{
    switch (kind) {
    case TARN_INTERMEDIATE: return "intermediate";
    case TARN_GRADIENT: return "gradient";
    case TARN_OUTPUT: return "output";
    case TARN_PARAMETER: return "parameter";
    case TARN_OPTIMIZER_STATE: return "optimizer_state";
    case TARN_INPUT: return "input";
    }
    return "unknown";
}

const char *tarn_graph_name(const struct tarn_graph *graph) { return graph ? graph->name : NULL; }

uint32_t tarn_graph_streams_count(const struct tarn_graph *graph)
{
    return graph ? graph->streams_count : 0;
}

uint32_t tarn_graph_ops_count(const struct tarn_graph *graph)
{
    return graph ? graph->ops_count : 0;
}

uint32_t tarn_graph_tensors_count(const struct tarn_graph *graph)
{
    return graph ? graph->tensors_count : 0;
}

uint32_t tarn_graph_groups_count(const struct tarn_graph *graph)
{
    return graph ? graph->groups_count : 0;
}

struct tarn_list tarn_graph_group(const struct tarn_graph *graph, uint32_t group)
{
    if (!graph || group >= graph->groups_count) return (struct tarn_list){NULL, 0};
    return (struct tarn_list){graph->groups[group].tensors, graph->groups[group].storages_count};
}

struct tarn_hash tarn_graph_hash(const struct tarn_graph *graph)
{
    return graph ? graph->hash : (struct tarn_hash){{0, 0}};
}

const char *tarn_graph_stream_name(const struct tarn_graph *graph, tarn_stream stream)
{
    return graph && stream < graph->streams_count ? graph->streams[stream].name : NULL;
}

bool tarn_graph_op(const struct tarn_graph *graph, tarn_op op, struct tarn_op_info *info)
{
    if (!graph || !info || op >= graph->ops_count) return false;
    const struct tarn_graph_op *record = &graph->ops[op];
    *info = (struct tarn_op_info){
        .name = record->name,
        .kind = record->kind,
        .stream = record->stream,
        .inputs = {record->inputs, record->inputs_count},
        .outputs = {record->outputs, record->outputs_count},
        .control = {record->control, record->control_count},
        .workspace = record->workspace,
        .cost = record->cost,
        .flops = record->flops,
        .view = record->view,
        .workspace_first = record->workspace_first,
        .recomputable = record->recomputable,
        .inplace = record->inplace,
        .inplace_count = record->inplace_count,
        .implementations = record->implementations,
        .implementations_count = record->implementations_count,
        .common = {record->common, record->common_count},
    };
    return true;
}

bool tarn_graph_tensor(const struct tarn_graph *graph, tarn_tensor tensor,
                       struct tarn_tensor_info *info)
{
    if (!graph || !info || tensor >= graph->tensors_count) return false;
    const struct tarn_graph_tensor *record = &graph->tensors[tensor];
    *info = (struct tarn_tensor_info){
        .name = record->name,
        .size = record->size,
        .kind = record->kind,
        .alignment = record->alignment,
    };
    return true;
}

tarn_tensor tarn_graph_root(const struct tarn_graph *graph, tarn_tensor tensor)
{
    return graph && tensor < graph->tensors_count ? graph->tensors[tensor].root : TARN_NONE;
}

tarn_op tarn_graph_find_op(const struct tarn_graph *graph, const char *name)
{
    for (uint32_t v = 0; graph && name && v < graph->ops_count; v++) {
        if (strcmp(graph->ops[v].name, name) == 0) return v;
    }
    return TARN_NONE;
}

tarn_tensor tarn_graph_find_tensor(const struct tarn_graph *graph, const char *name)
{
    for (uint32_t t = 0; graph && name && t < graph->tensors_count; t++) {
        if (strcmp(graph->tensors[t].name, name) == 0) return t;
    }
    return TARN_NONE;
}
