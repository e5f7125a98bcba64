/* Cuts some storages of a problem in time, into windows and the storages that cross them. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_CUTS_H
#define TARN_PLANNER_PLACE_WINDOWS_CUTS_H

#include "planner/place/problem/problem.h"
#include "streams/base/region.h"

/* A storage that crosses a cut: numbers of windows. */
struct tarn_crossing {
    uint32_t first; /* the window that produces it */
    uint32_t whole; /* the windows between `first` and this one are in conflict with all of it */
    uint32_t end;   /* one more than the last window that may be in conflict with it */
};

/* Storages of two windows are never in conflict, unless one of them crosses a cut. Large groups
 * count as crossing, wherever they are. */
struct tarn_cuts {
    uint32_t count;     /* of windows */
    uint32_t *storages; /* window by window, then storages that cross; each in slot order */
    uint32_t *begin; /* window -> start of its storages; at `count`: of crossing ones; count + 2 */
    struct tarn_crossing *crossing; /* of crossing storages, in the order of `storages` */
    bool has_large;                 /* a group is among the crossing storages */
};

/* Allocates from the region. storages: whole blocks, in the order of slots. block_of: of every
 * storage of the problem. width: storages in a window, about. large: bytes from which a group
 * counts as large. TARN_SYSTEM: no memory. */
enum tarn_status tarn_cuts_init(struct tarn_cuts *cuts, struct tarn_region *region,
                                const struct tarn_problem *problem, const uint32_t *block_of,
                                const uint32_t *storages, uint32_t count, uint32_t width,
                                uint64_t large);

/* Do windows have each of `listed` storages once, and does every crossing storage cross? For
 * assertions; cost: linear. */
bool tarn_cuts_are_valid(const struct tarn_cuts *cuts, uint32_t listed);

#endif
