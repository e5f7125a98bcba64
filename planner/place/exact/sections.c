/* Implements rules (section) and (first) of exact/rules.c. The pieces of a section need disjoint
 * bytes, and none begins below its limit:
 *
 *     capacity 10    a: limit 0, size 3    packed: aaabbbbccc, ends at 10: they fit
 *                    b: limit 0, size 4    c first: ..cccaaabbbb, ends at 12: they do not,
 *                    c: limit 2, size 3    so c is above a or b, and its limit becomes 3
 *
 * They stay nearly sorted by limit from state to state.
 * Cost of a section: its pieces, and for each late piece the pieces below it that it may follow. */
#include "rules.h"

#include <assert.h>

#include "planner/place/effort/effort.h"

/* ---- Packing ---- */

/* Inserts order[i] among the entries before it, which are in order. */
static void sort_in(struct tarn_exact_state *state, uint32_t begin, uint32_t i)
{
    const int64_t *limit = state->piece_limit;
    uint32_t *order = state->order, piece = order[i], from = i;
    assert(begin < i);
    for (; i > begin && limit[order[i - 1]] > limit[piece]; i--) order[i] = order[i - 1];
    order[i] = piece;
    state->work += (uint64_t)TARN_WORK_EXACT_PIECE * (from - i + 1);
}

/* Sorts the pieces that have to be packed, and packs them. */
static int64_t pack(struct tarn_exact_state *state, uint32_t s)
{
    const struct tarn_exact_instance *instance = state->instance;
    const int64_t *limit = state->piece_limit, *size = instance->piece_size;
    const uint32_t *order = state->order;
    uint32_t begin = tarn_exact_open_begin(state, s), end = instance->section_begin[s + 1];
    int64_t top = 0, last = 0;
    assert(begin <= end);
    bool sorted = true;
    state->packed += end - begin;
    state->work += TARN_WORK_EXACT_SECTION + (uint64_t)TARN_WORK_EXACT_PIECE * (end - begin);
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

/* ---- Fitting ---- */

/* Explains a section that does not fit. It is sorted, and only the group from which on it does not
 * fit counts. */
static void explain_section(struct tarn_exact_state *state, uint32_t s)
{
    const struct tarn_exact_instance *instance = state->instance;
    uint32_t begin = tarn_exact_open_begin(state, s);
    int64_t sum = 0;
    tarn_exact_clear_failure(state);
    for (uint32_t i = instance->section_begin[s + 1]; i-- > begin;) {
        uint32_t p = state->order[i];
        sum += instance->piece_size[p];
        tarn_exact_join_explanation(state, state->failure, instance->piece_block[p]);
        if (state->piece_limit[p] + sum > state->capacity) return;
    }
}

bool tarn_exact_pack_all(struct tarn_exact_state *state)
{
    for (uint32_t w = 0; w < state->instance->section_words; w++) {
        uint64_t listed = state->unpacked[w] & state->lively[w];
        for (uint64_t rest = listed; rest != 0; rest &= rest - 1) {
            uint32_t s = tarn_set_next(w, rest);
            int64_t end = pack(state, s);
            if (end > state->capacity) {
                state->section_ease[s] = 1 / (1 / state->section_ease[s] + 1);
                explain_section(state, s);
                return false;
            }
            tarn_exact_state_set_end(state, s, end);
        }
        state->not_first_due[w] |= listed & state->simple_sections[w];
        state->unpacked[w] = 0;
    }
    return true;
}

/* ---- Not first ---- */

/* Of pieces order[begin] to order[end], the pieces starting at `late` cannot be first: each is
 * above one that can. */
static void raise_late(struct tarn_exact_state *state, uint32_t begin, uint32_t late, uint32_t end,
                       int64_t position, uint32_t *raises)
{
    const struct tarn_exact_instance *instance = state->instance;
    uint32_t words = instance->set_words;
    uint64_t *why = state->why;
    assert(begin <= late && late < end);
    tarn_set_clear(why, words);
    for (uint32_t k = begin; k < end; k++)
        tarn_exact_join_explanation(state, why, instance->piece_block[state->order[k]]);
    for (uint32_t k = late; k < end; k++) {
        if (*raises == 0) return;
        uint32_t b = instance->piece_block[state->order[k]];
        if (state->limit[b] >= position) continue;
        tarn_exact_state_save(state, b);
        tarn_set_join(tarn_exact_explanation(state, b), why, words);
        tarn_exact_raise(state, b, position, state->hole[b]);
        --*raises;
    }
}

/* Raises order[i] and the pieces after it, of size `sum` together, if they and some pieces before
 * them do not fit above the limit of order[i]. Raises nothing if a piece before them ends at or
 * below this limit. */
static void raise_if_not_first(struct tarn_exact_state *state, uint32_t begin, uint32_t i,
                               uint32_t end, int64_t sum, uint32_t *raises)
{
    state->work += (uint64_t)TARN_WORK_EXACT_PIECE * (i - begin);
    assert(begin <= i && i < end && sum > 0);
    const int64_t *limit = state->piece_limit, *size = state->instance->piece_size;
    const uint32_t *order = state->order;
    int64_t own = limit[order[i]], least = TARN_EXACT_NOWHERE;
    for (uint32_t k = i; k-- > begin;) {
        int64_t top = limit[order[k]] + size[order[k]];
        if (top <= own) return;
        if (top < least) least = top;
        sum += size[order[k]];
        if (own + sum > state->capacity) {
            raise_late(state, k, i, end, least, raises);
            return;
        }
    }
}

/* Looks for late pieces in a section of lone blocks, from the latest on. Raises may have left it
 * unsorted: then it is packed once more first. */
static void raise_late_of_section(struct tarn_exact_state *state, uint32_t s, uint32_t *raises)
{
    const int64_t *limit = state->piece_limit, *size = state->instance->piece_size;
    const uint32_t *order = state->order;
    uint32_t begin = tarn_exact_open_begin(state, s), end = state->instance->section_begin[s + 1];
    int64_t latest = state->capacity - state->section_open[s], sum = 0;
    uint32_t i = end;
    state->work += TARN_WORK_EXACT_SECTION;
    while (i > begin && limit[order[i - 1]] > latest) {
        int64_t own = limit[order[--i]];
        sum += size[order[i]];
        if (i > begin && limit[order[i - 1]] > own) {
            tarn_set_add(state->unpacked, s);
            return;
        }
        if (i == begin || limit[order[i - 1]] < own)
            raise_if_not_first(state, begin, i, end, sum, raises);
    }
    if (i > begin) state->section_firsts[s] = i - begin;
}

bool tarn_exact_raise_not_first(struct tarn_exact_state *state, uint32_t *raises)
{
    uint32_t before = *raises;
    for (uint32_t w = 0; w < state->instance->section_words; w++) {
        for (; state->not_first_due[w] != 0 && *raises > 0;
             state->not_first_due[w] &= state->not_first_due[w] - 1)
            raise_late_of_section(state, tarn_set_next(w, state->not_first_due[w]), raises);
    }
    return *raises < before;
}
