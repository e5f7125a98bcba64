/* Longest-lived first, best-fit: what layouts of training steps are commonly compared with. */
#ifndef TARN_PLANNER_PAPERS_LLFB_H
#define TARN_PLANNER_PAPERS_LLFB_H

#include "planner/place/problem/problem.h"

/* Writes the offset of every planned storage. node_limit: not used, a layout of ROAM's has it.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_llfb_place(const struct tarn_problem *problem, uint32_t node_limit,
                                 uint64_t *offset, uint64_t *footprint);

#endif
