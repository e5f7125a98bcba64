/* One complete depth-first search for a placement within a capacity. */
#ifndef TARN_PLANNER_PLACE_EXACT_SEARCH_H
#define TARN_PLANNER_PLACE_EXACT_SEARCH_H

#include "exact.h"
#include "instance.h"
#include "planner/parallel/parallel.h"

struct tarn_exact_search;

/* The effort of a search: what it has done, or its limit. */
struct tarn_exact_effort {
    uint64_t nodes;
    uint64_t visits; /* pieces that were looked at, about: the cost */
    uint64_t work;   /* the same as work, see work.h */
};

/* Guides a run; none of this changes which placements exist, only how soon one is found. */
struct tarn_exact_guide {
    bool by_section; /* pick in the tightest section, else the lowest of all blocks */
    double slack;    /* units added to every section's slack: the more, the more weights count */
    const uint32_t *rank; /* block -> its rank among equally low ones */
    struct tarn_exact_effort most;
    /* Each ends the run: the deadline, a run with a smaller number that is conclusive. */
    const struct tarn_deadline *deadline;
    const struct tarn_winner *winner; /* NULL: none */
    uint32_t number;
};

/* Capacity in units. The search lives in the region, and is to be finished before it.
 * NULL: no memory. */
struct tarn_exact_search *tarn_exact_search_create(struct tarn_region *region,
                                                   const struct tarn_exact_instance *instance,
                                                   int64_t capacity);
/* search: may be NULL. */
void tarn_exact_search_finish(struct tarn_exact_search *search);

/* Weights of sections and failed states are kept from run to run. */
enum tarn_exact_result tarn_exact_search_run(struct tarn_exact_search *search,
                                             const struct tarn_exact_guide *guide);

/* Makes the weights of sections, failures counted in each run, their mean in all of the searches.
 */
void tarn_exact_search_share(struct tarn_exact_search *const *searches, uint32_t count);

/* By block, in units: the placement that the last run found. */
const int64_t *tarn_exact_search_positions(const struct tarn_exact_search *search);
/* Of the last run. */
struct tarn_exact_effort tarn_exact_search_effort(const struct tarn_exact_search *search);

#endif
