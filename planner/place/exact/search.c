/* Depth-first search over the steps of exact/rules.c: places a block, continues with the remaining
 * blocks, component by component if they fall apart. If that fails, it postpones the block or, if
 * the failure does not follow from the block, jumps back over it. Failed states are remembered, in
 * a table in which newer states replace older ones.
 *
 * Cost: a node looks at all blocks of its component, a few operations each, beside its step. */
#include "search.h"

#include <assert.h>
#include <string.h>

#include "planner/place/effort/effort.h"
#include "rules.h"
#include "state.h"

/* FAILED_A_BLOCK: entries of the table of failed states for each block; FAILED_MAX: entries, a
 * power of two; STOP_EVERY: nodes between two looks at the clock. */
enum { FAILED_A_BLOCK = 64, FAILED_MAX = 1 << 16, STOP_EVERY = 64 };

struct tarn_exact_search {
    struct tarn_exact_state state;
    const struct tarn_exact_guide *guide;
    uint64_t *sets;   /* by depth, see struct depth */
    uint64_t *border; /* empty but while a component is split off */
    struct tarn_exact_fingerprint *failed;
    size_t failed_count;
    bool hopeless; /* proved before the first node */
    uint64_t nodes;
    int64_t *positions;
};

/* ---- Picking ---- */

static bool comes_first(const struct tarn_exact_search *search, uint32_t b, uint32_t than)
{
    const int64_t *limit = search->state.limit;
    const uint32_t *rank = search->guide->rank;
    if (than == TARN_NONE) return true;
    if (limit[b] != limit[than]) return limit[b] < limit[than];
    return rank[b] < rank[than];
}

static uint32_t first_in_section(const struct tarn_exact_search *search, uint32_t s,
                                 const uint64_t *set)
{
    const struct tarn_exact_instance *instance = search->state.instance;
    uint32_t first = TARN_NONE;
    assert(s < instance->sections_count);
    for (uint32_t k = tarn_exact_open_begin(&search->state, s); k < instance->section_begin[s + 1];
         k++) {
        uint32_t b = instance->piece_block[search->state.order[k]];
        if (tarn_set_has(set, b) && comes_first(search, b, first)) first = b;
    }
    return first;
}

static uint32_t first_of_set(const struct tarn_exact_search *search, const uint64_t *set)
{
    uint32_t first = TARN_NONE;
    TARN_SET_EACH(b, w, search->state.instance->set_words, set[w]) {
        if (comes_first(search, b, first)) first = b;
    }
    return first;
}

/* Returns the section with the smallest slack; sections with fewer possible first pieces and with
 * more failures are preferred, after dom/wdeg (Boussemart, Hemery, Lecoutre, Sais 2004). */
static uint32_t tightest_section(const struct tarn_exact_search *search, const uint64_t *sections)
{
    const struct tarn_exact_state *state = &search->state;
    double room = (double)state->capacity + search->guide->slack, least = 0;
    uint32_t best = TARN_NONE;
    TARN_SET_EACH(s, w, state->instance->section_words, sections[w] & state->lively[w]) {
        double value = (room - (double)state->section_end[s]) * state->section_ease[s] *
                       state->section_firsts[s];
        if (best != TARN_NONE && value >= least) continue;
        least = value;
        best = s;
    }
    return best;
}

/* Picks a block with no lower neighbour: the lowest of all, or the one reached by going down from
 * the lowest block of the tightest section. */
static uint32_t pick(const struct tarn_exact_search *search, const uint64_t *set,
                     const uint64_t *sections)
{
    const int64_t *limit = search->state.limit;
    if (!search->guide->by_section) return first_of_set(search, set);
    uint32_t b = first_in_section(search, tightest_section(search, sections), set);
    for (uint32_t lower = b;;) {
        const uint64_t *adjacent = tarn_exact_adjacent(&search->state, b);
        TARN_SET_EACH(c, w, search->state.instance->set_words, adjacent[w] & set[w]) {
            if (limit[c] < limit[lower] || (lower != b && comes_first(search, c, lower))) lower = c;
        }
        if (lower == b) return b;
        b = lower;
    }
}

/* ---- Failed states ---- */

static struct tarn_exact_fingerprint *failed_slot(const struct tarn_exact_search *search,
                                                  const struct tarn_exact_fingerprint *fingerprint)
{
    return &search->failed[fingerprint->word[0] & (search->failed_count - 1)];
}

static bool is_failed(const struct tarn_exact_search *search,
                      const struct tarn_exact_fingerprint *fingerprint)
{
    const struct tarn_exact_fingerprint *slot = failed_slot(search, fingerprint);
    return slot->word[0] == fingerprint->word[0] && slot->word[1] == fingerprint->word[1];
}

/* ---- Parts ---- */

/* The data of one depth of the search: its component with the sections that it has pieces in, and
 * the remaining blocks after one of them is placed. */
struct depth {
    uint64_t *set, *sections, *rest, *rest_sections;
};

static struct depth depth_at(const struct tarn_exact_search *search, uint32_t depth)
{
    size_t set = search->state.instance->set_words;
    size_t sections = search->state.instance->section_words;
    assert(depth <= search->state.instance->count + 1);
    uint64_t *at = search->sets + depth * 2 * (set + sections);
    return (struct depth){at, at + set, at + set + sections, at + 2 * set + sections};
}

/* ---- The search ---- */

static bool should_stop(const struct tarn_exact_search *search)
{
    const struct tarn_exact_guide *guide = search->guide;
    struct tarn_exact_effort done = tarn_exact_search_effort(search);
    if (done.nodes > guide->most.nodes || done.visits > guide->most.visits ||
        done.work > guide->most.work)
        return true;
    if (search->nodes % STOP_EVERY != 0) return false;
    if (guide->winner && tarn_winner_is_before(guide->winner, guide->number)) return true;
    return tarn_deadline_is_over(guide->deadline);
}

static enum tarn_exact_result solve_rest(struct tarn_exact_search *search, uint32_t depth,
                                         uint32_t b);

static void take_back(struct tarn_exact_state *state, uint32_t b,
                      const struct tarn_exact_mark *mark)
{
    assert(!tarn_set_has(state->unplaced, b));
    tarn_exact_state_count(state, b, false);
    tarn_exact_state_close(state, mark);
}

/* Takes back parts that were solved before another one failed. */
static void unplace(struct tarn_exact_state *state, const uint64_t *set, uint32_t but)
{
    TARN_SET_EACH(b, w, state->instance->set_words, set[w] & ~state->unplaced[w]) {
        if (b != but) tarn_exact_state_count(state, b, false);
    }
}

/* Places b and solves the rest of the component; takes it back unless that succeeds. */
static enum tarn_exact_result try_block(struct tarn_exact_search *search, uint32_t depth,
                                        uint32_t b)
{
    struct tarn_exact_state *state = &search->state;
    struct depth at = depth_at(search, depth);
    enum tarn_exact_result result = TARN_EXACT_INFEASIBLE;
    struct tarn_exact_mark mark;
    if (!tarn_exact_state_open(state, &mark)) return TARN_EXACT_STOPPED;
    if (tarn_exact_put(state, b)) {
        memcpy(at.rest, at.set, state->instance->set_words * sizeof *at.rest);
        tarn_set_drop(at.rest, b);
        result = solve_rest(search, depth, b);
        if (result == TARN_EXACT_FOUND) return result;
        unplace(state, at.set, b);
    }
    take_back(state, b, &mark);
    return result;
}

/* Solves the component at this depth. Its blocks stay placed if no block is left. */
static enum tarn_exact_result solve(struct tarn_exact_search *search, uint32_t depth)
{
    struct tarn_exact_state *state = &search->state;
    struct depth at = depth_at(search, depth);
    enum tarn_exact_result result;
    struct tarn_exact_mark mark;
    struct tarn_exact_fingerprint fingerprint = tarn_exact_describe(state, at.set);
    if (is_failed(search, &fingerprint)) {
        tarn_exact_explain_failed(state, at.set);
        return TARN_EXACT_INFEASIBLE;
    }
    if (!tarn_exact_state_open(state, &mark)) return TARN_EXACT_STOPPED;
    for (;;) {
        search->nodes++;
        result = TARN_EXACT_STOPPED;
        if (should_stop(search)) break;
        uint32_t b = pick(search, at.set, at.sections);
        assert(tarn_set_has(at.set, b) && tarn_set_has(state->unplaced, b));
        result = try_block(search, depth, b);
        if (result == TARN_EXACT_FOUND) return result;
        if (result == TARN_EXACT_STOPPED) break;
        bool concerned = tarn_set_has(state->failure, b);
        tarn_set_drop(state->failure, b);
        if (!concerned || !tarn_exact_postpone(state, b)) {
            *failed_slot(search, &fingerprint) = fingerprint;
            break;
        }
    }
    tarn_exact_state_close(state, &mark);
    return result;
}

/* Solves the remaining blocks of this depth, component by component, the component with the
 * tightest section first. */
static enum tarn_exact_result solve_parts(struct tarn_exact_search *search, uint32_t depth)
{
    struct depth at = depth_at(search, depth), below = depth_at(search, depth + 1);
    while (!tarn_set_is_empty(at.rest, search->state.instance->set_words)) {
        tarn_exact_sections_of_set(&search->state, at.rest, at.rest_sections);
        uint32_t b = first_in_section(search, tightest_section(search, at.rest_sections), at.rest);
        tarn_exact_split_off(&search->state, b, search->border, at.rest, below.set);
        tarn_exact_sections_of_set(&search->state, below.set, below.sections);
        enum tarn_exact_result result = solve(search, depth + 1);
        if (result != TARN_EXACT_FOUND) return result;
    }
    return TARN_EXACT_FOUND;
}

/* The same after b was placed, which leaves a single component in most cases. */
static enum tarn_exact_result solve_rest(struct tarn_exact_search *search, uint32_t depth,
                                         uint32_t b)
{
    const struct tarn_exact_instance *instance = search->state.instance;
    struct depth at = depth_at(search, depth), below = depth_at(search, depth + 1);
    if (!tarn_exact_stays_whole(&search->state, b, at.rest)) return solve_parts(search, depth);
    const uint64_t *sections = tarn_exact_sections(&search->state, b);
    memcpy(below.set, at.rest, instance->set_words * sizeof *below.set);
    memcpy(below.sections, at.sections, instance->section_words * sizeof *below.sections);
    TARN_SET_EACH(s, w, instance->section_words, sections[w]) {
        if (!tarn_exact_is_open(&search->state, s)) tarn_set_drop(below.sections, s);
    }
    return solve(search, depth + 1);
}

/* ---- Runs ---- */

void tarn_exact_search_share(struct tarn_exact_search *const *searches, uint32_t count)
{
    for (uint32_t s = 0; s < searches[0]->state.instance->sections_count; s++) {
        double sum = 0; /* of 1 + failures */
        for (uint32_t i = 0; i < count; i++) sum += 1 / searches[i]->state.section_ease[s];
        for (uint32_t i = 0; i < count; i++) searches[i]->state.section_ease[s] = count / sum;
    }
}

enum tarn_exact_result tarn_exact_search_run(struct tarn_exact_search *search,
                                             const struct tarn_exact_guide *guide)
{
    struct tarn_exact_state *state = &search->state;
    struct depth top = depth_at(search, 0);
    struct tarn_exact_mark mark;
    size_t set_size = state->instance->set_words * sizeof *top.rest;
    search->guide = guide;
    assert(tarn_exact_state_is_valid(state) && state->placed_count == 0);
    search->nodes = state->packed = state->work = 0;
    if (search->hopeless) return TARN_EXACT_INFEASIBLE;
    memcpy(top.rest, state->unplaced, set_size);
    memcpy(top.set, state->unplaced, set_size);
    if (!tarn_exact_state_open(state, &mark)) return TARN_EXACT_STOPPED;
    enum tarn_exact_result result = solve_parts(search, 0);
    if (result == TARN_EXACT_FOUND)
        memcpy(search->positions, state->limit, state->instance->count * sizeof *state->limit);
    unplace(state, top.set, TARN_NONE);
    assert(result != TARN_EXACT_FOUND || state->unplaced_count == state->instance->count);
    tarn_exact_state_close(state, &mark);
    tarn_exact_state_rest(state);
    return result;
}

const int64_t *tarn_exact_search_positions(const struct tarn_exact_search *search)
{
    return search->positions;
}

struct tarn_exact_effort tarn_exact_search_effort(const struct tarn_exact_search *search)
{
    const struct tarn_exact_instance *instance = search->state.instance;
    uint64_t node = TARN_WORK_EXACT_NODE + (uint64_t)TARN_WORK_EXACT_BLOCK * instance->count +
                    instance->section_words;
    return (struct tarn_exact_effort){
        .nodes = search->nodes,
        .visits = search->nodes * instance->piece_begin[instance->count] + search->state.packed,
        .work = search->nodes * node + search->state.work};
}

/* How many failed states are remembered: a power of two. */
static size_t failed_room(const struct tarn_exact_instance *instance)
{
    size_t wanted = ((size_t)instance->count + 1) * FAILED_A_BLOCK, room = 1;
    while (room < FAILED_MAX && room < wanted) room *= 2;
    return room;
}

struct tarn_exact_search *tarn_exact_search_create(struct tarn_region *region,
                                                   const struct tarn_exact_instance *instance,
                                                   int64_t capacity)
{
    size_t set = instance->set_words, section_set = instance->section_words;
    struct tarn_exact_search *search = tarn_region_take(region, 1, sizeof *search);
    if (!search) return NULL;
    search->failed_count = failed_room(instance);
    search->positions = tarn_region_take(region, instance->count, sizeof *search->positions);
    search->border = tarn_region_take(region, set, sizeof *search->border);
    search->sets = tarn_region_take(region, ((size_t)instance->count + 2) * 2 * (set + section_set),
                                    sizeof *search->sets);
    search->failed = tarn_region_take(region, search->failed_count, sizeof *search->failed);
    if (!tarn_exact_state_init(&search->state, region, instance, capacity)) {
        tarn_exact_search_finish(search);
        return NULL;
    }
    search->hopeless = !tarn_exact_begin(&search->state);
    return search;
}

void tarn_exact_search_finish(struct tarn_exact_search *search)
{
    if (search) tarn_exact_state_finish(&search->state);
}
