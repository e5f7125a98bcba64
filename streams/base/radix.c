/* Radix sort, least significant digit first; digits that are equal in all keys are skipped.
 * Cost: for every 11 bits of the largest key, two passes over the items. */
#include "radix.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* False if no item has to move. */
static bool sort_digit(const uint64_t *from, uint64_t *to, uint32_t count, uint32_t shift)
{
    uint32_t at[DIGITS], sum = 0;
    memset(at, 0, sizeof at);
    for (uint32_t i = 0; i < count; i++) at[from[i] >> shift & (DIGITS - 1)]++;
    if (count == 0 || at[from[0] >> shift & (DIGITS - 1)] == count) return false;
    for (uint32_t digit = 0; digit < DIGITS; digit++) {
        uint32_t own = at[digit];
        at[digit] = sum;
        sum += own;
    }
    for (uint32_t i = 0; i < count; i++) to[at[from[i] >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

uint64_t *tarn_radix_sort(uint64_t *packed, uint64_t *spare, uint32_t count, uint32_t key_max)
{
    assert(packed != spare || count == 0);
    for (uint32_t shift = 0; shift < 32 && key_max >> shift > 0; shift += DIGIT_BITS) {
        if (!sort_digit(packed, spare, count, 32 + shift)) continue;
        uint64_t *sorted = spare;
        spare = packed;
        packed = sorted;
    }
    return packed;
}

static bool sort_item_digit(const struct tarn_radix_item *from, struct tarn_radix_item *to,
                            size_t count, uint32_t shift)
{
    size_t at[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++) at[from[i].key >> shift & (DIGITS - 1)]++;
    if (at[from[0].key >> shift & (DIGITS - 1)] == count) return false;
    for (uint32_t digit = 0; digit < DIGITS; digit++) {
        size_t own = at[digit];
        at[digit] = sum;
        sum += own;
    }
    for (size_t i = 0; i < count; i++) to[at[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

struct tarn_radix_item *tarn_radix_sort_items(struct tarn_radix_item *items,
                                              struct tarn_radix_item *spare, size_t count)
{
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++) any |= items[i].key;
    for (uint32_t shift = 0; shift < 64 && any >> shift > 0; shift += DIGIT_BITS) {
        if (!sort_item_digit(items, spare, count, shift)) continue;
        struct tarn_radix_item *sorted = spare;
        spare = items;
        items = sorted;
    }
    return items;
}
