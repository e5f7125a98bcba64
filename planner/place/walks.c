/* Eight walks start from the best keys' plans, with four settings, and go on in rounds of some
 * steps. After each round, of the first four the walk with the highest plan goes on from the lowest
 * plan of all eight; the others keep to themselves. Nothing depends on the number of threads: what
 * a walk does in a round depends on no other walk, and of those that meet the aim in a round the
 * one with the least step, then walk, wins; the others stop once they are past it. Source:
 * docs/how-it-works.md, "Placement". Cost: what the steps of every walk cost, see lowest/replay.c.
 */
#include "search.h"

#include <assert.h>

#include "planner/place/effort/effort.h"
#include "planner/place/lowest/lowest.h"

/* The first COPYING_WALKS of WALKS may go on from another one's plan. ROUND_STEPS: steps of each in
 * a round at most. For more than PLACES_MAX places there are no walks. */
enum { WALKS = 8, COPYING_WALKS = 4, ROUND_STEPS = 40, PLACES_MAX = 65536 };

struct walks {
    struct tarn_search *search;
    struct tarn_walk list[WALKS];
    struct tarn_candidate bests[WALKS]; /* walk -> its best plan */
    uint64_t work_before[WALKS];        /* walk -> its work before the round */
    uint64_t round_steps, round_work;   /* of each walk, at most */
    int32_t given_top;                  /* how high the plan that came in is, in units */
};

/* ---- Starts ---- */

static void settings_fill(const struct tarn_search *search, struct tarn_walk_setting settings[4])
{
    settings[0] = (struct tarn_walk_setting){0, 1, {search->aim, 1, 0}};
    settings[1] = (struct tarn_walk_setting){10, 20, {search->aim, 1, 0}};
    settings[2] = (struct tarn_walk_setting){0, 50, {search->aim, 0, 1}};
    settings[3] = (struct tarn_walk_setting){25, 1, {search->aim, 4, 1}};
}

/* A walk's n-th step, in the order in which steps win; keys are before all of them. */
static uint64_t step_number(uint32_t w, uint64_t n) { return TARN_SEARCH_KEYS + n * WALKS + w; }

/* The key with the n-th lowest plan, counted from 0. */
static uint32_t key_by_rank(const struct tarn_search *search, uint32_t n)
{
    for (uint32_t i = 0; i < TARN_SEARCH_KEYS; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < TARN_SEARCH_KEYS; k++)
            before +=
                search->tops[k] < search->tops[i] || (search->tops[k] == search->tops[i] && k < i);
        if (before == n) return i;
    }
    return 0;
}

/* The key that walk w starts with: two walks of different settings for each. */
static uint32_t start_of(const struct tarn_search *search, uint32_t w)
{
    uint32_t key = key_by_rank(search, w / 2);
    return search->tops[key] < INT32_MAX ? key : key_by_rank(search, 0);
}

static bool init_walks(struct walks *walks)
{
    struct tarn_search *search = walks->search;
    struct tarn_region *region = &search->region;
    struct tarn_walk_setting settings[4];
    uint32_t count = search->lowest.count;
    int32_t *floor = tarn_region_take(region, count, sizeof *floor);
    int32_t *key = tarn_region_take(region, count, sizeof *key);
    if (!floor || !key) return false;
    settings_fill(search, settings);
    for (uint32_t w = 0; w < WALKS; w++) {
        if (tarn_walk_init(&walks->list[w], region, &search->lowest, &search->traits,
                           &settings[w % 4], search->options->seed * WALKS + w) != TARN_OK ||
            !tarn_candidate_init(&walks->bests[w], region, count) ||
            tarn_search_fill_key(search, region, start_of(search, w), key) != TARN_OK)
            return false;
        tarn_walk_start(&walks->list[w], key, floor);
    }
    return true;
}

/* ---- Rounds ---- */

static void note_plan(struct walks *walks, uint32_t w)
{
    struct tarn_search *search = walks->search;
    const struct tarn_walk *walk = &walks->list[w];
    struct tarn_candidate own = {walk->replay.offset, walk->replay.top,
                                 step_number(w, walk->steps)};
    if (own.top < walks->bests[w].top) tarn_search_offer(search, &walks->bests[w], &own);
    if (own.top <= search->aim) tarn_winner_note(&search->winner, own.from);
}

static void run_round(void *user, uint32_t thread, uint32_t w)
{
    struct walks *walks = user;
    const struct tarn_search *search = walks->search;
    (void)thread;
    for (uint64_t i = 0; i < walks->round_steps; i++) {
        struct tarn_walk *walk = &walks->list[w];
        if (walk->replay.decoder.work - walks->work_before[w] > walks->round_work) return;
        if (tarn_winner_is_before(&search->winner, step_number(w, walk->steps + 1)) ||
            tarn_search_is_over(search))
            return;
        tarn_walk_step(walk);
        note_plan(walks, w);
    }
}

static void copy_best_to_worst(struct walks *walks)
{
    uint32_t best = 0, worst = 0;
    int32_t tops[WALKS];
    for (uint32_t w = 0; w < WALKS; w++) {
        tops[w] = walks->list[w].replay.top;
        if (tops[w] < tops[best]) best = w;
        if (w < COPYING_WALKS && tops[w] >= tops[worst]) worst = w;
    }
    assert(worst < COPYING_WALKS);
    if (tops[best] < tops[worst])
        tarn_walk_start(&walks->list[worst], walks->list[best].key, walks->list[best].floor);
}

static void begin_round(struct walks *walks)
{
    const struct tarn_search *search = walks->search;
    uint64_t left = search->options->steps - search->steps;
    walks->round_steps = left < ROUND_STEPS ? left : ROUND_STEPS;
    walks->round_work = search->work_left / WALKS;
    for (uint32_t w = 0; w < WALKS; w++) walks->work_before[w] = walks->list[w].replay.decoder.work;
}

static void end_round(struct walks *walks)
{
    struct tarn_search *search = walks->search;
    search->steps += walks->round_steps;
    for (uint32_t w = 0; w < WALKS; w++) {
        uint64_t work = walks->list[w].replay.decoder.work - walks->work_before[w];
        tarn_search_offer(search, &search->best, &walks->bests[w]);
        search->work_left = tarn_work_less(search->work_left, work);
    }
}

static void run_rounds(struct walks *walks)
{
    struct tarn_search *search = walks->search;
    uint64_t patience = search->options->patience, better_at = 0;
    for (uint32_t w = 0; w < WALKS; w++)
        search->work_left = tarn_work_less(search->work_left, walks->list[w].replay.decoder.work);
    tarn_winner_clear(&search->winner);
    while (search->steps < search->options->steps && !tarn_search_is_over(search)) {
        int32_t before = search->best.top < walks->given_top ? search->best.top : walks->given_top;
        begin_round(walks);
        tarn_team_run(&search->team, WALKS, run_round, walks);
        end_round(walks);
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
        copy_best_to_worst(walks);
    }
}

/* ---- The whole ---- */

/* What a decode may come to. */
static uint64_t most_work(const struct tarn_search *search)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < TARN_SEARCH_KEYS; i++)
        if (search->key_work[i] > most) most = search->key_work[i];
    return most;
}

enum tarn_status tarn_walks_run(struct tarn_search *search, uint64_t footprint)
{
    struct walks walks = {.search = search,
                          .given_top = tarn_lowest_units(&search->lowest, footprint)};
    assert(search->best.top < INT32_MAX && search->best.top > search->aim);
    if (search->options->steps == 0 || search->lowest.count > PLACES_MAX) return TARN_OK;
    if (tarn_search_is_over(search)) return TARN_OK;
    if (search->hurried || search->work_left / WALKS < most_work(search)) {
        search->cut = true;
        return TARN_OK;
    }
    bool ok = init_walks(&walks);
    if (ok) run_rounds(&walks);
    return ok ? TARN_OK : TARN_SYSTEM;
}
