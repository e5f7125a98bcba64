/* What crosses windows, once it is placed: the obstacles of each window. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_AROUND_H
#define TARN_PLANNER_PLACE_WINDOWS_AROUND_H

#include "cuts.h"
#include "field.h"
#include "planner/place/lowest/lowest.h"
#include "streams/base/region.h"

/* Ranges of bytes that whole runs of windows have to leave free. */

/* Leaf w is node leaves + w, node n has child 2 n. */
struct tarn_span_tree {
    uint32_t leaves;
    struct tarn_spans *node; /* what all of its windows leave free */
};

/* Lives in the region, as all that is added. False: no memory. */
bool tarn_span_tree_init(struct tarn_span_tree *tree, struct tarn_region *region,
                         uint32_t windows_count);

/* To windows begin..end - 1. The span begins at or above all that were added before. False: no
 * memory. */
bool tarn_span_tree_add(const struct tarn_span_tree *tree, struct tarn_region *region,
                        uint32_t begin, uint32_t end, struct tarn_span span);

/* Adds what window w leaves free to the obstacles, which live in the region. */
enum tarn_status tarn_span_tree_collect(const struct tarn_span_tree *tree,
                                        struct tarn_region *region, uint32_t w,
                                        struct tarn_obstacles *obstacles);

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
