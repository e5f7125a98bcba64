/* What exact search proves by looking at one section at a time. */
#ifndef TARN_PLANNER_PLACE_EXACT_SECTIONS_H
#define TARN_PLANNER_PLACE_EXACT_SECTIONS_H

#include "state.h"

/* Packs the sections that may have changed. False: one does not fit, and state->failure is
 * what that follows from. */
bool tarn_exact_pack_all(struct tarn_exact_state *state);

/* Raises what cannot be first in the sections that were packed, *raises times at most; what is left
 * of that is written back. False: nothing was raised. */
bool tarn_exact_raise_not_first(struct tarn_exact_state *state, uint32_t *raises);

#endif
