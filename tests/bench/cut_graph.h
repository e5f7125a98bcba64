/* Layered graphs of any size whose layers are cut into many streams: for benchmarks. */
#ifndef TARN_TESTS_CUT_GRAPH_H
#define TARN_TESTS_CUT_GRAPH_H

#include "tarn/graph.h"

enum cut_kind {
    CUT_CHAIN,    /* one training step after the other; runs of layers go to the streams in turn */
    CUT_UNCOUPLED /* a network in every stream, which reads now and then from that of stream 0,
                     while nothing ever comes back: no other stream releases what these make */
};

struct cut_graph_options {
    enum cut_kind kind;
    uint32_t storages; /* about so many planned ones */
    uint32_t streams;  /* 1 or more */
};

/* The caller destroys it; never NULL. Same options, same graph. */
struct tarn_graph *cut_graph(const struct cut_graph_options *options);

#endif
