/* Placements by every priority order, in parallel; the first of those that meet the aim wins.
 * Source: docs/how-it-works.md, "Placement". Cost: a placement for each priority order, see
 * greedy.c. */
#include "search.h"

#include <assert.h>
#include <string.h>

#include "planner/place/effort/effort.h"
#include "streams/base/checked.h"

/* Places placed before a placement looks whether it still matters. */
enum { SLICE = 32768 };
/* From that many blocks on helpers are started at once. */
enum { EAGER_BLOCKS = 256 };

bool tarn_search_is_over(const struct tarn_search *search)
{
    return tarn_deadline_is_over(&search->options->deadline);
}

/* ---- Candidates ---- */

bool tarn_candidate_init(struct tarn_candidate *candidate, struct tarn_region *region,
                         uint32_t count)
{
    candidate->top = INT32_MAX;
    candidate->from = UINT64_MAX;
    candidate->offset = tarn_region_take(region, count, sizeof *candidate->offset);
    return candidate->offset != NULL;
}

/* The first plan that meets the aim wins; if none does, the lowest plan. This is a total order, so
 * the order of comparisons does not matter. */
static bool is_better(const struct tarn_search *search, const struct tarn_candidate *a,
                      const struct tarn_candidate *b)
{
    bool a_meets = a->top <= search->aim, b_meets = b->top <= search->aim;
    if (a_meets != b_meets) return a_meets;
    if (!a_meets && a->top != b->top) return a->top < b->top;
    return a->from < b->from;
}

bool tarn_search_offer(const struct tarn_search *search, struct tarn_candidate *candidate,
                       const struct tarn_candidate *other)
{
    if (other->top == INT32_MAX || !is_better(search, other, candidate)) return false;
    memcpy(candidate->offset, other->offset, search->lowest.count * sizeof *other->offset);
    candidate->top = other->top;
    candidate->from = other->from;
    return true;
}

void tarn_search_report(const struct tarn_search *search, int32_t top)
{
    const struct tarn_improve_options *options = search->options;
    if (options->progress)
        options->progress(options->user, (uint64_t)top << search->lowest.unit_shift, search->steps);
}

/* ---- Priority orders ---- */

/* If only a few priority orders are worth their work, these are used, in this order. */
static const uint32_t best_priorities[] = {1, 0, 3, 9};
static_assert(sizeof best_priorities / sizeof *best_priorities == TARN_SEARCH_BEST_PRIORITIES,
              "all are listed");

enum tarn_status tarn_search_fill_priority(const struct tarn_search *search,
                                           struct tarn_region *region, uint32_t i,
                                           int32_t *priority)
{
    assert(i < TARN_SEARCH_PRIORITIES);
    if (search->best_priorities > 0) i = best_priorities[i];
    return i < TARN_PRIORITIES_COUNT
               ? tarn_priorities_fill(&search->lowest, region, &search->traits, i, priority)
               : tarn_priorities_of_plan(&search->lowest, region, search->given, priority);
}

const char *tarn_search_priority_name(const struct tarn_search *search)
{
    uint64_t from = search->best.from;
    if (search->best_priorities > 0 && from < search->best_priorities)
        return tarn_priorities_name(best_priorities[from]);
    return from < TARN_PRIORITIES_COUNT ? tarn_priorities_name((uint32_t)from) : NULL;
}

/* The memory with which a thread places by priority orders; made for its first priority order. */
struct placing {
    bool made;
    struct tarn_region region;
    struct tarn_greedy greedy;
    int32_t *priority;
    struct tarn_candidate best;
};

struct placings {
    struct tarn_search *search;
    uint64_t work_max;                           /* of each priority order; 0: no limit */
    struct placing list[TARN_SEARCH_PRIORITIES]; /* by thread */
};

/* False when there is no plan, or when it does not matter any more. */
static bool place_in_slices(struct tarn_search *search, struct tarn_greedy *greedy, uint32_t i,
                            const int32_t *priority)
{
    struct tarn_objective objective = {search->aim, 1, 0};
    uint32_t count = search->lowest.count, placed = 0;
    tarn_greedy_start(greedy, NULL);
    while (placed < count) {
        placed = count - placed > SLICE ? placed + SLICE : count;
        if (tarn_winner_is_before(&search->winner, i)) return false;
        if (!tarn_greedy_advance(greedy, priority, NULL, objective, TARN_MISS_MAX, placed))
            return false;
    }
    return true;
}

static bool placing_init(struct placing *placing, const struct tarn_search *search)
{
    const struct tarn_lowest *lowest = &search->lowest;
    if (placing->made) return true;
    bool ok = tarn_greedy_init(&placing->greedy, &placing->region, lowest) == TARN_OK &&
              tarn_greedy_narrow(&placing->greedy, &placing->region) == TARN_OK;
    placing->priority =
        tarn_region_take(&placing->region, lowest->count, sizeof *placing->priority);
    placing->greedy.deadline = &search->options->deadline;
    placing->greedy.hurries = true;
    placing->made = tarn_candidate_init(&placing->best, &placing->region, lowest->count) && ok &&
                    placing->priority;
    return placing->made;
}

static void place_priority(void *user, uint32_t thread, uint32_t i)
{
    struct placings *placings = user;
    struct tarn_search *search = placings->search;
    struct placing *own = &placings->list[thread];
    if (search->no_memory || tarn_winner_is_before(&search->winner, i) ||
        tarn_search_is_over(search))
        return;
    if (!placing_init(own, search) ||
        tarn_search_fill_priority(search, &own->region, i, own->priority) != TARN_OK) {
        search->no_memory = true;
        return;
    }
    own->greedy.work = 0;
    own->greedy.work_max = placings->work_max;
    if (place_in_slices(search, &own->greedy, i, own->priority)) search->tops[i] = own->greedy.top;
    search->priority_work[i] = own->greedy.work;
    if (tarn_greedy_hurried(&own->greedy)) search->hurried = true;
    if (placings->work_max > 0 && own->greedy.work > placings->work_max) search->cut = true;
    if (search->tops[i] <= search->aim) tarn_winner_note(&search->winner, i);
    struct tarn_candidate found = {own->greedy.offset, search->tops[i], i};
    if (tarn_search_offer(search, &own->best, &found) && thread == 0)
        tarn_search_report(search, own->best.top);
}

/* A search that met the aim does not need its cost, which depends on how many priority orders were
 * begun. */
static void pay_for_priorities(struct tarn_search *search)
{
    if (search->best.top <= search->aim) return;
    for (uint32_t i = 0; i < TARN_SEARCH_PRIORITIES; i++)
        search->work_left = tarn_work_less(search->work_left, search->priority_work[i]);
}

enum tarn_status tarn_search_priorities(struct tarn_search *search)
{
    uint32_t count =
        search->best_priorities > 0 ? search->best_priorities : (uint32_t)TARN_SEARCH_PRIORITIES;
    struct placings placings = {.search = search};
    tarn_winner_clear(&search->winner);
    if (search->work_left != TARN_WORK_UNLIMITED) placings.work_max = search->work_left / count + 1;
    tarn_team_run(&search->team, count, place_priority, &placings);
    for (uint32_t t = 0; t < TARN_SEARCH_PRIORITIES; t++) {
        struct placing *placing = &placings.list[t];
        if (placing->made && !search->no_memory)
            tarn_search_offer(search, &search->best, &placing->best);
        tarn_region_finish(&placing->region);
    }
    pay_for_priorities(search);
    return search->no_memory ? TARN_SYSTEM : TARN_OK;
}

/* ---- The problem ---- */

enum tarn_status tarn_search_init(struct tarn_search *search, const struct tarn_problem *problem,
                                  uint64_t aim, const uint64_t *offset)
{
    uint64_t most;
    search->given = offset;
    search->begin_ms = tarn_now_ms();
    tarn_team_init(&search->team, search->options->threads, problem->blocks.count >= EAGER_BLOCKS);
    if (!tarn_size_multiply(aim, 4, &most)) most = UINT64_MAX;
    if (tarn_lowest_init(&search->lowest, &search->region, problem, most) != TARN_OK ||
        tarn_traits_init(&search->traits, &search->region, &search->lowest) != TARN_OK)
        return TARN_SYSTEM;
    search->aim = tarn_lowest_units(&search->lowest, aim);
    for (uint32_t i = 0; i < TARN_SEARCH_PRIORITIES; i++) search->tops[i] = INT32_MAX;
    return tarn_candidate_init(&search->best, &search->region, search->lowest.count) ? TARN_OK
                                                                                     : TARN_SYSTEM;
}

void tarn_search_finish(struct tarn_search *search) { tarn_region_finish(&search->region); }
