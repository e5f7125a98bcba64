/* Getters of an immutable graph, for the public API and the other directories. The graph, its
 * arrays and its strings live in one region (but ops, tensors and streams, which the builder grew),
 * so sharing is a counter and destruction is one call. All getters are O(1) but finding by name,
 * which is linear.
 */
#include "graph.h"

#include <string.h>

#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/base/region.h"
#include "streams/text/op_kinds.h"

/* ---- Extra ---- */

const struct tarn_op_extra tarn_no_extra = {.workspace_storage = TARN_NONE,
                                            .implementation = TARN_NONE};

struct tarn_op_extra *tarn_graph_own_extra(struct tarn_graph *graph, tarn_op op)
{
    struct tarn_op_extra **extra = &graph->ops[op].extra;
    if (!*extra) *extra = tarn_region_copy(&graph->region, &tarn_no_extra, 1, sizeof **extra);
    return *extra;
}

bool tarn_graph_choose(struct tarn_graph *graph, tarn_op op, uint32_t implementation)
{
    if (tarn_extra(&graph->ops[op])->implementation == implementation) return true;
    struct tarn_op_extra *extra = tarn_graph_own_extra(graph, op);
    if (extra) extra->implementation = implementation;
    return extra;
}

/* ---- Sharing ---- */

bool tarn_graph_trim(struct tarn_graph *graph)
{
    struct tarn_graph_op *ops = tarn_resize(graph->ops, graph->ops_count * sizeof *ops + 1);
    if (ops) graph->ops = ops;
    struct tarn_graph_tensor *tensors =
        tarn_resize(graph->tensors, graph->tensors_count * sizeof *tensors + 1);
    if (tensors) graph->tensors = tensors;
    return ops && tensors;
}

struct tarn_graph *tarn_graph_retain(struct tarn_graph *graph)
{
    atomic_fetch_add_explicit(graph->references, 1, memory_order_relaxed);
    return graph;
}

void tarn_graph_destroy(struct tarn_graph *graph)
{
    if (!graph) return;
    if (atomic_fetch_sub_explicit(graph->references, 1, memory_order_acq_rel) != 1) return;
    tarn_free(graph->ops);
    tarn_free(graph->tensors);
    tarn_free(graph->streams);
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
    return graph ? graph->given_count : 0;
}

struct tarn_list tarn_graph_group(const struct tarn_graph *graph, uint32_t group)
{
    if (!graph || group >= graph->given_count) return (struct tarn_list){NULL, 0};
    return (struct tarn_list){graph->given[group].tensors, graph->given[group].tensors_count};
}

const uint64_t *tarn_graph_group_offsets(const struct tarn_graph *graph, uint32_t group)
{
    return graph && group < graph->given_count ? graph->given[group].offsets : NULL;
}

const char *tarn_graph_group_symmetric(const struct tarn_graph *graph, uint32_t group)
{
    return graph && group < graph->given_count ? graph->given[group].symmetric : NULL;
}

bool tarn_graph_group_is_padded(const struct tarn_graph *graph, uint32_t group)
{
    return graph && group < graph->given_count && graph->given[group].padded;
}

struct tarn_hash tarn_graph_hash(const struct tarn_graph *graph)
{
    return graph ? graph->hash : (struct tarn_hash){{0, 0}};
}

const char *tarn_graph_stream_name(const struct tarn_graph *graph, tarn_stream stream)
{
    return graph && stream < graph->streams_count ? graph->streams[stream].name : NULL;
}

bool tarn_graph_op_sized(const struct tarn_graph *graph, tarn_op op, struct tarn_op_info *info,
                         size_t size)
{
    if (!graph || !info || op >= graph->ops_count) return false;
    const struct tarn_graph_op *record = &graph->ops[op];
    const struct tarn_op_extra *extra = tarn_extra(record);
    const struct tarn_op_info known = {
        .name = record->name,
        .kind = record->kind,
        .stream = record->stream,
        .inputs = {record->inputs, record->inputs_count},
        .outputs = {tarn_outputs(record), record->outputs_count},
        .control = {extra->control, extra->control_count},
        .workspace = extra->workspace,
        .cost = record->cost,
        .flops = extra->flops,
        .view = record->view,
        .workspace_first = record->says_workspace_first,
        .recomputable = record->recomputable,
        .inplace = extra->inplace,
        .inplace_count = extra->inplace_count,
        .implementations = extra->implementations,
        .implementations_count = extra->implementations_count,
        .common = {extra->common, extra->common_count},
        .workspace_space = extra->workspace_space,
        .op_class = (enum tarn_op_class)record->op_class,
        .branch = extra->branch,
        .branch_count = extra->branch_count,
        .move = record->move,
    };
    tarn_struct_give(info, size, &known, sizeof known);
    return true;
}

enum tarn_op_class tarn_graph_op_class(const struct tarn_graph *graph, tarn_op op)
{
    if (!graph || op >= graph->ops_count) return TARN_CLASS_UNKNOWN;
    const struct tarn_graph_op *record = &graph->ops[op];
    if (record->op_class != TARN_CLASS_UNKNOWN) return (enum tarn_op_class)record->op_class;
    if (record->move) return TARN_CLASS_COPY;
    return tarn_kind_class(record->kind);
}

bool tarn_graph_tensor_sized(const struct tarn_graph *graph, tarn_tensor tensor,
                             struct tarn_tensor_info *info, size_t size)
{
    if (!graph || !info || tensor >= graph->tensors_count) return false;
    const struct tarn_graph_tensor *record = &graph->tensors[tensor];
    const struct tarn_tensor_info known = {
        .name = record->name,
        .size = record->size,
        .kind = record->kind,
        .alignment = record->alignment,
        .space = record->space,
        .offset = tarn_tensor_begin(record),
        .offset_rule = (enum tarn_offset_rule)record->offset_rule,
        .wanted_offset = tarn_tensor_wanted(record),
    };
    tarn_struct_give(info, size, &known, sizeof known);
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

const char *tarn_op_class_text(enum tarn_op_class op_class)
{
    switch (op_class) {
    case TARN_CLASS_UNKNOWN: break;
    case TARN_CLASS_PURE: return "pure";
    case TARN_CLASS_RANDOM: return "random";
    case TARN_CLASS_COLLECTIVE: return "collective";
    case TARN_CLASS_COPY: return "copy";
    case TARN_CLASS_OPTIMIZER: return "optimizer";
    }
    return "unknown";
}

/* ---- Spaces ---- */

const char *tarn_space_kind_text(enum tarn_space_kind kind)
{
    switch (kind) {
    case TARN_SPACE_DEVICE: return "device";
    case TARN_SPACE_PINNED: return "pinned";
    case TARN_SPACE_SCRATCH: return "scratch";
    }
    return "unknown";
}

uint32_t tarn_graph_spaces_count(const struct tarn_graph *graph)
{
    if (!graph) return 0;
    return graph->spaces_count > 0 ? graph->spaces_count : 1;
}

bool tarn_graph_space_sized(const struct tarn_graph *graph, tarn_space space,
                            struct tarn_space_info *info, size_t size)
{
    if (!graph || !info || space >= tarn_graph_spaces_count(graph)) return false;
    const struct tarn_space_info only = {.name = ""};
    tarn_struct_give(info, size, graph->spaces_count > 0 ? &graph->spaces[space] : &only,
                     sizeof only);
    return true;
}

/* ---- Validity ---- */

/* Is every op at its position, and in list order after the op before it in its stream? */
static bool streams_are_valid(const struct tarn_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        const struct tarn_graph_stream *stream = &graph->streams[s];
        for (uint32_t p = 0; p < stream->ops_count; p++) {
            const struct tarn_graph_op *op = &graph->ops[stream->ops[p]];
            if (op->stream != s || op->position != p) return false;
            if (p > 0 && graph->rank[stream->ops[p - 1]] >= graph->rank[stream->ops[p]])
                return false;
        }
        count += stream->ops_count;
    }
    return count == graph->ops_count;
}

static bool arcs_are_valid(const struct tarn_graph *graph, uint32_t v)
{
    const struct tarn_arcs *before = &graph->predecessors, *after = &graph->successors;
    for (uint32_t k = before->begin[v]; k < before->begin[v + 1]; k++)
        if (graph->ops[before->ops[k]].stream == graph->ops[v].stream ||
            graph->rank[before->ops[k]] >= graph->rank[v])
            return false;
    for (uint32_t k = after->begin[v]; k < after->begin[v + 1]; k++)
        if (graph->ops[after->ops[k]].stream == graph->ops[v].stream ||
            graph->rank[after->ops[k]] <= graph->rank[v])
            return false;
    return true;
}

/* The producer of a planned storage comes first, and neighbouring users of one stream are in the
 * stream's order. Users of a persistent storage keep the order of the graph that a view was made
 * from. */
static bool storage_is_valid(const struct tarn_graph *graph, uint32_t a)
{
    const struct tarn_storage *storage = &graph->storages[a];
    if (storage->persistent != (a >= graph->planned_count)) return false;
    if (storage->persistent) return true;
    if (storage->users_count == 0 || tarn_storage_users(graph, storage)[0] != storage->producer)
        return false;
    for (uint32_t k = 1; k < storage->users_count; k++) {
        const struct tarn_graph_op *last = &graph->ops[tarn_storage_users(graph, storage)[k - 1]];
        const struct tarn_graph_op *op = &graph->ops[tarn_storage_users(graph, storage)[k]];
        if (op->view || (last->stream == op->stream && last->position >= op->position))
            return false;
    }
    return true;
}

bool tarn_graph_is_valid(const struct tarn_graph *graph)
{
    if (graph->planned_count > graph->storages_count || !streams_are_valid(graph)) return false;
    if (graph->predecessors.begin[graph->ops_count] != graph->successors.begin[graph->ops_count])
        return false;
    for (uint32_t i = 0; i < graph->ops_count; i++)
        if (graph->rank[graph->order[i]] != i || !arcs_are_valid(graph, i)) return false;
    for (uint32_t a = 0; a < graph->storages_count; a++)
        if (!storage_is_valid(graph, a)) return false;
    return true;
}
