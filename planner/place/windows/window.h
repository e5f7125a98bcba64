/* The steps of placement by windows, each with a file of its own. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_WINDOW_H
#define TARN_PLANNER_PLACE_WINDOWS_WINDOW_H

#include "cuts.h"
#include "field.h"
#include "planner/place/problem/problem.h"
#include "streams/base/region.h"

/* Places some storages of a field, whole blocks in the order of slots. Writes their offsets, and
 * how high they reach; INT32_MAX if that cannot be counted, or time is over. False: no memory.
 */
bool tarn_window_place(const struct tarn_windows_settings *settings, const struct tarn_field *field,
                       const uint32_t *storages, uint32_t count, int32_t *top);

/* ---- Many blocks that cross the same cuts, stacked and placed as one ---- */

/* Places the storages that cross the cuts. Writes their offsets, and how high they reach; INT32_MAX
 * if that cannot be counted, or time is over. storages: the ones that were cut, whole blocks in the
 * order of slots. False: no memory. */
bool tarn_clusters_place(const struct tarn_field *field,
                         const struct tarn_windows_settings *settings, const struct tarn_cuts *cuts,
                         const uint32_t *storages, uint32_t count, int32_t *top);

/* ---- The global order divided by how full it is: finely at points at which an aim is nearly
 * reached ---- */

/* Returns rank of an op in the global order -> its period, allocated from the region. Suppose that
 * every storage produced in a period were alive from the period's start, and every storage released
 * in it until its end. Then the bytes alive at once would stay below the aim, or rise by 1/`parts`
 * of it. storages: whole blocks, in the order of slots. block_of: of every storage of the problem.
 * aim: bytes. NULL: no memory. */
uint32_t *tarn_periods_find(struct tarn_region *region, const struct tarn_problem *problem,
                            const uint32_t *block_of, const uint32_t *storages, uint32_t count,
                            uint64_t aim, uint32_t parts);

/* ---- How low storages can be hoped to end ---- */

/* By rank of an op in the global order, in units: how high storages of the list reach that are
 * produced up to there, if they lie above their floors without holes. Never falls. storages: whole
 * blocks, in the order of slots. Taken from the region; NULL: no memory. */
int32_t *tarn_targets_find(struct tarn_region *region, const struct tarn_field *field,
                           uint32_t unit_shift, const uint32_t *storages, uint32_t count);

/* The highest of a window's targets, by window. Taken from the region; NULL: no memory. */
int32_t *tarn_targets_by_window(struct tarn_region *region, const struct tarn_problem *problem,
                                const struct tarn_cuts *cuts, const int32_t *target);

/* ---- Streams that are better placed by themselves: other streams hardly ever release their
 * storages ----
 */

/* Writes the phase of every stream: streams of phase 0, 1, ... are placed one after the other. Each
 * phase but the last has a single stream. A block whose streams have several phases has the last of
 * these phases. far: a storage is far from its producer once that many storages have been produced
 * after it. TARN_SYSTEM: no memory. */
enum tarn_status tarn_split_streams(const struct tarn_problem *problem, uint32_t far,
                                    uint32_t *phase, uint32_t *phases_count);

#endif
