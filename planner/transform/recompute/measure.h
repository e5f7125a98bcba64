/* The peak and the time of a schedule whose copies know their last reads. */
#ifndef TARN_PLANNER_TRANSFORM_RECOMPUTE_MEASURE_H
#define TARN_PLANNER_TRANSFORM_RECOMPUTE_MEASURE_H

#include "tail.h"

/* Room that is used again, by execution. */
struct tarn_lives {
    struct tarn_region *region; /* that it grows in */
    int64_t *change;
    uint64_t *bytes;
    size_t change_room, bytes_room;
};

/* Chooses implementations and fills in what the schedule comes to. tail: what runs behind its
 * executions, or NULL. false: no memory. */
bool tarn_schedule_measure(struct tarn_schedule *schedule, const struct tarn_recompute_model *model,
                           const struct tarn_tail *tail, struct tarn_lives *lives, uint64_t budget);

#endif
