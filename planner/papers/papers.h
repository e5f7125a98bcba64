/* The door to the methods of papers, which are kept to compare with and run only when they are
 * asked for by name. A build with -Dpapers=false has none of them: papers.c is the door where they
 * are, none.c where they are not. The third function of the door is public: tarn_graph_pairs. */
#ifndef TARN_PLANNER_PAPERS_PAPERS_H
#define TARN_PLANNER_PAPERS_PAPERS_H

#include "planner/place/place.h"
#include "planner/place/problem/problem.h"

/* The i-th layout of a paper, or NULL past the last. */
const struct tarn_layout *tarn_papers_layout(size_t i);

/* Whether `name` is a layout of a paper that this build was made without. */
bool tarn_papers_lack(const char *name);

/* The two layouts. Each writes the offset of every planned storage. TARN_SYSTEM: no memory. */

/* Longest-lived first, best-fit: what layouts of training steps are commonly compared with.
 * node_limit: not used, ROAM's layout has it. */
enum tarn_status tarn_llfb_place(const struct tarn_problem *problem, uint32_t node_limit,
                                 uint64_t *offset, uint64_t *footprint);

/* ROAM: the leaves of the subgraph tree one by one, then one behind the other. node_limit: nodes in
 * a leaf at most; 0: a default. */
enum tarn_status tarn_roam_place(const struct tarn_problem *problem, uint32_t node_limit,
                                 uint64_t *offset, uint64_t *footprint);

#endif
