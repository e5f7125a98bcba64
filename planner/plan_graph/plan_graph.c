/* Planning a final graph: order, bound, place. Each is a step of its own on the plan that the steps
 * before it have filled in. Cost: the placement's, see place/; everything else is near-linear. */
#include "plan_graph.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "planner/papers/papers.h"
#include "planner/place/effort/effort.h"
#include "planner/place/pairwise.h"
#include "planning.h"
#include "streams/base/checked.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/base/region.h"

enum { EFFORT_DEFAULT = 1000 };

/* ---- Options ---- */

/* Placement's own methods, then those of papers. */
const char *tarn_plan_method(size_t i)
{
    size_t own = tarn_place_methods_count();
    if (i < own) return tarn_place_method_name(i);
    const struct tarn_layout *layout = tarn_papers_layout(i - own);
    return layout ? layout->name : NULL;
}

const char *tarn_plan_method_name(const char *word)
{
    static const char *const names[][2] = {{"somas", "baseline"}, {"roam", "roam-tree"}};
    for (size_t i = 0; word && i < sizeof names / sizeof *names; i++)
        if (strcasecmp(word, names[i][0]) == 0) return names[i][1];
    return word;
}

/* What to use for the methods of papers that are no placement. NULL: no such word. */
static const char *instead_of(const char *word)
{
    static const char *const uses[][2] = {
        {"monet", "a budget: --budget BYTES"},
        {"checkmate", "a budget: --budget BYTES --budget-method checkmate"},
        {"gist", "a budget: --budget BYTES --budget-method gist"},
        {"chen", "a budget's method: --budget-method chen"},
        {"model", "another order: --reorder"},
    };
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (strcasecmp(word, uses[i][0]) == 0) return uses[i][1];
    return NULL;
}

static enum tarn_status find_method(struct tarn_place_request *request, const char *word,
                                    struct tarn_error *error)
{
    const struct tarn_layout *layout;
    word = tarn_plan_method_name(word);
    if (tarn_place_method_find(word ? word : "all", &request->method, &request->somas))
        return TARN_OK;
    request->method = TARN_PLACE_LAYOUT;
    for (size_t i = 0; (layout = tarn_papers_layout(i)) != NULL; i++) {
        request->layout = layout;
        if (strcmp(layout->name, word) == 0) return TARN_OK;
    }
    if (tarn_papers_lack(word))
        return tarn_error_set(error, TARN_USAGE,
                              "this build has no methods of papers, such as '%s'", word);
    if (instead_of(word))
        return tarn_error_set(error, TARN_USAGE, "'%.80s' is not a method of placement; use %s",
                              word, instead_of(word));
    return tarn_error_set(
        error, TARN_USAGE,
        "there is no method '%.80s'; choose \"all\", \"baseline\" (or \"somas\"), \"lowest\", "
        "\"exact\", \"roam-tree\" (or \"roam\"), \"llfb\", or "
        "ALGORITHM:SORT:FIT with ALGORITHM single-object or many-objects, SORT size, breadth, "
        "source, unsafe or lifetime, FIT first-fit or best-fit, and \":paper\" behind it for the "
        "paper's head-size test",
        word);
}

/* ---- The steps ---- */

/* Thresholds of a plan count launches, those of the view all ops. A launch whose first half alone
 * lies before the cut does not count, but its stream is noted. */
static void count_launches(struct tarn_plan *plan, const uint32_t *threshold,
                           const struct tarn_view *view)
{
    const struct tarn_graph *graph = view->graph;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        const uint32_t *ops = graph->streams[s].ops;
        for (uint32_t i = 0; i < threshold[s]; i++)
            plan->claim.threshold[s] +=
                !graph->ops[ops[i]].view && !tarn_view_is_first_half(view, ops[i]);
        if (threshold[s] > 0 && tarn_view_is_first_half(view, ops[threshold[s] - 1]))
            plan->claim.inside[plan->claim.inside_count++] = s;
    }
}

/* Gives the plan its certificate. */
static enum tarn_status take_bound(struct tarn_plan *plan, const struct tarn_gap_bound *bound,
                                   const struct tarn_view *view)
{
    plan->claim.inside_count = 0;
    plan->claim.inside =
        tarn_region_take(&plan->region, bound->streams_count, sizeof *plan->claim.inside);
    plan->claim.threshold =
        tarn_region_take(&plan->region, bound->streams_count, sizeof *plan->claim.threshold);
    plan->claim.gaps = tarn_region_take(&plan->region, bound->gaps_count, sizeof *plan->claim.gaps);
    if (!plan->claim.threshold || !plan->claim.gaps || !plan->claim.inside) return TARN_SYSTEM;
    plan->claim.bound = bound->bound;
    count_launches(plan, bound->threshold, view);
    plan->claim.gaps_count = bound->gaps_count;
    for (uint32_t i = 0; i < bound->gaps_count; i++)
        plan->claim.gaps[i] = plan->graph->storages[bound->gaps[i]].tensor;
    return TARN_OK;
}

/* Replaces the bound by a better one, if that is found. */
static enum tarn_status find_gaps(struct tarn_planning *planning, uint32_t effort)
{
    struct tarn_reserve reserve =
        tarn_problem_reserve(&planning->problem, planning->plan->alignment);
    struct tarn_gap_bound bound;
    enum tarn_status status = tarn_gap_bound_init(&bound, &planning->region,
                                                  &planning->problem.antichain, &reserve, effort);
    if (status != TARN_OK) return status;
    bool better = !planning->bound.threshold || bound.bound > planning->bound.bound;
    if (!better) return TARN_OK;
    planning->bound = bound;
    return take_bound(planning->plan, &planning->bound, &planning->view);
}

/* For a graph that quick placement leaves above the bound. */
static enum tarn_status raise_bound(void *user, uint64_t *bound)
{
    struct tarn_planning *planning = user;
    enum tarn_status status = find_gaps(planning, TARN_GAP_EFFORT_HIGH);
    *bound = planning->plan->claim.bound;
    return status;
}

/* Says why the capacity is too small for any plan, where that is known. */
static enum tarn_status check_bound(struct tarn_planning *planning, struct tarn_error *error)
{
    struct tarn_reserve reserve =
        tarn_problem_reserve(&planning->problem, planning->plan->alignment);
    uint64_t capacity = planning->options.capacity;
    if (capacity == 0 || planning->bound.bound <= capacity) return TARN_OK;
    planning->needed = planning->bound.bound;
    return tarn_blocking_refuse(&planning->bound, &reserve, capacity, error);
}

/* What there is to place, and what no placement of it can be below: everything that follows from
 * the final graph alone. */
static enum tarn_status find_bound(struct tarn_planning *planning, struct tarn_error *error)
{
    double begin = tarn_now_ms();
    struct tarn_plan *plan = planning->plan;
    if (tarn_view_init(&planning->view, &planning->region, plan->graph) != TARN_OK)
        return tarn_error_no_memory(error);
    enum tarn_status status = tarn_problem_init(&planning->problem, &planning->region,
                                                planning->view.graph, plan->alignment, error);
    if (status != TARN_OK) return status;
    status = find_gaps(planning, TARN_GAP_EFFORT_LOW);
    plan->order_ms += tarn_now_ms() - begin;
    return status == TARN_OK ? check_bound(planning, error) : tarn_error_no_memory(error);
}

/* Planned storages come in the order of the plan's places: roots, then workspaces. */
static void take_offsets(struct tarn_plan *plan, const uint64_t *offset)
{
    for (uint32_t i = 0; i < plan->storages_count; i++) plan->storages[i].offset = offset[i];
    for (uint32_t i = 0; i < plan->workspaces_count; i++)
        plan->workspaces[i].offset = offset[plan->storages_count + i];
}

static void report_progress(void *user, uint64_t footprint, uint64_t steps)
{
    struct tarn_planning *planning = user;
    if (planning->reported != 0 && footprint >= planning->reported) return;
    planning->reported = footprint;
    struct tarn_plan_progress progress = {sizeof progress, footprint, planning->plan->claim.bound,
                                          steps};
    planning->options.progress(planning->options.user, &progress);
}

static uint64_t steps_for(const struct tarn_plan_options *options)
{
    if (options->effort == TARN_NO_EFFORT) return 0;
    if (options->effort == 0) return options->seconds > 0 ? UINT64_MAX : EFFORT_DEFAULT;
    return options->effort;
}

/* 0: no limit, where `seconds` are given and no effort is. */
static uint64_t work_for(const struct tarn_planning *planning, uint64_t steps)
{
    uint64_t work = tarn_work_default(planning->problem.blocks.storages_count);
    if (planning->options.seconds > 0 && planning->options.effort == 0) return 0;
    if (steps <= EFFORT_DEFAULT) return work;
    return steps < UINT64_MAX / work ? work / EFFORT_DEFAULT * steps : 0;
}

/* Seconds that the caller gives are an end by the clock. Else counted work is the end, and the
 * clock a backstop. */
static struct tarn_deadline deadline_for(const struct tarn_planning *planning)
{
    const struct tarn_plan_options *options = &planning->options;
    const atomic_bool *stop = (const atomic_bool *)options->stop;
    if (options->seconds > 0 || options->effort != 0)
        return tarn_deadline_in(stop, options->seconds);
    return (struct tarn_deadline){stop, planning->begin_ms + TARN_WORK_BACKSTOP_MS +
                                            TARN_WORK_BACKSTOP_MS_A_STORAGE *
                                                planning->problem.blocks.storages_count};
}

static void fill_request(struct tarn_planning *planning)
{
    const struct tarn_plan_options *options = &planning->options;
    planning->request.improve = (struct tarn_improve_options){
        .bound = planning->plan->claim.bound,
        .capacity = options->capacity,
        .steps = steps_for(options),
        .work_max = work_for(planning, steps_for(options)),
        .seed = options->seed,
        .threads = options->threads,
        .progress = options->progress ? report_progress : NULL,
        .user = planning,
        .deadline = deadline_for(planning),
    };
}

/* What only a look at every pair can place. */
static enum tarn_status place_pairwise(struct tarn_planning *planning,
                                       struct tarn_place_result *result, struct tarn_error *error)
{
    struct tarn_place_request *request = &planning->request;
    bool is_possible;
    if (request->improve.steps > 0 && raise_bound(planning, &request->improve.bound) != TARN_OK)
        return tarn_error_no_memory(error);
    if (tarn_pairwise_place(&planning->problem, NULL, request, result, &is_possible) != TARN_OK)
        return tarn_error_no_memory(error);
    if (is_possible) return TARN_OK;
    return tarn_error_set(error, TARN_BAD_INPUT,
                          "the graph has contiguous groups whose members lie over each other, and "
                          "%u storages: too many to look at every pair of them",
                          planning->problem.blocks.storages_count);
}

static enum tarn_status place_planned(struct tarn_planning *planning, struct tarn_error *error)
{
    struct tarn_plan *plan = planning->plan;
    struct tarn_place_result result = {0};
    fill_request(planning);
    planning->request.node_limit = planning->options.node_limit;
    planning->request.raise_bound = raise_bound;
    planning->request.user = planning;
    result.offset = tarn_region_take(&planning->region, planning->problem.blocks.storages_count,
                                     sizeof *result.offset);
    enum tarn_status status = result.offset ? TARN_OK : TARN_SYSTEM;
    if (status == TARN_OK && tarn_pairwise_is_needed(planning->view.graph)) {
        status = place_pairwise(planning, &result, error);
        if (status != TARN_OK) return status;
    } else if (status == TARN_OK) {
        status = tarn_place(&planning->problem, &planning->request, &result);
    }
    if (status == TARN_OK) {
        take_offsets(plan, result.offset);
        plan->footprint = result.footprint;
        plan->stopped = result.stopped;
        plan->ended = result.ended;
        planning->cannot_fit = result.cannot_fit;
        plan->method = tarn_region_string(&plan->region, result.method);
        if (!plan->method) status = TARN_SYSTEM;
    }
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(error);
}

/* Nothing persistent is ever released: one behind the other. */
enum tarn_status tarn_planning_persistent(struct tarn_planning *planning, struct tarn_error *error)
{
    struct tarn_plan *plan = planning->plan;
    struct tarn_region region = {.chunks = NULL};
    struct tarn_blocks blocks;
    uint64_t *offset = NULL;
    enum tarn_status status =
        tarn_blocks_init(&blocks, &region, plan->graph, true, planning->options.alignment, error);
    if (status == TARN_OK)
        offset = tarn_region_take(&region, blocks.storages_count, sizeof *offset);
    if (offset) {
        plan->persistent = tarn_blocks_place_in_a_row(&blocks, offset);
        for (uint32_t i = 0; i < blocks.storages_count; i++)
            plan->places_persistent[i].offset = offset[i];
    } else if (status == TARN_OK) {
        status = tarn_error_no_memory(error);
    }
    tarn_region_finish(&region);
    return status;
}

static enum tarn_status check_capacity(struct tarn_planning *planning, struct tarn_error *error)
{
    uint64_t footprint = planning->plan->footprint, capacity = planning->options.capacity;
    enum tarn_status status = check_bound(planning, error);
    if (status != TARN_OK || capacity == 0 || footprint <= capacity) return status;
    planning->needed = footprint;
    if (planning->cannot_fit)
        return tarn_error_set(error, TARN_DOES_NOT_FIT,
                              "no plan fits %llu bytes, although the bound is %llu: exact search "
                              "went through all placements; %s gave the best footprint found, %llu",
                              (unsigned long long)capacity,
                              (unsigned long long)planning->bound.bound, planning->plan->method,
                              (unsigned long long)footprint);
    return tarn_error_set(error, TARN_DOES_NOT_FIT,
                          "the graph needs %llu bytes, the capacity is %llu, short by %llu; "
                          "%s gave the best footprint found",
                          (unsigned long long)footprint, (unsigned long long)capacity,
                          (unsigned long long)(footprint - capacity), planning->plan->method);
}

static enum tarn_status place(struct tarn_planning *planning, struct tarn_error *error)
{
    double begin = tarn_now_ms();
    enum tarn_status status = place_planned(planning, error);
    if (status == TARN_OK) status = check_capacity(planning, error);
    planning->plan->place_ms = tarn_now_ms() - begin;
    return status;
}

/* ---- The whole ---- */

enum tarn_status tarn_planning_run(struct tarn_planning *planning, struct tarn_error *error)
{
    planning->begin_ms = tarn_now_ms();
    enum tarn_status status = find_method(&planning->request, planning->options.method, error);
    if (status != TARN_OK) return status;
    if ((status = find_bound(planning, error)) != TARN_OK) return status;
    return place(planning, error);
}

enum tarn_status tarn_plan_options_take(struct tarn_plan_options *options,
                                        const struct tarn_plan_options *given,
                                        struct tarn_error *error)
{
    struct tarn_place_request request;
    enum tarn_status status =
        tarn_options_take(options, sizeof *options, given, "plan options", error);
    if (status != TARN_OK) return status;
    if (tarn_options_alignment(&options->alignment, error) != TARN_OK) return TARN_USAGE;
    if (tarn_options_seconds(options->seconds, error) != TARN_OK) return TARN_USAGE;
    if (options->boundary > TARN_BOUNDARY_SIMPLE)
        return tarn_error_set(error, TARN_USAGE, "there is no iteration boundary %u",
                              options->boundary);
    if (options->pad_groups > TARN_GROUPS_SMALLER)
        return tarn_error_set(error, TARN_USAGE, "there is no padding %u of groups",
                              options->pad_groups);
    return find_method(&request, options->method, error);
}

void tarn_planned_finish(struct tarn_planned *planned)
{
    tarn_plan_destroy(planned->plan);
    tarn_graph_destroy(planned->graph);
    *planned = (struct tarn_planned){0};
}

bool tarn_planned_is_valid(const struct tarn_planned *planned)
{
    const struct tarn_plan *plan = planned->plan;
    if (!planned->graph) return !plan;
    return !plan || (plan->graph == planned->graph && plan->footprint >= plan->claim.bound);
}
