/* Placement that aims at the bound: lowest-offset-first with a portfolio of priority orders, then
 * local searches that change priority orders and floors. Anytime: whatever stops it, the best plan
 * so far is the result, and it is never worse than the plan that came in. */
#ifndef TARN_PLANNER_PLACE_IMPROVE_H
#define TARN_PLANNER_PLACE_IMPROVE_H

#include "planner/place/problem/problem.h"
#include "streams/base/deadline.h"

struct tarn_improve_options {
    uint64_t bound;    /* bytes: no plan is smaller; at least the antichain's weight */
    uint64_t capacity; /* bytes: the first plan that fits ends the search; 0: no capacity */
    uint64_t steps;    /* of each of the local searches; 0: priority orders only */
    uint64_t work_max; /* see work.h; 0: no limit */
    uint64_t patience; /* steps without a better plan after which local searches end; 0: no limit */
    uint64_t seed;     /* of the local searches' random numbers */
    uint32_t threads;  /* 0: all cores; results do not depend on it */
    /* NULL, or called from the calling thread whenever the best footprint has become smaller. */
    void (*progress)(void *user, uint64_t footprint, uint64_t steps);
    void *user; /* of progress; may be NULL */
    struct tarn_deadline deadline;
};

struct tarn_improve_report {
    const char *priority; /* the name of the priority order that made the plan; NULL: a local
                             search, or no better plan */
    bool by_local_search; /* a local search has made the plan */
    uint64_t steps;       /* that each local search has made at most */
    uint64_t work;        /* that was done */
    bool cut;             /* the search would have gone on, but for want of work */
    double priorities_ms, locals_ms;
};

/* Rounds a lower bound of `bytes` up to the next footprint that a plan of these blocks can have:
 * every block begins and ends at a multiple of the plan's alignment. */
uint64_t tarn_improve_round_bound(const struct tarn_blocks *blocks, uint64_t bytes);

/* offset, footprint: a safe plan; replaced by the best one found. TARN_SYSTEM: no memory. */
enum tarn_status tarn_improve_place(const struct tarn_problem *problem,
                                    const struct tarn_improve_options *options, uint64_t *offset,
                                    uint64_t *footprint, struct tarn_improve_report *report);

#endif
