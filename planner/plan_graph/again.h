/* Places the storages of one memory space of a finished plan again, some of them at given offsets:
 * for what plans of several graphs must have at one place. */
#ifndef TARN_PLANNER_PLAN_GRAPH_AGAIN_H
#define TARN_PLANNER_PLAN_GRAPH_AGAIN_H

#include "planning.h"

struct tarn_again {
    const struct tarn_plan *plan;
    tarn_space space;
    struct tarn_graph view; /* of the space */
    uint32_t *origin;       /* storage of the view -> of the plan's graph */
    struct tarn_plan part;  /* of the view */
    struct tarn_planning planning;
    const struct tarn_problem *problem; /* what is placed */
    uint32_t *block_of;                 /* storage of the plan's graph -> block, or TARN_NONE */
};

/* Everything but `plan` and `space`, which are given, is made; the caller finishes it whatever this
 * returns. The options come from tarn_plan_options_take; their capacity does not count. */
enum tarn_status tarn_again_init(struct tarn_again *again, const struct tarn_plan *plan,
                                 tarn_space space, const struct tarn_plan_options *options,
                                 struct tarn_error *error);
void tarn_again_finish(struct tarn_again *again);

/* Where a block begins in the plan as it is. */
uint64_t tarn_again_start(const struct tarn_again *again, uint32_t block);

/* Writes offsets of all planned storages of the view (by storage) and the footprint. fixed: by
 * block, where it must begin, or UINT64_MAX; they do not clash. What is within `limit` is good
 * enough: the plan's own offsets are kept as far as they may be, if that does it. TARN_BAD_INPUT:
 * too many pairs of storages to look at; TARN_SYSTEM. */
enum tarn_status tarn_again_place(struct tarn_again *again, const uint64_t *fixed, uint64_t limit,
                                  uint64_t *offset, uint64_t *footprint, struct tarn_error *error);

/* The same with a heap of its own for some blocks: those that `fixed` names are where it says,
 * below `floor`, and all others at or above that, as if the former were not there. */
enum tarn_status tarn_again_place_above(struct tarn_again *again, const uint64_t *fixed,
                                        uint64_t floor, uint64_t *offset, uint64_t *footprint,
                                        struct tarn_error *error);

#endif
