/* The best there is for small graphs of one stream. */
#ifndef TARN_PLANNER_TRANSFORM_BUDGET_EXACT_H
#define TARN_PLANNER_TRANSFORM_BUDGET_EXACT_H

#include "budget.h"
#include "planner/transform/recompute/script.h"

/* The schedule of least time within `budget` reserved bytes of planned storages, or, where none
 * keeps to them, the fastest of the least peak. `script` receives it, from the region; it stays
 * empty where the model is no small one (budget/net.h), or the search has come to its limit of
 * states or to its end by the control. TARN_SYSTEM: no memory. */
enum tarn_status tarn_budget_exact(const struct tarn_recompute_model *model, uint64_t budget,
                                   const struct tarn_budget_limits *limits,
                                   struct tarn_region *region, struct tarn_script *script,
                                   uint64_t *evaluations);

#endif
