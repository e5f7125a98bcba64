/* What to keep under a budget: the policy (recompute/recompute.h) with the least time whose peak,
 * as tarn_evaluate finds it, is within a number of bytes.
 *
 * Everything here is deterministic and of one thread; effort is counted in evaluations. */
#ifndef TARN_PLANNER_TRANSFORM_BUDGET_BUDGET_H
#define TARN_PLANNER_TRANSFORM_BUDGET_BUDGET_H

#include "planner/transform/recompute/recompute.h"
#include "tarn/transform.h"

/* Classes of choices that save memory; any sum of them may be allowed. */
enum tarn_budget_class {
    TARN_BUDGET_RECOMPUTE = 1,  /* forward results may be dropped and computed again */
    TARN_BUDGET_INPUTS = 2,     /* ops may read other forward results than as written */
    TARN_BUDGET_ALGORITHMS = 4, /* same inputs and outputs, other time and workspace */
    TARN_BUDGET_SPLIT = 8,      /* ops may yield their outputs in parts */
    TARN_BUDGET_MASKS = 16,     /* ops may read what is kept for nothing else: a mask, indices */
    TARN_BUDGET_ALL = 31
};

struct tarn_budget_limits {
    unsigned classes;                             /* 0: all */
    uint64_t steps;                               /* evaluations; 0: enough for what is usual */
    const struct tarn_transform_control *control; /* NULL: to the end, silently */
    double deadline_ms; /* on the clock of tarn_now_ms; 0: none, or the control's */
    bool refine;        /* the start is nearly right: a quarter of the steps, and little is upset */
    uint32_t share;     /* where `steps` is 0, one part in so many of what is usual; 0: all */
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

/* What the policy, which has no cuts, comes to with cuts (struct tarn_cut), from the region: the
 * least time within `budget`, or where none is found the least peak. `outcome` is what the policy
 * comes to by itself, and receives what the result does; where cuts are no better, the policy stays
 * as it is. TARN_SYSTEM: no memory. */
enum tarn_status tarn_budget_cut(const struct tarn_recompute_model *model, uint64_t budget,
                                 const struct tarn_budget_limits *limits,
                                 struct tarn_region *region, struct tarn_policy *policy,
                                 struct tarn_budget_outcome *outcome);

/* The best there is for small graphs of one stream. The schedule of least time within `budget`
 * reserved bytes of planned storages, or, where none keeps to them, the fastest of the least peak.
 * `script` receives it, from the region; it stays empty where the model is no small one
 * (budget/net.h), or the search has come to its limit of states or to its end by the control.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_budget_exact(const struct tarn_recompute_model *model, uint64_t budget,
                                   const struct tarn_budget_limits *limits,
                                   struct tarn_region *region, struct tarn_script *script,
                                   uint64_t *evaluations);

/* Policies of one model. Linear. */
void tarn_policy_copy(const struct tarn_recompute_model *model, struct tarn_policy *to,
                      const struct tarn_policy *from);
bool tarn_policy_is_equal(const struct tarn_recompute_model *model, const struct tarn_policy *a,
                          const struct tarn_policy *b);

/* Chen's rule ("Training deep nets with sublinear memory cost", 2016): the forward part is cut
 * about every square root of its ops, where little crosses. What crosses is kept; everything else
 * is dropped and stays, once recomputed, until its last reader. Keeping everything is what
 * tarn_policy_init gives. */
enum tarn_status tarn_policy_chen(const struct tarn_recompute_model *model,
                                  struct tarn_policy *policy);

#endif
