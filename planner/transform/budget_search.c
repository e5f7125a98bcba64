/* What to keep under a budget, found by search with tarn_evaluate as the judge, so nothing is asked
 * of the graph's shape. Where there are few policies, all are tried. Else:
 *
 *   1. keep what is read behind the turn, drop the rest, which costs nothing;
 *   2. greedy: ever the decision that takes the most off the peak for the time it costs; what each
 * was last seen to be worth is an estimate, so only the best few are looked at again each time;
 *   3. annealing: random moves, of which worse ones are accepted ever more seldom. Bytes above
 *      the budget have a price in time, which rises while a policy is above it and falls while
 * below, so that the search walks along the border.
 *
 * The decision space is that of MONeT ("Memory optimization for deep networks", 2021), which solves
 * a 0-1 program; annealing's effort is counted in evaluations, some 20 for each decision. Cost:
 * evaluations times the executions of a schedule. */
#include "budget.h"

#include <stdlib.h>
#include <string.h>

#include "budget_space.h"

enum {
    COMPLETE_MAX = 1 << 15, /* policies that are tried one by one */
    STEPS_PER_DECISION = 20,
    STEPS_MIN = 4000,
    MOVE_MAX = 64, /* decisions that one move changes */
    NEAR = 4,
    EXCESS_WEIGHT = 10,
};

/* At the start of annealing: what is paid for the whole budget, as a part of the time; how much
 * worse a move may be, in usual times of a forward op. */
static const double PRICE = 0.3, HEAT = 2;

struct change {
    uint32_t decision, value;
};

struct search {
    const struct tarn_recompute_model *model;
    struct tarn_budget_space space;
    struct tarn_evaluator *evaluator;
    uint64_t budget;
    struct tarn_policy *policy; /* at hand */
    struct tarn_policy best;
    uint64_t peak, time_ns; /* of the policy evaluated last */
    double above;           /* the budget: bytes, see `measure` */
    uint64_t best_peak, best_time;
    uint64_t evaluations;
    uint64_t random;
    struct change undo[MOVE_MAX]; /* what the move at hand has changed, and its values before */
    uint32_t undo_count;
    bool no_memory;
};

/* ---- Policies ---- */

static void copy_policy(const struct tarn_recompute_model *model, struct tarn_policy *to,
                        const struct tarn_policy *from)
{
    memcpy(to->keep, from->keep, model->versions_count * sizeof *to->keep);
    memcpy(to->retain, from->retain, model->versions_count * sizeof *to->retain);
    memcpy(to->form, from->form, model->graph->ops_count * sizeof *to->form);
}

static bool is_better(const struct search *all)
{
    bool fits = all->peak <= all->budget, best_fits = all->best_peak <= all->budget;
    if (fits != best_fits) return fits;
    if (fits && all->time_ns != all->best_time) return all->time_ns < all->best_time;
    if (all->peak != all->best_peak) return all->peak < all->best_peak;
    return all->time_ns < all->best_time;
}

/* How far a schedule is above the budget: the peak counts, and that the rest is high, too, for
 * where many executions are, none alone lowers the peak. */
static double bytes_above(const struct tarn_schedule *schedule, uint64_t budget)
{
    if (schedule->peak <= budget) return 0;
    return (double)(schedule->peak - budget) + EXCESS_WEIGHT * schedule->excess / schedule->count;
}

/* Evaluates the policy at hand and notes it where it is the best so far. */
static void evaluate(struct search *all)
{
    const struct tarn_schedule *schedule = tarn_evaluate(all->evaluator, all->policy, all->budget);
    all->evaluations++;
    if (!schedule) {
        all->no_memory = true;
        return;
    }
    all->peak = schedule->peak;
    all->time_ns = schedule->time_ns;
    all->above = bytes_above(schedule, all->budget);
    if (!is_better(all)) return;
    all->best_peak = all->peak;
    all->best_time = all->time_ns;
    copy_policy(all->model, &all->best, all->policy);
}

/* ---- Moves ---- */

static void set(struct search *all, uint32_t d, uint32_t value)
{
    uint32_t before = tarn_decision_get(&all->space, all->policy, d);
    if (before == value || all->undo_count == MOVE_MAX) return;
    all->undo[all->undo_count++] = (struct change){d, before};
    tarn_decision_set(&all->space, all->policy, d, value);
}

static void take_back(struct search *all)
{
    while (all->undo_count > 0) {
        struct change *change = &all->undo[--all->undo_count];
        tarn_decision_set(&all->space, all->policy, change->decision, change->value);
    }
}

/* Sets the form of an op and keeps what it reads. */
static void set_form(struct search *all, uint32_t d, uint32_t value, bool keep)
{
    const struct tarn_recompute_model *model = all->model;
    set(all, d, value);
    uint32_t f = all->policy->form[all->space.decisions[d].index];
    if (f == TARN_NONE || !keep) return;
    for (uint32_t i = model->forms[f].reads.begin; i < model->forms[f].reads.end; i++) {
        uint32_t read = all->space.of_version[model->reads[i]];
        if (read != TARN_NONE) set(all, read, TARN_KEEP);
    }
}

/* ---- All policies ---- */

static void try_all(struct search *all)
{
    struct tarn_budget_space *space = &all->space;
    for (uint32_t d = 0; d < space->count; d++) tarn_decision_set(space, all->policy, d, 0);
    for (uint32_t d = 0; d < space->count && !all->no_memory;) {
        evaluate(all);
        for (d = 0; d < space->count; d++) { /* the next point, as on a milometer */
            uint32_t value = tarn_decision_get(space, all->policy, d) + 1;
            tarn_decision_set(space, all->policy, d, value % space->decisions[d].values);
            if (value < space->decisions[d].values) break;
        }
    }
}

/* ---- Start ---- */

/* Drops what nobody reads behind the turn; when it is wanted nevertheless, it is recomputed. */
static void drop_unread(struct search *all)
{
    const struct tarn_recompute_model *model = all->model;
    const struct tarn_schedule *schedule = tarn_evaluate(all->evaluator, all->policy, all->budget);
    if (!schedule) {
        all->no_memory = true;
        return;
    }
    struct tarn_budget_space *space = &all->space;
    for (uint32_t d = 0; d < space->versions_count; d++) {
        if (tarn_decision_get(space, all->policy, d) == TARN_KEEP)
            tarn_decision_set(space, all->policy, d, TARN_DROP);
    }
    for (uint32_t e = 0; e < schedule->count; e++) {
        const struct tarn_form *form = &model->forms[schedule->executions[e].form];
        if (schedule->executions[e].place < model->turn) continue;
        for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
            uint32_t d = space->of_version[model->reads[i]];
            if (d != TARN_NONE && !schedule->executions[e].recomputed)
                tarn_decision_set(space, all->policy, d, TARN_KEEP);
        }
    }
}

/* ---- Greedy ---- */

struct option {
    struct change change;
    double worth; /* bytes off the peak per nanosecond, when last looked at */
};

static void apply(struct search *all, struct change change)
{
    if (change.decision < all->space.versions_count) {
        set(all, change.decision, change.value);
    } else {
        set_form(all, change.decision, change.value, true);
    }
}

static struct option *list_options(const struct search *all, uint32_t *count)
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
static void weigh(struct search *all, struct option *option, double above, uint64_t time_ns)
{
    apply(all, option->change);
    option->worth = -1;
    if (all->undo_count > 0) {
        evaluate(all);
        double saved = above - all->above;
        double extra = (double)all->time_ns - (double)time_ns;
        option->worth = saved / (extra > 1 ? extra : 1);
    }
    take_back(all);
}

/* Lowers the peak until it fits or no single decision lowers it. */
static void descend(struct search *all, struct option *options, uint32_t count)
{
    evaluate(all);
    uint64_t time_ns = all->time_ns;
    double above = all->above;
    uint32_t looked_at = TARN_NONE;
    while (above > 0 && count > 0 && !all->no_memory) {
        uint32_t i = most_worth(options, count);
        if (options[i].worth <= 0) return;
        if (i != looked_at) {
            weigh(all, &options[i], above, time_ns);
            looked_at = i;
            continue;
        }
        apply(all, options[i].change);
        all->undo_count = 0;
        evaluate(all);
        above = all->above;
        time_ns = all->time_ns;
        options[i].worth = -1;
        looked_at = TARN_NONE;
    }
}

static void run_greedy(struct search *all)
{
    uint32_t count;
    struct option *options = list_options(all, &count);
    if (options) {
        descend(all, options, count);
    } else {
        all->no_memory = true;
    }
    free(options);
}

/* ---- Annealing ---- */

static uint64_t draw(struct search *all)
{
    uint64_t z = all->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t draw_below(struct search *all, uint32_t count)
{
    return (uint32_t)(((draw(all) >> 32) * count) >> 32);
}

static void move_value(struct search *all, uint32_t d)
{
    uint32_t values = all->space.decisions[d].values;
    uint32_t value = tarn_decision_get(&all->space, all->policy, d);
    value = (value + 1 + draw_below(all, values - 1)) % values;
    if (d < all->space.versions_count) {
        set(all, d, value);
    } else {
        set_form(all, d, value, draw_below(all, 2) > 0);
    }
}

static void flip(struct search *all, uint32_t d)
{
    bool kept = tarn_decision_get(&all->space, all->policy, d) == TARN_KEEP;
    set(all, d, kept ? TARN_DROP : TARN_KEEP);
}

/* One decision anew, or two versions near each other change places. */
static void move(struct search *all)
{
    uint32_t versions = all->space.versions_count, kind = draw_below(all, 10);
    uint32_t d = draw_below(all, all->space.count);
    if (kind < 7 || versions == 0) {
        if (kind < 5 && versions > 0) d = draw_below(all, versions);
        move_value(all, d);
        return;
    }
    d = draw_below(all, versions);
    uint32_t other = d + draw_below(all, 2 * NEAR + 1);
    flip(all, d);
    if (other >= NEAR && other - NEAR < versions && other != d + NEAR) flip(all, other - NEAR);
}

/* In nanoseconds. */
static double cost_of(uint64_t time_ns, double above, double price)
{
    return (double)time_ns + price * above;
}

struct annealing {
    uint64_t time_ns;    /* of the policy at hand */
    double above, price; /* nanoseconds for a byte above the budget */
    double heat;         /* nanoseconds */
};

static void step(struct search *all, struct annealing *state, double heat)
{
    move(all);
    if (all->undo_count == 0) return;
    evaluate(all);
    double now = cost_of(state->time_ns, state->above, state->price);
    double then = cost_of(all->time_ns, all->above, state->price);
    double luck = (double)(draw(all) >> 11) * 0x1p-53;
    if (then <= now + heat * luck * luck) {
        state->above = all->above;
        state->time_ns = all->time_ns;
        all->undo_count = 0;
    } else {
        take_back(all);
    }
}

static void anneal(struct search *all, struct annealing state, uint64_t steps)
{
    double lowest = state.price / 16, highest = state.price * 16;
    for (uint64_t i = 0; i < steps && !all->no_memory; i++) {
        double left = 1 - (double)i / (double)steps;
        step(all, &state, state.heat * left * left);
        state.price *= state.above > 0 ? 1.01 : 0.99;
        if (state.price < lowest) state.price = lowest;
        if (state.price > highest) state.price = highest;
    }
}

/* What an execution before the turn takes on the average. */
static double usual_time(const struct tarn_recompute_model *model)
{
    double sum = 0;
    for (uint32_t i = 0; i < model->turn; i++) {
        struct tarn_range forms = model->op_forms[model->order[i]];
        sum += (double)model->choices[model->forms[forms.begin].choices.begin].time_ns;
    }
    return model->turn > 0 ? sum / model->turn : 0;
}

static void search(struct search *all, uint64_t steps)
{
    drop_unread(all);
    run_greedy(all);
    if (all->no_memory) return;
    copy_policy(all->model, all->policy, &all->best);
    evaluate(all);
    struct annealing state = {.time_ns = all->time_ns,
                              .above = all->above,
                              .price = PRICE * (double)all->best_time / (double)(all->budget + 1),
                              .heat = HEAT * usual_time(all->model)};
    anneal(all, state, steps);
}

enum tarn_status tarn_budget_search(const struct tarn_recompute_model *model, uint64_t budget,
                                    const struct tarn_budget_limits *limits,
                                    struct tarn_policy *policy, struct tarn_budget_outcome *outcome)
{
    struct search all = {.model = model,
                         .budget = budget,
                         .policy = policy,
                         .best_peak = UINT64_MAX,
                         .best_time = UINT64_MAX};
    bool recompute = limits->classes == 0 || (limits->classes & TARN_BUDGET_RECOMPUTE);
    enum tarn_status status = tarn_budget_space_init(&all.space, model, recompute);
    all.evaluator = tarn_evaluator_create(model);
    if (tarn_policy_init(&all.best, model) || !all.evaluator) status = TARN_SYSTEM;
    if (!status) {
        copy_policy(model, &all.best, policy);
        evaluate(&all);
        uint64_t size = tarn_budget_space_size(&all.space, COMPLETE_MAX + 1);
        uint64_t steps = limits->steps > 0
                             ? limits->steps
                             : STEPS_MIN + (uint64_t)STEPS_PER_DECISION * all.space.count;
        if (size <= COMPLETE_MAX) {
            try_all(&all);
        } else if (all.space.count > 0) {
            search(&all, steps);
        }
        copy_policy(model, policy, &all.best);
        *outcome = (struct tarn_budget_outcome){.peak = all.best_peak,
                                                .time_ns = all.best_time,
                                                .evaluations = all.evaluations,
                                                .fits = all.best_peak <= budget,
                                                .complete = size <= COMPLETE_MAX};
        if (all.no_memory) status = TARN_SYSTEM;
    }
    tarn_policy_finish(&all.best);
    tarn_evaluator_destroy(all.evaluator);
    tarn_budget_space_finish(&all.space);
    return status;
}
