/* A search by lowest-offset-first: what keys and walks have in common, and the keys. */
#ifndef TARN_PLANNER_PLACE_SEARCH_H
#define TARN_PLANNER_PLACE_SEARCH_H

#include "improve.h"
#include "planner/parallel/parallel.h"
#include "planner/place/lowest/lowest.h"
#include "planner/place/problem/problem.h"
#include "streams/base/region.h"

/* The keys of the portfolio, and last the order of the plan that came in. */
enum { TARN_SEARCH_KEYS = TARN_KEYS_COUNT + 1 };
/* Keys that are worth their work where few are. */
enum { TARN_SEARCH_BEST_KEYS = 4 };

/* A plan in units. */
struct tarn_candidate {
    int32_t *offset; /* place -> offset */
    int32_t top;     /* INT32_MAX: none yet */
    uint64_t from;   /* the number of the key or step that made it: of equal plans the least wins */
};

struct tarn_search {
    const struct tarn_improve_options *options;
    struct tarn_region region;
    struct tarn_lowest lowest;
    struct tarn_traits traits;
    int32_t aim;                         /* a plan up to there ends the search, in units */
    const uint64_t *given;               /* storage -> its offset in the plan that came in */
    uint32_t best_keys;                  /* 0: all keys; else as many of the best ones */
    int32_t tops[TARN_SEARCH_KEYS];      /* key -> how high its plan is; INT32_MAX: it has none */
    uint64_t key_work[TARN_SEARCH_KEYS]; /* key -> what its decode took */
    struct tarn_candidate best;
    struct tarn_winner winner; /* by tarn_candidate.from */
    uint64_t steps;            /* that every walk has made */
    double begin_ms;
    struct tarn_team team;
    uint64_t work_left; /* see work.h */
    atomic_bool cut;    /* for want of work */
    /* A key had to hurry (decode.c): walks, which cannot hurry, would take too long. */
    atomic_bool hurried;
    atomic_bool no_memory;
};

/* What there is to search in. The search is to be finished whatever comes back. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_search_init(struct tarn_search *search, const struct tarn_problem *problem,
                                  uint64_t aim, const uint64_t *offset);
void tarn_search_finish(struct tarn_search *search);

/* Decodes every key. TARN_SYSTEM: no memory. */
enum tarn_status tarn_search_keys(struct tarn_search *search);
/* Writes key i. Gives back what it takes from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_search_fill_key(const struct tarn_search *search, struct tarn_region *region,
                                      uint32_t i, int32_t *key);
/* The name of the key that made the best plan; NULL: a walk, or the plan that came in. */
const char *tarn_search_key_name(const struct tarn_search *search);

/* From the region. False: no memory. */
bool tarn_candidate_init(struct tarn_candidate *candidate, struct tarn_region *region,
                         uint32_t count);
/* True when the candidate has become better. */
bool tarn_search_offer(const struct tarn_search *search, struct tarn_candidate *candidate,
                       const struct tarn_candidate *other);
void tarn_search_report(const struct tarn_search *search, int32_t top);
bool tarn_search_is_over(const struct tarn_search *search);

/* Walks: searches that change keys and floors step by step, from the best keys' plans on. */

/* Looks for a plan below the best one of the keys, which has been found but does not meet the aim,
 * and below `footprint`, that of the plan that came in. TARN_SYSTEM: no memory. */
enum tarn_status tarn_walks_run(struct tarn_search *search, uint64_t footprint);

/* One pass of lowest-offset-first: the plan that there is even where a search was ended at once. */

/* offset, footprint: a safe plan; replaced by that of the pass where it is lower. It runs to its
 * end: about 1 s and 2 us for each storage at most. threads: 0: all cores; the plan does not depend
 * on it. TARN_SYSTEM: no memory. */
enum tarn_status tarn_pass_place(const struct tarn_problem *problem, uint32_t threads,
                                 uint64_t *offset, uint64_t *footprint);

#endif
