/* Makes a verified plan of a graph. The options become settings (settings.h), and candidate
 * pipelines run (candidates.c, pipeline.c). Each pipeline ends in a final graph and its plan, which
 * is made here if no transform has made it (plan_graph.h). Then the boundary of iterations is
 * refined, and the plan is verified against the given graph. Cost: the cost of the transforms, the
 * placement and the verifier. */
#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include "asked.h"
#include "pipeline.h"
#include "planner/plan_graph/plan_graph.h"
#include "planner/transform/heartbeat.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/base/log.h"
#include "tarn/transform.h"

/* ---- The plan of a final graph ---- */

static bool is_stopped(const struct tarn_plan_options *options)
{
    const atomic_bool *stop = (const atomic_bool *)options->stop;
    return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

/* A budget is a capacity, too, once the work has been changed to fit; and a placement that keeps to
 * it is looked for even if the caller wants to wait for nothing better. */
static struct tarn_plan_options placing_options(const struct tarn_plan_settings *settings,
                                                const struct tarn_pipeline_candidate *candidate)
{
    struct tarn_plan_options options = settings->plan;
    options.seconds = candidate->seconds;
    if (!options.budget || options.capacity > 0) return options;
    options.capacity = settings->budget.budget;
    if (options.capacity > 0 && options.effort == 0 && is_stopped(&options)) {
        options.stop = NULL;
        options.seconds = 0;
    }
    return options;
}

/* Does a plan that a transform has made keep to these options, too? */
static bool is_kept(const struct tarn_plan *plan, const struct tarn_plan_options *options)
{
    return plan && plan->alignment == options->alignment && tarn_plan_keeps_capacities(plan) &&
           (options->capacity == 0 || tarn_plan_footprint(plan) <= options->capacity);
}

static enum tarn_status make_plan(const struct tarn_plan_settings *settings,
                                  const struct tarn_pipeline_candidate *candidate,
                                  struct tarn_planned *final, struct tarn_error *error)
{
    const struct tarn_plan_options options = placing_options(settings, candidate);
    if (!is_kept(final->plan, &options)) {
        tarn_plan_destroy(final->plan);
        final->plan = NULL;
        enum tarn_status status =
            tarn_planned_make(final, &options, settings->plan.budget != NULL, 1, error);
        if (status != TARN_OK) return status;
    } else if (options.progress) {
        struct tarn_plan_summary made; /* over all spaces */
        tarn_plan_summarize(final->plan, &made);
        options.progress(options.user,
                         &(struct tarn_plan_progress){sizeof(struct tarn_plan_progress),
                                                      made.footprint, made.bound, 0});
    }
    bool is_within = options.capacity > 0 && final->plan->stopped == TARN_STOP_NONE;
    if (settings->plan.budget && is_within && final->plan->ended == TARN_END_EFFORT &&
        is_kept(final->plan, &options))
        final->plan->ended = TARN_END_CAPACITY; /* the transform looked for nothing lower */
    final->plan->pad_groups = candidate->padding;
    return TARN_OK;
}

/* ---- After it ---- */

/* Completes a report that the transform has given, by what the plan tells. period_ns: 0: not known.
 */
static void note_offload(const struct tarn_offload_options *options, const struct tarn_plan *plan,
                         uint64_t period_ns)
{
    struct tarn_offload_report *report = options->report;
    size_t size = options->report_size > 0 ? options->report_size : sizeof *report;
    if (!report) return;
    if (size >= offsetof(struct tarn_offload_report, iteration_ns) + sizeof report->iteration_ns)
        report->iteration_ns = period_ns;
    if (size < offsetof(struct tarn_offload_report, host_bytes) + sizeof report->host_bytes) return;
    report->host_bytes = 0;
    for (uint32_t s = 1; plan->spaces && s < plan->graph->spaces_count; s++)
        report->host_bytes += plan->spaces[s].footprint;
}

/* Which ops touch the same bytes is known once everything has its place. */
static enum tarn_status refine_boundary(struct tarn_plan *plan,
                                        const struct tarn_plan_settings *settings, double begun,
                                        uint64_t *period_ns, struct tarn_error *error)
{
    double begin = tarn_now_ms(), seconds = settings->plan.seconds;
    bool has_time = seconds <= 0 || begin - begun < 1000 * seconds;
    enum tarn_status status = TARN_OK;
    if (settings->plan.keep.count == 0 && has_time)
        status = tarn_plan_settle_boundary(plan, period_ns);
    if (status == TARN_OK) status = tarn_plan_refine_boundary(plan);
    plan->order_ms += tarn_now_ms() - begin;
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(error);
}

static enum tarn_status verify(struct tarn_plan *plan, const struct tarn_graph *source,
                               struct tarn_error *error)
{
    double begin = tarn_now_ms();
    enum tarn_status status = tarn_plan_verify(plan, source, NULL, NULL, error);
    plan->verify_ms = tarn_now_ms() - begin;
    return status;
}

/* The caller that asks for the plan allows what the options ask for. */
static enum tarn_status note_allowed(struct tarn_plan *plan,
                                     const struct tarn_plan_settings *settings,
                                     struct tarn_error *error)
{
    const struct tarn_in_place_options *in_place = &settings->in_place;
    if (!settings->plan.in_place || tarn_plan_allow(plan, in_place->kinds, in_place->kinds_count))
        return TARN_OK;
    return tarn_error_no_memory(error);
}

/* ---- The two calls ---- */

struct creation {
    struct tarn_graph *graph;
    const struct tarn_plan_options *given; /* as the caller has them */
    struct tarn_plan *plan;
    struct tarn_error *error;
};

static enum tarn_status create(const struct tarn_plan_options *options, void *subject)
{
    struct creation *creation = subject;
    struct tarn_graph *graph = creation->graph;
    struct tarn_error *error = creation->error;
    struct tarn_plan_settings settings;
    struct tarn_planned final;
    double begin = tarn_now_ms();
    uint64_t period_ns = 0;
    enum tarn_status status = tarn_plan_settings_take(&settings, options, error);
    if (status == TARN_OK) status = tarn_candidates_settle_share(graph, &settings, error);
    if (status == TARN_OK) status = tarn_candidates_run(graph, &settings, make_plan, &final, error);
    if (status != TARN_OK) return status;
    struct tarn_plan *plan = final.plan;
    assert(tarn_planned_is_valid(&final));
    plan->transform_ms = tarn_now_ms() - begin - plan->order_ms - plan->place_ms;
    plan->source_hash = graph->hash;
    plan->transformed = !tarn_hash_equal(graph->hash, plan->graph->hash);
    if (settings.plan.boundary != TARN_BOUNDARY_SIMPLE)
        status = refine_boundary(plan, &settings, begin, &period_ns, error);
    tarn_plan_set_window(plan);
    if (settings.plan.offload) note_offload(&settings.offload, plan, period_ns);
    if (status == TARN_OK) status = note_allowed(plan, &settings, error);
    if (status == TARN_OK) status = verify(plan, graph, error);
    if (status == TARN_OK) status = tarn_asked_note(plan, creation->given, 0, error);
    if (status == TARN_OK) {
        creation->plan = plan;
        final.plan = NULL;
    }
    tarn_planned_finish(&final);
    return status;
}

static void log_plan(const struct tarn_plan *plan)
{
    static const char *const stops[] = {"", ", stopped by request", ", stopped by the clock",
                                        ", stopped by the limit of work"};
    static const char *const ends[] = {
        [TARN_END_UNKNOWN] = "",
        [TARN_END_BOUND] = "",
        [TARN_END_METHOD] = ", where the method ends",
        [TARN_END_CAPACITY] = ", which is within the capacity",
        [TARN_END_EFFORT] = ", at the end of its steps",
        [TARN_END_STOPPED] = "",
    };
    tarn_log(TARN_LOG_INFO, "plan of '%s': footprint %llu, bound %llu, by %s%s%s",
             plan->graph->name, (unsigned long long)plan->footprint,
             (unsigned long long)plan->claim.bound, plan->method, stops[plan->stopped],
             ends[plan->ended]);
}

enum tarn_status tarn_plan_create(struct tarn_graph *graph, const struct tarn_plan_options *given,
                                  struct tarn_plan **plan, struct tarn_error *error)
{
    if (plan) *plan = NULL;
    if (!graph || !plan) return tarn_error_null(error, __func__);
    struct tarn_plan_options options;
    struct creation creation = {.graph = graph, .given = given, .error = error};
    tarn_error_clear(error);
    enum tarn_status status = tarn_plan_options_take(&options, given, error);
    if (status == TARN_OK) status = tarn_run_with_heartbeat(&options, create, &creation);
    if (status != TARN_OK) {
        tarn_plan_destroy(creation.plan);
        creation.plan = NULL;
    }
    *plan = creation.plan;
    if (*plan) log_plan(*plan);
    return status;
}

struct transformation {
    struct tarn_graph *graph;
    struct tarn_planned final;
    struct tarn_error *error;
};

static enum tarn_status transform(const struct tarn_plan_options *options, void *subject)
{
    struct transformation *call = subject;
    struct tarn_plan_settings settings;
    enum tarn_status status = tarn_plan_settings_take(&settings, options, call->error);
    if (status == TARN_OK)
        status = tarn_candidates_settle_share(call->graph, &settings, call->error);
    if (status == TARN_OK)
        status = tarn_candidates_run(call->graph, &settings, NULL, &call->final, call->error);
    return status;
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
