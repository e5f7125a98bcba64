/* The global order divided by how full it is: finely where an aim is nearly reached. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_PERIODS_H
#define TARN_PLANNER_PLACE_WINDOWS_PERIODS_H

#include "planner/place/problem/problem.h"
#include "streams/base/region.h"

/* Rank of an op in the global order -> its period, taken from the region. If all that is produced
 * in a period were there from its begin on, and all that is released in it to its end, what is
 * alive at once would stay below the aim, or rise by a small part of it. storages: whole blocks, in
 * the order of slots. block_of: of every storage of the problem. aim: bytes. NULL: no memory. */
uint32_t *tarn_periods_find(struct tarn_region *region, const struct tarn_problem *problem,
                            const uint32_t *block_of, const uint32_t *storages, uint32_t count,
                            uint64_t aim);

#endif
