/* Planning a final graph, space by space as spaces.c calls it: order, bound, place. Each is a step
 * of its own on the plan that the steps before it have filled in. Cost: the placement's, see
 * place/; everything else is near-linear. */
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
#include "streams/graph/report.h"

enum { EFFORT_DEFAULT = 1000 };

/* ---- Options ---- */

/* Placement's own methods, then the methods of papers. */
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

/* The advice for the methods of papers that are no placement. NULL: no such word. */
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

/* Thresholds of a plan count launches, thresholds of the view count all ops. A launch of which only
 * the first half lies before the cut does not count, but its stream is noted. */
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
    planning->last_fixed = TARN_NONE;
    planning->bound = bound;
    return take_bound(planning->plan, &planning->bound, &planning->view);
}

/* ---- Conditionals ---- */

enum { SELECTIONS_MAX = 64 };

/* The bound of an iteration in which these arms are taken. */
static enum tarn_status bound_of_arms(struct tarn_planning *planning, const uint32_t *arms)
{
    const struct tarn_problem *problem = &planning->problem;
    uint32_t count = problem->blocks.storages_count;
    struct tarn_graph bare = *planning->view.graph; /* gaps may be filled by other arms */
    uint64_t *there = tarn_region_take(&planning->region, count, sizeof *there);
    struct tarn_antichain antichain;
    struct tarn_gap_bound bound;
    bare.groups_count = 0;
    if (!there) return TARN_SYSTEM;
    for (uint32_t a = 0; a < count; a++)
        there[a] = tarn_storage_is_there(&bare, a, arms) ? problem->blocks.reserved[a] : 0;
    struct tarn_reserve reserve = {&problem->conflicts.reuse, &bare, there,
                                   planning->plan->alignment};
    enum tarn_status status =
        tarn_antichain_init(&antichain, &planning->region, reserve.reuse, &bare, there);
    if (status == TARN_OK)
        status = tarn_gap_bound_init(&bound, &planning->region, &antichain, &reserve,
                                     TARN_GAP_EFFORT_LOW);
    if (status != TARN_OK) return status;
    if (planning->bound.threshold && bound.bound <= planning->bound.bound) return TARN_OK;
    struct tarn_claim *claim = &planning->plan->claim;
    claim->arms_count = bare.conditionals_count;
    claim->arms = tarn_region_copy(&planning->plan->region, arms, claim->arms_count, sizeof *arms);
    if (!claim->arms) return TARN_SYSTEM;
    planning->bound = bound;
    return take_bound(planning->plan, &planning->bound, &planning->view);
}

/* The heaviest iteration: from the first arms on, one conditional after the other takes the arm
 * that raises the bound most. */
static enum tarn_status find_bound_of_arms(struct tarn_planning *planning)
{
    const struct tarn_graph *graph = planning->view.graph;
    uint32_t conditionals = graph->conditionals_count, tries = 0;
    uint32_t *arms = tarn_region_take(&planning->region, conditionals, sizeof *arms);
    uint32_t *last = tarn_region_take(&planning->region, conditionals, sizeof *last);
    if (!arms || !last) return TARN_SYSTEM;
    for (uint32_t v = 0; v < graph->ops_count; v++)
        for (uint32_t i = 0; i < tarn_extra(&graph->ops[v])->branch_count; i++) {
            const uint32_t *arm = graph->ops[v].extra->branch[i];
            if (arm[1] > last[arm[0]]) last[arm[0]] = arm[1];
        }
    enum tarn_status status = bound_of_arms(planning, arms);
    for (uint32_t c = 0; c < conditionals && status == TARN_OK; c++) {
        uint32_t best = arms[c];
        for (uint32_t arm = 1; arm <= last[c] && tries < SELECTIONS_MAX && status == TARN_OK;
             arm++, tries++) {
            uint64_t before = planning->bound.bound;
            arms[c] = arm;
            status = bound_of_arms(planning, arms);
            if (planning->bound.bound > before) best = arm;
        }
        arms[c] = best;
    }
    return status;
}

/* For a graph that quick placement leaves above the bound. */
static enum tarn_status raise_bound(void *user, uint64_t *bound)
{
    struct tarn_planning *planning = user;
    enum tarn_status status = TARN_OK;
    if (planning->view.graph->conditionals_count == 0)
        status = find_gaps(planning, TARN_GAP_EFFORT_HIGH);
    *bound = planning->plan->claim.bound;
    return status;
}

uint64_t tarn_plan_fixed_end(const struct tarn_graph *graph, uint32_t storage, uint64_t reserved,
                             uint64_t alignment)
{
    uint64_t end;
    if (!tarn_storage_is_fixed(graph, storage)) return 0;
    uint64_t begin = tarn_tensor_wanted(&graph->tensors[graph->storages[storage].tensor]);
    bool is_known =
        tarn_size_add(begin, reserved, &end) && tarn_size_round_up(end, alignment, &end);
    return is_known ? end : 0;
}

/* Raises the bound to the end of the last storage that has a fixed offset. */
static void raise_to_fixed(struct tarn_planning *planning)
{
    const struct tarn_graph *graph = planning->view.graph;
    const struct tarn_blocks *blocks = &planning->problem.blocks;
    planning->last_fixed = TARN_NONE;
    for (uint32_t a = 0; a < blocks->storages_count; a++) {
        uint64_t end =
            tarn_plan_fixed_end(graph, a, blocks->reserved[a], planning->plan->alignment);
        if (end <= planning->bound.bound) continue;
        planning->bound.bound = planning->plan->claim.bound = end;
        planning->last_fixed = a;
    }
}

static enum tarn_status refuse_end(const struct tarn_planning *planning, struct tarn_error *error)
{
    const struct tarn_graph *graph = planning->view.graph;
    uint32_t a = planning->last_fixed;
    if (error) error->tensor = graph->storages[a].tensor;
    return tarn_error_set(
        error, TARN_DOES_NOT_FIT,
        "no plan fits %s, all need %llu or more: %s is fixed at offset %llu; fix it at a "
        "lower one, or raise the capacity",
        tarn_bytes_phrase(planning->options.capacity).text,
        (unsigned long long)planning->bound.bound, tarn_storage_label(graph, a).text,
        (unsigned long long)tarn_tensor_wanted(&graph->tensors[graph->storages[a].tensor]));
}

/* Says why the capacity is too small for any plan, if this is known. */
static enum tarn_status check_bound(struct tarn_planning *planning, struct tarn_error *error)
{
    struct tarn_reserve reserve =
        tarn_problem_reserve(&planning->problem, planning->plan->alignment);
    uint64_t capacity = planning->options.capacity;
    if (capacity == 0 || planning->bound.bound <= capacity) return TARN_OK;
    planning->needed = planning->bound.bound;
    if (planning->last_fixed != TARN_NONE) return refuse_end(planning, error);
    return tarn_blocking_refuse(&planning->bound, &reserve, capacity, error);
}

/* Finds the placement problem and its lower bound: everything that follows from the final graph
 * alone. */
static enum tarn_status find_bound(struct tarn_planning *planning, struct tarn_error *error)
{
    double begin = tarn_now_ms();
    struct tarn_plan *plan = planning->plan;
    if (tarn_view_init(&planning->view, &planning->region, plan->graph) != TARN_OK)
        return tarn_error_no_memory(error);
    enum tarn_status status = tarn_problem_init(&planning->problem, &planning->region,
                                                planning->view.graph, plan->alignment, error);
    if (status != TARN_OK) return status;
    status = planning->view.graph->conditionals_count > 0
                 ? find_bound_of_arms(planning)
                 : find_gaps(planning, TARN_GAP_EFFORT_LOW);
    if (status == TARN_OK) raise_to_fixed(planning);
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

/* Returns the limit of work; 0: no limit, if `seconds` are given and no effort is. */
static uint64_t work_for(const struct tarn_planning *planning, uint64_t steps)
{
    uint64_t work = tarn_work_default(planning->problem.blocks.storages_count);
    if (planning->work_part > 1) work = work / planning->work_part + 1;
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

/* Is a plan within the capacity a reason to end the search? If only a clock would end it, that is
 * asked once the usual steps are made; where there is no usual end, at once. */
static bool ends_at_capacity(const struct tarn_planning *planning, bool *is_late)
{
    const struct tarn_plan_options *options = &planning->options;
    bool by_clock = options->seconds > 0 && options->effort == 0;
    *is_late = !planning->aims && by_clock && planning->request.method == TARN_PLACE_ALL &&
               !tarn_pairwise_is_needed(planning->view.graph);
    return planning->aims || by_clock || planning->request.method == TARN_PLACE_EXACT;
}

static void fill_request(struct tarn_planning *planning)
{
    const struct tarn_plan_options *options = &planning->options;
    bool is_late, ends = ends_at_capacity(planning, &is_late);
    planning->request.enough = is_late ? options->capacity : 0;
    planning->request.improve = (struct tarn_improve_options){
        .bound = planning->plan->claim.bound,
        .capacity = ends && !is_late ? options->capacity : 0,
        .steps = steps_for(options),
        .work_max = work_for(planning, steps_for(options)),
        .seed = options->seed,
        .threads = options->threads,
        .progress = options->progress ? report_progress : NULL,
        .user = planning,
        .deadline = deadline_for(planning),
    };
}

/* ---- Offsets that are fixed, or wished for ---- */

/* The start of a storage's block if the storage is at an offset; TARN_NO_OFFSET: there is none. */
static uint64_t start_of(const struct tarn_blocks *blocks, uint32_t a, uint64_t offset)
{
    return offset >= blocks->within[a] ? offset - blocks->within[a] : TARN_NO_OFFSET;
}

static enum tarn_status refuse_fixed(const struct tarn_graph *graph, uint32_t a, uint32_t b,
                                     const char *why, struct tarn_error *error)
{
    if (error) error->tensor = graph->storages[a].tensor;
    return tarn_error_set(
        error, TARN_BAD_INPUT, "%s is fixed at offset %llu, and %s at %llu: %s",
        tarn_storage_label(graph, a).text,
        (unsigned long long)tarn_tensor_wanted(&graph->tensors[graph->storages[a].tensor]),
        tarn_storage_label(graph, b).text,
        (unsigned long long)tarn_tensor_wanted(&graph->tensors[graph->storages[b].tensor]), why);
}

/* fixed: by block, all TARN_NO_OFFSET. by: block -> the storage that fixes it. */
static enum tarn_status find_fixed(const struct tarn_planning *planning, uint64_t *fixed,
                                   uint32_t *by, struct tarn_error *error)
{
    const struct tarn_blocks *blocks = &planning->problem.blocks;
    const struct tarn_graph *graph = planning->view.graph;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t i = 0; i < block.members_count; i++) {
            uint32_t a = block.members[i];
            if (!tarn_storage_is_fixed(graph, a)) continue;
            uint64_t wanted = tarn_tensor_wanted(&graph->tensors[graph->storages[a].tensor]);
            uint64_t start = start_of(blocks, a, wanted);
            if (fixed[b] != TARN_NO_OFFSET && fixed[b] != start)
                return refuse_fixed(graph, a, by[b], "their contiguous group cannot hold both",
                                    error);
            if (error) error->tensor = graph->storages[a].tensor;
            if (start == TARN_NO_OFFSET || start % block.alignment != 0)
                return tarn_error_set(
                    error, TARN_BAD_INPUT,
                    "%s is fixed at offset %llu, %s of the alignment %llu; fix it elsewhere, or "
                    "ask for another alignment",
                    tarn_storage_label(graph, a).text, (unsigned long long)wanted,
                    block.members_count > 1 ? "where its contiguous group begins at no multiple"
                                            : "which is no multiple",
                    (unsigned long long)block.alignment);
            fixed[b] = start;
            by[b] = a;
        }
    }
    if (error) error->tensor = TARN_NONE;
    return TARN_OK;
}

static enum tarn_status check_fixed(const struct tarn_planning *planning, const uint64_t *fixed,
                                    const uint32_t *by, struct tarn_error *error)
{
    const struct tarn_blocks *blocks = &planning->problem.blocks;
    const struct tarn_graph *graph = planning->view.graph;
    for (uint32_t b = 0; b < blocks->count; b++)
        for (uint32_t o = 0; o < b && fixed[b] != TARN_NO_OFFSET; o++) {
            struct tarn_block x = tarn_block_at(blocks, b), y = tarn_block_at(blocks, o);
            if (fixed[o] == TARN_NO_OFFSET || fixed[b] >= fixed[o] + y.size ||
                fixed[o] >= fixed[b] + x.size)
                continue;
            for (uint32_t i = 0; i < x.members_count; i++)
                for (uint32_t k = 0; k < y.members_count; k++) {
                    uint32_t a = x.members[i], c = y.members[k];
                    uint64_t begin = fixed[b] + blocks->within[a],
                             other = fixed[o] + blocks->within[c];
                    if (begin >= other + blocks->reserved[c] ||
                        other >= begin + blocks->reserved[a] ||
                        tarn_pairwise_may_share(&planning->problem, a, c))
                        continue;
                    return refuse_fixed(graph, by[b], by[o],
                                        "they would share bytes, and both are in use at once",
                                        error);
                }
        }
    return TARN_OK;
}

/* Finds, by block, the offset that the caller prefers, else the graph's preference. *has_any: is
 * there any? */
static enum tarn_status find_wanted(struct tarn_planning *planning, uint64_t *wanted, bool *has_any)
{
    const struct tarn_blocks *blocks = &planning->problem.blocks;
    const struct tarn_graph *graph = planning->view.graph;
    const struct tarn_places *keep = &planning->options.keep;
    uint64_t *kept = tarn_region_take(&planning->region, graph->tensors_count, sizeof *kept);
    if (!kept) return TARN_SYSTEM;
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        kept[t] = graph->tensors[t].offset_rule == TARN_OFFSET_PREFERRED
                      ? tarn_tensor_wanted(&graph->tensors[t])
                      : TARN_NO_OFFSET;
    for (size_t k = 0; k < keep->count; k++)
        if (keep->places[k].id < graph->tensors_count)
            kept[keep->places[k].id] = keep->places[k].offset;
    *has_any = false;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t i = 0; i < block.members_count; i++) {
            uint32_t a = block.members[i], t = graph->storages[a].tensor;
            if (t == TARN_NONE || wanted[b] != TARN_NO_OFFSET || kept[t] == TARN_NO_OFFSET)
                continue;
            wanted[b] = start_of(blocks, a, kept[t]);
        }
        *has_any = *has_any || wanted[b] != TARN_NO_OFFSET;
    }
    return TARN_OK;
}

static uint64_t *no_offsets(struct tarn_planning *planning)
{
    uint32_t count = planning->problem.blocks.count;
    uint64_t *offsets = tarn_region_take(&planning->region, count, sizeof *offsets);
    for (uint32_t b = 0; offsets && b < count; b++) offsets[b] = TARN_NO_OFFSET;
    return offsets;
}

static enum tarn_status refuse_pairs(const struct tarn_planning *planning, struct tarn_error *error)
{
    return tarn_error_set(
        error, TARN_BAD_INPUT,
        "the graph fixes offsets, has conditionals, symmetric groups in a family, or contiguous "
        "groups whose members have offsets or lie over each other, and more pairs of its %u "
        "storages are in use at once than can be listed: plan parts of it as graphs of their own, "
        "or prefer offsets instead of fixing them",
        planning->problem.blocks.storages_count);
}

/* Places a problem that needs a look at every pair. */
static enum tarn_status place_pairwise(struct tarn_planning *planning, uint64_t *fixed,
                                       struct tarn_place_result *result, struct tarn_error *error)
{
    struct tarn_place_request *request = &planning->request;
    uint32_t *by = tarn_region_take(&planning->region, planning->problem.blocks.count, sizeof *by);
    bool is_possible;
    if (!by) return tarn_error_no_memory(error);
    enum tarn_status status = find_fixed(planning, fixed, by, error);
    if (status == TARN_OK) status = check_fixed(planning, fixed, by, error);
    if (status != TARN_OK) return status;
    if (request->improve.steps > 0 && raise_bound(planning, &request->improve.bound) != TARN_OK)
        return tarn_error_no_memory(error);
    if (tarn_pairwise_place(&planning->problem, fixed, request, result, &is_possible) != TARN_OK)
        return tarn_error_no_memory(error);
    return is_possible ? TARN_OK : refuse_pairs(planning, error);
}

static enum tarn_status place_anyhow(struct tarn_planning *planning,
                                     struct tarn_place_result *result, struct tarn_error *error)
{
    uint64_t *fixed = no_offsets(planning), *wanted = no_offsets(planning);
    bool has_wanted = false;
    enum tarn_status status = fixed && wanted ? TARN_OK : tarn_error_no_memory(error);
    if (status == TARN_OK && tarn_pairwise_is_needed(planning->view.graph))
        status = place_pairwise(planning, fixed, result, error);
    else if (status == TARN_OK &&
             tarn_place(&planning->problem, &planning->request, result) != TARN_OK)
        status = tarn_error_no_memory(error);
    if (status == TARN_OK && find_wanted(planning, wanted, &has_wanted) != TARN_OK)
        status = tarn_error_no_memory(error);
    if (status != TARN_OK || !has_wanted) return status;
    uint64_t limit = result->footprint;
    if (planning->options.capacity > limit) limit = planning->options.capacity;
    if (tarn_pairwise_keep(&planning->problem, fixed, wanted, limit, result->offset) != TARN_OK)
        return tarn_error_no_memory(error);
    result->footprint = tarn_blocks_footprint(&planning->problem.blocks, result->offset);
    return TARN_OK;
}

/* Exact search proves something of the larger of the bound and a capacity that it aims at. */
static bool has_proof_at_capacity(const struct tarn_planning *planning)
{
    const struct tarn_improve_options *improve = &planning->request.improve;
    return improve->capacity > 0 || planning->options.capacity <= planning->plan->claim.bound;
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
    if (status == TARN_OK) {
        status = place_anyhow(planning, &result, error);
        if (status != TARN_OK) return status;
    }
    if (status == TARN_OK) {
        take_offsets(plan, result.offset);
        plan->footprint = result.footprint;
        plan->stopped = result.stopped;
        plan->ended = result.ended;
        planning->cannot_fit = result.cannot_fit && has_proof_at_capacity(planning);
        plan->method = tarn_region_string(&plan->region, result.method);
        if (!plan->method) status = TARN_SYSTEM;
    }
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(error);
}

/* Persistent storages are never released, so they lie one after the other. */
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
        tarn_error_set(error, TARN_DOES_NOT_FIT,
                       "no plan fits %s, although the bound is %llu: exact search went "
                       "through all placements; %s gave the best footprint found, %llu",
                       tarn_bytes_phrase(capacity).text, (unsigned long long)planning->bound.bound,
                       planning->plan->method, (unsigned long long)footprint);
    else
        tarn_error_set(error, TARN_DOES_NOT_FIT,
                       "the graph needs %s, the capacity is %llu, short by %llu; "
                       "%s gave the best footprint found%s",
                       tarn_bytes_phrase(footprint).text, (unsigned long long)capacity,
                       (unsigned long long)(footprint - capacity), planning->plan->method,
                       planning->bound.bound < footprint ? "; more effort may find a smaller one"
                                                         : "");
    return tarn_error_found(error, TARN_DOES_NOT_FIT, footprint);
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

enum tarn_status tarn_planning_begin(struct tarn_planning *planning, struct tarn_error *error)
{
    planning->begin_ms = tarn_now_ms();
    enum tarn_status status = find_method(&planning->request, planning->options.method, error);
    return status != TARN_OK ? status : find_bound(planning, error);
}

enum tarn_status tarn_planning_run(struct tarn_planning *planning, struct tarn_error *error)
{
    enum tarn_status status = tarn_planning_begin(planning, error);
    return status != TARN_OK ? status : place(planning, error);
}

enum tarn_status tarn_planning_place_at(struct tarn_planning *planning, const uint64_t *fixed,
                                        uint64_t limit, uint64_t *offset, uint64_t *footprint,
                                        struct tarn_error *error)
{
    struct tarn_place_result result = {.offset = offset};
    planning->begin_ms = tarn_now_ms();
    fill_request(planning);
    planning->request.improve.capacity = limit;
    bool is_possible;
    if (tarn_pairwise_place(&planning->problem, fixed, &planning->request, &result, &is_possible))
        return tarn_error_no_memory(error);
    *footprint = result.footprint;
    return is_possible ? TARN_OK : refuse_pairs(planning, error);
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
