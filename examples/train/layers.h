/* Layers: each adds its forward pass, and on the tape what its backward pass needs. */
#ifndef LAYERS_H
#define LAYERS_H

#include "tape.h"

/* ---- Images: [batch, channels, height, width], channels innermost in memory ---- */
struct value conv(struct tape *tape, const char *name, struct value x, int channels); /* 3 x 3 */
struct value norm_relu(struct tape *tape, const char *name, struct value x); /* over the batch */
struct value max_pool(struct tape *tape, const char *name, struct value x);  /* 2 x 2 */
struct value flat(struct value x);                                           /* each image a row */

/* ---- Rows: [rows, features] ---- */
struct value linear(struct tape *tape, const char *name, struct value x, int features);
struct value layer_norm(struct tape *tape, const char *name, struct value x);
struct value gelu(struct tape *tape, const char *name, struct value x);
struct value add(struct tape *tape, const char *name, struct value x, struct value z);
struct value softmax(struct tape *tape, const char *name, struct value x);
struct value log_softmax(struct tape *tape, const char *name, struct value x);

/* ---- Text: [batch * length, features], a row for each position ---- */
/* The sum of two learnt rows, by token (int32) and by position. */
struct value embedding(struct tape *tape, const char *name, tarn_tensor tokens,
                       const int sizes[static 4]); /* batch, length, vocabulary, features */
/* Every position looks at those before it: softmax(q k' / sqrt(d) + mask) v for each head. */
struct value attention(struct tape *tape, const char *name, struct value x, int batch, int heads,
                       struct value mask);

/* ---- The loss: cross entropy, summed over rows and divided by `rows` ---- */
/* Where each iteration of a session leaves two floats: loss before the division, right answers. */
struct report {
    float *place;
    size_t stride;  /* floats from one iteration to the next */
    uint64_t count; /* iterations that there is room for */
};
/* wanted: int32 classes. */
void cross_entropy(struct tape *tape, struct value logarithms, tarn_tensor wanted, float rows,
                   const struct report *report);

#endif
