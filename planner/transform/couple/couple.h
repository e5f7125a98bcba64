/* Adds waits that keep the streams close to one order of the ops (along.c). The transform that
 * lowers the bound, tarn_graph_couple, is declared in tarn/transform.h. */
#ifndef TARN_PLANNER_TRANSFORM_COUPLE_COUPLE_H
#define TARN_PLANNER_TRANSFORM_COUPLE_COUPLE_H

#include "planner/transform/recipe.h"
#include "streams/base/region.h"
#include "streams/graph/graph.h"

/* How far one stream may be ahead of another. */
struct tarn_leeway {
    bool in_time;   /* as the ops run in the model (tarn/simulate.h), which costs no modelled time;
                       else as they are listed */
    uint64_t ahead; /* at least 1. in_time: nanoseconds from one op of a stream that waits to the
                       next; else: places of the list, from one op that waits to the next, and from
                       an op to those that it waits for */
    uint64_t bytes; /* as listed: an op waits for all ops before it if more bytes than this are
                       alive while it runs, one op after the other; 0: no op does so */
    uint64_t alignment; /* at which these bytes are counted */
};

/* The graph with these waits, or the graph itself, shared; origins are its ops. The caller destroys
 * it. TARN_SYSTEM: no memory. O(ops × streams). */
enum tarn_status tarn_couple_along(struct tarn_graph *graph, const struct tarn_leeway *leeway,
                                   struct tarn_graph **result, struct tarn_error *error);

/* The same waits by themselves, from the region; TARN_SYSTEM: no memory. */
enum tarn_status tarn_couple_arcs(struct tarn_graph *graph, const struct tarn_leeway *leeway,
                                  struct tarn_region *region, struct tarn_recipe_arc **arcs,
                                  uint32_t *count, struct tarn_error *error);

#endif
