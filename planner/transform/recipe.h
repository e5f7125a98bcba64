/* Builds the graphs that transforms make. A transform decides, a recipe records the decision, and
 * building the recipe makes the new graph:
 *
 *     recipe: { order of the list, stream of every op, extra control arcs, root of every tensor }
 *        │
 *        ▼ tarn_recipe_build
 *     new graph: ops in the new order, `origin` set, tensors and groups as they were
 *
 * The order required by data, control and hazards (see constraints.h) is kept by construction: if
 * the streams of the new graph no longer imply it, the new graph gets a control arc. Tensors keep
 * their ids. */
#ifndef TARN_PLANNER_TRANSFORM_RECIPE_H
#define TARN_PLANNER_TRANSFORM_RECIPE_H

#include "streams/graph/graph.h"
#include "tarn/transform.h"

/* An arc between ops of the old graph: `later` must not start before `earlier` has finished. */
struct tarn_recipe_arc {
    uint32_t later, earlier;
};

/* The description of the new graph. Every array is borrowed, in ids of the old graph; NULL: as in
 * the old graph. */
struct tarn_recipe {
    struct tarn_graph *graph;
    const uint32_t *order;              /* all ops once, in a topological order */
    const uint32_t *stream;             /* op -> stream of the new graph */
    const char *const *stream_names;    /* of the new graph; goes with `stream` */
    uint32_t streams_count;             /* goes with `stream_names` */
    const struct tarn_recipe_arc *arcs; /* extra control arcs; earlier must come first in `order` */
    uint32_t arcs_count;
    const uint32_t *root; /* tensor -> root of the new graph, which is a root of the old one; a
                             storage that takes in a pinned one is pinned */
    enum tarn_group_padding padding;        /* of all groups */
    const struct tarn_tensor_info *tensors; /* appended, with storages of their own */
    uint32_t tensors_count;
    /* Changes an op's record, except its stream; called with `context`. */
    void (*amend)(const void *context, uint32_t op, struct tarn_op_info *info);
    const void *context;
};

/* Makes the new graph, or shares the old one when they would be equal. `origin` of every op is its
 * id in the old graph. The caller destroys it. TARN_BAD_INPUT: the recipe breaks a rule of graphs
 * (a cycle, a data race), which is a fault of the transform. TARN_SYSTEM: no memory. */
enum tarn_status tarn_recipe_build(const struct tarn_recipe *recipe, struct tarn_graph **result,
                                   struct tarn_error *error);

/* Add parts that new graphs take over unchanged: the streams and memory spaces, and the groups by
 * their roots, whose ids must not have changed, with another padding if it is given. */
void tarn_transform_add_streams(struct tarn_builder *builder, const struct tarn_graph *graph);
void tarn_transform_add_groups(struct tarn_builder *builder, const struct tarn_graph *graph,
                               enum tarn_group_padding padding);
/* How many ids the longest control list or group has. */
size_t tarn_transform_longest_list(const struct tarn_graph *graph);

/* For a chain of transforms source -> ... -> before -> after: the ops and tensors of `after` refer
 * to ops, implementations and tensors of `before`; afterwards they refer to those of the source. An
 * op with a chosen implementation has no implementations left to choose from. `after` must not be
 * shared yet. TARN_SYSTEM: no memory. */
enum tarn_status tarn_transform_compose(const struct tarn_graph *before, struct tarn_graph *after,
                                        struct tarn_error *error);

#endif
