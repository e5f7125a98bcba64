/* Obstacles: storages that are already placed and do not move while the rest is placed around
 * them. */
#ifndef TARN_PLANNER_PLACE_LOWEST_OBSTACLES_H
#define TARN_PLANNER_PLACE_LOWEST_OBSTACLES_H

#include "kernels.h"
#include "streams/base/region.h"
#include "streams/order/reuse.h"

struct tarn_obstacle {
    struct tarn_span span; /* in units */
    uint32_t storage;      /* TARN_NONE: in conflict with everything that is to be placed */
};

/* Sorted by their starts. Obstacles may overlap: not all of them are in conflict. */
struct tarn_obstacles {
    uint32_t unit_shift;            /* a unit is 1 << unit_shift bytes */
    const struct tarn_reuse *reuse; /* of `storage` above and of the storages that `origin` names */
    const uint32_t *origin;         /* storage to be placed -> the same in `reuse` */
    struct tarn_obstacle *list;
    int32_t *reach; /* [i]: the highest end of list[0..i] */
    uint32_t count;
    size_t room; /* of the list */
};

/* The obstacles live in the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_obstacles_add(struct tarn_obstacles *obstacles, struct tarn_region *region,
                                    struct tarn_span span, uint32_t storage);
/* To be called when all are there. TARN_SYSTEM: no memory. */
enum tarn_status tarn_obstacles_sort(struct tarn_obstacles *obstacles, struct tarn_region *region);

/* The lowest offset, at least `offset`, at which the storage overlaps no obstacle. *ceiling is
 * lowered to the lowest offset above the result at which an obstacle may begin. *looked grows by
 * the number of obstacles that were looked at. */
int32_t tarn_obstacles_clear(const struct tarn_obstacles *obstacles, uint32_t storage,
                             int32_t offset, int32_t size, int32_t *ceiling, uint64_t *looked);

#endif
