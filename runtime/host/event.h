/* Events of the host (tarn/device.h), inside. */
#ifndef TARN_RUNTIME_HOST_EVENT_H
#define TARN_RUNTIME_HOST_EVENT_H

#include <stdatomic.h>

#include "runtime/state/event_count.h"
#include "tarn/device.h"

struct tarn_host_event {
    struct tarn_event_count events; /* on which callers sleep */
    _Atomic int64_t value;
    atomic_uint references;
};

struct tarn_host_event *tarn_host_event_retain(struct tarn_host_event *event);

#endif
