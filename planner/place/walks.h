/* Walks: searches that change keys and floors step by step, from the best keys' plans on. */
#ifndef TARN_PLANNER_PLACE_WALKS_H
#define TARN_PLANNER_PLACE_WALKS_H

#include "search.h"

/* Looks for a plan below the best one of the keys, which has been found but does not meet the aim,
 * and below `footprint`, that of the plan that came in. TARN_SYSTEM: no memory. */
enum tarn_status tarn_walks_run(struct tarn_search *search, uint64_t footprint);

#endif
