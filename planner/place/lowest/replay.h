/* Repeats a placement after a few changes, starting at the last snapshot before any of them can
 * matter.
 *
 *     blocks placed  0 ─────┬─────┬─────┬─────┬─────┬── all
 *     snapshots      0      1     2     3     4     5
 *                                 └ go on from here: no changed block has been placed, and none
 *                                   that comes earlier now was in a tie up to here
 *
 * The blocks that keep a plan above its aim are placed late, so much of a placement need not be
 * repeated. */
#ifndef TARN_PLANNER_PLACE_LOWEST_REPLAY_H
#define TARN_PLANNER_PLACE_LOWEST_REPLAY_H

#include "greedy.h"

enum { TARN_SNAPSHOTS = 16 };

/* A greedy placement's state, and the blocks placed between it and the next snapshot. */
struct tarn_snapshot {
    int32_t *state;
    uint32_t groups_count;
    int32_t current, top;
    int64_t miss;
    int32_t next;           /* the highest offset up to the next snapshot */
    int32_t least_priority; /* of the blocks placed up to the next snapshot */
};

/* The present plan, and a greedy placement to try others. */
struct tarn_replay {
    struct tarn_greedy greedy;
    int32_t *offset; /* by place */
    uint32_t *step, *lifted;
    int64_t miss;
    int32_t top;
    struct tarn_snapshot kept[TARN_SNAPSHOTS], trial[TARN_SNAPSHOTS];
    uint32_t interval; /* blocks between snapshots */
};

struct tarn_replay_change {
    uint32_t place;
    int32_t priority, floor; /* before the change */
};

/* Lives in the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_replay_init(struct tarn_replay *replay, struct tarn_region *region,
                                  const struct tarn_lowest *lowest);

/* Places from the start and keeps the result. False: its height cannot be counted. */
bool tarn_replay_start(struct tarn_replay *replay, const int32_t *priority, const int32_t *floor,
                       struct tarn_objective objective);

/* Places priority orders and floors that differ from the kept plan's in these changes, and keeps
 * the result unless it misses the objective by more than `miss_max`. */
bool tarn_replay_try(struct tarn_replay *replay, const int32_t *priority, const int32_t *floor,
                     const struct tarn_replay_change *changes, uint32_t changes_count,
                     struct tarn_objective objective, int64_t miss_max);

#endif
