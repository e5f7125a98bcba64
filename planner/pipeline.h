/* From a source graph and settings to a final graph and its plan. */
#ifndef TARN_PLANNER_PIPELINE_H
#define TARN_PLANNER_PIPELINE_H

#include "planner/plan_graph/plan_graph.h"
#include "planner/settings.h"

/* One way through the transforms: what the settings leave open is decided. */
struct tarn_pipeline_candidate {
    enum tarn_group_padding padding;
    bool merges_first;  /* outputs are written in place before an order is looked for, not after */
    bool keeps_order;   /* no other order is looked for, though the settings ask for one */
    bool without_waits; /* nothing is coupled before the budget has been looked at, nor in place */
    double slowdown;    /* that coupling may cost, as a share; no more than the settings allow */
    double seconds;     /* that it may take; 0: no limit */
};

/* What a candidate comes to. Empty at first; tarn_outcome_finish gives it up. */
struct tarn_outcome {
    enum tarn_status status;
    struct tarn_error error;
    struct tarn_planned made; /* empty unless TARN_OK; its graph is the source, shared, if nothing
                                 was changed */
    uint64_t needed;          /* bytes, if nothing fits and no budget says so; 0: not known */
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
/* The others, on `begun`, which has come of `source`; then `plan`, unless it is NULL: then the
 * outcome has a plan only if a transform has made one that these settings could have led to. The
 * outcome is empty but for reports of what came before. */
void tarn_pipeline_end(struct tarn_graph *source, struct tarn_graph *begun,
                       const struct tarn_plan_settings *settings,
                       const struct tarn_pipeline_candidate *candidate, tarn_pipeline_plan *plan,
                       struct tarn_outcome *outcome);

/* Has a memory space beside the first a capacity? Orders are chosen for the first one, and may
 * exceed the others. */
bool tarn_has_other_capacity(const struct tarn_graph *graph);

/* Order and address together, as the MODeL paper asks for: an order is worth what it needs when it
 * is placed. As tarn_graph_reorder, but if storages lie in contiguous groups, or streams are going
 * to be coupled, several orders are coupled and placed, quickly, and the one that needs the least
 * is the result; the graph itself, shared, if that is the order that came in. The plan comes with
 * it if no other one can be better. */
enum tarn_status tarn_joint_reorder(struct tarn_graph *graph,
                                    const struct tarn_plan_settings *settings, double seconds,
                                    struct tarn_reorder_report *report, struct tarn_planned *result,
                                    struct tarn_error *error);
/* The report of an order that was looked for and then not taken. */
void tarn_joint_tell_kept(struct tarn_reorder_report *report);

/* ---- All candidates (candidates.c) ---- */

/* Runs them, and keeps the best. The caller's reports say what it did. The caller finishes the
 * result, which is empty if the status is an error. */
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
