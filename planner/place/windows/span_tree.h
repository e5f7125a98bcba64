/* Ranges of bytes that whole runs of windows have to leave free. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_SPAN_TREE_H
#define TARN_PLANNER_PLACE_WINDOWS_SPAN_TREE_H

#include "planner/place/lowest/lowest.h"
#include "streams/base/region.h"

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

#endif
