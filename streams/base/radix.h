/* Sorting many small numbers that carry a number each. */
#ifndef TARN_STREAMS_BASE_RADIX_H
#define TARN_STREAMS_BASE_RADIX_H

#include <stdint.h>

/* What sorts a thing, above its number. */
static inline uint64_t tarn_radix_pack(uint32_t key, uint32_t number)
{
    return (uint64_t)key << 32 | number;
}
static inline uint32_t tarn_radix_number(uint64_t packed) { return (uint32_t)packed; }

/* Sorts by keys, of which none is above key_max; equal ones stay in their order. Both arrays have
 * room for `count`; what is sorted is in the one that is returned. */
uint64_t *tarn_radix_sort(uint64_t *packed, uint64_t *spare, uint32_t count, uint32_t key_max);

#endif
