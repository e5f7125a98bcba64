/* Runs eight local searches in rounds. They start from the best priority orders' plans, with four
 * settings, and each round has some steps. After each round, of the first four the local search
 * with the highest plan continues from the lowest plan of all eight; the others continue from their
 * own plans. Nothing depends on the number of threads: within a round local searches do not depend
 * on each other. Of the searches that meet the aim in a round, the one with the lowest step wins,
 * then the one with the lowest number; the others stop once they are past this step. Source:
 * docs/how-it-works.md, "Placement". Cost: the steps of every local search, see lowest/replay.c.
 */
#include "search.h"

#include <assert.h>
#include <string.h>

#include "planner/place/effort/effort.h"
#include "planner/place/lowest/lowest.h"

/* The first COPYING_SEARCHES of LOCAL_SEARCHES may go on from another one's plan. ROUND_STEPS:
 * steps of each in a round at most. For more than PLACES_MAX places there are no local searches. */
enum { LOCAL_SEARCHES = 8, COPYING_SEARCHES = 4, ROUND_STEPS = 40, PLACES_MAX = 65536 };

struct locals {
    struct tarn_search *search;
    struct tarn_local_search list[LOCAL_SEARCHES];
    struct tarn_candidate bests[LOCAL_SEARCHES]; /* local search -> its best plan */
    uint64_t work_before[LOCAL_SEARCHES];        /* local search -> its work before the round */
    uint64_t round_steps, round_work;            /* of each local search, at most */
    int32_t given_top;                           /* how high the plan that came in is, in units */
};

/* ---- Starts ---- */

static void settings_fill(const struct tarn_search *search,
                          struct tarn_local_search_setting settings[4])
{
    const struct tarn_objective by_top = {.aim = search->aim, .top_weight = 1};
    const struct tarn_objective by_bytes = {.aim = search->aim, .bytes_weight = 1};
    const struct tarn_objective by_both = {.aim = search->aim, .top_weight = 4, .bytes_weight = 1};
    const struct tarn_local_search_setting kinds[] = {
        {.hole_percent = 0, .lateness = 1, .objective = by_top},
        {.hole_percent = 10, .lateness = 20, .objective = by_top},
        {.hole_percent = 0, .lateness = 50, .objective = by_bytes},
        {.hole_percent = 25, .lateness = 1, .objective = by_both},
    };
    memcpy(settings, kinds, sizeof kinds);
}

/* A local search's n-th step, in the order in which steps win; priority orders are before all of
 * them. */
static uint64_t step_number(uint32_t w, uint64_t n)
{
    return TARN_SEARCH_PRIORITIES + n * LOCAL_SEARCHES + w;
}

/* The priority order with the n-th lowest plan, counted from 0. */
static uint32_t priority_by_rank(const struct tarn_search *search, uint32_t n)
{
    for (uint32_t i = 0; i < TARN_SEARCH_PRIORITIES; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < TARN_SEARCH_PRIORITIES; k++)
            before +=
                search->tops[k] < search->tops[i] || (search->tops[k] == search->tops[i] && k < i);
        if (before == n) return i;
    }
    return 0;
}

/* The priority order that local search w starts with: two local searches of different settings for
 * each. */
static uint32_t start_of(const struct tarn_search *search, uint32_t w)
{
    uint32_t priority = priority_by_rank(search, w / 2);
    return search->tops[priority] < INT32_MAX ? priority : priority_by_rank(search, 0);
}

static bool init_locals(struct locals *locals)
{
    struct tarn_search *search = locals->search;
    struct tarn_region *region = &search->region;
    struct tarn_local_search_setting settings[4];
    uint32_t count = search->lowest.count;
    int32_t *floor = tarn_region_take(region, count, sizeof *floor);
    int32_t *priority = tarn_region_take(region, count, sizeof *priority);
    if (!floor || !priority) return false;
    settings_fill(search, settings);
    for (uint32_t w = 0; w < LOCAL_SEARCHES; w++) {
        if (tarn_local_search_init(&locals->list[w], region, &search->lowest, &search->traits,
                                   &settings[w % 4],
                                   search->options->seed * LOCAL_SEARCHES + w) != TARN_OK ||
            !tarn_candidate_init(&locals->bests[w], region, count) ||
            tarn_search_fill_priority(search, region, start_of(search, w), priority) != TARN_OK)
            return false;
        tarn_local_search_start(&locals->list[w], priority, floor);
    }
    return true;
}

/* ---- Rounds ---- */

static void note_plan(struct locals *locals, uint32_t w)
{
    struct tarn_search *search = locals->search;
    const struct tarn_local_search *local = &locals->list[w];
    struct tarn_candidate own = {local->replay.offset, local->replay.top,
                                 step_number(w, local->steps)};
    if (own.top < locals->bests[w].top) tarn_search_offer(search, &locals->bests[w], &own);
    if (own.top <= search->aim) tarn_winner_note(&search->winner, own.from);
}

static void run_round(void *user, uint32_t thread, uint32_t w)
{
    struct locals *locals = user;
    const struct tarn_search *search = locals->search;
    (void)thread;
    for (uint64_t i = 0; i < locals->round_steps; i++) {
        struct tarn_local_search *local = &locals->list[w];
        if (local->replay.greedy.work - locals->work_before[w] > locals->round_work) return;
        if (tarn_winner_is_before(&search->winner, step_number(w, local->steps + 1)) ||
            tarn_search_is_over(search))
            return;
        tarn_local_search_step(local);
        note_plan(locals, w);
    }
}

static void copy_best_to_worst(struct locals *locals)
{
    uint32_t best = 0, worst = 0;
    int32_t tops[LOCAL_SEARCHES];
    for (uint32_t w = 0; w < LOCAL_SEARCHES; w++) {
        tops[w] = locals->list[w].replay.top;
        if (tops[w] < tops[best]) best = w;
        if (w < COPYING_SEARCHES && tops[w] >= tops[worst]) worst = w;
    }
    assert(worst < COPYING_SEARCHES);
    if (tops[best] < tops[worst])
        tarn_local_search_start(&locals->list[worst], locals->list[best].priority,
                                locals->list[best].floor);
}

static void begin_round(struct locals *locals)
{
    const struct tarn_search *search = locals->search;
    uint64_t left = search->options->steps - search->steps;
    locals->round_steps = left < ROUND_STEPS ? left : ROUND_STEPS;
    locals->round_work = search->work_left / LOCAL_SEARCHES;
    for (uint32_t w = 0; w < LOCAL_SEARCHES; w++)
        locals->work_before[w] = locals->list[w].replay.greedy.work;
}

static void end_round(struct locals *locals)
{
    struct tarn_search *search = locals->search;
    search->steps += locals->round_steps;
    for (uint32_t w = 0; w < LOCAL_SEARCHES; w++) {
        uint64_t work = locals->list[w].replay.greedy.work - locals->work_before[w];
        tarn_search_offer(search, &search->best, &locals->bests[w]);
        search->work_left = tarn_work_less(search->work_left, work);
    }
}

static void run_rounds(struct locals *locals)
{
    struct tarn_search *search = locals->search;
    uint64_t patience = search->options->patience, better_at = 0;
    for (uint32_t w = 0; w < LOCAL_SEARCHES; w++)
        search->work_left = tarn_work_less(search->work_left, locals->list[w].replay.greedy.work);
    tarn_winner_clear(&search->winner);
    while (search->steps < search->options->steps && !tarn_search_is_over(search)) {
        int32_t before =
            search->best.top < locals->given_top ? search->best.top : locals->given_top;
        begin_round(locals);
        tarn_team_run(&search->team, LOCAL_SEARCHES, run_round, locals);
        end_round(locals);
        if (search->best.top < before) {
            tarn_search_report(search, search->best.top);
            better_at = search->steps;
        }
        if (search->best.top <= search->aim) return;
        if (search->work_left == 0) {
            search->cut = true;
            return;
        }
        if (patience > 0 && search->steps - better_at >= patience) return;
        copy_best_to_worst(locals);
    }
}

/* ---- The whole ---- */

/* The maximum work of a placement. */
static uint64_t most_work(const struct tarn_search *search)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < TARN_SEARCH_PRIORITIES; i++)
        if (search->priority_work[i] > most) most = search->priority_work[i];
    return most;
}

enum tarn_status tarn_local_searches_run(struct tarn_search *search, uint64_t footprint)
{
    struct locals locals = {.search = search,
                            .given_top = tarn_lowest_units(&search->lowest, footprint)};
    assert(search->best.top < INT32_MAX && search->best.top > search->aim);
    if (search->options->steps == 0 || search->lowest.count > PLACES_MAX) return TARN_OK;
    if (tarn_search_is_over(search)) return TARN_OK;
    if (search->hurried || search->work_left / LOCAL_SEARCHES < most_work(search)) {
        search->cut = true;
        return TARN_OK;
    }
    bool ok = init_locals(&locals);
    if (ok) run_rounds(&locals);
    return ok ? TARN_OK : TARN_SYSTEM;
}
