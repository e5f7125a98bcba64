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
    STEPS_PER_DECISION = 12,
    PLACES = 6 << 20, /* looked at by further steps, all in all */
    MOVE_MAX = 64,    /* decisions that one move changes */
    NEAR = 10,
    FORM_MOVES = 15,   /* in a hundred */
    SINGLE_MOVES = 50, /* of one version */
    EXCESS_WEIGHT = 10,
};

/* At the start of annealing: what is paid for the whole budget, as a part of the time; how much
 * worse a move may be, in usual times of a forward op. Then how the price changes with each step.
 */
static const double PRICE = 0.3, HEAT = 4, RISE = 1.003;

struct change {
    uint32_t decision, value;
};

struct search {
    const struct tarn_recompute_model *model;
    struct tarn_budget_space space;
    struct tarn_evaluator *evaluator;
    uint64_t budget;
    uint64_t aim;               /* the budget, or what no policy can come below */
    struct tarn_policy *policy; /* at hand */
    struct tarn_policy best;
    uint64_t peak, time_ns; /* of the policy evaluated last */
    double above;           /* the aim: bytes, see bytes_above */
    uint64_t best_peak, best_time;
    uint64_t evaluations;
    uint64_t random;
    const struct tarn_schedule *schedule; /* evaluated last */
    uint8_t *roles;                       /* decision about a version -> what became of it */
    uint32_t *active;                     /* decisions that made a difference, in order */
    uint32_t active_count;
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
static double bytes_above(const struct tarn_schedule *schedule, uint64_t aim)
{
    if (schedule->peak <= aim) return 0;
    return (double)(schedule->peak - aim) +
           EXCESS_WEIGHT * schedule->excess / ((double)schedule->count + 1);
}

/* Evaluates the policy at hand and notes it where it is the best so far. */
static void evaluate(struct search *all)
{
    const struct tarn_schedule *schedule = tarn_evaluate(all->evaluator, all->policy, all->aim);
    all->evaluations++;
    if (!schedule) {
        all->no_memory = true;
        return;
    }
    all->schedule = schedule;
    all->peak = schedule->peak;
    all->time_ns = schedule->time_ns;
    all->above = bytes_above(schedule, all->aim);
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

/* The first execution behind the turn. */
static uint32_t find_turn(const struct search *all)
{
    const struct tarn_schedule *schedule = all->schedule;
    uint32_t turn = 0;
    while (turn < schedule->count && schedule->executions[turn].place < all->model->turn) turn++;
    return turn;
}

/* Drops what is kept although nobody reads it behind the turn; when it is wanted nevertheless, it
 * is recomputed. */
static void drop_unread(struct search *all)
{
    struct tarn_budget_space *space = &all->space;
    const struct tarn_schedule *schedule = tarn_evaluate(all->evaluator, all->policy, all->aim);
    if (!schedule) {
        all->no_memory = true;
        return;
    }
    all->schedule = schedule;
    uint32_t turn = find_turn(all);
    for (uint32_t c = 0; c < schedule->copies_count && schedule->copies[c].birth < turn; c++) {
        uint32_t d = space->of_version[schedule->copies[c].version];
        if (d == TARN_NONE || schedule->copies[c].last_read >= turn) continue;
        if (tarn_decision_get(space, all->policy, d) == TARN_KEEP)
            tarn_decision_set(space, all->policy, d, TARN_DROP);
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

/* What became of a version behind the turn. */
enum { KEPT = 1, RECOMPUTED = 2, AGAIN = 4, SHARED = 8 };

/* Notes which decisions have made a difference in the schedule evaluated last. */
static void note_roles(struct search *all)
{
    const struct tarn_schedule *schedule = all->schedule;
    uint32_t turn = find_turn(all);
    memset(all->roles, 0, all->space.versions_count);
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        const struct tarn_copy *copy = &schedule->copies[c];
        uint32_t d = all->space.of_version[copy->version];
        if (d == TARN_NONE || copy->last_read < turn) continue;
        if (!copy->recomputed) {
            all->roles[d] |= KEPT;
            continue;
        }
        bool shared =
            copy->last_read >= schedule->count ||
            schedule->executions[copy->birth].place != schedule->executions[copy->last_read].place;
        all->roles[d] |= (uint8_t)(RECOMPUTED | (all->roles[d] & RECOMPUTED ? AGAIN : 0) |
                                   (shared ? SHARED : 0));
    }
    all->active_count = 0;
    for (uint32_t d = 0; d < all->space.versions_count; d++) {
        if (all->roles[d]) all->active[all->active_count++] = d;
    }
}

/* Another value for a version, if it can make a difference; mostly kept becomes dropped and back.
 */
static void move_version(struct search *all, uint32_t d)
{
    uint32_t value = tarn_decision_get(&all->space, all->policy, d), luck = draw_below(all, 8);
    if (value == TARN_KEEP)
        value = luck == 0 ? TARN_DROP_EACH_TIME : TARN_DROP;
    else if (value == TARN_DROP && (all->roles[d] & SHARED) && luck < 2)
        value = TARN_DROP_EACH_TIME;
    else if (value == TARN_DROP_EACH_TIME && (all->roles[d] & AGAIN) && luck < 2)
        value = TARN_DROP;
    else
        value = TARN_KEEP;
    set(all, d, value);
}

static void move_form(struct search *all)
{
    uint32_t first = all->space.versions_count;
    uint32_t d = first + draw_below(all, all->space.count - first);
    uint32_t values = all->space.decisions[d].values;
    uint32_t value = tarn_decision_get(&all->space, all->policy, d);
    value = (value + 1 + draw_below(all, values - 1)) % values;
    set_form(all, d, value, draw_below(all, 2) > 0);
}

/* One decision anew, or two about versions near each other. */
static void move(struct search *all)
{
    bool forms = all->space.count > all->space.versions_count;
    uint32_t kind = draw_below(all, 100);
    if (kind < FORM_MOVES || all->active_count == 0) {
        if (forms) move_form(all);
        return;
    }
    uint32_t i = draw_below(all, all->active_count);
    move_version(all, all->active[i]);
    uint32_t other = i + draw_below(all, 2 * NEAR + 1);
    if (kind < FORM_MOVES + SINGLE_MOVES || other == i + NEAR) return;
    if (other >= NEAR && other - NEAR < all->active_count)
        move_version(all, all->active[other - NEAR]);
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
        note_roles(all);
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
        state.price *= state.above > 0 ? RISE : 1 / RISE;
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

static uint64_t usual_steps(const struct search *all, const struct tarn_budget_limits *limits)
{
    uint64_t steps = (uint64_t)STEPS_PER_DECISION * all->space.count +
                     PLACES / ((uint64_t)all->model->ops_count + 1);
    if (limits->refine) steps /= 4;
    return limits->steps > 0 ? limits->steps : steps;
}

static bool keeps_everything(const struct search *all)
{
    for (uint32_t d = 0; d < all->space.count; d++) {
        if (tarn_decision_get(&all->space, all->policy, d) != 0) return false;
    }
    return true;
}

static void start(struct search *all)
{
    drop_unread(all);
    if (!all->no_memory) run_greedy(all);
}

/* Starts from the policy that was given, and from keeping everything. */
static void search(struct search *all, const struct tarn_budget_limits *limits)
{
    uint64_t steps = usual_steps(all, limits);
    bool again = !limits->refine && !keeps_everything(all);
    start(all);
    if (again && !all->no_memory) {
        for (uint32_t d = 0; d < all->space.count; d++)
            tarn_decision_set(&all->space, all->policy, d, 0);
        start(all);
    }
    if (all->no_memory) return;
    copy_policy(all->model, all->policy, &all->best);
    evaluate(all);
    if (all->no_memory || all->evaluations >= steps) return;
    double heat = HEAT * usual_time(all->model);
    struct annealing state = {.time_ns = all->time_ns,
                              .above = all->above,
                              .price = PRICE * (double)all->best_time / (double)all->aim,
                              .heat = limits->refine ? heat / 8 : heat};
    note_roles(all);
    anneal(all, state, steps - all->evaluations);
}

/* ---- The whole ---- */

static enum tarn_status init(struct search *all, const struct tarn_budget_limits *limits)
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

static void finish(struct search *all)
{
    tarn_policy_finish(&all->best);
    tarn_budget_space_finish(&all->space);
    tarn_evaluator_destroy(all->evaluator);
    free(all->roles);
    free(all->active);
}

static void run(struct search *all, const struct tarn_budget_limits *limits,
                struct tarn_budget_outcome *outcome)
{
    uint64_t most = COMPLETE_MAX;
    if (limits->steps > 0 && limits->steps < most) most = limits->steps;
    bool complete = tarn_budget_space_size(&all->space, most + 1) <= most;
    copy_policy(all->model, &all->best, all->policy);
    evaluate(all);
    if (complete) {
        try_all(all);
    } else {
        search(all, limits);
    }
    copy_policy(all->model, all->policy, &all->best);
    all->aim = all->budget; /* workspaces as the caller will see them */
    evaluate(all);
    *outcome = (struct tarn_budget_outcome){.peak = all->peak,
                                            .time_ns = all->time_ns,
                                            .evaluations = all->evaluations,
                                            .fits = all->peak <= all->budget,
                                            .complete = complete};
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
    enum tarn_status status = init(&all, limits);
    if (status == TARN_OK) run(&all, limits, outcome);
    if (all.no_memory) status = TARN_SYSTEM;
    finish(&all);
    return status;
}
