/* Reorders several streams. An order is judged by its weight: what no plan of the graph with this
 * order in its streams can be below. That is the heaviest antichain, with the gaps of contiguous
 * groups that it cannot fill; the bytes alive in one step of the list do not count. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_STREAMS_H
#define TARN_PLANNER_TRANSFORM_REORDER_STREAMS_H

#include "planner/transform/constraints.h"
#include "planner/transform/steps.h"
#include "streams/base/region.h"
#include "streams/graph/graph.h"
#include "streams/order/gap_bound.h"

/* Weight and duration of a graph of several streams whose ops are listed in another order. */

/* A list of all ops gives every stream its order; data, control and hazards between streams are the
 * same for all lists. */
struct tarn_weighing {
    struct tarn_graph graph; /* a view of the graph that came in, in the order taken last; its arcs
                                between streams are the hazards, too */
    struct tarn_region *region;
    const uint64_t *reserved; /* planned storage -> bytes */
    uint64_t alignment;       /* of the plan */
    struct tarn_constraints constraints;
    uint32_t *places; /* the ops of all streams, one stream after the other */
    uint32_t *users;  /* of all storages, one after the other */
    uint32_t *rank;   /* op -> place in the order */
    /* Of the order that was weighed last, in a region of their own: */
    struct tarn_region witness;
    struct tarn_reuse reuse;
    struct tarn_gap_bound bound;
    uint64_t work; /* visits of all orders weighed so far, each of a few nanoseconds */
};

/* Arrays from the region; reserved: their sum fits in 64 bits. TARN_SYSTEM: no memory; *weighing
 * can be finished in any case. */
enum tarn_status tarn_weighing_init(struct tarn_weighing *weighing, struct tarn_region *region,
                                    const struct tarn_graph *graph, const uint64_t *reserved,
                                    uint64_t alignment);
void tarn_weighing_finish(struct tarn_weighing *weighing);

/* Gives the view this order, which must be legal and stay in memory. */
void tarn_weighing_take(struct tarn_weighing *weighing, const uint32_t *order);

/* Takes the order and leaves the witness in `reuse` and `bound`; *weight: bytes. TARN_SYSTEM:
 * no memory. */
enum tarn_status tarn_weighing_weigh(struct tarn_weighing *weighing, const uint32_t *order,
                                     uint64_t *weight);

/* The modelled critical path of the order that was taken last. TARN_SYSTEM: no memory. */
enum tarn_status tarn_weighing_time(struct tarn_weighing *weighing, uint64_t *ns);

/* ---- The search ---- */

enum { TARN_REORDER_MEMBERS_MAX = 12 };

struct tarn_reorder_weights {
    uint32_t tries;           /* changes to look at, from each start */
    struct tarn_steps *steps; /* one for each change */
    double slowdown_max;      /* share by which the modelled critical path may grow; < 0: any */
    /* Filled in: the heaviest antichain of the given order, of the best order between it and the
     * first one that it was tried with, and of the best order; the critical path of the given
     * order; changes looked at. */
    uint64_t before, start, after;
    uint64_t before_ns;
    uint32_t tried;
};

struct tarn_reorder_streams {
    struct tarn_weighing weighing;
    struct tarn_reorder_weights *weights;
    uint32_t *kept; /* the best order of all; its heaviest antichain is weights->after */
    /* Of the start that is searched from: */
    uint32_t *best;    /* the best order, of all ops */
    uint64_t weight;   /* its heaviest antichain, bytes; UINT64_MAX: there is none yet */
    uint32_t *attempt; /* an order that is tried */
    bool *mark;        /* op -> is it moved by the change that is made? */
    uint32_t *room;    /* ops that are put off; in mix, op -> parts of a place */
    uint64_t *key;     /* the keys by which mix sorts */
    uint32_t tries;    /* changes that may still be looked at */
    bool is_over;      /* the search was ended */
    uint32_t starts;   /* searched from so far */
    uint32_t members[TARN_REORDER_MEMBERS_MAX]; /* of the best order's antichain, heaviest first */
    uint32_t members_count;
    uint32_t *threshold; /* stream -> the place of that antichain */
};

/* given: the order of the graph, a legal order of all ops, which is the best so far. reserved:
 * planned storage -> bytes, the sum fits in 64 bits. alignment: of the plan. Arrays from the
 * region. TARN_SYSTEM: no memory; *search can be finished in any case. */
enum tarn_status tarn_reorder_streams_init(struct tarn_reorder_streams *search,
                                           struct tarn_region *region,
                                           const struct tarn_graph *graph, const uint64_t *reserved,
                                           uint64_t alignment, const uint32_t *given,
                                           struct tarn_reorder_weights *weights);
void tarn_reorder_streams_finish(struct tarn_reorder_streams *search);

/* Searches from two legal orders and the orders between them. *better: a better order than the best
 * one was found, and kept. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_streams_run(struct tarn_reorder_streams *search,
                                          const uint32_t *const order[2], bool *better);

/* Fills in the members of the heaviest antichain of the best order of all. TARN_SYSTEM: no memory.
 */
enum tarn_status tarn_reorder_streams_find_members(struct tarn_reorder_streams *search);

#endif
