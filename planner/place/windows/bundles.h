/* Many blocks that cross the same cuts, stacked and placed as one. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_BUNDLES_H
#define TARN_PLANNER_PLACE_WINDOWS_BUNDLES_H

#include "cuts.h"
#include "field.h"

/* Places what crosses the cuts, by the periods (periods.h) that it is produced in; writes offsets,
 * and how high they reach: INT32_MAX where that cannot be counted, or time is over. False: no
 * memory. */
bool tarn_bundles_place(const struct tarn_field *field,
                        const struct tarn_windows_settings *settings, const struct tarn_cuts *cuts,
                        const uint32_t *period_of, int32_t *top);

#endif
