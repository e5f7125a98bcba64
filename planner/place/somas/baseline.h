/* The SOMAS paper's two algorithms (section 4), the baseline that better placement must beat. */
#ifndef TARN_PLANNER_PLACE_SOMAS_BASELINE_H
#define TARN_PLANNER_PLACE_SOMAS_BASELINE_H

#include "planner/place/problem/block.h"
#include "planner/place/problem/conflict.h"
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

/* What there is to place; all of it is only read. */
struct tarn_problem {
    const struct tarn_graph *graph;
    const struct tarn_blocks *blocks;
    const struct tarn_conflicts *conflicts;
};

/* Writes the offset of every planned storage. Where it has to end before that is done, the
 * footprint is UINT64_MAX; until may be NULL. TARN_SYSTEM: no memory. */
enum tarn_status tarn_baseline_place(const struct tarn_problem *problem,
                                     const struct tarn_method *method,
                                     const struct tarn_deadline *deadline, uint64_t *offset,
                                     uint64_t *footprint);

/* ---- Step by step ----
 * Single Object with best-fit as a tool for methods that decide themselves what comes when. */
struct tarn_placer;

/* offset: by storage, written as blocks are placed. NULL: no memory. */
struct tarn_placer *tarn_placer_create(const struct tarn_problem *problem, uint64_t *offset);
void tarn_placer_destroy(struct tarn_placer *placer);
/* Nothing is placed any more. Cheap. */
void tarn_placer_clear(struct tarn_placer *placer);
/* Places a block, which is not yet, where it is told, whatever else is there. */
void tarn_placer_put(struct tarn_placer *placer, struct tarn_block block, uint64_t start);
/* The same if no conflicting storage is there; *fits: so it was. TARN_SYSTEM: no memory. */
enum tarn_status tarn_placer_try(struct tarn_placer *placer, struct tarn_block block,
                                 uint64_t start, bool *fits);
/* Places it where it fits best. TARN_SYSTEM: no memory. */
enum tarn_status tarn_placer_place(struct tarn_placer *placer, struct tarn_block block);

/* The paper's Sort: block indices in the order in which they are placed; ties by index. A block of
 * several members has its turn when the first of them would. TARN_SYSTEM: no memory. */
enum tarn_status tarn_blocks_sort(const struct tarn_problem *problem, enum tarn_sort sort,
                                  uint32_t *order);

#endif
