/* The host executor's internal state, which its workers and its control share. */
#ifndef TARN_RUNTIME_HOST_EXECUTOR_H
#define TARN_RUNTIME_HOST_EXECUTOR_H

#include <assert.h>
#include <pthread.h>

#include "runtime/state/event_count.h"
#include "runtime/state/state.h"
#include "runtime/state/topology.h"

#define TARN_LINE 64

/* The kinds of threads that sleep on the event count. */
enum tarn_sleeper { TARN_WORKER = 1, TARN_BLOCKING = 2, TARN_WAITER = 4, TARN_EVERYBODY = 7 };

enum tarn_phase { TARN_RUNNING, TARN_FAILING, TARN_STOPPED };

#define TARN_LOOK_NS UINT64_C(200000) /* polling interval for events without wake-up */

struct tarn_host_stream {
    _Alignas(TARN_LINE) atomic_bool claimed; /* a worker runs it */
    _Atomic(const _Atomic int64_t *)
        awaited;                   /* progress that its next step waits for, or its own */
    _Atomic int64_t awaited_count; /* ready when the awaited progress is at least this */
    _Atomic uint64_t key;          /* iteration * ops + list position of the next step */
    _Alignas(TARN_LINE) _Atomic int64_t progress; /* steps finished since the start, as published */
    _Alignas(TARN_LINE) _Atomic uint32_t place;   /* position in the stream: the step that runs or
                                                   * is next */
    _Atomic uint64_t iteration;                   /* of that step */
    uint64_t gates_passed;                        /* these two belong to the worker that has claimed
                                                   * the stream */
    bool is_at_gate;
};

struct tarn_host_event;

/* An event of the host and a value of its counter. */
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
    /* By plan of the shared arena: the number of its iterations before the awaited one, earlier
     * sessions' included; UINT64_MAX: none is awaited. NULL without an arena. */
    uint64_t *before;
    _Atomic uint32_t left; /* streams that have not finished its last iteration; when none is left
                              and the signals are given: */
    atomic_bool is_over;
};

struct tarn_gates {
    struct tarn_gate *ring; /* NULL: no gate was needed yet */
    uint32_t room;          /* of the ring; a power of two */
    _Atomic uint64_t made;  /* gates since the start, without pending ones */
    bool is_open;           /* the next submit has one: */
    struct tarn_gate next;
    struct tarn_host_event **held; /* events that gates have used; retained */
    size_t held_count, held_room;
    struct tarn_executor *next_listener;
};

struct tarn_worker {
    struct tarn_executor *executor;
    const uint32_t *streams; /* ids of the streams that it may run */
    uint32_t streams_count;
    bool blocking;        /* owns one stream that may block */
    uint64_t patience_ns; /* how long an idle worker leaves ready streams to other workers */
    pthread_t thread;
    bool started;             /* and not joined yet */
    atomic_bool is_scheduled; /* as a task on a thread of the caller */
};

struct tarn_executor {
    struct tarn_session *session;
    const struct tarn_program *program;
    struct tarn_topology *topology;
    struct tarn_host_stream *streams; /* by stream */
    bool *wakes_blocking;             /* by step: does a stream with its own thread wait for it? */
    uint32_t *shared; /* ids of streams: the workers' streams at the start; streams with their
                       * own threads at the end, backwards */
    uint32_t shared_count, blocking_count;
    struct tarn_worker *workers;      /* shared ones, then one for each blocking stream */
    uint32_t workers_count;           /* of the shared ones */
    enum tarn_worker_binding binding; /* of the shared workers */
    int (*execute)(void *, void (*)(void *), void *); /* NULL: workers have threads */
    void *execute_user;
    void (*task)(void *worker); /* what `execute` is given */
    atomic_bool has_missed;     /* `execute` has refused a task, to be tried again */
    _Atomic int refusal;        /* what it returned then */
    _Atomic uint32_t refusals;  /* number since it last took a task; 0: it refuses none */
    _Atomic uint64_t refused_since_ns, try_again_ns;
    struct tarn_gates gates;
    enum tarn_status failure; /* of the first failure, with its text */
    struct tarn_error failure_text;
    _Alignas(TARN_LINE) _Atomic uint64_t target; /* iterations that may run */
    _Atomic uint64_t awaited;                    /* count of iterations that the caller waits for */
    _Atomic int phase;
    atomic_bool quit;
    _Atomic uint32_t threads;                     /* that have not left yet */
    _Alignas(TARN_LINE) _Atomic uint32_t callers; /* sleeping workers that want to be woken */
    atomic_bool is_calling;                       /* one of them is being woken */
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

/* The progress of its stream that a wait in that iteration needs. */
static inline int64_t tarn_awaited_count(const struct tarn_executor *executor,
                                         const struct tarn_program_wait *wait, uint64_t iteration)
{
    int64_t passes = (int64_t)iteration - (int64_t)wait->previous;
    return passes * tarn_steps_of(executor, wait->stream) + wait->place + 1;
}

/* Have all streams finished that many iterations? */
bool tarn_have_finished(struct tarn_executor *executor, uint64_t target);

/* The last action of a thread; after it the thread can be joined without waiting. */
static inline void tarn_executor_leave(struct tarn_executor *executor)
{
    uint32_t before = atomic_fetch_sub(&executor->threads, 1);
    assert(before > 0);
    (void)before;
    tarn_event_count_wake(&executor->events, TARN_WAITER, UINT32_MAX);
}

/* Creates a thread, which calls tarn_executor_leave at its end. Returns an errno. */
int tarn_executor_enter(struct tarn_executor *executor, pthread_t *thread, void *(*work)(void *),
                        void *argument);

/* A thread that runs streams until the executor quits; its argument is a struct tarn_worker. */
void *tarn_worker_run(void *worker);

/* Runs streams as a task: until there is no ready stream. */
void tarn_worker_run_task(void *worker);

/* Makes a stream claimable; `place` is its next step. */
void tarn_stream_release(struct tarn_executor *executor, struct tarn_host_stream *stream,
                         bool is_blocked);

/* Records a failure, if it is the first; all workers stop before the next op. */
void tarn_executor_fail(struct tarn_executor *executor, enum tarn_status status,
                        const struct tarn_error *error);

#endif
