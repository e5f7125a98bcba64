/* Why no plan fits a capacity. */
#ifndef TARN_PLANNER_CAPACITY_H
#define TARN_PLANNER_CAPACITY_H

#include "streams/order/gap_bound.h"

/* Returns TARN_DOES_NOT_FIT with an error that says how many storages block and names the heaviest
 * ones; the bound is above the capacity. */
enum tarn_status tarn_blocking_refuse(const struct tarn_gap_bound *bound,
                                      const struct tarn_reserve *reserve, uint64_t capacity,
                                      struct tarn_error *error);

#endif
