/* The order that every transform must keep, for any streams and any order of the list: data arcs,
 * control arcs and hazards, as neighbour lists over ops. Transforms may change everything else. */
#ifndef TARN_PLANNER_TRANSFORM_CONSTRAINTS_H
#define TARN_PLANNER_TRANSFORM_CONSTRAINTS_H

#include "streams/base/region.h"
#include "streams/graph/graph.h"

/* Distinct neighbours; the neighbours of op v are [begin[v], begin[v + 1]). Predecessors come
 * before their op in the graph's order (tarn_graph.order). */
struct tarn_constraints {
    struct tarn_arcs predecessors, successors;
    uint32_t ops_count, arcs_count;
};

/* Lists from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_constraints_init(struct tarn_constraints *constraints,
                                       struct tarn_region *region, const struct tarn_graph *graph);

/* Whether every list names distinct other ops, predecessors come before their op in the graph's
 * order, and there are as many arcs in both directions. For assertions; cost: linear. */
bool tarn_constraints_is_valid(const struct tarn_constraints *constraints,
                               const struct tarn_graph *graph);

/* The other direction of the neighbour lists of `count` things, which name things below `names`:
 * the lists of those, ascending, from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_arcs_reverse(struct tarn_arcs *to, struct tarn_region *region,
                                   const struct tarn_arcs *from, uint32_t count, uint32_t names);

#endif
