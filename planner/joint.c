/* Without contiguous groups nearly every order can be placed in the bytes that it has alive at
 * once, so the lowest peak is the lowest footprint. A group is different: its members lie side by
 * side whenever they are born, so an order that spreads their lives out may need more than it
 * saves; and so are waits between streams that are still to be added. Orders of several kinds are
 * made, one after another, and each is placed without any search; the best so far stays. Source: B.
 * Steiner et al., "MODeL: memory optimizations for deep learning", section 4. Cost: a reordering
 * and a quick plan for each kind. */
#include "pipeline.h"

#include <assert.h>
#include <string.h>

#include "planner/transform/reorder/reorder.h"
#include "streams/base/deadline.h"
#include "tarn/transform.h"

struct joint {
    const struct tarn_plan_settings *settings;
    struct tarn_plan_options quick; /* how orders are compared */
    struct tarn_couple_options couple;
    struct tarn_deadline deadline; /* of all compared orders */
    bool couples;                  /* waits are added before an order is placed */
    bool lowest_will_do;           /* the final plan may be made by the method of `quick` */
    struct tarn_planned best;      /* its plan, if it has one, is not of the coupled graph */
    uint64_t footprint;            /* of the best */
    struct tarn_reorder_report report;
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
                                  struct tarn_plan **plan, struct tarn_error *error)
{
    struct tarn_graph *coupled = NULL;
    struct tarn_transform_control control = within(joint, &joint->settings->couple_control);
    struct tarn_couple_options couple = joint->couple;
    if (!joint->couples)
        return tarn_plan_make(graph, &joint->quick, TARN_ALL_UNLIMITED, plan, error);
    couple.control = &control;
    enum tarn_status status = tarn_graph_couple(graph, &couple, &coupled, error);
    if (status == TARN_OK)
        status = tarn_plan_make(coupled, &joint->quick, TARN_ALL_UNLIMITED, plan, error);
    tarn_graph_destroy(coupled);
    return status;
}

/* No plan of the graph is better. */
static bool is_final(const struct joint *joint, const struct tarn_graph *graph,
                     const struct tarn_plan *plan)
{
    return joint->lowest_will_do && plan->graph == graph && plan->footprint == plan->claim.bound;
}

/* Keeps the better of the graph and the best one so far, and drops the one with the larger
 * footprint. */
static enum tarn_status offer(struct joint *joint, struct tarn_graph *graph, bool *better,
                              struct tarn_error *error)
{
    assert(graph != joint->best.graph || joint->footprint < UINT64_MAX);
    struct tarn_planned made = {.graph = graph};
    *better = false;
    if (graph == joint->best.graph) { /* it came in, and has been placed */
        tarn_graph_destroy(graph);
        return TARN_OK;
    }
    enum tarn_status status = make_plan(joint, graph, &made.plan, error);
    *better = status == TARN_OK && tarn_plan_footprint(made.plan) < joint->footprint;
    if (*better) {
        struct tarn_planned worse = joint->best;
        joint->footprint = tarn_plan_footprint(made.plan);
        if (!is_final(joint, graph, made.plan)) {
            tarn_plan_destroy(made.plan);
            made.plan = NULL;
        }
        joint->best = made;
        made = worse;
    }
    tarn_planned_finish(&made);
    return status;
}

static enum tarn_status try_kinds(struct joint *joint, struct tarn_graph *graph,
                                  struct tarn_error *error)
{
    const struct tarn_reorder_options *options = &joint->settings->reorder;
    enum tarn_status status = TARN_OK;
    for (uint32_t kind = 0; kind < 4 && status == TARN_OK; kind++) {
        struct tarn_graph *result;
        struct tarn_reorder_report report;
        struct tarn_reorder_options own = *options;
        bool better;
        struct tarn_transform_control control = within(joint, &joint->settings->reorder_control);
        uint32_t left_out = kind & 1 ? 1u << TARN_REORDER_WITNESS : 0;
        own.control = &control;
        if (kind & 2) own.keep_time = true;
        if (kind > 0 && left_out == 0 && own.keep_time == options->keep_time) continue;
        own.report = &report;
        own.report_size = sizeof report;
        status = tarn_reorder_without(graph, &own, left_out, &result, error);
        if (status == TARN_OK) status = offer(joint, result, &better, error);
        if (status == TARN_OK && (better || kind == 0)) joint->report = report;
        if (!joint->couples && joint->footprint <= report.peak_after) break; /* no loss */
    }
    return status;
}

static enum tarn_status try_orders(struct joint *joint, struct tarn_graph *graph,
                                   struct tarn_error *error)
{
    bool better;
    if (!has_groups(graph) && !(joint->couples && graph->streams_count > 1)) {
        struct tarn_transform_control control = within(joint, &joint->settings->reorder_control);
        struct tarn_reorder_options own = joint->settings->reorder;
        own.control = &control;
        own.report = &joint->report;
        own.report_size = sizeof joint->report;
        return tarn_graph_reorder(graph, &own, &joint->best.graph, error);
    }
    enum tarn_status status = offer(joint, tarn_graph_retain(graph), &better, error);
    return status == TARN_OK ? try_kinds(joint, graph, error) : status;
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
    if (joint.best.graph == graph) tarn_joint_tell_kept(&joint.report);
    if (status == TARN_OK) {
        *report = joint.report;
        *result = joint.best;
    } else {
        tarn_planned_finish(&joint.best);
    }
    return status;
}
