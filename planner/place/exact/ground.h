/* What need not be searched: blocks that can as well lie at the bottom of the arena. */
#ifndef TARN_PLANNER_PLACE_EXACT_GROUND_H
#define TARN_PLANNER_PLACE_EXACT_GROUND_H

#include "instance.h"

struct tarn_exact_ground {
    const struct tarn_problem *problem;
    bool *is_left_out; /* by block: it is not asked for, or lies at the bottom */
    uint64_t *free;    /* set of slots of storages that are not left out */
    uint64_t *mask;    /* set of slots to work in */
    uint32_t *blocks;  /* at the bottom, from there upwards */
    uint32_t count;
    uint64_t size; /* of all of them: the others fit a capacity if they fit one less this */
};

/* is_left_out: by block; NULL: no block is. TARN_SYSTEM: no memory; finish it then,
 * too. */
enum tarn_status tarn_exact_ground_init(struct tarn_exact_ground *ground,
                                        const struct tarn_problem *problem,
                                        const bool *is_left_out);
void tarn_exact_ground_finish(struct tarn_exact_ground *ground);

/* offset, by storage: a placement without the blocks at the bottom becomes one with them. */
void tarn_exact_ground_lift(const struct tarn_exact_ground *ground, uint64_t *offset);

#endif
