/* What need not be searched: blocks that can as well lie at the bottom of the arena. */
#ifndef TARN_PLANNER_PLACE_EXACT_GROUND_H
#define TARN_PLANNER_PLACE_EXACT_GROUND_H

#include "instance.h"

struct tarn_exact_ground {
    const struct tarn_problem *problem;
    uint8_t *role;    /* a copy of the roles: blocks at the bottom are ignored */
    uint64_t *free;   /* set of slots of free storages */
    uint64_t *mask;   /* set of slots to work in */
    uint32_t *blocks; /* at the bottom, from there upwards */
    uint32_t count;
    uint64_t size; /* of all of them: the others fit a capacity if they fit one less this */
};

/* role: by block, enum tarn_exact_role; NULL: all are free. TARN_SYSTEM: no memory; finish it then,
 * too. */
enum tarn_status tarn_exact_ground_init(struct tarn_exact_ground *ground,
                                        const struct tarn_problem *problem, const uint8_t *role);
void tarn_exact_ground_finish(struct tarn_exact_ground *ground);

/* offset, by storage: a placement of the free blocks without those at the bottom becomes one of
 * all free blocks. */
void tarn_exact_ground_lift(const struct tarn_exact_ground *ground, uint64_t *offset);

#endif
