/* Graphs as records to be damaged, and plans of the damaged graph. */
#include "forge.h"

#include <stdlib.h>
#include <string.h>

#include "damage.h"
#include "streams/graph/builder.h"

static void *take(struct forgery *forgery, size_t count, size_t size)
{
    void *room = tarn_region_take(&forgery->region, count + 1, size);
    if (!room) abort();
    return room;
}

struct forgery *forgery_of(const struct tarn_graph *final, const struct tarn_graph *source)
{
    struct forgery *f = calloc(1, sizeof *f);
    if (!f) abort();
    f->source = source;
    f->name = final->name;
    f->spaces_count = final->spaces_count;
    f->streams_count = final->streams_count;
    f->tensors_count = final->tensors_count;
    f->ops_count = final->ops_count;
    f->groups_count = final->groups_count;
    f->spaces = take(f, f->spaces_count, sizeof *f->spaces);
    f->streams = take(f, f->streams_count, sizeof *f->streams);
    f->ops = take(f, f->ops_count, sizeof *f->ops);
    f->op_origin = take(f, f->ops_count, sizeof *f->op_origin);
    f->implementation = take(f, f->ops_count, sizeof *f->implementation);
    f->tensors = take(f, f->tensors_count, sizeof *f->tensors);
    f->root = take(f, f->tensors_count, sizeof *f->root);
    f->tensor_origin = take(f, f->tensors_count, sizeof *f->tensor_origin);
    f->groups = take(f, f->groups_count, sizeof *f->groups);
    f->padded = take(f, f->groups_count, sizeof *f->padded);
    f->offsets = take(f, f->groups_count, sizeof *f->offsets);
    f->symmetric = take(f, f->groups_count, sizeof *f->symmetric);
    for (uint32_t s = 0; s < f->spaces_count; s++) f->spaces[s] = final->spaces[s];
    for (uint32_t s = 0; s < f->streams_count; s++) f->streams[s] = final->streams[s].name;
    for (uint32_t v = 0; v < f->ops_count; v++) {
        tarn_graph_op(final, v, &f->ops[v]);
        f->op_origin[v] = final->ops[v].origin;
        f->implementation[v] = tarn_extra(&final->ops[v])->implementation;
        if (!tarn_extra(&final->ops[v])->common_is_given) f->ops[v].common = (struct tarn_list){0};
    }
    for (uint32_t t = 0; t < f->tensors_count; t++) {
        tarn_graph_tensor(final, t, &f->tensors[t]);
        f->root[t] = final->tensors[t].root;
        f->tensor_origin[t] = final->tensors[t].origin;
    }
    for (uint32_t g = 0; g < f->groups_count; g++) {
        f->groups[g] = tarn_graph_group(final, g);
        f->padded[g] = tarn_graph_group_is_padded(final, g);
        f->offsets[g] = tarn_graph_group_offsets(final, g);
        f->symmetric[g] = tarn_graph_group_symmetric(final, g);
    }
    return f;
}

void forgery_destroy(struct forgery *forgery)
{
    tarn_region_finish(&forgery->region);
    free(forgery);
}

struct tarn_graph *forgery_build(const struct forgery *f)
{
    struct tarn_builder *builder = tarn_builder_create(f->name);
    struct tarn_graph *graph = NULL;
    for (uint32_t s = 0; s < f->streams_count; s++) tarn_builder_stream(builder, f->streams[s]);
    for (uint32_t s = 0; s < f->spaces_count; s++) tarn_builder_space(builder, &f->spaces[s]);
    for (uint32_t t = 0; t < f->tensors_count; t++) {
        tarn_builder_alias_of(builder, &f->tensors[t], f->root[t] == t ? TARN_NONE : f->root[t]);
        tarn_builder_tensor_origin(builder, f->tensor_origin[t]);
    }
    for (uint32_t v = 0; v < f->ops_count; v++) {
        tarn_builder_op(builder, &f->ops[v]);
        tarn_builder_origin(builder, f->op_origin[v], f->implementation[v]);
    }
    for (uint32_t g = 0; g < f->groups_count; g++) {
        if (f->offsets[g])
            tarn_builder_group_offsets(builder, f->groups[g], f->offsets[g]);
        else if (f->padded[g])
            tarn_builder_group_padded(builder, f->groups[g]);
        else
            tarn_builder_group(builder, f->groups[g]);
        if (f->symmetric[g]) tarn_builder_group_symmetric(builder, g, f->symmetric[g]);
    }
    return tarn_builder_finish(builder, &graph, NULL) == TARN_OK ? graph : NULL;
}

struct tarn_plan *forged_as_it_was(const struct tarn_plan *plan, struct tarn_graph *graph)
{
    struct tarn_plan *copy = damage_copy(plan);
    tarn_graph_destroy(copy->graph);
    copy->graph = tarn_graph_retain(graph);
    copy->transformed = true;
    return copy;
}

struct tarn_plan *forged_anew(const struct tarn_plan *plan, struct tarn_graph *graph)
{
    struct tarn_plan *made;
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.alignment = plan->alignment, .threads = 1, .effort = TARN_NO_EFFORT,
                          .method = "baseline");
    if (tarn_plan_create(graph, options, &made, NULL) != TARN_OK) return NULL;
    made->source_hash = plan->source_hash;
    made->transformed = true;
    made->pad_groups = plan->pad_groups;
    if (!tarn_plan_allow(made, plan->in_place_kinds, plan->in_place_kinds_count)) abort();
    return made;
}
