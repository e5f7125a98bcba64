/* The same order with nodes put off where that can only help. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_POSTPONE_H
#define TARN_PLANNER_TRANSFORM_REORDER_POSTPONE_H

#include "planner/transform/list_model.h"

struct tarn_reorder_postpone {
    const struct tarn_reorder_model *model;
    uint32_t *place;  /* node -> where it runs: its own place in the order, or that of the node
                         right before which it is put */
    uint32_t *latest; /* storage -> greatest `place` among the touchers met so far */
    uint32_t *begin;  /* place -> where its nodes begin */
};

/* Arrays from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_postpone_init(struct tarn_reorder_postpone *postpone,
                                            struct tarn_region *region,
                                            const struct tarn_reorder_model *model);

/* Writes the better order to `result`, which is not `order`. No step's memory is higher than that
 * of the same node in `order`, or of the node that it was put before. */
void tarn_reorder_postpone_run(struct tarn_reorder_postpone *postpone, const uint32_t *order,
                               uint32_t *result);

#endif
