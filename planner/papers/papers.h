/* The interface of the methods of papers, which are kept for comparison and run only if they are
 * asked for by name. A build with -Dpapers=false has none of them: papers.c implements the
 * interface if they are built, none.c if they are not. The interface's third function is public:
 * tarn_graph_pairs. */
#ifndef TARN_PLANNER_PAPERS_PAPERS_H
#define TARN_PLANNER_PAPERS_PAPERS_H

#include "planner/place/place.h"
#include "planner/place/problem/problem.h"

/* The i-th layout of a paper, or NULL past the last. */
const struct tarn_layout *tarn_papers_layout(size_t i);

/* Whether `name` is a layout of a paper that this build was made without. */
bool tarn_papers_lack(const char *name);

/* The two layouts. Each writes the offset of every planned storage. TARN_SYSTEM: no memory. */

/* Places by longest-lived first, best-fit: the method that layouts of training steps are commonly
 * compared with. node_limit: unused; only ROAM's layout has it. */
enum tarn_status tarn_llfb_place(const struct tarn_problem *problem, uint32_t node_limit,
                                 uint64_t *offset, uint64_t *footprint);

/* Places by ROAM: the leaves of the subgraph tree one by one, then one after the other. node_limit:
 * maximum of nodes in a leaf; 0: a default. */
enum tarn_status tarn_roam_place(const struct tarn_problem *problem, uint32_t node_limit,
                                 uint64_t *offset, uint64_t *footprint);

#endif
