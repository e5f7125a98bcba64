/* Chooses what to keep under a budget: finds the fastest policy (recompute/recompute.h) whose peak,
 * as tarn_evaluate finds it, is within a number of bytes. Everything here is deterministic and runs
 * in one thread; effort is counted in evaluations. */
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
    TARN_BUDGET_MASKS = 16,     /* ops may read data that is kept only for them: a mask, indices */
    TARN_BUDGET_ALL = 31
};

struct tarn_budget_limits {
    unsigned classes;                             /* 0: all */
    uint64_t steps;                               /* evaluations; 0: enough for usual graphs */
    const struct tarn_transform_control *control; /* NULL: to the end, silently */
    double deadline_ms; /* on the clock of tarn_now_ms; 0: no deadline, or the control's */
    bool refine;        /* the start is nearly right: a quarter of the steps, and little is upset */
    uint32_t share;     /* if `steps` is 0: 1/share of the usual steps; 0: all */
};

struct tarn_budget_outcome {
    uint64_t peak, time_ns; /* of the policy found */
    uint64_t evaluations;
    bool fits;
    bool complete; /* no policy is better: all were tried */
};

/* Removes from a model the forms and choices that belong to none of `classes`; ops as they were
 * written always stay. The search decides what is not recomputed. Linear time. */
void tarn_recompute_model_restrict(struct tarn_recompute_model *model, unsigned classes);

/* Finds the fastest policy within `budget` reserved bytes of planned storages; if none is found,
 * the policy of the lowest peak. The search starts at `policy`, for example the result for a
 * somewhat larger budget, which receives the best policy found, never a worse one. The model must
 * be restricted to the same classes. TARN_SYSTEM: no memory. */
enum tarn_status tarn_budget_search(const struct tarn_recompute_model *model, uint64_t budget,
                                    const struct tarn_budget_limits *limits,
                                    struct tarn_policy *policy,
                                    struct tarn_budget_outcome *outcome);

/* Improves a policy without cuts by cuts (struct tarn_cut), allocated from the region: to the least
 * time within `budget`, or, if none is found, to the lowest peak. `outcome` is the outcome of the
 * policy by itself, and receives the outcome of the result. If cuts are no better, the policy stays
 * unchanged. TARN_SYSTEM: no memory. */
enum tarn_status tarn_budget_cut(const struct tarn_recompute_model *model, uint64_t budget,
                                 const struct tarn_budget_limits *limits,
                                 struct tarn_region *region, struct tarn_policy *policy,
                                 struct tarn_budget_outcome *outcome);

/* Finds an optimal schedule for small graphs of one stream: the fastest schedule within `budget`
 * reserved bytes of planned storages, or, if none keeps to them, the fastest one of the lowest
 * peak. `script` receives it, allocated from the region. It stays empty if the model is not small
 * (budget/net.h), or if the search has reached its limit of states or was ended by the control.
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
 * about every square root of its ops, at places that few bytes cross. Versions that cross are kept;
 * all others are dropped and stay, once recomputed, until their last reader. tarn_policy_init gives
 * the policy that keeps everything. */
enum tarn_status tarn_policy_chen(const struct tarn_recompute_model *model,
                                  struct tarn_policy *policy);

#endif
