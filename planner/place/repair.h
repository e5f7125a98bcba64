/* Re-optimising the part of a plan that sticks out above an aim, by exact search among what is
 * fixed. */
#ifndef TARN_PLANNER_PLACE_REPAIR_H
#define TARN_PLANNER_PLACE_REPAIR_H

#include "improve.h"

/* offset, footprint: a safe plan; replaced by one that is lower if that is found, at best
 * options->bound, or the capacity where that is more. options->steps: searches at most. The same
 * for any number of threads unless `seconds` or `stop` ended it. TARN_SYSTEM: no memory. */
enum tarn_status tarn_repair_place(const struct tarn_problem *problem,
                                   const struct tarn_improve_options *options, uint64_t *offset,
                                   uint64_t *footprint);

#endif
