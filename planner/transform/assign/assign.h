/* Assigns every node to a stream, and orders the nodes, by two methods. Their results are allocated
 * from the region; all other memory is released. */
#ifndef TARN_PLANNER_TRANSFORM_ASSIGN_ASSIGN_H
#define TARN_PLANNER_TRANSFORM_ASSIGN_ASSIGN_H

#include "planner/transform/list_model.h"

struct tarn_assignment {
    uint32_t *stream; /* node -> stream */
    uint32_t *order;  /* all nodes, each after the nodes that it waits for */
    uint32_t streams_count;
};

/* Room for the nodes of a model, in streams that are still to be chosen. TARN_SYSTEM: no memory. */
enum tarn_status tarn_assignment_init(struct tarn_assignment *assignment,
                                      struct tarn_region *region,
                                      const struct tarn_reorder_model *model);
/* Does the order have every node once, after the nodes that it waits for, and are the streams below
 * their count? Also true if there is no memory to find out. For assertions; cost: linear. */
bool tarn_assignment_is_valid(const struct tarn_assignment *assignment,
                              const struct tarn_reorder_model *model);

/* Streams that are alike: nodes of a pool may run in any of them. */
enum { TARN_POOLS_MAX = 4 };
struct tarn_stream_pools {
    uint32_t count, streams_count;
    uint32_t begin[TARN_POOLS_MAX], end[TARN_POOLS_MAX]; /* pool p has the streams [begin, end) */
    const uint8_t *pool;                                 /* node -> pool */
};

/* List scheduling by the cost model of tarn/simulate.h. TARN_SYSTEM: no memory.
 * O(V (log V + N) + E N) for N streams, a dozen times. */
enum tarn_status tarn_assign_schedule(struct tarn_assignment *assignment,
                                      struct tarn_region *region,
                                      const struct tarn_reorder_model *model,
                                      const struct tarn_stream_pools *pools, uint32_t wait_ns);

/* No assignment to these pools has a shorter schedule, even if waits took no time: the maximum of
 * the longest chain and an even share of the work, and more than either if both matter. */
enum tarn_status tarn_assign_limit(uint64_t *limit_ns, struct tarn_region *region,
                                   const struct tarn_reorder_model *model,
                                   const struct tarn_stream_pools *pools);

/* Streams in which every node happens before the next one anyway: the fewest paths that cover the
 * arcs' transitive reduction, so that nodes that could run side by side are never put in one
 * stream, with the fewest arcs between streams. O(V E / 64 + E sqrt V), and V^2 / 8 bytes. */
enum tarn_status tarn_assign_paths(struct tarn_assignment *assignment, struct tarn_region *region,
                                   const struct tarn_reorder_model *model);

#endif
