/* Streams apart: each, or some of them together, have a band of the arena to themselves. */
#ifndef TARN_PLANNER_PLACE_APART_H
#define TARN_PLANNER_PLACE_APART_H

#include "planner/place/problem/problem.h"
#include "streams/base/deadline.h"

struct tarn_apart_options {
    /* The problem that this one is a part of, or itself; of a graph, or bands are not shared. */
    const struct tarn_problem *whole;
    uint64_t visits;   /* of search by cores, for each band */
    uint64_t aim;      /* bytes: a plan up to there ends the search */
    uint64_t work_max; /* see work.h; 0: no limit */
    uint64_t seed;
    uint32_t threads; /* 0: all cores; results do not depend on it */
    struct tarn_deadline deadline;
    /* Looks for a plan of a band that is `least` bytes high, starting at the given plan, with these
     * options and up to this much work (0: no limit), and reports the work done. NULL: search by
     * cores alone. */
    enum tarn_status (*search)(const struct tarn_apart_options *options,
                               const struct tarn_problem *problem, uint64_t least,
                               uint64_t work_max, uint64_t *offset, uint64_t *height,
                               uint64_t *work);
};

/* offset, footprint: a safe plan; replaced by a plan of bands if that is lower. Does nothing if
 * bands cannot be lower, whatever the search in each band finds. The conflicts of the problem have
 * their rows. *work: the work done. TARN_SYSTEM:
 * no memory. */
enum tarn_status tarn_apart_place(const struct tarn_problem *problem,
                                  const struct tarn_apart_options *options, uint64_t *offset,
                                  uint64_t *footprint, uint64_t *work);

#endif
