/* What a graph of several streams needs at least when its ops are listed in another order: its
 * heaviest antichain, and how long it takes. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_WEIGHING_H
#define TARN_PLANNER_TRANSFORM_REORDER_WEIGHING_H

#include "planner/transform/constraints.h"
#include "streams/order/antichain.h"

/* A list of all ops gives every stream its order; data, control and hazards between streams are the
 * same for all lists. */
struct tarn_weighing {
    struct tarn_graph graph; /* a view of the graph that came in, in the order taken last; its arcs
                                between streams are the hazards, too */
    struct tarn_region *region;
    const uint64_t *reserved; /* planned storage -> bytes */
    struct tarn_constraints constraints;
    uint32_t *places;   /* the ops of all streams, one stream behind the other */
    uint32_t *touchers; /* of all planned storages, one storage behind the other */
    uint32_t *rank;     /* op -> place in the order */
    /* Of the order that was weighed last, in a region of their own: */
    struct tarn_region witness;
    struct tarn_reuse reuse;
    struct tarn_antichain antichain;
};

/* Arrays from the region; reserved: their sum fits in 64 bits. TARN_SYSTEM: no memory; *weighing
 * can be finished in any case. */
enum tarn_status tarn_weighing_init(struct tarn_weighing *weighing, struct tarn_region *region,
                                    const struct tarn_graph *graph, const uint64_t *reserved);
void tarn_weighing_finish(struct tarn_weighing *weighing);

/* Lets the view have that order, which is legal and stays where it is. */
void tarn_weighing_take(struct tarn_weighing *weighing, const uint32_t *order);

/* Takes the order and leaves the witness in `reuse` and `antichain`; *weight: bytes. TARN_SYSTEM:
 * no memory. */
enum tarn_status tarn_weighing_weigh(struct tarn_weighing *weighing, const uint32_t *order,
                                     uint64_t *weight);

/* The modelled critical path of the order that was taken last. TARN_SYSTEM: no memory. */
enum tarn_status tarn_weighing_time(struct tarn_weighing *weighing, uint64_t *ns);

#endif
