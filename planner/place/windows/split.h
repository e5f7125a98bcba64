/* Streams that are better placed by themselves: what they make is hardly ever released in others.
 */
#ifndef TARN_PLANNER_PLACE_WINDOWS_SPLIT_H
#define TARN_PLANNER_PLACE_WINDOWS_SPLIT_H

#include "planner/place/somas/baseline.h"

/* Writes for every stream its turn: streams of turn 0, 1, ... are to be placed one after the other,
 * each turn but the last is a single stream's, and blocks that belong to several turns have the
 * last one. far: so many storages after its producer a storage is far from it. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_split_streams(const struct tarn_problem *problem, uint32_t far,
                                    uint32_t *turn, uint32_t *turns_count);

#endif
