/* Makes lanes: a compact selection of the conflicts' slots. Making one is a copy of the chosen
 * columns of `first` in slot order; a count of chosen slots below each slot translates the ends of
 * prefixes. Cost: O(T S) time, 4 bytes per chosen storage and stream. */
#include "lanes.h"

#include <assert.h>

static void number_places(struct tarn_lanes *lanes, const bool *chosen)
{
    const struct tarn_conflicts *conflicts = lanes->conflicts;
    uint32_t total = conflicts->reuse.count;
    for (uint32_t a = 0; a < total; a++)
        if (chosen[a]) lanes->below[conflicts->slot_of[a]] = 1;
    for (uint32_t slot = 0; slot <= total; slot++) {
        uint32_t is_chosen = slot < total ? lanes->below[slot] : 0;
        lanes->below[slot] = lanes->count;
        lanes->count += is_chosen;
    }
}

static void copy_columns(struct tarn_lanes *lanes)
{
    const struct tarn_reuse *reuse = &lanes->conflicts->reuse;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        const uint32_t *first = reuse->first + (size_t)s * reuse->count;
        int32_t *row = lanes->row + (size_t)s * lanes->count;
        int32_t *highest = lanes->highest + (size_t)s * lanes->runs_count;
        for (uint32_t i = 0; i < lanes->count; i++) {
            row[i] = (int32_t)first[lanes->storage[i]];
            int32_t *top = &highest[i / TARN_LANE_RUN];
            *top = row[i] > *top ? row[i] : *top;
        }
    }
}

enum tarn_status tarn_lanes_init(struct tarn_lanes *lanes, struct tarn_region *region,
                                 const struct tarn_conflicts *conflicts, const bool *chosen)
{
    const struct tarn_reuse *reuse = &conflicts->reuse;
    size_t streams_count = reuse->streams_count;
    assert(tarn_reuse_longest(reuse) <= INT32_MAX);
    *lanes = (struct tarn_lanes){.conflicts = conflicts};
    lanes->below = tarn_region_take(region, (size_t)reuse->count + 1, sizeof *lanes->below);
    if (!lanes->below) return TARN_SYSTEM;
    number_places(lanes, chosen);
    lanes->runs_count = lanes->count / TARN_LANE_RUN + 1;
    assert(lanes->count <= reuse->count);
    lanes->storage = tarn_region_take(region, lanes->count, sizeof *lanes->storage);
    lanes->row = tarn_region_take(region, streams_count * lanes->count, sizeof *lanes->row);
    lanes->highest =
        tarn_region_take(region, streams_count * lanes->runs_count, sizeof *lanes->highest);
    if (!lanes->storage || !lanes->row || !lanes->highest) return TARN_SYSTEM;
    for (uint32_t a = 0; a < reuse->count; a++)
        if (chosen[a]) lanes->storage[lanes->below[conflicts->slot_of[a]]] = a;
    copy_columns(lanes);
    return TARN_OK;
}
