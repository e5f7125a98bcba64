/* The rules of exact search: a set-times search with postponement (after Le Pape et al. 1994), in
 * the form of DESIGN.md, section 3, "Exact search". A block's limit m is a proven lower limit of
 * its position. The search takes a block at which no conflicting unplaced one is lower, and first
 * places it at m, then says "not at m".
 *
 * What is proved. Among all solutions take one, S, with the least sum of positions: no block of it
 * can be moved to a lower place that is free. Every rule below keeps S:
 *
 *  (place)    the search branches on S(b) = m[b] and S(b) > m[b]; m[b] is free of placed blocks.
 *  (raise)    a block that would meet a placed one at its limit is above, at the next free place.
 *  (support)  let b be unplaced, p free of placed blocks, and S(b) > p. Then b could drop to p but
 *             for some unplaced c in conflict that S puts where b at p would meet it: S(c) - p is
 *             inside a ban of the pair, and S(b), which is above p, is beyond that ban's other end:
 *             S(b) >= S(c) + high >= m[c] + high, where m[c] < p - low. For lone blocks low is
 *             -size[b] and high size[c]. So m[b] >= the least of these; if there is none, S is not
 *             here. Each block remembers one such p: its hole.
 *  (section)  pieces of a section need disjoint bytes and none begins before its limit, so they
 *             end no earlier than when packed by increasing limits. A section whose open pieces
 *             are all in another one tells nothing new and is left out.
 *  (failed)   the rules below a state use nothing but, for each unplaced block of a component, its
 *             limit, its hole and what is free for it; a state in which these are as in a failed
 *             one fails. The latter is what limit and hole say for a plain block: as it is never
 *             lower than what is placed next to it, all that is placed lies below its limit. For
 *             other blocks the positions of the placed ones in conflict are part of the state.
 *  (parts)    components without conflicts between them are solved one after another.
 *
 * Cost: a node touches the conflicts of one block and the sections of those that it raised. */
#include "exact_rules.h"

#include <string.h>

#define POSITION_MAX INT64_MAX

/* ---- Distances ---- */

static int64_t round_up(int64_t position, int64_t alignment)
{
    if (alignment == 1) return position;
    return (position + alignment - 1) / alignment * alignment;
}

/* The first ban of the pair b, c, not both lone, as seen from b, whose high end is above `above`;
 * what follows belongs to the pair as long as it names c. Neither end ever falls along the list. */
static const struct tarn_exact_ban *first_ban(const struct tarn_exact_instance *instance,
                                              uint32_t b, uint32_t c, int64_t above)
{
    uint32_t low = instance->bans_begin[b], high = instance->bans_begin[b + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct tarn_exact_ban *ban = &instance->bans[middle];
        if (ban->other < c || (ban->other == c && ban->high <= above))
            low = middle + 1;
        else
            high = middle;
    }
    return instance->bans + low;
}

/* The lowest position from `position` on at which c does not meet b, which is placed. */
static int64_t escape(const struct tarn_exact_state *state, uint32_t b, uint32_t c,
                      int64_t position)
{
    const struct tarn_exact_instance *instance = state->instance;
    const struct tarn_exact_ban *end = instance->bans + instance->bans_begin[b + 1];
    int64_t from = state->limit[b];
    if (tarn_exact_is_simple(instance, b, c)) {
        bool meets = position < from + instance->size[b] && position + instance->size[c] > from;
        return meets ? from + instance->size[b] : position;
    }
    for (const struct tarn_exact_ban *ban = first_ban(instance, b, c, position - from);
         ban < end && ban->other == c && position > from + ban->low; ban++)
        position = from + ban->high;
    return position;
}

/* The lowest aligned position from `position` on at which c meets nothing placed. */
static int64_t settle(const struct tarn_exact_state *state, uint32_t c, int64_t position)
{
    const struct tarn_exact_instance *instance = state->instance;
    const uint64_t *adjacent = tarn_exact_adjacent(state, c);
    int64_t before;
    if (instance->plain[c]) return round_up(position, instance->alignment[c]);
    do {
        position = before = round_up(position, instance->alignment[c]);
        for (uint32_t k = instance->walls_begin[c]; k < instance->walls_begin[c + 1]; k++) {
            const struct tarn_exact_ban *wall = &instance->walls[k];
            if (position > wall->low && position < wall->high) position = wall->high;
        }
        for (uint32_t k = 0; k < state->placed_count; k++) {
            uint32_t b = state->placed[k];
            if (state->limit[b] >= position + instance->size[c]) break;
            if (state->limit[b] + instance->size[b] > position && tarn_set_has(adjacent, b))
                position = escape(state, b, c, position);
        }
    } while (position != before);
    return position;
}

/* If b is above p because c is in its way at p: no lower than this; POSITION_MAX: c cannot be. */
static int64_t support(const struct tarn_exact_state *state, uint32_t b, int64_t p, uint32_t c)
{
    const struct tarn_exact_instance *instance = state->instance;
    int64_t limit = state->limit[c];
    if (instance->plain[b] || tarn_exact_is_simple(instance, b, c))
        return limit < p + instance->size[b] ? limit + instance->size[c] : POSITION_MAX;
    const struct tarn_exact_ban *lowest = first_ban(instance, c, b, INT64_MIN);
    if (limit >= p - lowest->low) return POSITION_MAX;
    return limit + lowest->high > p ? limit + lowest->high : p + 1;
}

/* The least of all supports that b may have when it is above p; notes whose it is. */
static int64_t least_support(struct tarn_exact_state *state, uint32_t b, int64_t p)
{
    const uint64_t *adjacent = tarn_exact_adjacent(state, b);
    int64_t least = POSITION_MAX;
    for (uint32_t w = 0; w < state->instance->set_words; w++) {
        for (uint64_t rest = adjacent[w] & state->unplaced[w]; rest != 0; rest &= rest - 1) {
            int64_t position = support(state, b, p, tarn_set_next(w, rest));
            if (position >= least) continue;
            least = position;
            state->supporter[b] = tarn_set_next(w, rest);
        }
    }
    return least;
}

/* ---- Reasons ---- */

static void join(const struct tarn_exact_state *state, uint64_t *set, const uint64_t *other)
{
    tarn_set_join(set, other, state->instance->set_words);
}

/* Why block b is not lower than its limit. */
static void join_reasons(const struct tarn_exact_state *state, uint64_t *set, uint32_t b)
{
    if (tarn_set_has(state->unplaced, b))
        join(state, set, tarn_exact_reasons(state, b));
    else
        tarn_set_add(set, b);
}

static void join_placed_neighbours(const struct tarn_exact_state *state, uint64_t *set, uint32_t b)
{
    const uint64_t *adjacent = tarn_exact_adjacent(state, b);
    for (uint32_t w = 0; w < state->instance->set_words; w++)
        set[w] |= adjacent[w] & ~state->unplaced[w];
}

/* Why no neighbour of b is lower. */
static void join_support(const struct tarn_exact_state *state, uint64_t *set, uint32_t b)
{
    const uint64_t *adjacent = tarn_exact_adjacent(state, b);
    join_placed_neighbours(state, set, b);
    for (uint32_t w = 0; w < state->instance->set_words; w++) {
        for (uint64_t rest = adjacent[w] & state->unplaced[w]; rest != 0; rest &= rest - 1)
            join(state, set, tarn_exact_reasons(state, tarn_set_next(w, rest)));
    }
}

static void clear_blame(struct tarn_exact_state *state)
{
    memset(state->blame, 0, state->instance->set_words * sizeof *state->blame);
}

/* ---- Raising limits ---- */

/* Sections of b that have to be packed again, its limit having risen: the end of a section is that
 * of its pieces from some limit on, of which none at or below `limit` can be that counts, where all
 * open pieces together from there do not reach it. */
static void unpack(struct tarn_exact_state *state, uint32_t b, int64_t limit)
{
    const uint64_t *sections = tarn_exact_sections(state, b);
    for (uint32_t w = 0; w < state->instance->section_words; w++) {
        for (uint64_t rest = sections[w] & state->lively[w]; rest != 0; rest &= rest - 1) {
            uint32_t s = tarn_set_next(w, rest);
            if (limit + state->section_open[s] > state->section_end[s])
                state->unpacked[w] |= rest & -rest;
        }
    }
}

/* The block is saved and its reasons are noted. */
static void raise_limit(struct tarn_exact_state *state, uint32_t b, int64_t limit, int64_t hole)
{
    const struct tarn_exact_instance *instance = state->instance;
    if (!instance->plain[b]) join_placed_neighbours(state, tarn_exact_reasons(state, b), b);
    limit = settle(state, b, limit);
    tarn_exact_state_set(state, b, limit, hole);
    tarn_set_join(state->unsupported, tarn_exact_adjacent(state, b), instance->set_words);
    tarn_set_add(state->unsupported, b);
    unpack(state, b, limit);
}

/* Does what supported b when last looked for still do so? */
static bool is_supported(const struct tarn_exact_state *state, uint32_t b)
{
    uint32_t c = state->supporter[b];
    return tarn_set_has(state->unplaced, c) &&
           support(state, b, state->hole[b], c) <= state->limit[b];
}

/* Raises b, if need be, to where it has a support. */
static bool support_block(struct tarn_exact_state *state, uint32_t b)
{
    int64_t least = least_support(state, b, state->hole[b]);
    if (least > state->capacity) {
        clear_blame(state);
        join_reasons(state, state->blame, b);
        join_support(state, state->blame, b);
        return false;
    }
    if (least <= state->limit[b]) return true;
    tarn_exact_state_save(state, b);
    join_support(state, tarn_exact_reasons(state, b), b);
    raise_limit(state, b, least, state->hole[b]);
    return true;
}

/* Blocks of several members can support each other in turn, a few units higher each time: after as
 * many raises as there are blocks the rest is left out, which proves less and nothing wrong. */
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

/* ---- Sections ---- */

/* Puts order[i] where it belongs among those before it, which are in order. */
static void sort_in(struct tarn_exact_state *state, uint32_t begin, uint32_t i)
{
    const int64_t *limit = state->piece_limit;
    uint32_t *order = state->order, piece = order[i];
    for (; i > begin && limit[order[i - 1]] > limit[piece]; i--) order[i] = order[i - 1];
    order[i] = piece;
}

/* Sorts what has to be packed, and packs it. */
static int64_t pack(struct tarn_exact_state *state, uint32_t s)
{
    const struct tarn_exact_instance *instance = state->instance;
    const int64_t *limit = state->piece_limit, *size = instance->piece_size;
    const uint32_t *order = state->order;
    uint32_t begin = tarn_exact_open_begin(state, s), end = instance->section_begin[s + 1];
    int64_t top = 0, last = 0;
    bool sorted = true;
    for (uint32_t i = begin; i < end; i++) {
        int64_t own = limit[order[i]];
        if (own >= last) {
            top = (own > top ? own : top) + size[order[i]];
            last = own;
        } else {
            sort_in(state, begin, i);
            sorted = false;
        }
    }
    if (sorted) return top;
    top = 0;
    for (uint32_t i = begin; i < end; i++) {
        int64_t own = limit[order[i]];
        top = (own > top ? own : top) + size[order[i]];
    }
    return top;
}

/* The section is sorted: what counts is the group from which on it does not fit. */
static void blame_section(struct tarn_exact_state *state, uint32_t s)
{
    const struct tarn_exact_instance *instance = state->instance;
    uint32_t begin = tarn_exact_open_begin(state, s);
    int64_t sum = 0;
    clear_blame(state);
    for (uint32_t i = instance->section_begin[s + 1]; i-- > begin;) {
        uint32_t p = state->order[i];
        sum += instance->piece_size[p];
        join_reasons(state, state->blame, instance->piece_block[p]);
        if (state->piece_limit[p] + sum > state->capacity) return;
    }
}

static bool pack_all(struct tarn_exact_state *state)
{
    for (uint32_t w = 0; w < state->instance->section_words; w++) {
        for (uint64_t rest = state->unpacked[w] & state->lively[w]; rest != 0; rest &= rest - 1) {
            uint32_t s = tarn_set_next(w, rest);
            int64_t end = pack(state, s);
            if (end > state->capacity) {
                state->section_ease[s] = 1 / (1 / state->section_ease[s] + 1);
                blame_section(state, s);
                return false;
            }
            tarn_exact_state_set_end(state, s, end);
        }
        state->unpacked[w] = 0;
    }
    return true;
}

/* Follows up all that was raised or placed. */
static bool follow_up(struct tarn_exact_state *state)
{
    bool ok = support_all(state) && pack_all(state);
    memset(state->unsupported, 0, state->instance->set_words * sizeof(uint64_t));
    memset(state->unpacked, 0, state->instance->section_words * sizeof(uint64_t));
    return ok;
}

/* ---- Steps ---- */

bool tarn_exact_begin(struct tarn_exact_state *state)
{
    const struct tarn_exact_instance *instance = state->instance;
    for (uint32_t b = 0; b < instance->count; b++) {
        int64_t limit = settle(state, b, 0);
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
    int64_t hole = state->hole[c];
    if (hole >= top) return;
    hole = round_up(top, state->instance->alignment[c]);
    tarn_exact_state_save(state, c);
    if (state->limit[c] >= top) {
        tarn_exact_state_set(state, c, state->limit[c], hole);
        return;
    }
    tarn_set_add(tarn_exact_reasons(state, c), b);
    raise_limit(state, c, top, hole);
}

/* What c, in conflict, has to give way to now that b is placed. */
static void give_way(struct tarn_exact_state *state, uint32_t b, uint32_t c)
{
    int64_t limit = escape(state, b, c, state->limit[c]);
    int64_t hole = escape(state, b, c, state->hole[c]);
    if (hole > state->hole[c]) {
        tarn_exact_state_save(state, c);
        tarn_exact_state_set(state, c, state->limit[c], settle(state, c, hole));
    }
    if (limit > state->limit[c]) {
        tarn_exact_state_save(state, c);
        tarn_set_add(tarn_exact_reasons(state, c), b);
        raise_limit(state, c, limit, state->hole[c]);
    }
}

bool tarn_exact_put(struct tarn_exact_state *state, uint32_t b)
{
    const struct tarn_exact_instance *instance = state->instance;
    const uint64_t *adjacent = tarn_exact_adjacent(state, b);
    tarn_exact_state_count(state, b, true);
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
    int64_t least = least_support(state, b, state->limit[b]);
    if (least > state->capacity) {
        join_reasons(state, state->blame, b);
        join_support(state, state->blame, b);
        return false;
    }
    tarn_exact_state_save(state, b);
    join(state, tarn_exact_reasons(state, b), state->blame);
    join_support(state, tarn_exact_reasons(state, b), b);
    raise_limit(state, b, least, state->limit[b]);
    return follow_up(state);
}

/* ---- Descriptions ---- */

static void add_print(struct tarn_exact_print *sum, const struct tarn_exact_print *print)
{
    sum->word[0] += print->word[0];
    sum->word[1] += print->word[1];
}

/* Those of the placed blocks, which must not be taken for unplaced ones with the same limit. */
static void add_placed(const struct tarn_exact_state *state, struct tarn_exact_print *sum,
                       const uint64_t *set)
{
    for (uint32_t w = 0; w < state->instance->set_words; w++) {
        for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1) {
            const uint64_t *word = state->print[tarn_set_next(w, rest)].word;
            uint64_t x = word[0] * UINT64_C(0xbf58476d1ce4e5b9);
            uint64_t y = word[1] * UINT64_C(0x94d049bb133111eb);
            sum->word[0] += x ^ x >> 32;
            sum->word[1] += y ^ y >> 32;
        }
    }
}

struct tarn_exact_print tarn_exact_describe(struct tarn_exact_state *state, const uint64_t *set)
{
    struct tarn_exact_print sum = {{0, 0}};
    uint64_t *near = state->blame; /* free to be used: nothing has failed */
    clear_blame(state);
    for (uint32_t w = 0; w < state->instance->set_words; w++) {
        for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1) {
            uint32_t b = tarn_set_next(w, rest);
            add_print(&sum, &state->print[b]);
            if (!state->instance->plain[b]) join_placed_neighbours(state, near, b);
        }
    }
    add_placed(state, &sum, near);
    return sum;
}

void tarn_exact_blame_all(struct tarn_exact_state *state, const uint64_t *set)
{
    clear_blame(state);
    for (uint32_t w = 0; w < state->instance->set_words; w++) {
        for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1) {
            uint32_t b = tarn_set_next(w, rest);
            join(state, state->blame, tarn_exact_reasons(state, b));
            join_placed_neighbours(state, state->blame, b);
        }
    }
}
