/* Implements the stages of placement. A stage's plan becomes the result if it is lower; its cost is
 * subtracted from the remaining work. Cost: see the functions that each stage calls. */
#include "stages.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "apart.h"
#include "coarse.h"
#include "compact.h"
#include "core.h"
#include "planner/place/exact/exact.h"
#include "planner/place/fold.h"
#include "planner/place/somas/somas.h"
#include "repair.h"
#include "search.h"
#include "streams/base/random.h"

/* Exact search of all blocks is for lone storages: a node costs too much if groups have many
 * members. EXACT_BRIEFLY: visits of blocks. EXACT_RUNS: nodes for each block with which every
 * searcher finishes a run; with fewer nodes exact search is skipped. */
enum { EXACT_BRIEFLY = 6000000, EXACT_RUNS = 24 };
/* A step of search by cores is CORE_VISITS_A_STORAGE visits for each storage, and for at most
 * CORE_STORAGES storages: a small graph that cannot be placed at its bound is given up soon.
 * CORE_LEVELS: number of footprints that are searched for, closer to the aim by 1/2, 1/4, 1/8 of
 * the distance to it, and then the aim, which the stage before searched for. */
enum { CORE_VISITS_A_STORAGE = 250, CORE_STORAGES = 1000, CORE_LEVELS = 4 };
/* Local searches seldom find plans that cores do not: they end after 1/LOCAL_SEARCH_PATIENCE of
 * their steps, one after the other, without a better plan. */
enum { LOCAL_SEARCH_PATIENCE = 4 };
/* Repeating blocks are folded to 1 to FOLD_PERIODS periods, as long as this leaves at most
 * FOLD_LEADERS blocks and removes 1/FOLD_SHARE of them. FOLD_BRIEFLY: visits of blocks for a number
 * of periods. */
enum { FOLD_PERIODS = 12, FOLD_LEADERS = 600, FOLD_SHARE = 8, FOLD_BLOCKS_MAX = 65536 };
enum { FOLD_TRIES = 2, FOLD_BRIEFLY = 4000000 };

/* Bands get priority orders and cores: there is no point in them with less work than
 * APART_PLACEMENTS placements of everything. */
enum { APART_PLACEMENTS = 8 };
/* Bands of coarse problems get all that cores leave, which is 1/COARSE_SHARE. To make a coarse plan
 * fine, 1/REFINE_SHARE of the work is kept. */
enum { COARSE_SHARE = 2, REFINE_SHARE = 8, COARSE_BLOCKS_MAX = 16384 };

/* Search by repair leaves 1/REPAIR_LEAVES of all work to the stages after it, and is not begun if
 * its making takes more than 1/REPAIR_MAKES of its own. If that removes 1/REPAIR_SHARE of the
 * blocks, what repeats is folded to REPAIR_PERIODS periods. REPAIR_PLANS coarse plans at the bound
 * are made fine. A first try has 1/REPAIR_FIRST of all work. */
enum { REPAIR_LEAVES = 4, REPAIR_FIRST = 16, REPAIR_MAKES = 8 };
enum { REPAIR_PERIODS = 12, REPAIR_SHARE = 3, REPAIR_PLANS = 4 };
/* Storages get slots if at most 1/SLOTS_SHARE of all are rounded down. */
enum { SLOTS_SHARE = 8 };

static enum tarn_status make_rows(struct tarn_placing *placing)
{
    struct tarn_conflicts *conflicts = &placing->problem.conflicts;
    return conflicts->row ? TARN_OK : tarn_conflicts_init_rows(conflicts, placing->region);
}

/* Finds the work that a stage may spend; 0 means no limit. False: no work is left. */
static bool may_spend(struct tarn_placing *placing, uint64_t reserve, uint64_t *work_max)
{
    *work_max = 0;
    if (placing->work_left == TARN_WORK_UNLIMITED) return true;
    if (placing->work_left > reserve) *work_max = placing->work_left - reserve;
    if (*work_max == 0) placing->cut = true;
    return *work_max > 0;
}

static void spend(struct tarn_placing *placing, uint64_t work_max, uint64_t work)
{
    placing->work_left = tarn_work_less(placing->work_left, work);
    if (work_max > 0 && work >= work_max) placing->cut = true;
}

/* An own alignment of a storage may be larger than the plan's. */
void tarn_stage_chains(struct tarn_placing *placing)
{
    const struct tarn_blocks *blocks = &placing->problem.blocks;
    const struct tarn_antichain *antichain = &placing->problem.antichain;
    struct tarn_place_result *result = placing->result;
    uint32_t count = blocks->storages_count;
    if (!antichain->chain || blocks->count != count) return;
    uint64_t size = blocks->reserved[0], footprint = size * antichain->chains_count;
    if (footprint >= result->footprint) return;
    for (uint32_t b = 0; b < count; b++)
        if (size & ((UINT64_C(1) << blocks->alignment_shift[b]) - 1)) return;
    for (uint32_t a = 0; a < count; a++) result->offset[a] = size * antichain->chain[a];
    result->footprint = footprint;
    snprintf(result->method, sizeof result->method, "chains");
    if (placing->request.improve.progress)
        placing->request.improve.progress(placing->request.improve.user, footprint, 0);
}

enum tarn_status tarn_stage_improve(struct tarn_placing *placing, uint64_t steps)
{
    struct tarn_improve_options options = placing->request.improve;
    struct tarn_improve_report report;
    if (!may_spend(placing, steps > 0 ? 0 : placing->reserve, &options.work_max)) return TARN_OK;
    uint64_t before = placing->result->footprint;
    options.steps = steps;
    if (placing->request.method == TARN_PLACE_ALL)
        options.patience = steps / LOCAL_SEARCH_PATIENCE + 1;
    enum tarn_status status = tarn_improve_place(
        &placing->problem, &options, placing->result->offset, &placing->result->footprint, &report);
    assert(placing->result->footprint <= before);
    spend(placing, options.work_max, report.work);
    placing->cut = placing->cut || report.cut;
    if (status == TARN_OK && placing->result->footprint < before)
        snprintf(placing->result->method, sizeof placing->result->method, "lowest:%s",
                 report.by_local_search ? "walk"
                 : report.priority      ? report.priority
                                        : "again");
    return status;
}

uint32_t tarn_stage_count_methods(struct tarn_placing *placing)
{
    uint32_t count = tarn_portfolio_count(&placing->problem);
    uint64_t work_max, method = placing->costs.method + 1;
    if (!may_spend(placing, placing->reserve, &work_max)) return 0;
    if (work_max > 0 && work_max / method < count) {
        count = (uint32_t)(work_max / method);
        placing->cut = true;
    }
    spend(placing, 0, count * method);
    return count;
}

enum tarn_status tarn_stage_somas(struct tarn_placing *placing, uint32_t method, uint32_t methods)
{
    const struct tarn_improve_options *options = &placing->request.improve;
    uint64_t footprint;
    uint32_t winner;
    size_t count = placing->problem.blocks.storages_count;
    enum tarn_status status = make_rows(placing);
    if (status != TARN_OK) return status;
    struct tarn_region_mark mark = tarn_region_mark(placing->region);
    uint64_t *offset = tarn_region_take(placing->region, count, sizeof *offset);
    if (!offset) return TARN_SYSTEM;
    status = tarn_portfolio_place(&placing->problem, method, methods, options->threads,
                                  options->bound, &options->deadline, offset, &footprint, &winner);
    bool ended = status == TARN_OK && footprint == UINT64_MAX;
    if (status == TARN_OK && !ended &&
        (method != TARN_NONE || footprint <= placing->result->footprint)) {
        memcpy(placing->result->offset, offset, count * sizeof *offset);
        placing->result->footprint = footprint;
        snprintf(placing->result->method, sizeof placing->result->method, "%s",
                 tarn_methods[winner].name);
    }
    tarn_region_release(placing->region, mark);
    return status;
}

/* Returns the node limit. 0: exact search is skipped, because of groups, or because too few nodes
 * are left for every searcher to finish a run. */
static uint64_t nodes_for(const struct tarn_placing *placing, uint64_t visits)
{
    const struct tarn_blocks *blocks = &placing->problem.blocks;
    uint64_t nodes = visits / ((uint64_t)blocks->count + 1);
    bool lone = blocks->count == blocks->storages_count;
    return lone && nodes >= (uint64_t)EXACT_RUNS * blocks->count ? nodes : 0;
}

uint64_t tarn_stage_visits(uint64_t steps, uint64_t visits_a_step)
{
    return steps < UINT64_MAX / visits_a_step ? steps * visits_a_step : UINT64_MAX;
}

uint64_t tarn_stage_core_visits(const struct tarn_placing *placing, uint64_t steps)
{
    uint64_t storages = placing->problem.blocks.storages_count;
    if (storages > CORE_STORAGES) storages = CORE_STORAGES;
    return tarn_stage_visits(steps, CORE_VISITS_A_STORAGE * (storages + 1));
}

uint64_t tarn_placing_aim(const struct tarn_placing *placing)
{
    const struct tarn_improve_options *options = &placing->request.improve;
    return options->bound > options->capacity ? options->bound : options->capacity;
}

bool tarn_placing_is_settled(const struct tarn_placing *placing)
{
    return placing->result->footprint <= tarn_placing_aim(placing) ||
           (placing->result->cannot_fit && placing->request.improve.capacity > 0);
}

bool tarn_placing_is_done(const struct tarn_placing *placing)
{
    return tarn_placing_is_settled(placing) ||
           tarn_deadline_is_over(&placing->request.improve.deadline);
}

/* Exact search within `aim` bytes, for the leaders (NULL: for all blocks). *found is left unchanged
 * if there is no work for it, or too much to search. */
static enum tarn_status place_exactly(struct tarn_placing *placing, const uint32_t *leader,
                                      uint64_t nodes, uint64_t aim, enum tarn_exact_result *found)
{
    const struct tarn_improve_options *improve = &placing->request.improve;
    struct tarn_place_result *result = placing->result;
    struct tarn_exact_options options = {.seed = improve->seed,
                                         .nodes_max = nodes,
                                         .threads = improve->threads,
                                         .leader = leader,
                                         .deadline = improve->deadline};
    struct tarn_exact_report report;
    if (!may_spend(placing, placing->reserve, &options.work_max)) return TARN_OK;
    enum tarn_status status = make_rows(placing);
    if (status == TARN_OK)
        status = tarn_exact_place(&placing->problem, NULL, aim, &options, result->offset, &report);
    if (status != TARN_OK) return status == TARN_USAGE ? TARN_OK : status;
    spend(placing, options.work_max, report.work);
    *found = report.result;
    if (report.result != TARN_EXACT_FOUND) return TARN_OK;
    result->footprint = tarn_blocks_footprint(&placing->problem.blocks, result->offset);
    assert(result->footprint <= aim);
    snprintf(result->method, sizeof result->method, leader ? "exact:fold" : "exact");
    return TARN_OK;
}

enum tarn_status tarn_stage_exact(struct tarn_placing *placing, uint64_t nodes)
{
    enum tarn_exact_result found = TARN_EXACT_STOPPED;
    enum tarn_status status =
        place_exactly(placing, NULL, nodes, tarn_placing_aim(placing), &found);
    placing->result->cannot_fit = found == TARN_EXACT_INFEASIBLE;
    return status;
}

enum tarn_status tarn_stage_exact_briefly(struct tarn_placing *placing)
{
    uint64_t nodes = nodes_for(placing, EXACT_BRIEFLY);
    return nodes > 0 && !placing->result->cannot_fit ? tarn_stage_exact(placing, nodes) : TARN_OK;
}

/* ---- Repeating blocks ---- */

/* Exact search for the leaders; *searched: it was not impossible at once. */
static enum tarn_status place_leaders(struct tarn_placing *placing, const uint32_t *leader,
                                      uint32_t leaders, uint64_t aim, bool *searched)
{
    const struct tarn_improve_options *improve = &placing->request.improve;
    enum tarn_exact_result found = TARN_EXACT_INFEASIBLE;
    enum tarn_status status =
        place_exactly(placing, leader, FOLD_BRIEFLY / (leaders + 1) + 1, aim, &found);
    *searched = found != TARN_EXACT_INFEASIBLE;
    if (found == TARN_EXACT_FOUND && improve->progress)
        improve->progress(improve->user, placing->result->footprint, 0);
    return status;
}

/* Tries one number of periods after the other, until FOLD_TRIES of them could not be
 * placed although no proof was found that they are impossible. Impossible ones cost little. */
static enum tarn_status place_folded(struct tarn_placing *placing, const struct tarn_fold *fold,
                                     uint32_t *leader)
{
    uint64_t aim = tarn_placing_aim(placing);
    uint32_t count = placing->problem.blocks.count;
    enum tarn_status status = TARN_OK;
    for (uint32_t period = 1, tries = 0; period <= FOLD_PERIODS && tries < FOLD_TRIES; period++) {
        bool searched = false;
        uint32_t leaders = tarn_fold_lead(fold, period, leader);
        spend(placing, 0, (uint64_t)TARN_WORK_FOLD_PERIOD * count);
        if (leaders > count - count / FOLD_SHARE || leaders > FOLD_LEADERS) break;
        status = place_leaders(placing, leader, leaders, aim, &searched);
        if (status != TARN_OK || placing->result->footprint <= aim) break;
        if (tarn_placing_is_done(placing) || placing->work_left <= placing->reserve) break;
        tries += searched;
    }
    return status;
}

/* Exact search at the aim with repeating blocks folded (fold.h): for bands and coarse sizes. */
static enum tarn_status fold(struct tarn_placing *placing)
{
    uint32_t count = placing->problem.blocks.count;
    uint64_t work_max;
    struct tarn_fold folded;
    bool has_graph = placing->problem.graph || placing->problem.source;
    if (!has_graph || count > FOLD_BLOCKS_MAX) return TARN_OK;
    if (!may_spend(placing, placing->reserve, &work_max)) return TARN_OK;
    enum tarn_status status = make_rows(placing);
    if (status != TARN_OK) return status;
    struct tarn_region_mark mark = tarn_region_mark(placing->region);
    uint32_t *leader = tarn_region_take(placing->region, count, sizeof *leader);
    status = leader ? tarn_fold_init(&folded, placing->region, &placing->problem) : TARN_SYSTEM;
    spend(placing, 0, (uint64_t)TARN_WORK_MAKE * count);
    if (status == TARN_OK) status = place_folded(placing, &folded, leader);
    tarn_region_release(placing->region, mark);
    return status;
}

/* ---- Compaction ---- */

enum tarn_status tarn_stage_compact(struct tarn_placing *placing, uint64_t share)
{
    const struct tarn_improve_options *improve = &placing->request.improve;
    struct tarn_compact_options options = {.aim = tarn_placing_aim(placing),
                                           .deadline = improve->deadline};
    struct tarn_place_result *result = placing->result;
    uint64_t work = 0, before = result->footprint;
    if (!may_spend(placing, 0, &options.work_max)) return TARN_OK;
    if (options.work_max > 0) options.work_max = options.work_max / share + 1;
    if (placing->problem.blocks.count > COARSE_BLOCKS_MAX) return TARN_OK;
    enum tarn_status status = make_rows(placing);
    if (status == TARN_OK)
        status = tarn_compact_place(&placing->problem, &options, result->offset, &result->footprint,
                                    &work);
    if (status != TARN_OK) return status;
    spend(placing, 0, work);
    if (result->footprint == before) return TARN_OK;
    snprintf(result->method, sizeof result->method, "compact");
    if (improve->progress) improve->progress(improve->user, result->footprint, 0);
    return TARN_OK;
}

/* ---- Streams apart ---- */

/* The stages for one band. */
static enum tarn_status search_band(const struct tarn_apart_options *options,
                                    const struct tarn_problem *problem, uint64_t least,
                                    uint64_t work_max, uint64_t *offset, uint64_t *height,
                                    uint64_t *work)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_place_result result = {.offset = offset, .footprint = *height};
    struct tarn_placing band = {.problem = *problem, .result = &result, .region = &region};
    band.request.improve = (struct tarn_improve_options){.bound = least,
                                                         .seed = options->seed,
                                                         .threads = options->threads,
                                                         .deadline = options->deadline};
    uint64_t begun = work_max > 0 ? work_max : TARN_WORK_UNLIMITED;
    band.work_left = begun;
    enum tarn_status status = tarn_stage_exact_briefly(&band);
    if (status == TARN_OK && !tarn_placing_is_done(&band)) status = fold(&band);
    if (status == TARN_OK && !tarn_placing_is_done(&band))
        status = tarn_stage_core(&band, least, options->visits);
    *height = result.footprint;
    *work = work_max > 0 ? begun - band.work_left : 0;
    tarn_region_finish(&region);
    return status;
}

enum tarn_status tarn_stage_apart(struct tarn_placing *placing, uint64_t kept, uint64_t visits)
{
    const struct tarn_improve_options *improve = &placing->request.improve;
    const struct tarn_problem *whole = placing->whole ? placing->whole : &placing->problem;
    struct tarn_apart_options options = {.whole = whole,
                                         .visits = visits,
                                         .aim = tarn_placing_aim(placing),
                                         .seed = improve->seed,
                                         .threads = improve->threads,
                                         .deadline = improve->deadline,
                                         .search = search_band};
    uint64_t work = 0;
    if (!may_spend(placing, 0, &options.work_max)) return TARN_OK;
    if (options.work_max > 0) {
        if (kept > 0) options.work_max -= options.work_max / kept;
        if (options.work_max / APART_PLACEMENTS < placing->costs.place) return TARN_OK;
    }
    if (make_rows(placing) != TARN_OK) return TARN_SYSTEM; /* they outlive the mark */
    struct tarn_region_mark mark = tarn_region_mark(placing->region);
    placing->apart_footprint = placing->result->footprint;
    placing->apart = tarn_region_take(placing->region, placing->problem.blocks.storages_count,
                                      sizeof *placing->apart);
    if (!placing->apart) return TARN_SYSTEM;
    enum tarn_status status = tarn_apart_place(&placing->problem, &options, placing->apart,
                                               &placing->apart_footprint, &work);
    spend(placing, 0, work);
    if (status != TARN_OK || placing->apart_footprint >= placing->result->footprint) {
        tarn_region_release(placing->region, mark);
        placing->apart = NULL;
        return status;
    }
    if (improve->progress) improve->progress(improve->user, placing->apart_footprint, 0);
    if (placing->apart_footprint <= tarn_placing_aim(placing)) tarn_stage_take_apart(placing);
    return TARN_OK;
}

void tarn_stage_take_apart(struct tarn_placing *placing)
{
    struct tarn_place_result *result = placing->result;
    if (!placing->apart || placing->apart_footprint >= result->footprint) return;
    memcpy(result->offset, placing->apart,
           placing->problem.blocks.storages_count * sizeof *result->offset);
    result->footprint = placing->apart_footprint;
    snprintf(result->method, sizeof result->method, "apart");
}

/* ---- Cores ---- */

enum tarn_status tarn_stage_core(struct tarn_placing *placing, uint64_t aim, uint64_t visits)
{
    const struct tarn_improve_options *improve = &placing->request.improve;
    struct tarn_core_options options = {.aim = aim,
                                        .visits = visits,
                                        .seed = improve->seed,
                                        .threads = improve->threads,
                                        .deadline = improve->deadline};
    struct tarn_place_result *result = placing->result;
    struct tarn_core_report report = {false, 0};
    uint64_t before = result->footprint;
    if (!may_spend(placing, placing->reserve, &options.work_max)) return TARN_OK;
    enum tarn_status status = make_rows(placing);
    if (status == TARN_OK)
        status = tarn_core_place(&placing->problem, &options, result->offset, &result->footprint,
                                 &report);
    assert(result->footprint <= before);
    spend(placing, options.work_max, report.work);
    if (report.impossible && aim == tarn_placing_aim(placing)) result->cannot_fit = true;
    if (status == TARN_OK && result->footprint < before) {
        snprintf(result->method, sizeof result->method, "exact:core");
        if (improve->progress) improve->progress(improve->user, result->footprint, 0);
    }
    return status;
}

enum tarn_status tarn_stage_approach(struct tarn_placing *placing, uint64_t visits)
{
    uint64_t aim = tarn_placing_aim(placing);
    enum tarn_status status = TARN_OK;
    for (uint32_t n = 1; status == TARN_OK && n <= CORE_LEVELS; n++) {
        uint64_t distance = placing->result->footprint - aim;
        uint64_t closer = n < CORE_LEVELS ? distance >> n : distance;
        bool in_vain = closer == distance && placing->result->cannot_fit;
        if (tarn_placing_is_done(placing)) break;
        if (closer > 0 && !in_vain)
            status = tarn_stage_core(placing, placing->result->footprint - closer, visits);
    }
    return status;
}

/* ---- Repair ---- */

struct repairing {
    const struct tarn_coarse *coarse;
    const struct tarn_compact_options *compact;
    struct tarn_placing *placing; /* of the coarse problem; its work is what repair may do */
    struct tarn_repair_options options;
    bool is_ready;            /* everything here is made */
    struct tarn_repair *kept; /* the search that goes on, or NULL */
    uint32_t plans;           /* found so far */
    uint64_t *coarse_offset;
    uint64_t *tried;             /* by fine storage */
    uint64_t *offset, footprint; /* of the best fine plan */
};

/* From the present offsets. A plan that is found is made fine. */
static enum tarn_status repair(struct repairing *repairing, bool *found)
{
    struct tarn_placing *placing = repairing->placing;
    struct tarn_repair_options options = repairing->options;
    struct tarn_compact_options compact = *repairing->compact;
    size_t count = repairing->coarse->fine->blocks.storages_count;
    uint64_t least = UINT64_MAX, work = 0;
    if (!repairing->kept) options.seed = ++repairing->options.seed;
    options.work_max = repairing->placing->work_left + 1; /* 0: no limit */
    enum tarn_status status = tarn_repair_place(&placing->problem, &options, &repairing->kept,
                                                repairing->coarse_offset, found, &work);
    placing->work_left = tarn_work_less(placing->work_left, work);
    if (status != TARN_OK || !*found) return status;
    compact.work_max = placing->work_left + 1; /* 0: no limit */
    status = tarn_coarse_refine(repairing->coarse, repairing->coarse_offset, &compact,
                                repairing->tried, &least, &work);
    placing->work_left = tarn_work_less(placing->work_left, work);
    if (status != TARN_OK || least >= repairing->footprint) return status;
    repairing->footprint = least;
    memcpy(repairing->offset, repairing->tried, count * sizeof *repairing->offset);
    return TARN_OK;
}

/* All storages anywhere: the next plan is another one. */
static void scatter(struct repairing *repairing)
{
    const struct tarn_blocks *blocks = &repairing->placing->problem.blocks;
    uint64_t grain = repairing->coarse->grain, random = ~repairing->options.seed;
    for (uint32_t a = 0; a < blocks->storages_count; a++) {
        uint64_t places = (repairing->options.aim - blocks->reserved[a]) / grain + 1;
        repairing->coarse_offset[a] = grain * tarn_random_below(&random, (uint32_t)places);
    }
}

/* Storages that are rounded down make a fine plan higher than its coarse plan once for each place
 * at which one lies on top of another. In as many slots as the heaviest antichain has of them, the
 * plan seldom gets higher than that antichain does. There are no slots if more of them are in use
 * at once, if they are too many, or if so many of the largest size do not fit. */
static enum tarn_status find_slots(struct repairing *repairing)
{
    const struct tarn_coarse *coarse = repairing->coarse;
    const struct tarn_problem *fine = coarse->fine;
    const struct tarn_blocks *own = &coarse->part.problem.blocks;
    struct tarn_region *region = repairing->placing->region;
    uint32_t count = own->storages_count, rounded = 0, heaviest = 0;
    uint64_t largest = 0;
    struct tarn_antichain antichain;
    bool *in_slots = tarn_region_take(region, count, sizeof *in_slots);
    uint64_t *weight = tarn_region_take(region, fine->blocks.storages_count, sizeof *weight);
    if (!in_slots || !weight) return TARN_SYSTEM;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = coarse->part.origin[i];
        in_slots[i] = fine->blocks.reserved[a] > own->reserved[i];
        weight[a] = in_slots[i];
        rounded += in_slots[i];
        if (in_slots[i] && own->reserved[i] > largest) largest = own->reserved[i];
        heaviest += in_slots[i] && tarn_problem_in_antichain(fine, a);
    }
    if (heaviest == 0 || rounded > count / SLOTS_SHARE || heaviest > coarse->bound / largest)
        return TARN_OK;
    enum tarn_status status =
        tarn_antichain_init(&antichain, region, &fine->conflicts.reuse, fine->graph, weight);
    if (status != TARN_OK || antichain.bound > heaviest) return status;
    repairing->options.in_slots = in_slots;
    repairing->options.slots_count = heaviest;
    return TARN_OK;
}

/* At the bound, until one of the plans found is at the aim when it is made fine, or they are
 * REPAIR_PLANS. found: the coarse plan is at the bound already. */
static enum tarn_status repair_at_bound(struct repairing *repairing, bool found)
{
    enum tarn_status status = TARN_OK;
    do {
        if (found && !repairing->kept) scatter(repairing);
        status = repair(repairing, &found);
    } while (status == TARN_OK && found && repairing->footprint > repairing->compact->aim &&
             ++repairing->plans < REPAIR_PLANS && repairing->placing->work_left > 0);
    return status;
}

/* *leader: of REPAIR_PERIODS periods; NULL if there is no repetition. */
static enum tarn_status lead(struct tarn_placing *placing, uint32_t **leader)
{
    uint32_t count = placing->problem.blocks.count;
    struct tarn_fold folded;
    *leader = NULL;
    if (count > FOLD_BLOCKS_MAX) return TARN_OK;
    uint32_t *found = tarn_region_take(placing->region, count, sizeof *found);
    enum tarn_status status =
        found ? tarn_fold_init(&folded, placing->region, &placing->problem) : TARN_SYSTEM;
    if (status != TARN_OK) return status;
    if (tarn_fold_lead(&folded, REPAIR_PERIODS, found) <= count - count / REPAIR_SHARE)
        *leader = found;
    return TARN_OK;
}

/* ---- Coarse sizes ---- */

static bool goes_on(const struct tarn_placing *placing, enum tarn_status status)
{
    return status == TARN_OK && !tarn_placing_is_done(placing);
}

static enum tarn_status order_coarse(struct tarn_placing *coarse)
{
    enum tarn_status status = tarn_stage_improve(coarse, 0);
    return goes_on(coarse, status) ? tarn_stage_exact_briefly(coarse) : status;
}

static enum tarn_status search_coarse(struct tarn_placing *coarse, uint64_t visits)
{
    bool limited = coarse->work_left != TARN_WORK_UNLIMITED;
    enum tarn_status status = TARN_OK;
    coarse->reserve = limited ? coarse->work_left / COARSE_SHARE : 0;
    if (goes_on(coarse, status)) status = tarn_stage_core(coarse, tarn_placing_aim(coarse), visits);
    coarse->reserve = 0;
    if (goes_on(coarse, status)) status = tarn_stage_apart(coarse, 0, visits);
    if (goes_on(coarse, status)) status = fold(coarse);
    if (status == TARN_OK) tarn_stage_take_apart(coarse);
    return status;
}

/* Writes the coarse plan, made fine, if that is lower. */
static enum tarn_status refine_coarse(struct tarn_placing *placing,
                                      const struct tarn_coarse *coarse,
                                      struct tarn_compact_options compact,
                                      const uint64_t *coarse_offset, uint64_t *offset,
                                      uint64_t *footprint)
{
    size_t count = coarse->fine->blocks.storages_count;
    uint64_t least, work;
    if (!may_spend(placing, placing->reserve, &compact.work_max)) return TARN_OK;
    struct tarn_region_mark mark = tarn_region_mark(placing->region);
    uint64_t *tried = tarn_region_take(placing->region, count, sizeof *tried);
    if (!tried) return TARN_SYSTEM;
    enum tarn_status status =
        tarn_coarse_refine(coarse, coarse_offset, &compact, tried, &least, &work);
    spend(placing, 0, work);
    if (status == TARN_OK && least < *footprint) {
        memcpy(offset, tried, count * sizeof *offset);
        *footprint = least;
    }
    tarn_region_release(placing->region, mark);
    return status;
}

/* From the coarse plan of `own`, or from where the search before stopped, with at most that work,
 * which `placing` spends. */
static enum tarn_status repair_coarse(struct tarn_placing *placing, struct repairing *repairing,
                                      uint64_t work_max)
{
    struct tarn_placing *own = repairing->placing;
    const struct tarn_problem *problem = &own->problem;
    bool placed = tarn_placing_is_settled(own);
    size_t fine_count = placing->problem.blocks.storages_count;
    size_t count = problem->blocks.storages_count, size = sizeof *repairing->coarse_offset;
    uint64_t make = 0;
    enum tarn_status status = TARN_OK;
    own->work_left = work_max;
    if (!repairing->kept) {
        status = tarn_repair_estimate(problem, repairing->options.aim, &make);
        if (status != TARN_OK || make == 0 || work_max / REPAIR_MAKES < make) return status;
    }
    if (!repairing->is_ready) {
        repairing->coarse_offset = tarn_region_take(own->region, count, size);
        repairing->tried = tarn_region_take(own->region, fine_count, sizeof *repairing->tried);
        status = repairing->tried && repairing->coarse_offset ? make_rows(own) : TARN_SYSTEM;
        if (status == TARN_OK && !repairing->options.leader) status = find_slots(repairing);
        repairing->is_ready = true;
    }
    if (status != TARN_OK) return status;
    if (!repairing->kept) memcpy(repairing->coarse_offset, own->result->offset, count * size);
    status = repair_at_bound(repairing, placed);
    spend(placing, 0, work_max - own->work_left);
    return status;
}

static enum tarn_status search_and_refine(struct tarn_placing *placing, struct tarn_placing *own,
                                          const struct tarn_coarse *coarse,
                                          struct tarn_compact_options compact, uint64_t visits,
                                          uint64_t *offset, uint64_t *footprint)
{
    uint64_t begun = own->work_left;
    enum tarn_status status = search_coarse(own, visits);
    spend(placing, 0, begun - own->work_left);
    if (status != TARN_OK) return status;
    return refine_coarse(placing, coarse, compact, own->result->offset, offset, footprint);
}

/* Repair comes last, after cores and bands; unless much repeats it is begun before them, as they
 * take longer, and goes on. */
static enum tarn_status repair_and_search(struct tarn_placing *placing, struct repairing *repairing,
                                          uint64_t work_max, uint64_t visits)
{
    struct tarn_placing *own = repairing->placing;
    uint64_t aim = repairing->compact->aim;
    enum tarn_status status = TARN_OK;
    if (!repairing->options.leader && !tarn_placing_is_settled(own) && work_max > 0) {
        uint64_t most = own->work_left;
        status = repair_coarse(placing, repairing, work_max / REPAIR_FIRST);
        own->work_left = most < placing->work_left ? most : placing->work_left;
    }
    if (status == TARN_OK && repairing->footprint > aim)
        status = search_and_refine(placing, own, repairing->coarse, *repairing->compact, visits,
                                   repairing->offset, &repairing->footprint);
    if (status != TARN_OK || repairing->footprint <= aim) return status;
    uint64_t last = work_max > 0 ? tarn_work_less(placing->work_left, work_max / REPAIR_LEAVES)
                                 : TARN_WORK_DEFAULT / REPAIR_MAKES;
    return repair_coarse(placing, repairing, last);
}

/* Writes the plan, made fine. */
static enum tarn_status place_coarse(struct tarn_placing *placing, const struct tarn_coarse *coarse,
                                     struct tarn_region *region, uint64_t visits, uint64_t *offset,
                                     uint64_t *footprint)
{
    const struct tarn_improve_options *improve = &placing->request.improve;
    struct tarn_compact_options compact = {.aim = tarn_placing_aim(placing),
                                           .deadline = improve->deadline};
    struct tarn_place_result result = {.footprint = 0};
    struct tarn_placing own = {.problem = coarse->part.problem,
                               .whole = &placing->problem,
                               .result = &result,
                               .region = region,
                               .costs = placing->costs};
    uint64_t work_max, storages = own.problem.blocks.storages_count;
    uint32_t *leader = NULL;
    if (!may_spend(placing, placing->reserve, &work_max)) return TARN_OK;
    own.request.improve = (struct tarn_improve_options){.bound = coarse->bound,
                                                        .seed = improve->seed,
                                                        .threads = improve->threads,
                                                        .deadline = improve->deadline};
    result.offset = tarn_region_take(region, storages, sizeof *result.offset);
    if (!result.offset) return TARN_SYSTEM;
    result.footprint = own.stacked = tarn_blocks_place_in_a_row(&own.problem.blocks, result.offset);
    own.work_left = work_max > 0 ? work_max - work_max / REFINE_SHARE : TARN_WORK_UNLIMITED;
    uint64_t begun = own.work_left;
    enum tarn_status status = order_coarse(&own);
    spend(placing, 0, begun - own.work_left);
    if (status == TARN_OK) status = make_rows(&own);
    if (status == TARN_OK) status = lead(&own, &leader);
    struct repairing repairing = {.coarse = coarse,
                                  .compact = &compact,
                                  .placing = &own,
                                  .options = {.aim = coarse->bound,
                                              .seed = improve->seed,
                                              .leader = leader,
                                              .deadline = improve->deadline},
                                  .offset = offset,
                                  .footprint = *footprint};
    if (status == TARN_OK) status = repair_and_search(placing, &repairing, work_max, visits);
    tarn_repair_finish(repairing.kept);
    *footprint = repairing.footprint;
    return status;
}

enum tarn_status tarn_stage_coarse(struct tarn_placing *placing, uint64_t visits)
{
    const struct tarn_improve_options *improve = &placing->request.improve;
    struct tarn_region region = {.chunks = NULL};
    struct tarn_place_result *result = placing->result;
    struct tarn_coarse coarse;
    uint64_t count = placing->problem.blocks.storages_count, footprint = UINT64_MAX;
    bool is_worth = false;
    if (!placing->problem.graph || placing->problem.blocks.count > COARSE_BLOCKS_MAX ||
        result->cannot_fit)
        return TARN_OK;
    uint64_t *offset = tarn_region_take(&region, count, sizeof *offset);
    enum tarn_status status = offset ? make_rows(placing) : TARN_SYSTEM;
    if (status == TARN_OK)
        status = tarn_coarse_init(&coarse, &region, &placing->problem, improve->bound, &is_worth);
    if (status == TARN_OK && is_worth)
        status = place_coarse(placing, &coarse, &region, visits, offset, &footprint);
    if (status == TARN_OK && footprint < result->footprint) {
        memcpy(result->offset, offset, count * sizeof *offset);
        result->footprint = footprint;
        snprintf(result->method, sizeof result->method, "coarse");
        if (improve->progress) improve->progress(improve->user, footprint, 0);
    }
    tarn_region_finish(&region);
    return status;
}

enum tarn_status tarn_stage_lay_out(struct tarn_placing *placing)
{
    struct tarn_place_result *result = placing->result;
    const struct tarn_layout *layout = placing->request.layout;
    snprintf(result->method, sizeof result->method, "%s", layout->name);
    enum tarn_status status = make_rows(placing);
    if (status != TARN_OK) return status;
    return layout->place(&placing->problem, placing->request.node_limit, result->offset,
                         &result->footprint);
}

enum tarn_status tarn_stage_pass(const struct tarn_placing *placing)
{
    const struct tarn_improve_options *improve = &placing->request.improve;
    struct tarn_place_result *result = placing->result;
    enum tarn_status status =
        tarn_pass_place(&placing->problem, improve->threads, result->offset, &result->footprint);
    if (status != TARN_OK || result->footprint == placing->stacked) return status;
    snprintf(result->method, sizeof result->method, "lowest:pass");
    if (improve->progress) improve->progress(improve->user, result->footprint, 0);
    return TARN_OK;
}
