/* The public header of lowest-offset-first placement. It has the greedy placement that turns
 * priority orders into a plan, the priority orders, obstacles (storages that are placed already),
 * promotion, and local searches from plan to plan. The other headers of this directory are for its
 * own files and are included here. */
#ifndef TARN_PLANNER_PLACE_LOWEST_LOWEST_H
#define TARN_PLANNER_PLACE_LOWEST_LOWEST_H

#include "greedy.h"
#include "moves.h"
#include "obstacles.h"
#include "priorities.h"

#endif
