/* What must stay in order whatever the streams and the order of the list: data arcs, control arcs
 * and hazards, as neighbour lists over ops. Transforms may do everything else. */
#ifndef TARN_PLANNER_TRANSFORM_CONSTRAINTS_H
#define TARN_PLANNER_TRANSFORM_CONSTRAINTS_H

#include "streams/graph/graph.h"

/* Distinct neighbours; those of op v are [begin[v], begin[v + 1]). Predecessors come before their
 * op in the graph's order (tarn_graph.order). */
struct tarn_constraints {
    struct tarn_arcs predecessors, successors;
    uint32_t ops_count, arcs_count;
};

/* TARN_SYSTEM: no memory. */
enum tarn_status tarn_constraints_init(struct tarn_constraints *constraints,
                                       const struct tarn_graph *graph);
void tarn_constraints_finish(struct tarn_constraints *constraints);

/* The other direction of the neighbour lists of `count` things, which name things below `names`:
 * the lists of those, ascending. The caller frees both arrays. TARN_SYSTEM: no memory, the caller
 * frees what there is. */
enum tarn_status tarn_arcs_turn_round(struct tarn_arcs *to, const struct tarn_arcs *from,
                                      uint32_t count, uint32_t names);

#endif
