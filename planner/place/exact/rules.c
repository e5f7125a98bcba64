/* The rules of exact search: a set-times search with postponement (after Le Pape et al. 1994), in
 * the form of docs/how-it-works.md, "Exact search". A block's limit m is a proven lower limit of
 * its position. The search takes a block such that no conflicting unplaced block is lower. It first
 * places the block at m, then decides "not at m".
 *
 * The proof: among all solutions let S be one with the smallest sum of positions: no block of it
 * can be moved to a lower place that is free. Every rule below keeps S:
 *
 *  (place)    the search branches on S(b) = m[b] and S(b) > m[b]; m[b] is free of placed blocks.
 *  (raise)    if b at its limit would overlap a placed block, b is above, at the next free place.
 *  (support)  let b be unplaced, p free of placed blocks, and S(b) > p. Then b could drop to p
 *             unless it would overlap there some unplaced c in conflict, at S(c). So S(c) - p is
 *             in a forbidden interval of the pair, and S(b), above p, is beyond its other end:
 *             S(b) >= S(c) + high >= m[c] + high, where m[c] < p - low. For lone blocks low is
 *             -size[b] and high size[c]. So m[b] >= the lowest of these bounds; if no such c
 *             exists, no solution is below this state. Each block remembers one such p: its hole.
 *  (section)  pieces of a section need disjoint bytes and none begins before its limit, so they
 *             end no earlier than when packed by increasing limits. A section whose open pieces
 *             are all in another section says nothing new and is left out.
 *  (first)    of pieces that need disjoint bytes, say b cannot be the lowest: all of them together
 *             do not fit above its limit. Then a piece that can be the lowest ends before b
 *             begins: m[b] >= the lowest m[c] + size[c] of such pieces c. The rule is applied to
 *             the pieces of a section at and above some limit; in disjunctive scheduling it is
 *             the "not first" rule (Baptiste, Le Pape, Nuijten 2001).
 *  (failed)   the rules below a state use nothing but, for each unplaced block of a component, its
 *             limit, its hole and the bytes free for it; a state in which these equal those of a
 *             failed state fails. For a plain block, limit and hole determine the free bytes: the
 *             block is never lower than placed neighbours, so all of these lie below its limit.
 *             For other blocks the positions of placed blocks in conflict are part of the state.
 *  (parts)    components without conflicts between them are solved one after another.
 *
 * Cost: a node touches the conflicts of one block and the sections of those that it raised. */
#include "rules.h"

#include <assert.h>

/* ---- Supports ---- */

/* Why no neighbour of b is lower. */
static void join_support(const struct tarn_exact_state *state, uint64_t *set, uint32_t b)
{
    const uint64_t *adjacent = tarn_exact_adjacent(state, b);
    tarn_exact_join_placed_neighbours(state, set, b);
    TARN_SET_EACH(c, w, state->instance->set_words, adjacent[w] & state->unplaced[w]) {
        tarn_set_join(set, tarn_exact_explanation(state, c), state->instance->set_words);
    }
}

/* Does the last known supporter of b still support it? */
static bool is_supported(const struct tarn_exact_state *state, uint32_t b)
{
    uint32_t c = state->supporter[b];
    return tarn_set_has(state->unplaced, c) &&
           tarn_exact_support(state, b, state->hole[b], c) <= state->limit[b];
}

/* Raises b, if needed, to a position at which it has a support. */
static bool support_block(struct tarn_exact_state *state, uint32_t b)
{
    int64_t least = tarn_exact_least_support(state, b, state->hole[b]);
    if (least > state->capacity) {
        tarn_exact_clear_failure(state);
        tarn_exact_join_explanation(state, state->failure, b);
        join_support(state, state->failure, b);
        return false;
    }
    if (least <= state->limit[b]) return true;
    tarn_exact_state_save(state, b);
    join_support(state, tarn_exact_explanation(state, b), b);
    tarn_exact_raise(state, b, least, state->hole[b]);
    return true;
}

/* Blocks of several members can support each other alternately, a few units higher each time: after
 * as many raises as there are blocks the rest is left out, which proves less and nothing wrong. */
static bool support_all(struct tarn_exact_state *state)
{
    uint32_t raises = state->instance->count;
    for (uint32_t w = 0; w < state->instance->set_words;) {
        uint64_t rest = state->unsupported[w] & state->unplaced[w] & state->postponed[w];
        if (rest == 0) {
            state->unsupported[w++] = 0;
            continue;
        }
        uint32_t b = tarn_set_next(w, rest);
        int64_t before = state->limit[b];
        tarn_set_drop(state->unsupported, b);
        if (is_supported(state, b)) continue;
        if (!support_block(state, b)) return false;
        if (state->limit[b] == before) continue;
        if (--raises == 0) return true;
        w = 0;
    }
    return true;
}

/* Applies the rules to every block that was raised or placed. */
static bool follow_up(struct tarn_exact_state *state)
{
    uint32_t raises = state->instance->count;
    bool ok;
    do ok = support_all(state) && tarn_exact_pack_all(state);
    while (ok && tarn_exact_raise_not_first(state, &raises));
    tarn_set_clear(state->unsupported, state->instance->set_words);
    tarn_set_clear(state->unpacked, state->instance->section_words);
    tarn_set_clear(state->not_first_due, state->instance->section_words);
    return ok;
}

/* ---- Steps ---- */

bool tarn_exact_begin(struct tarn_exact_state *state)
{
    const struct tarn_exact_instance *instance = state->instance;
    for (uint32_t b = 0; b < instance->count; b++) {
        int64_t limit = tarn_exact_settle(state, b, 0);
        tarn_exact_state_save(state, b);
        tarn_exact_state_set(state, b, limit, limit);
    }
    for (uint32_t s = 0; s < instance->sections_count; s++) tarn_set_add(state->unpacked, s);
    return follow_up(state);
}

/* c, plain and in conflict with b, is above it: it does not lie below any placed neighbour. */
static void rise_above(struct tarn_exact_state *state, uint32_t b, uint32_t c)
{
    int64_t top = state->limit[b] + state->instance->size[b];
    assert(state->instance->plain[c] && tarn_set_has(state->unplaced, c));
    int64_t hole = state->hole[c];
    if (hole >= top) return;
    hole = tarn_exact_round_up(top, state->instance->alignment[c]);
    tarn_exact_state_save(state, c);
    if (state->limit[c] >= top) {
        tarn_exact_state_set(state, c, state->limit[c], hole);
        return;
    }
    tarn_set_add(tarn_exact_explanation(state, c), b);
    tarn_exact_raise(state, c, top, hole);
}

/* Raises limit and hole of c, in conflict with b, if c would overlap b there. b has just been
 * placed. */
static void give_way(struct tarn_exact_state *state, uint32_t b, uint32_t c)
{
    int64_t limit = tarn_exact_escape(state, b, c, state->limit[c]);
    assert(tarn_set_has(state->unplaced, c) && limit >= state->limit[c]);
    int64_t hole = tarn_exact_escape(state, b, c, state->hole[c]);
    if (hole > state->hole[c]) {
        tarn_exact_state_save(state, c);
        tarn_exact_state_set(state, c, state->limit[c], tarn_exact_settle(state, c, hole));
    }
    if (limit > state->limit[c]) {
        tarn_exact_state_save(state, c);
        tarn_set_add(tarn_exact_explanation(state, c), b);
        tarn_exact_raise(state, c, limit, state->hole[c]);
    }
}

bool tarn_exact_put(struct tarn_exact_state *state, uint32_t b)
{
    const struct tarn_exact_instance *instance = state->instance;
    const uint64_t *adjacent = tarn_exact_adjacent(state, b);
    tarn_exact_state_count(state, b, true);
    assert(state->limit[b] + instance->size[b] <= state->capacity);
    for (uint32_t w = 0; w < instance->set_words; w++) {
        uint64_t rest = adjacent[w] & state->unplaced[w];
        state->unsupported[w] |= rest;
        for (; rest != 0; rest &= rest - 1) {
            uint32_t c = tarn_set_next(w, rest);
            if (instance->plain[c])
                rise_above(state, b, c);
            else
                give_way(state, b, c);
        }
    }
    return follow_up(state);
}

bool tarn_exact_postpone(struct tarn_exact_state *state, uint32_t b)
{
    int64_t least = tarn_exact_least_support(state, b, state->limit[b]);
    assert(tarn_set_has(state->unplaced, b) && least > state->limit[b]);
    if (least > state->capacity) {
        tarn_exact_join_explanation(state, state->failure, b);
        join_support(state, state->failure, b);
        return false;
    }
    tarn_exact_state_save(state, b);
    tarn_set_join(tarn_exact_explanation(state, b), state->failure, state->instance->set_words);
    join_support(state, tarn_exact_explanation(state, b), b);
    tarn_exact_raise(state, b, least, state->limit[b]);
    return follow_up(state);
}

/* ---- Descriptions ---- */

static void add_fingerprint(struct tarn_exact_fingerprint *sum,
                            const struct tarn_exact_fingerprint *fingerprint)
{
    sum->word[0] += fingerprint->word[0];
    sum->word[1] += fingerprint->word[1];
}

/* Adds the fingerprints of placed blocks, which must differ from unplaced blocks with the same
 * limit. */
static void add_placed(const struct tarn_exact_state *state, struct tarn_exact_fingerprint *sum,
                       const uint64_t *set)
{
    TARN_SET_EACH(c, w, state->instance->set_words, set[w]) {
        const uint64_t *word = state->fingerprint[c].word;
        uint64_t x = word[0] * UINT64_C(0xbf58476d1ce4e5b9);
        uint64_t y = word[1] * UINT64_C(0x94d049bb133111eb);
        sum->word[0] += x ^ x >> 32;
        sum->word[1] += y ^ y >> 32;
    }
}

struct tarn_exact_fingerprint tarn_exact_describe(struct tarn_exact_state *state,
                                                  const uint64_t *set)
{
    struct tarn_exact_fingerprint sum = {{0, 0}};
    uint64_t *near = state->failure; /* free to be used: nothing has failed */
    tarn_exact_clear_failure(state);
    TARN_SET_EACH(b, w, state->instance->set_words, set[w]) {
        add_fingerprint(&sum, &state->fingerprint[b]);
        if (!state->instance->plain[b]) tarn_exact_join_placed_neighbours(state, near, b);
    }
    add_placed(state, &sum, near);
    return sum;
}

void tarn_exact_explain_failed(struct tarn_exact_state *state, const uint64_t *set)
{
    tarn_exact_clear_failure(state);
    TARN_SET_EACH(b, w, state->instance->set_words, set[w]) {
        tarn_set_join(state->failure, tarn_exact_explanation(state, b), state->instance->set_words);
        tarn_exact_join_placed_neighbours(state, state->failure, b);
    }
}
