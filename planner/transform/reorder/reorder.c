/* Reorders a graph: finds the best list of ops, as if all ops ran in one stream (rounds.h), from
 * which several streams take their orders (streams.h). The bound holds for several streams, too,
 * since the storages alive in one step of a list are an antichain. Cost: the cost of its parts. */
#include "reorder.h"

#include <assert.h>
#include <float.h>
#include <string.h>

#include "beside.h"
#include "planner/transform/heartbeat.h"
#include "planner/transform/recipe.h"
#include "restarts.h"
#include "rounds.h"
#include "streams.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/order/reserved.h"

enum { EFFORT_DEFAULT = 200 };

const char *tarn_reorder_stage_text(enum tarn_reorder_stage stage)
{
    static const char *const words[] = {
        [TARN_REORDER_GREEDY] = "greedy",   [TARN_REORDER_WINDOWS] = "windows",
        [TARN_REORDER_CUTS] = "cuts",       [TARN_REORDER_CASES] = "cases",
        [TARN_REORDER_WITNESS] = "witness", [TARN_REORDER_RESTARTS] = "restarts",
    };
    return (unsigned)stage < TARN_REORDER_STAGES ? words[stage] : "";
}

/* Of several streams every weight is a multiple of the alignment, see gap_bound.h. */
static uint64_t round_up(uint64_t bound, uint64_t alignment)
{
    return bound + (-bound & (alignment - 1));
}

/* For several streams: a bound by ops that run beside each other, if its certificate holds, and
 * from other starts while that leaves a gap. */
static enum tarn_status restart(struct tarn_reordering *reordering, const struct tarn_graph *graph,
                                const uint64_t *reserved,
                                const struct tarn_reorder_options *options,
                                struct tarn_reorder_streams *search)
{
    struct tarn_order_certificate certificate;
    struct tarn_reorder_report *report = &reordering->report;
    struct tarn_reorder_gain *gain = &report->gains[TARN_REORDER_RESTARTS];
    struct tarn_reorder_weights *weights = search->weights;
    uint64_t weight = weights->after;
    uint32_t tried = weights->tried;
    if (weight == report->bound || tarn_steps_is_over(&reordering->steps)) return TARN_OK;
    enum tarn_status status = tarn_beside_bound(&certificate, reordering->region, graph, reserved,
                                                weight, &reordering->steps);
    if (status != TARN_OK) return status;
    bool holds = tarn_order_certificate_holds(&certificate, graph, reserved);
    assert(!holds || certificate.bound <= weight); /* the check may lack memory */
    if (holds)
        report->bound = tarn_larger(report->bound, round_up(certificate.bound, options->alignment));
    status =
        tarn_reorder_restarts(reordering, search, report->bound, options->effort, &gain->tries);
    gain->bytes = weight - weights->after;
    weights->tried = tried;
    return status;
}

/* For several streams: from the best list on, by the heaviest antichain. */
static enum tarn_status weigh(struct tarn_reordering *reordering, const struct tarn_graph *graph,
                              const uint64_t *reserved, const struct tarn_reorder_options *options,
                              uint32_t *list)
{
    struct tarn_reorder_weights weights = {
        .tries = tarn_reordering_has(reordering, TARN_REORDER_WITNESS) ? options->effort : 0,
        .slowdown_max = options->keep_time          ? 0
                        : options->slowdown_max > 0 ? options->slowdown_max
                                                    : -1,
        .steps = &reordering->steps,
    };
    struct tarn_reorder_streams search;
    struct tarn_reorder_report *report = &reordering->report;
    bool better;
    enum tarn_status status = tarn_reorder_streams_init(
        &search, reordering->region, graph, reserved, options->alignment, graph->order, &weights);
    if (status == TARN_OK)
        status = tarn_reorder_streams_run(&search, (const uint32_t *const[]){graph->order, list},
                                          &better);
    report->gains[TARN_REORDER_WITNESS].bytes = weights.start - weights.after;
    report->bound = round_up(report->bound, options->alignment);
    if (status == TARN_OK && tarn_reordering_has(reordering, TARN_REORDER_RESTARTS))
        status = restart(reordering, graph, reserved, options, &search);
    if (status == TARN_OK) {
        memcpy(list, search.kept, graph->ops_count * sizeof *list);
        tarn_weighing_take(&search.weighing, list);
        assert(tarn_graph_is_valid(&search.weighing.graph));
        status = tarn_weighing_time(&search.weighing, &report->critical_path_ns);
    }
    report->gains[TARN_REORDER_WITNESS].tries = weights.tried;
    report->peak_before = weights.before;
    report->peak_after = weights.after;
    report->critical_path_before_ns = weights.before_ns;
    tarn_reorder_streams_finish(&search);
    return status;
}

/* The list of all ops that has come out best. */
static enum tarn_status choose(struct tarn_reordering *reordering, const struct tarn_graph *graph,
                               const uint64_t *reserved, const struct tarn_reorder_options *options,
                               uint32_t *list)
{
    enum tarn_status status = tarn_reordering_run(reordering, options->effort);
    reordering->report.peak_after = reordering->score.peak;
    reordering->report.bound = reordering->least;
    if (status == TARN_OK) status = tarn_reorder_list(reordering->model, reordering->best, list);
    if (status == TARN_OK && graph->streams_count > 1)
        status = weigh(reordering, graph, reserved, options, list);
    return status;
}

static enum tarn_status reorder(struct tarn_graph *graph, const uint64_t *reserved,
                                const struct tarn_reorder_options *options,
                                struct tarn_reordering *reordering, struct tarn_graph **result,
                                struct tarn_error *error)
{
    struct tarn_reorder_model model;
    enum tarn_status status = tarn_reorder_model_init(&model, reordering->region, graph, reserved);
    uint32_t *list = tarn_region_take(reordering->region, graph->ops_count, sizeof *list);
    if (!list) status = TARN_SYSTEM;
    if (status == TARN_OK) status = tarn_reordering_init(reordering, &model);
    if (status == TARN_OK) status = choose(reordering, graph, reserved, options, list);
    tarn_reordering_finish(reordering);
    if (status != TARN_OK) return tarn_error_no_memory(error);
    struct tarn_recipe recipe = {.graph = graph, .order = list};
    assert(reordering->report.peak_after <= reordering->report.peak_before);
    tarn_report_give(options->report, options->report_size, &reordering->report,
                     sizeof reordering->report);
    if (reordering->report.peak_after == reordering->report.peak_before) recipe.order = NULL;
    return tarn_recipe_build(&recipe, result, error);
}

struct call {
    struct tarn_graph *graph;
    struct tarn_reorder_options options;
    struct tarn_graph **result;
    struct tarn_error *error;
};

static enum tarn_status run(const struct tarn_transform_control *control, void *subject)
{
    struct call *call = subject;
    call->options.control = control;
    return tarn_reorder_without(call->graph, &call->options, 0, call->result, call->error);
}

enum tarn_status tarn_graph_reorder(struct tarn_graph *graph,
                                    const struct tarn_reorder_options *options,
                                    struct tarn_graph **result, struct tarn_error *error)
{
    struct call call = {.graph = graph, .result = result, .error = error};
    struct tarn_transform_control control;
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status =
        tarn_options_take(&call.options, sizeof call.options, options, "reorder options", error);
    if (status == TARN_OK) status = tarn_control_take(&control, &call.options.control, error);
    if (status != TARN_OK) return status;
    return tarn_transform_with_heartbeat(call.options.control, "reorder", run, &call);
}

enum tarn_status tarn_reorder_without(struct tarn_graph *graph,
                                      const struct tarn_reorder_options *given, uint32_t left_out,
                                      struct tarn_graph **result, struct tarn_error *error)
{
    assert(graph && result);
    *result = NULL;
    struct tarn_reorder_options options = *given;
    struct tarn_region region = {.chunks = NULL};
    const uint64_t *reserved;
    tarn_error_clear(error);
    if (!(options.slowdown_max >= 0 && options.slowdown_max <= DBL_MAX))
        return tarn_error_set(error, TARN_USAGE,
                              "the critical path cannot grow by a share of %g; give one from 0 on",
                              options.slowdown_max);
    if (options.effort == 0) options.effort = EFFORT_DEFAULT;
    if (tarn_options_alignment(&options.alignment, error) != TARN_OK) return TARN_USAGE;
    struct tarn_reordering reordering = {
        .region = &region,
        .left_out = left_out,
        .steps = {.control = options.control, .transform = "reorder"},
    };
    enum tarn_status status =
        tarn_reserved_sizes(&reserved, &region, graph, options.alignment, error);
    if (status == TARN_OK) status = reorder(graph, reserved, &options, &reordering, result, error);
    tarn_region_finish(&region);
    return status;
}
