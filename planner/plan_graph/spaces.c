/* Plans a graph that declares memory spaces: one problem for each space, placed separately, since
 * storages of different spaces cannot conflict. A space's capacity holds for its arena and its
 * persistent part together. The caller's capacity is the capacity of the first space. Cost: the sum
 * of the spaces' costs. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "plan_graph.h"
#include "planning.h"
#include "streams/base/checked.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/graph/report.h"

static struct tarn_place *place_of(struct tarn_plan *plan, uint32_t storage)
{
    return (struct tarn_place *)tarn_plan_place(plan, storage);
}

/* A plan of the view alone, with room for all of its offsets. */
static bool begin_part(struct tarn_plan *part, struct tarn_plan *plan, struct tarn_graph *view)
{
    part->graph = view;
    part->streams_count = plan->streams_count;
    part->storages_count = view->planned_count;
    part->places_persistent_count = view->storages_count - view->planned_count;
    part->storages = tarn_region_take(&plan->region, part->storages_count, sizeof *part->storages);
    part->places_persistent = tarn_region_take(&plan->region, part->places_persistent_count,
                                               sizeof *part->places_persistent);
    part->region = plan->region;
    return part->storages && part->places_persistent;
}

static void take_part(struct tarn_plan *plan, const struct tarn_plan *part, const uint32_t *origin)
{
    plan->region = part->region;
    plan->order_ms += part->order_ms;
    plan->place_ms += part->place_ms;
    if (part->stopped != TARN_STOP_NONE) plan->stopped = part->stopped;
    if (part->ended > plan->ended) plan->ended = part->ended;
    for (uint32_t a = 0; a < part->storages_count; a++)
        place_of(plan, origin[a])->offset = part->storages[a].offset;
    for (uint32_t a = 0; a < part->places_persistent_count; a++)
        place_of(plan, origin[part->storages_count + a])->offset =
            part->places_persistent[a].offset;
}

/* The text so far, with the space's name before it. */
static enum tarn_status name_space(enum tarn_status status, const struct tarn_space_info *info,
                                   uint32_t s, struct tarn_error *error)
{
    char text[400];
    if (status != TARN_DOES_NOT_FIT || !error) return status;
    snprintf(text, sizeof text, "%.399s", error->text);
    snprintf(error->text, sizeof error->text, "memory space %u %.80s: %s", s,
             tarn_quote(info->name).text, text);
    return status;
}

/* *left: the part of the space's capacity that is left for its arena; UINT64_MAX: no limit. */
static enum tarn_status find_capacity(const struct tarn_planning *planning,
                                      const struct tarn_space_info *info, uint64_t *left,
                                      struct tarn_error *error)
{
    uint64_t persistent = planning->plan->persistent;
    *left = UINT64_MAX;
    if (info->capacity == 0) return TARN_OK;
    if (info->capacity <= persistent && planning->plan->graph->planned_count > 0)
        return tarn_error_set(error, TARN_DOES_NOT_FIT,
                              "the persistent part has %s, which leave nothing of the "
                              "capacity of %llu for an arena",
                              tarn_bytes_phrase(persistent).text,
                              (unsigned long long)info->capacity);
    if (info->capacity < persistent)
        return tarn_error_set(
            error, TARN_DOES_NOT_FIT, "the persistent part needs %s, the capacity is %llu",
            tarn_bytes_phrase(persistent).text, (unsigned long long)info->capacity);
    *left = info->capacity - persistent;
    return TARN_OK;
}

/* A capacity that is an aim ends the search. One of the graph's is a limit first: the plan is as
 * small as without it, and if it does not fit and may be aimed at, the search is repeated. */
static enum tarn_status place_within(struct tarn_planning *planning, uint64_t left,
                                     struct tarn_error *error)
{
    uint64_t *capacity = &planning->options.capacity;
    if (*capacity > left || (!planning->aims && *capacity == 0 && left < UINT64_MAX))
        *capacity = left;
    enum tarn_status status = tarn_planning_run(planning, error);
    if (status != TARN_OK || planning->plan->footprint <= left) return status;
    tarn_region_finish(&planning->region);
    *planning = (struct tarn_planning){.options = planning->options,
                                       .aims = planning->aims,
                                       .work_part = planning->work_part,
                                       .plan = planning->plan};
    *capacity = left;
    return tarn_planning_run(planning, error);
}

static enum tarn_status plan_space(struct tarn_plan *plan, struct tarn_planning *whole, uint32_t s,
                                   struct tarn_error *error)
{
    struct tarn_plan part = {.alignment =
                                 tarn_space_alignment(plan->graph, s, whole->options.alignment)};
    struct tarn_planning planning = {.options = whole->options,
                                     .aims = whole->aims,
                                     .work_part = whole->work_part,
                                     .plan = &part};
    struct tarn_region region = {.chunks = NULL};
    struct tarn_graph view;
    uint32_t *origin;
    uint64_t left = UINT64_MAX;
    const struct tarn_space_info *info = &plan->graph->spaces[s];
    planning.options.alignment = part.alignment;
    enum tarn_status status = tarn_view_of_space(&view, &region, plan->graph, s, &origin);
    if (status == TARN_OK && !begin_part(&part, plan, &view)) status = TARN_SYSTEM;
    if (status != TARN_OK) {
        tarn_region_finish(&region);
        return tarn_error_no_memory(error);
    }
    status = tarn_planning_persistent(&planning, error);
    if (s > 0) planning.options.capacity = 0;
    if (status == TARN_OK && s >= whole->unlimited)
        status = find_capacity(&planning, info, &left, error);
    if (status == TARN_OK) status = place_within(&planning, left, error);
    if (s == 0) whole->needed = planning.needed;
    take_part(plan, &part, origin);
    plan->spaces[s] = (struct tarn_plan_space){.footprint = part.footprint,
                                               .persistent = part.persistent,
                                               .claim = part.claim,
                                               .method = part.method};
    tarn_region_finish(&planning.region);
    tarn_region_finish(&view.region);
    tarn_region_finish(&region);
    return name_space(status, info, s, error);
}

/* ---- One space, some storages without bytes ---- */

static bool has_empty(const struct tarn_graph *graph)
{
    for (uint32_t a = 0; a < graph->planned_count; a++)
        if (graph->storages[a].size == 0) return true;
    return false;
}

/* Storages without bytes stay at offset 0, and are not in the problem. */
static enum tarn_status plan_filled(struct tarn_planning *whole, struct tarn_error *error)
{
    struct tarn_plan *plan = whole->plan, part = {.alignment = plan->alignment};
    struct tarn_planning planning = {.options = whole->options,
                                     .aims = whole->aims,
                                     .work_part = whole->work_part,
                                     .plan = &part};
    struct tarn_region region = {.chunks = NULL};
    struct tarn_graph view;
    uint32_t *origin;
    enum tarn_status status = tarn_view_of_space(&view, &region, plan->graph, 0, &origin);
    if (status == TARN_OK && !begin_part(&part, plan, &view)) status = TARN_SYSTEM;
    if (status != TARN_OK) {
        tarn_region_finish(&region);
        return tarn_error_no_memory(error);
    }
    status = tarn_planning_persistent(&planning, error);
    if (status == TARN_OK) status = tarn_planning_run(&planning, error);
    whole->needed = planning.needed;
    take_part(plan, &part, origin);
    plan->footprint = part.footprint;
    plan->persistent = part.persistent;
    plan->claim = part.claim;
    plan->method = part.method;
    tarn_region_finish(&planning.region);
    tarn_region_finish(&view.region);
    tarn_region_finish(&region);
    return status;
}

/* Bytes of the first memory space's persistent part. */
static enum tarn_status find_persistent(const struct tarn_graph *graph, uint64_t alignment,
                                        struct tarn_region *region, uint64_t *bytes)
{
    struct tarn_graph view = {.name = NULL};
    struct tarn_blocks blocks;
    uint32_t *origin;
    uint64_t *offset = NULL;
    enum tarn_status status = tarn_view_of_space(&view, region, graph, 0, &origin);
    if (status == TARN_OK)
        status = tarn_blocks_init(&blocks, region, &view, true,
                                  tarn_space_alignment(graph, 0, alignment), NULL);
    if (status == TARN_OK) offset = tarn_region_take(region, blocks.storages_count, sizeof *offset);
    if (offset) *bytes = tarn_blocks_place_in_a_row(&blocks, offset);
    tarn_region_finish(&view.region);
    return offset ? TARN_OK : TARN_SYSTEM;
}

enum tarn_status tarn_plan_capacity(const struct tarn_graph *graph,
                                    const struct tarn_plan_options *options, uint64_t *capacity,
                                    struct tarn_error *error)
{
    struct tarn_region region = {.chunks = NULL};
    uint64_t own = graph->spaces_count > 0 ? graph->spaces[0].capacity : 0, persistent = 0;
    *capacity = options->capacity;
    if (*capacity == 0 || own == 0) return TARN_OK;
    enum tarn_status status = find_persistent(graph, options->alignment, &region, &persistent);
    tarn_region_finish(&region);
    if (status != TARN_OK) return tarn_error_no_memory(error);
    uint64_t left = own > persistent ? own - persistent : 1;
    if (left < *capacity) *capacity = left;
    return TARN_OK;
}

/* All spaces lie one after the other in one range of offsets. */
static enum tarn_status stack(struct tarn_plan *plan, struct tarn_error *error)
{
    const struct tarn_graph *graph = plan->graph;
    const struct tarn_plan_space *first = &plan->spaces[0];
    if (!tarn_plan_stack_spaces(plan))
        return tarn_error_set(error, TARN_BAD_INPUT, "all memory spaces together exceed 64 bits");
    for (uint32_t a = 0; a < graph->storages_count; a++)
        place_of(plan, a)->offset +=
            tarn_plan_space_begin(plan, graph->storages[a].space, graph->storages[a].persistent);
    plan->claim = first->claim;
    plan->method = first->method;
    return TARN_OK;
}

static enum tarn_status plan_spaces(struct tarn_planning *planning, struct tarn_error *error)
{
    struct tarn_plan *plan = planning->plan;
    uint32_t count = plan->graph->spaces_count;
    plan->spaces = tarn_region_take(&plan->region, count, sizeof *plan->spaces);
    if (!plan->spaces) return tarn_error_no_memory(error);
    plan->spaces_count = count;
    enum tarn_status status = TARN_OK;
    for (uint32_t s = 0; s < count && status == TARN_OK; s++)
        status = plan_space(plan, planning, s, error);
    return status == TARN_OK ? stack(plan, error) : status;
}

/* ---- The whole ---- */

static enum tarn_status run(struct tarn_planning *planning, struct tarn_graph *graph,
                            struct tarn_error *error)
{
    double begin = tarn_now_ms();
    struct tarn_plan *plan = planning->plan = tarn_plan_of_graph(graph);
    if (!plan) return tarn_error_no_memory(error);
    plan->alignment = planning->options.alignment;
    plan->order_ms = tarn_now_ms() - begin;
    if (graph->spaces_count > 0) return plan_spaces(planning, error);
    if (has_empty(graph)) return plan_filled(planning, error);
    enum tarn_status status = tarn_planning_persistent(planning, error);
    return status == TARN_OK ? tarn_planning_run(planning, error) : status;
}

static enum tarn_status make(struct tarn_planning *planning, struct tarn_graph *graph,
                             struct tarn_plan **plan, struct tarn_error *error)
{
    assert(tarn_is_power_of_two(planning->options.alignment));
    *plan = NULL;
    enum tarn_status status = run(planning, graph, error);
    tarn_region_finish(&planning->region);
    assert(status != TARN_OK || planning->plan->footprint >= planning->plan->claim.bound);
    if (status == TARN_OK)
        *plan = planning->plan;
    else
        tarn_plan_destroy(planning->plan);
    return status;
}

enum tarn_status tarn_plan_make(struct tarn_graph *graph, const struct tarn_plan_options *options,
                                uint32_t unlimited, struct tarn_plan **plan,
                                struct tarn_error *error)
{
    struct tarn_planning planning = {.options = *options, .unlimited = unlimited, .aims = true};
    return make(&planning, graph, plan, error);
}

enum tarn_status tarn_planned_make(struct tarn_planned *planned,
                                   const struct tarn_plan_options *options, bool aims,
                                   uint32_t work_part, struct tarn_error *error)
{
    struct tarn_planning planning = {.options = *options, .aims = aims, .work_part = work_part};
    enum tarn_status status = make(&planning, planned->graph, &planned->plan, error);
    planned->needed = planning.needed;
    return status;
}

bool tarn_plan_keeps_capacities(const struct tarn_plan *plan)
{
    for (uint32_t s = 0; s < plan->spaces_count; s++) {
        const struct tarn_plan_space *space = &plan->spaces[s];
        uint64_t capacity = plan->graph->spaces[s].capacity;
        bool fits =
            space->persistent <= capacity && space->footprint <= capacity - space->persistent;
        if (capacity > 0 && !fits) return false;
    }
    return true;
}
