/* Finds all pairs of storages of two plans that share a byte: a reserved byte of planned storages,
 * an exact byte of persistent ones, whose padding is never written. */
#ifndef TARN_STREAMS_PLAN_SWEEP_H
#define TARN_STREAMS_PLAN_SWEEP_H

#include "plan.h"

struct tarn_extent {
    uint32_t space;
    uint64_t begin, end; /* in that memory space */
    uint32_t storage;
};

struct tarn_extents {
    struct tarn_extent *items; /* by space, then begin */
    uint32_t count;
    struct tarn_extent *active; /* extents that may reach beyond the sweep's position */
    uint32_t active_count;
};

/* Makes the extents of storages [first, last) of the plan; from the region. False: no memory. */
bool tarn_extents_init(struct tarn_extents *extents, const struct tarn_plan *plan, uint32_t first,
                       uint32_t last, struct tarn_region *region);

/* Goes through all pairs that share a byte: each storage is paired with storages of the other side
 * that begin before it and end after its start. */
struct tarn_sweep {
    struct tarn_extents sides[2]; /* of `from`, of `to` */
    uint32_t next[2];
    struct tarn_extent met; /* the present storage; of side `side` */
    uint32_t side;
};

/* Moves to the next storage; the storages of the other side that share bytes with it are then
 * sides[1 - side].active. False: no more storages. */
bool tarn_sweep_next(struct tarn_sweep *sweep);

#endif
