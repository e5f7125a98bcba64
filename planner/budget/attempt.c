/* Attempts at a budget: graphs made of a policy, placed and simulated.
 *
 * The schedule of a policy becomes a graph, one for each rule about where ops run again if there
 * are several streams, and, if that does not fit, the same with waits between the streams. The best
 * is kept: a graph that fits comes before one that does not, then the faster one.
 *
 * If the smallest footprint is looked for, the graphs of a policy are first placed without any
 * search and compared. Those that may be smaller than the smallest so far are placed as the caller
 * will place them, the one with the lowest bound first. Of graphs with equal bounds and equal quick
 * footprints only the fastest is placed: if each op waits for those before it in the list, the
 * rules differ in time alone.
 *
 * An attempt may be put in another order of ops with less alive. The new order is taken only if it
 * needs fewer bytes and no more time.
 *
 * Cost: for each graph a quick plan, a simulation, and, if the quick plan is near the budget, a
 * plan as the caller will make it. */
#include "attempt.h"

#include <assert.h>
#include <string.h>

#include "planner/transform/couple/couple.h"
#include "planner/transform/recipe.h"
#include "planner/transform/reorder/reorder.h"
#include "streams/base/error.h"
#include "streams/order/peak.h"
#include "streams/order/reserved.h"
#include "streams/order/simulator.h"

/* Storages for which a search for a placement takes hardly longer than none. */
enum { SMALL = 128 };

/* Steps of choosing arcs, for all graphs of a call: that many ops are looked at, divided by those
 * of the graph, and no graph has more than its share of what is left. The slowdown that arcs may
 * bring is no limit. */
enum { ARCS_WORK = 1 << 14, ARCS_SHARE = 4, SLOWDOWN_MAX = 1000 };

/* Streams are kept to one part in CLOSER of the list, then to one in CLOSER of that, and so on; and
 * close where more than some parts in FULL_PARTS of the budget are alive. */
enum { CLOSER = 8, FULL_PARTS = 8 };

/* ---- Bytes and time of a graph ---- */

/* Steps of search for a placement within the budget, unless the caller says how many. */
enum { PLACE_STEPS = 40 };

struct tarn_plan_options tarn_budgeting_quick(const struct tarn_plan_options *planning,
                                              uint64_t alignment)
{
    return (struct tarn_plan_options){.struct_size = sizeof(struct tarn_plan_options),
                                      .alignment = alignment,
                                      .method = "lowest",
                                      .threads = planning ? planning->threads : 0,
                                      .effort = TARN_NO_EFFORT};
}

enum tarn_status tarn_budgeting_plan_quickly(const struct tarn_budgeting *budgeting,
                                             struct tarn_graph *graph, struct tarn_plan **plan)
{
    const struct tarn_plan_options quick =
        tarn_budgeting_quick(budgeting->planning, budgeting->options.alignment);
    return tarn_plan_make(graph, &quick, TARN_ALL_UNLIMITED, plan, budgeting->error);
}

uint64_t tarn_budgeting_room(const struct tarn_plan *plan, uint64_t leaving)
{
    uint64_t capacity = plan->spaces ? plan->graph->spaces[0].capacity : 0;
    if (capacity == 0) return UINT64_MAX;
    uint64_t persistent = plan->spaces[0].persistent;
    persistent = persistent > leaving ? persistent - leaving : 0;
    return capacity > persistent ? capacity - persistent : 1;
}

struct tarn_plan_options tarn_budgeting_placing(const struct tarn_plan_options *planning,
                                                uint64_t alignment, uint64_t capacity,
                                                uint64_t steps,
                                                const struct tarn_deadline *deadline)
{
    struct tarn_plan_options options = {.struct_size = sizeof options,
                                        .alignment = alignment,
                                        .capacity = capacity,
                                        .effort = steps,
                                        .seconds = tarn_deadline_left(deadline)};
    if (planning) {
        options.method = planning->method;
        options.node_limit = planning->node_limit;
        options.seed = planning->seed;
        options.threads = planning->threads;
        if (planning->effort > 0) options.effort = planning->effort;
    }
    return options;
}

enum tarn_status tarn_budgeting_plan(const struct tarn_budgeting *budgeting,
                                     struct tarn_graph *graph, uint64_t capacity,
                                     struct tarn_plan **plan)
{
    bool ignores_capacity = budgeting->ignores_capacity || budgeting->aim != TARN_AIM_BUDGET;
    const struct tarn_plan_options options =
        tarn_budgeting_placing(budgeting->planning, budgeting->options.alignment, capacity,
                               budgeting->is_thorough ? 0 : PLACE_STEPS, &budgeting->deadline);
    return tarn_plan_make(graph, &options, ignores_capacity, plan, budgeting->error);
}

enum tarn_status tarn_budgeting_time(const struct tarn_budgeting *budgeting,
                                     const struct tarn_graph *graph, uint64_t *ns)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_timeline timeline;
    enum tarn_status status = tarn_timeline_of(&timeline, &region, graph, TARN_WAIT_NS);
    *ns = status == TARN_OK ? timeline.makespan_ns : 0;
    tarn_region_finish(&region);
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(budgeting->error);
}

bool tarn_budgeting_is_no_choice(const struct tarn_graph *given, const struct tarn_graph *graph,
                                 enum tarn_status status, struct tarn_error *error)
{
    if (status != TARN_BAD_INPUT || graph == given) return false;
    tarn_error_clear(error);
    return true;
}

static bool is_no_choice(const struct tarn_budgeting *budgeting, const struct tarn_graph *graph,
                         enum tarn_status status)
{
    return tarn_budgeting_is_no_choice(budgeting->graph, graph, status, budgeting->error);
}

bool tarn_attempt_fits(const struct tarn_attempt *attempt, uint64_t budget)
{
    return attempt->made.graph && attempt->footprint <= budget;
}

static bool is_attempt_better(const struct tarn_attempt *a, const struct tarn_attempt *b,
                              uint64_t budget)
{
    if (!b->made.graph || tarn_attempt_fits(a, budget) != tarn_attempt_fits(b, budget))
        return !b->made.graph || tarn_attempt_fits(a, budget);
    if (!tarn_attempt_fits(a, budget) && a->footprint != b->footprint)
        return a->footprint < b->footprint;
    return a->time_ns < b->time_ns;
}

void tarn_attempt_keep_better(struct tarn_attempt *best, struct tarn_attempt *other,
                              uint64_t budget)
{
    if (is_attempt_better(other, best, budget)) {
        struct tarn_attempt swap = *best;
        *best = *other;
        *other = swap;
    }
    tarn_planned_finish(&other->made);
}

/* ---- Within the budget ---- */

/* Is a quick plan near enough to the budget for a search to be worth its time? */
static bool may_fit(const struct tarn_budgeting *budgeting, const struct tarn_plan *quick)
{
    uint64_t budget = budgeting->options.budget, footprint = tarn_plan_footprint(quick);
    bool small = quick->graph->planned_count <= SMALL;
    bool near = footprint - footprint / TARN_BUDGET_NEAR <= budget || small;
    bool searches = !budgeting->planning || budgeting->planning->effort != TARN_NO_EFFORT;
    bool is_worth = budgeting->is_thorough || (near && (budgeting->patient || small));
    return is_worth && quick->claim.bound <= budget && searches;
}

/* The plan for the budget, which is no larger than a quick one, unless the caller's method finds
 * none so small; or, where none fits, the footprint of a quick one. */
static enum tarn_status place_within(const struct tarn_budgeting *budgeting,
                                     struct tarn_attempt *attempt)
{
    struct tarn_plan *quick;
    uint64_t budget = budgeting->options.budget;
    enum tarn_status status = tarn_budgeting_plan_quickly(budgeting, attempt->made.graph, &quick);
    if (status != TARN_OK) return status;
    attempt->footprint = tarn_plan_footprint(quick);
    bool fits = tarn_plan_footprint(quick) <= budget, worth = fits || may_fit(budgeting, quick);
    assert(quick->claim.bound <= tarn_plan_footprint(quick));
    tarn_plan_destroy(quick);
    if (budget == TARN_BUDGET_UNLIMITED || !worth) return TARN_OK;
    uint64_t aim = fits ? attempt->footprint : budget;
    status = tarn_budgeting_plan(budgeting, attempt->made.graph, aim, &attempt->made.plan);
    if (status == TARN_DOES_NOT_FIT && aim < budget) {
        tarn_error_clear(budgeting->error);
        status = tarn_budgeting_plan(budgeting, attempt->made.graph, budget, &attempt->made.plan);
    }
    if (status == TARN_OK) attempt->footprint = tarn_plan_footprint(attempt->made.plan);
    if (status != TARN_DOES_NOT_FIT) return status;
    if (fits) /* but not by the method asked for */
        attempt->footprint = budget + budgeting->options.alignment;
    tarn_error_clear(budgeting->error);
    return TARN_OK;
}

/* ---- Trying ---- */

static bool changes_nothing(const struct tarn_budgeting *budgeting,
                            const struct tarn_schedule *schedule)
{
    if (schedule->count != budgeting->model.ops_count) return false;
    for (uint32_t e = 0; e < schedule->count; e++) {
        const struct tarn_execution *execution = &schedule->executions[e];
        struct tarn_range forms =
            budgeting->model.op_forms[budgeting->model.order[execution->place]];
        if (execution->form != forms.begin || execution->implementation != TARN_NONE) return false;
    }
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        if (schedule->copies[c].over != TARN_NONE &&
            !tarn_copy_is_over(&budgeting->model, schedule, c))
            return false;
    }
    return true;
}

static void count_executions(const struct tarn_schedule *schedule,
                             struct tarn_budget_report *report)
{
    report->recomputed = report->implemented = 0;
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

/* Takes over the graph, and places it, if the aim is not the list. An attempt without a graph: it
 * is no choice. */
static enum tarn_status look_at(struct tarn_budgeting *budgeting, struct tarn_graph *graph,
                                const struct tarn_schedule *schedule, struct tarn_attempt *attempt)
{
    *attempt = (struct tarn_attempt){.made.graph = graph};
    count_executions(schedule, &attempt->report);
    enum tarn_status status = tarn_budgeting_time(budgeting, graph, &attempt->time_ns);
    if (budgeting->aim == TARN_AIM_LIST)
        attempt->footprint = schedule->peak;
    else if (status == TARN_OK)
        status = place_within(budgeting, attempt);
    if (attempt->footprint < budgeting->smallest) /* by luck: see tarn_budgeting_search */
        attempt->footprint = budgeting->options.budget + budgeting->options.alignment;
    if (status != TARN_OK) tarn_planned_finish(&attempt->made);
    return is_no_choice(budgeting, graph, status) ? TARN_OK : status;
}

/* ---- The smallest footprint of one policy ---- */

enum { LEAST_GRAPHS = 2 * TARN_RECOMPUTE_RULES };

/* A graph, by its quick plan. */
struct least_graph {
    struct tarn_attempt attempt;
    struct tarn_plan *quick;
};

/* All zero: none. */
struct least {
    struct least_graph graphs[LEAST_GRAPHS]; /* the lowest bound first */
    uint32_t count;
};

static uint64_t bound_of(const struct least_graph *graph) { return graph->quick->claim.bound; }

static uint64_t quick_of(const struct least_graph *graph)
{
    return tarn_plan_footprint(graph->quick);
}

static bool is_same(const struct least_graph *a, const struct least_graph *b)
{
    return bound_of(a) == bound_of(b) && quick_of(a) == quick_of(b);
}

static bool comes_before(const struct least_graph *a, const struct least_graph *b)
{
    if (bound_of(a) != bound_of(b)) return bound_of(a) < bound_of(b);
    if (quick_of(a) != quick_of(b)) return quick_of(a) < quick_of(b);
    return a->attempt.time_ns < b->attempt.time_ns;
}

/* Takes over the graph. */
static enum tarn_status least_add(struct tarn_budgeting *budgeting, struct least *least,
                                  struct tarn_graph *graph, const struct tarn_budget_report *report)
{
    struct least_graph added = {.attempt = {.made.graph = graph, .report = *report}};
    assert(least->count < LEAST_GRAPHS);
    enum tarn_status status = tarn_budgeting_time(budgeting, graph, &added.attempt.time_ns);
    if (status == TARN_OK) status = tarn_budgeting_plan_quickly(budgeting, graph, &added.quick);
    if (status != TARN_OK) {
        bool is_none = is_no_choice(budgeting, graph, status);
        tarn_graph_destroy(graph);
        return is_none ? TARN_OK : status;
    }
    uint32_t i = least->count++;
    for (; i > 0 && comes_before(&added, &least->graphs[i - 1]); i--)
        least->graphs[i] = least->graphs[i - 1];
    least->graphs[i] = added;
    return TARN_OK;
}

/* May the plan be smaller than the best one, or as small and faster? */
static bool may_be_less(const struct least_graph *graph, const struct tarn_attempt *best)
{
    if (!best->made.graph || bound_of(graph) < best->footprint) return true;
    return bound_of(graph) == best->footprint && graph->attempt.time_ns < best->time_ns;
}

/* May the quick plan be the final one? */
static bool will_do(const struct tarn_budgeting *budgeting, const struct least_graph *graph)
{
    const char *method = budgeting->planning ? budgeting->planning->method : NULL;
    bool searches = !method || strcmp(method, "all") == 0 || strcmp(method, "lowest") == 0;
    bool done = budgeting->aim == TARN_AIM_SMALLEST_QUICK || quick_of(graph) == bound_of(graph);
    return searches && done && graph->quick->spaces_count <= 1;
}

/* The plan that it comes down to, whatever the budget is. */
static enum tarn_status place_smallest(const struct tarn_budgeting *budgeting,
                                       struct least_graph *graph)
{
    struct tarn_attempt *attempt = &graph->attempt;
    attempt->footprint = quick_of(graph);
    if (will_do(budgeting, graph)) {
        attempt->made.plan = graph->quick;
        graph->quick = NULL;
        return TARN_OK;
    }
    attempt->footprint = UINT64_MAX;
    enum tarn_status status =
        tarn_budgeting_plan(budgeting, attempt->made.graph, 0, &attempt->made.plan);
    if (status == TARN_OK) attempt->footprint = tarn_plan_footprint(attempt->made.plan);
    if (status != TARN_DOES_NOT_FIT) return status;
    tarn_error_clear(budgeting->error); /* another memory space is too small */
    return TARN_OK;
}

/* Places those that may be less than `best`, or as small and faster, and keeps the best there. */
static enum tarn_status least_place(struct tarn_budgeting *budgeting, struct least *least,
                                    struct tarn_attempt *best)
{
    bool wanted[LEAST_GRAPHS];
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < least->count; i++)
        wanted[i] = i == 0 || !is_same(&least->graphs[i], &least->graphs[i - 1]);
    for (uint32_t i = 0; i < least->count && status == TARN_OK; i++) {
        struct least_graph *graph = &least->graphs[i];
        if (!wanted[i] || !may_be_less(graph, best)) continue;
        status = place_smallest(budgeting, graph);
        if (status == TARN_OK) tarn_attempt_keep_better(best, &graph->attempt, 0);
    }
    return status;
}

static void least_finish(struct least *least)
{
    for (uint32_t i = 0; i < least->count; i++) {
        tarn_plan_destroy(least->graphs[i].quick);
        tarn_planned_finish(&least->graphs[i].attempt.made);
    }
    least->count = 0;
}

/* ---- Making what the policy comes to ---- */

/* What is made of one policy. */
struct making {
    const struct tarn_schedule *schedule;
    struct tarn_attempt *best; /* over all policies */
    struct tarn_attempt front; /* the fastest of this one, without its graph */
    struct least least;        /* of this one, where the budget does not count */
    bool is_first;
};

/* Takes over the graph. fitted: it keeps to the budget. */
static enum tarn_status offer(struct tarn_budgeting *budgeting, struct making *making,
                              struct tarn_graph *graph, bool *fitted)
{
    struct tarn_attempt attempt;
    *fitted = false;
    if (tarn_budgeting_minimises(budgeting))
        return least_add(budgeting, &making->least, graph, &making->front.report);
    enum tarn_status status = look_at(budgeting, graph, making->schedule, &attempt);
    if (status != TARN_OK || !attempt.made.graph) return status;
    struct tarn_attempt *front = &making->front;
    if (making->is_first || attempt.time_ns < front->time_ns ||
        (attempt.time_ns == front->time_ns && attempt.footprint < front->footprint))
        *front = attempt;
    making->is_first = false;
    *fitted = tarn_attempt_fits(&attempt, budgeting->options.budget);
    tarn_attempt_keep_better(making->best, &attempt, budgeting->options.budget);
    return TARN_OK;
}

/* Offers `coupled`, which is the graph with waits, or the graph itself; takes it. */
static enum tarn_status offer_with_waits(struct tarn_budgeting *budgeting, struct making *making,
                                         const struct tarn_graph *graph, struct tarn_graph *coupled,
                                         bool *fitted)
{
    enum tarn_status status = TARN_OK;
    if (coupled != graph && graph != budgeting->graph)
        status = tarn_transform_compose(graph, coupled, budgeting->error);
    if (status == TARN_OK) return offer(budgeting, making, coupled, fitted);
    tarn_graph_destroy(coupled);
    return status;
}

static enum tarn_status offer_coupled(struct tarn_budgeting *budgeting, struct making *making,
                                      struct tarn_graph *graph, struct tarn_leeway leeway,
                                      bool *fitted)
{
    struct tarn_graph *coupled;
    if (leeway.ahead == 0) leeway.ahead = 1;
    enum tarn_status status = tarn_couple_along(graph, &leeway, &coupled, budgeting->error);
    if (status != TARN_OK) return status;
    return offer_with_waits(budgeting, making, graph, coupled, fitted);
}

static void count_step(void *user, const struct tarn_transform_progress *progress)
{
    (void)progress;
    ++*(uint64_t *)user;
}

/* The arcs that lower the bound most for their modelled time, until it is at the budget. */
static enum tarn_status offer_arcs(struct tarn_budgeting *budgeting, struct making *making,
                                   struct tarn_graph *graph)
{
    bool fitted;
    struct tarn_graph *coupled;
    uint64_t limit = ARCS_WORK / (budgeting->graph->ops_count + 1) + 1;
    if (budgeting->arc_steps >= limit) return TARN_OK;
    const struct tarn_transform_control control = {
        .struct_size = sizeof control,
        .steps = 1 + (limit - budgeting->arc_steps) / ARCS_SHARE,
        .progress = count_step,
        .user = &budgeting->arc_steps,
        .stop = (const bool *)budgeting->deadline.stop,
        .seconds = tarn_deadline_left(&budgeting->deadline)};
    const struct tarn_couple_options options = {.struct_size = sizeof options,
                                                .alignment = budgeting->options.alignment,
                                                .capacity = budgeting->options.budget,
                                                .slowdown_max = SLOWDOWN_MAX,
                                                .control = &control};
    enum tarn_status status = tarn_graph_couple(graph, &options, &coupled, budgeting->error);
    if (status != TARN_OK) return status;
    if (coupled != graph) return offer_with_waits(budgeting, making, graph, coupled, &fitted);
    tarn_graph_destroy(coupled);
    return TARN_OK;
}

/* Keeps the streams close to the list: first a little, then ever more, and at last one op runs
 * after the other. What then fits is tried with less: where little is alive, streams may run ahead.
 */
static enum tarn_status keep_close(struct tarn_budgeting *budgeting, struct making *making,
                                   struct tarn_graph *graph)
{
    bool fitted = false, any;
    uint64_t budget = budgeting->options.budget, places = graph->ops_count;
    enum tarn_status status = TARN_OK;
    while (!fitted && status == TARN_OK && places > 0) {
        places /= CLOSER;
        status =
            offer_coupled(budgeting, making, graph, (struct tarn_leeway){.ahead = places}, &fitted);
    }
    if (!fitted || status != TARN_OK || budgeting->aim == TARN_AIM_LOWER) return status;
    if (places > 0)
        status = offer_coupled(budgeting, making, graph,
                               (struct tarn_leeway){.ahead = places * (CLOSER / 2)}, &any);
    for (uint64_t part = FULL_PARTS - 1; status == TARN_OK && part >= FULL_PARTS / 2; part--) {
        struct tarn_leeway leeway = {.ahead = graph->ops_count / CLOSER + 1,
                                     .bytes = budget / FULL_PARTS * part,
                                     .alignment = budgeting->options.alignment};
        status = offer_coupled(budgeting, making, graph, leeway, &any);
        if (any) break; /* the less is alone, the faster */
        leeway.ahead = graph->ops_count / (CLOSER * CLOSER) + 1;
        if (status == TARN_OK) status = offer_coupled(budgeting, making, graph, leeway, &any);
    }
    return status;
}

/* Waits between streams where without them it does not fit: first those that cost no time, and no
 * more of them than it takes; then those that break the heaviest antichain for the least of it; and
 * where all else has been tried, those that keep streams from running side by side. */
static enum tarn_status couple(struct tarn_budgeting *budgeting, struct making *making,
                               struct tarn_graph *graph)
{
    bool fitted = false;
    uint64_t ns = making->front.time_ns;
    enum tarn_status status = offer_coupled(
        budgeting, making, graph, (struct tarn_leeway){.in_time = true, .ahead = 1}, &fitted);
    for (uint64_t part = 64; part > 1 && fitted && status == TARN_OK; part /= 8)
        status = offer_coupled(budgeting, making, graph,
                               (struct tarn_leeway){.in_time = true, .ahead = ns / part}, &fitted);
    if (fitted || status != TARN_OK) return status;
    if (budgeting->aim != TARN_AIM_LOWER) status = offer_arcs(budgeting, making, graph);
    if (!budgeting->patient || status != TARN_OK) return status;
    return keep_close(budgeting, making, graph);
}

/* For the least: the more waits, the lower the bound. */
static enum tarn_status offer_least(struct tarn_budgeting *budgeting, struct making *making,
                                    struct tarn_graph *graph)
{
    bool fitted;
    if (graph->streams_count == 1)
        return offer(budgeting, making, tarn_graph_retain(graph), &fitted);
    enum tarn_status status =
        offer_coupled(budgeting, making, graph, (struct tarn_leeway){.ahead = 1}, &fitted);
    if (status != TARN_OK || budgeting->aim == TARN_AIM_SMALLEST_QUICK) return status;
    return offer_coupled(budgeting, making, graph,
                         (struct tarn_leeway){.in_time = true, .ahead = 1}, &fitted);
}

/* Of a policy that cannot be carried out, as segments may be, nothing is left: all is kept. NULL:
 * no memory. */
static const struct tarn_schedule *find_schedule(struct tarn_budgeting *budgeting, uint64_t target,
                                                 enum tarn_recompute_streams rule)
{
    if (budgeting->fixed_schedule.count > 0) return &budgeting->fixed_schedule;
    const struct tarn_schedule *schedule =
        tarn_evaluate_whole(budgeting->evaluator, &budgeting->policy, target, rule);
    if (!schedule || schedule->peak < UINT64_MAX) return schedule;
    tarn_policy_reset(&budgeting->policy, &budgeting->model);
    return tarn_evaluate_whole(budgeting->evaluator, &budgeting->policy, target, rule);
}

/* No plan has fewer bytes than the list of its ops has alive at once; where the search came out
 * above its target, that is as low as it comes. */
static bool is_hopeless(const struct tarn_budgeting *budgeting, const struct making *making,
                        uint64_t target)
{
    uint64_t peak = making->schedule->peak;
    if (tarn_budgeting_minimises(budgeting))
        return making->best->made.graph && peak > making->best->footprint;
    return budgeting->descent.smallest.made.graph && peak > budgeting->options.budget &&
           peak > target;
}

static enum tarn_status make_by(struct tarn_budgeting *budgeting, uint64_t target,
                                enum tarn_recompute_streams rule, struct making *making)
{
    struct tarn_graph *graph = NULL;
    bool fitted;
    making->schedule = find_schedule(budgeting, target, rule);
    if (!making->schedule) return tarn_error_no_memory(budgeting->error);
    if (making->is_first) count_executions(making->schedule, &making->front.report);
    if (is_hopeless(budgeting, making, target)) return TARN_OK;
    enum tarn_status status = TARN_OK;
    if (changes_nothing(budgeting, making->schedule))
        graph = tarn_graph_retain(budgeting->graph);
    else
        status =
            tarn_recompute_build(&budgeting->model, making->schedule, &graph, budgeting->error);
    if (status == TARN_OK && tarn_budgeting_minimises(budgeting)) {
        status = offer_least(budgeting, making, graph);
    } else if (status == TARN_OK) {
        status = offer(budgeting, making, tarn_graph_retain(graph), &fitted);
        bool may_wait = graph->streams_count > 1 && budgeting->aim != TARN_AIM_LIST;
        if (status == TARN_OK && may_wait && !fitted) status = couple(budgeting, making, graph);
    }
    tarn_graph_destroy(graph);
    return status;
}

enum tarn_status tarn_attempt_make(struct tarn_budgeting *budgeting, uint64_t target,
                                   struct tarn_attempt *best, struct tarn_attempt *front)
{
    struct making making = {.best = best, .is_first = true};
    bool one = budgeting->aim == TARN_AIM_SMALLEST_QUICK || budgeting->graph->streams_count == 1;
    int rules = one ? 1 : TARN_RECOMPUTE_RULES;
    enum tarn_status status = TARN_OK;
    for (int rule = 0; rule < rules && status == TARN_OK; rule++) {
        status = make_by(budgeting, target, (enum tarn_recompute_streams)rule, &making);
        if (status == TARN_OK && making.front.report.recomputed == 0) break; /* all the same */
    }
    if (status == TARN_OK && tarn_budgeting_minimises(budgeting))
        status = least_place(budgeting, &making.least, best);
    least_finish(&making.least);
    *front = making.front;
    front->made = (struct tarn_planned){0};
    return status;
}

/* ---- Another order ---- */

/* Empty where the order stays as it is. */
static enum tarn_status find_order(struct tarn_budgeting *budgeting, struct tarn_graph *graph,
                                   struct tarn_graph **result)
{
    struct tarn_reorder_options options = *budgeting->reorder;
    struct tarn_transform_control control = {.struct_size = sizeof control};
    if (options.control) control = *options.control;
    if (budgeting->deadline.at_ms > 0) control.seconds = tarn_deadline_left(&budgeting->deadline);
    options.control = &control;
    options.report = NULL;
    options.keep_time = true;
    /* Other starts would take longer than the rest of the budget's search. */
    enum tarn_status status = tarn_reorder_without(graph, &options, 1u << TARN_REORDER_RESTARTS,
                                                   result, budgeting->error);
    if (status != TARN_OK) return status;
    if (*result == graph) {
        tarn_graph_destroy(*result);
        *result = NULL;
    } else if (graph != budgeting->graph) {
        status = tarn_transform_compose(graph, *result, budgeting->error);
    }
    return status;
}

static enum tarn_status find_peak(const struct tarn_budgeting *budgeting,
                                  const struct tarn_graph *graph, uint64_t *peak)
{
    struct tarn_region region = {.chunks = NULL};
    const uint64_t *reserved;
    enum tarn_status status = tarn_reserved_sizes(&reserved, &region, graph,
                                                  budgeting->options.alignment, budgeting->error);
    if (status == TARN_OK && tarn_peak_of(graph, reserved, peak) != TARN_OK)
        status = tarn_error_no_memory(budgeting->error);
    tarn_region_finish(&region);
    return status;
}

/* *less: it needs fewer bytes than this many. */
static enum tarn_status place_ordered(struct tarn_budgeting *budgeting,
                                      struct tarn_attempt *ordered, uint64_t footprint, bool *less)
{
    struct tarn_plan *quick;
    struct tarn_graph *graph = ordered->made.graph;
    enum tarn_status status = tarn_budgeting_plan_quickly(budgeting, graph, &quick);
    if (is_no_choice(budgeting, graph, status)) return TARN_OK;
    if (status != TARN_OK) return status;
    *less = quick->claim.bound < footprint;
    tarn_plan_destroy(quick);
    if (!*less) return TARN_OK;
    status = tarn_budgeting_plan(budgeting, graph, 0, &ordered->made.plan);
    *less = status == TARN_OK && tarn_plan_footprint(ordered->made.plan) < footprint;
    if (*less) ordered->footprint = tarn_plan_footprint(ordered->made.plan);
    if (status != TARN_DOES_NOT_FIT) return status;
    tarn_error_clear(budgeting->error); /* another memory space is too small */
    return TARN_OK;
}

enum tarn_status tarn_attempt_reorder(struct tarn_budgeting *budgeting,
                                      const struct tarn_attempt *attempt,
                                      struct tarn_attempt *ordered)
{
    bool less = false;
    *ordered = (struct tarn_attempt){.report = attempt->report};
    if (!budgeting->reorder || !attempt->made.graph) return TARN_OK;
    enum tarn_status status = find_order(budgeting, attempt->made.graph, &ordered->made.graph);
    if (status == TARN_OK && ordered->made.graph)
        status = tarn_budgeting_time(budgeting, ordered->made.graph, &ordered->time_ns);
    if (status == TARN_OK && ordered->made.graph && ordered->time_ns <= attempt->time_ns)
        status = place_ordered(budgeting, ordered, attempt->footprint, &less);
    if (less) status = find_peak(budgeting, ordered->made.graph, &ordered->report.peak);
    if (!less || status != TARN_OK) tarn_planned_finish(&ordered->made);
    return status;
}
