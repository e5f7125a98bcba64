/* From a graph to a plan that has been proved: transforms make the final graph and, where they have
 * to know what it comes to, its plan (pipeline.h), which is made here where they have none
 * (plan_graph.h); then the boundary of iterations is refined, and all is verified against the graph
 * that came in. Cost: the transforms', the placement's and the verifier's. */
#include <assert.h>
#include <stdatomic.h>

#include "pipeline.h"
#include "plan_graph.h"
#include "planner/transform/beat.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/base/log.h"
#include "streams/base/options.h"
#include "tarn/transform.h"

static bool is_stopped(const struct tarn_plan_options *options)
{
    const atomic_bool *stop = (const atomic_bool *)options->stop;
    return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

/* A budget is a capacity, too, once the work has been changed to fit; and a placement that keeps to
 * it is looked for even where the caller wants to wait for nothing better. */
static void take_budget(struct tarn_plan_options *options)
{
    struct tarn_budget_options budget;
    if (!options->budget || options->capacity > 0) return;
    if (tarn_options_take(&budget, sizeof budget, options->budget, "budget options", NULL) !=
        TARN_OK)
        return;
    options->capacity = budget.budget;
    if (budget.budget > 0 && options->effort == 0 && is_stopped(options)) {
        options->stop = NULL;
        options->seconds = 0;
    }
}

/* A plan that a step has made keeps what these options ask for, too. */
static bool is_kept(const struct tarn_plan *plan, const struct tarn_plan_options *options)
{
    return plan && plan->alignment == options->alignment && tarn_plan_keeps_capacities(plan) &&
           (options->capacity == 0 || tarn_plan_footprint(plan) <= options->capacity);
}

static enum tarn_status make_plan(struct tarn_planned *final,
                                  const struct tarn_plan_options *options, struct tarn_error *error)
{
    if (!is_kept(final->plan, options)) {
        tarn_plan_destroy(final->plan);
        return tarn_plan_make(final->graph, options, &final->plan, error);
    }
    if (options->progress) {
        struct tarn_plan_progress progress = {sizeof progress, final->plan->footprint,
                                              final->plan->bound, 0};
        options->progress(options->user, &progress);
    }
    return TARN_OK;
}

/* Who touches the same bytes is known once everything has its place. */
static enum tarn_status refine_boundary(struct tarn_plan *plan, struct tarn_error *error)
{
    double begin = tarn_now_ms();
    enum tarn_status status = tarn_plan_refine_boundary(plan);
    plan->order_ms += tarn_now_ms() - begin;
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(error);
}

static enum tarn_status verify(struct tarn_plan *plan, const struct tarn_graph *source,
                               struct tarn_error *error)
{
    double begin = tarn_now_ms();
    enum tarn_status status = tarn_plan_verify(plan, source, NULL, error);
    plan->verify_ms = tarn_now_ms() - begin;
    return status;
}

/* Fills in `final`, also where that fails in the end. */
static enum tarn_status run(struct tarn_graph *graph, struct tarn_plan_options *options,
                            struct tarn_planned *final, struct tarn_error *error)
{
    double begin = tarn_now_ms();
    enum tarn_status status = tarn_pipeline_run(graph, options, final, error);
    if (status != TARN_OK) return status;
    take_budget(options);
    double transform_ms = tarn_now_ms() - begin;
    if (is_kept(final->plan, options))
        transform_ms -= final->plan->order_ms + final->plan->place_ms;
    if ((status = make_plan(final, options, error)) != TARN_OK) return status;
    struct tarn_plan *plan = final->plan;
    assert(tarn_planned_is_valid(final));
    plan->source_hash = graph->hash;
    plan->pad_groups = options->pad_groups;
    plan->transformed = !tarn_hash_equal(graph->hash, plan->graph->hash);
    plan->transform_ms = transform_ms;
    if (options->boundary != TARN_BOUNDARY_SIMPLE) status = refine_boundary(plan, error);
    return status == TARN_OK ? verify(plan, graph, error) : status;
}

/* The plan with groups of one padding; *plan is NULL where that fails. */
static enum tarn_status create_one(struct tarn_graph *graph, const struct tarn_plan_options *given,
                                   struct tarn_plan **plan, struct tarn_error *error)
{
    struct tarn_plan_options options = *given;
    struct tarn_planned final = {0};
    *plan = NULL;
    enum tarn_status status = run(graph, &options, &final, error);
    if (status == TARN_OK) {
        *plan = final.plan;
        final.plan = NULL;
    }
    tarn_planned_finish(&final);
    return status;
}

static bool has_groups(const struct tarn_graph *graph)
{
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (graph->groups[g].storages_count > 1) return true;
    return false;
}

static bool has_transforms(const struct tarn_plan_options *options)
{
    return options->assign || options->reorder || options->couple || options->in_place ||
           options->budget;
}

/* Of the two paddings, the one whose plan is smaller, exact where they are equal. A plan that does
 * not fit is larger than all that do. The reports of transforms must be of the plan that is taken:
 * if that is the first, it is made once more. */
static enum tarn_status create_smaller(struct tarn_graph *graph,
                                       const struct tarn_plan_options *given,
                                       struct tarn_plan **plan, struct tarn_error *error)
{
    struct tarn_plan_options options = *given;
    struct tarn_plan *padded;
    options.seconds = given->seconds / 2;
    options.pad_groups = TARN_GROUPS_EXACT;
    enum tarn_status status = create_one(graph, &options, plan, error);
    if (status != TARN_OK && status != TARN_DOES_NOT_FIT) return status;
    options.pad_groups = TARN_GROUPS_PADDED;
    enum tarn_status second = create_one(graph, &options, &padded, error);
    bool failed = second != TARN_OK && second != TARN_DOES_NOT_FIT;
    if (failed || (padded && (!*plan || padded->footprint < (*plan)->footprint))) {
        tarn_plan_destroy(*plan);
        *plan = padded;
        return second;
    }
    tarn_plan_destroy(padded);
    if (status != TARN_OK) return status;
    tarn_error_clear(error);
    if (!has_transforms(given)) return TARN_OK;
    tarn_plan_destroy(*plan);
    options.pad_groups = TARN_GROUPS_EXACT;
    return create_one(graph, &options, plan, error);
}

struct creation {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_error *error;
};

static enum tarn_status create(const struct tarn_plan_options *given, void *subject)
{
    struct creation *creation = subject;
    struct tarn_graph *graph = creation->graph;
    struct tarn_plan_options options = *given;
    if (options.pad_groups == TARN_GROUPS_SMALLER && has_groups(graph))
        return create_smaller(graph, &options, &creation->plan, creation->error);
    if (options.pad_groups == TARN_GROUPS_SMALLER) options.pad_groups = TARN_GROUPS_AS_GIVEN;
    return create_one(graph, &options, &creation->plan, creation->error);
}

static void log_plan(const struct tarn_plan *plan)
{
    static const char *const ends[] = {"", ", stopped by request", ", stopped by the clock",
                                       ", stopped by the limit of work"};
    tarn_log(TARN_LOG_INFO, "plan of '%s': footprint %llu, bound %llu, by %s%s", plan->graph->name,
             (unsigned long long)plan->footprint, (unsigned long long)plan->bound, plan->method,
             ends[plan->stopped]);
}

enum tarn_status tarn_plan_create(struct tarn_graph *graph, const struct tarn_plan_options *given,
                                  struct tarn_plan **plan, struct tarn_error *error)
{
    if (plan) *plan = NULL;
    if (!graph || !plan) return tarn_error_null(error, __func__);
    struct tarn_plan_options options;
    struct creation creation = {.graph = graph, .error = error};
    tarn_error_clear(error);
    enum tarn_status status = tarn_plan_options_take(&options, given, error);
    if (status == TARN_OK) status = tarn_beat_run(&options, create, &creation);
    *plan = creation.plan;
    if (*plan) log_plan(*plan);
    return status;
}
