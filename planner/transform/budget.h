/* What to keep under a budget: the policy (recompute_model.h) with the least time whose peak, as
 * tarn_evaluate finds it, is within a number of bytes.
 *
 * Everything here is deterministic and of one thread; effort is counted in evaluations. */
#ifndef TARN_PLANNER_TRANSFORM_BUDGET_H
#define TARN_PLANNER_TRANSFORM_BUDGET_H

#include "recompute_model.h"

/* Ways to save memory, for comparisons: any sum of them. */
enum tarn_budget_class {
    TARN_BUDGET_RECOMPUTE = 1,  /* forward results may be dropped and computed again */
    TARN_BUDGET_INPUTS = 2,     /* ops may read something else than they were written to */
    TARN_BUDGET_ALGORITHMS = 4, /* same inputs and outputs, other time and workspace */
    TARN_BUDGET_SPLIT = 8,      /* ops may yield their outputs in parts */
    TARN_BUDGET_ALL = 15
};

struct tarn_budget_limits {
    unsigned classes; /* 0: all */
    uint64_t steps;   /* evaluations; 0: enough for what is usual */
};

struct tarn_budget_outcome {
    uint64_t peak, time_ns; /* of the policy found */
    uint64_t evaluations;
    bool fits;
    bool complete; /* no policy is better: all were tried */
};

/* Takes from a model the forms and choices that are of none of `classes`; ops as they were written
 * always stay. What is not to be recomputed is up to the search. Linear time. */
void tarn_recompute_model_restrict(struct tarn_recompute_model *model, unsigned classes);

/* The policy of least time within `budget` reserved bytes of planned storages; where none is found,
 * that of the least peak. `policy` is where the search starts, for example what was found for a
 * somewhat larger budget, and receives the best one found: never a worse one. The model is to
 * be restricted to the same classes. TARN_SYSTEM: no memory. */
enum tarn_status tarn_budget_search(const struct tarn_recompute_model *model, uint64_t budget,
                                    const struct tarn_budget_limits *limits,
                                    struct tarn_policy *policy,
                                    struct tarn_budget_outcome *outcome);

/* Chen's rule ("Training deep nets with sublinear memory cost", 2016): the forward part is cut where
 * little crosses into about as many segments as a segment has cuts; what crosses is kept,
 * everything else is dropped and stays, once recomputed, until its last reader. Keeping everything is
 * what tarn_policy_init gives. */
enum tarn_status tarn_policy_chen(const struct tarn_recompute_model *model,
                                  struct tarn_policy *policy);

#endif
