/* The state of exact search. What a level changes is saved once, when it is first touched in it: a
 * trail, as in constraint solvers, with stamps that tell what is on it already. Cost: of going
 * back, what was changed; no more than all blocks and sections a level. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "streams/base/random.h"

/* So much that a section of which it is told is packed again whatever rises. */
#define OPEN_UNKNOWN ((int64_t)1 << 62)

/* ---- Room ---- */

static bool make_room(void **array, size_t *room, size_t count, size_t size)
{
    if (count <= *room) return true;
    size_t more = *room * 2 > count ? *room * 2 : count * 2;
    void *larger = realloc(*array, more * size);
    if (!larger) return false;
    *array = larger;
    *room = more;
    return true;
}

bool tarn_exact_state_open(struct tarn_exact_state *state, struct tarn_exact_mark *mark)
{
    size_t blocks = state->saved_blocks_count + state->instance->count;
    size_t sections = state->saved_sections_count + state->instance->sections_count;
    *mark = (struct tarn_exact_mark){state->saved_blocks_count, state->saved_sections_count,
                                     state->level};
    state->level = ++state->levels_count;
    return make_room((void **)&state->saved_blocks, &state->saved_blocks_room, blocks,
                     sizeof *state->saved_blocks) &&
           make_room((void **)&state->saved_reasons, &state->saved_reasons_room,
                     blocks * state->instance->set_words, sizeof *state->saved_reasons) &&
           make_room((void **)&state->saved_sections, &state->saved_sections_room, sections,
                     sizeof *state->saved_sections);
}

/* ---- Setting and going back ---- */

static struct tarn_exact_print print_of(uint32_t b, int64_t limit, int64_t hole)
{
    uint64_t z = tarn_random_mix((uint64_t)limit * UINT64_C(0x9e3779b97f4a7c15) + b);
    z = tarn_random_mix(z ^ (uint64_t)hole);
    return (struct tarn_exact_print){{z, tarn_random_mix(z ^ UINT64_C(0x2545f4914f6cdd1d))}};
}

static void write_block(struct tarn_exact_state *state, uint32_t b, int64_t limit, int64_t hole)
{
    const struct tarn_exact_instance *instance = state->instance;
    state->limit[b] = limit;
    state->hole[b] = hole;
    tarn_set_put(state->postponed, b, hole < limit);
    for (uint32_t p = instance->piece_begin[b]; p < instance->piece_begin[b + 1]; p++)
        state->piece_limit[p] = limit + instance->piece_within[p];
}

void tarn_exact_state_save(struct tarn_exact_state *state, uint32_t b)
{
    uint32_t words = state->instance->set_words;
    if (state->block_level[b] == state->level) return;
    memcpy(state->saved_reasons + state->saved_blocks_count * words, tarn_exact_reasons(state, b),
           words * sizeof(uint64_t));
    state->saved_blocks[state->saved_blocks_count++] = (struct tarn_exact_saved_block){
        state->limit[b], state->hole[b], state->print[b], b, state->block_level[b]};
    state->block_level[b] = state->level;
}

void tarn_exact_state_set(struct tarn_exact_state *state, uint32_t b, int64_t limit, int64_t hole)
{
    write_block(state, b, limit, hole);
    state->print[b] = print_of(b, limit, hole < limit ? hole : limit);
}

void tarn_exact_state_set_end(struct tarn_exact_state *state, uint32_t s, int64_t end)
{
    if (state->section_end[s] == end) return;
    if (state->section_level[s] != state->level) {
        state->saved_sections[state->saved_sections_count++] =
            (struct tarn_exact_saved_section){state->section_end[s], s, state->section_level[s]};
        state->section_level[s] = state->level;
    }
    state->section_end[s] = end;
}

void tarn_exact_state_close(struct tarn_exact_state *state, const struct tarn_exact_mark *mark)
{
    uint32_t words = state->instance->set_words;
    while (state->saved_blocks_count > mark->blocks) {
        const struct tarn_exact_saved_block *saved =
            &state->saved_blocks[--state->saved_blocks_count];
        write_block(state, saved->block, saved->limit, saved->hole);
        memcpy(tarn_exact_reasons(state, saved->block),
               state->saved_reasons + state->saved_blocks_count * words, words * sizeof(uint64_t));
        state->print[saved->block] = saved->print;
        state->block_level[saved->block] = saved->level;
    }
    while (state->saved_sections_count > mark->sections) {
        const struct tarn_exact_saved_section *saved =
            &state->saved_sections[--state->saved_sections_count];
        state->section_end[saved->section] = saved->end;
        state->section_level[saved->section] = saved->level;
    }
    state->level = mark->level;
}

/* ---- Sections that matter ---- */

/* Neighbouring sections have much in common. A simple one is not lively when the next holds all
 * its open pieces, or the one before does and has others. One that comes to life again has to be
 * packed, for nobody did while it was not. */
static void see_if_lively(struct tarn_exact_state *state, uint32_t s)
{
    bool next = s + 1 < state->instance->sections_count && state->not_in_next[s] == 0 &&
                tarn_set_has(state->simple_sections, s + 1);
    bool last = s > 0 && state->not_in_last[s] == 0 && state->not_in_next[s - 1] > 0 &&
                tarn_set_has(state->simple_sections, s - 1);
    bool lively = !(next || last) || !tarn_set_has(state->simple_sections, s);
    if (lively && !tarn_set_has(state->lively, s)) tarn_set_add(state->unpacked, s);
    tarn_set_put(state->lively, s, lively);
}

/* A block in these sections is placed, or open again: counts in those that it ends or begins in. */
static void count_ends(struct tarn_exact_state *state, const uint64_t *sections, uint32_t step)
{
    uint32_t words = state->instance->section_words;
    for (uint32_t w = 0; w < words; w++) {
        uint64_t above = w + 1 < words ? sections[w + 1] << 63 : 0;
        uint64_t below = w > 0 ? sections[w - 1] >> 63 : 0;
        for (uint64_t rest = sections[w] & ~(sections[w] >> 1 | above); rest != 0;
             rest &= rest - 1) {
            uint32_t s = tarn_set_next(w, rest);
            state->not_in_next[s] -= step;
            see_if_lively(state, s);
            if (s + 1 < state->instance->sections_count) see_if_lively(state, s + 1);
        }
        for (uint64_t rest = sections[w] & ~(sections[w] << 1 | below); rest != 0;
             rest &= rest - 1) {
            uint32_t s = tarn_set_next(w, rest);
            state->not_in_last[s] -= step;
            see_if_lively(state, s);
        }
    }
}

/* ---- Placed or not ---- */

/* Moves piece p, which is placed, in front of all open ones of its section. */
static void move_to_front(struct tarn_exact_state *state, uint32_t s, uint32_t p)
{
    uint32_t front = tarn_exact_open_begin(state, s), k = front;
    while (state->order[k] != p) k++;
    for (; k > front; k--) state->order[k] = state->order[k - 1];
    state->order[front] = p;
}

/* Keeps the list of placed blocks in order; what is placed or taken back is near its end. */
static void list_placed(struct tarn_exact_state *state, uint32_t b)
{
    uint32_t i = state->placed_count++;
    for (; i > 0 && state->limit[state->placed[i - 1]] > state->limit[b]; i--)
        state->placed[i] = state->placed[i - 1];
    state->placed[i] = b;
}

static void unlist_placed(struct tarn_exact_state *state, uint32_t b)
{
    uint32_t i = --state->placed_count, next = state->placed[i];
    while (next != b) {
        uint32_t moved = next;
        next = state->placed[--i];
        state->placed[i] = moved;
    }
}

void tarn_exact_state_count(struct tarn_exact_state *state, uint32_t b, bool placed)
{
    const struct tarn_exact_instance *instance = state->instance;
    const uint64_t *sections = tarn_exact_sections(state, b);
    uint32_t step = placed ? 1 : UINT32_MAX;
    tarn_set_put(state->unplaced, b, !placed);
    state->unplaced_count -= step;
    if (placed)
        list_placed(state, b);
    else
        unlist_placed(state, b);
    for (uint32_t w = 0; w < instance->section_words; w++) {
        for (uint64_t rest = sections[w]; rest != 0; rest &= rest - 1) {
            uint32_t s = tarn_set_next(w, rest);
            if (tarn_set_has(state->simple_sections, s)) {
                if (placed) move_to_front(state, s, instance->piece_begin[b]);
                state->section_open[s] -= placed ? instance->size[b] : -instance->size[b];
            }
            state->section_placed[s] += step;
        }
    }
    count_ends(state, sections, step);
}

/* ---- The whole ---- */

static bool allocate(struct tarn_exact_state *state)
{
    const struct tarn_exact_instance *instance = state->instance;
    size_t count = (size_t)instance->count + 1, sections = (size_t)instance->sections_count + 1;
    size_t pieces = (size_t)instance->piece_begin[instance->count] + 1;
    size_t set = instance->set_words, section_set = instance->section_words;
    state->limit = calloc(count, sizeof *state->limit);
    state->hole = calloc(count, sizeof *state->hole);
    state->piece_limit = calloc(pieces, sizeof *state->piece_limit);
    state->unplaced = calloc(set, sizeof *state->unplaced);
    state->postponed = calloc(set, sizeof *state->postponed);
    state->placed = calloc(count, sizeof *state->placed);
    state->supporter = calloc(count, sizeof *state->supporter);
    state->print = calloc(count, sizeof *state->print);
    state->reasons = calloc(count * set, sizeof *state->reasons);
    state->blame = calloc(set, sizeof *state->blame);
    state->order =
        calloc((size_t)instance->section_begin[instance->sections_count] + 1, sizeof *state->order);
    state->section_end = calloc(sections, sizeof *state->section_end);
    state->section_placed = calloc(sections, sizeof *state->section_placed);
    state->section_open = calloc(sections, sizeof *state->section_open);
    state->section_ease = calloc(sections, sizeof *state->section_ease);
    state->section_firsts = calloc(sections, sizeof *state->section_firsts);
    state->simple_sections = calloc(section_set, sizeof *state->simple_sections);
    state->not_in_next = calloc(sections, sizeof *state->not_in_next);
    state->not_in_last = calloc(sections, sizeof *state->not_in_last);
    state->lively = calloc(section_set, sizeof *state->lively);
    state->unsupported = calloc(set, sizeof *state->unsupported);
    state->unpacked = calloc(section_set, sizeof *state->unpacked);
    state->unsifted = calloc(section_set, sizeof *state->unsifted);
    state->why = calloc(set, sizeof *state->why);
    state->block_level = calloc(count, sizeof *state->block_level);
    state->section_level = calloc(sections, sizeof *state->section_level);
    return state->limit && state->hole && state->piece_limit && state->unplaced &&
           state->postponed && state->placed && state->supporter && state->print &&
           state->reasons && state->blame && state->order && state->section_end &&
           state->section_placed && state->section_open && state->section_ease &&
           state->simple_sections && state->not_in_next && state->not_in_last && state->lively &&
           state->unsupported && state->unpacked && state->unsifted && state->why &&
           state->section_firsts && state->block_level && state->section_level;
}

static void take_section(struct tarn_exact_state *state, uint32_t s)
{
    const struct tarn_exact_instance *instance = state->instance;
    state->section_ease[s] = 1;
    state->section_firsts[s] = instance->section_begin[s + 1] - instance->section_begin[s];
    tarn_set_add(state->simple_sections, s);
    for (uint32_t k = instance->section_begin[s]; k < instance->section_begin[s + 1]; k++) {
        uint32_t b = instance->piece_block[instance->section_pieces[k]];
        state->order[k] = instance->section_pieces[k];
        state->section_open[s] += instance->size[b];
        if (!tarn_exact_is_simple(instance, b, b)) tarn_set_drop(state->simple_sections, s);
    }
    if (!tarn_set_has(state->simple_sections, s)) state->section_open[s] = OPEN_UNKNOWN;
}

bool tarn_exact_state_init(struct tarn_exact_state *state,
                           const struct tarn_exact_instance *instance, int64_t capacity)
{
    struct tarn_exact_mark mark;
    *state = (struct tarn_exact_state){.instance = instance, .capacity = capacity};
    if (!allocate(state) || !tarn_exact_state_open(state, &mark)) return false;
    state->unplaced_count = instance->count;
    for (uint32_t b = 0; b < instance->count; b++) tarn_set_add(state->unplaced, b);
    for (uint32_t s = 0; s < instance->sections_count; s++) take_section(state, s);
    for (uint32_t b = 0; b < instance->count; b++)
        count_ends(state, tarn_exact_sections(state, b), UINT32_MAX);
    for (uint32_t s = 0; s < instance->sections_count; s++) see_if_lively(state, s);
    return true;
}

void tarn_exact_state_finish(struct tarn_exact_state *state)
{
    free(state->limit);
    free(state->hole);
    free(state->piece_limit);
    free(state->unplaced);
    free(state->postponed);
    free(state->placed);
    free(state->supporter);
    free(state->print);
    free(state->reasons);
    free(state->blame);
    free(state->saved_reasons);
    free(state->order);
    free(state->section_end);
    free(state->section_placed);
    free(state->section_open);
    free(state->section_ease);
    free(state->section_firsts);
    free(state->simple_sections);
    free(state->not_in_next);
    free(state->not_in_last);
    free(state->lively);
    free(state->unsupported);
    free(state->unpacked);
    free(state->unsifted);
    free(state->why);
    free(state->block_level);
    free(state->section_level);
    free(state->saved_blocks);
    free(state->saved_sections);
}
