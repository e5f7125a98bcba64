/* A lower bound on the peak of every order. While node v runs, some set of nodes has run: all nodes
 * that come before v, none that comes after, and with every node its predecessors. The fewest bytes
 * that can be alive with such a set, plus the bytes that v makes, bound the memory of v's step in
 * every order, hence the peak. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_BOUND_H
#define TARN_PLANNER_TRANSFORM_REORDER_BOUND_H

#include "flow.h"
#include "planner/transform/list_model.h"
#include "planner/transform/steps.h"

/* The order of a node relative to v. */
enum tarn_reorder_side { TARN_REORDER_FREE, TARN_REORDER_BEFORE, TARN_REORDER_AFTER };

/* A case: `before` runs before `after`, which the graph leaves open. */
struct tarn_reorder_case {
    uint32_t before, after;
};

#define TARN_REORDER_CASES_MAX 16

struct tarn_reorder_bound {
    const struct tarn_reorder_model *model;
    struct tarn_reorder_flow flow;
    uint8_t *side;       /* node -> enum tarn_reorder_side; v itself is AFTER */
    uint32_t *name;      /* free node -> node of the network */
    uint32_t *queue;     /* nodes to visit; after a cut the free nodes, ascending */
    uint32_t free_count; /* nodes that are ordered with v neither by the graph nor by the cases */
    /* Bounds are for orders in which these hold; they make no cycle. */
    struct tarn_reorder_case cases[TARN_REORDER_CASES_MAX];
    uint32_t cases_count;
};

/* Allocates arrays from the region, except the flow's arrays, which grow. TARN_SYSTEM: no memory;
 * *bound can be finished in any case. */
enum tarn_status tarn_reorder_bound_init(struct tarn_reorder_bound *bound,
                                         struct tarn_region *region,
                                         const struct tarn_reorder_model *model);
void tarn_reorder_bound_finish(struct tarn_reorder_bound *bound);

/* The minimum memory of v's step, by a minimum cut. Afterwards `side` says which nodes have run in
 * the smallest set that reaches this minimum; no node is FREE any more. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_bound_at(struct tarn_reorder_bound *bound, uint32_t v,
                                       uint64_t *least);
/* After that: the largest such set instead. */
void tarn_reorder_bound_enlarge(struct tarn_reorder_bound *bound);

/* Was u ordered with the v of the last cut neither by the graph nor by the cases? */
bool tarn_reorder_bound_was_free(const struct tarn_reorder_bound *bound, uint32_t u);

/* A higher bound on the peak of every order, for graphs whose single minimum cuts do not meet the
 * best order: of two nodes that the graph does not order, one runs first, and each case is bounded
 * by itself.
 */

struct tarn_reorder_proof {
    struct tarn_reorder_bound *bound;
    struct tarn_reorder_state *state;
    uint64_t goal;       /* a case that reaches it needs no closer look */
    uint32_t cuts;       /* minimum cuts found so far */
    uint32_t cuts_max;   /* after which no case is looked at */
    uint32_t *orders;    /* of all nodes: the order of the case at each depth, and one to work in */
    uint64_t *step;      /* memory of the steps of one order */
    uint8_t *side;       /* node: a copy of the bound's */
    uint32_t *found;     /* an order below the goal, if one turned up */
    uint64_t found_peak; /* UINT64_MAX: no order found */
    const struct tarn_steps *steps; /* NULL, or the steps whose end also ends this search */
};

/* Arrays from the region. The bound has no cases. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_proof_init(struct tarn_reorder_proof *proof,
                                         struct tarn_region *region,
                                         struct tarn_reorder_bound *bound,
                                         struct tarn_reorder_state *state);

/* order: the best one known; its peak is the goal. *least: no order has a lower peak, at most the
 * goal; when an order below the goal turns up, that is kept in `found`, and *least is no more than
 * a bound of before. cuts_max: minimum cuts to spend. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_proof_run(struct tarn_reorder_proof *proof, const uint32_t *order,
                                        uint32_t cuts_max, uint64_t *least);

#endif
