/* Finds the obstacles of each window: the placed storages that cross it. */
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
    struct tarn_spans *node; /* the spans that are free in all of its windows */
};

/* Lives in the region, like everything added later. False: no memory. */
bool tarn_span_tree_init(struct tarn_span_tree *tree, struct tarn_region *region,
                         uint32_t windows_count);

/* Adds a span to windows begin..end - 1. It must begin at or above all spans added before. False:
 * no memory. */
bool tarn_span_tree_add(const struct tarn_span_tree *tree, struct tarn_region *region,
                        uint32_t begin, uint32_t end, struct tarn_span span);

/* Adds the spans of window w to the obstacles, which live in the region. */
enum tarn_status tarn_span_tree_collect(const struct tarn_span_tree *tree,
                                        struct tarn_region *region, uint32_t w,
                                        struct tarn_obstacles *obstacles);

struct tarn_around {
    const struct tarn_field *field;
    uint32_t unit_shift;
    const struct tarn_cuts *cuts;
    struct tarn_span_tree wholly; /* storages in conflict with every storage of a window */
    uint32_t *partly_begin;       /* window -> start of its entries in `partly`; windows + 1 */
    uint32_t *partly;             /* storages that cross, by their offsets */
};

/* Collects the storages that cross the cuts, at their present offsets in the field. Lives in the
 * region, and reads field and cuts for its whole life; `work` is as before in the end. False: no
 * memory. */
bool tarn_around_init(struct tarn_around *around, struct tarn_region *region,
                      struct tarn_region *work, const struct tarn_field *field, uint32_t unit_shift,
                      const struct tarn_cuts *cuts);

/* Adds the storages that cross window w to the obstacles, and sorts the obstacles. False: no
 * memory. */
bool tarn_around_collect(const struct tarn_around *around, struct tarn_region *region, uint32_t w,
                         struct tarn_obstacles *obstacles);

#endif
