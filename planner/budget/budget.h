/* Keeps the arena within a budget: decides what to keep and what to compute again, by which
 * implementation, and makes the plan that shows that it fits. The public header of this
 * directory. */
#ifndef TARN_PLANNER_BUDGET_BUDGET_H
#define TARN_PLANNER_BUDGET_BUDGET_H

#include "planner/plan_graph/plan_graph.h"
#include "tarn/transform.h"

/* A budget as a share of the footprint that a plan has without it (tarn_budget_options.share). */
bool tarn_budget_has_share(const struct tarn_budget_options *options);
/* TARN_USAGE: there is no such share. */
enum tarn_status tarn_budget_check_share(const struct tarn_budget_options *options,
                                         struct tarn_error *error);
/* It becomes bytes, if `plan` is the one without the budget: of several memory spaces the first
 * one's footprint counts. Of bytes and a share the smaller one counts. */
void tarn_budget_settle_share(struct tarn_budget_options *options, const struct tarn_plan *plan);

/* What a refused budget is told with. */
struct tarn_budget_refusal {
    uint64_t asked;  /* the budget */
    bool is_lowered; /* it is what the memory space's capacity leaves */
    uint64_t least;  /* the smallest footprint found */
    uint64_t floor;  /* bytes that no choice can come below; 0: not known */
    char of[256];    /* what they are needed for */
    uint32_t op;     /* that needs them, or TARN_NONE */
    uint32_t tensor; /* whose fixed offset does, or TARN_NONE */
};

/* TARN_DOES_NOT_FIT, with the error's text. */
enum tarn_status tarn_budget_refuse(const struct tarn_budget_refusal *refusal,
                                    struct tarn_error *error);
/* Both were refused, by different choices: the lower one of their floors is that of all. */
void tarn_budget_join_floors(struct tarn_budget_refusal *a, struct tarn_budget_refusal *b);

/* Does what tarn_graph_budget does, with complete options, for a plan by the options `planning`. Of
 * their transforms only `reorder` counts, which is complete: a graph that keeps to the budget is
 * reordered, too. `result` also has the plan that keeps to the budget, unless the budget is
 * unlimited. The caller finishes it; it is empty if the status is an error. left_out: the sum of
 * the enum tarn_budget_class values (see planner/transform/budget/budget.h) that the search does
 * without, for comparisons. refusal: filled in if the budget is refused; NULL: not wanted. */
enum tarn_status tarn_budgeting_run(struct tarn_graph *graph,
                                    const struct tarn_budget_options *options, unsigned left_out,
                                    const struct tarn_plan_options *planning,
                                    struct tarn_planned *result,
                                    struct tarn_budget_refusal *refusal, struct tarn_error *error);

/* The same as a step of a larger search. If the budget is refused, `result` has the graph of the
 * smallest footprint found, which the refusal names. is_brief: the searches take a fourth of their
 * steps, and only the method that `options` names is asked. */
enum tarn_status tarn_budgeting_look(struct tarn_graph *graph,
                                     const struct tarn_budget_options *options, bool is_brief,
                                     const struct tarn_plan_options *planning,
                                     struct tarn_planned *result, struct tarn_error *error);

/* The same, but only the bytes that the list of ops has alive count: `result` has no plan. Of the
 * graph's list and of another one that a budget may be met by, the faster answer. */
enum tarn_status tarn_budgeting_look_at_list(struct tarn_graph *graph,
                                             const struct tarn_budget_options *options,
                                             bool is_brief,
                                             const struct tarn_plan_options *planning,
                                             struct tarn_planned *result, struct tarn_error *error);

/* Does what tarn_budgeting_run does, with moves (struct tarn_offload_options), whose options are
 * complete. Without `planning->budget` it makes only moves for which no op waits, and no plan; if
 * they do not keep to the capacity of `planning` and of the graph's first memory space, it goes on
 * as with a budget of what the capacity leaves. `budget`: the options of either budget, complete,
 * whose report is filled in. TARN_DOES_NOT_FIT: neither moves, nor recomputation, nor both together
 * keep to the budget. */
enum tarn_status tarn_offloading_run(struct tarn_graph *graph,
                                     const struct tarn_budget_options *budget,
                                     const struct tarn_offload_options *offload,
                                     const struct tarn_plan_options *planning,
                                     struct tarn_planned *result, struct tarn_error *error);

#endif
