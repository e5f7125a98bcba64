/* The stages of placement (place.h), one function each; place.c runs them in order. */
#ifndef TARN_PLANNER_PLACE_STAGES_H
#define TARN_PLANNER_PLACE_STAGES_H

#include "place.h"
#include "planner/place/effort/effort.h"

/* A placement in progress. */
struct tarn_placing {
    struct tarn_problem problem; /* a copy: its conflicts get their rows in the first stage that
                                    reads masks, which most placements do not reach */
    struct tarn_place_request request; /* a copy: its bound may rise */
    struct tarn_place_result *result;
    uint64_t stacked;             /* footprint of the plan in which no two storages share bytes */
    uint64_t work_left;           /* see work.h */
    uint64_t reserve;             /* part of work_left that is kept for later stages */
    struct tarn_work_costs costs; /* set if work is limited */
    bool cut;                     /* a stage ended because its work ran out */
    bool is_through;              /* more steps would change nothing */
    struct tarn_region *region;   /* of the rows */
    const struct tarn_problem *whole; /* of a graph, that `problem` is a part of; NULL: none */
    uint64_t *apart; /* offsets of the plan that tarn_stage_apart set aside; NULL: there is none */
    uint64_t apart_footprint;
};

/* In bytes: a plan of at most this footprint ends the placement. */
uint64_t tarn_placing_aim(const struct tarn_placing *placing);
/* Has the aim been met, or is it proved that no plan fits? Without a capacity the proof does not
 * count: there may be a plan between the aim and the present plan. */
bool tarn_placing_is_settled(const struct tarn_placing *placing);
/* Settled, or over its deadline. */
bool tarn_placing_is_done(const struct tarn_placing *placing);

/* If all storages have one size: a chain of them for each range of bytes (antichain.h). */
void tarn_stage_chains(struct tarn_placing *placing);
/* Runs priority orders, and `steps` steps of local searches. */
enum tarn_status tarn_stage_improve(struct tarn_placing *placing, uint64_t steps);

/* How many of the paper's methods the work suffices for; their work is subtracted from
 * work_left. */
uint32_t tarn_stage_count_methods(struct tarn_placing *placing);
/* Runs one of the paper's methods; TARN_NONE: takes the best of the first `methods` methods. */
enum tarn_status tarn_stage_somas(struct tarn_placing *placing, uint32_t method, uint32_t methods);

/* Runs complete search at the aim itself; finds no plan if there are too many blocks for it. */
enum tarn_status tarn_stage_exact(struct tarn_placing *placing, uint64_t nodes);
/* The same with a small fixed effort, if blocks are few enough for that. */
enum tarn_status tarn_stage_exact_briefly(struct tarn_placing *placing);
/* Compacts the present plan (compact.h) with 1/`share` of the remaining work. */
enum tarn_status tarn_stage_compact(struct tarn_placing *placing, uint64_t share);
/* Exact search, cores, bands, folds, repair and compaction for the problem in coarse sizes
 * (coarse.h), if there is one; its plan, made fine, becomes the result if that is lower. */
enum tarn_status tarn_stage_coarse(struct tarn_placing *placing, uint64_t visits);
/* Places each stream in a band of its own (apart.h), with all but 1/`kept` of the remaining work;
 * 0: with all of it. This plan is set aside: search continues from the present plan, and the lower
 * of both is taken in the end. */
enum tarn_status tarn_stage_apart(struct tarn_placing *placing, uint64_t kept, uint64_t visits);
void tarn_stage_take_apart(struct tarn_placing *placing);
/* steps * visits_a_step, or UINT64_MAX. */
uint64_t tarn_stage_visits(uint64_t steps, uint64_t visits_a_step);

/* Searches by cores for a plan within `aim` bytes. */
enum tarn_status tarn_stage_core(struct tarn_placing *placing, uint64_t aim, uint64_t visits);
/* The visits that correspond to that many steps. */
uint64_t tarn_stage_core_visits(const struct tarn_placing *placing, uint64_t steps);
/* Searches by cores closer to the aim by 1/2, 1/4 and 1/8 of the distance to it, then at the
 * aim. */
enum tarn_status tarn_stage_approach(struct tarn_placing *placing, uint64_t visits);

/* Places by the requested layout. */
enum tarn_status tarn_stage_lay_out(struct tarn_placing *placing);
/* Runs one pass of lowest-offset-first, for a search that was ended before its first plan. */
enum tarn_status tarn_stage_pass(const struct tarn_placing *placing);

#endif
