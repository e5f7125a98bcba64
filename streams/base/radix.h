/* Sorting many keys that carry a number each. */
#ifndef TARN_STREAMS_BASE_RADIX_H
#define TARN_STREAMS_BASE_RADIX_H

#include <stddef.h>
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

/* The same for keys that 32 bits are too few for. */
struct tarn_radix_item {
    uint64_t key;
    uint32_t number;
};
struct tarn_radix_item *tarn_radix_sort_items(struct tarn_radix_item *items,
                                              struct tarn_radix_item *spare, size_t count);

#endif
