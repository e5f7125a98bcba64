/* A ladder: each rung costs more than the one below it, and the first plan that meets the aim (the
 * bound, or the capacity where that is more) ends the climb.
 *
 *     keys       lowest-offset-first with each of a few keys: nearly every real graph ends here
 *     bound      raised, if it can be: perhaps this was the best plan already
 *     exact      complete search at the aim, at a glance: where blocks are few and it is tight
 *     core       exact search for the few blocks that matter (core.h): nearly all others end here
 *     exact      complete search at the aim, for a while: where the aim is tight and blocks are few
 *     baseline   the paper's methods, so that no plan is worse than the best of them
 *     core   ┐   by other chance, then at places half, a quarter, an eighth of the way to the aim
 *     walks  │   from the best plan so far
 *     exact  ┘   once more, for longer; these three in rounds that grow, for as many steps
 *
 * Every rung is deterministic for any number of threads, hence the result is, and none takes a plan
 * that is worse than the one it began with. All share one deadline, and one account of work
 * (work.h) that cuts a climb off and changes nothing else. */
#include "place.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "pass.h"
#include "planner/place/exact/exact.h"
#include "planner/place/somas/portfolio.h"
#include "work.h"

/* The paper's methods look at every pair: above this many blocks they take minutes, and are left
 * out unless asked for by name. */
enum { BASELINE_BLOCKS_MAX = 16384 };

/* Exact search of everything is for lone storages (a node costs too much where groups have many
 * members). What a node costs grows with the blocks, so that this many block visits are a fixed
 * effort: a glance before anything dearer, a quick try before the walks, and one for each of their
 * steps after them. */
enum {
    EXACT_GLANCE = 6000000,
    EXACT_VISITS = 40000000,
    EXACT_VISITS_A_STEP = 80000,
    EXACT_RUNS = 24
};
/* A step of search by cores is so many visits for each storage, up to so many storages: a small
 * graph that cannot be placed at its bound is given up soon. */
enum { CORE_VISITS_A_STORAGE = 250, CORE_STORAGES = 1000, CORE_LEVELS = 4 };
/* Walks seldom find what cores do not: they end when one in so many of their steps, in a row, has
 * brought nothing. */
enum { WALK_PATIENCE = 4 };
/* Of the work allowed, search at the aim leaves one part in PLANS_SHARE to what finds plans above
 * it: the paper's methods, cores at places on the way, walks. Cores leave one part in WALKS_SHARE
 * to the walks. These find in milliseconds what exact search may not find in seconds. */
enum { PLANS_SHARE = 2, WALKS_SHARE = 4 };
/* The first round has at most so many steps, each of the next ones twice as many; for more blocks
 * there is none. */
enum { ROUND_STEPS = 1000, ROUND_BLOCKS_MAX = 65536 };

/* ---- Words ---- */

static const char *const words[] = {"all", "baseline", "lowest", "exact"};
enum { WORDS_COUNT = sizeof words / sizeof *words };

bool tarn_way_find(const char *word, enum tarn_way *way, uint32_t *method)
{
    *method = TARN_NONE;
    for (uint32_t i = 0; i < WORDS_COUNT; i++) {
        if (strcmp(words[i], word) == 0) {
            *way = (enum tarn_way)i;
            return true;
        }
    }
    *way = TARN_WAY_METHOD;
    *method = tarn_method_find(word);
    return *method != TARN_NONE;
}

const char *tarn_way_word(size_t i)
{
    if (i < WORDS_COUNT) return words[i];
    assert(i - WORDS_COUNT < tarn_methods_count);
    return tarn_methods[i - WORDS_COUNT].name;
}

size_t tarn_ways_count(void) { return WORDS_COUNT + tarn_methods_count; }

/* ---- Rungs ---- */

struct climb {
    const struct tarn_problem *problem;
    const struct tarn_antichain *antichain;
    struct tarn_place_request request; /* a copy: its bound may rise */
    struct tarn_place_result *result;
    uint64_t row;                     /* the footprint of the plan in a row */
    uint64_t work_left, reserve;      /* see work.h: reserved for the rungs that follow */
    struct tarn_work_costs costs;     /* where work is limited */
    bool cut;                         /* a rung would have gone on, but for want of work */
    struct tarn_conflicts *conflicts; /* the problem's: with rows from the first rung on that reads
                                         masks, which most climbs do not come to */
};

static enum tarn_status make_rows(const struct climb *climb)
{
    return climb->conflicts->row ? TARN_OK : tarn_conflicts_init_rows(climb->conflicts);
}

/* Always there, whatever else fails. */
static void begin_in_a_row(struct climb *climb)
{
    climb->result->footprint = climb->row =
        tarn_blocks_place_in_a_row(climb->problem->blocks, climb->result->offset);
    snprintf(climb->result->method, sizeof climb->result->method, "row");
}

/* What a rung may spend, 0 standing for no limit; false: nothing is left. */
static bool may_spend(struct climb *climb, uint64_t reserve, uint64_t *work_max)
{
    *work_max = 0;
    if (climb->work_left == TARN_WORK_UNLIMITED) return true;
    if (climb->work_left > reserve) *work_max = climb->work_left - reserve;
    if (*work_max == 0) climb->cut = true;
    return *work_max > 0;
}

static void spend(struct climb *climb, uint64_t work_max, uint64_t work)
{
    climb->work_left = tarn_work_less(climb->work_left, work);
    if (work_max > 0 && work >= work_max) climb->cut = true;
}

static enum tarn_status improve(struct climb *climb, uint64_t steps)
{
    struct tarn_improve_options options = climb->request.improve;
    struct tarn_improve_report report;
    if (!may_spend(climb, steps > 0 ? 0 : climb->reserve, &options.work_max)) return TARN_OK;
    uint64_t before = climb->result->footprint;
    options.steps = steps;
    if (climb->request.way == TARN_WAY_ALL) options.patience = steps / WALK_PATIENCE + 1;
    enum tarn_status status =
        tarn_improve_place(climb->problem, climb->antichain, &options, climb->result->offset,
                           &climb->result->footprint, &report);
    spend(climb, options.work_max, report.work);
    climb->cut = climb->cut || report.cut;
    if (status == TARN_OK && climb->result->footprint < before)
        snprintf(climb->result->method, sizeof climb->result->method, "lowest:%s",
                 report.by_walk ? "walk"
                 : report.key   ? report.key
                                : "again");
    return status;
}

/* How many of the paper's methods there is work for; they are paid for before. */
static uint32_t count_methods(struct climb *climb)
{
    uint32_t count = tarn_portfolio_count(climb->problem);
    uint64_t work_max, method = climb->costs.method + 1;
    if (!may_spend(climb, climb->reserve, &work_max)) return 0;
    if (work_max > 0 && work_max / method < count) {
        count = (uint32_t)(work_max / method);
        climb->cut = true;
    }
    spend(climb, 0, count * method);
    return count;
}

/* One of the paper's methods, or the first `methods` of all. */
static enum tarn_status baseline(const struct climb *climb, uint32_t method, uint32_t methods)
{
    const struct tarn_improve_options *options = &climb->request.improve;
    uint64_t footprint;
    uint32_t winner;
    size_t count = climb->problem->blocks->storages_count;
    uint64_t *offset = malloc((count + 1) * sizeof *offset);
    enum tarn_status status = offset ? make_rows(climb) : TARN_SYSTEM;
    if (status == TARN_OK)
        status =
            tarn_portfolio_place(climb->problem, method, methods, options->threads, options->bound,
                                 &options->deadline, offset, &footprint, &winner);
    bool ended = status == TARN_OK && footprint == UINT64_MAX;
    if (status == TARN_OK && !ended &&
        (method != TARN_NONE || footprint <= climb->result->footprint)) {
        memcpy(climb->result->offset, offset, count * sizeof *offset);
        climb->result->footprint = footprint;
        snprintf(climb->result->method, sizeof climb->result->method, "%s",
                 tarn_methods[winner].name);
    }
    free(offset);
    return status;
}

/* 0: there is no point: groups, or too few for every searcher to come to an end of a run. */
static uint64_t nodes_for(const struct climb *climb, uint64_t visits)
{
    const struct tarn_blocks *blocks = climb->problem->blocks;
    uint64_t nodes = visits / ((uint64_t)blocks->count + 1);
    bool lone = blocks->count == blocks->storages_count;
    return lone && nodes >= (uint64_t)EXACT_RUNS * blocks->count ? nodes : 0;
}

static uint64_t visits_for(uint64_t steps, uint64_t visits_a_step)
{
    return steps < UINT64_MAX / visits_a_step ? steps * visits_a_step : UINT64_MAX;
}

static uint64_t core_visits_for(const struct climb *climb, uint64_t steps)
{
    uint64_t storages = climb->problem->blocks->storages_count;
    if (storages > CORE_STORAGES) storages = CORE_STORAGES;
    return visits_for(steps, CORE_VISITS_A_STORAGE * (storages + 1));
}

static uint64_t aim_of(const struct climb *climb)
{
    const struct tarn_improve_options *options = &climb->request.improve;
    return options->bound > options->capacity ? options->bound : options->capacity;
}

/* With a capacity, that nothing fits ends the climb; else there may be something in between. */
static bool is_settled(const struct climb *climb)
{
    return climb->result->footprint <= aim_of(climb) ||
           (climb->result->cannot_fit && climb->request.improve.capacity > 0);
}

static bool is_done(const struct climb *climb)
{
    return is_settled(climb) || tarn_deadline_is_over(&climb->request.improve.deadline);
}

static bool is_over(const struct climb *climb) { return is_done(climb) || climb->work_left == 0; }

/* Complete search at the aim itself; finds nothing where there are too many blocks for it. */
static enum tarn_status exact(struct climb *climb, uint64_t nodes)
{
    const struct tarn_improve_options *improve = &climb->request.improve;
    struct tarn_exact_options options = {.seed = improve->seed,
                                         .nodes_max = nodes,
                                         .threads = improve->threads,
                                         .deadline = improve->deadline};
    const struct tarn_blocks *blocks = climb->problem->blocks;
    struct tarn_exact_report report;
    if (!may_spend(climb, climb->reserve, &options.work_max)) return TARN_OK;
    enum tarn_status status = make_rows(climb);
    if (status == TARN_OK)
        status = tarn_exact_place(climb->problem, NULL, aim_of(climb), &options,
                                  climb->result->offset, &report);
    if (status == TARN_USAGE) return TARN_OK;
    if (status != TARN_OK) return status;
    spend(climb, options.work_max, report.work);
    climb->result->cannot_fit = report.result == TARN_EXACT_INFEASIBLE;
    if (report.result != TARN_EXACT_FOUND) return TARN_OK;
    climb->result->footprint = tarn_blocks_footprint(blocks, climb->result->offset);
    snprintf(climb->result->method, sizeof climb->result->method, "exact");
    return TARN_OK;
}

static enum tarn_status exact_for(struct climb *climb, uint64_t visits)
{
    uint64_t nodes = nodes_for(climb, visits);
    return nodes > 0 && !climb->result->cannot_fit ? exact(climb, nodes) : TARN_OK;
}

/* Search by cores for a plan within `aim`. */
static enum tarn_status core(struct climb *climb, uint64_t aim, uint64_t visits)
{
    const struct tarn_improve_options *improve = &climb->request.improve;
    struct tarn_core_options options = {.aim = aim,
                                        .visits = visits,
                                        .seed = improve->seed,
                                        .threads = improve->threads,
                                        .deadline = improve->deadline};
    struct tarn_place_result *result = climb->result;
    struct tarn_core_report report = {false, 0};
    uint64_t before = result->footprint;
    if (!may_spend(climb, climb->reserve, &options.work_max)) return TARN_OK;
    enum tarn_status status = make_rows(climb);
    if (status == TARN_OK)
        status = tarn_core_place(climb->problem, climb->antichain, &options, result->offset,
                                 &result->footprint, &report);
    spend(climb, options.work_max, report.work);
    if (report.impossible && aim == aim_of(climb)) result->cannot_fit = true;
    if (status == TARN_OK && result->footprint < before) {
        snprintf(result->method, sizeof result->method, "exact:core");
        if (improve->progress) improve->progress(improve->user, result->footprint, 0);
    }
    return status;
}

/* At the aim, then at places on the way to it. */
static enum tarn_status approach(struct climb *climb, uint64_t visits)
{
    uint64_t aim = aim_of(climb);
    enum tarn_status status = TARN_OK;
    for (uint32_t n = climb->result->cannot_fit; status == TARN_OK && n < CORE_LEVELS; n++) {
        uint64_t way = climb->result->footprint - aim;
        if (is_done(climb) || way >> n == 0) break;
        status = core(climb, climb->result->footprint - (way >> n), visits);
    }
    return status;
}

static enum tarn_status raise_bound(struct climb *climb)
{
    const struct tarn_place_request *request = &climb->request;
    if (!request->raise_bound) return TARN_OK;
    return request->raise_bound(request->user, &climb->request.improve.bound);
}

/* What goes on for as long as it is allowed to; by chance, each time another one. */
static enum tarn_status search(struct climb *climb, uint64_t steps)
{
    climb->request.improve.seed++;
    enum tarn_status status = approach(climb, core_visits_for(climb, steps));
    climb->reserve = 0;
    if (status == TARN_OK && !is_done(climb)) status = improve(climb, steps);
    if (status == TARN_OK && !is_done(climb))
        status = exact_for(climb, visits_for(steps, EXACT_VISITS_A_STEP));
    return status;
}

static enum tarn_status climb_all(struct climb *climb)
{
    uint64_t left = climb->request.improve.steps, steps = ROUND_STEPS;
    uint64_t first = left < ROUND_STEPS ? left : ROUND_STEPS;
    uint32_t count = climb->problem->blocks->count;
    enum tarn_status status = improve(climb, 0);
    if (status == TARN_OK && !is_done(climb)) status = raise_bound(climb);
    if (status == TARN_OK && !is_done(climb) && left > 0) status = exact_for(climb, EXACT_GLANCE);
    if (status == TARN_OK && !is_done(climb) && left > 0)
        status = core(climb, aim_of(climb), core_visits_for(climb, first));
    if (status == TARN_OK && !is_done(climb) && left > 0) status = exact_for(climb, EXACT_VISITS);
    if (status == TARN_OK && !is_done(climb) && count <= BASELINE_BLOCKS_MAX) {
        climb->reserve = climb->request.improve.work_max / WALKS_SHARE;
        uint32_t methods = count_methods(climb);
        if (methods > 0) status = baseline(climb, TARN_NONE, methods);
    }
    if (count > ROUND_BLOCKS_MAX) return status;
    climb->reserve = climb->request.improve.work_max / WALKS_SHARE;
    for (; status == TARN_OK && left > 0 && !is_over(climb); left -= steps, steps *= 2) {
        if (steps > left) steps = left;
        status = search(climb, steps);
    }
    return status;
}

/* Keys, which take windows where blocks are many, then walks. */
static enum tarn_status climb_lowest(struct climb *climb)
{
    enum tarn_status status = improve(climb, 0);
    if (status == TARN_OK && climb->request.improve.steps > 0 && !is_done(climb))
        status = improve(climb, climb->request.improve.steps);
    return status;
}

static enum tarn_status climb_exact(struct climb *climb)
{
    enum tarn_status status = improve(climb, 0);
    if (status == TARN_OK && !is_done(climb)) status = raise_bound(climb);
    climb->reserve = 0;
    uint64_t nodes = visits_for(climb->request.improve.steps, EXACT_VISITS_A_STEP) /
                     (climb->problem->blocks->count + 1u);
    return status == TARN_OK && !is_done(climb) ? exact(climb, nodes + 1) : status;
}

static enum tarn_status lay_out(const struct climb *climb)
{
    struct tarn_place_result *result = climb->result;
    const struct tarn_layout *layout = climb->request.layout;
    snprintf(result->method, sizeof result->method, "%s", layout->name);
    enum tarn_status status = make_rows(climb);
    if (status != TARN_OK) return status;
    return layout->place(climb->problem, climb->request.node_limit, result->offset,
                         &result->footprint);
}

/* A search that was ended before its first plan leaves that of one pass. */
static enum tarn_status pass(const struct climb *climb)
{
    const struct tarn_improve_options *improve = &climb->request.improve;
    struct tarn_place_result *result = climb->result;
    enum tarn_status status = tarn_pass_place(climb->problem, climb->antichain, improve->threads,
                                              result->offset, &result->footprint);
    if (status != TARN_OK || result->footprint == climb->row) return status;
    snprintf(result->method, sizeof result->method, "lowest:pass");
    if (improve->progress) improve->progress(improve->user, result->footprint, 0);
    return TARN_OK;
}

static enum tarn_status go(struct climb *climb)
{
    switch (climb->request.way) {
    case TARN_WAY_ALL: return climb_all(climb);
    case TARN_WAY_BASELINE: return baseline(climb, TARN_NONE, TARN_NONE);
    case TARN_WAY_LOWEST: return climb_lowest(climb);
    case TARN_WAY_EXACT: return climb_exact(climb);
    case TARN_WAY_METHOD: return baseline(climb, climb->request.method, TARN_NONE);
    case TARN_WAY_LAYOUT: return lay_out(climb);
    }
    return TARN_USAGE;
}

/* What ended a search that would have gone on. */
static enum tarn_stop why_stopped(const struct climb *climb)
{
    if (climb->request.way == TARN_WAY_LAYOUT || is_settled(climb)) return TARN_STOP_NONE;
    enum tarn_stop reason = tarn_deadline_reason(&climb->request.improve.deadline);
    return reason == TARN_STOP_NONE && climb->cut ? TARN_STOP_WORK : reason;
}

static enum tarn_status limit_work(struct climb *climb)
{
    uint64_t work_max = climb->request.improve.work_max;
    climb->work_left = work_max > 0 ? work_max : TARN_WORK_UNLIMITED;
    climb->reserve = work_max / PLANS_SHARE;
    return work_max > 0 ? tarn_work_estimate(climb->problem, &climb->costs) : TARN_OK;
}

enum tarn_status tarn_place(const struct tarn_problem *problem,
                            const struct tarn_antichain *antichain,
                            const struct tarn_place_request *request,
                            struct tarn_place_result *result)
{
    struct tarn_conflicts conflicts = *problem->conflicts;
    const struct tarn_problem own = {problem->graph, problem->blocks, &conflicts};
    struct climb climb = {.problem = &own,
                          .antichain = antichain,
                          .request = *request,
                          .result = result,
                          .conflicts = &conflicts};
    begin_in_a_row(&climb);
    enum tarn_status status = limit_work(&climb);
    if (status == TARN_OK) status = go(&climb);
    result->stopped = why_stopped(&climb);
    if (status == TARN_OK && result->stopped != TARN_STOP_NONE && result->footprint == climb.row)
        status = pass(&climb);
    if (!problem->conflicts->row) tarn_conflicts_finish_rows(&conflicts);
    return status;
}
