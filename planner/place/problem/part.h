/* Some storages of a problem as a problem of its own, of its own size: what only takes a window of
 * a million storages costs as much as a small graph does. */
#ifndef TARN_PLANNER_PLACE_PROBLEM_PART_H
#define TARN_PLANNER_PLACE_PROBLEM_PART_H

#include "planner/place/somas/baseline.h"

/* Its storages are numbered in the order of the whole's slots; its streams are those that produce
 * any of them; positions count these storages, one after the other, and `first` is where what is
 * in the part may follow. */
struct tarn_part {
    struct tarn_problem problem; /* of the members below */
    uint32_t *origin;            /* storage -> that of the whole problem */
    uint32_t *origin_block;      /* block -> that of the whole problem */
    struct tarn_graph graph;     /* only what placement reads */
    uint32_t *ops;               /* storage -> its producer: the ops of the part's streams */
    struct tarn_reuse reuse;
    struct tarn_blocks blocks;
    struct tarn_conflicts conflicts;
};

/* block_of: storage of the whole -> block. storages: whole blocks, in the order of slots. Lives in
 * the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_part_init(struct tarn_part *part, struct tarn_region *region,
                                const struct tarn_problem *whole, const uint32_t *block_of,
                                const uint32_t *storages, uint32_t count);

#endif
