/* Patterns that identify their seed: checking kernels write and compare them. A pattern is a run of
 * 8-byte words, start + i * step, so both run at memory speed. */
#ifndef TARN_RUNTIME_CHECK_PATTERN_H
#define TARN_RUNTIME_CHECK_PATTERN_H

#include <stdint.h>

/* A seed from two numbers, well mixed and never 0. */
uint64_t tarn_seed_mix(uint64_t a, uint64_t b);

void tarn_pattern_fill(unsigned char *bytes, uint64_t size, uint64_t seed);

/* Index of the first byte that differs from the pattern, or `size`. */
uint64_t tarn_pattern_compare(const unsigned char *bytes, uint64_t size, uint64_t seed);

/* Byte i of a pattern. */
unsigned char tarn_pattern_byte(uint64_t seed, uint64_t i);

#endif
