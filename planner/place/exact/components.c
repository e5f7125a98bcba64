/* Finds components of unplaced blocks: sets without conflicts between them, which are solved one
 * after another. Cost of splitting one off: the conflicts of its blocks, n / 64 words each. */
#include "state.h"

#include <assert.h>
#include <string.h>

void tarn_exact_sections_of_set(const struct tarn_exact_state *state, const uint64_t *set,
                                uint64_t *sections)
{
    const struct tarn_exact_instance *instance = state->instance;
    memset(sections, 0, instance->section_words * sizeof *sections);
    TARN_SET_EACH(c, w, instance->set_words, set[w]) {
        tarn_set_join(sections, tarn_exact_sections(state, c), instance->section_words);
    }
}

void tarn_exact_split_off(const struct tarn_exact_state *state, uint32_t b, uint64_t *border,
                          uint64_t *rest, uint64_t *part)
{
    uint32_t words = state->instance->set_words;
    memset(part, 0, words * sizeof *part);
    assert(tarn_set_has(rest, b) && tarn_set_is_empty(border, words));
    tarn_set_add(border, b);
    tarn_set_drop(rest, b);
    for (uint32_t w = 0; w < words;) {
        if (border[w] == 0) {
            w++;
            continue;
        }
        uint32_t c = tarn_set_next(w, border[w]);
        const uint64_t *adjacent = tarn_exact_adjacent(state, c);
        tarn_set_drop(border, c);
        tarn_set_add(part, c);
        for (uint32_t v = 0; v < words; v++) {
            uint64_t next = adjacent[v] & rest[v];
            border[v] |= next;
            rest[v] &= ~next;
            if (next != 0 && v < w) w = v;
        }
    }
}

/* Is c in conflict with all others of b's neighbours in `rest`? */
static bool is_next_to_all(const struct tarn_exact_state *state, uint32_t c, uint32_t b,
                           const uint64_t *rest)
{
    const uint64_t *of_b = tarn_exact_adjacent(state, b);
    const uint64_t *of_c = tarn_exact_adjacent(state, c);
    for (uint32_t w = 0; w < state->instance->set_words; w++) {
        uint64_t others = of_b[w] & rest[w] & ~of_c[w];
        if (w == c / 64) others &= ~((uint64_t)1 << (c % 64));
        if (others != 0) return false;
    }
    return true;
}

bool tarn_exact_stays_whole(const struct tarn_exact_state *state, uint32_t b, const uint64_t *rest)
{
    const uint64_t *adjacent = tarn_exact_adjacent(state, b);
    TARN_SET_EACH(c, w, state->instance->set_words, adjacent[w] & rest[w]) {
        if (is_next_to_all(state, c, b, rest)) return true;
    }
    return false;
}
