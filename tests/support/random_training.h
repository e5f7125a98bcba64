/* Random training steps: a forward part, a backward part in reverse that reads gradients and
 * forward results, both several times where asked for, and updates of parameters in place. Same
 * knobs, same graph. */
#ifndef TARN_TESTS_SUPPORT_RANDOM_TRAINING_H
#define TARN_TESTS_SUPPORT_RANDOM_TRAINING_H

#include <stdbool.h>

#include "tarn/graph.h"

/* Shares are percentages. */
struct random_training_options {
    uint64_t seed;
    uint32_t ops;                  /* of the forward part, at least 1 */
    uint32_t branch_share;         /* ops that also read an older result */
    uint32_t inplace_share;        /* ops that write over what they read */
    uint32_t weight_share;         /* ops with a parameter, which is updated at the end */
    uint32_t early_share;          /* workspaces that end before the outputs begin */
    uint32_t implementation_share; /* ops with implementations of each kind */
    uint32_t fixed_share;          /* ops that must not be recomputed */
    uint32_t streams;              /* parameters are updated in the last one; 0: 1 */
    uint32_t size_max;             /* 0: 4096 */
    uint32_t scatter_share;        /* other ops that are in any stream instead of the first */
    uint32_t view_share;           /* forward results that are read through a view */
    uint32_t random_share;         /* forward ops whose kind is random */
    uint32_t gather_share;  /* forward ops that communicate, and may run again all the same */
    uint32_t output_share;  /* forward results that are outputs */
    uint32_t control_share; /* forward ops with a control arc that nothing asks for */
    uint32_t passes;        /* forward and backward, at most 4; 0: 1 */
    uint32_t ahead; /* forward passes that come before the first backward one, as in a pipeline */
    uint64_t capacity; /* of a memory space that is declared for all of it; 0: none is */
    bool bucket; /* the parameters' gradients are one contiguous group, reduced before updates */
};

/* The caller destroys it; never NULL (a refused graph fails the test). */
struct tarn_graph *random_training(const struct random_training_options *options);

#endif
