/* The interface of a device: one const table of functions.
 *
 * Contract. Tarn's front checks every argument, so a device gets only valid ones: live handles,
 * sizes above 0, pointers that are not NULL. Functions return 0, or a device-specific code that
 * error_text and error_class explain. A failed call has no effect, and its results are not read. A
 * destroy function cannot fail and is called once for every object that was created, also after
 * errors, but not while the device may still be using the object. `self` is the device's state.
 *
 * Threads: a session calls its device from one thread at a time, unless a function says otherwise.
 * On a thread of Tarn, memory_limits is called before any other function. Two sessions may use one
 * device at the same time, from two threads. After the destruction of a session has returned any
 * status, the session makes no further call unless it is destroyed again; only a call that has not
 * returned yet may still be in the device.
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
    TARN_ERROR_POISONED       /* nothing but destroying works any more */
};

struct tarn_memory_limits {
    uint64_t alignment;      /* alignment of every allocation; a power of two */
    uint64_t allocation_max; /* bytes of the largest single allocation; UINT64_MAX: no such limit */
    uint64_t available;      /* bytes free now; UINT64_MAX: not known */
    bool on_host;            /* may host code follow the addresses that kernels get? */
};

/* A memory space of a graph (graph.h), as it is described to the device. */
struct tarn_memory_space {
    uint32_t index;   /* in the graph */
    const char *name; /* the graph's; valid during the call */
    enum tarn_space_kind kind;
};

struct tarn_queue_info {
    const char *name; /* the stream's; valid during the call */
    bool urgent;      /* run its work before the work of other queues, if the device can choose */
};

struct tarn_device_table {
    uint32_t struct_size; /* sizeof(struct tarn_device_table) of the device's build */
    uint32_t abi_version; /* TARN_DEVICE_ABI */
    const char *name;     /* used in messages; NULL: "unnamed" */
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
     * allocation. Makes a region of `size` bytes at `offset` of `memory`, which kernels, copies and
     * fill get instead; called once per storage. Regions may overlap, and may begin at any byte
     * (members of contiguous groups do). Without this function, kernels, copies and fill get (char
     * *)memory + offset. */
    int (*region_create)(void *self, void *memory, uint64_t offset, uint64_t size, void **region);
    void (*region_destroy)(void *self, void *region);
    /* Blocking copies between host bytes and device bytes, and fill with one byte: from any address
     * inside an allocation, or from the beginning of a region. No queue is working on those bytes;
     * work enqueued afterwards sees them. */
    int (*copy_in)(void *self, void *device, const void *host, uint64_t size);
    int (*copy_out)(void *self, void *host, const void *device, uint64_t size);
    int (*fill)(void *self, void *device, unsigned char byte, uint64_t size);
    /* Optional, both or none: host memory from which copies are fastest (pinned). */
    int (*host_memory_create)(void *self, uint64_t size, void **memory);
    void (*host_memory_destroy)(void *self, void *memory, uint64_t size);

    /* ---- Queues and events (NULL for the host device, which schedules its streams itself) ----
     * A queue runs its work one item after another, in order. An event is recorded on one queue and
     * waited for on another: work enqueued after the wait starts after everything enqueued before
     * the latest record that was enqueued before the wait. An event may be recorded again while
     * waits for its earlier record are pending; they keep waiting for the earlier record. An event
     * may be destroyed once it was reached, even if a wait for it is still pending after other work
     * on a queue that the session does not own. A call may run work that is ready, and waits for no
     * other work, except for room in its queue (queue_depth). */
    int (*queue_create)(void *self, const struct tarn_queue_info *info, void **queue);
    void (*queue_destroy)(void *self, void *queue);
    int (*event_create)(void *self, void **event);
    void (*event_destroy)(void *self, void *event);
    int (*event_record)(void *self, void *event, void *queue);
    int (*event_wait)(void *self, void *event, void *queue);
    /* *done: has the latest record been reached? An event never recorded is done. Returns the error
     * that occurred on the device before that record, if any. From any thread. */
    int (*event_query)(void *self, void *event, bool *done);
    /* Optional, required by kernels_are_closures: enqueues a call of function(argument) on a thread
     * of the host; if captured, it is called at every launch of the graph. The function must not
     * call the device or wait for other queues. */
    int (*launch)(void *self, void *queue, void (*function)(void *argument), void *argument);

    /* ---- Capture and replay (optional, all or none) ----
     * Between begin and end nothing runs: work enqueued on `queue`, and on queues that wait for an
     * event recorded in the capture, becomes a graph. Before the end, `queue` has waited for all of
     * these queues. The same thread makes all calls. If a call fails in between, capture_end is
     * still called; it then fails and leaves no graph, and the queues are as before. An event
     * recorded in a capture is recorded again before any wait or query outside of the capture. A
     * launch runs after earlier work on `queue`, including earlier launches of the same graph, and
     * before later work. */
    int (*capture_begin)(void *self, void *queue);
    int (*capture_end)(void *self, void *queue, void **graph);
    int (*graph_launch)(void *self, void *graph, void *queue);
    void (*graph_destroy)(void *self, void *graph);

    /* ---- Time stamps (optional, all or none; for traces) ----
     * A stamp is a record that keeps the time at which it is reached. Elapsed is called after both
     * were reached: it returns the nanoseconds of real time between them. */
    int (*stamp_create)(void *self, void **stamp);
    void (*stamp_destroy)(void *self, void *stamp);
    int (*stamp_record)(void *self, void *stamp, void *queue);
    int (*stamp_elapsed)(void *self, void *from, void *to, double *elapsed_ns);

    /* ---- Kernels, and names for profilers and memory checkers (optional, each) ---- */
    /* Called around every kernel that enqueues for itself, in its thread: passes the op's name to
     * profilers, and makes the device or context current that the kernel needs. */
    void (*range_begin)(void *self, const char *name);
    void (*range_end)(void *self);
    /* A tensor or workspace lives at these bytes of `memory`. */
    void (*memory_name)(void *self, void *memory, uint64_t offset, uint64_t size, const char *name);

    /* ---- Checking kernels (optional, both or none) ----
     * Needed for checked execution if memory is not on_host or there is no `launch`. `seeds` and
     * `wrongs` are allocations (or regions) of 8-byte words, read and written when the kernel runs.
     * The pattern of seeds[seed] is the little-endian words seeds[seed] + i * TARN_PATTERN_STEP, i
     * = 0, 1, ..., cut at `size` bytes. Compare lowers wrongs[wrong] to the index of the first byte
     * that differs from the pattern, if there is one and it is smaller than the present value. */
    int (*pattern_fill)(void *self, void *queue, void *bytes, uint64_t size, const void *seeds,
                        uint64_t seed);
    int (*pattern_compare)(void *self, void *queue, const void *bytes, uint64_t size,
                           const void *seeds, uint64_t seed, void *wrongs, uint64_t wrong);

    /* ---- Errors ----
     * From any thread, for any code. The text is static, and never NULL. */
    const char *(*error_text)(void *self, int code);
    enum tarn_error_class (*error_class)(void *self, int code);

    /* ---- Memory spaces (optional, all or none; a table may end before them) ----
     * For devices with several kinds of memory. Graphs may declare spaces; each has its own
     * allocation. These functions are then called instead of memory_limits, memory_create and
     * memory_destroy, for every space of such a graph, including spaces of kind device. Without
     * them, memory_create serves all spaces. Regions, copies, fill and kernels take addresses in
     * any space. A device without a requested kind of memory either gives another kind or fails. */
    int (*space_limits)(void *self, const struct tarn_memory_space *space,
                        struct tarn_memory_limits *limits);
    int (*space_create)(void *self, const struct tarn_memory_space *space, uint64_t size,
                        void **memory);
    void (*space_destroy)(void *self, const struct tarn_memory_space *space, void *memory,
                          uint64_t size);

    /* ---- Depth of queues (a table may end before it) ----
     * How many kernels of one kind (launches, checking kernels, or captured graphs) a queue always
     * takes, even while it waits; the call for the next kernel may wait for room. Records and waits
     * do not count. If kinds alternate, or one is used for the first time, the room may end
     * earlier. 0: limited by memory only. A submit that waits for events or a queue of its caller
     * uses this number, see tarn_session_submit_with. */
    uint32_t queue_depth;

    /* ---- Copies on a queue (optional; a table may end before it) ----
     * Enqueues a copy of `size` bytes on `queue`, between two storages of the session that do not
     * overlap, in any spaces; `to` and `from` are what kernels get for them. It returns at once,
     * and may be captured. Sessions run moves (struct tarn_op_info) with it, without a bound
     * kernel; if it is missing, moves need a kernel. On the host device, which has no queues,
     * `queue` is NULL, the thread that runs the stream calls it, and the copy is done when it
     * returns. */
    int (*copy_enqueue)(void *self, void *queue, void *to, const void *from, uint64_t size);
};

/* A device by value: a table and the state it works on, which the caller keeps alive until
 * tarn_session_destroy has returned TARN_OK for every session on it. */
struct tarn_device {
    const struct tarn_device_table *table;
    void *self;
};

/* ---- Memory sources of this library's devices ---- A source of memory for arenas, so that other
 * software may use the same memory: ncclMemAlloc (NCCL registers it), a pool that other processes
 * or devices may open, pinned memory of the host, huge pages. Offsets in an arena follow from the
 * plan alone: ranks with equal plans have every tensor at equal offsets from the base, at any base
 * address. Memory that exists already needs no source: see the option `memory` of sessions and
 * arenas. Any thread that creates or destroys a session or an arena may call it. */
struct tarn_memory_source {
    size_t struct_size;
    /* Allocates `size` bytes with any contents. Returns 0 or an error code of the device (CUDA: a
     * cudaError_t; the host: an errno). On CUDA the device is current. */
    int (*create)(void *user, uint64_t size, void **memory);
    void (*destroy)(void *user, void *memory, uint64_t size);
    void *user;
    uint64_t alignment; /* alignment of its memory, a power of two; 0: 512 */
};
#ifndef __cplusplus
#define TARN_MEMORY_SOURCE(...) \
    (&(struct tarn_memory_source){.struct_size = sizeof(struct tarn_memory_source), __VA_ARGS__})
#endif

/* Registers the window of a plan (tarn_plan_window) with a communicator, whose collectives then
 * reach into other devices' windows: NCCL's (nccl.h), HCCL's, or another library's. A session or an
 * arena that is given registrars calls each once when it has its memory, and once before it gives
 * that back, in the opposite order; not at all if its plan has no window. If one fails, those
 * before it are left, on this device alone. Calls come from the thread that creates or destroys.
 * Its memory has to be such as the library takes. */
struct tarn_registrar {
    /* Both return 0, or an error code of the library's. *handle is for leave. */
    int (*enter)(void *user, void *address, uint64_t size, void **handle);
    int (*leave)(void *user, void *handle);
    const char *(*text)(void *user, int code); /* of a code; may be NULL, and may answer NULL */
    void *user;
    uint64_t alignment; /* that `address` must have: it begins before the window where it has to;
                         * a power of two; 0: any address */
};

/* The processors on which a worker of the host device may run, a subset of the processors of the
 * thread that creates the session. Cores are numbered node by node, in a node the fastest kind
 * first. Worker i belongs to core i, modulo the number of cores. Memory of the device is requested
 * on the NUMA nodes of these cores, unless TARN_BIND_NONE. Without hwloc in the build nothing is
 * bound. */
enum tarn_worker_binding {
    TARN_BIND_AUTO, /* its core, if there are workers for all cores; else any core of the NUMA nodes
                     * of all workers' cores, so that two sessions do not share the same few
                     * cores */
    TARN_BIND_NONE, /* as the creating thread */
    TARN_BIND_NODE, /* the NUMA node of its core */
    TARN_BIND_CACHE, /* the outermost cache of its core */
    TARN_BIND_CORE   /* its core, with all hardware threads */
};

struct tarn_host_options {
    size_t struct_size;
    uint32_t workers; /* 0: min(cores, streams) */
    /* NULL: workers are threads of Tarn. Otherwise a function that arranges one call of
     * task(argument) on any thread of the caller and returns 0, or another number if it cannot. A
     * refused call is repeated, after 0.2 ms at first and up to 26 ms later. If the function
     * refuses for a second while none of its tasks is running, the session ends with TARN_SYSTEM.
     * It is called from any thread, must not call the task itself, and must not wait for one. A
     * task runs kernels as long as there are ready ones, and then returns; at most `workers` tasks
     * exist at a time. Every task must be called, also after errors: a session is not destroyed
     * before. Streams that may block (option `blocking`) still have their own threads of Tarn. */
    int (*execute)(void *user, void (*task)(void *argument), void *argument);
    void *execute_user;
    const struct tarn_memory_source *memory; /* NULL: pages of the system */
    /* Applies to workers that are threads of Tarn; threads of streams that may block are never
     * bound. With `execute`, any value but AUTO and NONE is TARN_USAGE. */
    enum tarn_worker_binding binding;
};
#ifndef __cplusplus
#define TARN_HOST_OPTIONS(...) \
    (&(struct tarn_host_options){.struct_size = sizeof(struct tarn_host_options), __VA_ARGS__})
#endif

/* The host device: runs kernels on worker threads, on this machine's cores. options (NULL:
 * defaults) must live as long as the device, see above. */
TARN_API struct tarn_device tarn_device_host(const struct tarn_host_options *options);

/* Number of cores that the calling thread may use, at least 1; hardware threads of one core count
 * once. The machine's topology is read once, by the first of: this call, the creation of a session
 * or arena on the host device, the opening of a CUDA device. A forked child uses the topology that
 * its parent has read, and reads nothing. So a program that forks its workers should call this
 * before the fork; otherwise a child knows only processors and binds nothing. Any thread. */
TARN_API uint32_t tarn_host_cores(void);

/* ---- Events of the host ----
 * A counter that only grows. Threads of the caller and submits of sessions
 * (tarn_session_submit_with) wait for values of it and raise it. A wait may come before any raise
 * of that value is submitted. All calls from any thread. */
struct tarn_host_event;
/* Creates an event whose counter is 0. TARN_SYSTEM: no memory. */
TARN_API enum tarn_status tarn_host_event_create(struct tarn_host_event **event,
                                                 struct tarn_error *error);
/* Sessions that have used it keep it as long as they need it. */
TARN_API void tarn_host_event_destroy(struct tarn_host_event *event);
/* Raises the counter to `value`, at most 2^63 - 1; does nothing if it has reached that already. A
 * thread that has waited for the value sees all earlier writes of the calling thread. */
TARN_API void tarn_host_event_raise(struct tarn_host_event *event, uint64_t value);
TARN_API uint64_t tarn_host_event_value(const struct tarn_host_event *event);
/* TARN_DEADLINE: the counter is still below `value` after timeout_ns. */
TARN_API enum tarn_status tarn_host_event_wait(struct tarn_host_event *event, uint64_t value,
                                               uint64_t timeout_ns, struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
