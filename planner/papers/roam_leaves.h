/* The leaves of the subgraph tree, for a layout: parts of the forward pass, each with the part of
 * the backward pass that needs its activations.
 *
 *     list order   │ leaf 2 │  leaf 1  │ leaf 0 │ leaf 0 │   leaf 1   │   leaf 2   │
 *                     └────────└──────────└── activations ──┘            │
 *                  0                       turning cut                 nodes
 */
#ifndef TARN_PLANNER_PAPERS_ROAM_LEAVES_H
#define TARN_PLANNER_PAPERS_ROAM_LEAVES_H

#include "planner/place/problem/problem.h"
#include "streams/base/region.h"

/* The traits of a block. Times are places in list order; the turning cut is the node at which the
 * forward pass ends. */
struct tarn_roam_block {
    uint32_t birth, death; /* of the first and last node that touches it; pinned: past all nodes */
    uint32_t leaf;
    bool activation; /* born up to the turning cut, dies after it */
};

struct tarn_roam_leaves {
    struct tarn_roam_block *blocks; /* by block of the problem */
    uint32_t count;                 /* leaf 0 is the innermost one */
};

/* Taken from the region. node_limit: nodes that a leaf has at most, unless a single segment has
 * more. TARN_SYSTEM: no memory. */
enum tarn_status tarn_roam_leaves_init(struct tarn_roam_leaves *leaves, struct tarn_region *region,
                                       const struct tarn_problem *problem, uint32_t node_limit);

#endif
