/* Placement window by window, for problems too large for one decode: near-linear, in parallel. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_WINDOWS_H
#define TARN_PLANNER_PLACE_WINDOWS_WINDOWS_H

#include "field.h"
#include "streams/base/deadline.h"
#include "streams/order/antichain.h"

struct tarn_windows_options {
    uint64_t aim;     /* bytes: a plan up to there is as good as any */
    uint32_t width;   /* storages in a window, about */
    bool together;    /* streams are not placed apart; nothing is done where none would be */
    uint32_t threads; /* 0: all cores; the plan does not depend on it */
    /* 0: good values. Storages released so many windows after their producer are far from it; so
     * many that cross are still placed at once. */
    uint32_t far_windows, crossing_max;
    struct tarn_effort *effort;           /* may be NULL: no limit */
    const struct tarn_deadline *deadline; /* may be NULL: nothing ends it */
};

/* offset, by planned storage, and footprint: replaced where the plan by windows is lower; not where
 * some window's plan is too high to be counted, or missing when it has to end. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_windows_place(const struct tarn_problem *problem,
                                    const struct tarn_antichain *antichain,
                                    const struct tarn_windows_options *options, uint64_t *offset,
                                    uint64_t *footprint);

#endif
