/* The model that reordering works on: nodes (ops without the views), their precedence, and the
 * bytes alive. A storage is born when its producer runs and dies when the last of its users has
 * run.
 *
 *     node v runs:   alive += made[v];   alive is the memory of that step;   alive -= what v frees
 */
#ifndef TARN_PLANNER_TRANSFORM_LIST_MODEL_H
#define TARN_PLANNER_TRANSFORM_LIST_MODEL_H

#include "streams/base/region.h"
#include "streams/graph/graph.h"

struct tarn_reorder_model {
    const struct tarn_graph *graph;
    uint32_t nodes_count;
    uint32_t *op;      /* node -> op, in the graph's order */
    uint32_t *node_of; /* op -> node; of a view that is no node: the node that it waits for, or
                          TARN_NONE */
    struct tarn_arcs predecessors, successors; /* of nodes, distinct; a predecessor is smaller */
    uint32_t storages_count;                   /* planned ones of the graph */
    uint64_t *size;                            /* storage -> bytes reserved */
    uint32_t *producer;                        /* storage -> node */
    struct tarn_arcs users;   /* storage -> nodes, ascending; its producer is one of them */
    bool *pinned;             /* storage -> is it kept after its last user? */
    struct tarn_arcs touched; /* node -> storages that it uses, its own products included */
    uint64_t *made;           /* node -> bytes that it produces */
};

/* reserved: planned storage of the graph -> bytes; their sum must fit in 64 bits. Arrays from the
 * region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_model_init(struct tarn_reorder_model *model,
                                         struct tarn_region *region, const struct tarn_graph *graph,
                                         const uint64_t *reserved);

/* Whether nodes and ops name each other, a predecessor is smaller than its node, and every storage
 * is touched by its producer first. For assertions; cost: linear. */
bool tarn_reorder_model_is_valid(const struct tarn_reorder_model *model);

/* ---- Running nodes ---- */

/* The storages alive after some nodes have run. */
struct tarn_reorder_state {
    const struct tarn_reorder_model *model;
    uint64_t alive;    /* bytes */
    uint32_t *left;    /* storage -> users that have not run */
    uint32_t *last;    /* storage -> exclusive or of the users that have not run: when one is
                          left, its name */
    uint64_t *freed;   /* node -> bytes that running it now would free */
    uint32_t *pending; /* node -> predecessors that have not run */
};

/* Arrays from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_state_init(struct tarn_reorder_state *state,
                                         struct tarn_region *region,
                                         const struct tarn_reorder_model *model);
/* Nothing has run. */
void tarn_reorder_state_reset(struct tarn_reorder_state *state);
/* Runs a node whose predecessors have run; returns the memory of that step. */
uint64_t tarn_reorder_run(struct tarn_reorder_state *state, uint32_t v);
/* Takes back the node that was run last. */
void tarn_reorder_undo(struct tarn_reorder_state *state, uint32_t v);

/* The peak of an order of all nodes. step: NULL, or room for the memory of every step. The state is
 * reset before and left at the end. */
uint64_t tarn_reorder_peak(struct tarn_reorder_state *state, const uint32_t *order, uint64_t *step);

/* Makes the order of all ops from an order of the nodes: views come right after the node that they
 * wait for. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_list(const struct tarn_reorder_model *model, const uint32_t *order,
                                   uint32_t *list);

#endif
