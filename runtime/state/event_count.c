/* An event count over one Linux futex; the kinds of sleeper are the futex's bit sets, so one word
 * serves workers, streams with their own thread, and threads that wait for a ticket. */
#include "event_count.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool tarn_event_count_sleep(struct tarn_event_count *count, unsigned seen, uint32_t kind,
                            uint64_t deadline_ns)
{
    assert(kind != 0 && (kind & (kind - 1)) == 0);
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                             .tv_nsec = (long)(deadline_ns % 1000000000)};
    long result = syscall(SYS_futex, &count->events, FUTEX_WAIT_BITSET_PRIVATE, seen,
                          deadline_ns == UINT64_MAX ? NULL : &until, NULL, kind);
    return result == 0 || errno != ETIMEDOUT;
}

void tarn_event_count_wake(struct tarn_event_count *count, uint32_t kinds, uint32_t sleepers)
{
    assert(kinds != 0 && sleepers > 0);
    atomic_fetch_add(&count->events, 1);
    syscall(SYS_futex, &count->events, FUTEX_WAKE_BITSET_PRIVATE,
            sleepers < INT_MAX ? (int)sleepers : INT_MAX, NULL, NULL, kinds);
}
