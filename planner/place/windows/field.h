/* What placement by windows works on: the blocks of a problem, and where they are so far. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_FIELD_H
#define TARN_PLANNER_PLACE_WINDOWS_FIELD_H

#include "planner/place/effort.h"
#include "planner/place/lowest/obstacles.h"
#include "planner/place/problem/part.h"
#include "streams/order/antichain.h"

/* Shared by threads, which place different blocks. */
struct tarn_field {
    const struct tarn_problem *problem;
    const uint32_t *threshold; /* names the heaviest antichain, see antichain.h */
    uint32_t *block_of;        /* storage -> block */
    int32_t *floor;            /* by block, in units: the least offset allowed */
    int32_t *offset;           /* by block, in units: the result */
};

/* The same for all of a placement. */
struct tarn_windows_settings {
    uint32_t unit_shift, width, far, crossing_max;
    int32_t aim;
    uint32_t threads;           /* 0: all cores */
    struct tarn_effort *effort; /* may be NULL: nobody counts */
    uint64_t work_max; /* ends a decode of a part, all its keys together; 0: nothing does */
    const struct tarn_deadline *deadline; /* may be NULL */
};

/* No floors, all offsets 0. Reads the problem and the antichain as long as it lives. False: no
 * memory. */
bool tarn_field_init(struct tarn_field *field, const struct tarn_problem *problem,
                     const struct tarn_antichain *antichain);
void tarn_field_finish(struct tarn_field *field);

/* Where a storage lies, in units, rounded outward. */
struct tarn_span tarn_field_span(const struct tarn_field *field, uint32_t unit_shift, uint32_t a);

/* Places some storages, whole blocks in the order of slots, at once: with keys begin..end around
 * obstacles, whose `origin` it sets, until the aim is met or time is over. Offsets and *top change
 * where they become lower. False: no memory. */
bool tarn_field_decode(const struct tarn_field *field, const struct tarn_windows_settings *settings,
                       const uint32_t *storages, uint32_t count, struct tarn_obstacles *obstacles,
                       uint32_t begin, uint32_t end, int32_t *top);

#endif
