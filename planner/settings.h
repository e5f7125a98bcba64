/* The settings of one planning call, copied once when the call begins: each options struct that the
 * caller gave, complete. Fields that a transform's options leave open are taken from the plan's
 * options. Nothing changes the settings afterwards; values that differ between candidate pipelines
 * are in the candidate (pipeline.h). */
#ifndef TARN_PLANNER_SETTINGS_H
#define TARN_PLANNER_SETTINGS_H

#include "tarn/plan.h"
#include "tarn/transform.h"

struct tarn_plan_settings {
    /* Its pointers to options of transforms are the caller's; they are only compared with NULL. */
    struct tarn_plan_options plan;
    struct tarn_assign_options assign; /* set if plan.assign is; likewise the others */
    struct tarn_reorder_options reorder;
    struct tarn_couple_options couple;
    struct tarn_in_place_options in_place;
    struct tarn_budget_options budget;
    struct tarn_offload_options offload;
    /* Of reorder, couple and budget, whose own pointers to a control are NULL. */
    struct tarn_transform_control reorder_control, couple_control, budget_control;
};

/* Reports still go to the caller's structs; progress callbacks of transforms are left out, since
 * the plan has its own. TARN_USAGE: no plan can be made by these options. */
enum tarn_status tarn_plan_settings_take(struct tarn_plan_settings *settings,
                                         const struct tarn_plan_options *given,
                                         struct tarn_error *error);
/* Returns one of the controls, with the rest of a time in seconds, unless its own time is shorter;
 * 0: no limit. */
struct tarn_transform_control
tarn_plan_settings_control(const struct tarn_transform_control *control, double seconds);

#endif
