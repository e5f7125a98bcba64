/* The highest and lowest entries of lanes' rows in every node of a tree over the places. They tell,
 * without looking at the places of a node, that no place or every place is in conflict with a
 * storage.
 *
 *     level 2   ┌──────── 16 nodes ────────┐ ...
 *     level 1   ┌── 16 runs ──┐ ...               a node of level n is
 *     level 0   64 places │ 64 places │ ...       place >> tarn_node_shift(n)
 */
#ifndef TARN_PLANNER_PLACE_LOWEST_EXTREMES_H
#define TARN_PLANNER_PLACE_LOWEST_EXTREMES_H

#include "kernels.h"
#include "lanes.h"

enum { TARN_NODE_CHILDREN = 16, TARN_LEVELS_MAX = 8 };

static inline uint32_t tarn_node_shift(uint32_t level) { return 6 + 4 * level; }

struct tarn_extreme {
    int32_t highest, lowest;
};

struct tarn_extremes {
    uint32_t levels_count;
    uint32_t nodes_count[TARN_LEVELS_MAX];
    struct tarn_extreme *nodes[TARN_LEVELS_MAX]; /* by level: [stream][node] */
};

/* Makes a tree over a number of places that covers the lanes' places. Lives in the region.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_extremes_init(struct tarn_extremes *extremes, struct tarn_region *region,
                                    const struct tarn_lanes *lanes, uint32_t places);
/* Room for the extremes of the same lanes. */
enum tarn_status tarn_extremes_init_copy(struct tarn_extremes *extremes, struct tarn_region *region,
                                         const struct tarn_extremes *other, uint32_t streams_count);

void tarn_extremes_copy(struct tarn_extremes *extremes, const struct tarn_extremes *other,
                        uint32_t streams_count);

/* Narrows a run, a node of level 0, of stream t to the places whose limit is not INT32_MAX. */
void tarn_extremes_narrow_run(struct tarn_extremes *extremes, const struct tarn_lanes *lanes,
                              const struct tarn_lane_kernels *kernels, uint32_t t, uint32_t run,
                              const int32_t *limit);
/* Narrows a node of a higher level to the extremes of its children. */
void tarn_extremes_narrow(struct tarn_extremes *extremes, uint32_t t, uint32_t level,
                          uint32_t node);

static inline struct tarn_extreme tarn_extremes_of(const struct tarn_extremes *extremes, uint32_t t,
                                                   uint32_t level, uint32_t node)
{
    return extremes->nodes[level][(size_t)t * extremes->nodes_count[level] + node];
}

#endif
