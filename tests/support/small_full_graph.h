/* A small graph with everything that a graph may have: views, writes in place, control arcs,
 * outputs, contiguous groups, workspaces, alignments, and a parameter that may be updated. */
#ifndef TARN_TESTS_SUPPORT_SMALL_FULL_GRAPH_H
#define TARN_TESTS_SUPPORT_SMALL_FULL_GRAPH_H

#include "random_graph.h"
#include "small_graph.h"

enum small_role {
    SMALL_WORKS,
    SMALL_VIEWS, /* its first input; other arcs that enter are control arcs, its tensors aliases */
    SMALL_OVERWRITES, /* its first input; its first tensor is an alias of that */
    SMALL_ROLES
};

enum { SMALL_ARCS = SMALL_OPS * (SMALL_OPS - 1) / 2, SMALL_NO_GROUP = 0 };

struct small_full_graph {
    struct small_graph graph;
    uint64_t alignment;            /* of the plan */
    uint8_t role[SMALL_OPS];       /* one without an input works, whatever it is here */
    uint8_t control[SMALL_OPS];    /* bit j of [i]: the arc from i to j is a control arc */
    uint16_t workspace[SMALL_OPS]; /* bytes; views have none */
    uint8_t early;                 /* set of ops whose workspace ends before their outputs begin */
    uint16_t size[SMALL_TENSORS];  /* bytes */
    uint8_t group[SMALL_TENSORS];  /* of a root: SMALL_NO_GROUP, or a number */
    bool backwards;                /* groups have their last member first */
    uint32_t padded;               /* set of groups */
    uint8_t spaces;                /* how many are declared; 0: none */
    uint8_t space[SMALL_TENSORS];  /* of a root, unless it is in a group */
    uint64_t space_alignment;      /* of the second one; 0: the plan's */
    uint32_t outputs, aligned;     /* sets of roots; aligned: to twice the plan's alignment */
    uint8_t parameter_readers;     /* set of ops */
    uint8_t parameter_writer;      /* an op, or SMALL_OPS: it is not updated */
    bool has_parameter;
};

/* All features at random: one case for a graph, alignment and seed. */
struct small_full_graph small_full_graph_draw(const struct small_graph *graph, uint64_t alignment,
                                              struct random_source *source);

/* Ops that touch what is overwritten get control arcs, so that they have the order of their ids.
 * Never NULL (a refused graph ends the test); the caller destroys it. */
struct tarn_graph *small_full_graph_build(const struct small_full_graph *full);

/* How many roots it has; ids of tensors that are roots, ascending. */
unsigned small_full_graph_roots(const struct small_full_graph *full, uint8_t roots[SMALL_TENSORS]);
/* Does every op have the role that is asked of it? */
bool small_full_graph_has_its_roles(const struct small_full_graph *full);

#endif
