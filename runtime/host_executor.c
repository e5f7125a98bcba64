/* The host executor: min(cores, streams) workers claim ready streams and run them until they block.
 *
 *     stream:  [ claimed | awaited stream, count | key ]   [ progress ]   [ place, iteration ]
 *               claimed by exchange; the rest written      published      for the claimer, and
 *               before it is given back                    for waiters    for diagnosis
 *
 * Each bracket is a cache line. Progress counts steps since the session's start and is published
 * only after steps that somebody waits for and at the end of an iteration. A worker takes the
 * ready, unclaimed stream with the smallest key (iteration · ops + list position). When a stream
 * blocks, its worker first looks for another one to run. After every release and every signal the
 * same worker looks once more (all of these are sequentially consistent), so while any worker is
 * busy no ready stream is forgotten.
 *
 * An idle worker spins for 50 µs, then sleeps on the event count. Handing a stream to another core
 * costs more than an empty op, so every worker learns from what it caught last: where ops took less
 * than a microsecond, it looks less and less often (patience), and the busy worker keeps all
 * streams and their cache lines; where ops are long, it looks all the time. Streams that may block
 * have a thread of their own. Nothing is allocated and no lock is taken after creation. Source:
 * DESIGN.md, section 5. Cost: O(1) per op, O(streams) each time that a stream blocks. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../streams/graph/report.h"
#include "event_count.h"
#include "session.h"
#include "topology.h"

#define LINE 64
#define SPIN_NS 50000      /* an idle worker looks for work this long, then sleeps */
#define NAP_NS 200000      /* how long the most patient workers sleep between looks */
#define GRAIN_NS 1000      /* ops below this are not worth handing to another core */
#define GRACE_NS 100000000 /* after a deadline, how long destroying waits for kernels */

enum kind { WORKER = 1, BLOCKING = 2, WAITER = 4, EVERYBODY = 7 };

enum phase { RUNNING, FAILING, STOPPED };

struct stream {
    _Alignas(LINE) atomic_bool claimed;
    _Atomic uint32_t awaited_stream;
    _Atomic int64_t awaited_count; /* ready when that stream's progress is at least this */
    _Atomic uint64_t key;
    _Alignas(LINE) _Atomic int64_t progress;
    _Alignas(LINE) _Atomic uint32_t place; /* the step that runs or is next */
    _Atomic uint64_t iteration;
};

struct worker {
    struct tarn_executor *executor;
    const uint32_t *streams; /* those that it may run */
    uint32_t streams_count;
    bool blocking;        /* owns one stream that may block */
    uint64_t patience_ns; /* how long an idle worker leaves ready streams to others */
    pthread_t thread;
    bool started;
};

struct failure {
    tarn_op op;
    uint64_t iteration;
    int code; /* 0: none */
};

struct tarn_executor {
    struct tarn_session *session;
    const struct tarn_program *program;
    struct tarn_topology *topology;
    struct stream *streams;
    bool *wakes_blocking; /* by step: does a stream with a thread of its own wait for it? */
    uint32_t *shared;     /* streams run by the workers, then those with own threads */
    uint32_t shared_count, blocking_count;
    struct worker *workers; /* shared ones, then one for each blocking stream */
    uint32_t workers_count; /* of the shared ones */
    bool unpinned;
    bool overdue; /* a deadline passed: kernels may never return */
    struct failure failure;
    _Alignas(LINE) _Atomic uint64_t target; /* iterations that may run */
    _Atomic uint64_t awaited;               /* count of iterations that the caller waits for */
    _Atomic int phase;
    atomic_bool quit;
    _Alignas(LINE) _Atomic uint32_t callers; /* sleeping workers that want to be called */
    atomic_bool is_calling;                  /* one of them is being called */
    struct tarn_event_count events;
};

/* ---- Readiness ---- */

static uint32_t steps_of(const struct tarn_executor *executor, uint32_t stream)
{
    return executor->program->begin[stream + 1] - executor->program->begin[stream];
}

static bool is_running(struct tarn_executor *executor)
{
    return atomic_load(&executor->phase) == RUNNING;
}

static bool has_reached(struct tarn_executor *executor, uint32_t stream, int64_t count)
{
    return atomic_load(&executor->streams[stream].progress) >= count;
}

static bool have_finished(struct tarn_executor *executor, uint64_t target)
{
    for (uint32_t s = 0; s < executor->program->streams_count; s++) {
        if (!has_reached(executor, s, (int64_t)target * steps_of(executor, s))) return false;
    }
    return true;
}

/* Are the waits of this step met? If not, notes the first that is not for whoever looks next. */
static bool may_start(struct tarn_executor *executor, struct stream *stream,
                      const struct tarn_program_step *step, uint64_t iteration)
{
    for (uint32_t i = step->waits_begin; i < step->waits_end; i++) {
        const struct tarn_program_wait *wait = &executor->program->waits[i];
        int64_t passes = (int64_t)iteration - (int64_t)wait->previous;
        int64_t count = passes * steps_of(executor, wait->stream) + wait->place + 1;
        if (has_reached(executor, wait->stream, count)) continue;
        atomic_store_explicit(&stream->awaited_stream, wait->stream, memory_order_relaxed);
        atomic_store_explicit(&stream->awaited_count, count, memory_order_relaxed);
        return false;
    }
    return true;
}

/* The best stream that looks ready. It may have changed meanwhile; the claimer checks again. */
static struct stream *find_ready(struct tarn_executor *executor, const uint32_t *streams,
                                 uint32_t streams_count)
{
    struct stream *best = NULL;
    uint64_t best_key = atomic_load(&executor->target) * executor->session->graph->ops_count;
    for (uint32_t i = 0; i < streams_count; i++) {
        struct stream *stream = &executor->streams[streams[i]];
        if (atomic_load(&stream->claimed)) continue;
        uint64_t key = atomic_load_explicit(&stream->key, memory_order_relaxed);
        if (key >= best_key) continue;
        uint32_t awaited = atomic_load_explicit(&stream->awaited_stream, memory_order_relaxed);
        int64_t count = atomic_load_explicit(&stream->awaited_count, memory_order_relaxed);
        if (!has_reached(executor, awaited, count)) continue;
        best = stream;
        best_key = key;
    }
    return best;
}

/* Wakes one sleeping worker if there is something for it to run; whom it wakes calls the next. A
 * call costs microseconds: a worker, which will look for itself when its stream blocks, calls only
 * who wants to be called, and not while the last call is under way. */
static void call_worker(struct worker *worker)
{
    struct tarn_executor *executor = worker->executor;
    if (!worker->blocking &&
        (atomic_load(&executor->callers) == 0 || atomic_load(&executor->is_calling)))
        return;
    if (!find_ready(executor, executor->shared, executor->shared_count)) return;
    if (!atomic_exchange(&executor->is_calling, true) || worker->blocking)
        tarn_event_count_wake(&executor->events, WORKER, 1);
}

static struct stream *claim(struct worker *worker)
{
    struct tarn_executor *executor = worker->executor;
    while (is_running(executor)) {
        struct stream *stream = find_ready(executor, worker->streams, worker->streams_count);
        if (!stream) return NULL;
        if (atomic_exchange(&stream->claimed, true)) continue;
        call_worker(worker);
        return stream;
    }
    return NULL;
}

/* ---- Running a stream ---- */

/* After the step before `count` of this stream: tells those who wait for it. */
static void signal_step(struct worker *worker, struct stream *stream, int64_t count,
                        bool wakes_blocking)
{
    struct tarn_event_count *events = &worker->executor->events;
    atomic_store(&stream->progress, count);
    if (wakes_blocking) tarn_event_count_wake(events, BLOCKING, UINT32_MAX);
    call_worker(worker);
}

static void finish_iteration(struct tarn_executor *executor, struct stream *stream, int64_t count,
                             uint64_t iteration)
{
    atomic_store(&stream->progress, count);
    atomic_store_explicit(&stream->place, 0, memory_order_relaxed);
    atomic_store_explicit(&stream->iteration, iteration + 1, memory_order_relaxed);
    if (atomic_load(&executor->awaited) == iteration + 1 && have_finished(executor, iteration + 1))
        tarn_event_count_wake(&executor->events, WAITER, UINT32_MAX);
}

/* The first failure is kept; everybody stops before the next op. */
static void fail(struct tarn_executor *executor, struct failure failure)
{
    int running = RUNNING;
    if (!atomic_compare_exchange_strong(&executor->phase, &running, FAILING)) return;
    executor->failure = failure;
    atomic_store(&executor->phase, STOPPED);
    tarn_event_count_wake(&executor->events, EVERYBODY, UINT32_MAX);
}

/* Makes the stream claimable again; the next step is at its place. */
static void release(struct tarn_executor *executor, struct stream *stream, bool is_blocked)
{
    const struct tarn_program *program = executor->program;
    uint32_t s = (uint32_t)(stream - executor->streams);
    uint32_t place = atomic_load_explicit(&stream->place, memory_order_relaxed);
    uint64_t iteration = atomic_load_explicit(&stream->iteration, memory_order_relaxed);
    const struct tarn_graph *graph = executor->session->graph;
    uint32_t rank = graph->rank[program->steps[program->begin[s] + place].op];
    if (!is_blocked) atomic_store_explicit(&stream->awaited_count, 0, memory_order_relaxed);
    atomic_store_explicit(&stream->key, iteration * graph->ops_count + rank, memory_order_relaxed);
    atomic_store(&stream->claimed, false);
    if (!is_running(executor)) tarn_event_count_wake(&executor->events, WAITER, UINT32_MAX);
}

/* Runs a claimed stream until it blocks or its iteration ends, and releases it. Returns the number
 * of ops launched. */
static uint32_t run(struct worker *worker, struct stream *stream)
{
    struct tarn_executor *executor = worker->executor;
    const struct tarn_session *session = executor->session;
    uint32_t s = (uint32_t)(stream - executor->streams);
    uint32_t begin = executor->program->begin[s], length = steps_of(executor, s);
    const struct tarn_program_step *steps = executor->program->steps + begin;
    uint32_t first = atomic_load_explicit(&stream->place, memory_order_relaxed), place = first;
    uint64_t iteration = atomic_load_explicit(&stream->iteration, memory_order_relaxed);
    int64_t done = (int64_t)iteration * length; /* steps before this iteration */
    bool is_blocked = false;
    /* Between being found ready and being claimed, another worker may have run it to its end. */
    bool has_work = iteration < atomic_load(&executor->target);

    for (; has_work && place < length && is_running(executor); place++) {
        const struct tarn_program_step *step = &steps[place];
        is_blocked = !may_start(executor, stream, step, iteration);
        if (is_blocked) break;
        atomic_store_explicit(&stream->place, place, memory_order_relaxed);
        const struct tarn_binding *binding = &session->bindings[step->op];
        struct tarn_call *call = &session->calls[step->op];
        call->iteration = iteration;
        int code = binding->kernel(binding->user, call);
        if (code) {
            fail(executor, (struct failure){step->op, iteration, code});
            break;
        }
        if (step->record)
            signal_step(worker, stream, done + place + 1, executor->wakes_blocking[begin + place]);
    }
    if (place == length)
        finish_iteration(executor, stream, done + length, iteration);
    else
        atomic_store_explicit(&stream->place, place, memory_order_relaxed);
    release(executor, stream, is_blocked);
    return place - first;
}

/* ---- Workers ---- */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Leaves ready streams to others for a while; new work from outside ends it. */
static void be_patient(struct worker *worker)
{
    unsigned seen = tarn_event_count_read(&worker->executor->events);
    uint64_t began = tarn_now_ns();
    do relax();
    while (tarn_now_ns() - began < worker->patience_ns &&
           tarn_event_count_read(&worker->executor->events) == seen);
}

static struct stream *spin(struct worker *worker)
{
    struct stream *stream = NULL;
    uint64_t began = tarn_now_ns();
    while (!stream && tarn_now_ns() - began < SPIN_NS) {
        be_patient(worker);
        stream = claim(worker);
    }
    return stream;
}

/* A worker whose patience is as long as it can get is not called: that would cost the busy ones
 * more than its help is worth. It looks by itself now and then while there is work. Coming and
 * going end any call that is under way, so that none is taken for granted that nobody heard. */
static struct stream *sleep_for_work(struct worker *worker)
{
    struct tarn_executor *executor = worker->executor;
    unsigned seen = tarn_event_count_read(&executor->events);
    bool is_caller = !worker->blocking && worker->patience_ns < SPIN_NS;
    if (is_caller) atomic_fetch_add(&executor->callers, 1);
    atomic_store(&executor->is_calling, false);
    struct stream *stream = claim(worker);
    if (!stream && !atomic_load(&executor->quit)) {
        bool naps = !worker->blocking && !is_caller &&
                    !have_finished(executor, atomic_load(&executor->target));
        tarn_event_count_sleep(&executor->events, seen, worker->blocking ? BLOCKING : WORKER,
                               naps ? tarn_now_ns() + NAP_NS : UINT64_MAX);
    }
    if (is_caller) atomic_fetch_sub(&executor->callers, 1);
    atomic_store(&executor->is_calling, false);
    return stream ? stream : claim(worker);
}

/* What a worker caught last tells whether the next catch is worth the journey. */
static void learn(struct worker *worker, uint64_t ops, uint64_t busy_ns)
{
    if (ops == 0) return;
    if (busy_ns / ops >= GRAIN_NS)
        worker->patience_ns = 0;
    else if (worker->patience_ns < SPIN_NS)
        worker->patience_ns = worker->patience_ns * 2 + GRAIN_NS;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct tarn_executor *executor = worker->executor;
    while (!atomic_load(&executor->quit)) {
        struct stream *stream = worker->blocking ? NULL : spin(worker);
        if (!stream) stream = sleep_for_work(worker);
        uint64_t ops = 0, began = tarn_now_ns();
        for (; stream; stream = claim(worker)) ops += run(worker, stream);
        learn(worker, ops, tarn_now_ns() - began);
    }
    return NULL;
}

/* ---- Waiting ---- */

static bool have_drained(struct tarn_executor *executor)
{
    for (uint32_t s = 0; executor->streams && s < executor->program->streams_count; s++) {
        if (atomic_load(&executor->streams[s].claimed)) return false;
    }
    return atomic_load(&executor->phase) != FAILING;
}

/* Where a stream is, in the order in which one is told: a stream that is stuck runs. */
enum state { STREAM_RUNS, STREAM_WAITS, STREAM_HAS_FINISHED };

static enum state state_of(struct tarn_executor *executor, uint32_t s, uint64_t target)
{
    if (has_reached(executor, s, (int64_t)target * steps_of(executor, s)))
        return STREAM_HAS_FINISHED;
    return atomic_load(&executor->streams[s].claimed) ? STREAM_RUNS : STREAM_WAITS;
}

/* '; stream 0 "compute" runs op 7 "relu" of iteration 3' */
static int describe(struct tarn_executor *executor, uint32_t s, enum state state, char *text,
                    size_t size)
{
    const struct tarn_graph *graph = executor->session->graph;
    struct stream *stream = &executor->streams[s];
    struct tarn_label name = tarn_stream_label(graph, s);
    if (state == STREAM_HAS_FINISHED) return snprintf(text, size, "; %s has finished", name.text);
    uint64_t iteration = atomic_load_explicit(&stream->iteration, memory_order_relaxed);
    uint32_t place = atomic_load_explicit(&stream->place, memory_order_relaxed);
    uint32_t op = executor->program->steps[executor->program->begin[s] + place].op;
    return snprintf(text, size, "; %s %s %s of iteration %llu", name.text,
                    state == STREAM_RUNS ? "runs" : "waits before", tarn_op_label(graph, op).text,
                    (unsigned long long)iteration);
}

static enum tarn_status report_deadline(struct tarn_executor *executor, uint64_t target,
                                        uint64_t timeout_ns, struct tarn_error *error)
{
    char text[sizeof error->text];
    uint32_t streams_count = executor->program->streams_count;
    size_t used =
        (size_t)snprintf(text, sizeof text, "not finished after %.3f s", (double)timeout_ns * 1e-9);
    for (enum state state = STREAM_RUNS; state <= STREAM_HAS_FINISHED; state++) {
        for (uint32_t s = 0; s < streams_count && used < sizeof text; s++) {
            if (steps_of(executor, s) == 0 || state_of(executor, s, target) != state) continue;
            used += (size_t)describe(executor, s, state, text + used, sizeof text - used);
        }
    }
    if (used >= sizeof text) memcpy(text + sizeof text - sizeof "...", "...", sizeof "...");
    return tarn_error_set(error, TARN_DEADLINE, "%s", text);
}

static void stop(struct tarn_executor *executor)
{
    int running = RUNNING;
    atomic_compare_exchange_strong(&executor->phase, &running, STOPPED);
    tarn_event_count_wake(&executor->events, EVERYBODY, UINT32_MAX);
}

/* Sleeps until all streams are released after a stop; false when that takes too long. */
static bool drain(struct tarn_executor *executor, uint64_t deadline_ns)
{
    for (;;) {
        unsigned seen = tarn_event_count_read(&executor->events);
        if (have_drained(executor)) return true;
        if (!tarn_event_count_sleep(&executor->events, seen, WAITER, deadline_ns)) return false;
    }
}

static uint64_t deadline_after(uint64_t timeout_ns)
{
    uint64_t now = tarn_now_ns();
    return timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
}

static enum tarn_status executor_wait(struct tarn_executor *executor, uint64_t target,
                                      uint64_t timeout_ns, struct tarn_error *error)
{
    uint64_t deadline_ns = deadline_after(timeout_ns);
    bool in_time = true;
    atomic_store(&executor->awaited, target);
    for (;;) {
        unsigned seen = tarn_event_count_read(&executor->events);
        if (!is_running(executor)) {
            if (!drain(executor, deadline_ns)) executor->overdue = true;
            return tarn_session_kernel_failed(executor->session, executor->failure.op,
                                              executor->failure.iteration, executor->failure.code,
                                              error);
        }
        if (have_finished(executor, target)) return TARN_OK;
        if (!in_time) break;
        in_time = tarn_event_count_sleep(&executor->events, seen, WAITER, deadline_ns);
    }
    executor->overdue = true;
    report_deadline(executor, target, timeout_ns, error);
    stop(executor);
    return TARN_DEADLINE;
}

static enum tarn_status executor_submit(struct tarn_executor *executor, uint64_t target,
                                        struct tarn_error *error)
{
    (void)error;
    atomic_store(&executor->target, target);
    tarn_event_count_wake(&executor->events, WORKER | BLOCKING, UINT32_MAX);
    return TARN_OK;
}

/* ---- Creation and destruction ---- */

static void release_executor(struct tarn_executor *executor)
{
    tarn_topology_destroy(executor->topology);
    free(executor->streams);
    free(executor->wakes_blocking);
    free(executor->shared);
    free(executor->workers);
    free(executor);
}

static bool executor_destroy(struct tarn_executor *executor)
{
    stop(executor);
    atomic_store(&executor->quit, true);
    tarn_event_count_wake(&executor->events, EVERYBODY, UINT32_MAX);
    uint64_t deadline_ns = executor->overdue ? deadline_after(GRACE_NS) : UINT64_MAX;
    bool returned = drain(executor, deadline_ns);
    uint32_t threads = executor->workers ? executor->workers_count + executor->blocking_count : 0;
    for (uint32_t i = 0; i < threads; i++) {
        struct worker *worker = &executor->workers[i];
        if (!worker->started) continue;
        if (returned)
            pthread_join(worker->thread, NULL);
        else
            pthread_detach(worker->thread);
    }
    if (returned) release_executor(executor);
    return returned;
}

static bool is_listed(const struct tarn_list *list, uint32_t id)
{
    for (size_t i = 0; list && i < list->count; i++) {
        if (list->ids[i] == id) return true;
    }
    return false;
}

/* Streams of the workers come first, those with own threads last. Streams without steps are
 * nobody's: they have always finished. */
static void share_streams(struct tarn_executor *executor, const struct tarn_list *blocking)
{
    uint32_t streams_count = executor->program->streams_count;
    for (uint32_t s = 0; s < streams_count; s++) {
        if (steps_of(executor, s) == 0) continue;
        if (is_listed(blocking, s))
            executor->shared[streams_count - ++executor->blocking_count] = s;
        else
            executor->shared[executor->shared_count++] = s;
        release(executor, &executor->streams[s], false);
    }
}

static void find_listeners(struct tarn_executor *executor, const struct tarn_list *blocking)
{
    const struct tarn_program *program = executor->program;
    for (uint32_t i = 0; i < program->steps_count; i++) {
        const struct tarn_program_step *step = &program->steps[i];
        bool is_blocking = is_listed(blocking, step->stream);
        for (uint32_t k = step->waits_begin; k < step->waits_end; k++) {
            const struct tarn_program_wait *wait = &program->waits[k];
            uint32_t awaited = program->begin[wait->stream] + wait->place;
            assert(program->steps[awaited].record);
            executor->wakes_blocking[awaited] |= is_blocking;
        }
    }
}

static enum tarn_status start_workers(struct tarn_executor *executor, struct tarn_error *error)
{
    uint32_t streams_count = executor->program->streams_count;
    for (uint32_t i = 0; i < executor->workers_count + executor->blocking_count; i++) {
        struct worker *worker = &executor->workers[i];
        worker->executor = executor;
        worker->blocking = i >= executor->workers_count;
        uint32_t own = streams_count - 1 - (i - executor->workers_count);
        worker->streams = worker->blocking ? &executor->shared[own] : executor->shared;
        worker->streams_count = worker->blocking ? 1 : executor->shared_count;
        int code = pthread_create(&worker->thread, NULL, work, worker);
        if (code) return tarn_error_set(error, TARN_SYSTEM, "no thread: %s", strerror(code));
        worker->started = true;
        if (!worker->blocking && !executor->unpinned)
            tarn_topology_pin(executor->topology, worker->thread, i, executor->workers_count);
    }
    return TARN_OK;
}

static bool allocate_executor(struct tarn_executor *executor)
{
    const struct tarn_program *program = executor->program;
    size_t streams_size = ((size_t)program->streams_count + 1) * sizeof *executor->streams;
    executor->streams = aligned_alloc(LINE, streams_size);
    if (executor->streams) memset(executor->streams, 0, streams_size);
    executor->wakes_blocking =
        calloc((size_t)program->steps_count + 1, sizeof *executor->wakes_blocking);
    executor->shared = calloc((size_t)program->streams_count + 1, sizeof *executor->shared);
    executor->topology = tarn_topology_create();
    return executor->streams && executor->wakes_blocking && executor->shared && executor->topology;
}

/* Decides how many workers there are, and asks for memory near them. */
static bool choose_workers(struct tarn_executor *executor, const struct tarn_host_options *options)
{
    uint32_t cores = tarn_topology_cores(executor->topology), granted = tarn_cpu_quota();
    uint32_t wanted = cores < granted ? cores : granted;
    if (options && options->workers > 0) wanted = options->workers;
    executor->unpinned = options && options->unpinned;
    executor->workers_count = wanted < executor->shared_count ? wanted : executor->shared_count;
    executor->workers = calloc((size_t)executor->workers_count + executor->blocking_count + 1,
                               sizeof *executor->workers);
    struct tarn_session *session = executor->session;
    if (session->memory && !executor->unpinned)
        tarn_topology_bind_memory(executor->topology, session->memory, session->memory_size,
                                  executor->workers_count);
    return executor->workers;
}

static enum tarn_status executor_create(struct tarn_session *session,
                                        const struct tarn_session_options *options,
                                        struct tarn_executor **result, struct tarn_error *error)
{
    /* Another device without queues brings its own memory, and its `self` is its own affair. */
    bool is_own = session->device.table == tarn_device_host(NULL).table;
    const struct tarn_host_options *host = is_own ? session->device.self : NULL;
    if (host && host->struct_size < sizeof *host)
        return tarn_error_set(error, TARN_USAGE,
                              "host options of %zu bytes where %zu are needed: fill them with "
                              "their macro",
                              host->struct_size, sizeof *host);
    struct tarn_executor *executor = aligned_alloc(LINE, sizeof *executor);
    if (!executor) return tarn_error_no_memory(error);
    memset(executor, 0, sizeof *executor);
    executor->session = session;
    executor->program = &session->program;
    enum tarn_status status = TARN_OK;
    if (!allocate_executor(executor)) goto fail;
    share_streams(executor, options ? &options->blocking : NULL);
    find_listeners(executor, options ? &options->blocking : NULL);
    if (!choose_workers(executor, host)) goto fail;
    status = start_workers(executor, error);
    if (status) goto fail;
    *result = executor;
    return TARN_OK;
fail:
    executor_destroy(executor);
    return status ? status : tarn_error_no_memory(error);
}

const struct tarn_executor_table tarn_executor_host = {
    .create = executor_create,
    .submit = executor_submit,
    .wait = executor_wait,
    .destroy = executor_destroy,
};
