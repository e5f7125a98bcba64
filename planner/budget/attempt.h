/* Attempts at a budget: graphs made of a policy, placed and simulated. The words:
 *
 *     policy    which versions of storages to keep, and by which implementations ops run
 *               (transform/recompute/recompute.h)
 *     cut       a place in the list at which a policy drops a version whatever the passes are, or
 *               computes it again
 *     rule      on which stream what is computed again runs; a policy and a rule make a graph
 *     schedule  the list of runs of ops that a policy and a rule lead to
 *     descent   the search for the smallest footprint, which depends on no budget */
#ifndef TARN_PLANNER_BUDGET_ATTEMPT_H
#define TARN_PLANNER_BUDGET_ATTEMPT_H

#include "planner/plan_graph/plan_graph.h"
#include "planner/transform/recompute/recompute.h"
#include "streams/base/deadline.h"
#include "tarn/transform.h"

#define TARN_BUDGET_UNLIMITED (UINT64_MAX / 4) /* a budget that anything keeps to */

enum { TARN_BUDGET_NEAR = 100 }; /* near a number of bytes: within this part of it */

/* A graph that was built and, unless the aim is the list, placed. */
struct tarn_attempt {
    /* The graph (NULL: none), and its plan where that has been made as the final one is. */
    struct tarn_planned made;
    uint64_t footprint, time_ns;
    struct tarn_budget_report report;
};

/* What a search is for. */
enum tarn_budget_aim {
    TARN_AIM_BUDGET,        /* the fastest graph that keeps to the budget */
    TARN_AIM_LIST,          /* the same of what the list has alive, which is the footprint then:
                               nothing is placed */
    TARN_AIM_LOWER,         /* any graph that keeps to the budget, which is below the smallest
                               footprint so far; the graph's own capacity does not count */
    TARN_AIM_SMALLEST,      /* the smallest footprint, whatever the budget and the capacity */
    TARN_AIM_SMALLEST_QUICK /* the same, by the first rule alone */
};

/* On the way to the smallest footprint. */
enum tarn_descent_stage {
    TARN_DESCENT_SEGMENTS, /* by Chen's segments, without any search */
    TARN_DESCENT_ROUNDS,   /* searches for the smallest peak */
    TARN_DESCENT_BELOW,    /* searches for peaks just below the smallest footprint so far */
    TARN_DESCENT_ORDER,    /* the smallest graph so far, in another order of ops */
    TARN_DESCENT_COMPLETE
};

struct tarn_descent {
    struct tarn_attempt smallest; /* so far */
    enum tarn_descent_stage stage;
    uint32_t count;            /* of the searches of this stage */
    uint32_t searches;         /* of all stages */
    struct tarn_policy policy; /* of the last round */
};

/* A call that looks for what keeps to a budget. */
struct tarn_budgeting {
    struct tarn_budget_options options;
    unsigned classes; /* that the search may use: a sum of enum tarn_budget_class */
    unsigned rules;   /* of what may run again: a sum of enum tarn_repeat_rule */
    const struct tarn_plan_options *planning; /* what will place the result; NULL: defaults */
    /* How the graph of a policy is put in another order of ops; NULL: not at all. */
    const struct tarn_reorder_options *reorder;
    struct tarn_graph *graph;
    struct tarn_region region; /* of the model, the evaluator and the policy */
    struct tarn_recompute_model model;
    struct tarn_evaluator *evaluator;
    struct tarn_policy policy;
    struct tarn_policy plain; /* the same without cuts, where it has any */
    struct tarn_region fixed_region;
    struct tarn_schedule fixed_schedule;  /* used instead of the policy's, if it has executions */
    uint64_t footprint_before, before_ns; /* of the graph that came in */
    uint64_t asked;           /* the budget before it was rounded down to what can be met */
    bool is_lowered;          /* it is what a capacity of the graph leaves, not the caller's */
    bool ignores_capacity;    /* of the graph's first memory space; so do the searches for the
                                 smallest footprint */
    enum tarn_budget_aim aim; /* of the search under way */
    bool is_brief;            /* no search gets all of its steps */
    bool is_thorough;         /* a placement gets those that it has without a budget */
    bool patient; /* a little search for a placement, if that may be all that is missing */
    struct tarn_descent descent;
    uint64_t smallest;             /* footprint, once the descent is complete; 0: not yet */
    uint32_t searches;             /* so far, those of the descent left out */
    uint64_t evaluations;          /* of all searches */
    uint64_t arc_steps;            /* of all choices of arcs */
    struct tarn_deadline deadline; /* when to end */
    struct tarn_error *error;
};

/* Options for placing a graph of the search within `capacity` bytes: by the method, seed and
 * threads of `planning` (NULL: defaults), with its effort, or with `steps` if it names none. */
struct tarn_plan_options tarn_budgeting_placing(const struct tarn_plan_options *planning,
                                                uint64_t alignment, uint64_t capacity,
                                                uint64_t steps,
                                                const struct tarn_deadline *deadline);

/* Bytes that the capacity of the plan's first memory space leaves to the arena, at least 1, if
 * `leaving` bytes of its persistent part go elsewhere; UINT64_MAX: the graph gives it no capacity.
 */
uint64_t tarn_budgeting_room(const struct tarn_plan *plan, uint64_t leaving);

/* Options for a plan without any search, by the threads of `planning` (NULL: the default). */
struct tarn_plan_options tarn_budgeting_quick(const struct tarn_plan_options *planning,
                                              uint64_t alignment);

/* Is the status of planning `graph`, which was made of the given one, no error but that it is no
 * choice: two storages with fixed offsets are in use at once that the given graph never has so? The
 * error is cleared then. The given graph itself is bad input. */
bool tarn_budgeting_is_no_choice(const struct tarn_graph *given, const struct tarn_graph *graph,
                                 enum tarn_status status, struct tarn_error *error);

/* A plan without any search, whatever the capacities of the graph's memory spaces are. The caller
 * destroys it. */
enum tarn_status tarn_budgeting_plan_quickly(const struct tarn_budgeting *budgeting,
                                             struct tarn_graph *graph, struct tarn_plan **plan);

/* The plan that the result will have, if `capacity` is the budget: the first placement found that
 * fits; it keeps to the graph's own capacities, too, or, if the first one does not count, to all
 * others. 0: as small as can be. TARN_DOES_NOT_FIT: none does. */
enum tarn_status tarn_budgeting_plan(const struct tarn_budgeting *budgeting,
                                     struct tarn_graph *graph, uint64_t capacity,
                                     struct tarn_plan **plan);

/* Is the smallest footprint looked for, whatever the budget? */
static inline bool tarn_budgeting_minimises(const struct tarn_budgeting *budgeting)
{
    return budgeting->aim >= TARN_AIM_SMALLEST;
}

/* The makespan by the model of tarn/simulate.h, in nanoseconds. */
enum tarn_status tarn_budgeting_time(const struct tarn_budgeting *budgeting,
                                     const struct tarn_graph *graph, uint64_t *ns);

/* There is a graph, and its footprint is at most this many bytes. */
bool tarn_attempt_fits(const struct tarn_attempt *attempt, uint64_t budget);

/* Gives up the worse one: what fits comes before what does not, then the faster, or the smaller
 * where none fits. `best` keeps its graph, `other` loses its own. */
void tarn_attempt_keep_better(struct tarn_attempt *best, struct tarn_attempt *other,
                              uint64_t budget);

/* Makes the graphs of the policy, one for each rule, and keeps the best of them in `best`.
 * `target`: the peak that the policy was searched for, in bytes. `front`: the fastest attempt, even
 * if it does not fit; without its graph. */
enum tarn_status tarn_attempt_make(struct tarn_budgeting *budgeting, uint64_t target,
                                   struct tarn_attempt *best, struct tarn_attempt *front);

/* The same work in another order, as small as it can be placed, if that makes the footprint smaller
 * and takes no more time; else *ordered stays empty. Its graph is the caller's. */
enum tarn_status tarn_attempt_reorder(struct tarn_budgeting *budgeting,
                                      const struct tarn_attempt *attempt,
                                      struct tarn_attempt *ordered);

/* ---- Which peaks a policy is searched for (target.c) ---- */

/* Keeps in `best` the best attempt that is found for the budget, starting from the policy, which
 * becomes that of the last search. `refine`: the policy is nearly right for the budget. TARN_OK
 * also if no attempt fits. */
enum tarn_status tarn_budgeting_try_targets(struct tarn_budgeting *budgeting, bool refine,
                                            struct tarn_attempt *best);

/* Makes the graph of the policy that keeps everything, and keeps it in `best` if it is better. */
enum tarn_status tarn_budgeting_try_unchanged(struct tarn_budgeting *budgeting,
                                              struct tarn_attempt *best);

/* Continues the descent until its smallest footprint is at most `enough` bytes, or until it is
 * complete; then `smallest` is set, one number that does not depend on the budget. */
enum tarn_status tarn_budgeting_descend(struct tarn_budgeting *budgeting, uint64_t enough);

/* Finds the attempt that keeps to the budget; if none does, the one with the smallest footprint; if
 * time ends before either is known, the best so far. `best` is empty at first; its graph is the
 * caller's, also if the status is an error. */
enum tarn_status tarn_budgeting_search(struct tarn_budgeting *budgeting, struct tarn_attempt *best);

/* The same, but only the bytes that the list has alive count: `best` is not placed, and its
 * footprint is the list's peak. If it does not keep to the budget, no such graph was found. */
enum tarn_status tarn_budgeting_search_list(struct tarn_budgeting *budgeting,
                                            struct tarn_attempt *best);

#endif
