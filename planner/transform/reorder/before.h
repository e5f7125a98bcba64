/* Which ops can come before an op in some choice of the streams' orders. A completion is the order
 * that the arcs (data, control, hazards) make together with one order of all ops of each stream. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_BEFORE_H
#define TARN_PLANNER_TRANSFORM_REORDER_BEFORE_H

#include "planner/transform/constraints.h"
#include "streams/base/bitset.h"
#include "streams/graph/graph.h"

/* The matrix of a graph has a bit for each pair of nodes, so large graphs have none. */
#define TARN_BEFORE_NODES_MAX 16384

/* A node is an op, or the end of a stream, which comes after all of its ops and uses nothing. The
 * nodes of a stream are numbered consecutively, from a multiple of 64 on; some numbers have no
 * node. */
struct tarn_before {
    const struct tarn_graph *graph;
    struct tarn_region *region;
    uint32_t room;           /* all numbers are below; a multiple of 64 */
    uint32_t words;          /* of a set of nodes */
    uint32_t *node_of;       /* op -> node */
    uint32_t *op_of;         /* node -> op; TARN_NONE: no op */
    uint32_t *stream;        /* node -> stream */
    uint32_t *begin;         /* stream -> its first number; one more is the room */
    uint32_t *end;           /* stream -> the node that is its end */
    uint64_t *nodes;         /* all nodes */
    struct tarn_arcs across; /* node -> ops in other streams that it waits for, as nodes */
    uint64_t *waiting;       /* nodes that wait for another stream */
    uint64_t *after;         /* [node]: the nodes that come after it by arcs, without itself */
    /* Filled in when they are asked for; NULL: not yet. */
    uint64_t **ahead; /* node -> the nodes that come before it by arcs */
    uint64_t **may;   /* node -> the nodes that may come before it */
    /* Working state. */
    uint64_t *common, *todo, *done;
};

/* All arrays from the region, which `before` keeps. The graph has several streams, and no more than
 * TARN_BEFORE_NODES_MAX numbers, see tarn_before_is_small. TARN_SYSTEM: no memory. */
enum tarn_status tarn_before_init(struct tarn_before *before, struct tarn_region *region,
                                  const struct tarn_graph *graph,
                                  const struct tarn_constraints *constraints);
bool tarn_before_is_small(const struct tarn_graph *graph);

static inline const uint64_t *tarn_before_after(const struct tarn_before *before, uint32_t v)
{
    return before->after + (size_t)v * before->words;
}

/* Set of nodes; NULL: no memory. */
const uint64_t *tarn_before_ahead(struct tarn_before *before, uint32_t v);

/* A set that holds all nodes which come before v in some completion; never v itself, nor what comes
 * after it by arcs. NULL: no memory. */
const uint64_t *tarn_before_may(struct tarn_before *before, uint32_t v);

#endif
