/* A search by greedy lowest-offset-first placement: its state, shared by priority orders and local
 * searches, and the priority orders. */
#ifndef TARN_PLANNER_PLACE_SEARCH_H
#define TARN_PLANNER_PLACE_SEARCH_H

#include "improve.h"
#include "planner/parallel/parallel.h"
#include "planner/place/lowest/lowest.h"
#include "planner/place/problem/problem.h"
#include "streams/base/region.h"

/* The priority orders of the portfolio, and last the order of the given plan. */
enum { TARN_SEARCH_PRIORITIES = TARN_PRIORITIES_COUNT + 1 };
/* Number of priority orders to try if trying all costs too much. */
enum { TARN_SEARCH_BEST_PRIORITIES = 4 };

/* A plan in units. */
struct tarn_candidate {
    int32_t *offset; /* place -> offset */
    int32_t top;     /* INT32_MAX: none yet */
    uint64_t from; /* the number of the priority order or step that made it; of equal plans the one
                      with the lowest number wins */
};

struct tarn_search {
    const struct tarn_improve_options *options;
    struct tarn_region region;
    struct tarn_lowest lowest;
    struct tarn_traits traits;
    int32_t aim;              /* a plan of at most this height ends the search, in units */
    const uint64_t *given;    /* storage -> its offset in the given plan */
    uint32_t best_priorities; /* 0: all priority orders; else the first so many of the list in
                                 search.c */
    int32_t tops[TARN_SEARCH_PRIORITIES]; /* priority order -> how high its plan is; INT32_MAX: it
                                             has no plan */
    uint64_t priority_work[TARN_SEARCH_PRIORITIES]; /* priority order -> its placement's work */
    struct tarn_candidate best;
    struct tarn_winner winner; /* by tarn_candidate.from */
    uint64_t steps;            /* made by each local search */
    double begin_ms;
    struct tarn_team team;
    uint64_t work_left; /* see work.h */
    atomic_bool cut;    /* for want of work */
    /* A priority order had to hurry (greedy.c): local searches, which cannot hurry, would take too
     * long. */
    atomic_bool hurried;
    atomic_bool no_memory;
};

/* Prepares a search. The caller finishes the search whatever this returns. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_search_init(struct tarn_search *search, const struct tarn_problem *problem,
                                  uint64_t aim, const uint64_t *offset);
void tarn_search_finish(struct tarn_search *search);

/* Places by every priority order. TARN_SYSTEM: no memory. */
enum tarn_status tarn_search_priorities(struct tarn_search *search);
/* Writes priority order i. Releases what it allocates from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_search_fill_priority(const struct tarn_search *search,
                                           struct tarn_region *region, uint32_t i,
                                           int32_t *priority);
/* The name of the priority order that made the best plan; NULL: a local search made it, or it is
 * the given plan. */
const char *tarn_search_priority_name(const struct tarn_search *search);

/* From the region. False: no memory. */
bool tarn_candidate_init(struct tarn_candidate *candidate, struct tarn_region *region,
                         uint32_t count);
/* True when the candidate has become better. */
bool tarn_search_offer(const struct tarn_search *search, struct tarn_candidate *candidate,
                       const struct tarn_candidate *other);
void tarn_search_report(const struct tarn_search *search, int32_t top);
bool tarn_search_is_over(const struct tarn_search *search);

/* Local searches: searches that change priority orders and floors step by step, starting at the
 * plans of the best priority orders. */

/* Looks for a plan below the best plan of the priority orders and below `footprint`, the footprint
 * of the given plan. pre: the best plan of the priority orders has been found and does not meet the
 * aim. TARN_SYSTEM: no memory. */
enum tarn_status tarn_local_searches_run(struct tarn_search *search, uint64_t footprint);

/* One quick pass of lowest-offset-first before any search: if a search is ended at once, its plan
 * is the result. */

/* offset, footprint: a safe plan; replaced by the pass's plan if that is lower. The pass cannot be
 * interrupted; it takes at most about 1 s and 2 us for each storage. threads: 0: all cores; the
 * plan does not depend on it. TARN_SYSTEM: no memory. */
enum tarn_status tarn_pass_place(const struct tarn_problem *problem, uint32_t threads,
                                 uint64_t *offset, uint64_t *footprint);

#endif
