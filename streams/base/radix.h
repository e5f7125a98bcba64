/* Sorts many keys, each with a number. */
#ifndef TARN_STREAMS_BASE_RADIX_H
#define TARN_STREAMS_BASE_RADIX_H

#include <stddef.h>
#include <stdint.h>

/* Packs a key above its number. */
static inline uint64_t tarn_radix_pack(uint32_t key, uint32_t number)
{
    return (uint64_t)key << 32 | number;
}
static inline uint32_t tarn_radix_number(uint64_t packed) { return (uint32_t)packed; }

/* Sorts by keys, of which none is above key_max; items with equal keys keep their order. Both
 * arrays have room for `count`; the returned array holds the result. */
uint64_t *tarn_radix_sort(uint64_t *packed, uint64_t *spare, uint32_t count, uint32_t key_max);

/* An item with a key of more than 32 bits. */
struct tarn_radix_item {
    uint64_t key;
    uint32_t number;
};
struct tarn_radix_item *tarn_radix_sort_items(struct tarn_radix_item *items,
                                              struct tarn_radix_item *spare, size_t count);

#endif
