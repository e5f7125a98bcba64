/* Finds cuts: drops and recomputations that do not depend on passes, for graphs without passes and
 * for versions that are no forward results. A version lies idle in a **gap** from one of its users
 * to the next, or after the last one, when only recomputations may need it. A cut drops the version
 * in a gap. It is recomputed just before the gap ends, or earlier, while its inputs are still
 * there.
 *
 * Every execution above the aim must be brought down, and only cuts of versions that are idle
 * during the execution can do that. So the search takes the first such execution, extends each set
 * of cuts by one cut that is idle there, and keeps the most promising sets of equal size (beam
 * search; B. T. Lowerre, "The HARPY speech recognition system", 1976). A small graph has so few
 * sets that none is left out. A set that reaches the aim drops the cuts that it does not need. If
 * the lowest peak is wanted, the aim is lowered until no set reaches it. Cost: evaluations, whose
 * places are counted up to a limit. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "planner/transform/steps.h"

/* Places that are looked at in all. */
enum { WORK = 1 << 19 };
/* Sets of one size that are kept, their size, and cuts that are tried for each. */
enum { WIDTH_MAX = 64, CUTS_MAX = 96, TRIES_MAX = 32, LEVELS = 6 };
/* Number of aims if the lowest peak is looked for; each halves the distance between an aim that was
 * reached and one that was not. */
enum { AIMS = 8 };
/* Places at which a version dropped in a gap may be recomputed. */
enum { AGAIN_MAX = 3 };

/* From the place of one use to the place of the next use; to: the number of places if there is no
 * next use.
 */
struct gap {
    uint32_t version, from, to;
    uint32_t again[AGAIN_MAX]; /* places between, at which its inputs are still there */
    uint32_t again_count;
};

/* A cut of a set: the gap, and the place of the recomputation. */
struct choice {
    uint32_t gap;
    uint32_t again; /* place, or TARN_NONE: just before the gap's end */
    bool each_time; /* the version stays only for the op that asked for it; no gap counts */
};

struct set {
    struct choice choices[CUTS_MAX];
    uint32_t count;
    uint64_t peak, time_ns;
    double above;
    uint64_t hash; /* equal sets have equal ones */
};

struct cutting {
    struct tarn_region region;
    const struct tarn_recompute_model *model;
    struct tarn_evaluator *evaluator;
    const struct tarn_policy *start;
    struct tarn_policy policy; /* that is evaluated */
    struct tarn_cut *cuts;     /* of that */
    struct gap *gaps;
    uint32_t gaps_count;
    uint64_t aim; /* bytes */
    struct set *beam, *next;
    uint32_t beam_count, next_count, width;
    struct set best; /* at the aim the fastest, else of the lowest peak */
    bool is_any;
    uint64_t work_left, evaluations;
    struct tarn_steps steps;
    bool no_memory, ended;
};

/* ---- Gaps ---- */

static const struct tarn_form *own_form(const struct tarn_recompute_model *model, uint32_t place)
{
    return &model->forms[model->op_forms[model->order[place]].begin];
}

static bool is_less(const uint32_t *touched, uint32_t version, uint32_t place)
{
    return touched[version] != TARN_NONE && touched[version] < place;
}

static bool add_gap(struct cutting *cutting, size_t *room, uint32_t version, uint32_t from,
                    uint32_t to)
{
    struct gap *gaps = tarn_region_grow(&cutting->region, cutting->gaps, room,
                                        (size_t)cutting->gaps_count + 1, sizeof *gaps);
    if (!gaps) return false;
    cutting->gaps = gaps;
    gaps[cutting->gaps_count++] = (struct gap){.version = version, .from = from, .to = to};
    return true;
}

static bool list_gaps(struct cutting *cutting)
{
    const struct tarn_recompute_model *model = cutting->model;
    uint32_t *touched = tarn_region_take(&cutting->region, model->versions_count, sizeof *touched);
    size_t room = 0;
    if (!touched) return false;
    memset(touched, 0xff, model->versions_count * sizeof *touched);
    for (uint32_t place = 0; place < model->ops_count; place++) {
        const struct tarn_form *form = own_form(model, place);
        for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
            uint32_t w = model->reads[i];
            if (place > 0 && model->versions[w].repeatable && is_less(touched, w, place - 1) &&
                !add_gap(cutting, &room, w, touched[w], place))
                return false;
            touched[w] = place;
        }
        for (uint32_t i = form->writes.begin; i < form->writes.end; i++)
            touched[model->writes[i]] = place;
    }
    for (uint32_t w = 0; w < model->versions_count; w++)
        if (model->versions[w].repeatable && is_less(touched, w, model->ops_count - 1) &&
            !add_gap(cutting, &room, w, touched[w], model->ops_count))
            return false;
    return true;
}

/* The versions that the producer reads are there until their own next uses. */
static void find_again(struct cutting *cutting, struct gap *gap)
{
    const struct tarn_recompute_model *model = cutting->model;
    const struct tarn_form *form =
        &model->forms[model->op_forms[model->versions[gap->version].producer].begin];
    for (uint32_t g = 0; g < cutting->gaps_count && gap->again_count < AGAIN_MAX; g++) {
        const struct gap *other = &cutting->gaps[g];
        uint32_t at = other->from + 1; /* after a use of one of its inputs */
        if (other == gap || at <= gap->from + 1 || at >= gap->to) continue;
        bool is_read = false, known = false;
        for (uint32_t i = form->reads.begin; i < form->reads.end; i++)
            is_read = is_read || model->reads[i] == other->version;
        for (uint32_t i = 0; i < gap->again_count; i++) known = known || gap->again[i] == at;
        if (is_read && !known) gap->again[gap->again_count++] = at;
    }
}

/* ---- Sets of cuts ---- */

static int by_place(const void *left, const void *right)
{
    const struct tarn_cut *a = left, *b = right;
    if (a->place != b->place) return a->place < b->place ? -1 : 1;
    if (a->again != b->again) return a->again ? 1 : -1; /* dropped first */
    return a->version < b->version ? -1 : a->version > b->version;
}

static uint32_t write_cuts(const struct cutting *cutting, const struct set *set,
                           struct tarn_cut *cuts)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct choice *choice = &set->choices[i];
        const struct gap *gap = &cutting->gaps[choice->gap];
        if (choice->each_time) continue;
        cuts[count++] = (struct tarn_cut){gap->from + 1, gap->version, false};
        if (choice->again != TARN_NONE)
            cuts[count++] = (struct tarn_cut){choice->again, gap->version, true};
    }
    qsort(cuts, count, sizeof *cuts, by_place);
    return count;
}

static void set_retain(struct cutting *cutting, const struct set *set, bool back)
{
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t w = cutting->gaps[set->choices[i].gap].version;
        if (set->choices[i].each_time)
            cutting->policy.retain[w] = back ? cutting->start->retain[w] : false;
    }
}

/* NULL: it has ended. */
static const struct tarn_schedule *evaluate(struct cutting *cutting, struct set *set)
{
    cutting->policy.cuts = cutting->cuts;
    cutting->policy.cuts_count = write_cuts(cutting, set, cutting->cuts);
    set_retain(cutting, set, false);
    const struct tarn_schedule *schedule = tarn_evaluate_whole(
        cutting->evaluator, &cutting->policy, cutting->aim, TARN_RECOMPUTE_SOONEST);
    set_retain(cutting, set, true);
    cutting->evaluations++;
    if (!schedule) {
        cutting->no_memory = cutting->ended = true;
        return NULL;
    }
    uint64_t work = (uint64_t)schedule->count + cutting->model->ops_count;
    cutting->work_left -= work < cutting->work_left ? work : cutting->work_left;
    if (cutting->work_left == 0 || !tarn_steps_next(&cutting->steps, cutting->best.peak))
        cutting->ended = true;
    set->peak = schedule->peak;
    set->time_ns = schedule->time_ns;
    set->above = schedule->peak == UINT64_MAX ? 1e300 : schedule->excess;
    return schedule;
}

static bool fits(const struct cutting *cutting, const struct set *set)
{
    return set->peak <= cutting->aim;
}

static void note_best(struct cutting *cutting, const struct set *set)
{
    const struct set *best = &cutting->best;
    bool better =
        !cutting->is_any ||
        (fits(cutting, set) != fits(cutting, best)             ? fits(cutting, set)
         : fits(cutting, set) && set->time_ns != best->time_ns ? set->time_ns < best->time_ns
                                                               : set->peak < best->peak);
    if (!better || set->peak == UINT64_MAX) return;
    cutting->best = *set;
    cutting->is_any = true;
}

/* ---- The beam ---- */

static bool comes_before(const struct set *a, const struct set *b)
{
    if (a->above != b->above) return a->above < b->above;
    if (a->time_ns != b->time_ns) return a->time_ns < b->time_ns;
    return a->hash < b->hash;
}

static void offer(struct cutting *cutting, const struct set *set)
{
    note_best(cutting, set);
    if (fits(cutting, set) || set->peak == UINT64_MAX) return;
    uint32_t i = 0;
    for (; i < cutting->next_count; i++)
        if (cutting->next[i].hash == set->hash) return;
    if (cutting->next_count == cutting->width) {
        if (!comes_before(set, &cutting->next[cutting->width - 1])) return;
        cutting->next_count--;
    }
    for (i = cutting->next_count++; i > 0 && comes_before(set, &cutting->next[i - 1]); i--)
        cutting->next[i] = cutting->next[i - 1];
    cutting->next[i] = *set;
}

static uint64_t hash_of(struct choice choice)
{
    uint64_t x = ((uint64_t)choice.gap << 33) ^ ((uint64_t)choice.again << 1) ^ choice.each_time;
    x = (x ^ (x >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 32);
}

static bool has_choice(const struct set *set, struct choice choice)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct choice *other = &set->choices[i];
        if (other->gap == choice.gap && other->each_time == choice.each_time) return true;
    }
    return false;
}

/* Is the gap open while the execution runs? A recomputation runs before the op that asks for it. */
static bool spans(const struct gap *gap, const struct tarn_execution *execution)
{
    return gap->from < execution->place &&
           (execution->place < gap->to || (execution->recomputed && execution->place == gap->to));
}

struct trial {
    struct choice choice;
    double worth;
};

static int by_worth(const void *left, const void *right)
{
    const struct trial *a = left, *b = right;
    if (a->worth != b->worth) return a->worth > b->worth ? -1 : 1;
    if (a->choice.gap != b->choice.gap) return a->choice.gap < b->choice.gap ? -1 : 1;
    return a->choice.again < b->choice.again ? 1 : a->choice.again > b->choice.again ? -1 : 0;
}

static void add_trial(const struct cutting *cutting, const struct set *set, struct trial *trials,
                      uint32_t *count, struct choice choice)
{
    const struct tarn_recompute_model *model = cutting->model;
    if (has_choice(set, choice)) return;
    const struct tarn_version *version = &model->versions[cutting->gaps[choice.gap].version];
    const struct tarn_form *form = &model->forms[model->op_forms[version->producer].begin];
    double time = (double)model->choices[form->choices.begin].time_ns;
    trials[(*count)++] = (struct trial){choice, (double)version->size / (time + 1)};
}

/* Cuts that are idle at the first execution above the aim. */
static uint32_t list_trials(const struct cutting *cutting, const struct set *set,
                            const struct tarn_execution *high, struct trial *trials)
{
    uint32_t count = 0;
    for (uint32_t g = 0; g < cutting->gaps_count; g++) {
        const struct gap *gap = &cutting->gaps[g];
        if (cutting->model->versions[gap->version].size == 0 || !spans(gap, high)) continue;
        add_trial(cutting, set, trials, &count, (struct choice){g, TARN_NONE, false});
        for (uint32_t i = 0; i < gap->again_count; i++)
            if (gap->again[i] > high->place)
                add_trial(cutting, set, trials, &count, (struct choice){g, gap->again[i], false});
        if (cutting->start->retain[gap->version])
            add_trial(cutting, set, trials, &count, (struct choice){g, TARN_NONE, true});
    }
    qsort(trials, count, sizeof *trials, by_worth);
    return count;
}

/* All sets with one cut more. */
static void extend(struct cutting *cutting, struct set *set, struct trial *trials)
{
    const struct tarn_schedule *schedule = evaluate(cutting, set);
    uint32_t e = 0;
    if (!schedule || schedule->peak == UINT64_MAX || set->count == CUTS_MAX) return;
    while (e + 1 < schedule->count && schedule->bytes[e] <= cutting->aim) e++;
    const struct tarn_execution high = schedule->executions[e];
    uint32_t count = list_trials(cutting, set, &high, trials);
    if (count > TRIES_MAX) count = TRIES_MAX;
    for (uint32_t i = 0; i < count && !cutting->ended; i++) {
        struct set more = *set;
        more.choices[more.count++] = trials[i].choice;
        more.hash += hash_of(trials[i].choice);
        if (evaluate(cutting, &more)) offer(cutting, &more);
    }
}

static void run_beam(struct cutting *cutting, struct trial *trials)
{
    struct set none = {.count = 0};
    if (!evaluate(cutting, &none)) return;
    note_best(cutting, &none);
    cutting->beam[0] = none;
    cutting->beam_count = !fits(cutting, &none);
    double least = none.above;
    for (uint32_t idle = 0; cutting->beam_count > 0 && idle < LEVELS && !cutting->ended; idle++) {
        cutting->next_count = 0;
        for (uint32_t i = 0; i < cutting->beam_count && !cutting->ended; i++)
            extend(cutting, &cutting->beam[i], trials);
        struct set *swap = cutting->beam;
        cutting->beam = cutting->next;
        cutting->next = swap;
        cutting->beam_count = cutting->next_count;
        if (fits(cutting, &cutting->best) && idle + 2 < LEVELS) idle = LEVELS - 2; /* one more */
        if (cutting->beam_count == 0 || cutting->beam[0].above >= least) continue;
        least = cutting->beam[0].above;
        if (!fits(cutting, &cutting->best)) idle = 0;
    }
}

/* Gives up cuts that it can do without. */
static void prune(struct cutting *cutting)
{
    for (uint32_t i = cutting->best.count; i-- > 0 && !cutting->ended;) {
        struct set less = cutting->best;
        less.choices[i] = less.choices[--less.count];
        if (!evaluate(cutting, &less)) return;
        if (fits(cutting, &less) && less.time_ns <= cutting->best.time_ns) cutting->best = less;
    }
}

/* ---- The whole ---- */

static enum tarn_status init(struct cutting *cutting, const struct tarn_policy *start,
                             uint32_t aims, const struct tarn_budget_limits *limits)
{
    const struct tarn_recompute_model *model = cutting->model;
    struct tarn_region *region = &cutting->region;
    uint64_t places = (uint64_t)model->ops_count + 1, work = WORK;
    if (limits->steps > 0 && limits->steps < WORK / places) work = limits->steps * places;
    uint64_t sets = work / (TRIES_MAX * LEVELS * 2 * aims) / places;
    cutting->start = start;
    cutting->work_left = work / (limits->share > 1 ? limits->share : 1);
    cutting->width = sets < 1 ? 1 : sets > WIDTH_MAX ? WIDTH_MAX : (uint32_t)sets;
    cutting->evaluator = tarn_evaluator_create(region, model);
    cutting->cuts = tarn_region_take(region, 2 * CUTS_MAX, sizeof *cutting->cuts);
    cutting->beam = tarn_region_take(region, cutting->width, sizeof *cutting->beam);
    cutting->next = tarn_region_take(region, cutting->width, sizeof *cutting->next);
    if (!cutting->evaluator || region->is_exhausted || !list_gaps(cutting) ||
        tarn_policy_init(&cutting->policy, region, model) != TARN_OK)
        return TARN_SYSTEM;
    tarn_policy_copy(model, &cutting->policy, start);
    for (uint32_t g = 0; g < cutting->gaps_count; g++) find_again(cutting, &cutting->gaps[g]);
    return TARN_OK;
}

static void run(struct cutting *cutting, struct trial *trials, uint64_t floor)
{
    uint64_t asked = cutting->aim, low = asked > floor ? asked : floor;
    run_beam(cutting, trials); /* at the aim, or as low as it comes on the way there */
    for (uint32_t i = 0; i < AIMS && asked < floor && !cutting->ended; i++) {
        uint64_t least = cutting->best.peak;
        if (!cutting->is_any || least <= low) break;
        cutting->aim = low + (least - low) / 2;
        run_beam(cutting, trials);
        if (cutting->best.peak > cutting->aim) low = cutting->aim + 1;
    }
    cutting->aim = asked > cutting->best.peak ? asked : cutting->best.peak;
    if (cutting->is_any) prune(cutting);
}

/* Replaces the policy by the best one found. */
static enum tarn_status take_best(struct cutting *cutting, struct tarn_region *region,
                                  struct tarn_policy *policy)
{
    const struct set *best = &cutting->best;
    struct tarn_cut *cuts = tarn_region_take(region, 2 * (size_t)best->count + 1, sizeof *cuts);
    if (!cuts) return TARN_SYSTEM;
    policy->cuts_count = write_cuts(cutting, best, cuts);
    policy->cuts = cuts;
    for (uint32_t i = 0; i < best->count; i++)
        if (best->choices[i].each_time)
            policy->retain[cutting->gaps[best->choices[i].gap].version] = false;
    return TARN_OK;
}

enum tarn_status tarn_budget_cut(const struct tarn_recompute_model *model, uint64_t budget,
                                 const struct tarn_budget_limits *limits,
                                 struct tarn_region *region, struct tarn_policy *policy,
                                 struct tarn_budget_outcome *outcome)
{
    struct cutting cutting = {.model = model,
                              .aim = budget,
                              .best.peak = UINT64_MAX,
                              .steps = {limits->control, "budget", 0, limits->deadline_ms}};
    uint64_t floor;
    uint32_t at;
    assert(policy->cuts_count == 0);
    if (model->ops_count == 0) return TARN_OK;
    enum tarn_status status = tarn_recompute_floor(model, TARN_LIST_STAYS_CUT, &floor, &at);
    if (status == TARN_OK) status = init(&cutting, policy, budget < floor ? AIMS + 1 : 2, limits);
    struct trial *trials = tarn_region_take(
        &cutting.region, (size_t)cutting.gaps_count * (AGAIN_MAX + 2) + 1, sizeof *trials);
    if (!trials) status = TARN_SYSTEM;
    if (status == TARN_OK && cutting.gaps_count > 0) run(&cutting, trials, floor);
    if (cutting.no_memory) status = TARN_SYSTEM;
    outcome->evaluations += cutting.evaluations;
    bool fitted = outcome->peak <= budget, fit = cutting.best.peak <= budget;
    bool better = fit != fitted ? fit
                  : fit         ? cutting.best.time_ns < outcome->time_ns
                                : cutting.best.peak < outcome->peak;
    if (status == TARN_OK && cutting.is_any && cutting.best.count > 0 && better) {
        status = take_best(&cutting, region, policy);
        outcome->peak = cutting.best.peak;
        outcome->time_ns = cutting.best.time_ns;
        outcome->fits = fit;
    }
    tarn_region_finish(&cutting.region);
    return status;
}
