/* The SOMAS paper's two algorithms (section 4), the baseline that better placement must beat. */
#ifndef TARN_PLANNER_PLACE_BASELINE_H
#define TARN_PLANNER_PLACE_BASELINE_H

#include "block.h"
#include "conflict.h"

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

/* Writes the offset of every planned storage. TARN_SYSTEM: no memory. */
enum tarn_status tarn_baseline_place(const struct tarn_problem *problem,
                                     const struct tarn_method *method, uint64_t *offset,
                                     uint64_t *footprint);

/* The paper's Sort: block indices in the order in which they are placed; ties by index. A block of
 * several members has its turn when the first of them would. TARN_SYSTEM: no memory. */
enum tarn_status tarn_blocks_sort(const struct tarn_problem *problem, enum tarn_sort sort,
                                  uint32_t *order);

#endif
