/* Orders of several streams from other starts, while a gap is left. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_RESTARTS_H
#define TARN_PLANNER_TRANSFORM_REORDER_RESTARTS_H

#include "rounds.h"
#include "streams.h"

/* Searches from other orders until the best one is no heavier than the bound. effort: of each
 * start, see tarn_reordering_run; the number of starts grows with it. *starts: how many there were.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_restarts(struct tarn_reordering *reordering,
                                       struct tarn_reorder_streams *search, uint64_t bound,
                                       uint32_t effort, uint32_t *starts);

#endif
