/* Several placement methods, the best result. */
#ifndef TARN_PLANNER_PLACE_SOMAS_PORTFOLIO_H
#define TARN_PLANNER_PLACE_SOMAS_PORTFOLIO_H

#include "baseline.h"

/* All methods, in the order in which ties are broken. */
extern const struct tarn_method tarn_methods[];
extern const uint32_t tarn_methods_count;

/* The index of the method of that name, or TARN_NONE. */
uint32_t tarn_method_find(const char *name);

/* Runs one method, or all of them for TARN_NONE (that is, the first `methods_max` worth their
 * while), on up to `threads` threads (0: all cores). Writes the offsets and footprint of the least
 * footprint, of equal ones the first in order of methods, and which method that was; nothing of it
 * depends on the number of threads. Methods after one that meets the bound (no plan is below it; 0:
 * none known) are left out, and those that have to end before they are done; when that leaves none,
 * the footprint is UINT64_MAX. until: may be NULL. TARN_SYSTEM: no memory for one of them. */
enum tarn_status tarn_portfolio_place(const struct tarn_problem *problem, uint32_t method,
                                      uint32_t methods_max, uint32_t threads, uint64_t bound,
                                      const struct tarn_deadline *deadline, uint64_t *offset,
                                      uint64_t *footprint, uint32_t *winner);

/* How many methods are worth their while: some differ where there are groups only. */
uint32_t tarn_portfolio_count(const struct tarn_problem *problem);

#endif
