/* What an accelerator must be able to do: one const table of functions.
 *
 * Tarn's front checks every argument; a device gets only valid ones. Functions return 0, or a code
 * of the device's own that error_text and error_class explain. `self` is the device's state.
 *
 * Threads: a session calls its device from one thread at a time.
 */
#ifndef TARN_DEVICE_H
#define TARN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_DEVICE_ABI 1u

enum tarn_error_class {
    TARN_ERROR_RETRYABLE,     /* the same call may succeed later */
    TARN_ERROR_OUT_OF_MEMORY, /* the device has too little memory */
    TARN_ERROR_POISONED       /* nothing but destroying will work from here on */
};

struct tarn_device_table {
    uint32_t struct_size; /* sizeof(struct tarn_device_table) of the device's build */
    uint32_t abi_version; /* TARN_DEVICE_ABI */
    const char *name;

    /* ---- Memory ---- */
    /* The alignment that memory_create guarantees, a power of two. */
    uint64_t (*memory_alignment)(void *self);
    /* One allocation of `size` > 0 bytes. *memory is what kernels get addresses into. */
    int (*memory_create)(void *self, uint64_t size, void **memory);
    void (*memory_destroy)(void *self, void *memory, uint64_t size);
    /* Blocking copies between host bytes and device addresses. */
    int (*copy_in)(void *self, void *device, const void *host, uint64_t size);
    int (*copy_out)(void *self, void *host, const void *device, uint64_t size);

    /* ---- Queues and events (NULL for the host device, which schedules its streams itself) ----
     * A queue runs what is enqueued one after another, in order. An event is recorded on one queue
     * and waited for on another: work enqueued after the wait starts after everything enqueued
     * before the latest record. An event may be recorded again. */
    int (*queue_create)(void *self, const char *name, void **queue);
    void (*queue_destroy)(void *self, void *queue);
    int (*event_create)(void *self, void **event);
    void (*event_destroy)(void *self, void *event);
    int (*event_record)(void *self, void *event, void *queue);
    int (*event_wait)(void *self, void *event, void *queue);
    /* *done: has the latest record been reached? Does not block. */
    int (*event_query)(void *self, void *event, bool *done);

    /* ---- Errors ---- */
    const char *(*error_text)(void *self, int code);
    enum tarn_error_class (*error_class)(void *self, int code);
};

/* A device by value: a table and the state it works on, which the caller keeps alive until every
 * session on it is destroyed. */
struct tarn_device {
    const struct tarn_device_table *table;
    void *self;
};

struct tarn_host_options {
    size_t struct_size;
    uint32_t workers; /* 0: min(cores, streams) */
    bool unpinned;    /* leave the workers where the system puts them */
    bool small_pages; /* do not ask for huge pages */
};
#ifndef __cplusplus
#define TARN_HOST_OPTIONS(...) \
    (&(struct tarn_host_options){.struct_size = sizeof(struct tarn_host_options), __VA_ARGS__})
#endif

/* This machine's cores as queues. options (NULL: defaults) must live until every session on the
 * device is destroyed. Kernels run on worker threads. */
TARN_API struct tarn_device tarn_device_host(const struct tarn_host_options *options);

#ifdef __cplusplus
}
#endif

#endif
