/* The best order of up to 64 nodes that run one after another, by complete search. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_EXACT_H
#define TARN_PLANNER_TRANSFORM_REORDER_EXACT_H

#include "planner/transform/list_model.h"

#define TARN_REORDER_EXACT_MAX 64

struct tarn_reorder_exact {
    struct tarn_reorder_state *state;
    const uint32_t *nodes; /* that are searched */
    uint32_t count;        /* of nodes, at most TARN_REORDER_EXACT_MAX */
    uint64_t limit;        /* no step may exceed it */
    uint64_t peak;         /* of the steps on the path */
    uint32_t
        path[TARN_REORDER_EXACT_MAX]; /* indices into `nodes`, in the order in which they ran */
    uint32_t path_count;
    uint64_t *failed; /* hash table of sets that have run, as bits over `nodes`; 0: empty */
    uint32_t failed_count, failed_capacity;
    uint64_t visits, visits_max;
};

/* visits_max: of sets, in one search. Memory from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_exact_init(struct tarn_reorder_exact *exact,
                                         struct tarn_region *region,
                                         struct tarn_reorder_state *state, uint32_t visits_max);

enum tarn_reorder_verdict {
    TARN_REORDER_BEST, /* `order` is the best of all orders, or as good as `enough` */
    TARN_REORDER_SOME, /* `order` is better than `below`, but not every order was looked at */
    TARN_REORDER_NONE, /* no order has a peak below `below` */
    TARN_REORDER_UNKNOWN
};

/* Looks for an order of nodes[0..count) with a peak below `below`, then for better orders, down to
 * `enough`. In the state on entry the first of the nodes could run; the state is left unchanged.
 * Fills order and *peak if an order was found. */
enum tarn_reorder_verdict tarn_reorder_exact_run(struct tarn_reorder_exact *exact,
                                                 const uint32_t *nodes, uint32_t count,
                                                 uint64_t below, uint64_t enough, uint32_t *order,
                                                 uint64_t *peak);

#endif
