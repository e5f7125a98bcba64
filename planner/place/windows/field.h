/* The field of placement by windows: the blocks of a problem, and their offsets so far. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_FIELD_H
#define TARN_PLANNER_PLACE_WINDOWS_FIELD_H

#include "planner/parallel/parallel.h"
#include "planner/place/effort/effort.h"
#include "planner/place/lowest/lowest.h"
#include "planner/place/problem/problem.h"
#include "streams/base/region.h"

/* Shared by threads, which place different blocks. */
struct tarn_field {
    const struct tarn_problem *problem;
    uint32_t *block_of; /* storage -> block */
    int32_t *floor;     /* block -> the lowest offset allowed, in units */
    int32_t *offset;    /* block -> its offset, in units */
};

/* The same for all windows of a placement. */
struct tarn_windows_settings {
    uint32_t unit_shift;   /* a unit is 1 << unit_shift bytes */
    uint32_t width;        /* storages in a window, about */
    uint32_t far;          /* see split.c, in storages */
    uint32_t crossing_max; /* storages that cross cuts and are placed at once */
    int32_t aim;           /* in units: a plan up to there is as good as any */
    /* By rank of an op: the height that its storages should not exceed, instead of the aim; NULL:
     * the aim holds for all ops. */
    const int32_t *target;
    int32_t least;              /* lower targets count as this */
    uint32_t promotions;        /* of a window that is placed again */
    uint32_t threads;           /* 0: all cores */
    struct tarn_team *team;     /* NULL, or places by priority orders of a part two at a time */
    struct tarn_effort *effort; /* NULL: effort is not counted */
    uint64_t work_max; /* of one placement with all its priority orders; 0: no limit; see work.h */
    const struct tarn_deadline *deadline; /* NULL: no deadline */
    /* NULL, or called as soon as all storages have an offset; the search goes on. */
    void (*placed)(void *user);
    void *user;
};

/* Placements of a part: priority orders begin..end - 1 of priorities.h, then at most as many
 * placements by promotion. */
struct tarn_placements {
    uint32_t begin, end, promotions;
};

/* Taken from the region: no floors, all offsets 0. Reads the problem as long as it lives. False: no
 * memory. */
bool tarn_field_init(struct tarn_field *field, struct tarn_region *region,
                     const struct tarn_problem *problem);

/* The bytes of a storage, in units, rounded outward. */
struct tarn_span tarn_field_span(const struct tarn_field *field, uint32_t unit_shift, uint32_t a);

/* Places some storages, whole blocks in the order of slots, at once: with each of the priority
 * orders around obstacles, whose `origin` it sets, then by promotion, until the aim is met or a
 * limit is reached. Offsets and *top change if they become lower, or if there are targets and the
 * offsets miss them by less. The region is as before in the end. False: no memory. */
bool tarn_field_place(const struct tarn_field *field, struct tarn_region *region,
                      const struct tarn_windows_settings *settings, const uint32_t *storages,
                      uint32_t count, struct tarn_obstacles *obstacles,
                      struct tarn_placements placements, int32_t *top);

#endif
