/* An event count on which all threads of an executor sleep. A thread that wants to sleep reads the
 * count, checks its condition once more, and sleeps only while the count is unchanged. A thread
 * that makes a condition true raises the count afterwards. So no wake-up is lost. */
#ifndef TARN_RUNTIME_STATE_EVENT_COUNT_H
#define TARN_RUNTIME_STATE_EVENT_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "streams/base/deadline.h"

struct tarn_event_count {
    _Alignas(64) atomic_uint events;
};

/* The time in that many nanoseconds; UINT64_MAX (for ever) on overflow. */
static inline uint64_t tarn_deadline_ns(uint64_t timeout_ns)
{
    uint64_t now = tarn_now_ns();
    return timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
}

static inline unsigned tarn_event_count_read(struct tarn_event_count *count)
{
    return atomic_load(&count->events);
}

/* Sleeps while the count is `seen`, until `deadline_ns` of the monotonic clock (UINT64_MAX: for
 * ever). `kind` is one bit, the kind of the sleeping thread. May return early. False: the deadline
 * passed. */
bool tarn_event_count_sleep(struct tarn_event_count *count, unsigned seen, uint32_t kind,
                            uint64_t deadline_ns);

/* Raises the count and wakes up to `sleepers` threads of the given `kinds`. */
void tarn_event_count_wake(struct tarn_event_count *count, uint32_t kinds, uint32_t sleepers);

#endif
