/* Keeps the lower limits of a placement: raises the limits of all places in conflict with a block
 * that was just placed, and finds the next block. Works on the greedy placement of lowest.h. */
#ifndef TARN_PLANNER_PLACE_LOWEST_LIMITS_H
#define TARN_PLANNER_PLACE_LOWEST_LIMITS_H

#include "greedy.h"

/* Raises one place's limit. */
void tarn_limits_rise(struct tarn_greedy *greedy, uint32_t place, int32_t limit);
/* The place is placed. */
void tarn_limits_remove(struct tarn_greedy *greedy, uint32_t place);

/* Forgets all leaders: priority orders have changed. */
void tarn_limits_forget(struct tarn_greedy *greedy);

/* All limits 0. */
void tarn_limits_start(struct tarn_greedy *greedy);

/* Applies the limits that are pending for whole runs to every place. */
void tarn_limits_flush(struct tarn_greedy *greedy);

/* A lone storage was placed at these offsets. */
void tarn_limits_raise(struct tarn_greedy *greedy, uint32_t place, struct tarn_span span);
/* A group's member was placed at these offsets, which may be above the current one. */
void tarn_limits_raise_or_cap(struct tarn_greedy *greedy, uint32_t member, struct tarn_span span);

/* Returns the next block, whose limit is up to date. pre: a block is left. */
uint32_t tarn_limits_select(struct tarn_greedy *greedy, const int32_t *priority);

/* Has every node the lowest limit of its children, pending limits included, and no greater one than
 * it says? Is every leader a place below its node, and no champion placed? For tests of a greedy
 * placement that has started; cost: linear in places. */
bool tarn_limits_is_valid(const struct tarn_greedy *greedy);

#endif
