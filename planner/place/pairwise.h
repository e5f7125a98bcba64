/* Places storages by checking every pair of storages, for rules that the conflicts of a problem
 * (suffixes of streams) cannot express: storages that exclude each other, members of a group that
 * overlap, fixed or preferred offsets. */
#ifndef TARN_PLANNER_PLACE_PAIRWISE_H
#define TARN_PLANNER_PLACE_PAIRWISE_H

#include "place.h"

#define TARN_NO_OFFSET UINT64_MAX

/* Does a graph have such rules for planned storages? */
bool tarn_pairwise_is_needed(const struct tarn_graph *graph);

/* May two storages have bytes in common? */
bool tarn_pairwise_may_share(const struct tarn_problem *problem, uint32_t a, uint32_t b);

/* Does what tarn_place does: returns the best placement of some priority orders and of a local
 * search over them; for up to eight lone storages, an optimal one. fixed: by block, the offset that
 * it must have, or TARN_NO_OFFSET; these offsets must not clash. NULL: no block has one.
 * *is_possible false: there are too many pairs to look at, and nothing is written. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_pairwise_place(const struct tarn_problem *problem, const uint64_t *fixed,
                                     const struct tarn_place_request *request,
                                     struct tarn_place_result *result, bool *is_possible);

/* Moves blocks of a safe placement (offset, by storage) to wished offsets, with a footprint of at
 * most `limit`, so that as few bytes as possible miss their wished offset. wanted: by block, or
 * TARN_NO_OFFSET. If no such placement is found, or there are too many pairs, the placement stays
 * unchanged. TARN_SYSTEM: no memory. */
enum tarn_status tarn_pairwise_keep(const struct tarn_problem *problem, const uint64_t *fixed,
                                    const uint64_t *wanted, uint64_t limit, uint64_t *offset);

#endif
