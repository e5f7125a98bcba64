/* Where a problem may be cut in time: intervals of blocks in the global order, and windows. */
#ifndef TARN_PLANNER_PLACE_CUTS_H
#define TARN_PLANNER_PLACE_CUTS_H

#include "baseline.h"

/* By storage, places in the global order of ops. What is in conflict with a was produced before
 * until[a], and b's until is behind a's producer. Everything produced between a's producer and
 * whole[a] is in conflict with a. */
struct tarn_cuts {
    uint32_t *since, *until, *whole;
    uint32_t *at; /* windows: window w has the ops at[w] .. at[w + 1] of the order */
    uint32_t count;
    uint32_t *window_of; /* place in the order -> window */
    uint32_t *storages;  /* in the order of slots, window by window; last what crosses */
    uint32_t *begin;     /* window -> where its storages begin; count + 2 */
};

/* width: storages in a window, about. TARN_SYSTEM: no memory. */
enum tarn_status tarn_cuts_init(struct tarn_cuts *cuts, const struct tarn_problem *problem,
                                uint32_t width);
void tarn_cuts_finish(struct tarn_cuts *cuts);

#endif
