/* Limits how long a search may run, in counted work instead of time, so plans are the same on every
 * machine and for any number of threads. A unit of work is about a nanosecond (work.h). */
#ifndef TARN_PLANNER_PLACE_EFFORT_EFFORT_H
#define TARN_PLANNER_PLACE_EFFORT_EFFORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "work.h"

struct tarn_effort {
    uint64_t max;      /* UINT64_MAX: no limit */
    bool must;         /* there is no plan yet: the steps that the first plan needs have no limit */
    uint64_t crossing; /* the part of `spent` for storages that cross windows; one thread */
    uint64_t priority_work;     /* of one placement of clusters; 0: no cluster was placed */
    uint32_t priority_clusters; /* how many these were */
    atomic_uint_least64_t spent;
};

static inline void tarn_effort_spend(struct tarn_effort *effort, uint64_t work)
{
    atomic_fetch_add_explicit(&effort->spent, work, memory_order_relaxed);
}

static inline uint64_t tarn_effort_left(struct tarn_effort *effort)
{
    uint64_t spent = atomic_load_explicit(&effort->spent, memory_order_relaxed);
    return spent < effort->max ? effort->max - spent : 0;
}

#endif
