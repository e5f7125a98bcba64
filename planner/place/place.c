/* Runs placement in stages: each stage costs more than the one before it, and the first plan that
 * meets the aim (the larger of bound and capacity) ends the placement.
 *
 *     chains     if all storages have one size: the flow that proves the bound places them
 *     orders     lowest-offset-first by each of a few priority orders: nearly every real graph
 *                ends here; many blocks are placed by windows first (improve.c)
 *     bound      raised, if it can be: perhaps this was the best plan already
 *     exact      complete search at the aim, briefly: if blocks are few and it is tight
 *     coarse     exact search, cores, bands, folding (fold.h) and repair (repair.h) in coarse
 *                sizes, if most bytes are in multiples of one size (coarse.h)
 *     core       exact search for the few blocks that matter (core.h): nearly all others end here
 *     apart      every stream in a band of its own, if that can be lower (apart.h)
 *     baseline   the methods of SOMAS, so that no plan is worse than the best of them; left out if
 *                the work left is reserved for what follows
 *     compact    what all of these have found, pushed together (compact.h)
 *     core   ┐   closer to the aim by 1/2, 1/4, 1/8 of the distance, then at the aim, with other
 *     local  ┘   random numbers; from the best plan so far; both in rounds that grow, up to the
 *                steps asked for (local: searches that change a plan step by step)
 *
 * Every stage is deterministic for any number of threads, hence the result is, and no stage returns
 * a worse plan than it began with. All stages share one deadline, and one account of work (work.h)
 * that ends a placement and changes nothing else. */
#include "place.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "planner/place/somas/somas.h"
#include "stages.h"

/* The methods of SOMAS look at every pair: above this many blocks they take minutes, and are left
 * out unless asked for by name. */
enum { BASELINE_BLOCKS_MAX = 16384 };
/* Visits of complete search for each step, if only complete search was asked for. */
enum { EXACT_VISITS_A_STEP = 80000 };
/* Search at the aim leaves 1/PLANS_SHARE of the allowed work to stages that find plans above the
 * aim: the methods of SOMAS, cores short of the aim, local searches. Cores leave
 * 1/LOCAL_SEARCH_SHARE to local searches. These find in milliseconds plans that exact search may
 * not find in seconds. */
enum { PLANS_SHARE = 2, LOCAL_SEARCH_SHARE = 4 };
/* The first search by cores may do 1/CORE_SHARE of all work. */
enum { CORE_SHARE = 5 };
/* Bands leave 1/APART_KEEPS of the work that is left after priority orders and cores, the work
 * reserved for other plans included. */
enum { APART_KEEPS = 4 };
/* Compaction may do 1/COMPACT_SHARE of what is left. */
enum { COMPACT_SHARE = 4 };
/* The first round has at most ROUND_STEPS steps, each of the next ones twice as many as the one
 * before. For more than ROUND_BLOCKS_MAX blocks there is no round. */
enum { ROUND_STEPS = 1000, ROUND_BLOCKS_MAX = 65536 };

/* ---- Names ---- */

/* By enum tarn_place_method. */
static const char *const names[] = {"all", "baseline", "lowest", "exact"};
enum { NAMES_COUNT = sizeof names / sizeof *names };

bool tarn_place_method_find(const char *name, enum tarn_place_method *method, uint32_t *somas)
{
    *somas = TARN_NONE;
    for (uint32_t i = 0; i < NAMES_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            *method = (enum tarn_place_method)i;
            return true;
        }
    }
    *method = TARN_PLACE_SOMAS;
    *somas = tarn_method_find(name);
    return *somas != TARN_NONE;
}

const char *tarn_place_method_name(size_t i)
{
    if (i < NAMES_COUNT) return names[i];
    assert(i - NAMES_COUNT < tarn_methods_count);
    return tarn_methods[i - NAMES_COUNT].name;
}

size_t tarn_place_methods_count(void) { return NAMES_COUNT + tarn_methods_count; }

/* ---- The stages in order ---- */

static enum tarn_status raise_bound(struct tarn_placing *placing)
{
    const struct tarn_place_request *request = &placing->request;
    if (!request->raise_bound) return TARN_OK;
    return request->raise_bound(request->user, &placing->request.improve.bound);
}

/* A round, each with other random numbers. */
static enum tarn_status run_round(struct tarn_placing *placing, uint64_t steps)
{
    placing->request.improve.seed++;
    enum tarn_status status = tarn_stage_approach(placing, tarn_stage_core_visits(placing, steps));
    placing->reserve = 0;
    if (status == TARN_OK && !tarn_placing_is_done(placing))
        status = tarn_stage_improve(placing, steps);
    return status;
}

/* Limits the first search by cores, which is at the aim. */
static uint64_t reserve_of_core(const struct tarn_placing *placing)
{
    uint64_t most = placing->request.improve.work_max / CORE_SHARE, left = placing->work_left;
    return left > most && left - most > placing->reserve ? left - most : placing->reserve;
}

static bool is_enough(const struct tarn_placing *placing)
{
    return placing->result->footprint <= placing->request.enough;
}

static bool goes_on(const struct tarn_placing *placing, enum tarn_status status)
{
    return status == TARN_OK && !tarn_placing_is_done(placing);
}

static enum tarn_status place_by_every_method(struct tarn_placing *placing)
{
    const struct tarn_improve_options *improve = &placing->request.improve;
    uint64_t left = improve->steps, steps = ROUND_STEPS;
    uint64_t first = left < ROUND_STEPS ? left : ROUND_STEPS;
    uint32_t count = placing->problem.blocks.count;
    tarn_stage_chains(placing);
    if (tarn_placing_is_done(placing)) return TARN_OK;
    enum tarn_status status = tarn_stage_improve(placing, 0);
    if (goes_on(placing, status)) status = raise_bound(placing);
    if (goes_on(placing, status) && left > 0) status = tarn_stage_exact_briefly(placing);
    if (goes_on(placing, status) && left > 0)
        status = tarn_stage_coarse(placing, tarn_stage_core_visits(placing, first));
    if (improve->work_max > 0) placing->reserve = reserve_of_core(placing);
    if (goes_on(placing, status) && left > 0)
        status = tarn_stage_core(placing, tarn_placing_aim(placing),
                                 tarn_stage_core_visits(placing, first));
    placing->reserve = improve->work_max / LOCAL_SEARCH_SHARE;
    if (goes_on(placing, status) && left > 0)
        status = tarn_stage_apart(placing, APART_KEEPS, tarn_stage_core_visits(placing, first));
    if (goes_on(placing, status) && count <= BASELINE_BLOCKS_MAX) {
        uint32_t methods = tarn_stage_count_methods(placing);
        if (methods > 0) status = tarn_stage_somas(placing, TARN_NONE, methods);
    }
    if (goes_on(placing, status) && left > 0) status = tarn_stage_compact(placing, COMPACT_SHARE);
    if (count > ROUND_BLOCKS_MAX) {
        placing->is_through = left >= ROUND_STEPS;
        left = 0;
    }
    for (; goes_on(placing, status) && left > 0 && placing->work_left > 0;
         left -= steps, steps *= 2) {
        if (steps > ROUND_STEPS && is_enough(placing)) break;
        if (steps > left) steps = left;
        status = run_round(placing, steps);
    }
    if (status == TARN_OK) tarn_stage_take_apart(placing);
    return status;
}

/* Runs priority orders, by windows if blocks are many, then local searches. */
static enum tarn_status place_by_lowest(struct tarn_placing *placing)
{
    enum tarn_status status = tarn_stage_improve(placing, 0);
    if (goes_on(placing, status) && placing->request.improve.steps > 0)
        status = tarn_stage_improve(placing, placing->request.improve.steps);
    return status;
}

static enum tarn_status place_by_exact(struct tarn_placing *placing)
{
    enum tarn_status status = tarn_stage_improve(placing, 0);
    if (goes_on(placing, status)) status = raise_bound(placing);
    placing->reserve = 0;
    uint64_t visits = tarn_stage_visits(placing->request.improve.steps, EXACT_VISITS_A_STEP);
    uint64_t nodes = visits / (placing->problem.blocks.count + 1u);
    return goes_on(placing, status) ? tarn_stage_exact(placing, nodes + 1) : status;
}

static enum tarn_status go(struct tarn_placing *placing)
{
    switch (placing->request.method) {
    case TARN_PLACE_ALL: return place_by_every_method(placing);
    case TARN_PLACE_BASELINE: return tarn_stage_somas(placing, TARN_NONE, TARN_NONE);
    case TARN_PLACE_LOWEST: return place_by_lowest(placing);
    case TARN_PLACE_EXACT: return place_by_exact(placing);
    case TARN_PLACE_SOMAS: return tarn_stage_somas(placing, placing->request.somas, TARN_NONE);
    case TARN_PLACE_LAYOUT: return tarn_stage_lay_out(placing);
    }
    return TARN_USAGE;
}

/* ---- The whole ---- */

/* Always there, whatever else fails. */
static void begin_stacked(struct tarn_placing *placing)
{
    struct tarn_place_result *result = placing->result;
    result->footprint = placing->stacked =
        tarn_blocks_place_in_a_row(&placing->problem.blocks, result->offset);
    snprintf(result->method, sizeof result->method, "row");
}

/* Returns what ended a search that would have continued. */
static enum tarn_stop why_stopped(const struct tarn_placing *placing)
{
    if (placing->request.method == TARN_PLACE_LAYOUT || tarn_placing_is_settled(placing))
        return TARN_STOP_NONE;
    enum tarn_stop reason = tarn_deadline_reason(&placing->request.improve.deadline);
    return reason == TARN_STOP_NONE && placing->cut ? TARN_STOP_WORK : reason;
}

/* Whatever ended it. */
static enum tarn_end why_ended(const struct tarn_placing *placing)
{
    const struct tarn_place_request *request = &placing->request;
    bool is_construction = request->method == TARN_PLACE_SOMAS ||
                           request->method == TARN_PLACE_BASELINE ||
                           request->method == TARN_PLACE_LAYOUT;
    bool is_proved = request->method == TARN_PLACE_EXACT && placing->result->cannot_fit;
    if (placing->result->footprint <= request->improve.bound) return TARN_END_BOUND;
    if (placing->result->footprint <= tarn_placing_aim(placing)) return TARN_END_CAPACITY;
    if (is_enough(placing) && placing->result->stopped == TARN_STOP_NONE) return TARN_END_CAPACITY;
    if (placing->result->stopped != TARN_STOP_NONE) return TARN_END_STOPPED;
    return is_construction || is_proved || placing->is_through ? TARN_END_METHOD : TARN_END_EFFORT;
}

static enum tarn_status limit_work(struct tarn_placing *placing)
{
    uint64_t work_max = placing->request.improve.work_max;
    placing->work_left = work_max > 0 ? work_max : TARN_WORK_UNLIMITED;
    placing->reserve = work_max / PLANS_SHARE;
    return work_max > 0 ? tarn_work_estimate(&placing->problem, &placing->costs) : TARN_OK;
}

enum tarn_status tarn_place(const struct tarn_problem *problem,
                            const struct tarn_place_request *request,
                            struct tarn_place_result *result)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_placing placing = {
        .problem = *problem, .request = *request, .result = result, .region = &region};
    assert((request->method == TARN_PLACE_LAYOUT) == (request->layout != NULL));
    begin_stacked(&placing);
    enum tarn_status status = limit_work(&placing);
    if (status == TARN_OK) status = go(&placing);
    result->stopped = why_stopped(&placing);
    if (status == TARN_OK && result->stopped != TARN_STOP_NONE &&
        result->footprint == placing.stacked)
        status = tarn_stage_pass(&placing);
    result->ended = why_ended(&placing);
    assert(status != TARN_OK || result->footprint <= placing.stacked ||
           request->method >= TARN_PLACE_SOMAS || request->method == TARN_PLACE_BASELINE);
    tarn_region_finish(&region);
    return status;
}
