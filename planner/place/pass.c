/* Runs one pass of lowest-offset-first, with the first priority order. A placement looks at most at
 * every unsafe pair, whose number is counted before: if a placement would take too long, the pass
 * goes window by window. Source: docs/how-it-works.md, "Placement". Cost: see greedy.c and
 * windows.c. */
#include "search.h"

#include <assert.h>
#include <string.h>

#include "planner/place/windows/windows.h"

/* The maximum work of a placement, fixed and for each storage. */
#define PLACEMENT_MAX UINT64_C(1000000000)
enum { PLACEMENT_A_STORAGE = 6000 };
/* Storages in a window. */
enum { WINDOW = 1024 };

/* Writes a plan into `found`. *placed: false if it was too high to be counted. */
static enum tarn_status place(const struct tarn_field *field, struct tarn_region *region,
                              const uint32_t *storages, uint32_t unit_shift, uint64_t *found,
                              bool *placed)
{
    const struct tarn_blocks *blocks = &field->problem->blocks;
    const struct tarn_windows_settings settings = {.unit_shift = unit_shift};
    const struct tarn_placements first = {.end = 1}; /* the first priority order alone */
    struct tarn_obstacles none = {.unit_shift = unit_shift,
                                  .reuse = &field->problem->conflicts.reuse};
    int32_t top = INT32_MAX;
    bool ok = tarn_obstacles_sort(&none, region) == TARN_OK &&
              tarn_field_place(field, region, &settings, storages, blocks->storages_count, &none,
                               first, &top);
    *placed = ok && top < INT32_MAX;
    for (uint32_t b = 0; *placed && b < blocks->count; b++)
        tarn_block_put(blocks, tarn_block_at(blocks, b), (uint64_t)field->offset[b] << unit_shift,
                       found);
    return ok ? TARN_OK : TARN_SYSTEM;
}

static enum tarn_status place_trial(const struct tarn_problem *problem, uint64_t *offset,
                                    uint64_t *footprint)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    size_t count = blocks->storages_count;
    struct tarn_region region = {.chunks = NULL};
    struct tarn_field field;
    uint32_t *storages = tarn_region_take(&region, count, sizeof *storages);
    uint64_t *found = tarn_region_take(&region, count, sizeof *found);
    enum tarn_status status = TARN_SYSTEM;
    bool placed = false;
    if (tarn_field_init(&field, &region, problem)) {
        for (uint32_t a = 0; a < blocks->storages_count; a++)
            storages[problem->conflicts.slot_of[a]] = a;
        status = place(&field, &region, storages, tarn_lowest_unit_shift(blocks, *footprint), found,
                       &placed);
    }
    if (placed && tarn_blocks_footprint(blocks, found) < *footprint) {
        *footprint = tarn_blocks_footprint(blocks, found);
        memcpy(offset, found, count * sizeof *offset);
    }
    tarn_region_finish(&region);
    return status;
}

enum tarn_status tarn_pass_place(const struct tarn_problem *problem, uint32_t threads,
                                 uint64_t *offset, uint64_t *footprint)
{
    struct tarn_work_costs costs;
    enum tarn_status status = tarn_work_estimate(problem, &costs);
    if (status != TARN_OK) return status;
    assert(problem->blocks.storages_begin == 0);
    uint64_t most = PLACEMENT_MAX + (uint64_t)PLACEMENT_A_STORAGE * problem->blocks.storages_count;
    if (costs.place <= most) return place_trial(problem, offset, footprint);
    const struct tarn_windows_options options = {
        .aim = *footprint, .width = WINDOW, .threads = threads};
    return tarn_windows_place(problem, &options, offset, footprint);
}
