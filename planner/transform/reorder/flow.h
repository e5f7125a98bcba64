/* Maximum flow and minimum cut, for networks that are built, solved and thrown away again and again
 * in the same memory. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_FLOW_H
#define TARN_PLANNER_TRANSFORM_REORDER_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "streams/base/region.h"
#include "tarn/error.h"

#define TARN_FLOW_UNLIMITED (UINT64_MAX / 4)

/* An arc and its twin in the other direction are neighbours in the list: twin = arc ^ 1. */
struct tarn_flow_arc {
    uint32_t to, next; /* next: of the arcs that leave the same node; TARN_NONE: the last */
    uint64_t room;     /* flow that can still be sent along it */
};

struct tarn_reorder_flow {
    struct tarn_region region; /* of the arrays, and of those that they have grown out of */
    uint32_t nodes_count, nodes_room;
    uint32_t *first; /* node -> its first arc */
    uint32_t *level; /* node -> distance from the source; TARN_NONE: out of reach */
    uint32_t *now;   /* node -> the arc to go on with */
    uint32_t *queue; /* nodes to visit */
    uint32_t *path;  /* arcs */
    struct tarn_flow_arc *arcs;
    uint32_t arcs_count;
    size_t arcs_room;
    enum tarn_status status; /* TARN_SYSTEM: there was no memory for an arc */
};

/* Empties the network and gives it `nodes` nodes; a zeroed struct is empty. TARN_SYSTEM. */
enum tarn_status tarn_flow_reset(struct tarn_reorder_flow *flow, uint32_t nodes);
void tarn_flow_finish(struct tarn_reorder_flow *flow);

/* capacity: at most TARN_FLOW_UNLIMITED. */
void tarn_flow_add(struct tarn_reorder_flow *flow, uint32_t from, uint32_t to, uint64_t capacity);

/* Sends as much as can be sent; the sum must fit in 62 bits. Afterwards level[n] != TARN_NONE for
 * exactly the nodes on the source's side of the smallest minimum cut. */
uint64_t tarn_flow_run(struct tarn_reorder_flow *flow, uint32_t source, uint32_t sink);
/* After that: level[n] != TARN_NONE for exactly the nodes on the sink's side of the minimum cut
 * with the largest source's side. */
void tarn_flow_find_largest(struct tarn_reorder_flow *flow, uint32_t sink);

#endif
