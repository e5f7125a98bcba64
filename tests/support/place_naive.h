/* Single Object and Many Objects once more, straight from the paper's pseudocode: a matrix of
 * unsafe pairs, lists that are walked, every candidate kept and sorted. For small graphs. */
#ifndef TARN_TESTS_SUPPORT_PLACE_NAIVE_H
#define TARN_TESTS_SUPPORT_PLACE_NAIVE_H

#include "streams/graph/graph.h"

/* Writes the offset of every planned storage; returns the footprint. `method` is a name as in
 * tarn_plan_method. */
uint64_t naive_place(const struct tarn_graph *graph, uint64_t alignment, const char *method,
                     uint64_t *offset);

/* The least footprint of all placements at alignment 1 of up to 8 storages without groups. */
uint64_t naive_best(const struct tarn_graph *graph);

#endif
