/* Graphs of any size in many streams, by how the streams wait for each other: for benchmarks. */
#ifndef TARN_TESTS_COUPLED_GRAPH_H
#define TARN_TESTS_COUPLED_GRAPH_H

#include "tarn/graph.h"

enum coupled_kind {
    COUPLED_LAYERS,  /* one training step: every layer has a branch in each stream but the last two,
                        which reduce gradients, eight at a time, and update weights */
    COUPLED_NEVER,   /* a training step in every stream, without any arc between streams */
    COUPLED_EVERY,   /* a long chain in every stream that keeps its last outputs for a while, and an
                        arc from the stream before once in so many ops */
    COUPLED_RANDOMLY /* every op reads up to three tensors of any stream, near or far */
};

struct coupled_graph_options {
    enum coupled_kind kind;
    uint32_t storages; /* about so many */
    uint32_t streams;  /* 2 or more */
    uint32_t every;    /* COUPLED_EVERY: ops */
    uint64_t seed;
};

/* The caller destroys it; never NULL. Same options, same graph. */
struct tarn_graph *coupled_graph(const struct coupled_graph_options *options);

#endif
