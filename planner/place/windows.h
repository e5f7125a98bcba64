/* Placement window by window, for problems too large for one decode: near-linear, in parallel. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_H
#define TARN_PLANNER_PLACE_WINDOWS_H

#include "../../streams/order/antichain.h"
#include "baseline.h"

struct tarn_windows_options {
    uint64_t aim;     /* bytes: a plan up to there is as good as any */
    uint32_t width;   /* storages in a window, about */
    uint32_t threads; /* 0: all cores; the plan does not depend on it */
};

struct tarn_windows_report {
    uint32_t count;    /* windows */
    uint32_t crossing; /* storages that are in more than one of them */
};

/* Writes the offset of every planned storage, and the footprint; neither where some window's plan
 * is too high to be counted. TARN_SYSTEM: no memory. */
enum tarn_status tarn_windows_place(const struct tarn_problem *problem,
                                    const struct tarn_antichain *antichain,
                                    const struct tarn_windows_options *options, uint64_t *offset,
                                    uint64_t *footprint, struct tarn_windows_report *report);

#endif
