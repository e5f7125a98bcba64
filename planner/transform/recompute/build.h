/* The state that the parts of building a graph share. */
#ifndef TARN_PLANNER_TRANSFORM_RECOMPUTE_BUILD_H
#define TARN_PLANNER_TRANSFORM_RECOMPUTE_BUILD_H

#include "recompute.h"
#include "streams/graph/builder.h"

struct tarn_building {
    const struct tarn_recompute_model *model;
    const struct tarn_graph *graph;
    const struct tarn_schedule *schedule;
    struct tarn_region region; /* of the lists */
    struct tarn_builder *builder;
    uint32_t *copy_tensor;  /* copy -> its tensor in the new graph */
    uint32_t *primary_copy; /* version -> copy by the primary op */
    uint32_t *new_op;       /* execution -> op */
    struct tarn_range
        *ops; /* source op -> executions that stand for it: [begin, end); views: ops */
    struct tarn_arcs readers; /* copy -> executions that read it */
    uint32_t *ids;            /* room for the lists of one op */
    uint32_t ids_count;
};

/* ---- recompute/build_arcs.c ---- */

/* Adds the control arcs, once all ops have been added. TARN_SYSTEM: no memory. */
enum tarn_status tarn_building_arcs(struct tarn_building *building);

#endif
