/* Exact search: finds a placement within a capacity, or proves that there is none. */
#ifndef TARN_PLANNER_PLACE_EXACT_EXACT_H
#define TARN_PLANNER_PLACE_EXACT_EXACT_H

#include "planner/place/problem/problem.h"
#include "streams/base/deadline.h"

enum tarn_exact_result {
    TARN_EXACT_FOUND,
    TARN_EXACT_INFEASIBLE, /* proved */
    TARN_EXACT_STOPPED     /* out of nodes, stopped by the caller, or no memory */
};

struct tarn_exact_options {
    uint64_t seed;
    uint64_t nodes_max;  /* for all searchers together; 0: no limit */
    uint64_t visits_max; /* of pieces looked at, about; 0: no limit */
    uint64_t work_max;   /* see work.h; 0: no limit */
    uint32_t threads;    /* 0: all cores; results do not depend on it */
    /* Block -> its leader, at whose offset it lies; both are lone, of the same size and alignment,
     * and not in conflict. A block that is its own leader has an offset of its own. NULL: every
     * block is its own leader. With leaders no block is left out. */
    const uint32_t *leader;
    struct tarn_deadline deadline;
};

struct tarn_exact_report {
    enum tarn_exact_result result;
    /* Of the searcher that ended the search, of searchers with lower numbers, and of all earlier
     * rounds. */
    uint64_t nodes, visits;
    uint64_t work;
    uint32_t storages; /* that nodes deal with: not those in conflict with all others */
    uint32_t rounds;
};

/* Looks for a placement of blocks in which every one ends within `capacity`.
 *
 * is_left_out: block -> whether the search ignores it; NULL: no block is ignored. offset: storage
 * -> offset, written for the blocks that are not left out, if a placement was found. The same for
 * any number of threads unless the deadline ended it. TARN_USAGE: more than some thousand storages.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_exact_place(const struct tarn_problem *problem, const bool *is_left_out,
                                  uint64_t capacity, const struct tarn_exact_options *options,
                                  uint64_t *offset, struct tarn_exact_report *report);

#endif
