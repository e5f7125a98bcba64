/* What is learnt from: digits as pictures, or a text. */
#ifndef DATA_H
#define DATA_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"

enum { PIXELS = 64, DIGITS = 10, LENGTH = 32, VOCABULARY = 128 };

/* A sample is what a network reads, and the classes that it should say: for digits 64 floats and a
 * class, for text 32 characters and the 32 that follow them, one later. */
struct data {
    size_t input_bytes, wanted_count;
    size_t training, testing; /* samples: the first ones are for training */
    float *pixels;            /* of digits; else NULL */
    int32_t *tokens;          /* of a text: one character each; of digits: classes */
};

void data_load(struct data *data, const struct options *options);
void data_free(struct data *data);
/* Copies a sample: training + i for the i-th for testing. */
void data_copy(const struct data *data, size_t sample, void *input, int32_t *wanted);
/* The k-th sample that training takes. Every run takes the same ones, whatever its ranks. */
size_t data_pick(const struct data *data, uint64_t k);

#endif
