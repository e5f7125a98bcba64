/* Compaction: the blocks of a plan are pushed down, then up, so that free bytes join. */
#ifndef TARN_PLANNER_PLACE_COMPACT_H
#define TARN_PLANNER_PLACE_COMPACT_H

#include "planner/place/problem/problem.h"
#include "streams/base/deadline.h"

struct tarn_compact_options {
    uint64_t aim;      /* bytes: a plan up to there ends it */
    uint64_t work_max; /* see work.h; 0: no limit */
    struct tarn_deadline deadline;
};

/* offset, footprint: a safe plan, replaced by the best plan found if that is lower; or UINT64_MAX,
 * and any offsets, which say only which block comes before which: replaced by a plan, or left as
 * they are if work or time is too little for one, or there are too many blocks. The conflicts of
 * the problem have their rows. *work: what it took. TARN_SYSTEM: no memory. */
enum tarn_status tarn_compact_place(const struct tarn_problem *problem,
                                    const struct tarn_compact_options *options, uint64_t *offset,
                                    uint64_t *footprint, uint64_t *work);

/* The work of one push, from above. */
uint64_t tarn_compact_estimate(const struct tarn_problem *problem);

#endif
