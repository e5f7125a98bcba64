/* Without contiguous groups nearly every order can be placed in the bytes that it has alive at
 * once, so the lowest peak is the lowest footprint. A group is different: its members lie side by
 * side whenever they are born, so an order that spreads their lives out may need more than it
 * saves; and so are waits between streams that are still to be added. Orders of several kinds are
 * made, one after another, and each is placed without any search; the best so far stays. If another
 * one has a lower bound than that footprint, a search may still place it better: both are then
 * placed by all stages. Source: B. Steiner et al., "MODeL: memory optimizations for deep learning",
 * section 4. Cost: a reordering and a quick plan for each kind, and two plans without local search.
 */
#include "pipeline.h"

#include <assert.h>
#include <string.h>

#include "planner/transform/reorder/reorder.h"
#include "streams/base/checked.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "tarn/transform.h"

/* Graphs with more storages are placed by the quick plan only. */
enum { STORAGES_MAX = 20000 };

struct joint {
    const struct tarn_plan_settings *settings;
    struct tarn_plan_options quick; /* how orders are compared */
    struct tarn_couple_options couple;
    struct tarn_deadline deadline; /* of all compared orders */
    bool couples;                  /* waits are added before an order is placed */
    bool lowest_will_do;           /* the final plan may be made by the method of `quick` */
    struct tarn_planned best;      /* its plan, if it has one, is not of the coupled graph */
    uint64_t footprint;            /* of the best */
    uint64_t bound;                /* and its bound */
    struct tarn_reorder_report report;
    /* Of the others, the one with the lowest bound; NULL: there is none. */
    struct tarn_graph *other;
    uint64_t other_bound;
    struct tarn_reorder_report other_report;
};

static bool is_method(const struct tarn_plan_options *plan, const char *method)
{
    return strcmp(plan->method ? plan->method : "all", method) == 0;
}

/* Waits that will be added may change which order is better, so they are added for comparing. */
static enum tarn_status init(struct joint *joint, const struct tarn_graph *graph,
                             const struct tarn_plan_settings *settings, double seconds,
                             struct tarn_error *error)
{
    const struct tarn_plan_options *plan = &settings->plan;
    *joint = (struct joint){.settings = settings,
                            .couple = settings->couple,
                            .footprint = UINT64_MAX,
                            .couples = plan->couple};
    joint->deadline = tarn_deadline_in(NULL, seconds);
    joint->lowest_will_do = is_method(plan, "all") || is_method(plan, "lowest");
    joint->quick = (struct tarn_plan_options){
        .struct_size = sizeof joint->quick,
        .alignment = plan->alignment,
        .method = "lowest",
        .threads = plan->threads,
        .effort = TARN_NO_EFFORT,
        .stop = plan->stop,
    };
    joint->couple.report = NULL;
    if (!plan->couple || joint->couple.capacity > 0) return TARN_OK;
    return tarn_plan_capacity(graph, plan, &joint->couple.capacity, error);
}

static bool has_groups(const struct tarn_graph *graph)
{
    for (uint32_t g = 0; g < graph->groups_count; g++) {
        if (!graph->groups[g].persistent && graph->groups[g].storages_count > 1) return true;
    }
    return false;
}

/* Searches one after another share the time of the plan. */
static struct tarn_transform_control within(const struct joint *joint,
                                            const struct tarn_transform_control *control)
{
    return tarn_plan_settings_control(control, tarn_deadline_left(&joint->deadline));
}

/* The plan by which an order is compared. */
static enum tarn_status make_plan(const struct joint *joint, struct tarn_graph *graph,
                                  const struct tarn_plan_options *options, struct tarn_plan **plan,
                                  struct tarn_error *error)
{
    struct tarn_graph *coupled = NULL;
    struct tarn_transform_control control = within(joint, &joint->settings->couple_control);
    struct tarn_couple_options couple = joint->couple;
    if (!joint->couples) return tarn_plan_make(graph, options, TARN_ALL_UNLIMITED, plan, error);
    couple.control = &control;
    enum tarn_status status = tarn_graph_couple(graph, &couple, &coupled, error);
    if (status == TARN_OK)
        status = tarn_plan_make(coupled, options, TARN_ALL_UNLIMITED, plan, error);
    tarn_graph_destroy(coupled);
    return status;
}

/* No plan of the graph is better. */
static bool is_final(const struct joint *joint, const struct tarn_graph *graph,
                     const struct tarn_plan *plan)
{
    return joint->lowest_will_do && plan->graph == graph && plan->footprint == plan->claim.bound;
}

/* Takes the graph over, as the one to look at again, if its bound is lower. */
static void offer_other(struct joint *joint, struct tarn_graph *graph, uint64_t bound,
                        const struct tarn_reorder_report *report)
{
    if (!graph || (joint->other && joint->other_bound <= bound)) {
        tarn_graph_destroy(graph);
        return;
    }
    tarn_graph_destroy(joint->other);
    joint->other = graph;
    joint->other_bound = bound;
    joint->other_report = *report;
}

static void take_best(struct joint *joint, struct tarn_planned made,
                      const struct tarn_reorder_report *report)
{
    struct tarn_planned worse = joint->best;
    uint64_t bound = joint->bound;
    struct tarn_reorder_report worse_report = joint->report;
    joint->footprint = tarn_plan_footprint(made.plan);
    joint->bound = made.plan->claim.bound;
    joint->report = *report;
    if (!is_final(joint, made.graph, made.plan)) {
        tarn_plan_destroy(made.plan);
        made.plan = NULL;
    }
    joint->best = made;
    tarn_plan_destroy(worse.plan);
    offer_other(joint, worse.graph, bound, &worse_report);
}

/* Keeps the better of the graph and the best one so far. An order in which storages with fixed
 * offsets meet is no choice; the one that came in is offered first. */
static enum tarn_status offer(struct joint *joint, struct tarn_graph *graph,
                              const struct tarn_reorder_report *report, struct tarn_error *error)
{
    assert(graph != joint->best.graph || joint->footprint < UINT64_MAX);
    struct tarn_planned made = {.graph = graph};
    if (graph == joint->best.graph || graph == joint->other) { /* it came in, and has been placed */
        tarn_graph_destroy(graph);
        return TARN_OK;
    }
    enum tarn_status status = make_plan(joint, graph, &joint->quick, &made.plan, error);
    if (status == TARN_OK && tarn_plan_footprint(made.plan) < joint->footprint) {
        take_best(joint, made, report);
        return TARN_OK;
    }
    if (status == TARN_OK) {
        uint64_t bound = made.plan->claim.bound;
        tarn_plan_destroy(made.plan);
        offer_other(joint, graph, bound, report);
    } else {
        tarn_planned_finish(&made);
    }
    bool is_no_choice = status == TARN_BAD_INPUT && joint->best.graph;
    if (is_no_choice) tarn_error_clear(error);
    return is_no_choice ? TARN_OK : status;
}

/* Kinds of orders: what is left out, and whether the time is kept in any case. */
static const struct kind {
    uint32_t left_out;
    bool keep_time;
} kinds[] = {
    {0, false},
    {1u << TARN_REORDER_RESTARTS, false},
    {1u << TARN_REORDER_RESTARTS | 1u << TARN_REORDER_WITNESS, false},
    {1u << TARN_REORDER_RESTARTS, true},
    {1u << TARN_REORDER_RESTARTS | 1u << TARN_REORDER_WITNESS, true},
};

static enum tarn_status try_kinds(struct joint *joint, struct tarn_graph *graph,
                                  struct tarn_error *error)
{
    const struct tarn_reorder_options *options = &joint->settings->reorder;
    enum tarn_status status = TARN_OK;
    uint64_t bound = 0;
    bool restarted = false; /* the first kind found its order by another start */
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && status == TARN_OK; k++) {
        struct tarn_graph *result;
        struct tarn_reorder_report report;
        struct tarn_reorder_options own = *options;
        struct tarn_transform_control control = within(joint, &joint->settings->reorder_control);
        if (kinds[k].keep_time && options->keep_time) break;
        if (k == 1 && !restarted) continue;
        own.control = &control;
        own.keep_time |= kinds[k].keep_time;
        own.report = &report;
        own.report_size = sizeof report;
        status = tarn_reorder_without(graph, &own, kinds[k].left_out, &result, error);
        if (status != TARN_OK) return status;
        if (k == 0) joint->report = report;
        restarted = k == 0 && report.gains[TARN_REORDER_RESTARTS].bytes > 0;
        bound = tarn_larger(bound, report.bound);
        status = offer(joint, result, &report, error);
        if (!joint->couples && joint->footprint <= report.peak_after) break; /* no loss */
    }
    joint->report.bound = joint->other_report.bound = bound;
    return status;
}

/* Places the best and the other one by all stages, and keeps the better one. */
static enum tarn_status compare_closely(struct joint *joint, struct tarn_error *error)
{
    struct tarn_plan_options options = joint->quick;
    options.method = joint->settings->plan.method;
    struct tarn_plan *best = NULL, *other = NULL;
    bool is_large = joint->best.graph->planned_count > STORAGES_MAX;
    if (!joint->other || joint->other_bound >= joint->footprint || is_large ||
        is_method(&joint->settings->plan, "lowest") || tarn_deadline_is_over(&joint->deadline))
        return TARN_OK;
    enum tarn_status status = TARN_OK;
    if (!joint->best.plan) status = make_plan(joint, joint->best.graph, &options, &best, error);
    if (best) joint->footprint = tarn_smaller(joint->footprint, tarn_plan_footprint(best));
    if (status == TARN_OK && joint->footprint > joint->other_bound)
        status = make_plan(joint, joint->other, &options, &other, error);
    if (other && tarn_plan_footprint(other) < joint->footprint) {
        tarn_planned_finish(&joint->best);
        joint->best = (struct tarn_planned){.graph = joint->other};
        joint->other = NULL;
        joint->report = joint->other_report;
    }
    tarn_plan_destroy(best);
    tarn_plan_destroy(other);
    return status;
}

static enum tarn_status try_orders(struct joint *joint, struct tarn_graph *graph,
                                   struct tarn_error *error)
{
    if (!has_groups(graph) && !(joint->couples && graph->streams_count > 1)) {
        struct tarn_transform_control control = within(joint, &joint->settings->reorder_control);
        struct tarn_reorder_options own = joint->settings->reorder;
        own.control = &control;
        own.report = &joint->report;
        own.report_size = sizeof joint->report;
        return tarn_graph_reorder(graph, &own, &joint->best.graph, error);
    }
    enum tarn_status status =
        offer(joint, tarn_graph_retain(graph), &(struct tarn_reorder_report){0}, error);
    if (status == TARN_OK) status = try_kinds(joint, graph, error);
    return status == TARN_OK ? compare_closely(joint, error) : status;
}

void tarn_joint_tell_kept(struct tarn_reorder_report *report)
{
    report->peak_after = report->peak_before;
    report->critical_path_ns = report->critical_path_before_ns;
    for (int stage = 0; stage < TARN_REORDER_STAGES; stage++) report->gains[stage].bytes = 0;
}

enum tarn_status tarn_joint_reorder(struct tarn_graph *graph,
                                    const struct tarn_plan_settings *settings, double seconds,
                                    struct tarn_reorder_report *report, struct tarn_planned *result,
                                    struct tarn_error *error)
{
    struct joint joint;
    enum tarn_status status = init(&joint, graph, settings, seconds, error);
    if (status != TARN_OK) return status;
    status = try_orders(&joint, graph, error);
    tarn_graph_destroy(joint.other);
    if (joint.best.graph == graph) tarn_joint_tell_kept(&joint.report);
    if (status == TARN_OK) {
        *report = joint.report;
        *result = joint.best;
    } else {
        tarn_planned_finish(&joint.best);
    }
    return status;
}
