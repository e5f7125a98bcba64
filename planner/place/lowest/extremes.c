/* Computes extremes, once for all places, and again for the remaining ones: a placement that never
 * restores a state may forget placed blocks. Cost: O(T S) at first, 64 numbers for each narrowing;
 * T S / 8 bytes.
 */
#include "extremes.h"

#include <assert.h>
#include <string.h>

enum { RUN = TARN_LANE_RUN };

static struct tarn_extreme join(struct tarn_extreme a, struct tarn_extreme b)
{
    return (struct tarn_extreme){a.highest > b.highest ? a.highest : b.highest,
                                 a.lowest < b.lowest ? a.lowest : b.lowest};
}

static uint32_t places_in_run(const struct tarn_lanes *lanes, uint32_t run)
{
    uint32_t begin = run * RUN, left = begin < lanes->count ? lanes->count - begin : 0;
    return left < RUN ? left : RUN;
}

void tarn_extremes_narrow_run(struct tarn_extremes *extremes, const struct tarn_lanes *lanes,
                              const struct tarn_lane_kernels *kernels, uint32_t t, uint32_t run,
                              const int32_t *limit)
{
    const int32_t *row = lanes->row + (size_t)t * lanes->count + (size_t)run * RUN;
    struct tarn_extreme *own = &extremes->nodes[0][(size_t)t * extremes->nodes_count[0] + run];
    kernels->extremes(row, limit + (size_t)run * RUN, places_in_run(lanes, run), &own->highest,
                      &own->lowest);
}

/* Of all places of a run. */
static struct tarn_extreme measure(const struct tarn_lanes *lanes, uint32_t t, uint32_t run)
{
    const int32_t *row = lanes->row + (size_t)t * lanes->count + (size_t)run * RUN;
    struct tarn_extreme range = {0, INT32_MAX};
    uint32_t count = places_in_run(lanes, run);
    for (uint32_t i = 0; i < count; i++) range = join(range, (struct tarn_extreme){row[i], row[i]});
    return range;
}

void tarn_extremes_narrow(struct tarn_extremes *extremes, uint32_t t, uint32_t level, uint32_t node)
{
    uint32_t begin = node * TARN_NODE_CHILDREN, end = begin + TARN_NODE_CHILDREN;
    assert(level > 0 && level < extremes->levels_count && node < extremes->nodes_count[level]);
    struct tarn_extreme range = {0, INT32_MAX};
    if (end > extremes->nodes_count[level - 1]) end = extremes->nodes_count[level - 1];
    for (uint32_t child = begin; child < end; child++)
        range = join(range, tarn_extremes_of(extremes, t, level - 1, child));
    extremes->nodes[level][(size_t)t * extremes->nodes_count[level] + node] = range;
}

static enum tarn_status take_nodes(struct tarn_extremes *extremes, struct tarn_region *region,
                                   size_t streams_count)
{
    bool ok = true;
    for (uint32_t level = 0; level < extremes->levels_count; level++) {
        size_t count = streams_count * extremes->nodes_count[level];
        extremes->nodes[level] = tarn_region_take(region, count, sizeof *extremes->nodes[level]);
        ok = ok && extremes->nodes[level];
    }
    return ok ? TARN_OK : TARN_SYSTEM;
}

/* Levels up to the first of few nodes. */
static void shape(struct tarn_extremes *extremes, uint32_t places)
{
    memset(extremes, 0, sizeof *extremes);
    do {
        uint32_t shift = tarn_node_shift(extremes->levels_count);
        assert(extremes->levels_count < TARN_LEVELS_MAX);
        extremes->nodes_count[extremes->levels_count++] = (places >> shift) + 1;
    } while (extremes->nodes_count[extremes->levels_count - 1] > TARN_NODE_CHILDREN);
}

enum tarn_status tarn_extremes_init(struct tarn_extremes *extremes, struct tarn_region *region,
                                    const struct tarn_lanes *lanes, uint32_t places)
{
    uint32_t streams_count = lanes->conflicts->reuse.streams_count;
    shape(extremes, places);
    if (take_nodes(extremes, region, streams_count) != TARN_OK) return TARN_SYSTEM;
    for (uint32_t t = 0; t < streams_count; t++) {
        for (uint32_t run = 0; run < extremes->nodes_count[0]; run++)
            extremes->nodes[0][(size_t)t * extremes->nodes_count[0] + run] = measure(lanes, t, run);
        for (uint32_t level = 1; level < extremes->levels_count; level++)
            for (uint32_t node = 0; node < extremes->nodes_count[level]; node++)
                tarn_extremes_narrow(extremes, t, level, node);
    }
    return TARN_OK;
}

enum tarn_status tarn_extremes_init_copy(struct tarn_extremes *extremes, struct tarn_region *region,
                                         const struct tarn_extremes *other, uint32_t streams_count)
{
    *extremes = *other;
    memset(extremes->nodes, 0, sizeof extremes->nodes);
    return take_nodes(extremes, region, streams_count);
}

void tarn_extremes_copy(struct tarn_extremes *extremes, const struct tarn_extremes *other,
                        uint32_t streams_count)
{
    for (uint32_t level = 0; level < other->levels_count; level++)
        memcpy(extremes->nodes[level], other->nodes[level],
               (size_t)streams_count * other->nodes_count[level] * sizeof *other->nodes[level]);
}
