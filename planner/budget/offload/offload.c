/* Combines moves with recomputation to keep to a budget. transform/offload finds which storages
 * move, and when their bytes are freed and taken again, for the given order of the ops and by their
 * clock. Recomputing changes both. So several ways are tried (search.c), all answers are built, and
 * the fastest plan that fits is the answer. Cost: the cost of the search. */
#include <stdio.h>

#include "offloading.h"
#include "planner/budget/budget.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/graph/validate.h"
#include "tarn/simulate.h"

/* Default effort. */
enum { EFFORT = 1000 };
#define UNLIMITED (UINT64_MAX / 4) /* bytes to which anything keeps */
#define LATENCY_NS 5000
#define BYTES_MIN (UINT64_C(1) << 20)

/* ---- Reports ---- */

/* The same if moves took `percent` of their modelled time. */
static enum tarn_status find_time_with(const struct tarn_graph *graph, uint64_t percent,
                                       uint64_t *ns)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_graph view = tarn_graph_view(graph);
    struct tarn_graph_op *ops =
        tarn_region_copy(&region, graph->ops, graph->ops_count, sizeof *ops);
    enum tarn_status status = ops ? TARN_OK : TARN_SYSTEM;
    for (uint32_t v = 0; ops && v < graph->ops_count; v++)
        if (ops[v].move && ops[v].origin == TARN_NONE) ops[v].cost = ops[v].cost * percent / 100;
    view.ops = ops;
    if (status == TARN_OK) status = tarn_offloading_makespan(&view, ns);
    tarn_region_finish(&region);
    return status;
}

static void count_moves(const struct tarn_graph *graph, struct tarn_offload_report *report)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        if (!op->move || op->origin != TARN_NONE) continue;
        const struct tarn_graph_tensor *made = &graph->tensors[tarn_outputs(op)[0]];
        bool is_out = made->space != 0;
        report->storages += is_out;
        report->gaps += !is_out;
        *(is_out ? &report->bytes_out : &report->bytes_in) += made->size;
        *(is_out ? &report->out_ns : &report->into_ns) += op->cost;
    }
}

static enum tarn_status give_report(const struct tarn_offloading *offloading,
                                    const struct tarn_planned *made)
{
    const struct tarn_graph *graph = made->graph;
    struct tarn_offload_report report = {.time_before_ns = offloading->before_ns,
                                         .no_less_than_ns = offloading->no_less_ns,
                                         .no_way_less_than_ns = offloading->no_way_less_ns};
    uint64_t without_ns = 0;
    count_moves(graph, &report);
    enum tarn_status status = tarn_offloading_makespan(graph, &report.time_ns);
    if (status == TARN_OK) status = find_time_with(graph, 125, &report.slower_ns);
    if (status == TARN_OK) status = find_time_with(graph, 0, &without_ns);
    if (status != TARN_OK) return tarn_error_no_memory(offloading->error);
    report.waiting_ns = report.time_ns > without_ns ? report.time_ns - without_ns : 0;
    tarn_report_give(offloading->options.report, offloading->options.report_size, &report,
                     sizeof report);
    return TARN_OK;
}

static void give_budget_report(const struct tarn_offloading *offloading, uint64_t footprint)
{
    struct tarn_budget_report report = offloading->best.report;
    report.budget = offloading->budget.budget;
    report.footprint_before = offloading->before;
    report.footprint = footprint;
    report.time_before_ns = offloading->before_ns;
    report.time_ns = offloading->best.time_ns;
    if (report.executions == 0)
        for (uint32_t v = 0; v < offloading->graph->ops_count; v++)
            report.executions += !offloading->graph->ops[v].view;
    tarn_report_give(offloading->budget.report, offloading->budget.report_size, &report,
                     sizeof report);
}

/* ---- Options ---- */

static enum tarn_status bad(struct tarn_offloading *offloading, const char *what)
{
    return tarn_error_set(offloading->error, TARN_USAGE, "offload options: %s", what);
}

static uint64_t slowed(uint64_t bytes_per_second, double margin)
{
    double rate = (double)bytes_per_second / (1 + margin);
    return rate < 1 ? 1 : (uint64_t)rate;
}

static enum tarn_status take_terms(struct tarn_offloading *offloading, uint64_t alignment)
{
    struct tarn_offload_options *options = &offloading->options;
    const struct tarn_graph *graph = offloading->graph;
    if (options->out_bytes_per_second == 0) return bad(offloading, "a bandwidth is needed");
    if (!(options->margin >= 0 && options->margin <= 1000))
        return bad(offloading, "a margin is a share from 0 on");
    if (options->space > 0 && options->space >= tarn_graph_spaces_count(graph))
        return bad(offloading, "the graph has no such memory space");
    if (options->space == 0 && graph->spaces_count >= TARN_SPACES_MAX)
        return bad(offloading, "the graph has as many memory spaces as there may be, none of them "
                               "to move to");
    if (graph->streams_count + 2 > TARN_STREAMS_MAX)
        return bad(offloading, "the graph has too many streams for two more");
    if (options->into_bytes_per_second == 0)
        options->into_bytes_per_second = options->out_bytes_per_second;
    if (options->effort == 0) options->effort = EFFORT;
    if (options->kinds == 0) options->kinds = TARN_OFFLOAD_ACTIVATIONS;
    if (options->kinds > (TARN_OFFLOAD_ACTIVATIONS | TARN_OFFLOAD_STATES | TARN_OFFLOAD_PARAMETERS))
        return bad(offloading, "there are no such kinds");
    offloading->terms = (struct tarn_offload_terms){
        .out_bytes_per_second = slowed(options->out_bytes_per_second, options->margin),
        .into_bytes_per_second = slowed(options->into_bytes_per_second, options->margin),
        .latency_ns = options->latency_ns > 0 ? options->latency_ns : LATENCY_NS,
        .wait_ns = TARN_WAIT_NS,
        .alignment = alignment,
        .kinds = options->kinds,
        .bytes_min = options->bytes_min > 0 ? options->bytes_min : BYTES_MIN,
        .space = options->space > 0 ? options->space : TARN_NONE,
        .capacity = options->capacity,
        .out_stream = options->out_stream ? options->out_stream : "d2h",
        .into_stream = options->into_stream ? options->into_stream : "h2d"};
    return TARN_OK;
}

/* ---- A call ---- */

/* Reserved bytes of what persists in the first space, and leaves it for every budget. */
static uint64_t leaving_bytes(const struct tarn_offloading *offloading)
{
    const struct tarn_graph *graph = offloading->graph;
    const struct tarn_offload_model model = {.graph = graph, .terms = offloading->terms};
    uint64_t bytes = 0;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++)
        if (tarn_offload_may_move(&model, a))
            bytes += tarn_storage_reserved(graph, a, offloading->terms.alignment);
    return bytes;
}

/* The capacity of the first space, if the graph gives it one, lowers the budget to what the
 * persistent part leaves. */
static void keep_to_capacity(struct tarn_offloading *offloading, const struct tarn_plan *quick)
{
    uint64_t room = tarn_budgeting_room(quick, leaving_bytes(offloading));
    offloading->bytes = tarn_smaller(offloading->bytes, room);
}

static enum tarn_status look_at_given(struct tarn_offloading *offloading)
{
    struct tarn_plan *quick;
    enum tarn_status status =
        tarn_offloading_time(offloading, offloading->graph, &offloading->before_ns);
    if (status != TARN_OK) return status;
    status = tarn_offloading_plan_quickly(offloading, offloading->graph, &quick);
    if (status != TARN_OK) return status;
    offloading->before = tarn_plan_footprint(quick);
    offloading->bytes = offloading->budget.budget > 0 ? offloading->budget.budget : UNLIMITED;
    if (!offloading->has_budget && offloading->planning->capacity > 0)
        offloading->bytes = offloading->planning->capacity;
    keep_to_capacity(offloading, quick);
    tarn_plan_destroy(quick);
    return TARN_OK;
}

static enum tarn_status refuse(struct tarn_offloading *offloading)
{
    char limit[96];
    snprintf(limit, sizeof limit,
             offloading->has_budget ? "the budget of %s"
                                    : "the limit of %s, all that the capacity leaves,",
             tarn_bytes_phrase(offloading->bytes).text);
    if (tarn_offloading_is_over(offloading))
        return tarn_error_set(offloading->error, TARN_DEADLINE,
                              "the time was over before a way to keep to %s was found", limit);
    if (offloading->least == UINT64_MAX)
        return tarn_error_set(
            offloading->error, TARN_DOES_NOT_FIT,
            "%s cannot be met by moves: too little of what is alive at once idles "
            "long enough, or is %s or more",
            limit, tarn_bytes_phrase(offloading->terms.bytes_min).text);
    tarn_error_set(offloading->error, TARN_DOES_NOT_FIT,
                   "%s cannot be met: the least footprint found is %s%s", limit,
                   tarn_bytes_phrase(offloading->least).text,
                   tarn_offloading_always_moves(offloading)
                       ? "; what persists and moves takes bytes of the arena around its uses"
                       : "");
    return tarn_error_found(offloading->error, TARN_DOES_NOT_FIT, offloading->least);
}

/* As fast as can be: nothing moves. */
static enum tarn_status run_unlimited(struct tarn_offloading *offloading,
                                      struct tarn_planned *result)
{
    struct tarn_budget_options options = offloading->budget;
    if (options.method == TARN_BUDGET_OFFLOAD) options.method = TARN_BUDGET_KEEP;
    return tarn_budgeting_run(offloading->graph, &options, 0, offloading->planning, result, NULL,
                              offloading->error);
}

static enum tarn_status run_within(struct tarn_offloading *offloading, struct tarn_planned *result)
{
    enum tarn_status status = look_at_given(offloading);
    if (status == TARN_OK && offloading->bytes == UNLIMITED)
        return run_unlimited(offloading, result);
    offloading->place_part = TARN_OFFLOADING_PLACE_PART;
    if (status == TARN_OK) status = tarn_offloading_search(offloading);
    if (status == TARN_OK && !offloading->best.made.graph && !tarn_offloading_is_over(offloading))
        status = tarn_offloading_find_least(offloading);
    tarn_offloading_finish_starts(offloading);
    tarn_graph_destroy(offloading->smallest);
    if (status == TARN_OK && !offloading->best.made.graph) {
        give_budget_report(offloading, offloading->least == UINT64_MAX ? 0 : offloading->least);
        status = refuse(offloading);
    }
    if (status != TARN_OK) {
        tarn_planned_finish(&offloading->best.made);
        return status;
    }
    give_budget_report(offloading, tarn_plan_footprint(offloading->best.made.plan));
    *result = offloading->best.made;
    return TARN_OK;
}

/* Moves for which no op waits; if they do not keep to the capacity, as with a budget of what it
 * leaves. */
static enum tarn_status run_without(struct tarn_offloading *offloading, struct tarn_planned *result)
{
    bool fits = false;
    enum tarn_status status =
        tarn_offloading_time(offloading, offloading->graph, &offloading->before_ns);
    if (status != TARN_OK) return status;
    status = tarn_offloading_move_free(offloading, &result->graph);
    if (status == TARN_OK) status = tarn_offloading_fits(offloading, result->graph, &fits);
    if (status != TARN_OK || fits) return status;
    tarn_planned_finish(result);
    return run_within(offloading, result);
}

enum tarn_status tarn_offloading_run(struct tarn_graph *graph,
                                     const struct tarn_budget_options *budget,
                                     const struct tarn_offload_options *offload,
                                     const struct tarn_plan_options *planning,
                                     struct tarn_planned *result, struct tarn_error *error)
{
    struct tarn_offloading offloading = {.graph = graph,
                                         .budget = *budget,
                                         .options = *offload,
                                         .planning = planning,
                                         .least = UINT64_MAX,
                                         .has_budget = planning->budget != NULL,
                                         .place_part = 1,
                                         .error = error};
    *result = (struct tarn_planned){0};
    tarn_error_clear(error);
    enum tarn_status status = take_terms(&offloading, planning->alignment);
    if (status != TARN_OK) return status;
    offloading.deadline = tarn_deadline_in((const atomic_bool *)planning->stop, planning->seconds);
    status =
        offloading.has_budget ? run_within(&offloading, result) : run_without(&offloading, result);
    if (status == TARN_OK) status = give_report(&offloading, result);
    if (status != TARN_OK) tarn_planned_finish(result);
    return status;
}
