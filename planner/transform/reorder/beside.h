/* A lower bound on the heaviest antichain of every choice of the streams' orders. Ops are apart if
 * none of them can come before another in any choice. All ops apart run beside each other in every
 * order: when the ops before them and they themselves have run, some storages are in use, and none
 * of these can share bytes. A minimum cut over the sets of ops that may have run by then says how
 * many bytes there are at least. With one op this is the bound of bound.h. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_BESIDE_H
#define TARN_PLANNER_TRANSFORM_REORDER_BESIDE_H

#include "planner/transform/steps.h"
#include "streams/base/region.h"
#include "streams/graph/graph.h"

#define TARN_APART_MAX 16

/* What proves the bound; certificate.c checks it. */
struct tarn_order_certificate {
    uint64_t bound;                 /* bytes; 0: there is none */
    uint32_t apart_count;           /* of members */
    uint32_t apart[TARN_APART_MAX]; /* ops, or the number of ops + a stream: that stream's end */
    bool *has_run; /* by op: in a set of the minimum cut, which leaves so many bytes; the members
                      have run, too */
};

/* Searches for a set of ops that gives a high bound, until one reaches the goal. reserved: by
 * planned storage; their sum fits in 64 bits. steps: the search ends with them. `has_run` is from
 * the region. Deterministic if the steps do not end; a limit of work keeps its time below the time
 * of some hundred orders. A graph of one stream, or of more than TARN_BEFORE_NODES_MAX nodes, gets
 * no bound. TARN_SYSTEM: no memory. */
enum tarn_status tarn_beside_bound(struct tarn_order_certificate *certificate,
                                   struct tarn_region *region, const struct tarn_graph *graph,
                                   const uint64_t *reserved, uint64_t goal,
                                   const struct tarn_steps *steps);

/* Does the certificate prove its bound? Shares no code with the search but the arcs: the order of
 * ops is closed op by op, what may come before a member is found by rules of its own, the bytes of
 * the cut are counted storage by storage, and that no set leaves fewer is shown by a flow along
 * shortest paths. False also if memory runs out. */
bool tarn_order_certificate_holds(const struct tarn_order_certificate *certificate,
                                  const struct tarn_graph *graph, const uint64_t *reserved);

#endif
