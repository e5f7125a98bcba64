/* Attempts at a budget: graphs made of a policy, placed and simulated. */
#ifndef TARN_PLANNER_ATTEMPT_H
#define TARN_PLANNER_ATTEMPT_H

#include "plan_graph.h"
#include "planner/transform/recompute/recompute.h"
#include "streams/base/deadline.h"
#include "tarn/transform.h"

#define TARN_BUDGET_UNLIMITED (UINT64_MAX / 4) /* a budget that anything keeps to */

enum { TARN_BUDGET_NEAR = 100 }; /* near a number of bytes: within this part of it */

/* A graph that was built and placed. */
struct tarn_attempt {
    /* The graph (NULL: none), and its plan where that has been made as the final one is. */
    struct tarn_planned made;
    uint64_t footprint, time_ns;
    struct tarn_budget_report report;
};

/* A call that looks for what keeps to a budget. */
struct tarn_budgeting {
    struct tarn_budget_options options;
    unsigned classes; /* that the search may use: a sum of enum tarn_budget_class */
    const struct tarn_plan_options *planning; /* what will place the result; NULL: defaults */
    struct tarn_graph *graph;
    struct tarn_region region; /* of the model, the evaluator and the policy */
    struct tarn_recompute_model model;
    struct tarn_evaluator *evaluator;
    struct tarn_policy policy;
    struct tarn_region script_region;
    struct tarn_schedule scripted; /* what counts instead of the policy, if it has executions */
    uint64_t placed, before_ns;    /* of the graph that came in */
    bool is_lowered; /* the budget is what a capacity of the graph leaves, not the caller's */
    bool patient;    /* a little search for a placement, where that may be all that is missing */
    bool measures;   /* the capacities of the graph's memory spaces do not count */
    bool any_budget; /* the budget does not count: the least is looked for */
    uint64_t evaluations;          /* of all searches */
    struct tarn_deadline deadline; /* when to end */
    struct tarn_error *error;
};

/* A plan without any search, whatever the capacities of the graph's memory spaces are. The caller
 * destroys it. */
enum tarn_status tarn_budgeting_plan_quickly(const struct tarn_budgeting *budgeting,
                                             struct tarn_graph *graph, struct tarn_plan **plan);

/* The plan that the result will have, if `capacity` is the budget: the first placement found that
 * fits; it keeps to the graph's own capacities, too, unless it measures. TARN_DOES_NOT_FIT: none
 * does. */
enum tarn_status tarn_budgeting_plan(const struct tarn_budgeting *budgeting,
                                     struct tarn_graph *graph, uint64_t capacity,
                                     struct tarn_plan **plan);

/* The makespan by the model of tarn/simulate.h, in nanoseconds. */
enum tarn_status tarn_budgeting_time(const struct tarn_budgeting *budgeting,
                                     const struct tarn_graph *graph, uint64_t *ns);

/* There is a graph, and its footprint is at most this many bytes. */
bool tarn_attempt_fits(const struct tarn_attempt *attempt, uint64_t budget);

/* Gives up the worse one: what fits comes before what does not, then the faster, or the smaller
 * where none fits. `best` keeps its graph, `other` loses its own. */
void tarn_attempt_keep_better(struct tarn_attempt *best, struct tarn_attempt *other,
                              uint64_t budget);

/* Makes what the policy comes to and keeps the best in `best`, with recomputations on the
 * streams of each rule. `target`: the peak that the policy was searched for, in bytes. `front`: the
 * fastest, even if it does not fit; without its graph. */
enum tarn_status tarn_attempt_make(struct tarn_budgeting *budgeting, uint64_t target,
                                   struct tarn_attempt *best, struct tarn_attempt *front);

#endif
