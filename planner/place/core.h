/* Search by cores: exact search for the few blocks that matter, lowest-offset-first for the others
 * around them. */
#ifndef TARN_PLANNER_PLACE_CORE_H
#define TARN_PLANNER_PLACE_CORE_H

#include "planner/place/problem/problem.h"
#include "streams/base/deadline.h"

struct tarn_core_options {
    uint64_t aim;      /* bytes: the first plan up to there ends the search */
    uint64_t visits;   /* of storages by exact search and placements, about */
    uint64_t work_max; /* see work.h; 0: no limit */
    uint64_t seed;
    uint32_t threads; /* 0: all cores; results do not depend on it */
    struct tarn_deadline deadline;
};

struct tarn_core_report {
    bool impossible; /* no placement is within the aim: proved, a core's blocks alone do not fit */
    uint64_t work;
};

/* offset, footprint: a safe plan; replaced by the best plan found if that is lower. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_core_place(const struct tarn_problem *problem,
                                 const struct tarn_core_options *options, uint64_t *offset,
                                 uint64_t *footprint, struct tarn_core_report *report);

#endif
