/* Lanes: for some of the planned storages, the data that a scan for conflicts reads, side by side
 * in memory.
 *
 * The chosen storages keep the order of conflict.h's slots. So a placed storage's conflicts again
 * lie in a prefix of every stream: the storages whose own first[.][its stream] is beyond its
 * position. The numbers are signed because the vector units of every x86-64 compare signed
 * numbers. */
#ifndef TARN_PLANNER_PLACE_LOWEST_LANES_H
#define TARN_PLANNER_PLACE_LOWEST_LANES_H

#include "planner/place/problem/problem.h"
#include "streams/base/region.h"

enum { TARN_LANE_RUN = 64 };

struct tarn_lanes {
    const struct tarn_conflicts *conflicts;
    uint32_t count;      /* of chosen storages */
    uint32_t runs_count; /* of 64 of them */
    uint32_t *storage;   /* place in the lanes -> storage */
    uint32_t *below;  /* slot -> how many chosen storages have lower slots; one more at the end */
    int32_t *row;     /* [stream][place]: first */
    int32_t *highest; /* [stream][place / 64]: the highest first of the run */
};

/* chosen: by storage. Lives in the region, and reads the conflicts as long. TARN_SYSTEM: no memory.
 */
enum tarn_status tarn_lanes_init(struct tarn_lanes *lanes, struct tarn_region *region,
                                 const struct tarn_conflicts *conflicts, const bool *chosen);

/* The places of stream s whose storages are not preceded by a storage with first[.][s] = first:
 * [tarn_lanes_begin, tarn_lanes_end). */
static inline uint32_t tarn_lanes_begin(const struct tarn_lanes *lanes, uint32_t s)
{
    return lanes->below[lanes->conflicts->begin[s]];
}

static inline uint32_t tarn_lanes_end(const struct tarn_lanes *lanes, uint32_t s, uint32_t first)
{
    const struct tarn_conflicts *conflicts = lanes->conflicts;
    return lanes->below[conflicts->slot_at[conflicts->ops_begin[s] + first]];
}

#endif
