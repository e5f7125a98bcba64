/* The stand-in's inside. One lock guards everything; it is held from fake_enter to fake_leave, and
 * given up only while a piece of work runs or a thread waits. Dead objects stay in memory until the
 * reset, so that a use after the end is seen and not a crash. */
#ifndef TARN_TESTS_FAKE_CUDART_FAKE_H
#define TARN_TESTS_FAKE_CUDART_FAKE_H

#include <pthread.h>

#include "fake_cudart.h"
#include "runtime/cuda/api.h"

enum { INLINE_BYTES = 48, DEVICES_MAX = 16, CHANNELS_MAX = 32, QUEUE_DEPTH = 1021 };

/* Directions of copies that name them. */
enum { FAKE_COPY_IN = 1, FAKE_COPY_OUT = 2 };

enum fake_code {
    FAKE_INVALID_VALUE = 1,
    FAKE_INVALID_DEVICE = 101,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_PERMITTED = 800,
    FAKE_CAPTURE_UNSUPPORTED = 900,
    FAKE_CAPTURE_INVALIDATED = 901,
    FAKE_CAPTURE_MERGE = 902,
    FAKE_CAPTURE_UNMATCHED = 903,
    FAKE_CAPTURE_UNJOINED = 904,
    FAKE_CAPTURE_ISOLATION = 905,
    FAKE_CAPTURE_IMPLICIT = 906,
    FAKE_CAPTURED_EVENT = 907,
    FAKE_CAPTURE_WRONG_THREAD = 908
};

enum fake_entry {
#define FAKE_ENTRY(name, parameters) ENTRY_##name,
    TARN_CUDA_ENTRIES(FAKE_ENTRY) TARN_CUDA_LOOKUP_ENTRIES(FAKE_ENTRY)
        TARN_CUDA_LIBRARY_ENTRIES(FAKE_ENTRY) TARN_CUDA_DRIVER_ENTRIES(FAKE_ENTRY)
#undef FAKE_ENTRY
            ENTRY_WORK, /* a piece of work on the device */
    ENTRIES,
    ENTRY_ANY = ENTRIES,
    ENTRY_NONE
};

enum fake_kind { STREAM, EVENT, GRAPH, EXEC, BLOCK, POOL, LIBRARY, CAPTURE, KINDS };

struct object {
    struct object *next; /* of its kind */
    enum fake_kind kind;
    int device; /* current when it was made */
    bool alive;
};

/* A function for the device to call. */
struct call {
    void (*function)(void *argument);
    void *argument; /* NULL: `arguments` */
    bool of_host;   /* a host function, which must not call CUDA */
    bool of_kernel; /* follows addresses of its own device and of its peers */
    int device;     /* that runs it */
    _Alignas(8) unsigned char arguments[INLINE_BYTES];
};

/* One record of an event: a wait keeps to the one that it found. */
struct moment {
    uint32_t users; /* the event whose latest it is, and pieces of work */
    bool is_reached;
};

struct event {
    struct object object;
    bool timed;
    struct moment *latest;   /* record that was enqueued; NULL: none was */
    uint32_t stamping;       /* launches of graphs that have still to record it */
    bool was_reached;        /* some record ran */
    uint64_t time_ns;        /* of the latest that ran */
    uint32_t pending;        /* records that have not run */
    struct capture *capture; /* the latest record was captured there, behind these nodes */
    struct set *nodes;
};

/* Node numbers, sorted. */
struct set {
    uint32_t count;
    uint32_t ids[];
};

struct node {
    struct call call;
    int priority;        /* a kernel's: its stream's when it was captured */
    struct event *stamp; /* instead of a call */
    struct set *after;
};

struct graph {
    struct object object;
    struct node *nodes;
    uint32_t count, room;
};

struct exec {
    struct object object;
    struct node *nodes;
    uint32_t count;
    uint32_t *begin;   /* by node: begin of its part of `before` */
    uint32_t *before;  /* the nodes that it comes before */
    uint32_t *missing; /* by node: predecessors that have not run */
    uint32_t *ready;   /* nodes that may run */
    uint32_t ready_count, left;
    bool running;
    bool uses_priorities; /* the nodes' own, instead of the launch's */
    uint32_t pending;     /* launches not finished */
};

struct capture {
    struct object object; /* alive until its end */
    struct stream *origin;
    pthread_t thread;
    unsigned mode;
    struct graph *graph;
    bool invalid;
};

enum work_kind { CALL, RECORD, WAIT, LAUNCH };

struct work {
    struct work *next;
    enum work_kind kind;
    uint64_t number; /* in the order of all calls */
    struct call call;
    struct event *event;   /* of RECORD */
    struct moment *moment; /* of RECORD and WAIT */
    struct exec *exec;
};

struct stream {
    struct object object;
    struct work *first, **end;
    bool busy; /* its first piece is a call that runs */
    uint32_t channel;
    int priority;
    struct capture *capture;
    struct set *tail; /* in a capture: what the next node comes after */
};

struct block {
    struct object object;
    unsigned char *bytes;
    uint64_t size;
    struct pool *pool;  /* NULL: of cudaMalloc, or host memory */
    bool is_registered; /* the caller's host memory: not seen by kernels */
    bool is_pinned;     /* of cudaHostAlloc: host memory that kernels of every device see */
};

struct pool {
    struct object object;
};

/* A primary context of the driver. */
struct context {
    bool exists;
    uint32_t retained;
};

struct fake {
    pthread_mutex_t lock;
    struct context contexts[DEVICES_MAX];
    uint64_t resets;
    uint64_t works;                               /* pieces enqueued since the reset */
    uint32_t streams;                             /* made since the reset */
    uint32_t kernels[CHANNELS_MAX * DEVICES_MAX]; /* by channel: enqueued and not over */
    bool calls_host;        /* a host function runs: the driver has one thread for them */
    uint64_t last_flags;    /* of cudaGraphInstantiate */
    pthread_cond_t changed; /* anything that anybody may wait for */
    struct fake_options options;
    uint64_t random;               /* state of the generator */
    struct object *objects[KINDS]; /* alive or dead */
    uint64_t alive;
    uint64_t used;    /* bytes of device memory */
    uint32_t freeing; /* allocations that streams are to give back */
    uint64_t counts[ENTRIES];
    unsigned sticky;
    enum fake_entry failing; /* ENTRY_NONE: nothing */
    uint64_t fail_after;
    unsigned fail_code;
    bool fail_sticky, failed;
    uint64_t violations;
    char violation[256];
    uint32_t workers, running; /* threads; pieces of work that run */
    bool held, strict, tell;
};

extern struct fake fake;

/* Handles are the stand-in's own objects. */
static inline struct stream *fake_stream(tarn_cuda_stream handle)
{
    return (struct stream *)(void *)handle;
}
static inline struct event *fake_event(tarn_cuda_event handle)
{
    return (struct event *)(void *)handle;
}
static inline struct graph *fake_graph(tarn_cuda_graph handle)
{
    return (struct graph *)(void *)handle;
}
static inline struct exec *fake_exec(tarn_cuda_exec handle)
{
    return (struct exec *)(void *)handle;
}

/* An entry point, with the prototype that the compiler asks for. */
#define FAKE_DEFINE(name, parameters)     \
    tarn_cuda_code cuda##name parameters; \
    tarn_cuda_code cuda##name parameters

/* ---- state.c ---- */

/* Every entry point begins and ends with these. The code is what the call must return instead of
 * doing its work, or 0. `is_safe`: it is none of the calls that captures forbid, in their mode, to
 * their thread or to all. */
unsigned fake_enter(enum fake_entry entry, bool is_safe);
unsigned fake_leave(unsigned code);
unsigned fake_leave_driver(unsigned code); /* the runtime knows nothing of the driver's errors */
/* For calls that end something: they do so and then return the code, if there is one. */
unsigned fake_enter_end(enum fake_entry entry, bool is_safe, bool *is_real);

void *fake_object_create(enum fake_kind kind, size_t size);
void fake_object_end(struct object *object);
/* Is it alive and of that kind? If not, that is a violation. */
bool fake_is(const void *handle, enum fake_kind kind, const char *where);
void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fake_poison(unsigned code);
/* Does an entry that is to fail do so now? */
unsigned fake_fault(enum fake_entry entry);
/* The live block of addresses for kernels that these bytes are in, or NULL. */
struct block *fake_find_block(const void *bytes, uint64_t size);
struct capture *fake_thread_capture(void);
extern _Thread_local bool fake_in_host_function;
/* The device whose kernel this thread runs. */
extern _Thread_local int fake_kernel_device;
/* Uniform in [0, limit). */
uint32_t fake_random(uint32_t limit);

/* ---- contexts.c ---- */

/* The calling thread's current device: what CUDA would take were it to make an object now. */
int fake_current_device(void);
/* For calls that need a context: where the thread has none, its device's is made and stays. */
void fake_need_context(enum fake_entry entry);
/* A stream's device must be current where work is launched on it. */
bool fake_is_current(const struct stream *stream, const char *where);
/* May kernels of the device follow the block's addresses? */
bool fake_reaches(int device, const struct block *block);
/* The calling thread's mode towards captures. */
unsigned fake_capture_mode(void);

/* ---- schedule.c ---- */

void fake_append(struct stream *stream, struct work work);
/* One user less; NULL: nothing. */
void fake_drop_moment(struct moment *moment);
void fake_drop_work(void); /* the device has stopped */
void fake_wait_idle(void); /* until no call runs */
void fake_wait_stream(struct stream *stream);
void fake_wait_device(int device); /* for all its streams, or until it has stopped */
void fake_start_workers(void);

/* ---- capture.c ---- */

void fake_set_unite(struct set **set, const struct set *other);
/* A call for a stream: enqueued, or a node where the stream captures. */
unsigned fake_call(struct stream *stream, const struct call *call);
unsigned fake_capture_begin(struct stream *stream, unsigned mode);
unsigned fake_capture_end(struct stream *stream, struct graph **graph);
void fake_invalidate(struct capture *capture);
unsigned fake_record(struct event *event, struct stream *stream, bool external);
unsigned fake_wait(struct stream *stream, struct event *event);
struct exec *fake_instantiate(const struct graph *graph);
void fake_nodes_free(struct node *nodes, uint32_t count);

/* ---- kernels.c ---- */

struct kernel {
    const char *name;
    void (*function)(void *argument);
    uint32_t sizes[4]; /* of the arguments; ends with 0 */
};

const struct kernel *fake_kernel(const char *name);
bool fake_is_kernel(const void *kernel);

#endif
