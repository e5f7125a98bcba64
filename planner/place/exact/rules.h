/* The two steps of exact search: placing a block at its limit, and deciding that the block is not
 * at its limit. */
#ifndef TARN_PLANNER_PLACE_EXACT_RULES_H
#define TARN_PLANNER_PLACE_EXACT_RULES_H

#include "state.h"

/* Each function returns false if the solution S that is searched for is not below the state that
 * the step makes; state->failure then holds placed blocks from which this follows. */

/* For the state without anything placed. */
bool tarn_exact_begin(struct tarn_exact_state *state);
/* Places b, at which no conflicting unplaced block is lower, at its limit. */
bool tarn_exact_put(struct tarn_exact_state *state, uint32_t b);
/* Decides that b is not at its limit, which follows from state->failure. */
bool tarn_exact_postpone(struct tarn_exact_state *state, uint32_t b);

/* Fingerprint of the data that the rules use of a set of blocks. */
struct tarn_exact_fingerprint tarn_exact_describe(struct tarn_exact_state *state,
                                                  const uint64_t *set);
/* Sets `failure` to all placed blocks from which such a description follows. */
void tarn_exact_explain_failed(struct tarn_exact_state *state, const uint64_t *set);

/* ---- Raising limits: the next free position of a block, and why it is not lower ---- */

#define TARN_EXACT_NOWHERE INT64_MAX

/* The first aligned position that is at least `position`. */
static inline int64_t tarn_exact_round_up(int64_t position, int64_t alignment)
{
    if (alignment == 1) return position;
    return (position + alignment - 1) / alignment * alignment;
}

/* The lowest position, at least `position`, at which c does not overlap b, which is placed. */
int64_t tarn_exact_escape(const struct tarn_exact_state *state, uint32_t b, uint32_t c,
                          int64_t position);
/* The lowest aligned position, at least `position`, at which c overlaps no placed block. */
int64_t tarn_exact_settle(const struct tarn_exact_state *state, uint32_t c, int64_t position);
/* If b is above p because it would overlap c at p, b is no lower than the returned position;
 * TARN_EXACT_NOWHERE: c cannot be the reason. */
int64_t tarn_exact_support(const struct tarn_exact_state *state, uint32_t b, int64_t p, uint32_t c);

/* The lowest of all supports that b may have if it is above p; notes the block that gives it. */
int64_t tarn_exact_least_support(struct tarn_exact_state *state, uint32_t b, int64_t p);

/* Raises the limit of b to the lowest position, at least `limit`, at which it has room. Sets the
 * hole of b, and notes which blocks have to be looked at again. The block is saved and its
 * explanation is complete. */
void tarn_exact_raise(struct tarn_exact_state *state, uint32_t b, int64_t limit, int64_t hole);

/* ---- Explanations: sets of placed blocks ---- */

/* Why block b is not lower than its limit. */
static inline void tarn_exact_join_explanation(const struct tarn_exact_state *state, uint64_t *set,
                                               uint32_t b)
{
    if (tarn_set_has(state->unplaced, b))
        tarn_set_join(set, tarn_exact_explanation(state, b), state->instance->set_words);
    else
        tarn_set_add(set, b);
}

static inline void tarn_exact_join_placed_neighbours(const struct tarn_exact_state *state,
                                                     uint64_t *set, uint32_t b)
{
    const uint64_t *adjacent = tarn_exact_adjacent(state, b);
    for (uint32_t w = 0; w < state->instance->set_words; w++)
        set[w] |= adjacent[w] & ~state->unplaced[w];
}

static inline void tarn_exact_clear_failure(struct tarn_exact_state *state)
{
    tarn_set_clear(state->failure, state->instance->set_words);
}

/* ---- Rules about one section at a time ---- */

/* Packs the sections that may have changed. False: a section does not fit, which follows from
 * state->failure. */
bool tarn_exact_pack_all(struct tarn_exact_state *state);

/* Raises blocks that cannot be first in the sections that were packed, at most *raises times;
 * writes the remaining number back. False: nothing was raised. */
bool tarn_exact_raise_not_first(struct tarn_exact_state *state, uint32_t *raises);

#endif
