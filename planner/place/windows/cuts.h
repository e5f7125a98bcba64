/* Where some storages of a problem may be cut in time, and the windows in between. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_CUTS_H
#define TARN_PLANNER_PLACE_WINDOWS_CUTS_H

#include "planner/place/problem/lifetimes.h"

/* A storage that crosses a cut, in windows. */
struct tarn_crossing {
    uint32_t first; /* it is produced in */
    uint32_t whole; /* those between `first` and this one are in conflict with it as a whole */
    uint32_t end;   /* behind the last one that may be in conflict with it */
};

/* Storages of two windows are never in conflict, unless one of them crosses a cut. */
struct tarn_cuts {
    uint32_t count;                 /* of windows */
    uint32_t *storages;             /* in the order of slots, window by window; last what crosses */
    uint32_t *begin;                /* window -> where its storages begin; count + 2 */
    struct tarn_crossing *crossing; /* of what crosses, in that order */
};

/* storages: whole blocks, in the order of slots. block_of: of every storage of the problem.
 * width: storages in a window, about. TARN_SYSTEM: no memory. */
enum tarn_status tarn_cuts_init(struct tarn_cuts *cuts, const struct tarn_problem *problem,
                                const uint32_t *block_of, const uint32_t *storages, uint32_t count,
                                uint32_t width);
void tarn_cuts_finish(struct tarn_cuts *cuts);

#endif
