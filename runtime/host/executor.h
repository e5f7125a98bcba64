/* The host executor's inside: what its workers and its control share. */
#ifndef TARN_RUNTIME_HOST_EXECUTOR_H
#define TARN_RUNTIME_HOST_EXECUTOR_H

#include <assert.h>
#include <pthread.h>

#include "runtime/state/event_count.h"
#include "runtime/state/state.h"
#include "runtime/state/topology.h"

#define TARN_LINE 64

/* Who sleeps on the event count. */
enum tarn_sleeper { TARN_WORKER = 1, TARN_BLOCKING = 2, TARN_WAITER = 4, TARN_EVERYBODY = 7 };

enum tarn_phase { TARN_RUNNING, TARN_FAILING, TARN_STOPPED };

#define TARN_LOOK_NS UINT64_C(200000) /* between looks at what nobody calls for */

struct tarn_host_stream {
    _Alignas(TARN_LINE) atomic_bool claimed; /* a worker runs it */
    _Atomic(const _Atomic int64_t *)
        awaited;                   /* progress that its next step waits for, or its own */
    _Atomic int64_t awaited_count; /* ready when that is at least this */
    _Atomic uint64_t key;          /* iteration * ops + list position of the next step */
    _Alignas(TARN_LINE) _Atomic int64_t progress; /* steps finished since the start, as published */
    _Alignas(TARN_LINE) _Atomic uint32_t place;   /* in the stream: the step that runs or is next */
    _Atomic uint64_t iteration;                   /* of that step */
    uint64_t gates_passed;                        /* these two belong to who has claimed it */
    bool is_at_gate;
};

struct tarn_host_event;

/* An event of the host and a value of it. */
struct tarn_level {
    struct tarn_host_event *event;
    int64_t value;
};

struct tarn_levels {
    struct tarn_level *items;
    size_t count, room;
};

/* Of one submit. */
struct tarn_gate {
    uint64_t first, last; /* its iterations */
    struct tarn_levels waits, signals;
    /* By plan of the shared arena: iterations of it before the one that is waited for, its earlier
     * sessions' included; UINT64_MAX: none is. NULL without an arena. */
    uint64_t *before;
    _Atomic uint32_t left; /* streams that have not finished its last iteration; when none is left
                              and the signals are given: */
    atomic_bool is_over;
};

struct tarn_gates {
    struct tarn_gate *ring; /* NULL: none was needed yet */
    uint32_t room;          /* of the ring; a power of two */
    _Atomic uint64_t made;  /* since the start, those that are to come not included */
    bool is_open;           /* the next submit has one: */
    struct tarn_gate next;
    struct tarn_host_event **held; /* events that gates have had; retained */
    size_t held_count, held_room;
    struct tarn_executor *next_listener;
};

struct tarn_worker {
    struct tarn_executor *executor;
    const uint32_t *streams; /* ids of those that it may run */
    uint32_t streams_count;
    bool blocking;        /* owns one stream that may block */
    uint64_t patience_ns; /* how long an idle worker leaves ready streams to others */
    pthread_t thread;
    bool started;             /* and not joined yet */
    atomic_bool is_scheduled; /* as a task on a thread of the caller's */
};

struct tarn_executor {
    struct tarn_session *session;
    const struct tarn_program *program;
    struct tarn_topology *topology;
    struct tarn_host_stream *streams; /* by stream */
    bool *wakes_blocking; /* by step: does a stream with a thread of its own wait for it? */
    uint32_t *shared;     /* ids of streams: first those of the workers; last, from the end on,
                             those with threads of their own */
    uint32_t shared_count, blocking_count;
    struct tarn_worker *workers;      /* shared ones, then one for each blocking stream */
    uint32_t workers_count;           /* of the shared ones */
    enum tarn_worker_binding binding; /* of the shared workers */
    int (*execute)(void *, void (*)(void *), void *); /* NULL: workers have threads */
    void *execute_user;
    void (*task)(void *worker); /* what `execute` is given */
    atomic_bool has_missed;     /* it has refused one: to be tried again */
    _Atomic int refusal;        /* what it returned then */
    _Atomic uint32_t refusals;  /* since it took one; 0: it refuses none */
    _Atomic uint64_t refused_since_ns, try_again_ns;
    struct tarn_gates gates;
    enum tarn_status failure; /* of the first that failed, and what there is to say */
    struct tarn_error failure_text;
    _Alignas(TARN_LINE) _Atomic uint64_t target; /* iterations that may run */
    _Atomic uint64_t awaited;                    /* count of iterations that the caller waits for */
    _Atomic int phase;
    atomic_bool quit;
    _Atomic uint32_t threads;                     /* that have not left yet */
    _Alignas(TARN_LINE) _Atomic uint32_t callers; /* sleeping workers that want to be called */
    atomic_bool is_calling;                       /* one of them is being called */
    struct tarn_event_count events;
};

static inline uint32_t tarn_steps_of(const struct tarn_executor *executor, uint32_t stream)
{
    return executor->program->begin[stream + 1] - executor->program->begin[stream];
}

static inline bool tarn_is_running(struct tarn_executor *executor)
{
    return atomic_load(&executor->phase) == TARN_RUNNING;
}

static inline bool tarn_has_reached(struct tarn_executor *executor, uint32_t stream, int64_t count)
{
    return atomic_load(&executor->streams[stream].progress) >= count;
}

/* The progress of its stream that a wait in that iteration asks for. */
static inline int64_t tarn_awaited_count(const struct tarn_executor *executor,
                                         const struct tarn_program_wait *wait, uint64_t iteration)
{
    int64_t passes = (int64_t)iteration - (int64_t)wait->previous;
    return passes * tarn_steps_of(executor, wait->stream) + wait->place + 1;
}

/* Have all streams finished that many iterations? */
bool tarn_have_finished(struct tarn_executor *executor, uint64_t target);

/* A thread that does this is joined without waiting: it is the last that the thread does. */
static inline void tarn_executor_leave(struct tarn_executor *executor)
{
    uint32_t before = atomic_fetch_sub(&executor->threads, 1);
    assert(before > 0);
    (void)before;
    tarn_event_count_wake(&executor->events, TARN_WAITER, UINT32_MAX);
}

/* Creates a thread that leaves. Returns the error's number. */
int tarn_executor_enter(struct tarn_executor *executor, pthread_t *thread, void *(*work)(void *),
                        void *argument);

/* A thread that runs streams until the executor quits; its argument is a struct tarn_worker. */
void *tarn_worker_run(void *worker);

/* The same as a task: until there is nothing to do. */
void tarn_worker_run_task(void *worker);

/* Makes a stream claimable; its next step is at its place. */
void tarn_stream_release(struct tarn_executor *executor, struct tarn_host_stream *stream,
                         bool is_blocked);

/* The first failure is kept; everybody stops before the next op. */
void tarn_executor_fail(struct tarn_executor *executor, enum tarn_status status,
                        const struct tarn_error *error);

#endif
