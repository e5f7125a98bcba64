/* When storages are alive, in the global order of ops. */
#ifndef TARN_PLANNER_PLACE_PROBLEM_LIFETIMES_H
#define TARN_PLANNER_PLACE_PROBLEM_LIFETIMES_H

#include "planner/place/somas/baseline.h"
#include "slot_set.h"

/* Of some storages, as if there were no others; by place in their list. */
struct tarn_lifetimes {
    const struct tarn_problem *problem;
    const uint32_t *storages; /* the caller's: whole blocks, in the order of slots */
    uint32_t count;
    struct tarn_slot_set listed;
    uint32_t *since; /* its producer's place in the global order */
    uint32_t *until; /* behind its producer; what is in conflict with it was produced before */
    uint32_t *whole; /* everything produced between its producer and this is in conflict with it */
};

/* Lives in the region, and reads the problem and the list as long. TARN_SYSTEM: no memory. */
enum tarn_status tarn_lifetimes_init(struct tarn_lifetimes *lifetimes, struct tarn_region *region,
                                     const struct tarn_problem *problem, const uint32_t *storages,
                                     uint32_t count);

/* From the first `since` to the last `until` of a block's members, of which one is the i-th of the
 * list. */
void tarn_lifetimes_of_block(const struct tarn_lifetimes *lifetimes, struct tarn_block block,
                             uint32_t i, uint32_t *begin, uint32_t *end);

#endif
