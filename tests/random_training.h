/* Random training steps: a forward part, a backward part in reverse that reads gradients and
 * forward results, and updates of parameters in place. Same knobs, same graph. */
#ifndef TARN_TESTS_RANDOM_TRAINING_H
#define TARN_TESTS_RANDOM_TRAINING_H

#include <stdbool.h>

#include "tarn/graph.h"

/* Shares are percentages. */
struct random_training_options {
    uint64_t seed;
    uint32_t ops;                  /* of the forward part, at least 1 */
    uint32_t branch_share;         /* ops that also read an older result */
    uint32_t inplace_share;        /* ops that write over what they read */
    uint32_t weight_share;         /* ops with a parameter, which is updated at the end */
    uint32_t implementation_share; /* ops with implementations of each kind */
    uint32_t fixed_share;          /* ops that must not be recomputed */
    uint32_t streams;              /* parameters are updated in the last one; 0: 1 */
    uint32_t size_max;             /* 0: 4096 */
};

/* The caller destroys it; never NULL (a refused graph fails the test). */
struct tarn_graph *random_training(const struct random_training_options *options);

#endif
