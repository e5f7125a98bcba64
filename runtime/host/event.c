/* A counter on which threads sleep, and which streams of sessions wait for (gate.h). Cost: a raise
 * is one exchange, and a system call if a thread sleeps. */
#include "gate.h"

#include "listeners.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"

enum tarn_status tarn_host_event_create(struct tarn_host_event **event, struct tarn_error *error)
{
    if (!event) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    *event = tarn_take_aligned(_Alignof(struct tarn_host_event), sizeof **event);
    if (!*event) return tarn_error_no_memory(error);
    atomic_init(&(*event)->events.events, 0);
    atomic_init(&(*event)->value, 0);
    atomic_init(&(*event)->references, 1);
    return TARN_OK;
}

struct tarn_host_event *tarn_host_event_retain(struct tarn_host_event *event)
{
    atomic_fetch_add(&event->references, 1);
    return event;
}

void tarn_host_event_destroy(struct tarn_host_event *event)
{
    if (event && atomic_fetch_sub(&event->references, 1) == 1) tarn_free_aligned(event);
}

void tarn_host_event_raise(struct tarn_host_event *event, uint64_t value)
{
    if (!event) return;
    int64_t wanted = value < INT64_MAX ? (int64_t)value : INT64_MAX;
    int64_t before = atomic_load(&event->value);
    while (before < wanted && !atomic_compare_exchange_weak(&event->value, &before, wanted)) {
    }
    if (before >= wanted) return;
    tarn_event_count_wake(&event->events, UINT32_MAX, UINT32_MAX);
    tarn_listeners_call();
}

uint64_t tarn_host_event_value(const struct tarn_host_event *event)
{
    return event ? (uint64_t)atomic_load(&event->value) : 0;
}

enum tarn_status tarn_host_event_wait(struct tarn_host_event *event, uint64_t value,
                                      uint64_t timeout_ns, struct tarn_error *error)
{
    if (!event) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    uint64_t deadline_ns = tarn_deadline_ns(timeout_ns);
    for (bool in_time = timeout_ns > 0;;) {
        unsigned seen = tarn_event_count_read(&event->events);
        if (tarn_host_event_value(event) >= value) return TARN_OK;
        if (!in_time)
            return tarn_error_set(error, TARN_DEADLINE, "the event is at %llu and not yet at %llu",
                                  (unsigned long long)tarn_host_event_value(event),
                                  (unsigned long long)value);
        in_time = tarn_event_count_sleep(&event->events, seen, 1, deadline_ns);
    }
}
