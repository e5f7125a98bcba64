/* Placement window by window, for problems too large for one placement: near-linear, in parallel.
 * The door of the room; field.h, which it includes, serves searches that place some blocks around
 * others as well. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_WINDOWS_H
#define TARN_PLANNER_PLACE_WINDOWS_WINDOWS_H

#include "field.h"
#include "streams/base/deadline.h"

struct tarn_windows_options {
    uint64_t aim;     /* bytes: a plan up to there is as good as any */
    uint32_t width;   /* storages in a window, about */
    bool together;    /* streams are not placed apart; does nothing if no stream would be */
    uint32_t threads; /* 0: all cores; the plan does not depend on it */
    /* 0: a good value. A storage is far from its producer when it is released that many windows
     * later. */
    uint32_t far_windows;
    uint32_t crossing_max;      /* 0: a good value. Storages that cross and are placed at once */
    struct tarn_effort *effort; /* NULL: no limit */
    const struct tarn_deadline *deadline; /* NULL: nothing ends it */
    /* NULL, or called with the footprint so far whenever all has a place. */
    void (*progress)(void *user, uint64_t footprint, uint64_t steps);
    void *user;
};

/* offset, by planned storage, and footprint: replaced if the plan by windows is lower. They stay if
 * some window's plan is too high to be counted, or is missing when the search has to end.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_windows_place(const struct tarn_problem *problem,
                                    const struct tarn_windows_options *options, uint64_t *offset,
                                    uint64_t *footprint);

/* ---- Several widths ---- */

struct tarn_widths_options {
    uint64_t aim;     /* bytes: a plan up to there ends the search */
    uint32_t threads; /* 0: all cores; the plan does not depend on it */
    struct tarn_effort *effort;
    /* As above. */
    void (*progress)(void *user, uint64_t footprint, uint64_t steps);
    void *user;
    struct tarn_deadline deadline;
};

/* tarn_windows_place with several widths, one after the other, as far as they are worth it. */
enum tarn_status tarn_widths_place(const struct tarn_problem *problem,
                                   const struct tarn_widths_options *options, uint64_t *offset,
                                   uint64_t *footprint);

/* How much more work a plan is worth: all remaining work if the plan is far above the aim, and the
 * less the closer it is. */
uint64_t tarn_widths_worth(struct tarn_effort *effort, uint64_t aim, uint64_t footprint);

#endif
