/* What must hold of a placement, from the definitions, by every pair of storages. */
#ifndef TARN_TESTS_SUPPORT_CHECK_OFFSETS_H
#define TARN_TESTS_SUPPORT_CHECK_OFFSETS_H

#include "planner/place/problem/problem.h"

/* Asserts that no unsafe pair shares a reserved byte. */
void check_pairs(const struct tarn_problem *problem, const uint64_t *offset);

/* The same, and that groups lie back to back and blocks are aligned. Returns the footprint. */
uint64_t check_offsets(const struct tarn_problem *problem, const uint64_t *offset);

#endif
