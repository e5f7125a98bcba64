/* An attempt in another order. With the policy chosen, the ops that run, again or not, can be put
 * in an order with less alive; one that came out of the budget keeps to it as it is, so the new
 * order is taken only where it brings something and costs no time. Cost: a reordering and a plan.
 */
#include "attempt.h"

#include "planner/transform/recipe.h"
#include "streams/base/error.h"
#include "streams/order/peak.h"
#include "streams/order/reserved.h"

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
    enum tarn_status status = tarn_graph_reorder(graph, &options, result, budgeting->error);
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
static enum tarn_status place(struct tarn_budgeting *budgeting, struct tarn_attempt *ordered,
                              uint64_t footprint, bool *less)
{
    struct tarn_plan *quick;
    struct tarn_graph *graph = ordered->made.graph;
    enum tarn_status status = tarn_budgeting_plan_quickly(budgeting, graph, &quick);
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
        status = place(budgeting, ordered, attempt->footprint, &less);
    if (less) status = find_peak(budgeting, ordered->made.graph, &ordered->report.peak);
    if (!less || status != TARN_OK) tarn_planned_finish(&ordered->made);
    return status;
}
