/* The bound that one antichain proves with contiguous groups: its own weight, plus the bytes of
 * gaps in groups that it cannot fill. */
#ifndef TARN_STREAMS_ORDER_GAPS_H
#define TARN_STREAMS_ORDER_GAPS_H

#include "gap_bound.h"

/* Members of the antichain that lie back to back: consecutive ones of a group, or one alone. */
struct tarn_item {
    const uint32_t *members;
    uint32_t members_count;
    uint32_t group;  /* TARN_NONE: a lone storage */
    uint64_t size;   /* bytes */
    uint64_t within; /* its place inside its group */
};

/* A maximal run of consecutive members of a group outside the antichain. */
struct tarn_gap {
    const uint32_t *members;
    uint32_t members_count;
    uint32_t group;
    uint32_t left, right; /* the items on its sides; TARN_NONE: the group ends there */
    uint64_t size;
    uint64_t within;
    uint64_t waste; /* bytes of the gap that the antichain cannot fill: a lower bound */
};

/* Working state that evaluates one antichain after another. */
struct tarn_gaps {
    const struct tarn_reserve *reserve;
    uint32_t *by_size; /* planned storages, roughly the largest first */
    bool *inside;      /* by storage: in the antichain */
    uint64_t weight;   /* of the antichain */
    struct tarn_item *items;
    struct tarn_gap *gaps; /* those chosen last come first */
    uint32_t items_count, gaps_count;
    uint64_t gaps_size;  /* of all of them */
    uint64_t *sums;      /* bits: sums of sizes */
    uint64_t steps_left; /* effort that may still be spent; at 0 every waste counts as 0 */
};

/* All arrays from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_gaps_init(struct tarn_gaps *gaps, struct tarn_region *region,
                                const struct tarn_reserve *reserve, uint64_t steps);

/* Takes steps from those left; false, and none are left, when there are too few. */
bool tarn_gaps_spend(struct tarn_gaps *gaps, uint64_t steps);

/* Looks at the antichain of these thresholds: afterwards inside, weight, items and gaps are its
 * own. */
void tarn_gaps_take(struct tarn_gaps *gaps, const uint32_t *threshold);

/* Chooses gaps of the antichain that was taken, which cannot share bytes, and moves them to the
 * front; returns how many. Their waste goes on top of the weight. */
uint32_t tarn_gaps_choose(struct tarn_gaps *gaps);

#endif
