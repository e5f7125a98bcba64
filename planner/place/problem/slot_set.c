/* Slot sets: a bit for each slot and a count for every 64 of them.
 * Cost: O(T / 64) and the members; a fifth of a byte for each slot. */
#include "problem.h"

#include "streams/base/bitset.h"

enum tarn_status tarn_slot_set_init(struct tarn_slot_set *set, struct tarn_region *region,
                                    const struct tarn_conflicts *conflicts,
                                    const uint32_t *storages, uint32_t count)
{
    size_t words = (size_t)conflicts->words_count + 1; /* a slot after the last may be asked for */
    uint32_t below = 0;
    set->bits = tarn_region_take(region, words, sizeof *set->bits);
    set->below = tarn_region_take(region, words, sizeof *set->below);
    if (!set->bits || !set->below) return TARN_SYSTEM;
    for (uint32_t i = 0; i < count; i++) tarn_set_add(set->bits, conflicts->slot_of[storages[i]]);
    for (size_t w = 0; w < words; w++) {
        set->below[w] = below;
        below += (uint32_t)__builtin_popcountll(set->bits[w]);
    }
    return TARN_OK;
}
