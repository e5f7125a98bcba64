/* Of the plan's own offsets as many are kept as the given ones allow, if that stays within the
 * limit; else all are placed anew around the given ones (pairwise.h). Cost: that of pairwise
 * placement. */
#include "again.h"

#include <assert.h>

#include "planner/place/pairwise.h"
#include "streams/base/error.h"

static bool take_part(struct tarn_again *again)
{
    struct tarn_region *region = &again->part.region;
    again->part.graph = &again->view;
    again->part.streams_count = again->plan->streams_count;
    again->block_of =
        tarn_region_take(region, again->plan->graph->storages_count, sizeof *again->block_of);
    for (uint32_t a = 0; again->block_of && a < again->plan->graph->storages_count; a++)
        again->block_of[a] = TARN_NONE;
    return again->block_of;
}

enum tarn_status tarn_again_init(struct tarn_again *again, const struct tarn_plan *plan,
                                 tarn_space space, const struct tarn_plan_options *options,
                                 struct tarn_error *error)
{
    *again = (struct tarn_again){.plan = plan, .space = space};
    again->part.alignment = tarn_space_alignment(plan->graph, space, plan->alignment);
    again->planning = (struct tarn_planning){.options = *options, .plan = &again->part};
    again->planning.options.alignment = again->part.alignment;
    again->planning.options.capacity = 0;
    again->planning.options.progress = NULL;
    again->planning.options.keep = (struct tarn_places){NULL, 0};
    enum tarn_status status =
        tarn_view_of_space(&again->view, &again->part.region, plan->graph, space, &again->origin);
    if (status != TARN_OK || !take_part(again)) return tarn_error_no_memory(error);
    status = tarn_planning_begin(&again->planning, error);
    if (status != TARN_OK) return status;
    again->problem = &again->planning.problem;
    for (uint32_t b = 0; b < again->problem->blocks.count; b++) {
        struct tarn_block block = tarn_block_at(&again->problem->blocks, b);
        for (uint32_t i = 0; i < block.members_count; i++)
            again->block_of[again->origin[block.members[i]]] = b;
    }
    return TARN_OK;
}

void tarn_again_finish(struct tarn_again *again)
{
    tarn_region_finish(&again->planning.region);
    tarn_region_finish(&again->view.region);
    tarn_region_finish(&again->part.region);
}

uint64_t tarn_again_start(const struct tarn_again *again, uint32_t block)
{
    const struct tarn_blocks *blocks = &again->problem->blocks;
    uint32_t a = tarn_block_at(blocks, block).members[0];
    return tarn_plan_offset_in_space(again->plan, again->origin[a]) - blocks->within[a];
}

static bool holds(const struct tarn_again *again, const uint64_t *fixed, const uint64_t *offset)
{
    const struct tarn_blocks *blocks = &again->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++) {
        uint32_t a = tarn_block_at(blocks, b).members[0];
        if (fixed[b] != TARN_NO_OFFSET && offset[a] != fixed[b] + blocks->within[a]) return false;
    }
    return true;
}

static enum tarn_status keep(const struct tarn_again *again, const uint64_t *fixed, uint64_t limit,
                             uint64_t *offset)
{
    const struct tarn_blocks *blocks = &again->problem->blocks;
    struct tarn_region region = {.chunks = NULL};
    uint64_t *wanted = tarn_region_take(&region, blocks->count, sizeof *wanted);
    if (!wanted) return TARN_SYSTEM;
    for (uint32_t b = 0; b < blocks->count; b++)
        wanted[b] = fixed[b] == TARN_NO_OFFSET ? tarn_again_start(again, b) : TARN_NO_OFFSET;
    for (uint32_t a = 0; a < blocks->storages_count; a++)
        offset[a] = tarn_plan_offset_in_space(again->plan, again->origin[a]);
    enum tarn_status status = tarn_pairwise_keep(again->problem, fixed, wanted, limit, offset);
    tarn_region_finish(&region);
    return status;
}

enum tarn_status tarn_again_place(struct tarn_again *again, const uint64_t *fixed, uint64_t limit,
                                  uint64_t *offset, uint64_t *footprint, struct tarn_error *error)
{
    const struct tarn_blocks *blocks = &again->problem->blocks;
    if (keep(again, fixed, limit, offset) != TARN_OK) return tarn_error_no_memory(error);
    *footprint = tarn_blocks_footprint(blocks, offset);
    if (holds(again, fixed, offset)) return TARN_OK;
    return tarn_planning_place_at(&again->planning, fixed, limit, offset, footprint, error);
}

/* ---- A heap of its own ---- */

/* The plan's graph without the bytes of fixed blocks; they have offsets. */
static bool leave_out(const struct tarn_again *again, const uint64_t *fixed, uint64_t *offset,
                      struct tarn_region *region, struct tarn_graph *bare)
{
    const struct tarn_blocks *blocks = &again->problem->blocks;
    const struct tarn_graph *graph = again->plan->graph;
    struct tarn_storage *storages =
        tarn_region_copy(region, graph->storages, graph->storages_count, sizeof *storages);
    if (!storages) return false;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        if (fixed[b] == TARN_NO_OFFSET) continue;
        tarn_block_put(blocks, block, fixed[b], offset);
        for (uint32_t i = 0; i < block.members_count; i++)
            storages[again->origin[block.members[i]]].size = 0;
    }
    *bare = tarn_graph_view(graph);
    bare->storages = storages;
    return true;
}

/* Storages of a view keep the order that they have in the graph. */
static enum tarn_status place_rest(struct tarn_again *again, const struct tarn_graph *bare,
                                   uint64_t floor, struct tarn_region *region, uint64_t *offset,
                                   uint64_t *footprint, struct tarn_error *error)
{
    struct tarn_graph view = {.name = NULL};
    uint32_t *origin;
    struct tarn_plan part = {.alignment = again->part.alignment,
                             .streams_count = again->part.streams_count};
    struct tarn_planning planning = {.options = again->planning.options, .plan = &part};
    enum tarn_status status = tarn_view_of_space(&view, region, bare, again->space, &origin);
    part.graph = &view;
    part.storages_count = view.planned_count;
    if (status == TARN_OK)
        part.storages = tarn_region_take(region, part.storages_count, sizeof *part.storages);
    status = part.storages ? tarn_planning_run(&planning, error) : tarn_error_no_memory(error);
    for (uint32_t a = 0, own = 0; a < part.storages_count && status == TARN_OK; a++) {
        while (again->origin[own] != origin[a]) own++;
        offset[own] = floor + part.storages[a].offset;
    }
    *footprint = floor + part.footprint;
    tarn_region_finish(&planning.region);
    tarn_region_finish(&part.region);
    tarn_region_finish(&view.region);
    return status;
}

enum tarn_status tarn_again_place_above(struct tarn_again *again, const uint64_t *fixed,
                                        uint64_t floor, uint64_t *offset, uint64_t *footprint,
                                        struct tarn_error *error)
{
    const struct tarn_blocks *blocks = &again->problem->blocks;
    struct tarn_region region = {.chunks = NULL};
    struct tarn_graph bare;
    for (uint32_t b = 0; b < blocks->count; b++) {
        uint64_t mask = tarn_block_at(blocks, b).alignment - 1;
        floor = (floor + mask) & ~mask;
    }
    enum tarn_status status =
        leave_out(again, fixed, offset, &region, &bare)
            ? place_rest(again, &bare, floor, &region, offset, footprint, error)
            : tarn_error_no_memory(error);
    tarn_region_finish(&region);
    return status;
}
