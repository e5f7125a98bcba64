/* Lowest-offset-first, as other rooms use it: the decoder that turns keys into a plan, the keys
 * themselves, obstacles: what is placed already, promotion, and walks from plan to plan. The other
 * headers of this room are for its own files; what they declare is included here. */
#ifndef TARN_PLANNER_PLACE_LOWEST_LOWEST_H
#define TARN_PLANNER_PLACE_LOWEST_LOWEST_H

#include "decoder.h"
#include "keys.h"
#include "moves.h"
#include "obstacles.h"

#endif
