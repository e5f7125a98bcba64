/* The state that the parts of the budget search share: the policy, its outcome, and the changes of
 * the last move. */
#ifndef TARN_PLANNER_TRANSFORM_BUDGET_SEARCH_H
#define TARN_PLANNER_TRANSFORM_BUDGET_SEARCH_H

#include "planner/transform/steps.h"
#include "space.h"

enum {
    TARN_MOVE_MAX = 64, /* decisions that one move changes */
    TARN_SEARCH_WORK_WEIGHT =
        32, /* nanoseconds of work that cost as much as one of the critical path */
};

/* A decision and a value of it. */
struct tarn_setting {
    uint32_t decision, value;
};

struct tarn_budget_search {
    struct tarn_region region; /* of all arrays below; nothing is released before the search ends */
    const struct tarn_recompute_model *model;
    struct tarn_budget_space space;
    struct tarn_evaluator *evaluator;
    uint64_t budget;
    uint64_t aim;               /* the budget, or the peak that no policy can be below */
    struct tarn_policy *policy; /* that moves change, and tarn_search_evaluate evaluates */
    struct tarn_policy best;
    uint64_t peak, time_ns; /* of the policy evaluated last */
    double above;           /* the aim: bytes, see bytes_above */
    uint64_t best_peak, best_time;
    uint64_t evaluations;
    uint64_t random;
    const struct tarn_schedule *schedule; /* evaluated last */
    uint8_t *roles;                       /* decision about a version -> its role */
    uint32_t *active;                     /* decisions that made a difference, in order */
    uint32_t active_count;
    /* The values that the last move has changed, as they were before. */
    struct tarn_setting undo[TARN_MOVE_MAX];
    uint32_t undo_count;
    struct tarn_steps steps;
    bool no_memory;
    bool ended; /* no memory, or the caller has had enough */
};

/* ---- budget/moves.c ---- */

/* Evaluates the policy and records it if it is the best so far. */
void tarn_search_evaluate(struct tarn_budget_search *search);
/* Goes back to the best policy so far. */
void tarn_search_take_best(struct tarn_budget_search *search);
/* Is the copy, of the schedule evaluated last, read after the place at which its version is
 * dropped?
 */
bool tarn_search_is_used_late(const struct tarn_budget_search *search,
                              const struct tarn_copy *copy);

/* Parts of a move. */
void tarn_search_set(struct tarn_budget_search *search, uint32_t d, uint32_t value);
/* Sets the form of an op; if `keep`, also keeps the versions that it reads. */
void tarn_search_set_form(struct tarn_budget_search *search, uint32_t d, uint32_t value, bool keep);
/* Undoes all changes made since `undo_count` was 0. */
void tarn_search_take_back(struct tarn_budget_search *search);

/* Notes which decisions have made a difference in the schedule evaluated last. */
void tarn_search_note_roles(struct tarn_budget_search *search);
/* A random number below `count`. */
uint32_t tarn_search_draw(struct tarn_budget_search *search, uint32_t count);
/* Another value for a version that has a role: mostly kept becomes dropped, and back. */
void tarn_search_move_version(struct tarn_budget_search *search, uint32_t d);
/* Another form for an op. */
void tarn_search_move_form(struct tarn_budget_search *search, uint32_t d);
/* Either of these; nothing for a version without a role. */
void tarn_search_move(struct tarn_budget_search *search, uint32_t d);
/* The average time of a forward op, in nanoseconds. */
double tarn_search_usual_time(const struct tarn_budget_search *search);

/* ---- budget/anneal.c ---- */

/* From the policy that has been evaluated last. `refine`: it is nearly right. */
void tarn_search_anneal(struct tarn_budget_search *search, bool refine, uint64_t steps);

/* ---- budget/regions.c ---- */

/* The same, many moves at a time, with at most `steps` evaluations. */
void tarn_search_anneal_regions(struct tarn_budget_search *search, bool refine, uint64_t steps);

#endif
