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
#include "budget.h"
#include "recompute_model.h"
#include "tarn/simulate.h"
#include "tarn/transform.h"

#define UNLIMITED (UINT64_MAX / 4) /* a budget that anything keeps to */

enum { ATTEMPTS_MAX = 6, IMPATIENT_MAX = 3, NEAR = 100, DEFAULT_ALIGNMENT = 512 };

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
    bool patient; /* a little search for a placement, where that may be all that is missing */
    struct tarn_error *error;
};

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
    report->work_ns = schedule->time_ns;
    report->recomputed_ns = schedule->recomputed_ns;
}

/* Gives up the worse one: what fits comes before what does not, then the faster, then the smaller.
 */
static void keep_better(struct attempt *best, struct attempt *other, uint64_t budget)
{
    bool fits = other->footprint <= budget, fitted = best->graph && best->footprint <= budget;
    bool better = !best->graph || fits > fitted;
    if (!better && fits == fitted) {
        better = fits ? other->time_ns < best->time_ns : other->footprint < best->footprint;
    }
    if (better) {
        struct attempt swap = *best;
        *best = *other;
        *other = swap;
    }
    tarn_graph_destroy(other->graph);
}

/* Takes over the graph, placed. */
static enum tarn_status look_at(struct budgeting *all, struct tarn_graph *graph,
                                const struct tarn_schedule *schedule, struct attempt *best)
{
    struct attempt attempt = {.graph = graph};
    count_executions(schedule, &attempt.report);
    enum tarn_status status = place(all, graph, &attempt.footprint);
    if (status == TARN_OK) status = take_time(all, graph, &attempt.time_ns);
    if (status == TARN_OK)
        keep_better(best, &attempt, all->options.budget);
    else
        tarn_graph_destroy(graph);
    return status;
}

/* What the policy at hand comes to, with recomputations on the stream that is better for it. */
static enum tarn_status make(struct budgeting *all, uint64_t target, struct attempt *attempt)
{
    const struct tarn_schedule *schedule =
        tarn_evaluate_whole(all->evaluator, &all->policy, target);
    bool choice = all->graph->streams_count > 1;
    *attempt = (struct attempt){0};
    if (!schedule) {
        tarn_error_no_memory(all->error);
        return TARN_SYSTEM;
    }
    if (changes_nothing(all, schedule))
        return look_at(all, tarn_graph_retain(all->graph), schedule, attempt);
    enum tarn_status status = TARN_OK;
    for (int at_home = 0; at_home <= choice && status == TARN_OK; at_home++) {
        struct tarn_graph *graph;
        status = tarn_recompute_build(&all->model, schedule, at_home, &graph, all->error);
        if (status == TARN_OK) status = look_at(all, graph, schedule, attempt);
    }
    return status;
}

static enum tarn_status search(struct budgeting *all, uint64_t target, bool refine,
                               uint64_t *evaluations)
{
    const struct tarn_budget_limits limits = {.classes = all->options.classes,
                                              .steps = all->options.effort,
                                              .refine = refine,
                                              .control = all->options.control};
    struct tarn_budget_outcome outcome = {0};
    enum tarn_status status = TARN_OK;
    if (all->options.method == TARN_BUDGET_CHEN)
        status = tarn_policy_chen(&all->model, &all->policy);
    else if (all->options.method == TARN_BUDGET_SEARCH)
        status = tarn_budget_search(&all->model, target, &limits, &all->policy, &outcome);
    *evaluations += outcome.evaluations;
    return status ? tarn_error_no_memory(all->error) : TARN_OK;
}

/* The next target for the search, or the same when there is no use in another one. */
static uint64_t next_target(const struct budgeting *all, const struct attempt *attempt,
                            uint64_t target)
{
    uint64_t budget = all->options.budget, above = attempt->footprint;
    if (attempt->report.peak > target) return target; /* as low as it comes */
    if (above > budget) return target > above - budget ? target - (above - budget) : target;
    uint64_t slack = budget - above;
    bool equal = attempt->footprint == attempt->report.peak || slack < budget / 100;
    return equal ? target : target + slack;
}

/* refine: the policy at hand is nearly right for the budget. */
static enum tarn_status try_targets(struct budgeting *all, bool refine, struct attempt *best)
{
    uint64_t target = all->options.budget, evaluations = 0;
    all->patient = all->options.method != TARN_BUDGET_SEARCH;
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        struct attempt attempt = {0};
        all->patient = all->patient || i >= IMPATIENT_MAX;
        enum tarn_status status = search(all, target, refine || i > 0, &evaluations);
        if (status == TARN_OK) status = make(all, target, &attempt);
        if (status != TARN_OK) {
            tarn_graph_destroy(attempt.graph);
            return status;
        }
        uint64_t next = next_target(all, &attempt, target);
        keep_better(best, &attempt, all->options.budget);
        if (next == target && (all->patient || best->footprint <= all->options.budget)) break;
        if (next == target) all->patient = true;
        target = next;
    }
    best->report.evaluations = evaluations;
    return TARN_OK;
}

/* ---- Saying that it is impossible ---- */

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
    if (status == TARN_OK && all.options.report) fill_report(&all, &best, all.options.report);
    if (status == TARN_OK && best.footprint > all.options.budget) status = refuse(&all, &best);
    if (status == TARN_OK)
        *result = best.graph;
    else
        tarn_graph_destroy(best.graph);
    finish(&all);
    return status;
}

/* ---- The curve ---- */

/* The point for one budget; the policy that was found is where the next search starts. */
static enum tarn_status find_point(struct budgeting *all, uint64_t budget, bool refine,
                                   struct tarn_budget_report *row)
{
    struct attempt best = {0};
    all->options.budget = budget;
    enum tarn_status status = try_targets(all, refine, &best);
    if (status == TARN_OK) fill_report(all, &best, row);
    tarn_graph_destroy(best.graph);
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
    struct tarn_budget_report least = {0};
    enum tarn_status status = begin(&all, graph, options, error);
    if (status == TARN_OK) status = find_point(&all, 1, false, &least);
    uint64_t span = all.placed > least.footprint ? all.placed - least.footprint : 0;
    least.budget = least.footprint;
    if (status == TARN_OK && count > 0) rows[count - 1] = least;
    for (size_t i = count; i-- > 1 && status == TARN_OK;) {
        double share = (double)(i - 1) / (double)(count - 1);
        status =
            find_point(&all, all.placed - (uint64_t)((double)span * share), true, &rows[i - 1]);
    }
    finish(&all);
    return status;
}
