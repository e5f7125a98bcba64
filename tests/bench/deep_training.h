/* Training steps of any depth, one stream: what budgets are measured on. */
#ifndef TARN_TESTS_DEEP_TRAINING_H
#define TARN_TESTS_DEEP_TRAINING_H

#include "tarn/graph.h"

enum deep_family {
    DEEP_PLAIN,      /* a chain of convolutions and activations */
    DEEP_RESIDUAL,   /* blocks of three convolutions with a sum around them */
    DEEP_TRANSFORMER /* blocks of attention and of two dense layers */
};

/* A forward part of so many blocks, a backward part in reverse that keeps the gradient of every
 * parameter apart from that of the data, and updates at the end: 8, 26 and 44 ops a block. The
 * caller destroys it; never NULL. */
struct tarn_graph *deep_training(enum deep_family family, uint32_t blocks);

#endif
