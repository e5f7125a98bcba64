/* Plans several graphs that share one arena, or whose ranks reach into each other's arenas
 * (symmetric.h). Of those that share one the largest graph is planned first; for the other
 * graphs the first plan that fits into as many bytes is good enough, since the arena is as large as
 * the largest footprint. Then all plans get one layout of the persistent part. Blocks that have a
 * name in common become one, as large as the largest of them (inputs differ from shape to shape).
 * All blocks lie one after the other, in the order in which the plans have them, separately in each
 * memory space.
 *
 *     plan 0    w0 w1 x(32)          all    w0 w1 x(64) w2
 *     plan 1    w0 w1 x(64) w2
 *
 * Cost: the plans' cost, and O(n log n) for n persistent storages of all plans together. */
#include <stdlib.h>
#include <string.h>

#include "asked.h"
#include "place/problem/problem.h"
#include "planner/transform/heartbeat.h"
#include "streams/base/checked.h"
#include "streams/base/options.h"
#include "streams/base/union.h"
#include "streams/graph/report.h"
#include "streams/order/view.h"
#include "streams/plan/switch.h"
#include "streams/verify/verify.h"
#include "symmetric.h"

#define FEW_STEPS 10u /* of search, for a plan that is small enough already */

/* A persistent storage of some plan. */
struct member {
    const char *name;
    uint32_t plan, block; /* blocks of all plans are numbered through */
    tarn_tensor tensor;
    uint64_t within; /* its block */
};

struct family {
    struct tarn_region region;
    struct tarn_plan **plans;
    size_t count;
    tarn_space space;           /* that is laid out, and of each graph that space's part: */
    struct tarn_graph *views;   /* by plan */
    uint32_t **origin;          /* by plan, and storage of the view: storage of the graph */
    struct tarn_blocks *blocks; /* by plan */
    uint32_t *first_block;      /* by plan, and after the last plan */
    struct member *members;     /* by name, then by plan */
    size_t members_count;
    uint32_t *leader;           /* by block: a block that is the same one; itself for a leader */
    uint64_t *size, *alignment; /* by leader */
    uint64_t *start;            /* by leader; UINT64_MAX: not placed yet */
};

/* ---- Blocks that are one ---- */

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->plan > y->plan) - (x->plan < y->plan);
}

static enum tarn_status refuse_groups(const struct family *family, const struct member *member,
                                      const struct member *other, struct tarn_error *error)
{
    if (error && error->status == TARN_OK) error->tensor = member->tensor;
    return tarn_error_set(
        error, TARN_BAD_INPUT,
        "%s lies otherwise in its contiguous group in graph %s than in graph %s: plans that share "
        "an arena must group persistent tensors in the same way",
        tarn_tensor_label(&family->views[member->plan], member->tensor).text,
        tarn_quote(family->views[member->plan].name).text,
        tarn_quote(family->views[other->plan].name).text);
}

static enum tarn_status unite(struct family *family, struct tarn_error *error)
{
    for (size_t i = 1; i < family->members_count; i++) {
        const struct member *member = &family->members[i], *before = member - 1;
        if (strcmp(member->name, before->name) != 0) continue;
        if (member->within != before->within) return refuse_groups(family, member, before, error);
        uint32_t a = tarn_union_root(family->leader, before->block),
                 b = tarn_union_root(family->leader, member->block);
        family->leader[a > b ? a : b] = a > b ? b : a;
    }
    return TARN_OK;
}

/* No two blocks of a plan may have become one. */
static enum tarn_status check_groups(struct family *family, struct tarn_error *error)
{
    uint32_t blocks = family->first_block[family->count];
    uint32_t *seen =
        tarn_region_take(&family->region, blocks, sizeof *seen); /* leader: block + 1 */
    if (!seen) return tarn_error_no_memory(error);
    for (size_t p = 0; p < family->count; p++) {
        for (uint32_t b = family->first_block[p]; b < family->first_block[p + 1]; b++) {
            uint32_t leader = tarn_union_root(family->leader, b);
            if (seen[leader] > family->first_block[p]) {
                struct tarn_block block =
                    tarn_block_at(&family->blocks[p], b - family->first_block[p]);
                const struct tarn_graph *graph = &family->views[p];
                struct member member = {.plan = (uint32_t)p,
                                        .tensor = graph->storages[block.members[0]].tensor};
                return refuse_groups(family, &member, &(struct member){.plan = 0}, error);
            }
            seen[leader] = b + 1;
        }
    }
    return TARN_OK;
}

/* ---- The blocks of all plans ---- */

static enum tarn_status take_blocks(struct family *family, struct tarn_error *error)
{
    struct tarn_region *region = &family->region;
    family->blocks = tarn_region_take(region, family->count, sizeof *family->blocks);
    family->first_block = tarn_region_take(region, family->count + 1, sizeof *family->first_block);
    family->views = tarn_region_take(region, family->count, sizeof *family->views);
    family->origin = tarn_region_take(region, family->count, sizeof *family->origin);
    if (region->is_exhausted) return tarn_error_no_memory(error);
    for (size_t p = 0; p < family->count; p++)
        if (tarn_view_of_space(&family->views[p], region, family->plans[p]->graph, family->space,
                               &family->origin[p]))
            return tarn_error_no_memory(error);
    for (size_t p = 0; p < family->count; p++) {
        const struct tarn_plan *plan = family->plans[p];
        uint64_t alignment = tarn_space_alignment(plan->graph, family->space, plan->alignment);
        enum tarn_status status =
            tarn_blocks_init(&family->blocks[p], region, &family->views[p], true, alignment, error);
        if (status != TARN_OK) return status;
        family->first_block[p + 1] = family->first_block[p] + family->blocks[p].count;
        family->members_count += family->blocks[p].storages_count;
    }
    uint32_t blocks = family->first_block[family->count];
    family->members = tarn_region_take(region, family->members_count, sizeof *family->members);
    family->leader = tarn_region_take(region, blocks, sizeof *family->leader);
    family->size = tarn_region_take(region, blocks, sizeof *family->size);
    family->alignment = tarn_region_take(region, blocks, sizeof *family->alignment);
    family->start = tarn_region_take(region, blocks, sizeof *family->start);
    return region->is_exhausted ? tarn_error_no_memory(error) : TARN_OK;
}

static void take_members(struct family *family)
{
    struct member *next = family->members;
    for (size_t p = 0; p < family->count; p++) {
        const struct tarn_graph *graph = &family->views[p];
        const struct tarn_blocks *blocks = &family->blocks[p];
        for (uint32_t b = 0; b < blocks->count; b++) {
            struct tarn_block block = tarn_block_at(blocks, b);
            for (uint32_t i = 0; i < block.members_count; i++) {
                tarn_tensor tensor = graph->storages[block.members[i]].tensor;
                *next++ = (struct member){
                    .name = graph->tensors[tensor].name,
                    .plan = (uint32_t)p,
                    .block = family->first_block[p] + b,
                    .tensor = tensor,
                    .within = blocks->within[block.members[i] - blocks->storages_begin]};
            }
        }
    }
    if (family->members_count > 0)
        qsort(family->members, family->members_count, sizeof *family->members, compare_members);
}

/* Names and sizes, as sessions will ask for them. */
static enum tarn_status check_names(const struct family *family, struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    for (size_t p = 0; p < family->count && status == TARN_OK; p++) {
        for (size_t q = 0; q <= p && status == TARN_OK; q++) {
            struct tarn_region region = {.chunks = NULL};
            uint32_t *same;
            status = tarn_switch_match(family->plans[q], family->plans[p], &region, &same, error);
            tarn_region_finish(&region);
            if (status == TARN_USAGE) status = TARN_BAD_INPUT; /* a rule across graphs */
        }
    }
    return status;
}

/* ---- One layout ---- */

static void size_blocks(struct family *family)
{
    uint32_t blocks = family->first_block[family->count];
    for (uint32_t b = 0; b < blocks; b++) {
        family->leader[b] = b;
        family->start[b] = UINT64_MAX;
    }
}

static void measure_blocks(struct family *family)
{
    for (size_t p = 0; p < family->count; p++) {
        for (uint32_t b = 0; b < family->blocks[p].count; b++) {
            struct tarn_block block = tarn_block_at(&family->blocks[p], b);
            uint32_t leader = tarn_union_root(family->leader, family->first_block[p] + b);
            if (block.size > family->size[leader]) family->size[leader] = block.size;
            if (block.alignment > family->alignment[leader])
                family->alignment[leader] = block.alignment;
        }
    }
}

static enum tarn_status place_blocks(struct family *family, struct tarn_error *error)
{
    uint64_t end = 0;
    for (uint32_t b = 0; b < family->first_block[family->count]; b++) {
        if (tarn_union_root(family->leader, b) != b)
            continue; /* the first of its like is the leader */
        if (!tarn_size_round_up(end, family->alignment[b], &family->start[b]) ||
            !tarn_size_add(family->start[b], family->size[b], &end))
            return tarn_error_set(error, TARN_BAD_INPUT, "the persistent part exceeds 64 bits");
    }
    for (size_t p = 0; p < family->count; p++) {
        struct tarn_plan *plan = family->plans[p];
        const struct tarn_blocks *blocks = &family->blocks[p];
        uint64_t *offset =
            tarn_region_take(&family->region, blocks->storages_count, sizeof *offset);
        if (!offset) return tarn_error_no_memory(error);
        for (uint32_t b = 0; b < blocks->count; b++) {
            uint32_t leader = tarn_union_root(family->leader, family->first_block[p] + b);
            tarn_block_put(blocks, tarn_block_at(blocks, b), family->start[leader], offset);
        }
        for (uint32_t i = 0; i < blocks->storages_count; i++) {
            uint32_t a = family->origin[p][family->views[p].planned_count + i];
            plan->places_persistent[a - plan->graph->planned_count].offset = offset[i];
        }
        *(plan->spaces ? &plan->spaces[family->space].persistent : &plan->persistent) = end;
    }
    return TARN_OK;
}

/* The layout has the persistent storages of all plans, so each plan may need more than alone. */
static enum tarn_status check_capacity(const struct family *family, struct tarn_error *error)
{
    for (size_t p = 0; p < family->count; p++) {
        const struct tarn_plan *plan = family->plans[p];
        const struct tarn_space_info *info = &plan->graph->spaces[family->space];
        if (!plan->spaces || info->capacity == 0) continue;
        const struct tarn_plan_space *space = &plan->spaces[family->space];
        if (space->persistent <= info->capacity &&
            space->footprint <= info->capacity - space->persistent)
            continue;
        return tarn_error_set(
            error, TARN_DOES_NOT_FIT,
            "memory space %u %.80s: the persistent part that all plans of the family share has "
            "%s, and the arena of graph %s %llu; the capacity is %llu",
            family->space, tarn_quote(info->name).text, tarn_bytes_phrase(space->persistent).text,
            tarn_quote(plan->graph->name).text, (unsigned long long)space->footprint,
            (unsigned long long)info->capacity);
    }
    return TARN_OK;
}

static enum tarn_status lay_out_space(struct tarn_plan **plans, size_t count, tarn_space space,
                                      struct tarn_error *error)
{
    struct family family = {.plans = plans, .count = count, .space = space};
    enum tarn_status status = take_blocks(&family, error);
    if (status == TARN_OK) {
        take_members(&family);
        size_blocks(&family);
        status = unite(&family, error);
    }
    if (status == TARN_OK) status = check_groups(&family, error);
    if (status == TARN_OK) {
        measure_blocks(&family);
        status = place_blocks(&family, error);
    }
    if (status == TARN_OK) status = check_capacity(&family, error);
    tarn_region_finish(&family.region);
    return status;
}

/* Spaces lie one after the other in one range of offsets. */
static bool stack_spaces(struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    if (plan->spaces && !tarn_plan_stack_spaces(plan)) return false;
    for (uint32_t i = 0; i < plan->places_persistent_count; i++)
        plan->places_persistent[i].offset +=
            tarn_plan_space_begin(plan, graph->storages[graph->planned_count + i].space, true);
    return true;
}

static enum tarn_status lay_out(struct tarn_plan **plans, size_t count, struct tarn_error *error)
{
    struct family family = {.plans = plans, .count = count};
    uint32_t spaces = tarn_graph_spaces_count(plans[0]->graph);
    enum tarn_status status = check_names(&family, error);
    for (tarn_space s = 0; s < spaces && status == TARN_OK; s++)
        status = lay_out_space(plans, count, s, error);
    for (size_t p = 0; p < count && status == TARN_OK; p++)
        if (!stack_spaces(plans[p]))
            status = tarn_error_set(error, TARN_BAD_INPUT, "the persistent part exceeds 64 bits");
    return status;
}

/* ---- The plans ---- */

/* A call, as the thread that works sees it. */
struct planning_family {
    struct tarn_graph *const *graphs;
    size_t count;
    const struct tarn_plan_options *given; /* as the caller has them */
    struct tarn_plan **plans;
    bool of_ranks; /* nothing is shared */
    struct tarn_region region;
    uint64_t *bounds; /* of the graphs */
    struct tarn_error *error;
};

static enum tarn_status find_bounds(struct planning_family *call)
{
    call->bounds = tarn_region_take(&call->region, call->count, sizeof *call->bounds);
    if (!call->bounds) return tarn_error_no_memory(call->error);
    enum tarn_status status = TARN_OK;
    for (size_t i = 0; i < call->count && status == TARN_OK; i++)
        status = tarn_graph_bound(call->graphs[i], &call->bounds[i], call->error);
    return status;
}

/* Finds the graph with the highest bound among the graphs without a plan. */
static size_t find_largest(const struct planning_family *call)
{
    size_t largest = call->count;
    for (size_t i = 0; i < call->count; i++) {
        if (call->plans[i]) continue;
        if (largest == call->count || call->bounds[i] > call->bounds[largest]) largest = i;
    }
    return largest;
}

/* The search for a plan that fits ends at the first one, perhaps above the bound. Another search
 * with few steps, but without a capacity, finds plans that are easily lower. */
static enum tarn_status make_smaller(struct tarn_graph *graph,
                                     const struct tarn_plan_options *given, struct tarn_plan **plan,
                                     struct tarn_error *error)
{
    struct tarn_plan_options options = *given;
    struct tarn_plan_summary summary;
    struct tarn_plan *other;
    tarn_plan_summarize(*plan, &summary);
    bool is_stopped = summary.stopped == TARN_STOP_REQUEST || given->effort == TARN_NO_EFFORT;
    if (summary.optimal || is_stopped) return TARN_OK;
    options.effort = FEW_STEPS;
    enum tarn_status status = tarn_plan_create(graph, &options, &other, error);
    if (status != TARN_OK) {
        tarn_plan_destroy(*plan);
        *plan = NULL;
        return status;
    }
    bool is_smaller = tarn_plan_footprint(other) < summary.footprint;
    tarn_plan_destroy(is_smaller ? *plan : other);
    if (is_smaller) *plan = other;
    return TARN_OK;
}

static enum tarn_status plan_within(struct tarn_graph *graph, const struct tarn_plan_options *given,
                                    uint64_t footprint, struct tarn_plan **plan,
                                    struct tarn_error *error)
{
    struct tarn_plan_options options = *given;
    if (options.capacity == 0 && !options.budget) options.capacity = footprint;
    enum tarn_status status = tarn_plan_create(graph, &options, plan, error);
    if (given->capacity > 0 || given->budget || footprint == 0) return status;
    if (status == TARN_DOES_NOT_FIT) return tarn_plan_create(graph, given, plan, error);
    return status != TARN_OK ? status : make_smaller(graph, given, plan, error);
}

static enum tarn_status plan_all(const struct tarn_plan_options *options, void *subject)
{
    struct planning_family *call = subject;
    struct tarn_plan **plans = call->plans;
    uint64_t footprint = 0;
    enum tarn_status status = find_bounds(call);
    for (size_t made = 0; made < call->count && status == TARN_OK; made++) {
        size_t i = find_largest(call);
        status = plan_within(call->graphs[i], options, call->of_ranks ? 0 : footprint, &plans[i],
                             call->error);
        if (status == TARN_OK && tarn_plan_footprint(plans[i]) > footprint)
            footprint = tarn_plan_footprint(plans[i]);
    }
    if (status == TARN_OK)
        status = tarn_symmetric_lay_out(plans, call->count, options, call->error);
    if (status == TARN_OK) status = tarn_family_check_begins(plans, call->count, call->error);
    if (status == TARN_OK && !call->of_ranks) status = lay_out(plans, call->count, call->error);
    for (size_t i = 0; i < call->count && status == TARN_OK; i++)
        status = tarn_plan_verify(plans[i], call->graphs[i], NULL, NULL, call->error);
    if (status == TARN_OK) status = tarn_family_verify(plans, call->count, call->error);
    for (size_t i = 0; i < call->count && status == TARN_OK; i++)
        status = tarn_asked_note(plans[i], call->given, call->count, call->error);
    tarn_region_finish(&call->region);
    return status;
}

static enum tarn_status plan_graphs(struct planning_family *call, struct tarn_error *error)
{
    struct tarn_plan_options options;
    for (size_t i = 0; i < call->count; i++) call->plans[i] = NULL;
    tarn_error_clear(error);
    call->error = error;
    for (size_t i = 0; i < call->count; i++)
        if (!call->graphs[i]) return tarn_error_set(error, TARN_USAGE, "graph %zu is NULL", i);
    enum tarn_status status =
        tarn_options_take(&options, sizeof options, call->given, "plan options", error);
    if (status == TARN_OK) status = tarn_run_with_heartbeat(&options, plan_all, call);
    for (size_t i = 0; i < call->count && status; i++) {
        tarn_plan_destroy(call->plans[i]);
        call->plans[i] = NULL;
    }
    return status;
}

enum tarn_status tarn_family_plan(struct tarn_graph *const *graphs, size_t count,
                                  const struct tarn_plan_options *given, struct tarn_plan **plans,
                                  struct tarn_error *error)
{
    struct planning_family call = {
        .graphs = graphs, .count = count, .given = given, .plans = plans};
    for (size_t i = 0; plans && i < count; i++) plans[i] = NULL;
    if (!graphs || !plans || count == 0) return tarn_error_null(error, __func__);
    return plan_graphs(&call, error);
}

enum tarn_status tarn_ranks_plan(struct tarn_graph *const *graphs, size_t count,
                                 const struct tarn_plan_options *given, struct tarn_plan **plans,
                                 struct tarn_error *error)
{
    struct planning_family call = {
        .graphs = graphs, .count = count, .given = given, .plans = plans, .of_ranks = true};
    for (size_t i = 0; plans && i < count; i++) plans[i] = NULL;
    if (!graphs || !plans || count == 0) return tarn_error_null(error, __func__);
    return plan_graphs(&call, error);
}
