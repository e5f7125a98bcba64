/* What crosses windows, once it is placed: the obstacles of each window. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_AROUND_H
#define TARN_PLANNER_PLACE_WINDOWS_AROUND_H

#include "cuts.h"
#include "field.h"
#include "span_tree.h"

struct tarn_around {
    const struct tarn_field *field;
    uint32_t unit_shift;
    const struct tarn_cuts *cuts;
    struct tarn_span_tree wholly; /* what is in conflict with all of a window */
    uint32_t *partly_begin; /* window -> where its entries of `partly` begin; one more at the end */
    uint32_t *partly;       /* storages that cross, by where they begin */
};

/* What crosses the cuts, where the field has it now. Lives in the region, and reads field and cuts
 * as long; `work` is as before in the end. False: no memory. */
bool tarn_around_init(struct tarn_around *around, struct tarn_region *region,
                      struct tarn_region *work, const struct tarn_field *field, uint32_t unit_shift,
                      const struct tarn_cuts *cuts);

/* Adds what crosses window w to the obstacles, and sorts them. False: no memory. */
bool tarn_around_collect(const struct tarn_around *around, struct tarn_region *region, uint32_t w,
                         struct tarn_obstacles *obstacles);

#endif
