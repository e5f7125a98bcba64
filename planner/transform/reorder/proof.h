/* A higher bound on the peak of every order, where single minimum cuts do not meet the best order:
 * of two nodes that the graph does not order, one runs first, and each case is bounded by itself.
 */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_PROOF_H
#define TARN_PLANNER_TRANSFORM_REORDER_PROOF_H

#include "bound.h"

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
    uint64_t found_peak; /* UINT64_MAX: none */
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
