/* Places graphs with moves and keeps the best plan that fits. A plan may need more bytes than the
 * list has alive: for streams side by side, which are coupled then, and for bytes lost in
 * placement. It is told how many, so that the question is asked again for a smaller budget. Cost: a
 * placement, and, if it does not fit, a coupling and another placement. */
#include "offloading.h"
#include "planner/transform/coupled.h"
#include "planner/transform/recipe.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "tarn/simulate.h"

/* Gains below 1/NOTHING of the time are not looked for. */
enum { NOTHING = 2000 };
/* For an answer that fits with waits, by one part in WAITS_PART of what it misses without. */
enum { WAITS_PART = 4 };
/* Steps of placing, unless the caller says how many. */
enum { PLACE_STEPS = 300 };

/* ---- Time ---- */

enum tarn_status tarn_offloading_makespan(const struct tarn_graph *graph, uint64_t *ns)
{
    struct tarn_pace pace;
    enum tarn_status status = tarn_pace_init(&pace, graph, TARN_WAIT_NS);
    if (status == TARN_OK) *ns = pace.timeline.makespan_ns;
    if (status == TARN_OK) tarn_pace_finish(&pace);
    return status;
}

enum tarn_status tarn_offloading_time(const struct tarn_offloading *offloading,
                                      const struct tarn_graph *graph, uint64_t *ns)
{
    return tarn_offloading_makespan(graph, ns) == TARN_OK ? TARN_OK
                                                          : tarn_error_no_memory(offloading->error);
}

/* ---- Plans ---- */

enum tarn_status tarn_offloading_plan_quickly(const struct tarn_offloading *offloading,
                                              struct tarn_graph *graph, struct tarn_plan **plan)
{
    const struct tarn_plan_options quick =
        tarn_budgeting_quick(offloading->planning, offloading->terms.alignment);
    return tarn_plan_make(graph, &quick, TARN_ALL_UNLIMITED, plan, offloading->error);
}

enum tarn_status tarn_offloading_place(const struct tarn_offloading *offloading,
                                       struct tarn_graph *graph, struct tarn_plan **plan,
                                       uint64_t *missing)
{
    const struct tarn_plan_options options =
        tarn_budgeting_placing(offloading->planning, offloading->terms.alignment, offloading->bytes,
                               PLACE_STEPS, &offloading->deadline);
    struct tarn_error ignored;
    struct tarn_plan *quick;
    *plan = NULL;
    *missing = offloading->bytes / TARN_OFFLOADING_LESS + 1;
    enum tarn_status status = tarn_offloading_plan_quickly(offloading, graph, &quick);
    if (tarn_budgeting_is_no_choice(offloading->graph, graph, status, offloading->error))
        return TARN_OK;
    if (status != TARN_OK) return status;
    uint64_t bound = quick->claim.bound;
    if (quick->spaces) bound = quick->spaces[0].claim.bound;
    tarn_plan_destroy(quick);
    if (bound > offloading->bytes) {
        if (bound - offloading->bytes > *missing) *missing = bound - offloading->bytes;
        return TARN_OK;
    }
    struct tarn_planned made = {.graph = graph};
    status = tarn_planned_make(&made, &options, true, offloading->place_part, &ignored);
    *plan = made.plan;
    if (status == TARN_DOES_NOT_FIT) {
        if (made.needed > offloading->bytes && (made.needed - offloading->bytes) / 2 > *missing)
            *missing = (made.needed - offloading->bytes) / 2;
        return TARN_OK;
    }
    if (status != TARN_OK && offloading->error) *offloading->error = ignored;
    return status;
}

static bool has_faster(const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_op_extra *extra = tarn_extra(&graph->ops[v]);
        for (uint32_t i = 0; i < extra->implementations_count; i++)
            if (extra->implementations[i].cost < graph->ops[v].cost) return true;
    }
    return false;
}

uint64_t tarn_offloading_free_ns(const struct tarn_offloading *offloading)
{
    return offloading->before_ns + offloading->before_ns / NOTHING;
}

bool tarn_offloading_costs_nothing(const struct tarn_offloading *offloading)
{
    return offloading->best.made.graph && !has_faster(offloading->graph) &&
           offloading->best.time_ns <= tarn_offloading_free_ns(offloading);
}

/* ---- The best plan ---- */

bool tarn_offloading_always_moves(const struct tarn_offloading *offloading)
{
    return offloading->options.kinds & (TARN_OFFLOAD_STATES | TARN_OFFLOAD_PARAMETERS);
}

enum tarn_status tarn_offloading_offer(struct tarn_offloading *offloading,
                                       struct tarn_planned *made, uint64_t time_ns,
                                       const struct tarn_budget_report *report, bool relaxed)
{
    struct tarn_offloading_found *best = &offloading->best;
    bool is_better = !best->made.graph || time_ns < best->time_ns;
    uint64_t each_ns = 0;
    if (tarn_offloading_always_moves(offloading) && !offloading->is_brief &&
        !tarn_offloading_is_over(offloading) && (is_better || time_ns == best->time_ns) &&
        tarn_plan_settle_boundary(made->plan, &each_ns) != TARN_OK) {
        tarn_planned_finish(made);
        return tarn_error_no_memory(offloading->error);
    }
    if (best->made.graph && time_ns == best->time_ns && each_ns != best->each_ns)
        is_better = each_ns < best->each_ns && each_ns > 0;
    else if (best->made.graph && time_ns == best->time_ns)
        is_better = relaxed || (!best->minds_less && tarn_plan_footprint(made->plan) <=
                                                         tarn_plan_footprint(best->made.plan));
    if (is_better) {
        tarn_planned_finish(&best->made);
        *best = (struct tarn_offloading_found){*made, time_ns, each_ns, *report, relaxed};
    } else {
        tarn_planned_finish(made);
    }
    *made = (struct tarn_planned){0};
    return TARN_OK;
}

/* Adds waits that break the heaviest antichain, if it is above the budget. *graph is replaced. */
static enum tarn_status couple(const struct tarn_offloading *offloading, struct tarn_graph **graph)
{
    struct tarn_graph *coupled;
    const struct tarn_transform_control control = {
        .struct_size = sizeof control,
        .steps = 1 + (1U << 14) / ((*graph)->ops_count + 1),
        .stop = (const bool *)offloading->deadline.stop,
        .seconds = tarn_deadline_left(&offloading->deadline)};
    const struct tarn_couple_options options = {.struct_size = sizeof options,
                                                .alignment = offloading->terms.alignment,
                                                .capacity = offloading->bytes,
                                                .slowdown_max = 1000,
                                                .control = &control};
    enum tarn_status status = tarn_graph_couple(*graph, &options, &coupled, offloading->error);
    if (status != TARN_OK) return status;
    if (coupled != *graph && *graph != offloading->graph)
        status = tarn_transform_compose(*graph, coupled, offloading->error);
    tarn_graph_destroy(*graph);
    *graph = coupled;
    return status;
}

enum tarn_status tarn_offloading_place_and_offer(struct tarn_offloading *offloading,
                                                 const struct tarn_offloading_start *start,
                                                 struct tarn_graph **graph, bool relaxed,
                                                 bool *fits, uint64_t *missing)
{
    struct tarn_planned made = {.graph = *graph};
    uint64_t time_ns = 0;
    *graph = NULL;
    offloading->placed++;
    enum tarn_status status = tarn_offloading_place(offloading, made.graph, &made.plan, missing);
    bool fits_apart = made.plan != NULL;
    uint64_t apart = *missing / WAITS_PART;
    if (status == TARN_OK && !made.plan && start->graph->streams_count > 1) {
        const struct tarn_graph *without = made.graph;
        status = couple(offloading, &made.graph);
        if (status == TARN_OK && made.graph != without)
            status = tarn_offloading_place(offloading, made.graph, &made.plan, missing);
    }
    *fits = status == TARN_OK && made.plan;
    if (*fits) {
        *missing =
            fits_apart ? 0 : tarn_larger(apart, offloading->bytes / TARN_OFFLOADING_LESS + 1);
        status = tarn_offloading_time(offloading, made.graph, &time_ns);
        if (status == TARN_OK)
            status = tarn_offloading_offer(offloading, &made, time_ns, &start->report, relaxed);
    } else if (status == TARN_OK) {
        *graph = tarn_graph_retain(made.graph);
    }
    tarn_planned_finish(&made);
    return status;
}
