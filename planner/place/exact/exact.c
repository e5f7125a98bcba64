/* Runs exact search with restarts. A single depth-first search has a heavy tail: its first
 * decisions are rarely corrected later. So runs are short, and their lengths follow Luby's sequence
 * (Luby, Sinclair, Zuckerman 1993), which is complete and at most a logarithm worse than the best
 * fixed length. Runs differ in the region from which blocks are picked and in how ties among
 * equally low blocks are broken: by priority orders in which long life counts most, and size has a
 * small weight of either sign.
 *
 * Eight searchers run side by side, each with its own failed states; after each round they share
 * the weights that they learnt about sections. In a round the conclusive searcher with the smallest
 * number wins, so nothing depends on the number of threads. (Letting later runs follow the deepest
 * run, by its priority orders or its placements, was tried: runs from scratch were as good.) Blocks
 * that need no search are left out before (exact/dominated.c). Cost: see exact/search.c, for each
 * node. */
#include "exact.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "instance.h"
#include "planner/parallel/parallel.h"
#include "search.h"
#include "streams/base/random.h"

enum { SEARCHERS = 8, NODES_PER_BLOCK = 3, EAGER_BLOCKS = 256 };
#define CAPACITY_MAX ((uint64_t)1 << 61)

struct ranked {
    double priority; /* the greater, the sooner */
    uint32_t block;
};

struct searcher {
    struct tarn_region region;
    struct tarn_exact_search *search;
    uint64_t random;       /* state */
    struct ranked *ranked; /* blocks, the one to be picked first in front */
    uint32_t *rank;
    enum tarn_exact_result result;
};

struct contest {
    const struct tarn_exact_instance *instance;
    const struct tarn_exact_options *options;
    int64_t capacity;
    struct searcher searchers[SEARCHERS];
    struct tarn_team team;
    uint32_t round;
    struct tarn_exact_effort most; /* of each run of the round */
    struct tarn_exact_effort done; /* by all runs */
    struct tarn_winner winner;     /* the first searcher that is conclusive in this round */
    atomic_bool no_memory;
};

/* ---- Chance ---- */

static bool draw_percent(struct searcher *searcher, uint32_t percent)
{
    return tarn_random_next(&searcher->random) % 100 < percent;
}

/* About normal, between -1.5 and 1.5. */
static double draw_noise(struct searcher *searcher)
{
    double sum = tarn_random_unit(&searcher->random);
    sum += tarn_random_unit(&searcher->random);
    return sum + tarn_random_unit(&searcher->random) - 1.5;
}

/* Powers of 10, their exponents being uniform. */
static double draw_scale(struct searcher *searcher, double from, double to)
{
    return pow(10, from + (to - from) * tarn_random_unit(&searcher->random));
}

/* ---- How blocks are picked ---- */

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->priority != y->priority) return x->priority > y->priority ? -1 : 1;
    return (x->block > y->block) - (x->block < y->block);
}

static void rank_blocks(const struct contest *contest, struct searcher *searcher)
{
    qsort(searcher->ranked, contest->instance->count, sizeof *searcher->ranked, compare_ranked);
    for (uint32_t i = 0; i < contest->instance->count; i++)
        searcher->rank[searcher->ranked[i].block] = i;
}

/* Chooses at random how the next run picks blocks: from which region, and among equally low blocks
 * by life, size (for or against), load, noise. */
static void choose_picking(const struct contest *contest, struct searcher *searcher,
                           struct tarn_exact_guide *guide)
{
    const struct tarn_exact_instance *instance = contest->instance;
    double load =
        draw_percent(searcher, 50) ? 0 : 5.0 * (double)(tarn_random_next(&searcher->random) % 3);
    double size = 0.6 * (tarn_random_unit(&searcher->random) - 0.5);
    double noise = draw_percent(searcher, 20) ? 0 : draw_scale(searcher, -2, 0);
    guide->by_section = draw_percent(searcher, 90);
    guide->slack = draw_scale(searcher, -3.5, 0) * (double)contest->capacity;
    for (uint32_t b = 0; b < instance->count; b++) {
        double priority = log((double)instance->life[b]) + size * log((double)instance->size[b]) +
                          load * (double)instance->load[b] / (double)contest->capacity +
                          noise * draw_noise(searcher);
        searcher->ranked[b] = (struct ranked){priority, b};
    }
    rank_blocks(contest, searcher);
}

/* ---- Runs ---- */

/* Element i, from 1, of 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... */
static uint64_t luby(uint64_t i)
{
    uint64_t period = 1;
    while (period < i) period = 2 * period + 1;
    return period == i ? (i + 1) / 2 : luby(i - period / 2);
}

/* Gets ready on the first call. */
static bool searcher_init(struct searcher *searcher, const struct contest *contest, uint32_t number)
{
    struct tarn_region *region = &searcher->region;
    size_t count = contest->instance->count;
    if (searcher->search) return true;
    searcher->random = contest->options->seed * SEARCHERS + number;
    searcher->ranked = tarn_region_take(region, count, sizeof *searcher->ranked);
    searcher->rank = tarn_region_take(region, count, sizeof *searcher->rank);
    if (!region->is_exhausted)
        searcher->search = tarn_exact_search_create(region, contest->instance, contest->capacity);
    return searcher->search;
}

static void run_searcher(void *user, uint32_t thread, uint32_t number)
{
    struct contest *contest = user;
    struct searcher *searcher = &contest->searchers[number];
    (void)thread;
    if (tarn_winner_is_before(&contest->winner, number)) return;
    if (!searcher_init(searcher, contest, number)) {
        atomic_store(&contest->no_memory, true);
        return;
    }
    struct tarn_exact_guide guide = {.rank = searcher->rank,
                                     .most = contest->most,
                                     .deadline = &contest->options->deadline,
                                     .winner = &contest->winner,
                                     .number = number};
    choose_picking(contest, searcher, &guide);
    searcher->result = tarn_exact_search_run(searcher->search, &guide);
    if (searcher->result != TARN_EXACT_STOPPED) tarn_winner_note(&contest->winner, number);
}

/* ---- Rounds ---- */

static void count_work(struct contest *contest, uint32_t searchers)
{
    for (uint32_t i = 0; i < searchers; i++) {
        struct tarn_exact_effort own = tarn_exact_search_effort(contest->searchers[i].search);
        contest->done.nodes += own.nodes;
        contest->done.visits += own.visits;
        contest->done.work += own.work;
    }
}

static bool is_over(const struct contest *contest)
{
    const struct tarn_exact_options *options = contest->options;
    if (options->nodes_max > 0 && contest->done.nodes >= options->nodes_max) return true;
    if (options->visits_max > 0 && contest->done.visits >= options->visits_max) return true;
    if (options->work_max > 0 && contest->done.work >= options->work_max) return true;
    return contest->no_memory || tarn_deadline_is_over(&options->deadline);
}

/* Each searcher's share of the rest of a limit; 0: there is no limit. */
static uint64_t share_of(uint64_t max, uint64_t done)
{
    return max > 0 ? (max - done) / SEARCHERS + 1 : UINT64_MAX;
}

static void limit_round(struct contest *contest)
{
    const struct tarn_exact_options *options = contest->options;
    uint64_t nodes = NODES_PER_BLOCK * (uint64_t)(contest->instance->count + 10);
    uint64_t share = share_of(options->nodes_max, contest->done.nodes);
    nodes *= luby(contest->round + 1);
    contest->most.nodes = nodes < share ? nodes : share;
    contest->most.visits = share_of(options->visits_max, contest->done.visits);
    contest->most.work = share_of(options->work_max, contest->done.work);
}

/* Shares the sections' weights: sections in which one searcher failed guide the other searchers,
 * too. */
static void share_weights(const struct contest *contest)
{
    struct tarn_exact_search *searches[SEARCHERS];
    for (uint32_t i = 0; i < SEARCHERS; i++) searches[i] = contest->searchers[i].search;
    tarn_exact_search_share(searches, SEARCHERS);
}

/* The conclusive searcher; NULL: the search was ended without one. */
static struct searcher *run_rounds(struct contest *contest)
{
    for (; !is_over(contest); contest->round++) {
        limit_round(contest);
        tarn_winner_clear(&contest->winner);
        tarn_team_run(&contest->team, SEARCHERS, run_searcher, contest);
        if (contest->no_memory) return NULL; /* a searcher before the conclusive one is missing */
        if (tarn_winner_is_before(&contest->winner, SEARCHERS)) {
            uint32_t winner = (uint32_t)contest->winner.number;
            count_work(contest, winner + 1);
            return &contest->searchers[winner];
        }
        count_work(contest, SEARCHERS);
        share_weights(contest);
    }
    return NULL;
}

/* ---- The whole ---- */

static void contest_finish(struct contest *contest)
{
    for (uint32_t i = 0; i < SEARCHERS; i++) {
        tarn_exact_search_finish(contest->searchers[i].search);
        tarn_region_finish(&contest->searchers[i].region);
    }
}

static void write_offsets(const struct tarn_problem *problem,
                          const struct tarn_exact_instance *instance, const int64_t *position,
                          uint64_t *offset)
{
    for (uint32_t b = 0; b < instance->count; b++)
        tarn_block_put(&problem->blocks, tarn_block_at(&problem->blocks, instance->block[b]),
                       (uint64_t)position[b] * instance->unit, offset);
}

static enum tarn_status search_instance(const struct tarn_problem *problem,
                                        const struct tarn_exact_instance *instance,
                                        uint64_t capacity, const struct tarn_exact_options *options,
                                        uint64_t *offset, struct tarn_exact_report *report)
{
    uint64_t units = capacity / instance->unit;
    struct contest contest = {.instance = instance,
                              .options = options,
                              .capacity = (int64_t)(units < CAPACITY_MAX ? units : CAPACITY_MAX)};
    tarn_team_init(&contest.team, options->threads, instance->count >= EAGER_BLOCKS);
    const struct searcher *winner = run_rounds(&contest);
    report->result = winner ? winner->result : TARN_EXACT_STOPPED;
    report->nodes = contest.done.nodes;
    report->visits = contest.done.visits;
    report->work += contest.done.work;
    report->rounds = contest.round;
    report->storages = instance->piece_begin[instance->count];
    if (report->result == TARN_EXACT_FOUND)
        write_offsets(problem, instance, tarn_exact_search_positions(winner->search), offset);
    enum tarn_status status = contest.no_memory ? TARN_SYSTEM : TARN_OK;
    contest_finish(&contest);
    return status;
}

/* ---- Above the blocks at the bottom ---- */

static enum tarn_status search_above(const struct tarn_exact_dominated *dominated,
                                     struct tarn_region *region, uint64_t capacity,
                                     const struct tarn_exact_options *options, uint64_t *offset,
                                     struct tarn_exact_report *report)
{
    struct tarn_exact_instance instance;
    struct tarn_exact_options left = *options;
    if (dominated->size > capacity) {
        report->result = TARN_EXACT_INFEASIBLE;
        return TARN_OK;
    }
    enum tarn_status status = tarn_exact_instance_init(
        &instance, region, dominated->problem, dominated->is_left_out, options->leader,
        &options->deadline, options->work_max, &report->work);
    bool spent = options->work_max > 0 && report->work >= options->work_max;
    if (status == TARN_USAGE && (spent || tarn_deadline_is_over(&options->deadline)))
        return TARN_OK;
    if (status != TARN_OK) return status;
    if (options->work_max > 0) left.work_max = spent ? 1 : options->work_max - report->work;
    status = search_instance(dominated->problem, &instance, capacity - dominated->size, &left,
                             offset, report);
    if (status == TARN_OK && report->result == TARN_EXACT_FOUND)
        tarn_exact_dominated_lift(dominated, offset);
    return status;
}

/* Gives every block the offset of its leader. */
static void follow(const struct tarn_blocks *blocks, const uint32_t *leader, uint64_t *offset)
{
    for (uint32_t b = 0; b < blocks->count; b++)
        offset[tarn_block_at(blocks, b).members[0]] =
            offset[tarn_block_at(blocks, leader[b]).members[0]];
}

enum tarn_status tarn_exact_place(const struct tarn_problem *problem, const bool *is_left_out,
                                  uint64_t capacity, const struct tarn_exact_options *options,
                                  uint64_t *offset, struct tarn_exact_report *report)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_exact_dominated dominated;
    *report = (struct tarn_exact_report){.result = TARN_EXACT_STOPPED};
    assert(!is_left_out || !options->leader);
    enum tarn_status status =
        tarn_exact_dominated_init(&dominated, &region, problem, is_left_out, options->leader);
    if (status == TARN_OK)
        status = search_above(&dominated, &region, capacity, options, offset, report);
    if (options->leader && report->result == TARN_EXACT_FOUND)
        follow(&problem->blocks, options->leader, offset);
    tarn_region_finish(&region);
    return status;
}
