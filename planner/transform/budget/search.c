/* What to keep under a budget, found by search with tarn_evaluate as the judge, so nothing is asked
 * of the graph's shape. Where there are few policies, all are tried. Else:
 *
 *   1. start: drop what nobody reads behind the turn, which costs nothing;
 *   2. greedy: ever the decision that takes the most off the peak for the time it costs; what each
 *      was last seen to be worth is an estimate, so only the best few are looked at again;
 *   3. annealing (budget/anneal.c).
 *
 * The decisions are those of MONeT ("Memory optimization for deep networks", 2021), which solves a
 * 0-1 program. Effort is counted in evaluations: a dozen for each decision, and more where they are
 * cheap. Cost: evaluations times the executions of a schedule. */
#include "budget.h"

#include <stdlib.h>
#include <string.h>

#include "search.h"

enum {
    COMPLETE_MAX = 1 << 15, /* policies that are tried one by one */
    STEPS_PER_DECISION = 12,
    PLACES = 6 << 20,      /* looked at by further steps, all in all */
    PLACES_MAX = 16 << 20, /* looked at one move at a time; above, in regions */
    EXCESS_WEIGHT = 10,
};

/* ---- Policies ---- */

static void copy_policy(const struct tarn_recompute_model *model, struct tarn_policy *to,
                        const struct tarn_policy *from)
{
    memcpy(to->keep, from->keep, model->versions_count * sizeof *to->keep);
    memcpy(to->retain, from->retain, model->versions_count * sizeof *to->retain);
    memcpy(to->form, from->form, model->graph->ops_count * sizeof *to->form);
}

static bool is_better(const struct tarn_search *all)
{
    bool fits = all->peak <= all->budget, best_fits = all->best_peak <= all->budget;
    if (fits != best_fits) return fits;
    if (fits && all->time_ns != all->best_time) return all->time_ns < all->best_time;
    if (all->peak != all->best_peak) return all->peak < all->best_peak;
    return all->time_ns < all->best_time;
}

/* How far a schedule is above the budget: the peak counts, and that the rest is high, too, for
 * where many executions are, none alone lowers the peak. */
static double bytes_above(const struct tarn_schedule *schedule, uint64_t aim)
{
    if (schedule->peak <= aim) return 0;
    return (double)(schedule->peak - aim) +
           EXCESS_WEIGHT * schedule->excess / ((double)schedule->count + 1);
}

/* What is to be small: the critical path, and a little work, too, for a move that leaves the path
 * alone now may be in its way later. */
static uint64_t cost_of(const struct tarn_schedule *schedule)
{
    return schedule->time_ns + (schedule->work_ns - schedule->time_ns) / TARN_SEARCH_WORK_WEIGHT;
}

/* Evaluates the policy at hand and notes it where it is the best so far. */
void tarn_search_evaluate(struct tarn_search *all)
{
    const struct tarn_schedule *schedule = tarn_evaluate(all->evaluator, all->policy, all->aim);
    all->evaluations++;
    if (!tarn_steps_next(&all->steps, all->best_peak)) all->ended = true;
    if (!schedule) {
        all->no_memory = all->ended = true;
        return;
    }
    all->schedule = schedule;
    all->peak = schedule->peak;
    all->time_ns = cost_of(schedule);
    all->above = bytes_above(schedule, all->aim);
    if (!is_better(all)) return;
    all->best_peak = all->peak;
    all->best_time = all->time_ns;
    copy_policy(all->model, &all->best, all->policy);
}

void tarn_search_take_best(struct tarn_search *all)
{
    copy_policy(all->model, all->policy, &all->best);
}

/* ---- Moves ---- */

void tarn_search_set(struct tarn_search *all, uint32_t d, uint32_t value)
{
    uint32_t before = tarn_decision_get(&all->space, all->policy, d);
    if (before == value || all->undo_count == TARN_MOVE_MAX) return;
    all->undo[all->undo_count++] = (struct tarn_setting){d, before};
    tarn_decision_set(&all->space, all->policy, d, value);
}

void tarn_search_take_back(struct tarn_search *all)
{
    while (all->undo_count > 0) {
        struct tarn_setting *change = &all->undo[--all->undo_count];
        tarn_decision_set(&all->space, all->policy, change->decision, change->value);
    }
}

/* Sets the form of an op and keeps what it reads. */
void tarn_search_set_form(struct tarn_search *all, uint32_t d, uint32_t value, bool keep)
{
    const struct tarn_recompute_model *model = all->model;
    tarn_search_set(all, d, value);
    uint32_t f = all->policy->form[all->space.decisions[d].index];
    if (f == TARN_NONE || !keep) return;
    for (uint32_t i = model->forms[f].reads.begin; i < model->forms[f].reads.end; i++) {
        uint32_t read = all->space.of_version[model->reads[i]];
        if (read != TARN_NONE) tarn_search_set(all, read, TARN_KEEP);
    }
}

/* ---- All policies ---- */

static void try_all(struct tarn_search *all)
{
    struct tarn_budget_space *space = &all->space;
    for (uint32_t d = 0; d < space->count; d++) tarn_decision_set(space, all->policy, d, 0);
    for (uint32_t d = 0; d < space->count && !all->ended;) {
        tarn_search_evaluate(all);
        for (d = 0; d < space->count; d++) { /* the next point, as on a milometer */
            uint32_t value = tarn_decision_get(space, all->policy, d) + 1;
            tarn_decision_set(space, all->policy, d, value % space->decisions[d].values);
            if (value < space->decisions[d].values) break;
        }
    }
}

/* ---- Start ---- */

/* The first execution behind the turn. */
uint32_t tarn_search_turn(const struct tarn_search *all)
{
    const struct tarn_schedule *schedule = all->schedule;
    uint32_t turn = 0;
    while (turn < schedule->count && schedule->executions[turn].place < all->model->turn) turn++;
    return turn;
}

/* Drops what is kept although nobody reads it behind the turn; when it is wanted nevertheless, it
 * is recomputed. */
static void drop_unread(struct tarn_search *all)
{
    struct tarn_budget_space *space = &all->space;
    const struct tarn_schedule *schedule = tarn_evaluate(all->evaluator, all->policy, all->aim);
    if (!schedule) {
        all->no_memory = all->ended = true;
        return;
    }
    all->schedule = schedule;
    uint32_t turn = tarn_search_turn(all);
    for (uint32_t c = 0; c < schedule->copies_count && schedule->copies[c].birth < turn; c++) {
        uint32_t d = space->of_version[schedule->copies[c].version];
        if (d == TARN_NONE || schedule->copies[c].last_read >= turn) continue;
        if (tarn_decision_get(space, all->policy, d) == TARN_KEEP)
            tarn_decision_set(space, all->policy, d, TARN_DROP);
    }
}

/* ---- Greedy ---- */

struct option {
    struct tarn_setting change;
    double worth; /* bytes off the peak per nanosecond, when last looked at */
};

static void apply(struct tarn_search *all, struct tarn_setting change)
{
    if (change.decision < all->space.versions_count) {
        tarn_search_set(all, change.decision, change.value);
    } else {
        tarn_search_set_form(all, change.decision, change.value, true);
    }
}

static struct option *list_options(const struct tarn_search *all, uint32_t *count)
{
    const struct tarn_budget_space *space = &all->space;
    size_t most = 1;
    for (uint32_t d = 0; d < space->count; d++) most += space->decisions[d].values;
    struct option *options = malloc(most * sizeof *options);
    *count = 0;
    for (uint32_t d = 0; options && d < space->count; d++) {
        uint32_t values = d < space->versions_count ? 2 : space->decisions[d].values;
        for (uint32_t value = 1; value < values; value++)
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

/* What an option is worth now. */
static void weigh(struct tarn_search *all, struct option *option, double above, uint64_t time_ns)
{
    apply(all, option->change);
    option->worth = -1;
    if (all->undo_count > 0) {
        tarn_search_evaluate(all);
        double saved = above - all->above;
        double extra = (double)all->time_ns - (double)time_ns;
        option->worth = saved / (extra > 1 ? extra : 1);
    }
    tarn_search_take_back(all);
}

/* Lowers the peak until it fits or no single decision lowers it. */
static void descend(struct tarn_search *all, struct option *options, uint32_t count)
{
    tarn_search_evaluate(all);
    uint64_t time_ns = all->time_ns;
    double above = all->above;
    uint32_t looked_at = TARN_NONE;
    while (above > 0 && count > 0 && !all->ended) {
        uint32_t i = most_worth(options, count);
        if (options[i].worth <= 0) return;
        if (i != looked_at) {
            weigh(all, &options[i], above, time_ns);
            looked_at = i;
            continue;
        }
        apply(all, options[i].change);
        all->undo_count = 0;
        tarn_search_evaluate(all);
        above = all->above;
        time_ns = all->time_ns;
        options[i].worth = -1;
        looked_at = TARN_NONE;
    }
}

static void run_greedy(struct tarn_search *all)
{
    uint32_t count;
    struct option *options = list_options(all, &count);
    if (options) {
        descend(all, options, count);
    } else {
        all->no_memory = all->ended = true;
    }
    free(options);
}

static uint64_t usual_steps(const struct tarn_search *all, const struct tarn_budget_limits *limits)
{
    uint64_t steps = (uint64_t)STEPS_PER_DECISION * all->space.count +
                     PLACES / ((uint64_t)all->model->ops_count + 1);
    if (limits->refine) steps /= 4;
    return limits->steps > 0 ? limits->steps : steps;
}

static bool keeps_everything(const struct tarn_search *all)
{
    for (uint32_t d = 0; d < all->space.count; d++) {
        if (tarn_decision_get(&all->space, all->policy, d) != 0) return false;
    }
    return true;
}

static void start(struct tarn_search *all)
{
    drop_unread(all);
    if (!all->ended) run_greedy(all);
}

/* Starts from the policy that was given, and from keeping everything. */
static void search(struct tarn_search *all, const struct tarn_budget_limits *limits)
{
    uint64_t steps = usual_steps(all, limits);
    if (steps > PLACES_MAX / ((uint64_t)all->model->ops_count + 1)) {
        drop_unread(all);
        if (!all->ended) tarn_search_anneal_regions(all, limits->refine, steps);
        return;
    }
    bool again = !limits->refine && !keeps_everything(all);
    start(all);
    if (again && !all->ended) {
        for (uint32_t d = 0; d < all->space.count; d++)
            tarn_decision_set(&all->space, all->policy, d, 0);
        start(all);
    }
    if (all->ended) return;
    copy_policy(all->model, all->policy, &all->best);
    tarn_search_evaluate(all);
    if (all->ended || all->evaluations >= steps) return;
    tarn_search_anneal(all, limits->refine, steps - all->evaluations);
}

/* ---- The whole ---- */

static enum tarn_status init(struct tarn_search *all, const struct tarn_budget_limits *limits)
{
    bool recompute = limits->classes == 0 || (limits->classes & TARN_BUDGET_RECOMPUTE);
    uint64_t floor;
    uint32_t at;
    if (tarn_policy_init(&all->best, all->model)) return TARN_SYSTEM;
    if (tarn_budget_space_init(&all->space, all->model, recompute)) return TARN_SYSTEM;
    if (tarn_recompute_floor(all->model, &floor, &at)) return TARN_SYSTEM;
    all->aim = all->budget > floor ? all->budget : floor + 1;
    all->evaluator = tarn_evaluator_create(all->model);
    all->roles = malloc((size_t)all->space.count + 1);
    all->active = malloc(((size_t)all->space.count + 1) * sizeof *all->active);
    return all->evaluator && all->roles && all->active ? TARN_OK : TARN_SYSTEM;
}

static void finish(struct tarn_search *all)
{
    tarn_policy_finish(&all->best);
    tarn_budget_space_finish(&all->space);
    tarn_evaluator_destroy(all->evaluator);
    free(all->roles);
    free(all->active);
}

static void run(struct tarn_search *all, const struct tarn_budget_limits *limits,
                struct tarn_budget_outcome *outcome)
{
    uint64_t most = COMPLETE_MAX;
    if (limits->steps > 0 && limits->steps < most) most = limits->steps;
    bool complete = tarn_budget_space_size(&all->space, most + 1) <= most;
    copy_policy(all->model, &all->best, all->policy);
    tarn_search_evaluate(all);
    if (complete) {
        try_all(all);
    } else {
        search(all, limits);
    }
    copy_policy(all->model, all->policy, &all->best);
    all->aim = all->budget; /* workspaces as the caller will see them */
    tarn_search_evaluate(all);
    *outcome = (struct tarn_budget_outcome){.peak = all->peak,
                                            .time_ns = all->time_ns,
                                            .evaluations = all->evaluations,
                                            .fits = all->peak <= all->budget,
                                            .complete = complete && !all->ended};
}

enum tarn_status tarn_budget_search(const struct tarn_recompute_model *model, uint64_t budget,
                                    const struct tarn_budget_limits *limits,
                                    struct tarn_policy *policy, struct tarn_budget_outcome *outcome)
{
    struct tarn_search all = {.model = model,
                              .budget = budget,
                              .policy = policy,
                              .best_peak = UINT64_MAX,
                              .best_time = UINT64_MAX,
                              .steps = {limits->control, "budget", 0, limits->deadline_ms}};
    enum tarn_status status = init(&all, limits);
    if (status == TARN_OK) run(&all, limits, outcome);
    if (all.no_memory) status = TARN_SYSTEM;
    finish(&all);
    return status;
}
