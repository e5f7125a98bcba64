/* Placement that asks every pair of storages whether they may share bytes, for what the conflicts
 * of a problem (suffixes of streams) cannot say: storages that exclude each other, members of a
 * group that lie over each other, offsets that are fixed or wished for. */
#ifndef TARN_PLANNER_PLACE_PAIRWISE_H
#define TARN_PLANNER_PLACE_PAIRWISE_H

#include "place.h"

#define TARN_NO_OFFSET UINT64_MAX

/* Does a graph say such things of what is planned? */
bool tarn_pairwise_is_needed(const struct tarn_graph *graph);

/* May two storages have bytes in common? */
bool tarn_pairwise_may_share(const struct tarn_problem *problem, uint32_t a, uint32_t b);

/* As tarn_place: the best of some priority orders and of a local search over them; of up to eight
 * lone storages the smallest there is. fixed: by block, the offset that it must have, which clash
 * with each other nowhere, or TARN_NO_OFFSET; NULL: no block has one. *is_possible: false: there
 * are too many pairs to look at, and nothing is written. TARN_SYSTEM: no memory. */
enum tarn_status tarn_pairwise_place(const struct tarn_problem *problem, const uint64_t *fixed,
                                     const struct tarn_place_request *request,
                                     struct tarn_place_result *result, bool *is_possible);

/* Moves blocks of a safe placement (offset, by storage) to offsets that are wished for, without
 * a footprint above `limit`; wanted: by block, or TARN_NO_OFFSET; as few bytes as possible are
 * left where they are not wished. Where it does not come out, or there are too many pairs, the
 * placement stays. TARN_SYSTEM: no memory. */
enum tarn_status tarn_pairwise_keep(const struct tarn_problem *problem, const uint64_t *fixed,
                                    const uint64_t *wanted, uint64_t limit, uint64_t *offset);

#endif
