/* Streams apart: each has a band of the arena to itself. */
#ifndef TARN_PLANNER_PLACE_APART_H
#define TARN_PLANNER_PLACE_APART_H

#include "planner/place/problem/problem.h"
#include "streams/base/deadline.h"

struct tarn_apart_options {
    uint64_t visits;   /* of search by cores, for each band */
    uint64_t work_max; /* see work.h; 0: no limit */
    uint64_t seed;
    uint32_t threads; /* 0: all cores; results do not depend on it */
    struct tarn_deadline deadline;
};

/* offset, footprint: a safe plan; replaced by one of bands where that is lower. Does nothing where
 * bands cannot be lower, whatever the search for each finds. *work: that was done. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_apart_place(const struct tarn_problem *problem,
                                  const struct tarn_apart_options *options, uint64_t *offset,
                                  uint64_t *footprint, uint64_t *work);

#endif
