/* Priority orders for lowest-offset-first: which of the blocks that could be placed lowest comes
 * first. */
#ifndef TARN_PLANNER_PLACE_LOWEST_PRIORITIES_H
#define TARN_PLANNER_PLACE_LOWEST_PRIORITIES_H

#include "greedy.h"

enum { TARN_PRIORITIES_COUNT = 10 };

/* The traits that priority orders are made from, by place. */
struct tarn_traits {
    bool *in_antichain;     /* it, or a member of it, belongs to the heaviest antichain */
    double *life;           /* ops in list order from its producer to its last user */
    double *conflict_bytes; /* of all storages that must not share bytes with it */
};

/* Lives in the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_traits_init(struct tarn_traits *traits, struct tarn_region *region,
                                  const struct tarn_lowest *lowest);

/* "antichain-life" and so on, the name of priority order i. */
const char *tarn_priorities_name(uint32_t i);

/* Writes priorities by place, spread evenly over 0 to TARN_PRIORITY_MAX. Releases what it allocates
 * from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_priorities_fill(const struct tarn_lowest *lowest, struct tarn_region *region,
                                      const struct tarn_traits *traits, uint32_t i,
                                      int32_t *priority);

/* Writes a priority order that leads back to a plan, or to a lower one: the lower a block lies, the
 * earlier it comes. offset: bytes by storage. Releases what it allocates from the region.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_priorities_of_plan(const struct tarn_lowest *lowest,
                                         struct tarn_region *region, const uint64_t *offset,
                                         int32_t *priority);

#endif
