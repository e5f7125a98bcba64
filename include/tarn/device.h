/* What an accelerator must be able to do: one const table of functions.
 *
 * Contract. Tarn's front checks every argument, so a device gets only valid ones: live handles,
 * sizes above 0, pointers that are not NULL. Functions return 0, or a code of the device's own that
 * error_text and error_class explain; what failed has then no effect, and a result is not looked
 * at. A destroy function cannot fail and is called once for everything that was created, also after
 * errors, but not while the device may still be using the object. `self` is the device's state.
 *
 * Threads: a session calls its device from one thread at a time, unless a function says otherwise;
 * where that is a thread of Tarn's own, memory_limits is called on it before anything else. Two
 * sessions may use one device at the same time, from two threads. Once the destruction of a session
 * has returned, whatever it answered, the session makes no further call unless it is destroyed
 * again; only a call that has not returned yet may still be in the device.
 */
#ifndef TARN_DEVICE_H
#define TARN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_DEVICE_ABI 2u
#define TARN_PATTERN_STEP UINT64_C(0x9e3779b97f4a7c15)

enum tarn_error_class {
    TARN_ERROR_RETRYABLE,     /* the same call may succeed later */
    TARN_ERROR_OUT_OF_MEMORY, /* the device has too little memory */
    TARN_ERROR_POISONED       /* nothing but destroying will work from here on */
};

struct tarn_memory_limits {
    uint64_t alignment;      /* of every allocation; a power of two */
    uint64_t allocation_max; /* bytes of the largest single allocation; UINT64_MAX: no such limit */
    uint64_t available;      /* bytes free now; UINT64_MAX: not known */
    bool on_host;            /* may host code follow the addresses that kernels get? */
};

/* A memory space of a graph (graph.h), as a device is asked for memory in it. */
struct tarn_memory_space {
    uint32_t index;   /* in the graph */
    const char *name; /* the graph's; valid during the call */
    enum tarn_space_kind kind;
};

struct tarn_queue_info {
    const char *name; /* the stream's; valid during the call */
    bool urgent;      /* run its work before that of other queues where the device can choose */
};

struct tarn_device_table {
    uint32_t struct_size; /* sizeof(struct tarn_device_table) of the device's build */
    uint32_t abi_version; /* TARN_DEVICE_ABI */
    const char *name;     /* in messages; NULL: "unnamed" */
    /* How kernels work. false: a kernel enqueues work on call->queue and returns at once (inline
     * enqueue). true: a kernel does the work itself; it runs as a closure through `launch`. */
    bool kernels_are_closures;

    /* ---- Memory ---- */
    int (*memory_limits)(void *self, struct tarn_memory_limits *limits);
    /* One allocation of `size` bytes with any contents. *memory: its first address as kernels,
     * copies and fill see it. */
    int (*memory_create)(void *self, uint64_t size, void **memory);
    void (*memory_destroy)(void *self, void *memory, uint64_t size);
    /* Optional, both or none: for devices whose kernels cannot take an address inside an
     * allocation. Turns `size` bytes from `offset` of `memory` into what kernels, copies and fill
     * get instead; called once per storage. Regions may overlap, and may begin at any byte (members
     * of contiguous groups do). Without it they get (char *)memory + offset. */
    int (*region_create)(void *self, void *memory, uint64_t offset, uint64_t size, void **region);
    void (*region_destroy)(void *self, void *region);
    /* Blocking copies between host bytes and device bytes, and fill with one byte: from any address
     * inside an allocation, or from the beginning of a region. No queue is working on those bytes;
     * what is enqueued afterwards sees them. */
    int (*copy_in)(void *self, void *device, const void *host, uint64_t size);
    int (*copy_out)(void *self, void *host, const void *device, uint64_t size);
    int (*fill)(void *self, void *device, unsigned char byte, uint64_t size);
    /* Optional, both or none: host memory from which copies are fastest (pinned). */
    int (*host_memory_create)(void *self, uint64_t size, void **memory);
    void (*host_memory_destroy)(void *self, void *memory, uint64_t size);

    /* ---- Queues and events (NULL for the host device, which schedules its streams itself) ----
     * A queue runs what is enqueued one after another, in order. An event is recorded on one queue
     * and waited for on another: work enqueued after the wait starts after everything enqueued
     * before the latest record that was enqueued before the wait. An event may be recorded again
     * while waits for its earlier record are pending; they keep waiting for that one. It may be
     * destroyed when it was reached, although a wait for it is still behind other work of a queue
     * that is not the session's. A call may do work that is ready, and waits for no other, except
     * for room in its queue (queue_depth). */
    int (*queue_create)(void *self, const struct tarn_queue_info *info, void **queue);
    void (*queue_destroy)(void *self, void *queue);
    int (*event_create)(void *self, void **event);
    void (*event_destroy)(void *self, void *event);
    int (*event_record)(void *self, void *event, void *queue);
    int (*event_wait)(void *self, void *event, void *queue);
    /* *done: has the latest record been reached? An event never recorded is done. Returns what went
     * wrong on the device before that record, if anything did. From any thread. */
    int (*event_query)(void *self, void *event, bool *done);
    /* Optional, required by kernels_are_closures: enqueues a call of function(argument) on a thread
     * of the host; captured, it is called at every launch of the graph. The function calls nothing
     * of the device and does not wait for other queues. */
    int (*launch)(void *self, void *queue, void (*function)(void *argument), void *argument);

    /* ---- Capture and replay (optional, all or none) ----
     * Between begin and end nothing runs: what is enqueued on `queue`, and on queues that wait for
     * an event recorded in the capture, becomes a graph. Before the end, `queue` has waited for all
     * of them. Same thread for all. When anything fails in between, capture_end is still called;
     * then it fails and leaves no graph, and the queues are as before. An event recorded in a
     * capture is recorded anew before it is waited for or asked elsewhere. A launch runs after what
     * `queue` was given before it, earlier launches of the same graph included, and before what it
     * is given afterwards. */
    int (*capture_begin)(void *self, void *queue);
    int (*capture_end)(void *self, void *queue, void **graph);
    int (*graph_launch)(void *self, void *graph, void *queue);
    void (*graph_destroy)(void *self, void *graph);

    /* ---- Time stamps (optional, all or none; for traces) ----
     * A stamp is a record that keeps the time at which it is reached. Elapsed is asked for when
     * both were reached: the nanoseconds of real time from one to the other. */
    int (*stamp_create)(void *self, void **stamp);
    void (*stamp_destroy)(void *self, void *stamp);
    int (*stamp_record)(void *self, void *stamp, void *queue);
    int (*stamp_elapsed)(void *self, void *from, void *to, double *elapsed_ns);

    /* ---- Kernels, and names for profilers and memory checkers (optional, each) ---- */
    /* Around every kernel that enqueues for itself, in its thread: tells profilers the op's name,
     * and makes current what the kernel must find current. */
    void (*range_begin)(void *self, const char *name);
    void (*range_end)(void *self);
    /* A tensor or workspace lives at these bytes of `memory`. */
    void (*memory_name)(void *self, void *memory, uint64_t offset, uint64_t size, const char *name);

    /* ---- Checking kernels (optional, both or none) ----
     * Needed for checked execution where memory is not on_host or there is no `launch`. `seeds` and
     * `wrongs` are allocations (or regions) of 8-byte words, read and written when the kernel runs.
     * The pattern of seeds[seed] is the little-endian words seeds[seed] + i * TARN_PATTERN_STEP, i
     * = 0, 1, ..., cut at `size` bytes. Compare makes wrongs[wrong] the smaller of what it is and
     * the index of the first byte that is not the pattern's, if there is one. */
    int (*pattern_fill)(void *self, void *queue, void *bytes, uint64_t size, const void *seeds,
                        uint64_t seed);
    int (*pattern_compare)(void *self, void *queue, const void *bytes, uint64_t size,
                           const void *seeds, uint64_t seed, void *wrongs, uint64_t wrong);

    /* ---- Errors ---- From any thread, for any code. The text is static, and never NULL. */
    const char *(*error_text)(void *self, int code);
    enum tarn_error_class (*error_class)(void *self, int code);

    /* ---- Memory spaces (optional, all or none; a table may end before them) ----
     * For devices with several kinds of memory. Graphs may declare spaces; each has an allocation
     * of its own. These are then called in place of memory_limits, memory_create and
     * memory_destroy, for every space of such a graph, also where it is one of kind device; without
     * them, all spaces come from those. Regions, copies, fill and kernels take addresses in any
     * space. A device that has no such kind of memory either gives another one or fails. */
    int (*space_limits)(void *self, const struct tarn_memory_space *space,
                        struct tarn_memory_limits *limits);
    int (*space_create)(void *self, const struct tarn_memory_space *space, uint64_t size,
                        void **memory);
    void (*space_destroy)(void *self, const struct tarn_memory_space *space, void *memory,
                          uint64_t size);

    /* ---- Depth of queues (a table may end before it) ----
     * How many kernels of one kind (launches, checking kernels, or captured graphs) a queue takes
     * whatever it waits for; the call for the next one may then wait for room. Records and waits do
     * not count. Where kinds take turns, or one is used for the first time, room may end earlier.
     * 0: as many as there is memory for. A submit behind events or a queue of its caller's looks at
     * it, see tarn_session_submit_with. */
    uint32_t queue_depth;

    /* ---- Copies on a queue (optional; a table may end before it) ----
     * Enqueues a copy of `size` bytes on `queue`, between any two of the session's storages, in
     * whatever spaces, which do not overlap: what kernels get for them. It returns at once, and may
     * be captured. Sessions run moves (struct tarn_op_info) with it, and nobody binds a kernel for
     * them; without it they need one. On the host device, which has no queues, `queue` is NULL and
     * the copy is done when it returns; from the thread that runs the stream. */
    int (*copy_enqueue)(void *self, void *queue, void *to, const void *from, uint64_t size);
};

/* A device by value: a table and the state it works on, which the caller keeps alive until
 * tarn_session_destroy has answered TARN_OK for every session on it. */
struct tarn_device {
    const struct tarn_device_table *table;
    void *self;
};

/* ---- Where the devices of this library take memory from ----
 * Arenas lie in it, so that others may use the same memory: ncclMemAlloc (NCCL registers it), a
 * pool that other processes or devices may open, pinned memory of the host, huge pages of one's
 * own. Offsets in an arena follow from the plan alone: ranks with equal plans have every tensor at
 * equal offsets from the base, wherever that is. Memory that is there already needs no source: see
 * the option `memory` of sessions and arenas. Any thread that creates or destroys a session or an
 * arena may call it. */
struct tarn_memory_source {
    size_t struct_size;
    /* `size` bytes with any contents, or a code of the device's (CUDA: a cudaError_t; the host: an
     * errno). On CUDA the device is current. */
    int (*create)(void *user, uint64_t size, void **memory);
    void (*destroy)(void *user, void *memory, uint64_t size);
    void *user;
    uint64_t alignment; /* of what it gives, a power of two; 0: 512 */
};
#ifndef __cplusplus
#define TARN_MEMORY_SOURCE(...) \
    (&(struct tarn_memory_source){.struct_size = sizeof(struct tarn_memory_source), __VA_ARGS__})
#endif

/* The processors on which a worker of the host device may run, among those that the thread that
 * creates the session may use. Cores are taken node by node, in a node the fastest kind first;
 * worker i belongs to core i, and if there are more workers than cores, they begin anew. Memory
 * that the device allocates is asked for on the NUMA nodes of these cores, unless TARN_BIND_NONE.
 * Without hwloc in the build nothing is bound. */
enum tarn_worker_binding {
    TARN_BIND_AUTO, /* its core, if there are workers for all cores; else any core of the NUMA nodes
                       of all workers' cores, so that two sessions do not sit on the same cores */
    TARN_BIND_NONE, /* as the creating thread */
    TARN_BIND_NODE, /* the NUMA node of its core */
    TARN_BIND_CACHE, /* the outermost cache of its core */
    TARN_BIND_CORE   /* its core, with all hardware threads */
};

struct tarn_host_options {
    size_t struct_size;
    uint32_t workers; /* 0: min(cores, streams) */
    /* NULL: workers are threads of Tarn's. Else a function that has task(argument) called once, on
     * any thread of the caller's, and returns 0, or another number when it cannot: then it is asked
     * again, after 0.2 ms at first and up to 26 ms later, and if it refuses for a second while none
     * of its tasks is at work, the session ends with TARN_SYSTEM. It is called from any thread,
     * must not call the task itself, and must not wait for one. A task runs kernels as long as
     * there is something to do, and then returns; there are as many at a time as `workers` says.
     * Every task must be called, also after errors: a session is not destroyed before. Streams that
     * may block (option `blocking`) still have threads of their own. */
    int (*execute)(void *user, void (*task)(void *argument), void *argument);
    void *execute_user;
    const struct tarn_memory_source *memory; /* NULL: pages of the system's */
    /* Of workers that are threads of Tarn's; streams that may block are never bound. Anything but
     * AUTO and NONE together with `execute` is TARN_USAGE. */
    enum tarn_worker_binding binding;
};
#ifndef __cplusplus
#define TARN_HOST_OPTIONS(...) \
    (&(struct tarn_host_options){.struct_size = sizeof(struct tarn_host_options), __VA_ARGS__})
#endif

/* This machine's cores as queues. options (NULL: defaults) must live as long as the device, see
 * above. Kernels run on worker threads. */
TARN_API struct tarn_device tarn_device_host(const struct tarn_host_options *options);

/* Cores that the calling thread may use, at least 1; hardware threads of one core count once. The
 * machine is read once, by the first of this call, the creation of a session or arena on the host
 * device, and the opening of a CUDA device. A forked child uses what its parent has read, and reads
 * nothing: a program that forks its workers calls this before, as otherwise a child knows
 * processors alone and binds nothing. Any thread. */
TARN_API uint32_t tarn_host_cores(void);

/* ---- Events of the host ----
 * A counter that only grows. Steps of others and submits of sessions (tarn_session_submit_with)
 * wait for values of it and raise it; a value may be waited for before anybody has promised it. All
 * calls from any thread. */
struct tarn_host_event;
/* The counter is 0. TARN_SYSTEM: no memory. */
TARN_API enum tarn_status tarn_host_event_create(struct tarn_host_event **event,
                                                 struct tarn_error *error);
/* Sessions that have used it keep it as long as they need it. */
TARN_API void tarn_host_event_destroy(struct tarn_host_event *event);
/* Raises the counter to `value`, 2^63 - 1 at most; nothing when it is there already. What was
 * written before is seen by who has waited for the value. */
TARN_API void tarn_host_event_raise(struct tarn_host_event *event, uint64_t value);
TARN_API uint64_t tarn_host_event_value(const struct tarn_host_event *event);
/* TARN_DEADLINE: the counter is still below `value` after timeout_ns. */
TARN_API enum tarn_status tarn_host_event_wait(struct tarn_host_event *event, uint64_t value,
                                               uint64_t timeout_ns, struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
