/* Many blocks that cross the same cuts, stacked and placed as one. */
#ifndef TARN_PLANNER_PLACE_BUNDLES_H
#define TARN_PLANNER_PLACE_BUNDLES_H

#include "lowest.h"

/* Of one block, what it takes to bundle it. */
struct tarn_bundled {
    uint32_t first, last;           /* windows that it may be in conflict with, `last` included */
    int32_t size, alignment, floor; /* in units */
    bool in_antichain;
    int32_t offset; /* the result */
};

/* Two blocks overlap only where none of their windows is the same. size_max: of a bundle of several
 * blocks. False where the plan is too high to be counted; sets *top otherwise. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_bundles_place(struct tarn_bundled *blocks, uint32_t count,
                                    uint32_t windows_count, int32_t size_max, int32_t *top,
                                    bool *placed);

#endif
