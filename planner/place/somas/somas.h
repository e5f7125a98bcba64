/* Places by the SOMAS paper's two algorithms (section 4), the baseline that better placement must
 * beat. */
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

/* Writes the offset of every planned storage. If the deadline (or NULL) passes before that is done,
 * the footprint is UINT64_MAX. The method's scratch memory is allocated from the region and
 * released. TARN_SYSTEM: no memory. */
enum tarn_status tarn_baseline_place(const struct tarn_problem *problem, struct tarn_region *region,
                                     const struct tarn_method *method,
                                     const struct tarn_deadline *deadline, uint64_t *offset,
                                     uint64_t *footprint);

/* ---- Step by step ---- Single Object with best-fit, one block at a time, for methods that choose
 * the order themselves. */
struct tarn_placer;

/* offset: by storage, written as blocks are placed. Lives in the region, from which placing takes
 * more: a mark made before creation is the last to be released. NULL: no memory. */
struct tarn_placer *tarn_placer_create(struct tarn_region *region,
                                       const struct tarn_problem *problem, uint64_t *offset);
/* Nothing is placed any more. Cheap. */
void tarn_placer_clear(struct tarn_placer *placer);
/* Places a block that is not placed yet at `start`, whatever else is there. */
void tarn_placer_put(struct tarn_placer *placer, struct tarn_block block, uint64_t start);
/* The same if no conflicting storage is there; *fits says whether it was placed. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_placer_try(struct tarn_placer *placer, struct tarn_block block,
                                 uint64_t start, bool *fits);
/* Places it at the offset of the best fit. TARN_SYSTEM: no memory. */
enum tarn_status tarn_placer_place(struct tarn_placer *placer, struct tarn_block block);

/* The paper's Sort: block indices in the order in which they are placed; ties by index. A block of
 * several members comes at the rank of its first member in that order. The sort's scratch memory is
 * allocated from the region and released. TARN_SYSTEM: no memory. */
enum tarn_status tarn_blocks_sort(const struct tarn_problem *problem, struct tarn_region *region,
                                  enum tarn_sort sort, uint32_t *order);

/* ---- Several methods, the best result ---- */

/* All methods, in the order in which ties are broken. */
extern const struct tarn_method tarn_methods[];
extern const uint32_t tarn_methods_count;

/* The index of the method of that name, or TARN_NONE. */
uint32_t tarn_method_find(const char *name);

/* Runs one method, or for TARN_NONE the first `methods_max` useful methods, on up to `threads`
 * threads (0: all cores). Writes the placement of the smallest footprint, its footprint and its
 * method; of equal footprints the first method wins. The result does not depend on the number of
 * threads. Methods after one that meets the bound (no plan is below it; 0: no bound known) are left
 * out, and so are methods that the deadline ends. If no method is left, the footprint is
 * UINT64_MAX. deadline: may be NULL. TARN_SYSTEM: no memory for one of them. */
enum tarn_status tarn_portfolio_place(const struct tarn_problem *problem, uint32_t method,
                                      uint32_t methods_max, uint32_t threads, uint64_t bound,
                                      const struct tarn_deadline *deadline, uint64_t *offset,
                                      uint64_t *footprint, uint32_t *winner);

/* The number of useful methods: some methods differ only if there are groups. */
uint32_t tarn_portfolio_count(const struct tarn_problem *problem);

#endif
