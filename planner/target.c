/* Which peak the search for a policy is asked for. For a budget: the budget first, then as much
 * less as the plan was above it, or more where it was below. For the least: the smallest peak, by
 * recomputation and implementations together, and then whatever is just below the footprint that
 * was found. Where the budget itself gave nothing that fits, the peaks between that of the least
 * and the budget are halved. Source: the search of budget.h; A. Shah et al., "Memory optimization
 * for deep networks" (MONeT); docs/how-it-works.md, "Transforms". Cost: a bounded number of
 * searches, each with the attempts that it leads to. */
#include "target.h"

#include <assert.h>

#include "planner/transform/budget/budget.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"

enum {
    ATTEMPTS_MAX = 6,
    IMPATIENT_MAX = 3,
    LEAST_ROUNDS = 5,
    HALVINGS = 5,
    QUESTIONS = 8,
    CONFIRM_STEP = 1024
};

/* ---- Searching ---- */

static void forget_script(struct tarn_budgeting *budgeting)
{
    budgeting->scripted = (struct tarn_schedule){.count = 0};
    tarn_region_finish(&budgeting->script_region);
}

/* Small graphs are searched to the end. false: this is none, or it has not come to the end. */
static enum tarn_status search_exactly(struct tarn_budgeting *budgeting, uint64_t target,
                                       const struct tarn_budget_limits *limits, bool *found)
{
    struct tarn_region *region = &budgeting->script_region;
    struct tarn_script script;
    *found = false;
    enum tarn_status status = tarn_budget_exact(&budgeting->model, target, limits, region, &script,
                                                &budgeting->evaluations);
    if (status != TARN_OK || script.count == 0) return status;
    status = tarn_script_run(&budgeting->scripted, region, &budgeting->model, &script);
    *found = status == TARN_OK && budgeting->scripted.peak != UINT64_MAX;
    if (!*found) forget_script(budgeting);
    return status;
}

static enum tarn_status search(struct tarn_budgeting *budgeting, uint64_t target, bool refine)
{
    const struct tarn_budget_limits limits = {.classes = budgeting->classes,
                                              .steps = budgeting->options.effort,
                                              .refine = refine,
                                              .control = budgeting->options.control,
                                              .deadline_ms = budgeting->deadline.at_ms};
    struct tarn_budget_outcome outcome = {0};
    enum tarn_status status = TARN_OK;
    bool found = false;
    forget_script(budgeting);
    if (budgeting->options.method == TARN_BUDGET_CHEN)
        status = tarn_policy_chen(&budgeting->model, &budgeting->policy);
    if (budgeting->options.method == TARN_BUDGET_SEARCH)
        status = search_exactly(budgeting, target, &limits, &found);
    if (status == TARN_OK && budgeting->options.method == TARN_BUDGET_SEARCH && !found)
        status =
            tarn_budget_search(&budgeting->model, target, &limits, &budgeting->policy, &outcome);
    budgeting->evaluations += outcome.evaluations;
    return status ? tarn_error_no_memory(budgeting->error) : TARN_OK;
}

/* The next target for the search, or the same when there is no use in another one. */
static uint64_t next_target(const struct tarn_budgeting *budgeting,
                            const struct tarn_attempt *attempt, uint64_t target)
{
    uint64_t budget = budgeting->options.budget, above = attempt->footprint;
    if (attempt->report.peak > target) return target; /* as low as it comes */
    uint64_t reached = attempt->report.peak;
    if (above > budget) return reached > above - budget ? reached - (above - budget) : target;
    uint64_t slack = budget - above;
    assert(above <= budget);
    bool equal = attempt->footprint == attempt->report.peak || slack < budget / TARN_BUDGET_NEAR;
    bool limits = attempt->report.peak >= target - target / TARN_BUDGET_NEAR;
    return equal || !limits ? target : target + slack;
}

/* Searches, and keeps what it comes to if that is better. next: as next_target has it. */
static enum tarn_status try_target(struct tarn_budgeting *budgeting, uint64_t target, bool refine,
                                   struct tarn_attempt *best, uint64_t *next)
{
    struct tarn_attempt front;
    enum tarn_status status = search(budgeting, target, refine);
    if (status == TARN_OK) status = tarn_attempt_make(budgeting, target, best, &front);
    if (status == TARN_OK) *next = next_target(budgeting, &front, target);
    return status;
}

enum tarn_status tarn_recompute_try_targets(struct tarn_budgeting *budgeting, bool refine,
                                            struct tarn_attempt *best)
{
    uint64_t target = budgeting->options.budget, next;
    budgeting->patient = budgeting->options.method != TARN_BUDGET_SEARCH;
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        budgeting->patient = budgeting->patient || i >= IMPATIENT_MAX;
        enum tarn_status status = try_target(budgeting, target, refine || i > 0, best, &next);
        if (status != TARN_OK) return status;
        if (tarn_deadline_is_over(&budgeting->deadline)) break;
        if (next == target &&
            (budgeting->patient || tarn_attempt_fits(best, budgeting->options.budget)))
            break;
        if (next == target) budgeting->patient = true;
        target = next;
    }
    return TARN_OK;
}

/* ---- The least ---- */

/* The final plan is found by the same search where the footprint is its capacity. */
static enum tarn_status confirm(const struct tarn_budgeting *budgeting, struct tarn_attempt *least)
{
    uint64_t step = least->footprint / CONFIRM_STEP + budgeting->options.alignment;
    tarn_plan_destroy(least->made.plan);
    least->made.plan = NULL;
    for (;; least->footprint += step - step % budgeting->options.alignment) {
        enum tarn_status status =
            tarn_budgeting_plan(budgeting, least->made.graph, least->footprint, &least->made.plan);
        if (status != TARN_DOES_NOT_FIT) return status;
        tarn_error_clear(budgeting->error);
    }
}

/* Where a search for the least starts: from keeping everything, then, where that is allowed, from
 * segments, then from what it has come to. */
static enum tarn_status start_for_least(struct tarn_budgeting *budgeting, int round)
{
    bool segments = budgeting->classes & TARN_BUDGET_RECOMPUTE;
    if (round == 0) tarn_policy_reset(&budgeting->policy, &budgeting->model);
    if (round == 1 && segments &&
        tarn_policy_chen(&budgeting->model, &budgeting->policy) != TARN_OK)
        return tarn_error_no_memory(budgeting->error);
    return TARN_OK;
}

/* By recomputation and implementations together. */
static enum tarn_status search_for_least(struct tarn_budgeting *budgeting,
                                         struct tarn_attempt *least)
{
    bool searches = budgeting->options.method == TARN_BUDGET_SEARCH;
    enum tarn_status status = TARN_OK;
    uint64_t next, before = UINT64_MAX;
    budgeting->any_budget = true;
    for (int round = 0; round < (searches ? LEAST_ROUNDS : 1) && status == TARN_OK; round++) {
        if (searches) status = start_for_least(budgeting, round);
        if (status == TARN_OK) status = try_target(budgeting, 1, round > 1, least, &next);
        if (status != TARN_OK || tarn_deadline_is_over(&budgeting->deadline)) break;
        if (round > 1 && least->footprint >= before) break;
        before = least->footprint;
    }
    if (status == TARN_OK) status = confirm(budgeting, least);
    budgeting->any_budget = false;
    return status;
}

/* Asks for less, as a caller would; gives it up where that is not kept to. */
static enum tarn_status ask_for_less(struct tarn_budgeting *budgeting, struct tarn_attempt *least,
                                     bool *found)
{
    struct tarn_attempt below = {0};
    tarn_policy_reset(&budgeting->policy, &budgeting->model);
    budgeting->options.budget = least->footprint - budgeting->options.alignment;
    enum tarn_status status = tarn_recompute_try_targets(budgeting, false, &below);
    *found = status == TARN_OK && tarn_attempt_fits(&below, budgeting->options.budget);
    if (*found) status = confirm(budgeting, &below);
    *found = *found && below.footprint < least->footprint;
    if (*found) {
        struct tarn_attempt swap = *least;
        *least = below;
        below = swap;
    }
    tarn_planned_finish(&below.made);
    return status;
}

enum tarn_status tarn_recompute_least(struct tarn_budgeting *budgeting, struct tarn_attempt *least)
{
    uint64_t budget = budgeting->options.budget;
    bool found = budgeting->options.method == TARN_BUDGET_SEARCH, measures = budgeting->measures;
    budgeting->measures = true;
    enum tarn_status status = search_for_least(budgeting, least);
    for (int i = 0; i < QUESTIONS && found && status == TARN_OK; i++) {
        bool over = tarn_deadline_is_over(&budgeting->deadline);
        if (over || least->footprint <= budgeting->options.alignment) break;
        status = ask_for_less(budgeting, least, &found);
    }
    budgeting->options.budget = budget;
    budgeting->measures = measures;
    return status;
}

/* Between the least, which fits, and the budget, which does not: the searches so far have come out
 * above the budget, or with a footprint above their peak. */
static enum tarn_status halve(struct tarn_budgeting *budgeting, struct tarn_attempt *best)
{
    uint64_t low = best->report.peak, high = budgeting->options.budget, next;
    for (int i = 0; i < HALVINGS && low < high; i++) {
        uint64_t target = low + (high - low) / 2;
        struct tarn_attempt attempt = {0};
        if (tarn_deadline_is_over(&budgeting->deadline)) break;
        enum tarn_status status = try_target(budgeting, target, false, &attempt, &next);
        if (status != TARN_OK) return status;
        bool fitted = tarn_attempt_fits(&attempt, budgeting->options.budget);
        tarn_attempt_keep_better(best, &attempt, budgeting->options.budget);
        if (fitted)
            low = target;
        else
            high = target;
    }
    return TARN_OK;
}

/* The least has its footprint when that is the capacity; with more room it may take more. */
static enum tarn_status place_finally(const struct tarn_budgeting *budgeting,
                                      struct tarn_attempt *least)
{
    tarn_plan_destroy(least->made.plan);
    enum tarn_status status = tarn_budgeting_plan(budgeting, least->made.graph,
                                                  budgeting->options.budget, &least->made.plan);
    if (status == TARN_OK) least->footprint = tarn_plan_footprint(least->made.plan);
    return status;
}

enum tarn_status tarn_recompute_fall_back(struct tarn_budgeting *budgeting,
                                          struct tarn_attempt *best)
{
    struct tarn_attempt least = {0};
    enum tarn_status status = tarn_recompute_least(budgeting, &least);
    if (status != TARN_OK) {
        tarn_planned_finish(&least.made);
        return status;
    }
    tarn_planned_finish(&best->made);
    *best = least;
    if (!tarn_attempt_fits(best, budgeting->options.budget)) return TARN_OK;
    status = place_finally(budgeting, best);
    bool searches = budgeting->options.method == TARN_BUDGET_SEARCH;
    return status == TARN_OK && searches ? halve(budgeting, best) : status;
}
