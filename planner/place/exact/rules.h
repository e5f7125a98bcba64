/* The steps of exact search: placing a block at its limit, and saying that it is not there. */
#ifndef TARN_PLANNER_PLACE_EXACT_RULES_H
#define TARN_PLANNER_PLACE_EXACT_RULES_H

#include "state.h"

/* Each is false when the solution S that the search is after is not below the state that it makes;
 * state->failure then holds placed blocks that this follows from. */

/* For the state without anything placed. */
bool tarn_exact_begin(struct tarn_exact_state *state);
/* Places b, at which no conflicting unplaced block is lower, at its limit. */
bool tarn_exact_put(struct tarn_exact_state *state, uint32_t b);
/* Says that b is not at its limit, which follows from state->failure. */
bool tarn_exact_postpone(struct tarn_exact_state *state, uint32_t b);

/* What the rules use of a set of blocks. */
struct tarn_exact_fingerprint tarn_exact_describe(struct tarn_exact_state *state,
                                                  const uint64_t *set);
/* Makes `failure` all that such a description follows from. */
void tarn_exact_explain_failed(struct tarn_exact_state *state, const uint64_t *set);

#endif
