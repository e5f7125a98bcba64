/* Chooses what to keep under a budget, by a search that evaluates policies with tarn_evaluate, so
 * the graph may have any shape. If there are few policies, all are tried. Else:
 *
 *   1. start: drop versions that no op reads after the drop, which costs nothing;
 *   2. greedy: again and again the decision that lowers the peak most for the time it costs; what
 *      each gained when last tried is an estimate, so only the best few are looked at again;
 *   3. annealing (budget/anneal.c).
 *
 * The decisions are those of MONeT ("Memory optimization for deep networks", 2021), which solves a
 * 0-1 program. Effort is counted in evaluations: a dozen for each decision, and more if they are
 * cheap. Cost: evaluations times the executions of a schedule. */
#include "budget.h"

#include <assert.h>

#include "search.h"

enum {
    COMPLETE_MAX = 1 << 15, /* policies that are tried one by one */
    STEPS_PER_DECISION = 12,
    POLISH_SHARE = 8,      /* of the steps, one part on top of them */
    PLACES = 3 << 20,      /* looked at by further steps, all in all */
    FURTHER_MAX = 16384,   /* further steps: a small graph has few policies */
    PLACES_MAX = 16 << 20, /* looked at one move at a time; above, in regions */
};

/* ---- All policies ---- */

static void try_all(struct tarn_budget_search *search)
{
    struct tarn_budget_space *space = &search->space;
    for (uint32_t d = 0; d < space->count; d++) tarn_decision_set(space, search->policy, d, 0);
    for (uint32_t d = 0; d < space->count && !search->ended;) {
        tarn_search_evaluate(search);
        for (d = 0; d < space->count; d++) { /* the next point, as an odometer counts */
            uint32_t value = tarn_decision_get(space, search->policy, d) + 1;
            tarn_decision_set(space, search->policy, d, value % space->decisions[d].values);
            if (value < space->decisions[d].values) break;
        }
    }
}

/* ---- Start ---- */

/* Drops kept versions that no op reads after the place at which they would be dropped; if such a
 * version is needed nevertheless, it is recomputed. */
static void drop_unread(struct tarn_budget_search *search)
{
    struct tarn_budget_space *space = &search->space;
    const struct tarn_schedule *schedule =
        tarn_evaluate(search->evaluator, search->policy, search->aim);
    if (!schedule) {
        search->no_memory = search->ended = true;
        return;
    }
    search->schedule = schedule;
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        const struct tarn_copy *copy = &schedule->copies[c];
        uint32_t d = space->of_version[copy->version];
        if (d == TARN_NONE || copy->recomputed || tarn_search_is_used_late(search, copy)) continue;
        if (tarn_decision_get(space, search->policy, d) == TARN_KEEP)
            tarn_decision_set(space, search->policy, d, TARN_DROP);
    }
}

/* ---- Greedy ---- */

struct option {
    struct tarn_setting change;
    double worth; /* bytes off the peak per nanosecond, when last looked at */
};

static void apply(struct tarn_budget_search *search, struct tarn_setting change)
{
    if (change.decision < search->space.versions_count) {
        tarn_search_set(search, change.decision, change.value);
    } else {
        tarn_search_set_form(search, change.decision, change.value, true);
    }
}

static struct option *list_options(struct tarn_budget_search *search, uint32_t *count)
{
    const struct tarn_budget_space *space = &search->space;
    size_t most = 0;
    for (uint32_t d = 0; d < space->count; d++) most += space->decisions[d].values;
    struct option *options = tarn_region_take(&search->region, most, sizeof *options);
    *count = 0;
    for (uint32_t d = 0; options && d < space->count; d++) {
        for (uint32_t value = 1; value < space->decisions[d].values; value++)
            if (d >= space->versions_count || value != TARN_DROP_EACH_TIME)
                options[(*count)++] = (struct option){{d, value}, 1e300};
    }
    return options;
}

static uint32_t most_worth(const struct option *options, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) {
        if (options[i].worth > options[best].worth) best = i;
    }
    return best;
}

/* Computes the present value of an option. */
static void weigh(struct tarn_budget_search *search, struct option *option, double above,
                  uint64_t time_ns)
{
    apply(search, option->change);
    option->worth = -1;
    if (search->undo_count > 0) {
        tarn_search_evaluate(search);
        double saved = above - search->above;
        double extra = (double)search->time_ns - (double)time_ns;
        option->worth = saved / (extra > 1 ? extra : 1);
    }
    tarn_search_take_back(search);
}

/* Lowers the peak until it fits or no single decision lowers it. */
static void descend(struct tarn_budget_search *search, struct option *options, uint32_t count)
{
    tarn_search_evaluate(search);
    uint64_t time_ns = search->time_ns;
    double above = search->above;
    uint32_t looked_at = TARN_NONE;
    while (above > 0 && count > 0 && !search->ended) {
        uint32_t i = most_worth(options, count);
        if (options[i].worth <= 0) return;
        if (i != looked_at) {
            weigh(search, &options[i], above, time_ns);
            looked_at = i;
            continue;
        }
        apply(search, options[i].change);
        search->undo_count = 0;
        tarn_search_evaluate(search);
        above = search->above;
        time_ns = search->time_ns;
        options[i].worth = -1;
        looked_at = TARN_NONE;
    }
}

static void run_greedy(struct tarn_budget_search *search)
{
    uint32_t count;
    struct option *options = list_options(search, &count);
    if (options) {
        descend(search, options, count);
    } else {
        search->no_memory = search->ended = true;
    }
}

/* ---- At the end ---- */

/* Sets the best policy's decision to the value; whether that was better. */
static bool improves(struct tarn_budget_search *search, uint32_t d, uint32_t value)
{
    uint64_t peak = search->best_peak, time_ns = search->best_time;
    tarn_search_set(search, d, value);
    if (search->undo_count > 0) tarn_search_evaluate(search);
    bool better = search->best_peak != peak || search->best_time != time_ns;
    if (better)
        search->undo_count = 0;
    else
        tarn_search_take_back(search);
    return better;
}

/* Tries all numbers of communicating ops by which the best policy's repetition of a version may be
 * launched ahead; whether one was better. */
static bool launches_better(struct tarn_budget_search *search, uint32_t d, uint64_t end)
{
    const struct tarn_budget_space *space = &search->space;
    uint32_t values = space->decisions[d].values;
    bool better = false;
    if (tarn_decision_get(space, search->policy, d) == TARN_KEEP) return false;
    for (uint32_t value = TARN_DROP_AHEAD; value < values && search->evaluations < end; value++)
        better = improves(search, d, value) || better;
    if (values > TARN_DROP_AHEAD && search->evaluations < end)
        better = improves(search, d, TARN_DROP) || better;
    return better;
}

/* Keeps versions that were dropped without a gain, launches repetitions earlier or later, then
 * keeps one version instead of another, until no change is better or `steps` evaluations have been
 * made.
 */
static void polish(struct tarn_budget_search *search, uint64_t steps)
{
    const struct tarn_budget_space *space = &search->space;
    uint64_t end = search->evaluations + steps;
    bool better = true;
    tarn_search_take_best(search);
    search->undo_count = 0;
    while (better && !search->ended && search->evaluations < end) {
        better = false;
        for (uint32_t d = 0; d < space->count && search->evaluations < end; d++)
            if (tarn_decision_get(space, search->policy, d) != 0)
                better = improves(search, d, 0) || better;
        for (uint32_t d = 0; d < space->versions_count; d++)
            better = launches_better(search, d, end) || better;
        for (uint32_t d = 0; d < space->versions_count && search->evaluations < end; d++) {
            uint32_t value = tarn_decision_get(space, search->policy, d);
            if (value == TARN_KEEP) continue;
            for (uint32_t e = 0; e < space->versions_count && search->evaluations < end; e++) {
                if (e == d || tarn_decision_get(space, search->policy, e) != TARN_KEEP) continue;
                tarn_search_set(search, d, TARN_KEEP);
                if (!improves(search, e, TARN_DROP)) continue;
                better = true;
                break;
            }
        }
    }
}

static uint64_t usual_steps(const struct tarn_budget_search *search,
                            const struct tarn_budget_limits *limits)
{
    uint64_t further = PLACES / ((uint64_t)search->model->ops_count + 1);
    uint64_t steps = (uint64_t)STEPS_PER_DECISION * search->space.count +
                     (further < FURTHER_MAX ? further : FURTHER_MAX);
    if (limits->refine) steps /= 4;
    if (limits->share > 1) steps = steps / limits->share + 1;
    return limits->steps > 0 ? limits->steps : steps;
}

static bool keeps_everything(const struct tarn_budget_search *search)
{
    for (uint32_t d = 0; d < search->space.count; d++) {
        if (tarn_decision_get(&search->space, search->policy, d) != 0) return false;
    }
    return true;
}

static void start(struct tarn_budget_search *search)
{
    drop_unread(search);
    if (!search->ended) run_greedy(search);
}

/* Starts from the policy that was given, and from keeping everything. */
static void search_from(struct tarn_budget_search *search, const struct tarn_budget_limits *limits)
{
    uint64_t steps = usual_steps(search, limits);
    if (steps > PLACES_MAX / ((uint64_t)search->model->ops_count + 1)) {
        drop_unread(search);
        if (!search->ended) tarn_search_anneal_regions(search, limits->refine, steps);
        return;
    }
    bool again = !limits->refine && !keeps_everything(search);
    start(search);
    if (again && !search->ended) {
        for (uint32_t d = 0; d < search->space.count; d++)
            tarn_decision_set(&search->space, search->policy, d, 0);
        start(search);
    }
    if (search->ended) return;
    tarn_policy_copy(search->model, search->policy, &search->best);
    tarn_search_evaluate(search);
    if (search->ended || search->evaluations >= steps) return;
    tarn_search_anneal(search, limits->refine, steps - search->evaluations);
    if (!search->ended) polish(search, steps / POLISH_SHARE);
}

/* ---- The whole ---- */

static enum tarn_status init(struct tarn_budget_search *search,
                             const struct tarn_budget_limits *limits)
{
    bool recompute = limits->classes == 0 || (limits->classes & TARN_BUDGET_RECOMPUTE);
    uint64_t floor;
    uint32_t at;
    struct tarn_region *region = &search->region;
    if (tarn_policy_init(&search->best, region, search->model)) return TARN_SYSTEM;
    if (tarn_budget_space_init(&search->space, region, search->model, recompute))
        return TARN_SYSTEM;
    if (tarn_recompute_floor(search->model, TARN_LIST_STAYS, &floor, &at)) return TARN_SYSTEM;
    search->aim = search->budget > floor ? search->budget : floor + 1;
    search->evaluator = tarn_evaluator_create(region, search->model);
    search->roles = tarn_region_take(region, search->space.count, sizeof *search->roles);
    search->active = tarn_region_take(region, search->space.count, sizeof *search->active);
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

static void run(struct tarn_budget_search *search, const struct tarn_budget_limits *limits,
                struct tarn_budget_outcome *outcome)
{
    uint64_t most = COMPLETE_MAX;
    if (limits->steps > 0 && limits->steps < most) most = limits->steps;
    bool complete = tarn_budget_space_size(&search->space, most + 1) <= most;
    tarn_policy_copy(search->model, &search->best, search->policy);
    tarn_search_evaluate(search);
    if (complete) {
        try_all(search);
    } else {
        search_from(search, limits);
    }
    tarn_policy_copy(search->model, search->policy, &search->best);
    search->aim = search->budget; /* workspaces as the caller will see them */
    tarn_search_evaluate(search);
    *outcome = (struct tarn_budget_outcome){.peak = search->peak,
                                            .time_ns = search->time_ns,
                                            .evaluations = search->evaluations,
                                            .fits = search->peak <= search->budget,
                                            .complete = complete && !search->ended};
}

enum tarn_status tarn_budget_search(const struct tarn_recompute_model *model, uint64_t budget,
                                    const struct tarn_budget_limits *limits,
                                    struct tarn_policy *policy, struct tarn_budget_outcome *outcome)
{
    assert(tarn_recompute_model_is_valid(model));
    struct tarn_budget_search search = {
        .model = model,
        .budget = budget,
        .policy = policy,
        .best_peak = UINT64_MAX,
        .best_time = UINT64_MAX,
        .steps = {limits->control, "budget", 0, limits->deadline_ms}};
    enum tarn_status status = init(&search, limits);
    if (status == TARN_OK) run(&search, limits, outcome);
    if (search.no_memory) status = TARN_SYSTEM;
    tarn_region_finish(&search.region);
    return status;
}
