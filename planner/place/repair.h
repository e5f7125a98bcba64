/* Search by repair: all blocks lie below an aim, and move until no two in conflict share bytes. */
#ifndef TARN_PLANNER_PLACE_REPAIR_H
#define TARN_PLANNER_PLACE_REPAIR_H

#include "planner/place/problem/problem.h"
#include "streams/base/deadline.h"

struct tarn_repair_options {
    uint64_t aim;      /* bytes: all blocks are to lie below it */
    uint64_t work_max; /* see work.h; 0: no limit */
    uint64_t seed;
    /* Block -> a block that stands for it and lies at the same offset (fold.h); NULL: itself. */
    const uint32_t *leader;
    /* By storage: may it lie only at multiples of the largest size of such a storage, the first
     * `slots_count` of them? NULL: no storage is bound to slots. */
    const bool *in_slots;
    uint32_t slots_count;
    struct tarn_deadline deadline;
    bool is_baseline; /* without the processor's wider instructions: for tests, same results */
};

/* A search that was stopped and may go on. */
struct tarn_repair;

/* offset: by storage, any offsets, from which the search starts; then those at which it ended.
 * *kept: NULL, or a search of the same problem, which goes on, with the same options but for work
 * and deadline. Then it is what was stopped, for another call or tarn_repair_finish; NULL if it has
 * found a placement, did nothing, or would change nothing any more.
 * *found: no two storages in conflict share bytes there, and none ends above the aim. It does
 * nothing if tarn_repair_estimate is 0 or at least as much as the work allowed. The problem has its
 * rows.
 * *work: what it took. TARN_SYSTEM: no memory. */
enum tarn_status tarn_repair_place(const struct tarn_problem *problem,
                                   const struct tarn_repair_options *options,
                                   struct tarn_repair **kept, uint64_t *offset, bool *found,
                                   uint64_t *work);

/* NULL does nothing. */
void tarn_repair_finish(struct tarn_repair *repair);

/* *work: of listing the pairs, from above; rows come after it. 0: the problem is not for this
 * search, since blocks have several members, no bytes, or alignments that their sizes are no
 * multiples of, or are too many or too large. TARN_SYSTEM: no memory. */
enum tarn_status tarn_repair_estimate(const struct tarn_problem *problem, uint64_t aim,
                                      uint64_t *work);

#endif
