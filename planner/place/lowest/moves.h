/* One local search through the plans that lowest-offset-first can make: a step changes priority
 * orders or floors of a few blocks that keep the plan above its aim, places again, and keeps the
 * change or takes it back. */
#ifndef TARN_PLANNER_PLACE_LOWEST_MOVES_H
#define TARN_PLANNER_PLACE_LOWEST_MOVES_H

#include "priorities.h"
#include "replay.h"

enum { TARN_LATENESS_MAX = 64, TARN_CHANGES_MAX = 32 };

struct tarn_local_search_setting {
    uint32_t hole_percent; /* of the steps try to close a hole below the antichain's top */
    uint32_t lateness;     /* a step may miss as much as the one this many steps before */
    struct tarn_objective objective;
};

struct tarn_local_search {
    const struct tarn_lowest *lowest;
    const struct tarn_traits *traits;
    struct tarn_local_search_setting setting;
    struct tarn_replay replay; /* at the local search's present plan */
    int32_t *priority, *floor; /* by place, changes of the step being tried included */
    int64_t late[TARN_LATENESS_MAX];
    uint64_t random;
    uint64_t steps;
    uint32_t *list; /* scratch: places */
    struct tarn_replay_change changes[TARN_CHANGES_MAX];
    uint32_t changes_count;
};

/* Lives in the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_local_search_init(struct tarn_local_search *local, struct tarn_region *region,
                                        const struct tarn_lowest *lowest,
                                        const struct tarn_traits *traits,
                                        const struct tarn_local_search_setting *setting,
                                        uint64_t seed);

/* Goes to the plan of these priority orders and floors. False: the plan is too high to be
 * counted. */
bool tarn_local_search_start(struct tarn_local_search *local, const int32_t *priority,
                             const int32_t *floor);

void tarn_local_search_step(struct tarn_local_search *local);

#endif
