/* What no order can be below. While node v runs, some set of nodes has run: all that come before v,
 * none that comes after, and with every node its predecessors. The least that can be alive with
 * such a set, and what v makes, bound the memory of v's step in every order, hence the peak. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_BOUND_H
#define TARN_PLANNER_TRANSFORM_REORDER_BOUND_H

#include "flow.h"
#include "planner/transform/list_model.h"

/* Where a node stands beside v. */
enum tarn_reorder_side { TARN_REORDER_FREE, TARN_REORDER_BEFORE, TARN_REORDER_AFTER };

/* A case: `before` runs before `after`, which the graph leaves open. */
struct tarn_reorder_case {
    uint32_t before, after;
};

#define TARN_REORDER_CASES_MAX 16

struct tarn_reorder_bound {
    const struct tarn_reorder_model *model;
    struct tarn_flow flow;
    uint8_t *side;       /* node -> enum tarn_reorder_side; v itself is AFTER */
    uint32_t *name;      /* free node -> node of the network */
    uint32_t *queue;     /* nodes to visit; after a cut the free nodes, ascending */
    uint32_t free_count; /* nodes that are ordered with v neither by the graph nor by the cases */
    /* Bounds are for orders in which these hold; they make no cycle. */
    struct tarn_reorder_case cases[TARN_REORDER_CASES_MAX];
    uint32_t cases_count;
};

/* Arrays from the region, but for those of the flow, which grow. TARN_SYSTEM: no memory; *bound can
 * be finished in any case. */
enum tarn_status tarn_reorder_bound_init(struct tarn_reorder_bound *bound,
                                         struct tarn_region *region,
                                         const struct tarn_reorder_model *model);
void tarn_reorder_bound_finish(struct tarn_reorder_bound *bound);

/* The least memory of v's step, by a minimum cut. Afterwards `side` tells who has run in a set that
 * reaches it: the smallest such set, no node is FREE any more. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_bound_at(struct tarn_reorder_bound *bound, uint32_t v,
                                       uint64_t *least);
/* After that: the largest such set instead. */
void tarn_reorder_bound_enlarge(struct tarn_reorder_bound *bound);

/* Was u ordered with the v of the last cut neither by the graph nor by the cases? */
bool tarn_reorder_bound_was_free(const struct tarn_reorder_bound *bound, uint32_t u);

#endif
