/* The early end of a search: the caller stops it, or its time is over. Made once for a whole
 * search, so that all of its stages share the time; every loop of a search checks it at least some
 * dozen times a second. Results under a deadline depend on the machine. */
#ifndef TARN_STREAMS_BASE_DEADLINE_H
#define TARN_STREAMS_BASE_DEADLINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "tarn/plan.h"

struct tarn_deadline {
    const atomic_bool *stop; /* NULL, or a flag that any thread may set to end the search */
    double at_ms;            /* on the clock below; 0: none */
};

/* The monotonic clock. */
static inline uint64_t tarn_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline double tarn_now_ms(void) { return (double)tarn_now_ns() * 1e-6; }

/* A deadline `seconds` from now; 0: none. */
static inline struct tarn_deadline tarn_deadline_in(const atomic_bool *stop, double seconds)
{
    return (struct tarn_deadline){stop, seconds > 0 ? tarn_now_ms() + seconds * 1e3 : 0};
}

/* The remaining time in seconds: above 0 even if it is over, and 0 if there is no deadline. */
static inline double tarn_deadline_left(const struct tarn_deadline *deadline)
{
    if (deadline->at_ms <= 0) return 0;
    double seconds = (deadline->at_ms - tarn_now_ms()) * 1e-3;
    return seconds > 1e-9 ? seconds : 1e-9;
}

static inline enum tarn_stop tarn_deadline_reason(const struct tarn_deadline *deadline)
{
    if (deadline->stop && atomic_load_explicit(deadline->stop, memory_order_relaxed))
        return TARN_STOP_REQUEST;
    return deadline->at_ms > 0 && tarn_now_ms() > deadline->at_ms ? TARN_STOP_DEADLINE
                                                                  : TARN_STOP_NONE;
}

static inline bool tarn_deadline_is_over(const struct tarn_deadline *deadline)
{
    return tarn_deadline_reason(deadline) != TARN_STOP_NONE;
}

#endif
