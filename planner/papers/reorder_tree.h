/* Makes ROAM's order: segment by segment, with weight updates put at points that memory allows. */
#ifndef TARN_PLANNER_PAPERS_REORDER_TREE_H
#define TARN_PLANNER_PAPERS_REORDER_TREE_H

#include "planner/transform/reorder/reorder.h"
#include "subgraph_tree.h"

/* When to run a branch's update that would not fit beside the present activations. */
enum tarn_reorder_delay {
    TARN_REORDER_DELAY_LARGE, /* later, if its gradient is larger than the average storage */
    TARN_REORDER_DELAY_NONE,  /* at once */
    TARN_REORDER_DELAY_ALL,   /* later */
    TARN_REORDER_DELAYS
};

struct tarn_reorder_tree {
    const struct tarn_reorder_model *model;
    struct tarn_subgraph_tree tree;
    uint32_t *segment;  /* node -> segment in which it runs */
    uint32_t *first;    /* branch -> first segment in which its update may run */
    uint64_t *need;     /* branch -> bytes that its update takes, gradient included */
    uint64_t *gradient; /* branch -> bytes of that alone */
    bool *updates;      /* node -> whether it is part of an update */
    uint64_t *alive;    /* segment -> bytes of activations */
    uint64_t estimate;  /* bytes of all activations */
    uint64_t visits;    /* of complete search, left in this run */
    uint32_t *begin;    /* segment -> the start of its nodes in the order */
};

/* Taken from the region; reads the model as long as it lives. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_tree_init(struct tarn_reorder_tree *tree, struct tarn_region *region,
                                        const struct tarn_reorder_model *model);

/* Writes a legal order. A leaf has at most node_limit (up to TARN_REORDER_EXACT_MAX) nodes of a
 * segment. Within a leaf the order is the guide's order, unless complete search finds a better one;
 * leaves whose peak is at most `enough` are not searched. Uses the state of `exact`, which is reset
 * first; at the end everything has run in it. */
void tarn_reorder_tree_run(struct tarn_reorder_tree *tree, const uint32_t *guide,
                           enum tarn_reorder_delay delay, uint32_t node_limit, uint64_t enough,
                           struct tarn_reorder_exact *exact, uint32_t *order);

#endif
