/* Streams that are better placed by themselves: what they make is hardly ever released in others.
 */
#ifndef TARN_PLANNER_PLACE_WINDOWS_SPLIT_H
#define TARN_PLANNER_PLACE_WINDOWS_SPLIT_H

#include "planner/place/problem/problem.h"

/* Writes the phase of every stream: streams of phase 0, 1, ... are placed one after the other. Each
 * phase but the last has a single stream, and a block whose streams have several phases has the
 * last of them. far: a storage is far from its producer once that many storages have been produced
 * after it. TARN_SYSTEM: no memory. */
enum tarn_status tarn_split_streams(const struct tarn_problem *problem, uint32_t far,
                                    uint32_t *phase, uint32_t *phases_count);

#endif
