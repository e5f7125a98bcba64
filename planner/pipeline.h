/* From a source graph and settings to a final graph and its plan. */
#ifndef TARN_PLANNER_PIPELINE_H
#define TARN_PLANNER_PIPELINE_H

#include "planner/budget/budget.h"
#include "planner/plan_graph/plan_graph.h"
#include "planner/settings.h"

/* One way through the transforms: every choice that the settings leave open is decided. */
struct tarn_pipeline_candidate {
    enum tarn_group_padding padding;
    bool merges_first;   /* outputs are written in place before an order is looked for, not after */
    bool merges_paired;  /* if implementations are chosen: also over inputs that some do not read */
    bool keeps_order;    /* no other order is looked for, though the settings ask for one */
    bool without_waits;  /* nothing is coupled before the budget has been looked at */
    bool without_merges; /* nor in place */
    double slowdown;     /* that coupling may cost, as a share; no more than the settings allow */
    double seconds;      /* that it may take; 0: no limit */
};

/* The result of a candidate. Empty at first; tarn_outcome_finish releases it. */
struct tarn_outcome {
    enum tarn_status status;
    struct tarn_error error;
    struct tarn_planned made; /* empty unless TARN_OK; its graph is the source, shared, if nothing
                                 was changed */
    uint64_t needed;          /* bytes, if nothing fits and no budget says so; 0: not known */
    struct tarn_budget_refusal refusal; /* no floor: it is not a budget that was refused */
    bool has_other_order;
    struct tarn_assign_report assigned;
    struct tarn_reorder_report reordered;
    struct tarn_couple_report coupled;
    struct tarn_in_place_report merged;
    struct tarn_budget_report budgeted;
    struct tarn_offload_report offloaded;
};

void tarn_outcome_finish(struct tarn_outcome *outcome);

/* Plans the graph of `made`, unless a transform has made its plan. */
typedef enum tarn_status tarn_pipeline_plan(const struct tarn_plan_settings *settings,
                                            const struct tarn_pipeline_candidate *candidate,
                                            struct tarn_planned *made, struct tarn_error *error);

/* ---- One candidate (pipeline.c) ---- */

/* The transforms that come before an order is looked for; `assigned` receives their report. The
 * caller destroys the graph. */
enum tarn_status tarn_pipeline_begin(struct tarn_graph *source,
                                     const struct tarn_plan_settings *settings,
                                     const struct tarn_pipeline_candidate *candidate,
                                     struct tarn_assign_report *assigned,
                                     struct tarn_graph **result, struct tarn_error *error);
/* Runs the remaining transforms on `begun`, which was made from `source`, then plans by `plan`. If
 * `plan` is NULL, the outcome has a plan only if a transform has made one that these settings could
 * have led to. On entry the outcome is empty but for the reports of earlier transforms. */
void tarn_pipeline_end(struct tarn_graph *source, struct tarn_graph *begun,
                       const struct tarn_plan_settings *settings,
                       const struct tarn_pipeline_candidate *candidate, tarn_pipeline_plan *plan,
                       struct tarn_outcome *outcome);

/* Has a memory space other than the first a capacity? Orders are chosen for the first space, and
 * may exceed the other capacities. */
bool tarn_has_other_capacity(const struct tarn_graph *graph);

/* Chooses order and addresses together, as the MODeL paper asks for: an order is judged by its
 * footprint after placement. Does what tarn_graph_reorder does; but if storages lie in contiguous
 * groups, or streams are going to be coupled, several orders are coupled and placed quickly. The
 * result is the order with the smallest footprint, or the graph itself, shared, if its own order is
 * that. The result has a plan if no other plan can be better. */
enum tarn_status tarn_joint_reorder(struct tarn_graph *graph,
                                    const struct tarn_plan_settings *settings, double seconds,
                                    struct tarn_reorder_report *report, struct tarn_planned *result,
                                    struct tarn_error *error);
/* The report of an order that was looked for and then not taken. */
void tarn_joint_tell_kept(struct tarn_reorder_report *report);

/* ---- All candidates (candidates.c) ---- */

/* Runs the candidates, and keeps the best one. The caller's reports describe this candidate. The
 * caller finishes the result, which is empty if the status is an error. */
enum tarn_status tarn_candidates_run(struct tarn_graph *source,
                                     const struct tarn_plan_settings *settings,
                                     tarn_pipeline_plan *plan, struct tarn_planned *result,
                                     struct tarn_error *error);
/* A budget that is a share of the footprint without a budget becomes its bytes: the graph is
 * planned without it. TARN_USAGE: there is no such share. */
enum tarn_status tarn_candidates_settle_share(struct tarn_graph *source,
                                              struct tarn_plan_settings *settings,
                                              struct tarn_error *error);

#endif
