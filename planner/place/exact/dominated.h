/* What need not be searched: blocks that can as well lie at the bottom of the arena. */
#ifndef TARN_PLANNER_PLACE_EXACT_DOMINATED_H
#define TARN_PLANNER_PLACE_EXACT_DOMINATED_H

#include "instance.h"

struct tarn_exact_dominated {
    const struct tarn_problem *problem;
    bool *is_left_out; /* by block: it is not asked for, or lies at the bottom */
    uint64_t *free;    /* set of slots of storages that are not left out */
    uint64_t *mask;    /* set of slots to work in */
    uint32_t *blocks;  /* at the bottom, from there upwards */
    uint32_t count;
    uint64_t size; /* of all of them: the others fit a capacity if they fit one less this */
};

/* is_left_out: by block; NULL: no block is. It lives in the region and reads the problem.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_exact_dominated_init(struct tarn_exact_dominated *dominated,
                                           struct tarn_region *region,
                                           const struct tarn_problem *problem,
                                           const bool *is_left_out);

/* offset, by storage: a placement without the blocks at the bottom becomes one with them. */
void tarn_exact_dominated_lift(const struct tarn_exact_dominated *dominated, uint64_t *offset);

#endif
