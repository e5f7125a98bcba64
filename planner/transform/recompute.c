/* A budget for the arena: what to keep, what to compute again, and by which implementation. The
 * search (budget.h) knows the bytes alive at once when ops run one by one; a plan may need more,
 * for contiguous groups and for streams side by side. So each answer is built and placed without
 * any search, and the search is asked again for as much less as the plan was above the budget, or
 * more where it was below. The fastest graph whose plan fits is the result. Sources: A. Shah et
 * al., "Memory optimization for deep networks" (MONeT); DESIGN section 3. Cost: some searches and
 * quick plans. */
#include "../../streams/graph/error.h"
#include "../../streams/graph/options.h"
#include "../../streams/graph/report.h"
#include "../../streams/graph/size.h"
#include "../place/until.h"
#include "budget.h"
#include "couple_along.h"
#include "recompute_model.h"
#include "tarn/simulate.h"
#include "tarn/transform.h"
#include "transform.h"

#define UNLIMITED (UINT64_MAX / 4) /* a budget that anything keeps to */

enum {
    ATTEMPTS_MAX = 6,
    IMPATIENT_MAX = 3,
    LEAST_ROUNDS = 5,
    HALVINGS = 5,
    QUESTIONS = 8,
    CONFIRM_STEP = 1024,
    NEAR = 100,
    DEFAULT_ALIGNMENT = 512
};

/* A graph that was built and placed. */
struct attempt {
    struct tarn_graph *graph; /* NULL: none */
    uint64_t footprint, time_ns;
    struct tarn_budget_report report;
};

struct budgeting {
    struct tarn_budget_options options;
    const struct tarn_plan_options *planning; /* what will place the result; NULL: defaults */
    struct tarn_graph *graph;
    struct tarn_recompute_model model;
    struct tarn_evaluator *evaluator;
    struct tarn_policy policy;
    uint64_t placed, before_ns; /* of the graph that came in */
    bool patient;    /* a little search for a placement, where that may be all that is missing */
    bool any_budget; /* the budget does not count: the least is looked for */
    uint64_t evaluations;    /* of all searches */
    struct tarn_until until; /* when to end */
    struct tarn_error *error;
};

static bool is_stopped(const struct budgeting *all)
{
    return all->until.stop && atomic_load_explicit(all->until.stop, memory_order_relaxed);
}

/* ---- Looking at a graph ---- */

static enum tarn_status plan_as(const struct budgeting *all, struct tarn_graph *graph,
                                const struct tarn_plan_options *options,
                                struct tarn_plan_summary *made)
{
    struct tarn_plan *plan;
    enum tarn_status status = tarn_plan_create(graph, options, &plan, all->error);
    if (status != TARN_OK) return status;
    tarn_plan_summarize(plan, made);
    tarn_plan_destroy(plan);
    return TARN_OK;
}

/* What will place the result. */
static struct tarn_plan_options final_options(const struct budgeting *all)
{
    struct tarn_plan_options options = {.struct_size = sizeof options,
                                        .alignment = all->options.alignment,
                                        .capacity = all->options.budget,
                                        .effort = TARN_BUDGET_PLACE_STEPS};
    if (!all->planning) return options;
    options.method = all->planning->method;
    options.seed = all->planning->seed;
    options.threads = all->planning->threads;
    if (all->planning->effort > 0) options.effort = all->planning->effort;
    return options;
}

/* The footprint that a plan for the budget will have: the first placement that fits it. Where none
 * does, that of a quick plan. */
static enum tarn_status place(const struct budgeting *all, struct tarn_graph *graph,
                              uint64_t *footprint)
{
    struct tarn_plan_summary made;
    uint64_t budget = all->options.budget;
    const struct tarn_plan_options quick = {.struct_size = sizeof quick,
                                            .alignment = all->options.alignment,
                                            .method = "lowest",
                                            .effort = TARN_NO_EFFORT};
    enum tarn_status status = plan_as(all, graph, &quick, &made);
    if (status != TARN_OK) return status;
    *footprint = made.footprint;
    bool fits = made.footprint <= budget, patient = all->patient;
    bool near = made.footprint - made.footprint / NEAR <= budget && made.bound <= budget;
    if (all->planning && all->planning->effort == TARN_NO_EFFORT) patient = false;
    if (budget == UNLIMITED || (!fits && !(near && patient))) return TARN_OK;
    struct tarn_plan_options final = final_options(all);
    status = plan_as(all, graph, &final, &made);
    if (status == TARN_OK) *footprint = made.footprint;
    if (status != TARN_DOES_NOT_FIT) return status;
    if (fits) *footprint = budget + all->options.alignment; /* not by the method asked for */
    tarn_error_clear(all->error);
    return TARN_OK;
}

/* The footprint that it comes down to, whatever the budget is. */
static enum tarn_status place_least(const struct budgeting *all, struct tarn_graph *graph,
                                    uint64_t *footprint)
{
    struct tarn_plan_options final = final_options(all);
    struct tarn_plan_summary made;
    final.capacity = 0;
    enum tarn_status status = plan_as(all, graph, &final, &made);
    *footprint = made.footprint;
    return status;
}

static enum tarn_status take_time(const struct budgeting *all, const struct tarn_graph *graph,
                                  uint64_t *ns)
{
    struct tarn_simulation *simulation;
    enum tarn_status status =
        tarn_graph_simulate(graph, all->options.alignment, TARN_WAIT_NS, &simulation, all->error);
    if (status != TARN_OK) return status;
    *ns = simulation->makespan_ns;
    tarn_simulation_destroy(simulation);
    return TARN_OK;
}

/* ---- Trying ---- */

static bool changes_nothing(const struct budgeting *all, const struct tarn_schedule *schedule)
{
    if (schedule->count != all->model.ops_count) return false;
    for (uint32_t e = 0; e < schedule->count; e++) {
        const struct tarn_execution *execution = &schedule->executions[e];
        struct tarn_range forms = all->model.op_forms[all->model.order[execution->place]];
        if (execution->form != forms.begin || execution->implementation != TARN_NONE) return false;
    }
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        if (schedule->copies[c].over != TARN_NONE && !tarn_copy_is_over(&all->model, schedule, c))
            return false;
    }
    return true;
}

static void count_executions(const struct tarn_schedule *schedule,
                             struct tarn_budget_report *report)
{
    for (uint32_t e = 0; e < schedule->count; e++) {
        const struct tarn_execution *execution = &schedule->executions[e];
        report->recomputed += execution->recomputed;
        report->implemented += execution->implementation != TARN_NONE;
    }
    report->executions = schedule->count;
    report->peak = schedule->peak;
    report->work_ns = schedule->work_ns;
    report->recomputed_ns = schedule->recomputed_ns;
}

static bool fits(const struct attempt *attempt, uint64_t budget)
{
    return attempt->graph && attempt->footprint <= budget;
}

static bool is_better(const struct attempt *a, const struct attempt *b, uint64_t budget)
{
    if (!b->graph || fits(a, budget) != fits(b, budget)) return !b->graph || fits(a, budget);
    if (!fits(a, budget) && a->footprint != b->footprint) return a->footprint < b->footprint;
    return a->time_ns < b->time_ns;
}

/* Gives up the worse one: what fits comes before what does not, then the faster, or the smaller
 * where none fits. */
static void keep_better(struct attempt *best, struct attempt *other, uint64_t budget)
{
    if (is_better(other, best, budget)) {
        struct attempt swap = *best;
        *best = *other;
        *other = swap;
    }
    tarn_graph_destroy(other->graph);
}

/* Takes over the graph, placed. */
static enum tarn_status look_at(struct budgeting *all, struct tarn_graph *graph,
                                const struct tarn_schedule *schedule, struct attempt *attempt)
{
    *attempt = (struct attempt){.graph = graph};
    count_executions(schedule, &attempt->report);
    enum tarn_status status = all->any_budget ? place_least(all, graph, &attempt->footprint)
                                              : place(all, graph, &attempt->footprint);
    if (status == TARN_OK) status = take_time(all, graph, &attempt->time_ns);
    if (status != TARN_OK) tarn_graph_destroy(graph);
    return status;
}

/* ---- Making what the policy at hand comes to ---- */

/* What is made of one policy. */
struct making {
    const struct tarn_schedule *schedule;
    struct attempt *best; /* over all policies */
    struct attempt front; /* the fastest of this one, without its graph */
    bool is_first;
};

/* Takes over the graph. fitted: it keeps to the budget. */
static enum tarn_status offer(struct budgeting *all, struct making *making,
                              struct tarn_graph *graph, bool *fitted)
{
    struct attempt attempt;
    enum tarn_status status = look_at(all, graph, making->schedule, &attempt);
    if (status != TARN_OK) return status;
    struct attempt *front = &making->front;
    if (making->is_first || attempt.time_ns < front->time_ns ||
        (attempt.time_ns == front->time_ns && attempt.footprint < front->footprint))
        *front = attempt;
    making->is_first = false;
    *fitted = !all->any_budget && fits(&attempt, all->options.budget);
    keep_better(making->best, &attempt, all->any_budget ? 0 : all->options.budget);
    return TARN_OK;
}

static enum tarn_status offer_coupled(struct budgeting *all, struct making *making,
                                      struct tarn_graph *graph, struct tarn_leeway leeway,
                                      bool *fitted)
{
    struct tarn_graph *coupled;
    if (leeway.ahead == 0) leeway.ahead = 1;
    enum tarn_status status = tarn_couple_along(graph, &leeway, &coupled, all->error);
    if (status != TARN_OK) return status;
    if (coupled != graph && graph != all->graph) tarn_transform_compose(graph, coupled);
    return offer(all, making, coupled, fitted);
}

/* Waits between streams where without them it does not fit: first those that cost no time, and no
 * more of them than it takes; then, where all else has been tried, those that take streams from
 * running side by side. */
static enum tarn_status couple(struct budgeting *all, struct making *making,
                               struct tarn_graph *graph)
{
    bool fitted, slowly = all->any_budget || all->patient;
    uint64_t ns = making->front.time_ns;
    enum tarn_status status =
        offer_coupled(all, making, graph, (struct tarn_leeway){true, 1}, &fitted);
    for (uint64_t part = 64; part > 1 && fitted && status == TARN_OK; part /= 8)
        status = offer_coupled(all, making, graph, (struct tarn_leeway){true, ns / part}, &fitted);
    if (fitted || status != TARN_OK || !slowly) return status;
    for (uint64_t places = graph->ops_count / 64; !fitted && status == TARN_OK; places /= 8) {
        if (all->any_budget) places = 0; /* the least */
        status = offer_coupled(all, making, graph, (struct tarn_leeway){false, places}, &fitted);
        if (places == 0) break;
    }
    return status;
}

static enum tarn_status make_by(struct budgeting *all, uint64_t target,
                                enum tarn_recompute_streams rule, struct making *making)
{
    struct tarn_graph *graph = NULL;
    bool fitted;
    making->schedule = tarn_evaluate_whole(all->evaluator, &all->policy, target, rule);
    if (!making->schedule) return tarn_error_no_memory(all->error);
    enum tarn_status status = TARN_OK;
    if (changes_nothing(all, making->schedule))
        graph = tarn_graph_retain(all->graph);
    else
        status = tarn_recompute_build(&all->model, making->schedule, &graph, all->error);
    if (status == TARN_OK) status = offer(all, making, tarn_graph_retain(graph), &fitted);
    if (status == TARN_OK && graph->streams_count > 1 && !fitted)
        status = couple(all, making, graph);
    tarn_graph_destroy(graph);
    return status;
}

/* Keeps the best, with recomputations on the streams of each rule. front: the fastest, even if it
 * does not fit; without its graph. */
static enum tarn_status make(struct budgeting *all, uint64_t target, struct attempt *best,
                             struct attempt *front)
{
    struct making making = {.best = best, .is_first = true};
    int rules = all->graph->streams_count > 1 ? TARN_RECOMPUTE_RULES : 1;
    enum tarn_status status = TARN_OK;
    for (int rule = 0; rule < rules && status == TARN_OK; rule++) {
        status = make_by(all, target, (enum tarn_recompute_streams)rule, &making);
        if (status == TARN_OK && making.front.report.recomputed == 0) break; /* all the same */
    }
    *front = making.front;
    front->graph = NULL;
    return status;
}

/* ---- Searching ---- */

static enum tarn_status search(struct budgeting *all, uint64_t target, bool refine)
{
    const struct tarn_budget_limits limits = {.classes = all->options.classes,
                                              .steps = all->options.effort,
                                              .refine = refine,
                                              .control = all->options.control,
                                              .deadline_ms = all->until.deadline_ms};
    struct tarn_budget_outcome outcome = {0};
    enum tarn_status status = TARN_OK;
    if (all->options.method == TARN_BUDGET_CHEN)
        status = tarn_policy_chen(&all->model, &all->policy);
    else if (all->options.method == TARN_BUDGET_SEARCH)
        status = tarn_budget_search(&all->model, target, &limits, &all->policy, &outcome);
    all->evaluations += outcome.evaluations;
    return status ? tarn_error_no_memory(all->error) : TARN_OK;
}

/* The next target for the search, or the same when there is no use in another one. */
static uint64_t next_target(const struct budgeting *all, const struct attempt *attempt,
                            uint64_t target)
{
    uint64_t budget = all->options.budget, above = attempt->footprint;
    if (attempt->report.peak > target) return target; /* as low as it comes */
    uint64_t reached = attempt->report.peak;
    if (above > budget) return reached > above - budget ? reached - (above - budget) : target;
    uint64_t slack = budget - above;
    bool equal = attempt->footprint == attempt->report.peak || slack < budget / NEAR;
    bool limits = attempt->report.peak >= target - target / NEAR;
    return equal || !limits ? target : target + slack;
}

/* Searches, and keeps what it comes to if that is better. next: as next_target has it. */
static enum tarn_status try_target(struct budgeting *all, uint64_t target, bool refine,
                                   struct attempt *best, uint64_t *next)
{
    struct attempt front;
    enum tarn_status status = search(all, target, refine);
    if (status == TARN_OK) status = make(all, target, best, &front);
    if (status == TARN_OK) *next = next_target(all, &front, target);
    return status;
}

/* refine: the policy at hand is nearly right for the budget. */
static enum tarn_status try_targets(struct budgeting *all, bool refine, struct attempt *best)
{
    uint64_t target = all->options.budget, next;
    all->patient = all->options.method != TARN_BUDGET_SEARCH;
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        all->patient = all->patient || i >= IMPATIENT_MAX;
        enum tarn_status status = try_target(all, target, refine || i > 0, best, &next);
        if (status != TARN_OK) return status;
        if (tarn_until_is_over(&all->until)) break;
        if (next == target && (all->patient || fits(best, all->options.budget))) break;
        if (next == target) all->patient = true;
        target = next;
    }
    return TARN_OK;
}

/* ---- The least ---- */

/* The final planning finds the footprint again when that is its capacity. */
static enum tarn_status confirm(const struct budgeting *all, struct attempt *least)
{
    struct tarn_plan_options final = final_options(all);
    struct tarn_plan_summary made;
    uint64_t step = least->footprint / CONFIRM_STEP + all->options.alignment;
    for (;; least->footprint += step - step % all->options.alignment) {
        final.capacity = least->footprint;
        enum tarn_status status = plan_as(all, least->graph, &final, &made);
        if (status != TARN_DOES_NOT_FIT) return status;
        tarn_error_clear(all->error);
    }
}

/* Where a search for the least starts: from keeping everything, then, where that is allowed, from
 * segments, then from what it has come to. */
static enum tarn_status start_for_least(struct budgeting *all, int round)
{
    bool segments = all->options.classes & TARN_BUDGET_RECOMPUTE;
    if (round == 0) tarn_policy_reset(&all->policy, &all->model);
    if (round == 1 && segments && tarn_policy_chen(&all->model, &all->policy) != TARN_OK)
        return tarn_error_no_memory(all->error);
    return TARN_OK;
}

/* By all means together. */
static enum tarn_status search_for_least(struct budgeting *all, struct attempt *least)
{
    bool searches = all->options.method == TARN_BUDGET_SEARCH;
    enum tarn_status status = TARN_OK;
    uint64_t next, before = UINT64_MAX;
    all->any_budget = true;
    for (int round = 0; round < (searches ? LEAST_ROUNDS : 1) && status == TARN_OK; round++) {
        if (searches) status = start_for_least(all, round);
        if (status == TARN_OK) status = try_target(all, 1, round > 1, least, &next);
        if (status != TARN_OK || tarn_until_is_over(&all->until)) break;
        if (round > 1 && least->footprint >= before) break;
        before = least->footprint;
    }
    if (status == TARN_OK) status = confirm(all, least);
    all->any_budget = false;
    return status;
}

/* Asks for less, as a caller would; gives it up where that is not kept to. */
static enum tarn_status ask_for_less(struct budgeting *all, struct attempt *least, bool *found)
{
    struct attempt below = {0};
    tarn_policy_reset(&all->policy, &all->model);
    all->options.budget = least->footprint - all->options.alignment;
    enum tarn_status status = try_targets(all, false, &below);
    *found = status == TARN_OK && fits(&below, all->options.budget);
    if (*found) status = confirm(all, &below);
    *found = *found && below.footprint < least->footprint;
    if (*found) {
        struct attempt swap = *least;
        *least = below;
        below = swap;
    }
    tarn_graph_destroy(below.graph);
    return status;
}

/* The least footprint that is found: one number, whatever the budget is, and nothing just below it
 * can be had by asking for it. */
static enum tarn_status find_least(struct budgeting *all, struct attempt *least)
{
    uint64_t budget = all->options.budget;
    bool found = all->options.method == TARN_BUDGET_SEARCH;
    enum tarn_status status = search_for_least(all, least);
    for (int i = 0; i < QUESTIONS && found && status == TARN_OK; i++) {
        bool over = tarn_until_is_over(&all->until);
        if (over || least->footprint <= all->options.alignment) break;
        status = ask_for_less(all, least, &found);
    }
    all->options.budget = budget;
    return status;
}

/* Between the least, which fits, and the budget, which does not: the searches so far have come out
 * above the budget, or with a footprint above their peak. */
static enum tarn_status halve(struct budgeting *all, struct attempt *best)
{
    uint64_t low = best->report.peak, high = all->options.budget, next;
    for (int i = 0; i < HALVINGS && low < high; i++) {
        uint64_t target = low + (high - low) / 2;
        struct attempt attempt = {0};
        if (tarn_until_is_over(&all->until)) break;
        enum tarn_status status = try_target(all, target, false, &attempt, &next);
        if (status != TARN_OK) return status;
        bool fitted = fits(&attempt, all->options.budget);
        keep_better(best, &attempt, all->options.budget);
        if (fitted)
            low = target;
        else
            high = target;
    }
    return TARN_OK;
}

/* The least has its footprint when that is the capacity; with more room it may take more. */
static enum tarn_status place_finally(const struct budgeting *all, struct attempt *least)
{
    const struct tarn_plan_options final = final_options(all);
    struct tarn_plan_summary made;
    enum tarn_status status = plan_as(all, least->graph, &final, &made);
    if (status == TARN_OK) least->footprint = made.footprint;
    return status;
}

/* What fits in the end, or the least. */
static enum tarn_status fall_back(struct budgeting *all, struct attempt *best)
{
    struct attempt least = {0};
    enum tarn_status status = find_least(all, &least);
    if (status != TARN_OK) {
        tarn_graph_destroy(least.graph);
        return status;
    }
    tarn_graph_destroy(best->graph);
    *best = least;
    if (!fits(best, all->options.budget)) return TARN_OK;
    status = place_finally(all, best);
    bool searches = all->options.method == TARN_BUDGET_SEARCH;
    return status == TARN_OK && searches ? halve(all, best) : status;
}

/* ---- Saying that it is impossible ---- */

/* Somebody, or the time, has ended it before anything fitted. */
static enum tarn_status give_up(const struct budgeting *all, const struct attempt *best)
{
    bool late = !is_stopped(all);
    return tarn_error_set(all->error, late ? TARN_DEADLINE : TARN_INTERRUPTED,
                          "%s before a way to keep to the budget of %llu bytes was found; the "
                          "least footprint so far is %llu bytes",
                          late ? "the time was over" : "interrupted",
                          (unsigned long long)all->options.budget,
                          (unsigned long long)best->footprint);
}

static enum tarn_status refuse(struct budgeting *all, const struct attempt *best)
{
    uint64_t floor;
    uint32_t at;
    if (tarn_recompute_floor(&all->model, &floor, &at) != TARN_OK) {
        tarn_error_no_memory(all->error);
        return TARN_SYSTEM;
    }
    uint32_t v = all->model.order[at];
    tarn_error_set(
        all->error, TARN_DOES_NOT_FIT,
        "the budget of %llu bytes cannot be met: the least footprint found is %llu bytes; "
        "no choice can come below %llu bytes, which %s needs at once, with what must be "
        "kept beside it",
        (unsigned long long)all->options.budget, (unsigned long long)best->footprint,
        (unsigned long long)floor, tarn_op_label(all->graph, v).text);
    if (all->error) all->error->op = v;
    return TARN_DOES_NOT_FIT;
}

/* ---- The transform ---- */

static enum tarn_status take_options(struct budgeting *all,
                                     const struct tarn_budget_options *options)
{
    enum tarn_status status = tarn_options_take(&all->options, sizeof all->options, options,
                                                "budget options", all->error);
    if (status != TARN_OK) return status;
    if (all->options.alignment == 0) all->options.alignment = DEFAULT_ALIGNMENT;
    if (all->options.classes == 0) all->options.classes = TARN_BUDGET_ALL;
    if (all->options.budget == 0) all->options.budget = UNLIMITED;
    if (tarn_is_power_of_two(all->options.alignment)) return TARN_OK;
    tarn_error_set(all->error, TARN_USAGE, "budget options: alignment %llu is no power of two",
                   (unsigned long long)all->options.alignment);
    return TARN_USAGE;
}

static enum tarn_status init(struct budgeting *all)
{
    if (tarn_recompute_model_init(&all->model, all->graph, all->options.alignment) != TARN_OK)
        return TARN_SYSTEM;
    tarn_recompute_model_restrict(&all->model, all->options.classes);
    all->evaluator = tarn_evaluator_create(&all->model);
    if (!all->evaluator || tarn_policy_init(&all->policy, &all->model) != TARN_OK)
        return TARN_SYSTEM;
    return TARN_OK;
}

static void finish(struct budgeting *all)
{
    tarn_evaluator_destroy(all->evaluator);
    tarn_policy_finish(&all->policy);
    tarn_recompute_model_finish(&all->model);
}

static enum tarn_status begin(struct budgeting *all, struct tarn_graph *graph,
                              const struct tarn_budget_options *options, struct tarn_error *error)
{
    *all = (struct budgeting){.graph = graph, .error = error};
    tarn_error_clear(error);
    enum tarn_status status = take_options(all, options);
    if (status != TARN_OK) return status;
    if (init(all) != TARN_OK) {
        tarn_error_no_memory(error);
        return TARN_SYSTEM;
    }
    const struct tarn_transform_control *control = all->options.control;
    if (control) all->until = tarn_until_in((const atomic_bool *)control->stop, control->seconds);
    uint64_t budget = all->options.budget;
    all->options.budget = UNLIMITED;
    status = place(all, graph, &all->placed);
    all->options.budget = budget;
    if (status == TARN_OK) status = take_time(all, graph, &all->before_ns);
    return status;
}

static void fill_report(const struct budgeting *all, const struct attempt *attempt,
                        struct tarn_budget_report *report)
{
    *report = attempt->report;
    report->evaluations = all->evaluations;
    report->budget = all->options.budget;
    report->footprint_before = all->placed;
    report->footprint = attempt->footprint;
    report->time_before_ns = all->before_ns;
    report->time_ns = attempt->time_ns;
}

enum tarn_status tarn_graph_budget(struct tarn_graph *graph,
                                   const struct tarn_budget_options *options,
                                   struct tarn_graph **result, struct tarn_error *error)
{
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    return tarn_recompute_within(graph, options, NULL, result, error);
}

enum tarn_status tarn_recompute_within(struct tarn_graph *graph,
                                       const struct tarn_budget_options *options,
                                       const struct tarn_plan_options *planning,
                                       struct tarn_graph **result, struct tarn_error *error)
{
    struct budgeting all;
    struct attempt best = {0};
    *result = NULL;
    enum tarn_status status = begin(&all, graph, options, error);
    all.planning = planning;
    if (status == TARN_OK) status = try_targets(&all, false, &best);
    bool missing = status == TARN_OK && !fits(&best, all.options.budget);
    if (missing && !tarn_until_is_over(&all.until)) status = fall_back(&all, &best);
    if (status == TARN_OK && all.options.report) fill_report(&all, &best, all.options.report);
    if (status == TARN_OK && !fits(&best, all.options.budget))
        status = tarn_until_is_over(&all.until) ? give_up(&all, &best) : refuse(&all, &best);
    if (status == TARN_OK)
        *result = best.graph;
    else
        tarn_graph_destroy(best.graph);
    finish(&all);
    return status;
}

/* ---- The curve ---- */

static enum tarn_status give_up_curve(const struct budgeting *all)
{
    bool late = !is_stopped(all);
    return tarn_error_set(all->error, late ? TARN_DEADLINE : TARN_INTERRUPTED,
                          "%s: not all budgets were looked at",
                          late ? "the time was over" : "interrupted");
}

/* The point for one budget; the policy that was found is where the next search starts. */
static enum tarn_status find_point(struct budgeting *all, uint64_t budget, struct attempt *best,
                                   struct tarn_budget_report *row)
{
    all->options.budget = budget;
    enum tarn_status status = try_targets(all, true, best);
    if (status == TARN_OK) fill_report(all, best, row);
    return status;
}

static enum tarn_status find_points(struct budgeting *all, struct attempt *best,
                                    struct tarn_budget_report *rows, size_t count)
{
    enum tarn_status status = find_least(all, best);
    if (status != TARN_OK || count == 0) return status;
    uint64_t least = best->footprint, span = all->placed > least ? all->placed - least : 0;
    all->options.budget = least;
    fill_report(all, best, &rows[count - 1]);
    for (size_t i = count - 1; i-- > 0 && status == TARN_OK;) {
        double share = (double)i / (double)(count - 1);
        if (tarn_until_is_over(&all->until)) return give_up_curve(all);
        status = find_point(all, all->placed - (uint64_t)((double)span * share), best, &rows[i]);
    }
    return status;
}

/* From the least upwards: what fits a budget also fits a larger one, so no point is slower than the
 * one below it. */
enum tarn_status tarn_graph_budget_curve(struct tarn_graph *graph,
                                         const struct tarn_budget_options *options,
                                         struct tarn_budget_report *rows, size_t count,
                                         struct tarn_error *error)
{
    if (!graph || (!rows && count > 0)) return tarn_error_null(error, __func__);
    struct budgeting all;
    struct attempt best = {0};
    for (size_t i = 0; i < count; i++) rows[i] = (struct tarn_budget_report){0};
    enum tarn_status status = begin(&all, graph, options, error);
    if (status == TARN_OK) status = find_points(&all, &best, rows, count);
    tarn_graph_destroy(best.graph);
    finish(&all);
    return status;
}
