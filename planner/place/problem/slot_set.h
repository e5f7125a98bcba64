/* A set of storages by their slots (conflict.h), which knows how many of it come before a slot. */
#ifndef TARN_PLANNER_PLACE_PROBLEM_SLOT_SET_H
#define TARN_PLANNER_PLACE_PROBLEM_SLOT_SET_H

#include "conflict.h"

struct tarn_slot_set {
    uint64_t *bits;  /* by slot */
    uint32_t *below; /* by word of 64 slots: members before it */
};

/* storages: distinct. Lives in the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_slot_set_init(struct tarn_slot_set *set, struct tarn_region *region,
                                    const struct tarn_conflicts *conflicts,
                                    const uint32_t *storages, uint32_t count);

/* How many members have lower slots: the place of a member in a list in the order of slots. */
static inline uint32_t tarn_slot_set_below(const struct tarn_slot_set *set, uint32_t slot)
{
    uint64_t before = set->bits[slot / 64] & ((UINT64_C(1) << slot % 64) - 1);
    return set->below[slot / 64] + (uint32_t)__builtin_popcountll(before);
}

#endif
