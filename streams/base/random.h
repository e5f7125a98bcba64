/* Random numbers that are the same on every machine: splitmix64 (Steele, Lea, Flood 2014). The
 * state is one number of the caller's; any value of it is a seed. Not for secrets. */
#ifndef TARN_STREAMS_BASE_RANDOM_H
#define TARN_STREAMS_BASE_RANDOM_H

#include <stdint.h>

/* The finaliser of splitmix64: a bijection in which every bit of `z` changes half of the result. */
static inline uint64_t tarn_random_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* All 64-bit numbers, each once in 2^64 calls. */
static inline uint64_t tarn_random_next(uint64_t *state)
{
    return tarn_random_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* 0 to limit - 1, or 0 if the limit is 0; uniform up to one part in 2^32. */
static inline uint32_t tarn_random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)((tarn_random_next(state) >> 32) * limit >> 32);
}

/* At least 0 and below 1, in steps of 2^-53. */
static inline double tarn_random_unit(uint64_t *state)
{
    return (double)(tarn_random_next(state) >> 11) / (double)(UINT64_C(1) << 53);
}

#endif
