/* One pass of lowest-offset-first: the plan that there is even where a search was ended at once. */
#ifndef TARN_PLANNER_PLACE_PASS_H
#define TARN_PLANNER_PLACE_PASS_H

#include "planner/place/problem/problem.h"

/* offset, footprint: a safe plan; replaced by that of the pass where it is lower. It runs to its
 * end: about 1 s and 2 us for each storage at most. threads: 0: all cores; the plan does not depend
 * on it. TARN_SYSTEM: no memory. */
enum tarn_status tarn_pass_place(const struct tarn_problem *problem, uint32_t threads,
                                 uint64_t *offset, uint64_t *footprint);

#endif
