/* Plans one problem: the functions that plan_graph.c shares with spaces.c, which plans several
 * memory spaces.
 */
#ifndef TARN_PLANNER_PLAN_GRAPH_PLANNING_H
#define TARN_PLANNER_PLAN_GRAPH_PLANNING_H

#include "planner/place/place.h"
#include "streams/order/gap_bound.h"
#include "streams/order/view.h"
#include "streams/plan/plan.h"

struct tarn_planning {
    struct tarn_region region; /* of problem and bound */
    struct tarn_plan_options options;
    uint32_t unlimited; /* number of memory spaces, the first ones, whose capacities do not count */
    bool aims; /* the first plan within the capacity will do; else a capacity is a limit alone */
    uint32_t work_part; /* one part in that many of the usual work may be done; 0: all of it */
    struct tarn_place_request request;
    double begin_ms;   /* of this plan, on the clock of deadlines */
    uint64_t reported; /* the last footprint reported to the caller; 0: none */
    struct tarn_plan *plan;
    struct tarn_view view;       /* of the plan's graph */
    struct tarn_problem problem; /* of the view */
    struct tarn_gap_bound bound; /* the plan's certificate, in positions of the view */
    uint32_t last_fixed; /* the storage whose fixed place is the bound; TARN_NONE: none is */
    uint64_t needed; /* bytes that a refusal names: the bound, or the footprint found; 0: neither */
    bool cannot_fit; /* proved by search: no placement is at the bound, or within the capacity */
};

/* Places the persistent storages of the plan's graph, as the options' alignment says. */
enum tarn_status tarn_planning_persistent(struct tarn_planning *planning, struct tarn_error *error);
/* Finds the bound and the offsets of the planned storages of the plan's graph. TARN_DOES_NOT_FIT;
 * TARN_USAGE: no such method; TARN_SYSTEM. */
enum tarn_status tarn_planning_run(struct tarn_planning *planning, struct tarn_error *error);

/* The first part of it: everything but the offsets. TARN_DOES_NOT_FIT: the bound does not. */
enum tarn_status tarn_planning_begin(struct tarn_planning *planning, struct tarn_error *error);
/* After that, writes offsets (by planned storage) in which blocks begin where `fixed` says (by
 * block, or TARN_NO_OFFSET); what is within `limit` ends the search. TARN_BAD_INPUT: there are too
 * many pairs to look at. TARN_SYSTEM. */
enum tarn_status tarn_planning_place_at(struct tarn_planning *planning, const uint64_t *fixed,
                                        uint64_t limit, uint64_t *offset, uint64_t *footprint,
                                        struct tarn_error *error);

/* Returns TARN_DOES_NOT_FIT with an error that says how many storages block and names the heaviest
 * ones; the bound is above the capacity. */
enum tarn_status tarn_blocking_refuse(const struct tarn_gap_bound *bound,
                                      const struct tarn_reserve *reserve, uint64_t capacity,
                                      struct tarn_error *error);

#endif
