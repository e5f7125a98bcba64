/* Folds repetition: in schedules of microbatches and in stacks of equal layers the same storages
 * recur. Storages with the same role are put into classes whose members share one offset. This
 * leaves a problem of a few periods, however long the graph is. */
#ifndef TARN_PLANNER_PLACE_FOLD_H
#define TARN_PLANNER_PLACE_FOLD_H

#include "planner/place/problem/problem.h"

struct tarn_fold_member {
    uint64_t role;
    uint32_t position; /* of its producer in its stream */
    uint32_t block;
};

struct tarn_fold {
    const struct tarn_problem *problem;
    struct tarn_fold_member *members; /* lone blocks by role, then position */
    uint32_t count;
};

/* The problem is of a graph, or a part of such a problem. Lives in the region. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_fold_init(struct tarn_fold *fold, struct tarn_region *region,
                                const struct tarn_problem *problem);

/* leader: block -> the first block of its class, at whose offset it lies; the block itself if it is
 * in no class. Of every role, each `period`-th storage is in the same class; if this would put
 * conflicting storages together, each 2 * period-th, 3 * period-th and so on. Returns the number of
 * leaders. */
uint32_t tarn_fold_lead(const struct tarn_fold *fold, uint32_t period, uint32_t *leader);

#endif
