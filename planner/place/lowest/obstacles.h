/* What has been placed already and stays where it is, as placement of the rest sees it. */
#ifndef TARN_PLANNER_PLACE_LOWEST_OBSTACLES_H
#define TARN_PLANNER_PLACE_LOWEST_OBSTACLES_H

#include "kernels.h"
#include "streams/base/region.h"
#include "streams/order/reuse.h"

struct tarn_obstacle {
    struct tarn_span span; /* in units */
    uint32_t storage;      /* TARN_NONE: in conflict with everything that is to be placed */
};

/* Sorted by where they begin. They may overlap: not all of them are in conflict. */
struct tarn_obstacles {
    uint32_t unit_shift;            /* a unit is 1 << unit_shift bytes */
    const struct tarn_reuse *reuse; /* of `storage` above and of what `origin` names */
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

/* The least offset from `offset` on at which the storage meets no obstacle; *ceiling becomes at
 * most the least offset above that at which one may begin, *looked grows by the obstacles that
 * were looked at. */
int32_t tarn_obstacles_clear(const struct tarn_obstacles *obstacles, uint32_t storage,
                             int32_t offset, int32_t size, int32_t *ceiling, uint64_t *looked);

#endif
