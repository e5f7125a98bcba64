/* ROAM's layout: the leaves of the subgraph tree one by one, then one behind the other. */
#ifndef TARN_PLANNER_PAPERS_ROAM_TREE_H
#define TARN_PLANNER_PAPERS_ROAM_TREE_H

#include "planner/place/problem/problem.h"

/* Writes the offset of every planned storage. node_limit: nodes in a leaf at most; 0: a default.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_roam_place(const struct tarn_problem *problem, uint32_t node_limit,
                                 uint64_t *offset, uint64_t *footprint);

#endif
