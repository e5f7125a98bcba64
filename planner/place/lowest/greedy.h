/* Greedy lowest-offset-first placement. Every unplaced block has a lower limit. Each step places
 * the block with the smallest limit at this limit; of blocks with equal limits, the one with the
 * highest priority. Then the limits of the blocks in conflict with it rise above it.
 *
 * Works on places: lone storages by (stream, position) of their producer, then the blocks of
 * several members. Offsets are counted in units, a power of two of bytes, and are below 2^30, so
 * that all arithmetic fits the narrow lanes of vector units. Sizes round outward to units. Unless
 * the arena is huge, the unit divides every size and border, and nothing is lost. */
#ifndef TARN_PLANNER_PLACE_LOWEST_GREEDY_H
#define TARN_PLANNER_PLACE_LOWEST_GREEDY_H

#include "extremes.h"
#include "kernels.h"
#include "obstacles.h"
#include "planner/place/problem/problem.h"
#include "streams/base/deadline.h"
#include "streams/base/region.h"

enum { TARN_UNITS_MAX = (1 << 30) - 1, TARN_PRIORITY_MAX = (1 << 24) - 1, TARN_MEMBERS_RUN = 16 };

/* A problem made ready for placing; shared by threads. */
struct tarn_lowest {
    const struct tarn_problem *problem;
    const struct tarn_obstacles *obstacles; /* or NULL */
    uint32_t unit_shift;                    /* a unit is 1 << unit_shift bytes */
    uint32_t count;                         /* places */
    uint32_t *block;                        /* place -> index into problem->blocks */
    int32_t *size;                          /* by place */
    int32_t *alignment;                     /* by place */
    int32_t *ceiling;              /* by place: 0 if its limit needs care: groups, own alignments */
    struct tarn_lanes lone;        /* its places are the first ones here */
    struct tarn_extremes extremes; /* of lone */
    uint32_t *reach; /* [place in lone][stream]: end of the lone places in conflict there */
    /* The lone places of stream s before since[since_begin[t] + p / 64][s] are all released when
     * position p of stream t produces its storages. */
    uint32_t *since_begin, *since;
    struct tarn_lanes members; /* storages of groups, see below */
    struct tarn_lanes heads;   /* the first member of each group, in the order of their places */
    /* By place in `members`. */
    int32_t *within, *member_end; /* in their block, rounded outward */
    /* Groups: place lone.count + g has the members listed in member[group_begin[g] ..]. */
    uint32_t groups_count;
    uint32_t *group_begin;
    uint32_t *member; /* place in `members`, in the block's order */
    /* Lifetimes (tarn_lifetimes): only storages whose lifetimes meet may be in conflict. NULL
     * without groups. By place in `lone`; by index into `member`; for each group, from its first
     * member's start to its last member's end; the same for TARN_MEMBERS_RUN members of the
     * list. */
    struct tarn_span *lone_life, *member_life, *group_life, *run_life;
};

/* bytes_max: no plan above it will be asked for; sets the unit. Lives in the region, and reads the
 * problem as long. TARN_SYSTEM: no memory. */
enum tarn_status tarn_lowest_init(struct tarn_lowest *lowest, struct tarn_region *region,
                                  const struct tarn_problem *problem, uint64_t bytes_max);
/* The same around obstacles, which set the unit, as long as they live. */
enum tarn_status tarn_lowest_init_around(struct tarn_lowest *lowest, struct tarn_region *region,
                                         const struct tarn_problem *problem,
                                         const struct tarn_obstacles *obstacles);
/* The unit that tarn_lowest_init takes. */
uint32_t tarn_lowest_unit_shift(const struct tarn_blocks *blocks, uint64_t bytes_max);

/* Bytes in whole units, rounded down; at most TARN_UNITS_MAX. */
int32_t tarn_lowest_units(const struct tarn_lowest *lowest, uint64_t bytes);

/* How much a plan misses its aim, in units: a weighted sum of its height above the aim and of all
 * bytes above the aim. */
struct tarn_objective {
    int32_t aim;
    int32_t top_weight, bytes_weight;
};
#define TARN_MISS_MAX INT64_MAX

/* The place that comes first of some places: the code that kernels.foremost gives, and its run. */
struct tarn_leader {
    int32_t code; /* -1: not known */
    uint32_t run;
};

/* The limits of the nodes of a level, see extremes.h. */
struct tarn_limits_level {
    int32_t *least;               /* limit of their places */
    int32_t *greatest;            /* no limit of a place that is not placed is above it */
    int32_t *pending;             /* limit to which all limits in the node still have to rise */
    struct tarn_leader *first;    /* of the places with the lowest limit */
    struct tarn_leader *champion; /* of all unplaced places */
    uint32_t count;
};

/* A placement in progress. */
struct tarn_greedy {
    const struct tarn_lowest *lowest;
    const struct tarn_lane_kernels *kernels;
    int32_t *state; /* one array of state_size numbers: all up to `groups` */
    size_t state_size;
    int32_t *limit;        /* by place, without floors that have not mattered; INT32_MAX: placed */
    int32_t *ceiling;      /* by place: some placed member in conflict may begin here or above */
    int32_t *member_limit; /* by place in `members`: lowest offset of its block */
    struct tarn_limits_level levels[TARN_LEVELS_MAX]; /* as many as lowest->extremes has */
    struct tarn_leader *leaders;                      /* of all levels */
    int32_t *groups; /* those that are placed and reach above the current offset */
    uint32_t groups_count;
    int32_t *offset; /* by place: the result */
    uint32_t done;   /* places that are placed */
    uint32_t *step;  /* by place: `done` when it was placed */
    uint32_t
        *lifted;     /* by place: `done` when its floor mattered for the first time, or TARN_NONE */
    int32_t current; /* offset of the place that was placed last, in units */
    int32_t top;
    int64_t miss;
    const struct tarn_extremes *extremes; /* at most the rows of unplaced places: */
    struct tarn_extremes narrowed;        /* if `narrows`: the greedy placement's own */
    uint8_t *placed;                      /* if it narrows: by run, how many places are placed */
    uint8_t *narrowed_at;                 /* by stream and run: `placed` when it was narrowed */
    bool narrows;
    bool hurries;   /* set after making, if no state is restored later: places soon, see greedy.c */
    uint64_t rises; /* of this placement */
    const struct tarn_deadline *deadline; /* NULL, or ends a placement; set after making */
    uint64_t work, work_max; /* of all placements so far, see work.h; ends them, 0: no limit */
};
/* Lives in the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_greedy_init(struct tarn_greedy *greedy, struct tarn_region *region,
                                  const struct tarn_lowest *lowest);

/* After the next start, the greedy placement goes straight to the end and never restores a saved
 * state. So it may forget placed blocks, which saves much time with many places. TARN_SYSTEM: no
 * memory.
 */
enum tarn_status tarn_greedy_narrow(struct tarn_greedy *greedy, struct tarn_region *region);

/* floor: by place, the lowest offset allowed, or NULL. */
void tarn_greedy_start(struct tarn_greedy *greedy, const int32_t *floor);

/* To be called when priority orders or floors have changed since the state was made. */
void tarn_greedy_forget(struct tarn_greedy *greedy, const int32_t *floor);

/* Goes on until `wanted` blocks are placed; priority: by place, 0 to TARN_PRIORITY_MAX. False as
 * soon as the objective is missed by more than `miss_max`, or by more than can be counted, or time
 * or work is over. */
bool tarn_greedy_advance(struct tarn_greedy *greedy, const int32_t *priority, const int32_t *floor,
                         struct tarn_objective objective, int64_t miss_max, uint32_t wanted);

/* Has it hurried and placed a block at once at an offset that was possible? */
bool tarn_greedy_hurried(const struct tarn_greedy *greedy);

/* A lower limit for the miss in the end. */
int64_t tarn_greedy_expect(const struct tarn_greedy *greedy, struct tarn_objective objective);

/* The footprint of a plan, in bytes. */
uint64_t tarn_lowest_footprint(const struct tarn_lowest *lowest, const int32_t *place_offset);

/* Writes a plan's byte offsets by storage. */
void tarn_lowest_offsets(const struct tarn_lowest *lowest, const int32_t *place_offset,
                         uint64_t *offset);

/* ---- A search for a better plan: blocks that end too high are placed earlier ---- */

struct tarn_promotion {
    const int32_t *floor;  /* by place, the lowest offset allowed, or NULL */
    const int32_t *target; /* by place, the height that it should not exceed, in units */
    int32_t *priority;     /* by place: the initial priorities; they change */
    uint32_t placements_max;
    int32_t excess;  /* the maximum by which a place ends above its target; at first: in the plan so
                        far */
    int32_t *offset; /* by place: the best plan, if it is better than the plan so far */
    int32_t top;     /* of the best plan */
};

/* Up to placements_max placements, until every target is met, or the greedy placement has no work
 * or time left. Releases what it allocates from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_promote(struct tarn_promotion *promotion, struct tarn_greedy *greedy,
                              struct tarn_region *region);

#endif
