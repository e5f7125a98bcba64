/* A small training step with the ops that real ones have, as a tracer writes them: convolution,
 * batch-norm, relu in place and max-pool, forward and backward. */
#ifndef TARN_TESTS_SUPPORT_TRAINING_GRAPH_H
#define TARN_TESTS_SUPPORT_TRAINING_GRAPH_H

#include "tarn/graph.h"

enum { TRAINING_LAYERS_MAX = 8 };

/* What a layer's ops read and write; `raw` is convolution's output, `normal` batch-norm's, `active`
 * the alias of it that relu_ writes; `pooled` and `indices` max-pool's, and `dpooled` its backward
 * op's input. */
struct training_layer {
    tarn_op convolution, norm, relu, pool;
    tarn_op convolution_backward, norm_backward, relu_backward, pool_backward;
    tarn_tensor x, weight, raw, normal, mean, invstd, running, active, pooled, indices;
    tarn_tensor dpooled, dactive, dnormal, draw, dx, dweight;
};

struct training_graph {
    struct training_layer layers[TRAINING_LAYERS_MAX];
    unsigned layers_count;
    struct tarn_graph *graph;
};

enum { TRAINING_BYTES = 4096, TRAINING_COST = 1001 };

/* Layer after layer, one stream; activations have TRAINING_BYTES >> layer bytes (indices twice as
 * many as pooled activations), ops cost TRAINING_COST. The caller destroys `graph`; never NULL. */
struct training_graph training_graph(unsigned layers);

#endif
