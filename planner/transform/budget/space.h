/* The search space of budgets. Its decisions are whether a version stays (if it is large and may be
 * dropped), and which form an op runs in (if it has several). A policy is a point, one value for
 * each decision; a move is a list of changed values that can be undone. */
#ifndef TARN_PLANNER_TRANSFORM_BUDGET_SPACE_H
#define TARN_PLANNER_TRANSFORM_BUDGET_SPACE_H

#include "budget.h"

/* Values of a decision about a version; from TARN_DROP_AHEAD on: dropped, and its repetition is
 * launched 1, 2, ... communicating ops ahead of its reader. */
enum { TARN_KEEP, TARN_DROP, TARN_DROP_EACH_TIME, TARN_DROP_AHEAD };

struct tarn_decision {
    uint32_t index;  /* version, or op */
    uint32_t values; /* of a form: 0 is free, then the op's forms that can stand for it */
};

struct tarn_budget_space {
    const struct tarn_recompute_model *model;
    struct tarn_decision *decisions; /* about versions in order of birth, then about ops */
    uint32_t count;
    uint32_t versions_count; /* of the decisions */
    uint32_t *of_version;    /* version -> its decision, or TARN_NONE */
};

/* Without `recompute` no version is to be decided about. */
enum tarn_status tarn_budget_space_init(struct tarn_budget_space *space, struct tarn_region *region,
                                        const struct tarn_recompute_model *model, bool recompute);

uint32_t tarn_decision_get(const struct tarn_budget_space *space, const struct tarn_policy *policy,
                           uint32_t d);
void tarn_decision_set(const struct tarn_budget_space *space, struct tarn_policy *policy,
                       uint32_t d, uint32_t value);

/* How many policies there are, at most `most`. */
uint64_t tarn_budget_space_size(const struct tarn_budget_space *space, uint64_t most);

#endif
