/* Lowest-offset-first, as other rooms use it: the greedy placement that turns priority orders into
 * a plan, the priority orders themselves, obstacles: what is placed already, promotion, and local
 * searches from plan to plan. The other headers of this room are for its own files; what they
 * declare is included here. */
#ifndef TARN_PLANNER_PLACE_LOWEST_LOWEST_H
#define TARN_PLANNER_PLACE_LOWEST_LOWEST_H

#include "greedy.h"
#include "moves.h"
#include "obstacles.h"
#include "priorities.h"

#endif
