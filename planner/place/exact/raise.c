/* Raises limits of blocks; the proofs are in exact/rules.c. Two lone blocks are apart by a size.
 * For other pairs the forbidden intervals are searched until no placed block overlaps, since
 * leaving one interval may lead into another. Cost of finding room: none for a plain block, else
 * the placed blocks at that height. */
#include "rules.h"

#include <assert.h>

#include "planner/place/effort/effort.h"
#include "streams/base/bisect.h"

/* ---- Distances ---- */

/* The first forbidden interval of the pair b, c, not both lone, as seen from b, whose high end is
 * above `above`; the intervals after it belong to the pair as long as they name c. Neither end ever
 * falls along the list. */
static const struct tarn_exact_forbidden *
first_forbidden(const struct tarn_exact_instance *instance, uint32_t b, uint32_t c, int64_t above)
{
    uint32_t low = instance->forbidden_begin[b], high = instance->forbidden_begin[b + 1];
    assert(!tarn_exact_is_simple(instance, b, c));
    TARN_BISECT(
        low, high, middle,
        instance->forbidden[middle].other < c ||
            (instance->forbidden[middle].other == c && instance->forbidden[middle].high <= above));
    return instance->forbidden + low;
}

int64_t tarn_exact_escape(const struct tarn_exact_state *state, uint32_t b, uint32_t c,
                          int64_t position)
{
    const struct tarn_exact_instance *instance = state->instance;
    const struct tarn_exact_forbidden *end = instance->forbidden + instance->forbidden_begin[b + 1];
    int64_t from = state->limit[b];
    assert(b != c);
    if (tarn_exact_is_simple(instance, b, c)) {
        bool meets = position < from + instance->size[b] && position + instance->size[c] > from;
        return meets ? from + instance->size[b] : position;
    }
    for (const struct tarn_exact_forbidden *interval =
             first_forbidden(instance, b, c, position - from);
         interval < end && interval->other == c && position > from + interval->low; interval++)
        position = from + interval->high;
    return position;
}

int64_t tarn_exact_settle(const struct tarn_exact_state *state, uint32_t c, int64_t position)
{
    const struct tarn_exact_instance *instance = state->instance;
    const uint64_t *adjacent = tarn_exact_adjacent(state, c);
    int64_t before;
    if (instance->plain[c]) return tarn_exact_round_up(position, instance->alignment[c]);
    do {
        position = before = tarn_exact_round_up(position, instance->alignment[c]);
        for (uint32_t k = 0; k < state->placed_count; k++) {
            uint32_t b = state->placed[k];
            if (state->limit[b] >= position + instance->size[c]) break;
            if (state->limit[b] + instance->size[b] > position && tarn_set_has(adjacent, b))
                position = tarn_exact_escape(state, b, c, position);
        }
    } while (position != before);
    assert(position % instance->alignment[c] == 0);
    return position;
}

int64_t tarn_exact_support(const struct tarn_exact_state *state, uint32_t b, int64_t p, uint32_t c)
{
    const struct tarn_exact_instance *instance = state->instance;
    int64_t limit = state->limit[c];
    if (instance->plain[b] || tarn_exact_is_simple(instance, b, c))
        return limit < p + instance->size[b] ? limit + instance->size[c] : TARN_EXACT_NOWHERE;
    const struct tarn_exact_forbidden *lowest = first_forbidden(instance, c, b, INT64_MIN);
    if (limit >= p - lowest->low) return TARN_EXACT_NOWHERE;
    return limit + lowest->high > p ? limit + lowest->high : p + 1;
}

int64_t tarn_exact_least_support(struct tarn_exact_state *state, uint32_t b, int64_t p)
{
    const uint64_t *adjacent = tarn_exact_adjacent(state, b);
    int64_t least = TARN_EXACT_NOWHERE;
    state->work += TARN_WORK_EXACT_RAISE + state->unplaced_count;
    TARN_SET_EACH(c, w, state->instance->set_words, adjacent[w] & state->unplaced[w]) {
        int64_t position = tarn_exact_support(state, b, p, c);
        if (position >= least) continue;
        least = position;
        state->supporter[b] = c;
    }
    return least;
}

/* ---- Raising ---- */

/* Marks sections of b that have to be packed again because the limit of b has risen. The end of a
 * section follows from the pieces at or above some limit. No limit up to `limit` can be this one if
 * all open pieces together, starting there, do not reach the end. */
static void unpack(struct tarn_exact_state *state, uint32_t b, int64_t limit)
{
    const uint64_t *sections = tarn_exact_sections(state, b);
    for (uint32_t w = 0; w < state->instance->section_words; w++) {
        for (uint64_t rest = sections[w] & state->lively[w]; rest != 0; rest &= rest - 1) {
            uint32_t s = tarn_set_next(w, rest);
            state->work += TARN_WORK_EXACT_PIECE;
            if (limit + state->section_open[s] > state->section_end[s])
                state->unpacked[w] |= rest & -rest;
        }
    }
}

void tarn_exact_raise(struct tarn_exact_state *state, uint32_t b, int64_t limit, int64_t hole)
{
    const struct tarn_exact_instance *instance = state->instance;
    state->work += TARN_WORK_EXACT_RAISE + instance->section_words;
    if (!instance->plain[b])
        tarn_exact_join_placed_neighbours(state, tarn_exact_explanation(state, b), b);
    limit = tarn_exact_settle(state, b, limit);
    assert(limit >= state->limit[b]);
    tarn_exact_state_set(state, b, limit, hole);
    tarn_set_join(state->unsupported, tarn_exact_adjacent(state, b), instance->set_words);
    tarn_set_add(state->unsupported, b);
    unpack(state, b, limit);
}
