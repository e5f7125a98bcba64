/* Implements the state of exact search. Data that a level changes is saved once, at the first
 * change in the level: a trail, as in constraint solvers, with stamps that mark saved items. Cost
 * of going back: the changed items, at most all blocks and sections for each level. */
#include "state.h"

#include <assert.h>
#include <string.h>

#include "planner/place/effort/effort.h"
#include "streams/base/array.h"
#include "streams/base/memory.h"
#include "streams/base/random.h"

/* More than any capacity: a section with that much open is packed again whatever rises. */
#define OPEN_UNKNOWN ((int64_t)1 << 62)
/* Words of saved explanations that a state keeps from one run to the next: 1 MiB. */
enum { REST_WORDS = 1 << 17 };

/* ---- Room ---- */

/* Room for these numbers of saved blocks and sections. */
static bool make_room(struct tarn_exact_state *state, size_t blocks, size_t sections)
{
    size_t words = blocks * state->instance->set_words;
    void *saved = tarn_array_grow(state->saved_blocks, &state->saved_blocks_room, blocks,
                                  sizeof *state->saved_blocks);
    void *sets = tarn_array_grow(state->saved_explanations, &state->saved_explanations_room, words,
                                 sizeof *state->saved_explanations);
    void *ends = tarn_array_grow(state->saved_sections, &state->saved_sections_room, sections,
                                 sizeof *state->saved_sections);
    if (saved) state->saved_blocks = saved;
    if (sets) state->saved_explanations = sets;
    if (ends) state->saved_sections = ends;
    return saved && sets && ends;
}

bool tarn_exact_state_open(struct tarn_exact_state *state, struct tarn_exact_mark *mark)
{
    size_t blocks = state->saved_blocks_count + state->instance->count;
    size_t sections = state->saved_sections_count + state->instance->sections_count;
    *mark = (struct tarn_exact_mark){state->saved_blocks_count, state->saved_sections_count,
                                     state->level};
    state->level = ++state->levels_count;
    assert(state->level > mark->level);
    return make_room(state, blocks + 1, sections + 1);
}

/* ---- Setting and going back ---- */

static struct tarn_exact_fingerprint fingerprint_of(uint32_t b, int64_t limit, int64_t hole)
{
    uint64_t z = tarn_random_mix((uint64_t)limit * UINT64_C(0x9e3779b97f4a7c15) + b);
    z = tarn_random_mix(z ^ (uint64_t)hole);
    return (struct tarn_exact_fingerprint){{z, tarn_random_mix(z ^ UINT64_C(0x2545f4914f6cdd1d))}};
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
    assert(state->saved_blocks_count < state->saved_blocks_room);
    memcpy(state->saved_explanations + state->saved_blocks_count * words,
           tarn_exact_explanation(state, b), words * sizeof(uint64_t));
    state->work += (uint64_t)TARN_WORK_EXACT_SAVE * words;
    state->saved_blocks[state->saved_blocks_count++] = (struct tarn_exact_saved_block){
        state->limit[b], state->hole[b], state->fingerprint[b], b, state->block_level[b]};
    state->block_level[b] = state->level;
}

void tarn_exact_state_set(struct tarn_exact_state *state, uint32_t b, int64_t limit, int64_t hole)
{
    assert(state->block_level[b] == state->level);
    write_block(state, b, limit, hole);
    state->fingerprint[b] = fingerprint_of(b, limit, hole < limit ? hole : limit);
}

void tarn_exact_state_set_end(struct tarn_exact_state *state, uint32_t s, int64_t end)
{
    if (state->section_end[s] == end) return;
    if (state->section_level[s] != state->level) {
        assert(state->saved_sections_count < state->saved_sections_room);
        state->saved_sections[state->saved_sections_count++] =
            (struct tarn_exact_saved_section){state->section_end[s], s, state->section_level[s]};
        state->section_level[s] = state->level;
    }
    state->section_end[s] = end;
}

void tarn_exact_state_close(struct tarn_exact_state *state, const struct tarn_exact_mark *mark)
{
    uint32_t words = state->instance->set_words;
    assert(mark->blocks <= state->saved_blocks_count);
    assert(mark->sections <= state->saved_sections_count);
    while (state->saved_blocks_count > mark->blocks) {
        const struct tarn_exact_saved_block *saved =
            &state->saved_blocks[--state->saved_blocks_count];
        write_block(state, saved->block, saved->limit, saved->hole);
        memcpy(tarn_exact_explanation(state, saved->block),
               state->saved_explanations + state->saved_blocks_count * words,
               words * sizeof(uint64_t));
        state->fingerprint[saved->block] = saved->fingerprint;
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
 * its open pieces, or the one before does and has others. One that becomes lively again has to be
 * packed: that was left out while it was not lively. */
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

/* A block in these sections is placed, or open again: counts in the sections in which it ends or
 * begins. */
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
    assert(tarn_set_has(state->simple_sections, s));
    while (state->order[k] != p) k++;
    for (; k > front; k--) state->order[k] = state->order[k - 1];
    state->order[front] = p;
}

/* Keeps the list of placed blocks in order; a block that is placed or taken back is near its
 * end. */
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
    assert(i < state->instance->count && tarn_set_has(state->unplaced, b));
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
    assert(tarn_set_has(state->unplaced, b) == placed);
    tarn_set_put(state->unplaced, b, !placed);
    state->unplaced_count -= step;
    if (placed)
        list_placed(state, b);
    else
        unlist_placed(state, b);
    TARN_SET_EACH(s, w, instance->section_words, sections[w]) {
        if (tarn_set_has(state->simple_sections, s)) {
            if (placed) move_to_front(state, s, instance->piece_begin[b]);
            state->section_open[s] -= placed ? instance->size[b] : -instance->size[b];
        }
        state->section_placed[s] += step;
    }
    count_ends(state, sections, step);
}

/* ---- Whether it is valid ---- */

static bool block_is_valid(const struct tarn_exact_state *state, uint32_t b)
{
    const struct tarn_exact_instance *instance = state->instance;
    int64_t limit = state->limit[b], hole = state->hole[b];
    struct tarn_exact_fingerprint fingerprint =
        fingerprint_of(b, limit, hole < limit ? hole : limit);
    if (limit < 0 || limit % instance->alignment[b] != 0) return false;
    if (tarn_set_has(state->postponed, b) != (hole < limit)) return false;
    if (memcmp(&fingerprint, &state->fingerprint[b], sizeof fingerprint) != 0) return false;
    for (uint32_t p = instance->piece_begin[b]; p < instance->piece_begin[b + 1]; p++)
        if (state->piece_limit[p] != limit + instance->piece_within[p]) return false;
    return true;
}

static bool section_is_valid(const struct tarn_exact_state *state, uint32_t s)
{
    const struct tarn_exact_instance *instance = state->instance;
    bool is_simple = tarn_set_has(state->simple_sections, s);
    uint32_t placed = 0;
    int64_t open = 0;
    for (uint32_t k = instance->section_begin[s]; k < instance->section_begin[s + 1]; k++) {
        uint32_t b = instance->piece_block[state->order[k]];
        bool is_placed = !tarn_set_has(state->unplaced, b);
        placed += is_placed;
        open += is_placed ? 0 : instance->size[b];
        if (is_simple && is_placed != (k < tarn_exact_open_begin(state, s))) return false;
    }
    return placed == state->section_placed[s] && (!is_simple || open == state->section_open[s]);
}

bool tarn_exact_state_is_valid(const struct tarn_exact_state *state)
{
    const struct tarn_exact_instance *instance = state->instance;
    if (tarn_set_size(state->unplaced, instance->set_words) != state->unplaced_count) return false;
    if (state->placed_count + state->unplaced_count != instance->count) return false;
    for (uint32_t i = 0; i < state->placed_count; i++) {
        if (tarn_set_has(state->unplaced, state->placed[i])) return false;
        if (i > 0 && state->limit[state->placed[i]] < state->limit[state->placed[i - 1]])
            return false;
    }
    for (uint32_t b = 0; b < instance->count; b++)
        if (!block_is_valid(state, b)) return false;
    for (uint32_t s = 0; s < instance->sections_count; s++)
        if (!section_is_valid(state, s)) return false;
    return true;
}

/* ---- The whole ---- */

static bool allocate(struct tarn_exact_state *state, struct tarn_region *region)
{
    const struct tarn_exact_instance *instance = state->instance;
    size_t count = instance->count, sections = instance->sections_count;
    size_t pieces = instance->piece_begin[instance->count];
    size_t set = instance->set_words, section_set = instance->section_words;
    state->limit = tarn_region_take(region, count, sizeof *state->limit);
    state->hole = tarn_region_take(region, count, sizeof *state->hole);
    state->piece_limit = tarn_region_take(region, pieces, sizeof *state->piece_limit);
    state->unplaced = tarn_region_take(region, set, sizeof *state->unplaced);
    state->postponed = tarn_region_take(region, set, sizeof *state->postponed);
    state->placed = tarn_region_take(region, count, sizeof *state->placed);
    state->supporter = tarn_region_take(region, count, sizeof *state->supporter);
    state->fingerprint = tarn_region_take(region, count, sizeof *state->fingerprint);
    state->explanations = tarn_region_take(region, count * set, sizeof *state->explanations);
    state->failure = tarn_region_take(region, set, sizeof *state->failure);
    state->order =
        tarn_region_take(region, instance->section_begin[sections], sizeof *state->order);
    state->section_end = tarn_region_take(region, sections, sizeof *state->section_end);
    state->section_placed = tarn_region_take(region, sections, sizeof *state->section_placed);
    state->section_open = tarn_region_take(region, sections, sizeof *state->section_open);
    state->section_ease = tarn_region_take(region, sections, sizeof *state->section_ease);
    state->section_firsts = tarn_region_take(region, sections, sizeof *state->section_firsts);
    state->simple_sections = tarn_region_take(region, section_set, sizeof *state->simple_sections);
    state->not_in_next = tarn_region_take(region, sections, sizeof *state->not_in_next);
    state->not_in_last = tarn_region_take(region, sections, sizeof *state->not_in_last);
    state->lively = tarn_region_take(region, section_set, sizeof *state->lively);
    state->unsupported = tarn_region_take(region, set, sizeof *state->unsupported);
    state->unpacked = tarn_region_take(region, section_set, sizeof *state->unpacked);
    state->not_first_due = tarn_region_take(region, section_set, sizeof *state->not_first_due);
    state->why = tarn_region_take(region, set, sizeof *state->why);
    state->block_level = tarn_region_take(region, count, sizeof *state->block_level);
    state->section_level = tarn_region_take(region, sections, sizeof *state->section_level);
    return !region->is_exhausted;
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

bool tarn_exact_state_init(struct tarn_exact_state *state, struct tarn_region *region,
                           const struct tarn_exact_instance *instance, int64_t capacity)
{
    struct tarn_exact_mark mark;
    *state = (struct tarn_exact_state){.instance = instance, .capacity = capacity};
    if (!allocate(state, region) || !tarn_exact_state_open(state, &mark)) return false;
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
    tarn_free(state->saved_blocks);
    tarn_free(state->saved_explanations);
    tarn_free(state->saved_sections);
}

/* Shrinks the items' room to `count` items; leaves them unchanged if there is no memory. */
static void *shrink(void *items, size_t *room, size_t count, size_t size)
{
    size_t least = count > 0 ? count : 1;
    void *shorter = least < *room ? tarn_resize(items, least * size) : NULL;
    if (!shorter) return items;
    *room = least;
    return shorter;
}

void tarn_exact_state_rest(struct tarn_exact_state *state)
{
    size_t blocks = state->saved_blocks_count, sections = state->saved_sections_count;
    if (state->saved_explanations_room < REST_WORDS) return;
    state->saved_blocks =
        shrink(state->saved_blocks, &state->saved_blocks_room, blocks, sizeof *state->saved_blocks);
    state->saved_explanations =
        shrink(state->saved_explanations, &state->saved_explanations_room,
               blocks * state->instance->set_words, sizeof *state->saved_explanations);
    state->saved_sections = shrink(state->saved_sections, &state->saved_sections_room, sections,
                                   sizeof *state->saved_sections);
}
