/* Graphs that look like nothing that anybody traced, of any size: what a planner must survive. */
#ifndef TARN_TESTS_ROUGH_GRAPH_H
#define TARN_TESTS_ROUGH_GRAPH_H

#include "tarn/graph.h"

enum rough_kind {
    ROUGH_MESH,      /* every op reads up to three results, near and far, of any stream */
    ROUGH_GROUPS,    /* the same, a third of the tensors in contiguous groups of many members */
    ROUGH_ALIGNED,   /* the same, a third of the tensors with large alignments of their own */
    ROUGH_UNSAFE,    /* no two storages are ever safe, and many have alignments of their own */
    ROUGH_INTERVALS, /* one stream, lives of any length: a packing instance */
    ROUGH_LOOSE,     /* streams that wait for one another now and then only */
    ROUGH_WIDE,      /* layers of as many branches as there are streams, forward and backward */
    ROUGH_KINDS
};

struct rough_graph_options {
    enum rough_kind kind;
    uint32_t storages; /* about so many; at least 8 */
    uint32_t streams;  /* at least 1; intervals have one whatever this says */
    uint64_t seed;
};

/* A word for a kind; static. */
const char *rough_kind_name(enum rough_kind kind);

/* The caller destroys it; never NULL. Same options, same graph. */
struct tarn_graph *rough_graph(const struct rough_graph_options *options);

#endif
