/* How low what is produced can be hoped to end. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_TARGETS_H
#define TARN_PLANNER_PLACE_WINDOWS_TARGETS_H

#include "cuts.h"
#include "field.h"

/* By rank of an op in the global order, in units: how high storages of the list reach that are
 * produced up to there, if they lie above their floors without holes. Never falls. storages: whole
 * blocks, in the order of slots. Taken from the region; NULL: no memory. */
int32_t *tarn_targets_find(struct tarn_region *region, const struct tarn_field *field,
                           uint32_t unit_shift, const uint32_t *storages, uint32_t count);

/* The highest of a window's targets, by window. Taken from the region; NULL: no memory. */
int32_t *tarn_targets_by_window(struct tarn_region *region, const struct tarn_problem *problem,
                                const struct tarn_cuts *cuts, const int32_t *target);

#endif
