/* The stages of placement (place.h), each by itself; place.c has them in order. */
#ifndef TARN_PLANNER_PLACE_STAGES_H
#define TARN_PLANNER_PLACE_STAGES_H

#include "place.h"
#include "planner/place/effort/effort.h"

/* A placement in progress. */
struct tarn_placing {
    struct tarn_problem problem; /* a copy: its conflicts get their rows in the first stage that
                                    reads masks, which most placements do not come to */
    struct tarn_place_request request; /* a copy: its bound may rise */
    struct tarn_place_result *result;
    uint64_t stacked;             /* bytes of the plan in which no two storages share any */
    uint64_t work_left;           /* see work.h */
    uint64_t reserve;             /* of that, for the stages that follow */
    struct tarn_work_costs costs; /* where work is limited */
    bool cut;                     /* a stage would have gone on, but for want of work */
    bool is_through;              /* more steps would change nothing */
    struct tarn_region *region;   /* of the rows */
    uint64_t *apart;              /* offsets of the plan that waits; NULL: there is none */
    uint64_t apart_footprint;
};

/* Bytes: a plan up to there ends the placement. */
uint64_t tarn_placing_aim(const struct tarn_placing *placing);
/* Has the aim been met, or is it proved that nothing fits? Without a capacity the proof does not
 * count: there may be a plan between the aim and the present one. */
bool tarn_placing_is_settled(const struct tarn_placing *placing);
/* Settled, or over its deadline. */
bool tarn_placing_is_done(const struct tarn_placing *placing);

/* If all storages have one size: a chain of them for each range of bytes (antichain.h). */
void tarn_stage_chains(struct tarn_placing *placing);
/* Priority orders, and that many steps of local searches. */
enum tarn_status tarn_stage_improve(struct tarn_placing *placing, uint64_t steps);

/* How many of the paper's methods there is work for; theirs is taken from what is left. */
uint32_t tarn_stage_count_methods(struct tarn_placing *placing);
/* One of the paper's methods; TARN_NONE: the best of the first `methods`. */
enum tarn_status tarn_stage_somas(struct tarn_placing *placing, uint32_t method, uint32_t methods);

/* Complete search at the aim itself; finds nothing where there are too many blocks for it. */
enum tarn_status tarn_stage_exact(struct tarn_placing *placing, uint64_t nodes);
/* The same with a small fixed effort, where blocks are few enough for that. */
enum tarn_status tarn_stage_exact_briefly(struct tarn_placing *placing);
/* The same with what repeats folded (fold.h); near: above the aim, ever closer to it. */
enum tarn_status tarn_stage_fold(struct tarn_placing *placing, bool near);
/* Streams in bands of their own (apart.h), for one part in `share` of the work that is left. That
 * plan waits: search goes on from the other one, and the lower one is taken in the end. */
enum tarn_status tarn_stage_apart(struct tarn_placing *placing, uint64_t share, uint64_t visits);
void tarn_stage_take_apart(struct tarn_placing *placing);
/* steps * visits_a_step, or UINT64_MAX. */
uint64_t tarn_stage_visits(uint64_t steps, uint64_t visits_a_step);

/* Search by cores for a plan within `aim` bytes. */
enum tarn_status tarn_stage_core(struct tarn_placing *placing, uint64_t aim, uint64_t visits);
/* Visits that stand for that many steps. */
uint64_t tarn_stage_core_visits(const struct tarn_placing *placing, uint64_t steps);
/* Search by cores closer to the aim by 1/2, 1/4 and 1/8 of the distance to it, then at the aim. */
enum tarn_status tarn_stage_approach(struct tarn_placing *placing, uint64_t visits);

/* The layout that was asked for. */
enum tarn_status tarn_stage_lay_out(struct tarn_placing *placing);
/* One pass of lowest-offset-first, for a search that was ended before its first plan. */
enum tarn_status tarn_stage_pass(const struct tarn_placing *placing);

#endif
