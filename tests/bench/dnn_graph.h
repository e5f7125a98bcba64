/* Graphs like one data-parallel training step, of any size: for benchmarks. */
#ifndef TARN_TESTS_DNN_GRAPH_H
#define TARN_TESTS_DNN_GRAPH_H

#include "tarn/graph.h"

struct dnn_graph_options {
    uint32_t storages; /* planned ones, workspaces included; exactly that many; at least 64 */
    uint32_t streams;  /* 3 or more: compute, communication, update, then branches */
};

/* The caller destroys it; never NULL. Same options, same graph. */
struct tarn_graph *dnn_graph(const struct dnn_graph_options *options);

/* The same with up to `bucket` gradients in a contiguous group instead of 8; at least 2. */
struct tarn_graph *dnn_graph_in_buckets(const struct dnn_graph_options *options, uint32_t bucket);

#endif
