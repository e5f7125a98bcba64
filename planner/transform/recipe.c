/* Builds the graph of a recipe, through the builder, so that the new graph obeys every rule that a
 * loaded graph does: streams, tensors, ops in the new order with their ids renamed, groups, and
 * then the control arcs, both the transform's arcs and arcs that keep a hazard or an arc whose ends
 * no stream orders any more. Cost: linear in the graph. */
#include "recipe.h"

#include <assert.h>

#include "constraints.h"
#include "streams/base/error.h"
#include "streams/graph/builder.h"
#include "streams/graph/derive.h"
#include "streams/graph/hash.h"
#include "streams/plan/plan.h"

struct rebuild {
    const struct tarn_recipe *recipe;
    const struct tarn_graph *graph;
    struct tarn_builder *builder;
    struct tarn_region *region; /* for data that lasts until the graph is built */
    uint32_t *place;            /* old op -> new op */
    uint32_t *ids;              /* room for the longest list */
};

static uint32_t old_op(const struct rebuild *rebuild, uint32_t place)
{
    return rebuild->recipe->order ? rebuild->recipe->order[place] : place;
}

static uint32_t stream_of(const struct tarn_recipe *recipe, uint32_t v)
{
    return recipe->stream ? recipe->stream[v] : recipe->graph->ops[v].stream;
}

static uint32_t root_of(const struct tarn_recipe *recipe, uint32_t t)
{
    uint32_t root = recipe->graph->tensors[t].root;
    return recipe->root ? recipe->root[root] : root;
}

/* ---- Records ---- */

static void add_spaces(struct tarn_builder *builder, const struct tarn_graph *graph)
{
    for (uint32_t s = 0; s < graph->spaces_count; s++)
        tarn_builder_space(builder, &graph->spaces[s]);
}

static void add_streams(const struct rebuild *rebuild)
{
    const struct tarn_recipe *recipe = rebuild->recipe;
    if (!recipe->stream_names) {
        tarn_transform_add_streams(rebuild->builder, rebuild->graph);
        return;
    }
    add_spaces(rebuild->builder, rebuild->graph);
    for (uint32_t s = 0; s < recipe->streams_count; s++)
        tarn_builder_stream(rebuild->builder, recipe->stream_names[s]);
}

/* A merged storage has the strictest demands of the storages merged into it. */
static void join_roots(const struct rebuild *rebuild, struct tarn_tensor_info *roots)
{
    const struct tarn_graph *graph = rebuild->graph;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[t];
        struct tarn_tensor_info *root = &roots[root_of(rebuild->recipe, t)];
        if (tensor->kind == TARN_OUTPUT) root->kind = TARN_OUTPUT;
        if (tensor->alignment > root->alignment) root->alignment = tensor->alignment;
    }
}

static enum tarn_status add_tensors(const struct rebuild *rebuild)
{
    const struct tarn_graph *graph = rebuild->graph;
    struct tarn_region_mark mark = tarn_region_mark(rebuild->region);
    struct tarn_tensor_info *infos =
        tarn_region_take(rebuild->region, graph->tensors_count, sizeof *infos);
    if (!infos) return TARN_SYSTEM;
    for (uint32_t t = 0; t < graph->tensors_count; t++) tarn_graph_tensor(graph, t, &infos[t]);
    if (rebuild->recipe->root) join_roots(rebuild, infos);
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        uint32_t root = root_of(rebuild->recipe, t);
        infos[t].kind = infos[root].kind;
        if (root != t) {
            infos[t].alignment = 0;
            infos[t].offset_rule = TARN_OFFSET_FREE;
            infos[t].wanted_offset = 0;
        }
        tarn_builder_alias_of(rebuild->builder, &infos[t], root == t ? TARN_NONE : root);
    }
    tarn_region_release(rebuild->region, mark);
    for (uint32_t t = 0; t < rebuild->recipe->tensors_count; t++)
        tarn_builder_tensor(rebuild->builder, &rebuild->recipe->tensors[t]);
    return TARN_OK;
}

static void add_ops(const struct rebuild *rebuild)
{
    const struct tarn_recipe *recipe = rebuild->recipe;
    for (uint32_t i = 0; i < rebuild->graph->ops_count; i++) {
        uint32_t v = old_op(rebuild, i);
        struct tarn_op_info info;
        tarn_graph_op(rebuild->graph, v, &info);
        if (recipe->amend) recipe->amend(recipe->context, v, &info);
        info.stream = stream_of(recipe, v);
        for (size_t k = 0; k < info.control.count; k++)
            rebuild->ids[k] = rebuild->place[info.control.ids[k]];
        info.control.ids = rebuild->ids;
        tarn_builder_op(rebuild->builder, &info);
        tarn_builder_origin(rebuild->builder, v, TARN_NONE);
    }
}

void tarn_transform_add_streams(struct tarn_builder *builder, const struct tarn_graph *graph)
{
    for (uint32_t s = 0; s < graph->streams_count; s++)
        tarn_builder_stream(builder, graph->streams[s].name);
    add_spaces(builder, graph);
}

void tarn_transform_add_groups(struct tarn_builder *builder, const struct tarn_graph *graph,
                               enum tarn_group_padding padding)
{
    for (uint32_t g = 0; g < graph->given_count; g++) {
        struct tarn_list tensors = tarn_graph_group(graph, g);
        if (graph->given[g].offsets)
            tarn_builder_group_offsets(builder, tensors, graph->given[g].offsets);
        else if (tarn_group_is_padded(graph, &graph->given[g], padding))
            tarn_builder_group_padded(builder, tensors);
        else
            tarn_builder_group(builder, tensors);
        if (graph->given[g].symmetric)
            tarn_builder_group_symmetric(builder, g, graph->given[g].symmetric);
    }
}

/* ---- Arcs ---- */

static bool has_arc(const struct tarn_graph *graph, uint32_t later, uint32_t earlier)
{
    const struct tarn_graph_op *op = &graph->ops[later];
    for (uint32_t k = 0; k < tarn_op_arcs_count(op); k++) {
        if (tarn_op_arc(graph, op, k) == earlier) return true;
    }
    return false;
}

static void add_arc(const struct rebuild *rebuild, uint32_t later, uint32_t earlier)
{
    if (has_arc(rebuild->graph, later, earlier)) return;
    tarn_builder_control(rebuild->builder, rebuild->place[later], rebuild->place[earlier]);
}

/* Adds arcs for hazards that only the old streams kept in order. */
static enum tarn_status keep_hazards(const struct rebuild *rebuild)
{
    const struct tarn_recipe *recipe = rebuild->recipe;
    if (!recipe->order && !recipe->stream) return TARN_OK;
    struct tarn_constraints constraints;
    if (tarn_constraints_init(&constraints, rebuild->region, rebuild->graph) != TARN_OK)
        return TARN_SYSTEM;
    for (uint32_t v = 0; v < rebuild->graph->ops_count; v++) {
        const struct tarn_arcs *arcs = &constraints.predecessors;
        for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
            if (stream_of(recipe, arcs->ops[i]) != stream_of(recipe, v))
                add_arc(rebuild, v, arcs->ops[i]);
        }
    }
    return TARN_OK;
}

/* ---- The graph ---- */

static bool changes_nothing(const struct tarn_recipe *recipe)
{
    const struct tarn_graph *graph = recipe->graph;
    if (recipe->arcs_count > 0 || recipe->tensors_count > 0 || recipe->amend) return false;
    if (recipe->stream_names && recipe->streams_count != graph->streams_count) return false;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (recipe->order && recipe->order[v] != v) return false;
        if (stream_of(recipe, v) != graph->ops[v].stream) return false;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        if (root_of(recipe, t) != graph->tensors[t].root) return false;
    }
    for (uint32_t g = 0; g < graph->given_count; g++) {
        const struct tarn_group *given = &graph->given[g];
        if (tarn_group_is_padded(graph, given, recipe->padding) != given->padded) return false;
    }
    return true;
}

size_t tarn_transform_longest_list(const struct tarn_graph *graph)
{
    size_t longest = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (tarn_extra(&graph->ops[v])->control_count > longest)
            longest = tarn_extra(&graph->ops[v])->control_count;
    }
    for (uint32_t g = 0; g < graph->given_count; g++) {
        if (graph->given[g].tensors_count > longest) longest = graph->given[g].tensors_count;
    }
    return longest;
}

static enum tarn_status add_records(const struct rebuild *rebuild)
{
    add_streams(rebuild);
    if (add_tensors(rebuild) != TARN_OK) return TARN_SYSTEM;
    add_ops(rebuild);
    tarn_transform_add_groups(rebuild->builder, rebuild->graph, rebuild->recipe->padding);
    for (uint32_t i = 0; i < rebuild->recipe->arcs_count; i++)
        add_arc(rebuild, rebuild->recipe->arcs[i].later, rebuild->recipe->arcs[i].earlier);
    return keep_hazards(rebuild);
}

enum tarn_status tarn_recipe_build(const struct tarn_recipe *recipe, struct tarn_graph **result,
                                   struct tarn_error *error)
{
    struct tarn_graph *graph = recipe->graph;
    assert((recipe->stream == NULL) == (recipe->stream_names == NULL));
    assert(recipe->arcs || recipe->arcs_count == 0);
    *result = NULL;
    if (changes_nothing(recipe)) {
        *result = tarn_graph_retain(graph);
        return TARN_OK;
    }
    struct tarn_region region = {.chunks = NULL};
    struct rebuild rebuild = {
        .recipe = recipe,
        .graph = graph,
        .builder = tarn_builder_create(graph->name),
        .region = &region,
        .place = tarn_region_take(&region, graph->ops_count, sizeof *rebuild.place),
        .ids = tarn_region_take(&region, tarn_transform_longest_list(graph), sizeof *rebuild.ids),
    };
    enum tarn_status status = TARN_SYSTEM;
    if (rebuild.builder && !region.is_exhausted) {
        for (uint32_t i = 0; i < graph->ops_count; i++) rebuild.place[old_op(&rebuild, i)] = i;
        tarn_builder_meta(rebuild.builder, graph->meta);
        status = add_records(&rebuild);
    }
    if (status == TARN_OK) {
        status = tarn_builder_finish(rebuild.builder, result, error);
    } else {
        tarn_builder_destroy(rebuild.builder);
        tarn_error_no_memory(error);
    }
    tarn_region_finish(&region);
    return status;
}

enum tarn_status tarn_transform_compose(const struct tarn_graph *before, struct tarn_graph *after,
                                        struct tarn_error *error)
{
    for (uint32_t v = 0; v < after->ops_count; v++) {
        struct tarn_graph_op *op = &after->ops[v];
        if (op->origin == TARN_NONE) continue; /* a move of the last transform's */
        assert(op->origin < before->ops_count);
        const struct tarn_graph_op *old = &before->ops[op->origin];
        op->origin = old->origin;
        uint32_t chosen = tarn_extra(old)->implementation;
        if (tarn_extra(op)->implementation != TARN_NONE || chosen == TARN_NONE) continue;
        if (!tarn_graph_choose(after, v, chosen)) return tarn_error_no_memory(error);
        op->extra->implementations_count = 0; /* implementations of its kind were added again */
    }
    for (uint32_t t = 0; t < after->tensors_count; t++) {
        struct tarn_graph_tensor *tensor = &after->tensors[t];
        if (tensor->origin < before->tensors_count)
            tensor->origin = before->tensors[tensor->origin].origin;
    }
    after->hash = tarn_hash_of_graph(after);
    return TARN_OK;
}
