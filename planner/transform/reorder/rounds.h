/* Rounds of improvement of an order of nodes that run one after another, see rounds.c. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_ROUNDS_H
#define TARN_PLANNER_TRANSFORM_REORDER_ROUNDS_H

#include "bound.h"
#include "exact.h"
#include "greedy.h"
#include "planner/transform/steps.h"
#include "tarn/transform.h"

/* How good an order is: a lower peak is better, then fewer steps of that height. */
struct tarn_reorder_score {
    uint64_t peak;  /* bytes */
    uint32_t steps; /* of that height */
};

struct tarn_reordering {
    struct tarn_region *region; /* of all memory but the bound's flow */
    const struct tarn_reorder_model *model;
    struct tarn_reorder_greedy greedy;
    struct tarn_reorder_bound bound;
    struct tarn_reorder_exact exact;
    struct tarn_reorder_postpone postpone;
    struct tarn_steps steps;
    uint64_t least;    /* bytes: no order has a lower peak */
    uint32_t *best;    /* the best order so far */
    uint32_t *attempt; /* an order that is tried */
    uint32_t *late;    /* the attempt with nodes put off */
    uint32_t left_out; /* the stages that do not run: the sum of 1u << stage */
    uint64_t *step;    /* place in the best order -> bytes alive then */
    uint64_t *trial;   /* the same for `late` */
    uint8_t *cut;      /* node -> its side of the minimum cut at the highest step (bound.h) */
    struct tarn_reorder_score score; /* of the best order */
    bool is_restarted;               /* the bound is not looked at any more, but by single cuts */
    struct tarn_reorder_report report;
};

/* Starts with the nodes in the model's order. The caller has set region, left_out and steps, and
 * nothing else. TARN_SYSTEM: no memory; *reordering can be finished in any case. */
enum tarn_status tarn_reordering_init(struct tarn_reordering *reordering,
                                      const struct tarn_reorder_model *model);
void tarn_reordering_finish(struct tarn_reordering *reordering);

/* Is the stage not left out? */
bool tarn_reordering_has(const struct tarn_reordering *reordering, enum tarn_reorder_stage stage);

/* Goes on from another order, which is legal. */
void tarn_reordering_restart(struct tarn_reordering *reordering, const uint32_t *order);

/* Improves `best`, and raises `least`, for at most `effort` rounds. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reordering_run(struct tarn_reordering *reordering, uint32_t effort);

#endif
