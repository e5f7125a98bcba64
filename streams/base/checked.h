/* Arithmetic on sizes. Every add, multiply and round-up of bytes uses these functions: each of the
 * three returns false, without setting *result, if the value does not fit in 64 bits. */
#ifndef TARN_STREAMS_BASE_CHECKED_H
#define TARN_STREAMS_BASE_CHECKED_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest number in files and in records (sizes, costs, work), which JSON keeps exactly. */
#define TARN_NUMBER_MAX ((UINT64_C(1) << 53) - 1)

static inline bool tarn_size_add(uint64_t a, uint64_t b, uint64_t *result)
{
    if (b > UINT64_MAX - a) return false;
    *result = a + b;
    return true;
}

static inline bool tarn_size_multiply(uint64_t a, uint64_t b, uint64_t *result)
{
    if (a != 0 && b > UINT64_MAX / a) return false;
    *result = a * b;
    return true;
}

/* alignment: a power of two. */
static inline bool tarn_size_round_up(uint64_t size, uint64_t alignment, uint64_t *result)
{
    uint64_t padded;
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    if (!tarn_size_add(size, alignment - 1, &padded)) return false;
    *result = padded & ~(alignment - 1);
    return true;
}

/* Can memory of that many bytes be requested? Always true if size_t has 64 bits. */
static inline bool tarn_size_is_addressable(uint64_t size) { return (size_t)size == size; }

static inline bool tarn_is_power_of_two(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

static inline uint64_t tarn_smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t tarn_larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The greatest number that divides both; for n and 0 it is n. */
static inline uint64_t tarn_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
