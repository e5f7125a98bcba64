/* A session's options, checked and resolved; the rest of the runtime relies on them. */
#ifndef TARN_RUNTIME_STATE_SETTINGS_H
#define TARN_RUNTIME_STATE_SETTINGS_H

#include "streams/base/region.h"
#include "streams/plan/plan.h"
#include "tarn/session.h"

/* Options of one stream. */
struct tarn_stream_settings {
    bool blocking, urgent;
};

struct tarn_settings {
    struct tarn_session_options options; /* its lists and arrays are the caller's: not kept */
    struct tarn_stream_settings *streams;
};

/* TARN_USAGE: the options do not fit the plan or the device; TARN_SYSTEM. */
enum tarn_status tarn_settings_init(struct tarn_settings *settings, struct tarn_region *region,
                                    const struct tarn_plan *plan, struct tarn_device device,
                                    const struct tarn_session_options *options,
                                    struct tarn_error *error);

/* Can this library work with the device's table? */
enum tarn_status tarn_settings_check_device(struct tarn_device device, struct tarn_error *error);

/* Takes the caller's source of memory for a device, "host" for example; NULL: no functions.
 * TARN_USAGE: it lacks one, or its alignment is no power of two. */
enum tarn_status tarn_settings_take_source(struct tarn_memory_source *source,
                                           const struct tarn_memory_source *given,
                                           const char *device, struct tarn_error *error);

/* Does the table have the functions for several kinds of memory? Older tables end before them. */
static inline bool tarn_device_has_spaces(const struct tarn_device_table *table)
{
    return table->struct_size > offsetof(struct tarn_device_table, space_limits) &&
           table->space_create;
}

/* The number of kernels that a queue takes; 0: no limit. */
static inline uint32_t tarn_device_queue_depth(const struct tarn_device_table *table)
{
    return table->struct_size > offsetof(struct tarn_device_table, queue_depth) ? table->queue_depth
                                                                                : 0;
}

/* Does the device copy on queues? Older tables end before that function. */
static inline bool tarn_device_copies(const struct tarn_device_table *table)
{
    return table->struct_size > offsetof(struct tarn_device_table, copy_enqueue) &&
           table->copy_enqueue;
}

/* Does the device schedule streams itself, without queues? */
static inline bool tarn_device_is_host(struct tarn_device device)
{
    return !device.table->queue_create;
}

#endif
