/* The SOMAS paper's two algorithms (section 4), the baseline that better placement must beat. */
#ifndef TARN_PLANNER_PLACE_SOMAS_SOMAS_H
#define TARN_PLANNER_PLACE_SOMAS_SOMAS_H

#include "planner/place/problem/problem.h"
#include "streams/base/deadline.h"

enum tarn_sort {
    TARN_SORT_SIZE,     /* largest block first */
    TARN_SORT_BREADTH,  /* most bytes alive at the producer first */
    TARN_SORT_SOURCE,   /* earliest producer first */
    TARN_SORT_UNSAFE,   /* most unsafe pairs first */
    TARN_SORT_LIFETIME, /* longest lifetime first */
};

struct tarn_method {
    const char *name;
    bool many_objects; /* else Single Object */
    enum tarn_sort sort;
    bool best_fit; /* else first-fit */
    bool paper;    /* with Algorithm 10's head-size test; only blocks of several members differ */
};

/* Writes the offset of every planned storage. Where the deadline (or NULL) passes before that is
 * done, the footprint is UINT64_MAX. What the method works in is taken from the region and given
 * back. TARN_SYSTEM: no memory. */
enum tarn_status tarn_baseline_place(const struct tarn_problem *problem, struct tarn_region *region,
                                     const struct tarn_method *method,
                                     const struct tarn_deadline *deadline, uint64_t *offset,
                                     uint64_t *footprint);

/* ---- Step by step ----
 * Single Object with best-fit as a tool for methods that decide themselves what comes when. */
struct tarn_placer;

/* offset: by storage, written as blocks are placed. Lives in the region, from which placing takes
 * more: a mark made before creation is the last to be released. NULL: no memory. */
struct tarn_placer *tarn_placer_create(struct tarn_region *region,
                                       const struct tarn_problem *problem, uint64_t *offset);
/* Nothing is placed any more. Cheap. */
void tarn_placer_clear(struct tarn_placer *placer);
/* Places a block that is not placed yet at `start`, whatever else is there. */
void tarn_placer_put(struct tarn_placer *placer, struct tarn_block block, uint64_t start);
/* The same if no conflicting storage is there; *fits tells whether. TARN_SYSTEM: no memory. */
enum tarn_status tarn_placer_try(struct tarn_placer *placer, struct tarn_block block,
                                 uint64_t start, bool *fits);
/* Places it where it fits best. TARN_SYSTEM: no memory. */
enum tarn_status tarn_placer_place(struct tarn_placer *placer, struct tarn_block block);

/* The paper's Sort: block indices in the order in which they are placed; ties by index. A block of
 * several members comes where the first of them in that order would. What the sort works in is
 * taken from the region and given back. TARN_SYSTEM: no memory. */
enum tarn_status tarn_blocks_sort(const struct tarn_problem *problem, struct tarn_region *region,
                                  enum tarn_sort sort, uint32_t *order);

/* ---- Several methods, the best result ---- */

/* All methods, in the order in which ties are broken. */
extern const struct tarn_method tarn_methods[];
extern const uint32_t tarn_methods_count;

/* The index of the method of that name, or TARN_NONE. */
uint32_t tarn_method_find(const char *name);

/* Runs one method, or all of them for TARN_NONE (that is, the first `methods_max` worth their
 * while), on up to `threads` threads (0: all cores). Writes the offsets and footprint of the least
 * footprint, of equal ones the first in order of methods, and which method that was; nothing of it
 * depends on the number of threads. Methods after one that meets the bound (no plan is below it; 0:
 * none known) are left out, and those that have to end before they are done; when that leaves none,
 * the footprint is UINT64_MAX. deadline: may be NULL. TARN_SYSTEM: no memory for one of them. */
enum tarn_status tarn_portfolio_place(const struct tarn_problem *problem, uint32_t method,
                                      uint32_t methods_max, uint32_t threads, uint64_t bound,
                                      const struct tarn_deadline *deadline, uint64_t *offset,
                                      uint64_t *footprint, uint32_t *winner);

/* How many methods are worth their while: some differ where there are groups only. */
uint32_t tarn_portfolio_count(const struct tarn_problem *problem);

#endif
