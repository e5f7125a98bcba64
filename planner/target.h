/* Which peaks the search for a policy is asked for: for a budget, and for the least. */
#ifndef TARN_PLANNER_TARGET_H
#define TARN_PLANNER_TARGET_H

#include "attempt.h"

/* Keeps in `best` the best that is found for the budget, from the policy, which becomes
 * that of the last search. `refine`: it is nearly right for the budget. Status: TARN_OK also where
 * nothing fits. */
enum tarn_status tarn_recompute_try_targets(struct tarn_budgeting *budgeting, bool refine,
                                            struct tarn_attempt *best);

/* The least footprint that is found: one number, whatever the budget is, and nothing just below it
 * can be had by asking for it. `least` is empty at first; its graph is the caller's, also where
 * the status is an error. */
enum tarn_status tarn_recompute_least(struct tarn_budgeting *budgeting, struct tarn_attempt *least);

/* Where nothing has fitted: replaces `best` by what fits in the end, or by the least. */
enum tarn_status tarn_recompute_fall_back(struct tarn_budgeting *budgeting,
                                          struct tarn_attempt *best);

#endif
