/* What no safe plan can be below, in exact bytes, for tests that compare a bound with it. */
#ifndef TARN_TESTS_SUPPORT_HEAVIEST_H
#define TARN_TESTS_SUPPORT_HEAVIEST_H

#include "streams/graph/graph.h"

/* The weight of the heaviest clique among `candidates`, a set of at most 32 storages. unsafe[a]:
 * those that must not share bytes with a. By brute force. */
uint64_t heaviest_clique(const uint32_t *unsafe, const uint64_t *weight, uint32_t candidates);

/* The weight of the heaviest antichain of planned storages. */
uint64_t heaviest_antichain(const struct tarn_graph *graph);

#endif
