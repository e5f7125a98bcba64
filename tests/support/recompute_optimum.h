/* The least time in which a small training step of one stream can be run within a number of bytes
 * when results may be dropped and computed again at any place, by trying everything. */
#ifndef TARN_TESTS_SUPPORT_RECOMPUTE_OPTIMUM_H
#define TARN_TESTS_SUPPORT_RECOMPUTE_OPTIMUM_H

#include <stdbool.h>

#include "tarn/graph.h"

struct recompute_optimum;

/* For a graph of one stream, without implementations, contiguous groups and views. Only results
 * that are written once are dropped. any_op: those of any op; otherwise only those of ops whose
 * kind is neither "backward" nor "update". NULL: these are more than 16. */
struct recompute_optimum *recompute_optimum_create(const struct tarn_graph *graph,
                                                   uint64_t alignment, bool any_op);
void recompute_optimum_destroy(struct recompute_optimum *optimum);

/* Nanoseconds of all ops in a row; UINT64_MAX: nothing fits so many bytes, counted as reserved at
 * the alignment. */
uint64_t recompute_optimum_within(struct recompute_optimum *optimum, uint64_t budget);

/* The least bytes that anything fits. */
uint64_t recompute_optimum_least(struct recompute_optimum *optimum);

#endif
