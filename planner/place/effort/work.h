/* Defines work, the cost of a search: about nanoseconds of one core of the machine on which the
 * constants were measured (AMD EPYC, AVX2, 2026). Only the innermost loops of the most expensive
 * code count. Work is counted, not measured, so the point at which a search is cut depends neither
 * on a clock nor on the number of threads.
 */
#ifndef TARN_PLANNER_PLACE_EFFORT_WORK_H
#define TARN_PLANNER_PLACE_EFFORT_WORK_H

#include "planner/place/problem/problem.h"

#define TARN_WORK_UNLIMITED UINT64_MAX

/* Milliseconds after which the clock ends a plan for which the caller set no time limit: a fixed
 * part, and a part for each storage, about a thousand times the time that its work takes. Only a
 * broken machine reaches this limit, so a pause, a debugger or a load of a hundred changes no
 * plan. */
#define TARN_WORK_BACKSTOP_MS 4e6
#define TARN_WORK_BACKSTOP_MS_A_STORAGE 5.0

/* Work that a search may do by default: about 4 s for TARN_WORK_FULL_STORAGES or more, and 5 us for
 * each storage; if storages times streams exceed the caches, a unit takes up to two nanoseconds.
 * Fewer storages have less, by the square of their number, as they have fewer pairs: a search that
 * meets no bound has then long found what it finds, and would go on to the end of its work. */
enum { TARN_WORK_A_STORAGE = 4000, TARN_WORK_FULL_STORAGES = 200 };
#define TARN_WORK_DEFAULT UINT64_C(5000000000)
#define TARN_WORK_LEAST UINT64_C(20000000)

static inline uint64_t tarn_work_default(uint32_t storages_count)
{
    uint64_t full = TARN_WORK_FULL_STORAGES, n = storages_count < full ? storages_count : full;
    uint64_t work = TARN_WORK_DEFAULT / (full * full) * n * n;
    if (work < TARN_WORK_LEAST) work = TARN_WORK_LEAST;
    return work + (uint64_t)TARN_WORK_A_STORAGE * storages_count;
}

static inline uint64_t tarn_work_less(uint64_t left, uint64_t done)
{
    if (left == TARN_WORK_UNLIMITED) return left;
    return left > done ? left - done : 0;
}

/* The work that a placement of that many unsafe pairs commonly takes. */
uint64_t tarn_work_of_pairs(uint64_t pairs, uint32_t streams_count);

/* Work of steps that cannot be interrupted, estimated from above. */
struct tarn_work_costs {
    uint64_t place;  /* of all blocks with one priority order */
    uint64_t method; /* of the paper */
};
/* TARN_SYSTEM: no memory. */
enum tarn_status tarn_work_estimate(const struct tarn_problem *problem,
                                    struct tarn_work_costs *costs);

/* ---- Lowest-offset-first ---- */

/* Of a placement: each place, each node that is looked at, each visited run of places; copying and
 * comparing states between placements, for each place. */
enum {
    TARN_WORK_PLACE = 80,
    TARN_WORK_NODE = 8,
    TARN_WORK_RUN = 40,
    TARN_WORK_STREAM = 8,   /* of a placed storage, each stream */
    TARN_WORK_RISE = 200,   /* of a place that has to be selected again */
    TARN_WORK_OBSTACLE = 2, /* each that a place is compared with */
    TARN_WORK_GROUP = 30,
    TARN_WORK_MEMBER = 4,
    TARN_WORK_MAKE = 400, /* making a problem ready, each storage */
    TARN_WORK_COPY = 2
};

/* Of an antichain: each storage, on each stream (8 to 55 measured). */
enum { TARN_WORK_ANTICHAIN = 20 };

/* ---- Repair ---- */

enum {
    TARN_WORK_REPAIR_PAIR = 2,    /* each neighbour of an item whose row is made */
    TARN_WORK_REPAIR_RENEW = 10,  /* each move that is made good in a row */
    TARN_WORK_REPAIR_CHARGE = 20, /* each row that a move changes */
    TARN_WORK_REPAIR_MOVE = 80,
    TARN_WORK_REPAIR_MEET = 16, /* finding those that an item shares bytes with */
    TARN_WORK_REPAIR_GAIN = 30, /* of a pair */
    TARN_WORK_REPAIR_LOOK = 40, /* at an item */
    TARN_WORK_REPAIR_PLACES = 6 /* places or words that take one unit, besides */
};

/* ---- Exact search ---- */

enum {
    TARN_WORK_EXACT_NODE = 600,
    TARN_WORK_EXACT_BLOCK = 2,    /* of a node, each block */
    TARN_WORK_EXACT_SECTION = 20, /* packed, or checked for pieces that cannot be first */
    TARN_WORK_EXACT_PIECE = 2,    /* of these */
    TARN_WORK_EXACT_RAISE = 20,
    TARN_WORK_EXACT_SAVE = 2,     /* of a block, for each word of its set of reasons */
    TARN_WORK_EXACT_CONFLICT = 6, /* of making an instance */
    TARN_WORK_FOLD_PERIOD = 60    /* of finding leaders, each block */
};

#endif
