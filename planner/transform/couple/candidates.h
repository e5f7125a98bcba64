/* Finds arcs that break the heaviest antichain of a graph. */
#ifndef TARN_PLANNER_TRANSFORM_COUPLE_CANDIDATES_H
#define TARN_PLANNER_TRANSFORM_COUPLE_CANDIDATES_H

#include "planner/transform/coupled.h"

struct tarn_couple_candidate {
    struct tarn_recipe_arc arc;
    uint64_t gain;        /* bytes that the antichain loses at once; others may be as heavy */
    uint64_t makespan_ns; /* with the arc */
};

enum { TARN_CANDIDATES_MAX = 16 };

struct tarn_candidates {
    struct tarn_couple_candidate best[TARN_CANDIDATES_MAX]; /* most promising first */
    uint32_t count;
    uint64_t work; /* that was done */
};

struct tarn_candidate_limits {
    uint64_t gain;        /* a larger gain is no better */
    uint64_t makespan_ns; /* no arc may lead to a longer makespan */
    uint64_t work;        /* members that may be looked at, once for each arc; about a nanosecond */
};

/* Finds arcs for the antichain of `coupled`, whose pace is `pace`. TARN_SYSTEM: no memory.
 * Within the work, O(S W M T) for M members with last users in T streams and W pairs of a place
 * and a stream, at most 32 S. */
enum tarn_status tarn_candidates_find(struct tarn_candidates *candidates,
                                      const struct tarn_coupled *coupled,
                                      const struct tarn_pace *pace, const uint64_t *reserved,
                                      const struct tarn_candidate_limits *limits);

#endif
