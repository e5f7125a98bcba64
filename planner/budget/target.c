/* Chooses the target peaks for the search for a policy. For a budget, the first target is the
 * budget. Each later target is lower by the bytes by which the plan exceeded the budget, or higher
 * if the plan was below it. The smallest footprint is found by a descent: segments, the smallest
 * peak in some rounds, then targets just below the footprint found so far, and, if another order is
 * asked for, a reordering of the best graph found.
 *
 * A refusal reports the smallest footprint of the whole descent, which does not depend on the
 * budget. No plan for any budget may be below it. So a lower budget is refused without search, and
 * a plan below everything that the descent has found so far makes the descent continue. If even the
 * end of the descent is above that plan, the descent's smallest graph replaces the plan. If the
 * budget itself gave no plan that fits, the peaks between the smallest one and the budget are
 * halved. Source: the search of budget.c; A. Shah et al., "Memory optimization for deep networks"
 * (MONeT); docs/how-it-works.md, "Transforms". Cost: a bounded number of searches, each with its
 * attempts, and the more of the descent, the nearer the budget is to the smallest footprint. */
#include "attempt.h"

#include <assert.h>

#include "planner/transform/budget/budget.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"

enum { SEARCHES_FULL = 2, LEAST_FULL = 2, SEARCHES_FOURTH = 4 };
enum { STEPS = 192, LAUNCHES_STEPS = 32, PROBES = 6, LAUNCHES_PROBES = 10, PROBED_OPS = 512 };
enum { ATTEMPTS_MAX = 6, IMPATIENT_MAX = 3, LEAST_ROUNDS = 5, HALVINGS = 5, QUESTIONS = 8 };

static bool is_over(const struct tarn_budgeting *budgeting)
{
    return tarn_deadline_is_over(&budgeting->deadline);
}

/* ---- Searching ---- */

static void forget_script(struct tarn_budgeting *budgeting)
{
    budgeting->fixed_schedule = (struct tarn_schedule){.count = 0};
    tarn_region_finish(&budgeting->fixed_region);
}

/* Searches small graphs completely. false: the graph is not small, or the search has not
 * finished. */
static enum tarn_status search_exactly(struct tarn_budgeting *budgeting, uint64_t target,
                                       const struct tarn_budget_limits *limits, bool *found)
{
    struct tarn_region *region = &budgeting->fixed_region;
    struct tarn_script script;
    *found = false;
    enum tarn_status status = tarn_budget_exact(&budgeting->model, target, limits, region, &script,
                                                &budgeting->evaluations);
    if (status != TARN_OK || script.count == 0) return status;
    status = tarn_script_run(&budgeting->fixed_schedule, region, &budgeting->model, &script);
    *found = status == TARN_OK && budgeting->fixed_schedule.peak != UINT64_MAX;
    if (!*found) forget_script(budgeting);
    return status;
}

/* Tries cuts if the result is above the target although everything that the passes allow was
 * tried. */
static enum tarn_status search_cuts(struct tarn_budgeting *budgeting, uint64_t target,
                                    const struct tarn_budget_limits *limits,
                                    struct tarn_budget_outcome *outcome)
{
    bool fixed_schedule = budgeting->fixed_schedule.count > 0;
    if (fixed_schedule) {
        outcome->peak = budgeting->fixed_schedule.peak;
        outcome->time_ns = budgeting->fixed_schedule.time_ns;
    }
    if (outcome->peak <= target) return TARN_OK;
    tarn_policy_copy(&budgeting->model, &budgeting->plain, &budgeting->policy);
    enum tarn_status status = tarn_budget_cut(&budgeting->model, target, limits, &budgeting->region,
                                              &budgeting->policy, outcome);
    if (fixed_schedule && budgeting->policy.cuts_count > 0) forget_script(budgeting);
    return status;
}

/* Repeated searches for nearly the same target bring less and less: after a few searches the next
 * ones get a fourth of the steps, and later a sixteenth. Searches of the descent are counted
 * separately, so that its result does not depend on the budget. */
static uint32_t share_of_next(struct tarn_budgeting *budgeting)
{
    bool least = budgeting->aim >= TARN_AIM_LOWER;
    uint32_t before = least ? budgeting->descent.searches++ : budgeting->searches++;
    uint32_t full = least ? LEAST_FULL : SEARCHES_FULL;
    if (before < full && !budgeting->is_brief) return 1;
    return before < full + SEARCHES_FOURTH ? 4 : 16;
}

static enum tarn_status search(struct tarn_budgeting *budgeting, uint64_t target, bool refine)
{
    const struct tarn_budget_limits limits = {.classes = budgeting->classes,
                                              .share = share_of_next(budgeting),
                                              .steps = budgeting->options.effort,
                                              .refine = refine,
                                              .control = budgeting->options.control,
                                              .deadline_ms = budgeting->deadline.at_ms};
    struct tarn_budget_outcome outcome = {0};
    enum tarn_status status = TARN_OK;
    bool found = false;
    bool searches = budgeting->options.method == TARN_BUDGET_SEARCH;
    forget_script(budgeting);
    budgeting->policy.cuts_count = 0;
    if (budgeting->options.method == TARN_BUDGET_CHEN)
        status = tarn_policy_chen(&budgeting->model, &budgeting->policy);
    if (searches) status = search_exactly(budgeting, target, &limits, &found);
    if (status == TARN_OK && searches && !found)
        status =
            tarn_budget_search(&budgeting->model, target, &limits, &budgeting->policy, &outcome);
    if (status == TARN_OK && searches && (budgeting->classes & TARN_BUDGET_RECOMPUTE))
        status = search_cuts(budgeting, target, &limits, &outcome);
    budgeting->evaluations += outcome.evaluations;
    return status != TARN_OK ? tarn_error_no_memory(budgeting->error) : TARN_OK;
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

/* Builds and places the policy's graph, and, if the policy has cuts, also the graph without cuts: a
 * graph with fewer bytes alive may need more bytes when it is placed. */
static enum tarn_status make(struct tarn_budgeting *budgeting, uint64_t target,
                             struct tarn_attempt *best, struct tarn_attempt *front)
{
    struct tarn_attempt other;
    enum tarn_status status = tarn_attempt_make(budgeting, target, best, front);
    if (status != TARN_OK || budgeting->policy.cuts_count == 0) return status;
    struct tarn_policy cut = budgeting->policy;
    budgeting->policy = budgeting->plain;
    status = tarn_attempt_make(budgeting, target, best, &other);
    budgeting->plain = budgeting->policy;
    budgeting->policy = cut;
    return status;
}

/* Searches, and keeps the result if it is better. next: as in next_target. */
static enum tarn_status try_target(struct tarn_budgeting *budgeting, uint64_t target, bool refine,
                                   struct tarn_attempt *best, uint64_t *next)
{
    struct tarn_attempt front;
    enum tarn_status status = search(budgeting, target, refine);
    if (status == TARN_OK) status = make(budgeting, target, best, &front);
    if (status == TARN_OK) *next = next_target(budgeting, &front, target);
    return status;
}

enum tarn_status tarn_budgeting_try_targets(struct tarn_budgeting *budgeting, bool refine,
                                            struct tarn_attempt *best)
{
    uint64_t target = budgeting->options.budget, next;
    budgeting->patient = budgeting->options.method != TARN_BUDGET_SEARCH;
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        budgeting->patient = budgeting->patient || i >= IMPATIENT_MAX;
        enum tarn_status status = try_target(budgeting, target, refine || i > 0, best, &next);
        if (status != TARN_OK) return status;
        if (is_over(budgeting)) break;
        if (next == target &&
            (budgeting->patient || tarn_attempt_fits(best, budgeting->options.budget)))
            break;
        if (next == target) budgeting->patient = true;
        target = next;
    }
    return TARN_OK;
}

/* ---- The smallest footprint ---- */

/* Places segments, without any search: a first value of the smallest footprint. */
static enum tarn_status take_segments(struct tarn_budgeting *budgeting)
{
    struct tarn_attempt front;
    forget_script(budgeting);
    budgeting->descent.stage = TARN_DESCENT_ROUNDS;
    tarn_policy_reset(&budgeting->policy, &budgeting->model);
    if (tarn_policy_chen(&budgeting->model, &budgeting->policy) != TARN_OK)
        return tarn_error_no_memory(budgeting->error);
    return tarn_attempt_make(budgeting, 1, &budgeting->descent.smallest, &front);
}

/* Sets the start of a round: keeping everything, then, if allowed, segments, then the result of the
 * round before. */
static enum tarn_status start_round(struct tarn_budgeting *budgeting)
{
    bool segments = budgeting->classes & TARN_BUDGET_RECOMPUTE;
    const struct tarn_descent *descent = &budgeting->descent;
    if (descent->count == 0) tarn_policy_reset(&budgeting->policy, &budgeting->model);
    if (descent->count > 0)
        tarn_policy_copy(&budgeting->model, &budgeting->policy, &descent->policy);
    if (descent->count == 1 && segments &&
        tarn_policy_chen(&budgeting->model, &budgeting->policy) != TARN_OK)
        return tarn_error_no_memory(budgeting->error);
    return TARN_OK;
}

/* Places the graph with the inputs and outputs of its ops as they are written, for a descent in
 * which no graph can be placed: in each of them two storages with fixed offsets meet. */
static enum tarn_status take_written(struct tarn_budgeting *budgeting)
{
    struct tarn_attempt front;
    forget_script(budgeting);
    tarn_policy_reset(&budgeting->policy, &budgeting->model);
    for (uint32_t v = 0; v < budgeting->graph->ops_count; v++) {
        struct tarn_range forms = budgeting->model.op_forms[v];
        if (forms.begin < forms.end) budgeting->policy.form[v] = forms.begin;
    }
    return tarn_attempt_make(budgeting, 1, &budgeting->descent.smallest, &front);
}

/* The smallest peak, by recomputation and implementations together. */
static enum tarn_status search_round(struct tarn_budgeting *budgeting)
{
    struct tarn_descent *descent = &budgeting->descent;
    struct tarn_attempt front, *least = &descent->smallest;
    uint64_t before = least->made.graph ? least->footprint : UINT64_MAX;
    bool first = descent->count < 2, searches = budgeting->options.method == TARN_BUDGET_SEARCH;
    enum tarn_status status = start_round(budgeting);
    if (status == TARN_OK) status = search(budgeting, 1, !first);
    bool equal = descent->count > 0 &&
                 tarn_policy_is_equal(&budgeting->model, &descent->policy, &budgeting->policy);
    bool fixed_schedule = budgeting->fixed_schedule.count > 0;
    if (status == TARN_OK && !equal) status = make(budgeting, 1, least, &front);
    tarn_policy_copy(&budgeting->model, &descent->policy, &budgeting->policy);
    bool settled = !first && (equal || least->footprint >= before);
    if (settled || fixed_schedule || ++descent->count == LEAST_ROUNDS || !searches) {
        descent->stage = searches ? TARN_DESCENT_BELOW : TARN_DESCENT_ORDER;
        descent->count = 0;
        if (status == TARN_OK && !least->made.graph) status = take_written(budgeting);
    }
    return status;
}

/* Searches for less, as a caller would; gives up if the result does not keep to it. */
static enum tarn_status ask_for_less(struct tarn_budgeting *budgeting)
{
    struct tarn_descent *descent = &budgeting->descent;
    struct tarn_attempt below = {0};
    bool found = false;
    enum tarn_status status = TARN_OK;
    if (descent->smallest.footprint > budgeting->model.alignment) {
        tarn_policy_reset(&budgeting->policy, &budgeting->model);
        budgeting->options.budget = descent->smallest.footprint - budgeting->model.alignment;
        status = tarn_budgeting_try_targets(budgeting, false, &below);
        found = status == TARN_OK && tarn_attempt_fits(&below, budgeting->options.budget);
    }
    if (found) tarn_attempt_keep_better(&descent->smallest, &below, 0);
    if (!found || ++descent->count == QUESTIONS) descent->stage = TARN_DESCENT_ORDER;
    tarn_planned_finish(&below.made);
    return status;
}

static enum tarn_status reorder_least(struct tarn_budgeting *budgeting)
{
    struct tarn_descent *descent = &budgeting->descent;
    struct tarn_attempt ordered;
    enum tarn_status status = tarn_attempt_reorder(budgeting, &descent->smallest, &ordered);
    if (status == TARN_OK && ordered.made.graph)
        tarn_attempt_keep_better(&descent->smallest, &ordered, 0);
    descent->stage = TARN_DESCENT_COMPLETE;
    return status;
}

static enum tarn_budget_aim aim_of(enum tarn_descent_stage stage)
{
    if (stage == TARN_DESCENT_BELOW) return TARN_AIM_LOWER;
    return stage == TARN_DESCENT_SEGMENTS ? TARN_AIM_SMALLEST_QUICK : TARN_AIM_SMALLEST;
}

static enum tarn_status run_stage(struct tarn_budgeting *budgeting)
{
    enum tarn_descent_stage stage = budgeting->descent.stage;
    uint64_t budget = budgeting->options.budget;
    assert(budgeting->aim == TARN_AIM_BUDGET);
    budgeting->aim = aim_of(stage);
    enum tarn_status status = stage == TARN_DESCENT_SEGMENTS ? take_segments(budgeting)
                              : stage == TARN_DESCENT_ROUNDS ? search_round(budgeting)
                              : stage == TARN_DESCENT_BELOW  ? ask_for_less(budgeting)
                                                             : reorder_least(budgeting);
    budgeting->aim = TARN_AIM_BUDGET;
    budgeting->options.budget = budget;
    return status;
}

enum tarn_status tarn_budgeting_descend(struct tarn_budgeting *budgeting, uint64_t enough)
{
    struct tarn_descent *descent = &budgeting->descent;
    enum tarn_status status = TARN_OK;
    while (status == TARN_OK && descent->stage != TARN_DESCENT_COMPLETE &&
           !tarn_attempt_fits(&descent->smallest, enough) && !is_over(budgeting))
        status = run_stage(budgeting);
    if (descent->stage == TARN_DESCENT_COMPLETE && !is_over(budgeting))
        budgeting->smallest = descent->smallest.footprint;
    return status;
}

/* ---- Within a budget ---- */

/* Halves between the smallest peak, which fits, and the budget, which does not: the searches so far
 * ended above the budget, or with a footprint above their peak. */
static enum tarn_status halve(struct tarn_budgeting *budgeting, struct tarn_attempt *best)
{
    uint64_t low = best->report.peak, high = budgeting->options.budget, next;
    for (int i = 0; i < HALVINGS && low < high; i++) {
        uint64_t target = low + (high - low) / 2;
        struct tarn_attempt attempt = {0};
        if (is_over(budgeting)) break;
        budgeting->searches = 0; /* here it is hard to find anything */
        enum tarn_status status = try_target(budgeting, target, false, &attempt, &next);
        if (status != TARN_OK) return status;
        bool fitted = tarn_attempt_fits(&attempt, budgeting->options.budget);
        tarn_attempt_keep_better(best, &attempt, budgeting->options.budget);
        if (fitted)
            low = target;
        else
            high = target;
    }
    if (is_over(budgeting)) return TARN_OK;
    budgeting->searches = 0; /* from a slightly lower target, up to the budget */
    return try_target(budgeting, budgeting->options.budget, true, best, &next);
}

static void take_least(struct tarn_budgeting *budgeting, struct tarn_attempt *best)
{
    tarn_planned_finish(&best->made);
    *best = budgeting->descent.smallest;
    budgeting->descent.smallest.made = (struct tarn_planned){0};
}

/* No plan may be below the smallest footprint, see above. */
static enum tarn_status is_above_least(struct tarn_budgeting *budgeting, uint64_t footprint,
                                       bool *above)
{
    enum tarn_status status = TARN_OK;
    if (budgeting->smallest == 0) status = tarn_budgeting_descend(budgeting, footprint);
    *above = budgeting->smallest > 0 ? budgeting->smallest <= footprint
                                     : tarn_attempt_fits(&budgeting->descent.smallest, footprint);
    return status;
}

/* Puts the result that keeps to the budget in another order: less memory for no more time. */
static enum tarn_status reorder_best(struct tarn_budgeting *budgeting, struct tarn_attempt *best)
{
    struct tarn_attempt ordered;
    bool above = false;
    uint64_t budget = budgeting->options.budget;
    if (budget == TARN_BUDGET_UNLIMITED || !tarn_attempt_fits(best, budget)) return TARN_OK;
    enum tarn_status status = tarn_attempt_reorder(budgeting, best, &ordered);
    if (status == TARN_OK && ordered.made.graph)
        status = is_above_least(budgeting, ordered.footprint, &above);
    if (above) {
        struct tarn_attempt larger = *best;
        *best = ordered;
        ordered = larger;
    }
    tarn_planned_finish(&ordered.made);
    return status;
}

/* Searches once more from the result, with fewer steps. A policy for a smaller budget also keeps to
 * a larger one, and may be faster by luck. So for a small graph a few smaller budgets are tried,
 * which are the same for budgets near each other. */
static enum tarn_status probe_below(struct tarn_budgeting *budgeting, struct tarn_attempt *best)
{
    uint64_t budget = budgeting->options.budget;
    bool launches = budgeting->model.launches_count > 0;
    uint64_t step = budgeting->footprint_before / (launches ? LAUNCHES_STEPS : STEPS), next;
    enum tarn_status status = TARN_OK;
    bool small = budgeting->model.ops_count <= PROBED_OPS;
    uint32_t probes = launches ? LAUNCHES_PROBES : PROBES;
    if (budgeting->options.method != TARN_BUDGET_SEARCH || step == 0 || budgeting->is_brief ||
        best->time_ns <= budgeting->before_ns || is_over(budgeting))
        return status;
    budgeting->searches = 0;
    if (!small) return try_target(budgeting, budget, true, best, &next);
    uint64_t step_number = budget / step;
    for (uint32_t i = 0; i < probes && step_number > 0 && status == TARN_OK; i++, step_number--) {
        uint64_t target = step_number * step;
        if (is_over(budgeting) || best->time_ns <= budgeting->before_ns) break;
        if (target < budgeting->smallest) break;
        budgeting->searches = SEARCHES_FULL;
        tarn_policy_reset(&budgeting->policy, &budgeting->model);
        status = try_target(budgeting, target, false, best, &next);
    }
    return status;
}

/* Is there another way to run any op? Then even a graph that fits unchanged may be run faster. */
static bool has_choices(const struct tarn_recompute_model *model)
{
    for (uint32_t f = 0; f < model->forms_count; f++)
        if (model->forms[f].choices.end - model->forms[f].choices.begin > 1) return true;
    return model->forms_count > model->ops_count;
}

enum tarn_status tarn_budgeting_try_unchanged(struct tarn_budgeting *budgeting,
                                              struct tarn_attempt *best)
{
    struct tarn_attempt front;
    forget_script(budgeting);
    tarn_policy_reset(&budgeting->policy, &budgeting->model);
    return tarn_attempt_make(budgeting, budgeting->options.budget, best, &front);
}

/* A graph that fits unchanged, and could not be faster, needs no search. */
static enum tarn_status take_as_it_is(struct tarn_budgeting *budgeting, struct tarn_attempt *best,
                                      bool *done)
{
    *done = false;
    if (budgeting->footprint_before > budgeting->options.budget || has_choices(&budgeting->model) ||
        budgeting->options.budget == TARN_BUDGET_UNLIMITED)
        return TARN_OK;
    enum tarn_status status = tarn_budgeting_try_unchanged(budgeting, best);
    *done = status == TARN_OK && tarn_attempt_fits(best, budgeting->options.budget) &&
            best->time_ns <= budgeting->before_ns;
    return status;
}

/* Searches for the budget itself. A plan below everything that the descent has found so far is kept
 * only if the whole descent reaches as low. */
static enum tarn_status search_within(struct tarn_budgeting *budgeting, struct tarn_attempt *best)
{
    uint64_t budget = budgeting->options.budget;
    bool done;
    enum tarn_status status = take_as_it_is(budgeting, best, &done);
    tarn_policy_reset(&budgeting->policy, &budgeting->model);
    if (status == TARN_OK && !done) status = tarn_budgeting_try_targets(budgeting, false, best);
    if (status != TARN_OK || budget == TARN_BUDGET_UNLIMITED) return status;
    bool fits = tarn_attempt_fits(best, budget);
    status = tarn_budgeting_descend(budgeting, fits ? best->footprint : 0);
    if (status == TARN_OK && fits) status = probe_below(budgeting, best);
    if (status != TARN_OK || (fits && best->footprint >= budgeting->smallest)) return status;
    if (!tarn_attempt_fits(&budgeting->descent.smallest, budget)) return TARN_OK;
    take_least(budgeting, best);
    return budgeting->options.method == TARN_BUDGET_SEARCH ? halve(budgeting, best) : TARN_OK;
}

enum tarn_status tarn_budgeting_search_list(struct tarn_budgeting *budgeting,
                                            struct tarn_attempt *best)
{
    budgeting->aim = TARN_AIM_LIST;
    tarn_policy_reset(&budgeting->policy, &budgeting->model);
    enum tarn_status status = tarn_budgeting_try_targets(budgeting, false, best);
    if (status == TARN_OK && tarn_attempt_fits(best, budgeting->options.budget))
        status = probe_below(budgeting, best);
    return status;
}

enum tarn_status tarn_budgeting_search(struct tarn_budgeting *budgeting, struct tarn_attempt *best)
{
    uint64_t budget = budgeting->options.budget;
    enum tarn_status status = TARN_OK;
    if (budget != TARN_BUDGET_UNLIMITED) status = tarn_budgeting_descend(budgeting, budget);
    if (status != TARN_OK) return status;
    if (budgeting->smallest > budget) {
        take_least(budgeting, best);
        return TARN_OK;
    }
    status = search_within(budgeting, best);
    if (status == TARN_OK && !best->made.graph) take_least(budgeting, best);
    return status == TARN_OK ? reorder_best(budgeting, best) : status;
}
