/* Every small graph: all DAGs on a few ops (arcs from lower to higher ids), all partitions of the
 * ops into streams, all groupings of an op's outgoing arcs into tensors (an op without any has one
 * dead tensor). */
#ifndef TARN_TESTS_SUPPORT_SMALL_GRAPH_H
#define TARN_TESTS_SUPPORT_SMALL_GRAPH_H

#include <stdbool.h>

#include "tarn/graph.h"

enum { SMALL_OPS = 6, SMALL_TENSORS = SMALL_OPS * (SMALL_OPS - 1) / 2 + 1 };

struct small_graph {
    unsigned ops;
    uint8_t successors[SMALL_OPS];           /* bit j of successors[i]: arc from i to j */
    uint8_t stream[SMALL_OPS];               /* a restricted growth string */
    uint8_t tensor_of[SMALL_OPS][SMALL_OPS]; /* [i][k]: label of the tensor on i's k-th arc */
};

struct small_tensor {
    uint8_t producer;
    uint8_t consumers; /* set of ops; empty: dead */
};

/* The bits of `mask` are the arcs in the order 01, 02, 12, 03, ... */
void small_graph_set_arcs(struct small_graph *graph, unsigned mask);

/* The next partition into streams, or grouping into tensors; all-zero is the first. False, and
 * all-zero again for groupings, after the last. */
bool small_graph_next_streams(struct small_graph *graph);
bool small_graph_next_grouping(struct small_graph *graph);

/* The numberings of the ops that give the same arcs and the same partition into streams again, as
 * far as the ids of ops say what comes first: order[i][v] is the op that becomes op v. */
struct small_symmetries {
    uint8_t order[720][SMALL_OPS];
    unsigned count;
};

/* Of the graphs that differ only in the numbering of their ops, one is the first by its arcs and
 * streams. False: it is not this one; else its symmetries. */
bool small_graph_is_first_numbering(const struct small_graph *graph,
                                    struct small_symmetries *symmetries);
/* Likewise, of the groupings that are the same but for a symmetry. */
bool small_graph_is_first_grouping(const struct small_graph *graph,
                                   const struct small_symmetries *symmetries);

/* Fills tensors[0..SMALL_TENSORS) in the order of ids; the number of them. */
unsigned small_graph_tensors(const struct small_graph *graph, struct small_tensor *tensors);

/* Bit t of `large`: tensor t has two bytes, not one. Never NULL; the caller destroys it. */
struct tarn_graph *small_graph_build(const struct small_graph *graph, unsigned large);

#endif
