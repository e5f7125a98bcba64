/* The ways of a plan: which padding of groups, which order, and which waits, where the options
 * leave that open.
 *
 *     padding   as asked, or exact and padded
 *     order     another one, and, where that may be worse, the one that came in: with less alive at
 *               once there may be less that can be computed again, and an order is chosen for the
 *               first memory space alone
 *     waits     within a budget, coupled and in place, as asked, or, where that takes time,
 *               without: it may leave less that can be computed again
 *
 * Each way runs the transforms, with options and reports of its own, and is planned. What fits
 * comes before what does not. Within a budget the least modelled time is best, then the smallest
 * footprint; without one the first order that fits, and the padding with the smallest footprint.
 * Where nothing fits, the refusal with the least footprint is told. Only the reports of the best
 * way are handed to the caller. The caller's seconds are for all ways together: one that may be
 * followed by another leaves it half. Cost: the transforms and a plan for each way. */
#include "pipeline.h"
#include "planner/budget/budget.h"

#include "planner/transform/heartbeat.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/base/options.h"

#define NO_COUPLING UINT64_MAX /* bytes that are no reason for waits */

struct way {
    struct tarn_plan_options options; /* which point to these */
    struct tarn_assign_options assign;
    struct tarn_reorder_options reorder;
    struct tarn_couple_options couple;
    struct tarn_in_place_options in_place;
    struct tarn_budget_options budget;
    struct tarn_assign_report assigned;
    struct tarn_reorder_report reordered;
    struct tarn_couple_report coupled;
    struct tarn_in_place_report merged;
    struct tarn_budget_report budgeted;
    bool reorders; /* another order is looked for, and then: it has been found */
    struct tarn_planned made;
    uint64_t needed; /* bytes, where nothing fits and no budget says so; 0: not known */
    enum tarn_status status;
    struct tarn_error error;
};

struct ways {
    struct tarn_graph *graph;
    const struct tarn_plan_options *asked;
    tarn_pipeline_plan *plan;
    struct tarn_deadline deadline; /* of the whole call */
    struct way best;
    bool is_any; /* there is a best one */
};

/* ---- Options and reports of one way ---- */

/* Copies of what the caller asks for. */
static enum tarn_status take(struct way *way, const struct tarn_plan_options *asked,
                             struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    *way = (struct way){.options = *asked};
    if (asked->assign)
        status = tarn_options_take(&way->assign, sizeof way->assign, asked->assign,
                                   "assign options", error);
    if (status == TARN_OK && asked->reorder)
        status = tarn_options_take(&way->reorder, sizeof way->reorder, asked->reorder,
                                   "reorder options", error);
    if (status == TARN_OK && asked->couple)
        status = tarn_options_take(&way->couple, sizeof way->couple, asked->couple,
                                   "couple options", error);
    if (status == TARN_OK && asked->in_place)
        status = tarn_options_take(&way->in_place, sizeof way->in_place, asked->in_place,
                                   "in-place options", error);
    if (status == TARN_OK && asked->budget)
        status = tarn_options_take(&way->budget, sizeof way->budget, asked->budget,
                                   "budget options", error);
    return status;
}

static void point_to_own(struct way *way)
{
    struct tarn_plan_options *options = &way->options;
    if (options->assign) options->assign = &way->assign;
    if (options->reorder) options->reorder = &way->reorder;
    if (options->couple) options->couple = &way->couple;
    if (options->in_place) options->in_place = &way->in_place;
    if (options->budget) options->budget = &way->budget;
    way->assign.report = &way->assigned;
    way->assign.report_size = sizeof way->assigned;
    way->reorder.report = &way->reordered;
    way->reorder.report_size = sizeof way->reordered;
    way->couple.report = &way->coupled;
    way->couple.report_size = sizeof way->coupled;
    way->in_place.report = &way->merged;
    way->in_place.report_size = sizeof way->merged;
    way->budget.report = &way->budgeted;
    way->budget.report_size = sizeof way->budgeted;
}

static void finish(struct way *way)
{
    tarn_couple_report_finish(&way->coupled);
    tarn_planned_finish(&way->made);
}

/* The caller's reports tell of this way. */
static void tell(struct way *way, const struct tarn_plan_options *asked)
{
    struct way caller;
    if (take(&caller, asked, NULL) != TARN_OK) return;
    tarn_report_give(caller.assign.report, caller.assign.report_size, &way->assigned,
                     sizeof way->assigned);
    tarn_report_give(caller.reorder.report, caller.reorder.report_size, &way->reordered,
                     sizeof way->reordered);
    tarn_report_give(caller.in_place.report, caller.in_place.report_size, &way->merged,
                     sizeof way->merged);
    tarn_report_give(caller.budget.report, caller.budget.report_size, &way->budgeted,
                     sizeof way->budgeted);
    if (!caller.couple.report) return;
    if (way->coupled.target == NO_COUPLING) way->coupled.target = way->coupled.bound;
    tarn_report_give(caller.couple.report, caller.couple.report_size, &way->coupled,
                     sizeof way->coupled);
    way->coupled = (struct tarn_couple_report){0}; /* its rows are the caller's */
}

/* ---- Comparing ---- */

/* The least that a refusal tells; UINT64_MAX: none. */
static uint64_t least_of(const struct way *way)
{
    if (way->budgeted.footprint > 0) return way->budgeted.footprint;
    return way->needed > 0 ? way->needed : UINT64_MAX;
}

static uint64_t footprint_of(const struct way *way)
{
    return way->made.plan ? tarn_plan_footprint(way->made.plan) : way->budgeted.footprint;
}

/* Before it was known whether it fits. */
static bool was_ended(const struct way *way)
{
    return way->status != TARN_OK && way->status != TARN_DOES_NOT_FIT;
}

static bool is_better(const struct way *a, const struct way *b)
{
    if ((a->status == TARN_OK) != (b->status == TARN_OK)) return a->status == TARN_OK;
    if (was_ended(a) || was_ended(b)) return was_ended(a);
    if (a->status != TARN_OK) return least_of(a) < least_of(b);
    if (a->budgeted.time_ns != b->budgeted.time_ns)
        return a->budgeted.time_ns < b->budgeted.time_ns;
    return footprint_of(a) < footprint_of(b);
}

/* Nothing in the order that came in can take less time than this: work is added, not taken away. */
static bool takes_no_time(const struct tarn_graph *graph, const struct way *way)
{
    for (uint32_t v = 0; v < graph->ops_count; v++)
        if (tarn_extra(&graph->ops[v])->implementations_count > 0) return false;
    uint64_t before = way->budgeted.time_before_ns, given = way->reordered.critical_path_before_ns;
    return way->budgeted.time_ns <= (given > 0 && given < before ? given : before);
}

/* Orders are chosen for the first memory space. */
static bool may_be_the_order(const struct tarn_graph *graph)
{
    for (uint32_t s = 1; s < graph->spaces_count; s++)
        if (graph->spaces[s].capacity > 0) return true;
    return false;
}

/* Is the order that came in to be tried, too? */
static bool is_kept_tried(const struct ways *ways, const struct way *other)
{
    if (!other->reorders) return false; /* it has been */
    if (!ways->asked->budget)
        return other->status == TARN_DOES_NOT_FIT && may_be_the_order(ways->graph);
    if (other->status == TARN_DOES_NOT_FIT) return true;
    if (other->status == TARN_DEADLINE) return !tarn_deadline_is_over(&ways->deadline);
    return !takes_no_time(ways->graph, other) && !tarn_deadline_is_over(&ways->deadline);
}

/* ---- Trying ---- */

/* From the graph that the transforms begin with on. */
static void run(const struct ways *ways, struct way *way, struct tarn_graph *begun)
{
    const struct tarn_deadline deadline = tarn_deadline_in(NULL, way->options.seconds);
    point_to_own(way);
    tarn_error_clear(&way->error);
    way->status = tarn_pipeline_end(ways->graph, begun, &way->options, &way->reorders, &way->made,
                                    &way->error);
    bool halves = way->reorders && may_be_the_order(ways->graph);
    way->options.seconds = tarn_deadline_left(&deadline) / (halves ? 2 : 1);
    if (way->status == TARN_OK && ways->plan)
        way->status = ways->plan(&way->options, &way->made, &way->error);
    way->needed = way->made.needed;
    if (way->status != TARN_OK) tarn_planned_finish(&way->made);
}

/* It fits, or not, or was ended before that was known. */
static bool is_answer(enum tarn_status status)
{
    return status == TARN_OK || status == TARN_DOES_NOT_FIT || status == TARN_DEADLINE ||
           status == TARN_INTERRUPTED;
}

/* Takes the way over. */
static enum tarn_status offer(struct ways *ways, struct way *way, struct tarn_error *error)
{
    bool is_other = !is_answer(way->status);
    if (is_other && error) *error = way->error;
    if (is_other || (ways->is_any && !is_better(way, &ways->best))) {
        finish(way);
        return is_other ? way->status : TARN_OK;
    }
    if (ways->is_any) finish(&ways->best);
    ways->best = *way;
    ways->is_any = true;
    return TARN_OK;
}

/* May a way be better still? */
static bool goes_on(const struct ways *ways)
{
    if (ways->best.status == TARN_DEADLINE) return !tarn_deadline_is_over(&ways->deadline);
    return ways->best.status == TARN_OK || ways->best.status == TARN_DOES_NOT_FIT;
}

/* The order that came in, once another one has been tried. */
static enum tarn_status try_kept(struct ways *ways, const struct tarn_plan_options *asked,
                                 const struct way *other, struct tarn_graph *begun,
                                 struct tarn_error *error)
{
    struct way way;
    enum tarn_status status = take(&way, asked, error);
    if (status != TARN_OK) return status;
    way.assigned = other->assigned;
    way.reordered = other->reordered;
    tarn_joint_tell_kept(&way.reordered);
    run(ways, &way, begun);
    return offer(ways, &way, error);
}

static enum tarn_status try_orders(struct ways *ways, const struct tarn_plan_options *asked,
                                   struct tarn_error *error)
{
    const struct tarn_deadline deadline = tarn_deadline_in(NULL, asked->seconds);
    struct tarn_graph *begun = NULL;
    struct way way;
    enum tarn_status status = take(&way, asked, error);
    if (status != TARN_OK) return status;
    way.reorders = asked->reorder;
    point_to_own(&way);
    status = tarn_pipeline_begin(ways->graph, &way.options, &begun, error);
    if (status != TARN_OK) return status;
    way.options.seconds = tarn_deadline_left(&deadline);
    run(ways, &way, begun);
    const struct way other = {.assigned = way.assigned, .reordered = way.reordered};
    bool again = is_kept_tried(ways, &way);
    struct tarn_plan_options left = *asked;
    left.seconds = tarn_deadline_left(&deadline);
    status = offer(ways, &way, error);
    if (status == TARN_OK && again) status = try_kept(ways, &left, &other, begun, error);
    tarn_graph_destroy(begun);
    return status;
}

/* Waits that are there before the budget is looked at, and outputs that take inputs over, may stand
 * in the way of computing again; the budget chooses waits of its own. */
static enum tarn_status try_freedoms(struct ways *ways, const struct tarn_plan_options *given,
                                     struct tarn_error *error)
{
    struct tarn_plan_options asked = *given;
    struct tarn_couple_options none;
    if (!asked.budget || (!asked.couple && !asked.in_place)) return try_orders(ways, given, error);
    asked.seconds /= 2;
    enum tarn_status status = try_orders(ways, &asked, error);
    if (status != TARN_OK || !goes_on(ways)) return status;
    if (ways->best.status == TARN_OK && takes_no_time(ways->graph, &ways->best)) return TARN_OK;
    if (asked.couple)
        status = tarn_options_take(&none, sizeof none, asked.couple, "couple options", error);
    none.capacity = NO_COUPLING;
    if (asked.couple) asked.couple = &none;
    asked.in_place = NULL;
    return status == TARN_OK ? try_orders(ways, &asked, error) : status;
}

static bool has_groups(const struct tarn_graph *graph)
{
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (graph->groups[g].storages_count > 1) return true;
    return false;
}

static enum tarn_status try_paddings(struct ways *ways, struct tarn_error *error)
{
    struct tarn_plan_options asked = *ways->asked;
    if (asked.pad_groups != TARN_GROUPS_SMALLER || !ways->plan)
        return try_freedoms(ways, &asked, error);
    asked.pad_groups = TARN_GROUPS_AS_GIVEN;
    if (!has_groups(ways->graph)) return try_freedoms(ways, &asked, error);
    asked.seconds = tarn_deadline_left(&ways->deadline) / 2;
    asked.pad_groups = TARN_GROUPS_EXACT;
    enum tarn_status status = try_freedoms(ways, &asked, error);
    if (status != TARN_OK || !goes_on(ways)) return status;
    asked.seconds = tarn_deadline_left(&ways->deadline);
    asked.pad_groups = TARN_GROUPS_PADDED;
    return try_freedoms(ways, &asked, error);
}

enum tarn_status tarn_pipeline_run(struct tarn_graph *graph,
                                   const struct tarn_plan_options *options,
                                   tarn_pipeline_plan *plan, struct tarn_planned *result,
                                   struct tarn_error *error)
{
    struct ways ways = {.graph = graph, .asked = options, .plan = plan};
    ways.deadline = tarn_deadline_in((const atomic_bool *)options->stop, options->seconds);
    *result = (struct tarn_planned){0};
    enum tarn_status status = try_paddings(&ways, error);
    if (status == TARN_OK) {
        status = ways.best.status;
        if (error) *error = ways.best.error;
        tell(&ways.best, options);
    }
    if (status == TARN_OK) {
        *result = ways.best.made;
        ways.best.made = (struct tarn_planned){0};
    }
    if (ways.is_any) finish(&ways.best);
    return status;
}

struct transformation {
    struct tarn_graph *graph;
    struct tarn_planned final;
    struct tarn_error *error;
};

static enum tarn_status transform(const struct tarn_plan_options *options, void *subject)
{
    struct transformation *transformation = subject;
    struct tarn_share share;
    enum tarn_status status = tarn_share_settle(&share, transformation->graph, &options,
                                                tarn_pipeline_run, transformation->error);
    if (status != TARN_OK) return status;
    return tarn_pipeline_run(transformation->graph, options, NULL, &transformation->final,
                             transformation->error);
}

enum tarn_status tarn_graph_transform(struct tarn_graph *graph,
                                      const struct tarn_plan_options *given,
                                      struct tarn_graph **result, struct tarn_error *error)
{
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    struct tarn_plan_options options;
    struct transformation transformation = {.graph = graph, .error = error};
    tarn_error_clear(error);
    enum tarn_status status = tarn_plan_options_take(&options, given, error);
    if (status == TARN_OK) status = tarn_run_with_heartbeat(&options, transform, &transformation);
    if (status != TARN_OK) return status;
    *result = transformation.final.graph;
    tarn_plan_destroy(transformation.final.plan);
    return TARN_OK;
}
