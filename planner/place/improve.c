/* The search for a plan at the bound by lowest-offset-first.
 *
 *   0. From WINDOWS_FIRST_MIN blocks on they are placed window by window (windows.h), with a few
 *      widths of windows. Above PRIORITIES_ENTRIES_MAX blocks times streams only the best priority
 *      orders follow, and only as far as the plan is worth it.
 *   1. A placement is made by every priority order (search.h).
 *   2. Local searches start from the best priority orders' plans (local_search.c).
 *
 * Nothing depends on the number of threads. Source: docs/how-it-works.md, "Placement". Cost: a
 * placement for each priority order and for the steps of every local search, see greedy.c and
 * replay.c. */
#include "improve.h"

#include <assert.h>
#include <string.h>

#include "planner/place/effort/effort.h"
#include "planner/place/windows/windows.h"
#include "search.h"
#include "streams/base/checked.h"

/* With at least WINDOWS_BLOCKS_MIN blocks windows are tried after the priority orders, with at
 * least WINDOWS_FIRST_MIN before them. Up to PRIORITIES_ENTRIES_MAX blocks times streams, all
 * priority orders are used; above that, as many as a plan is worth. */
enum { WINDOWS_BLOCKS_MIN = 1024, WINDOWS_FIRST_MIN = 16384, PRIORITIES_ENTRIES_MAX = 1 << 19 };

struct improving {
    const struct tarn_problem *problem;
    const struct tarn_improve_options *options;
    uint64_t aim; /* bytes */
    struct tarn_effort effort;
    uint64_t *offset, *footprint; /* the caller's plan */
    struct tarn_improve_report *report;
};

static bool meets_aim(const struct improving *improving)
{
    return *improving->footprint <= improving->aim;
}

uint64_t tarn_improve_round_bound(const struct tarn_blocks *blocks, uint64_t bytes)
{
    uint64_t bits = UINT64_C(1) << 62, rounded;
    for (uint32_t b = 0; b < blocks->count; b++)
        bits |= tarn_block_at(blocks, b).size | tarn_block_at(blocks, b).alignment;
    return tarn_size_round_up(bytes, bits & -bits, &rounded) ? rounded : bytes;
}

/* ---- Windows ---- */

static enum tarn_status place_windows(struct improving *improving)
{
    const struct tarn_improve_options *options = improving->options;
    const struct tarn_widths_options widths = {.aim = improving->aim,
                                               .threads = options->threads,
                                               .effort = &improving->effort,
                                               .progress = options->progress,
                                               .user = options->user,
                                               .deadline = options->deadline};
    uint64_t before = *improving->footprint;
    enum tarn_status status =
        tarn_widths_place(improving->problem, &widths, improving->offset, improving->footprint);
    if (*improving->footprint < before) improving->report->priority = "windows";
    return status;
}

/* ---- Priority orders and local searches ---- */

/* Writes the plan found if it is better than the given one. */
static void take_best(const struct improving *improving, const struct tarn_search *search)
{
    if (search->best.top == INT32_MAX) return;
    uint64_t found = tarn_lowest_footprint(&search->lowest, search->best.offset);
    assert(tarn_lowest_units(&search->lowest, found) <= search->best.top);
    if (found >= *improving->footprint) return;
    *improving->footprint = found;
    tarn_lowest_offsets(&search->lowest, search->best.offset, improving->offset);
    improving->report->by_local_search = search->best.from >= TARN_SEARCH_PRIORITIES;
    improving->report->priority = tarn_search_priority_name(search);
}

static enum tarn_status run_search(const struct improving *improving, struct tarn_search *search)
{
    struct tarn_improve_report *report = improving->report;
    enum tarn_status status =
        tarn_search_init(search, improving->problem, improving->aim, improving->offset);
    if (status == TARN_OK) status = tarn_search_priorities(search);
    report->priorities_ms = tarn_now_ms() - search->begin_ms;
    if (status == TARN_OK && search->best.top < INT32_MAX) {
        tarn_search_report(search, search->best.top);
        if (search->best.top > search->aim)
            status = tarn_local_searches_run(search, *improving->footprint);
    }
    if (status == TARN_OK) take_best(improving, search);
    report->steps = search->steps;
    report->cut = report->cut || search->cut;
    report->locals_ms = tarn_now_ms() - search->begin_ms - report->priorities_ms;
    return status;
}

/* Priority orders of the whole problem, then local searches, within *work_left. best_priorities: 0
 * for all priority orders. */
static enum tarn_status search(const struct improving *improving, uint32_t best_priorities,
                               uint64_t *work_left)
{
    struct tarn_search search = {
        .options = improving->options, .best_priorities = best_priorities, .work_left = *work_left};
    enum tarn_status status = run_search(improving, &search);
    *work_left = search.work_left;
    tarn_search_finish(&search);
    return status;
}

/* ---- Many blocks ---- */

/* Estimates the work of a placement of all blocks: by its pairs, or by the work of a placement of
 * clusters if that is more. */
static enum tarn_status estimate_priority(const struct improving *improving, uint64_t *work)
{
    const struct tarn_problem *problem = improving->problem;
    const struct tarn_effort *effort = &improving->effort;
    uint64_t pairs = 0;
    uint32_t count = problem->conflicts.reuse.count;
    enum tarn_status status = tarn_conflicts_pairs(&problem->conflicts, &pairs);
    *work = tarn_work_of_pairs(pairs, problem->conflicts.reuse.streams_count) + 1;
    double times = effort->priority_work > 0 ? (double)count / effort->priority_clusters : 0;
    double likely = (double)effort->priority_work * times * times;
    if (likely > (double)*work) *work = likely < 1e18 ? (uint64_t)likely : UINT64_MAX;
    return status;
}

/* The best priority orders, as many as the plan is worth. */
static enum tarn_status place_by_best_priorities(struct improving *improving)
{
    uint64_t work,
        worth = tarn_widths_worth(&improving->effort, improving->aim, *improving->footprint);
    if (tarn_deadline_is_over(&improving->options->deadline)) return TARN_OK;
    enum tarn_status status = estimate_priority(improving, &work);
    if (status != TARN_OK || worth / work == 0) return status;
    bool is_rich = worth / work >= TARN_SEARCH_BEST_PRIORITIES;
    return search(improving, is_rich ? TARN_SEARCH_BEST_PRIORITIES : (uint32_t)(worth / work),
                  &worth);
}

/* Too many blocks for local searches and for every priority order: after the windows, the best
 * priority orders. With a deadline and no limit of work, windows and best priority orders once
 * more, without a limit of effort. */
static enum tarn_status place_many(struct improving *improving)
{
    const struct tarn_improve_options *options = improving->options;
    enum tarn_status status = TARN_OK;
    if (!meets_aim(improving)) status = place_by_best_priorities(improving);
    if (status != TARN_OK || meets_aim(improving)) return status;
    improving->report->cut = true;
    if (options->deadline.at_ms == 0 || options->work_max > 0) return TARN_OK;
    improving->effort.max = UINT64_MAX;
    status = place_windows(improving);
    if (status == TARN_OK && !meets_aim(improving)) status = place_by_best_priorities(improving);
    return status;
}

/* ---- The whole ---- */

static enum tarn_status improve(struct improving *improving)
{
    const struct tarn_problem *problem = improving->problem;
    const struct tarn_improve_options *options = improving->options;
    uint32_t count = problem->blocks.count;
    bool by_windows = count >= WINDOWS_BLOCKS_MIN && options->steps == 0;
    bool is_large =
        count >= WINDOWS_BLOCKS_MIN &&
        (uint64_t)count * problem->conflicts.reuse.streams_count > PRIORITIES_ENTRIES_MAX;
    if (options->work_max > 0) improving->effort.max = options->work_max;
    bool windows_first = by_windows && count >= WINDOWS_FIRST_MIN;
    enum tarn_status status = windows_first ? place_windows(improving) : TARN_OK;
    if (status == TARN_OK && is_large && by_windows) status = place_many(improving);
    if (status != TARN_OK) return status;
    uint64_t left = tarn_effort_left(&improving->effort);
    uint64_t work_left = options->work_max > 0 ? left : TARN_WORK_UNLIMITED;
    if (!meets_aim(improving) && !is_large) status = search(improving, 0, &work_left);
    if (options->work_max > 0) tarn_effort_spend(&improving->effort, left - work_left);
    if (status == TARN_OK && by_windows && !windows_first && !meets_aim(improving))
        status = place_windows(improving);
    return status;
}

enum tarn_status tarn_improve_place(const struct tarn_problem *problem,
                                    const struct tarn_improve_options *options, uint64_t *offset,
                                    uint64_t *footprint, struct tarn_improve_report *report)
{
    uint64_t bound = tarn_improve_round_bound(&problem->blocks, options->bound);
    struct improving improving = {
        .problem = problem,
        .options = options,
        .aim = options->capacity > bound ? options->capacity : bound,
        .effort = {.max = tarn_work_default(problem->blocks.storages_count), .must = true},
        .offset = offset,
        .footprint = footprint,
        .report = report};
    memset(report, 0, sizeof *report);
    if (meets_aim(&improving)) return TARN_OK;
    enum tarn_status status = improve(&improving);
    report->work = improving.effort.spent;
    return status;
}
