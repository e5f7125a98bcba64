/* What is particular to oneDNN (version 2, C API) behind the tape. */
#ifndef ONEDNN_H
#define ONEDNN_H

#include "tape.h"

/* Before the first tape, and after the last one. */
void onednn_begin(void);
void onednn_end(void);

/* Adds an op that sums two gradients of the same layout; it may write over the first. */
tarn_tensor onednn_sum(struct tape *tape, tarn_tensor a, struct value b);
void onednn_release(struct tape *tape);

#endif
