/* The host executor: min(cores, streams) workers claim ready streams and run them until they block.
 *
 *     stream:  [ claimed | awaited stream, count | key ]   [ progress ]   [ place, iteration ]
 *               claimed by exchange; the rest written      published      for the claimer, and
 *               before it is given back                    for waiters    for diagnosis
 *
 * Each bracket is a cache line. Progress counts steps since the session's start. It is published
 * only after steps that another stream waits for and at the end of an iteration. A worker takes the
 * ready, unclaimed stream with the smallest key (iteration · ops + list position). When a stream
 * blocks, its worker looks for another stream to run. After it has released a stream or published
 * progress, a worker checks all streams again. These accesses are sequentially consistent, so while
 * any worker is busy no ready stream is missed.
 *
 * An idle worker spins for 50 µs, then sleeps on the event count. Handing a stream to another core
 * costs more than an empty op, so every worker adapts to the ops that it ran last. If they took
 * less than a microsecond, it looks less and less often (patience), and the busy worker keeps all
 * streams and their cache lines. If they are long, it looks all the time. Each stream that may
 * block has its own thread. Nothing is allocated and no lock is taken after creation. Source:
 * docs/how-it-works.md, "Executors". Cost: O(1) per op, O(streams) each time that a stream blocks.
 */
#include "executor.h"

#include "gate.h"
#include "listeners.h"

#include "runtime/state/failure.h"
#include "runtime/state/flight.h"
#include "streams/graph/report.h"

#define SPIN_NS 50000 /* an idle worker looks for work this long, then sleeps */
#define NAP_NS 200000 /* how long the most patient workers sleep between looks */
#define GRAIN_NS 1000 /* ops below this are not worth handing to another core */

/* ---- Readiness ---- */

bool tarn_have_finished(struct tarn_executor *executor, uint64_t target)
{
    for (uint32_t s = 0; s < executor->program->streams_count; s++) {
        if (!tarn_has_reached(executor, s, (int64_t)target * tarn_steps_of(executor, s)))
            return false;
    }
    return true;
}

/* Are the waits of this step met? If not, stores the first wait that is not met, for the next
 * worker that checks the stream. */
static bool may_start(struct tarn_executor *executor, struct tarn_host_stream *stream,
                      const struct tarn_program_step *step, uint64_t iteration)
{
    for (uint32_t i = step->waits_begin; i < step->waits_end; i++) {
        const struct tarn_program_wait *wait = &executor->program->waits[i];
        int64_t count = tarn_awaited_count(executor, wait, iteration);
        if (tarn_has_reached(executor, wait->stream, count)) continue;
        atomic_store_explicit(&stream->awaited, &executor->streams[wait->stream].progress,
                              memory_order_relaxed);
        atomic_store_explicit(&stream->awaited_count, count, memory_order_relaxed);
        return false;
    }
    return true;
}

/* The ready stream with the smallest key. Its state may change meanwhile; the worker that claims it
 * checks again. */
static struct tarn_host_stream *find_ready(struct tarn_executor *executor, const uint32_t *streams,
                                           uint32_t streams_count)
{
    struct tarn_host_stream *best = NULL;
    uint64_t best_key = atomic_load(&executor->target) * executor->session->graph->ops_count;
    for (uint32_t i = 0; i < streams_count; i++) {
        struct tarn_host_stream *stream = &executor->streams[streams[i]];
        if (atomic_load(&stream->claimed)) continue;
        uint64_t key = atomic_load_explicit(&stream->key, memory_order_relaxed);
        if (key >= best_key) continue;
        const _Atomic int64_t *awaited =
            atomic_load_explicit(&stream->awaited, memory_order_relaxed);
        int64_t count = atomic_load_explicit(&stream->awaited_count, memory_order_relaxed);
        if (atomic_load(awaited) < count) continue;
        best = stream;
        best_key = key;
    }
    return best;
}

/* Wakes one waiter; each woken waiter wakes the next one. A wake-up costs microseconds, and a busy
 * worker looks for streams itself when its stream blocks. So it wakes only waiters that registered,
 * and none while the last wake-up is under way. */
static void call_worker(struct tarn_worker *worker)
{
    struct tarn_executor *executor = worker->executor;
    bool calls_always = worker->blocking || executor->execute;
    if (!calls_always &&
        (atomic_load(&executor->callers) == 0 || atomic_load(&executor->is_calling)))
        return;
    if (!find_ready(executor, executor->shared, executor->shared_count)) return;
    if (calls_always) {
        atomic_store(&executor->is_calling, true);
        tarn_workers_wake(executor, TARN_WORKER, 1);
    } else if (!atomic_exchange(&executor->is_calling, true))
        tarn_event_count_wake(&executor->events, TARN_WORKER, 1);
}

static struct tarn_host_stream *claim(struct tarn_worker *worker)
{
    struct tarn_executor *executor = worker->executor;
    while (tarn_is_running(executor)) {
        struct tarn_host_stream *stream =
            find_ready(executor, worker->streams, worker->streams_count);
        if (!stream) return NULL;
        if (atomic_exchange(&stream->claimed, true)) continue;
        call_worker(worker);
        return stream;
    }
    return NULL;
}

/* ---- Running a stream ---- */

/* After the step before `count` of this stream: wakes the streams that wait for it. */
static void signal_step(struct tarn_worker *worker, struct tarn_host_stream *stream, int64_t count,
                        bool wakes_blocking)
{
    struct tarn_event_count *events = &worker->executor->events;
    atomic_store(&stream->progress, count);
    tarn_gates_reach(worker->executor, (uint32_t)(stream - worker->executor->streams), count);
    if (wakes_blocking) tarn_event_count_wake(events, TARN_BLOCKING, UINT32_MAX);
    call_worker(worker);
}

static void finish_iteration(struct tarn_executor *executor, struct tarn_host_stream *stream,
                             int64_t count, uint64_t iteration, struct tarn_gate *gate)
{
    atomic_store(&stream->progress, count);
    tarn_gates_reach(executor, (uint32_t)(stream - executor->streams), count);
    atomic_store_explicit(&stream->place, 0, memory_order_relaxed);
    atomic_store_explicit(&stream->iteration, iteration + 1, memory_order_relaxed);
    if (gate) tarn_gate_leave(gate, stream, iteration);
    if (atomic_load(&executor->awaited) == iteration + 1 &&
        tarn_have_finished(executor, iteration + 1))
        tarn_event_count_wake(&executor->events, TARN_WAITER, UINT32_MAX);
}

void tarn_executor_fail(struct tarn_executor *executor, enum tarn_status status,
                        const struct tarn_error *error)
{
    assert(status != TARN_OK && error->status == status);
    int running = TARN_RUNNING;
    if (!atomic_compare_exchange_strong(&executor->phase, &running, TARN_FAILING)) return;
    executor->failure = status;
    executor->failure_text = *error;
    atomic_store(&executor->phase, TARN_STOPPED);
    if (!tarn_have_finished(executor, atomic_load(&executor->target))) tarn_gates_abandon(executor);
    tarn_event_count_wake(&executor->events, TARN_EVERYBODY, UINT32_MAX);
}

static void kernel_failed(struct tarn_executor *executor, uint32_t op, uint64_t iteration, int code)
{
    struct tarn_error error;
    tarn_error_clear(&error);
    tarn_executor_fail(executor,
                       tarn_session_kernel_failed(executor->session, op, iteration, code, &error),
                       &error);
}

/* Makes the stream claimable again; `place` is its next step. */
void tarn_stream_release(struct tarn_executor *executor, struct tarn_host_stream *stream,
                         bool is_blocked)
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
    if (!tarn_is_running(executor))
        tarn_event_count_wake(&executor->events, TARN_WAITER, UINT32_MAX);
}

/* Does the gate let the step begin? */
static bool may_pass(struct tarn_executor *executor, struct tarn_host_stream *stream,
                     const struct tarn_gate *gate, uint32_t step)
{
    bool is_vain = false;
    if (tarn_gate_lets(executor, stream, gate, step, &is_vain)) return true;
    struct tarn_error error;
    tarn_error_clear(&error);
    if (is_vain)
        tarn_executor_fail(executor, tarn_session_forsaken(executor->session, &error), &error);
    return false;
}

/* Runs a claimed stream until it blocks or its iteration ends, and releases it. Returns the number
 * of ops launched. */
static uint32_t run(struct tarn_worker *worker, struct tarn_host_stream *stream)
{
    struct tarn_executor *executor = worker->executor;
    struct tarn_session *session = executor->session;
    struct tarn_flight *flight = session->flight;
    uint32_t s = (uint32_t)(stream - executor->streams);
    uint32_t begin = executor->program->begin[s], length = tarn_steps_of(executor, s);
    const struct tarn_program_step *steps = executor->program->steps + begin;
    uint32_t first = atomic_load_explicit(&stream->place, memory_order_relaxed), place = first;
    uint64_t iteration = atomic_load_explicit(&stream->iteration, memory_order_relaxed);
    int64_t done = (int64_t)iteration * length; /* steps before this iteration */
    bool is_blocked = false;
    /* Between the search and the claim, another worker may have run the stream to its end. The
     * target is read before the gates: a submit makes its gate before it raises the target. */
    bool has_work = iteration < atomic_load(&executor->target);
    struct tarn_gate *gate = has_work ? tarn_gate_find(executor, stream, iteration) : NULL;

    for (; has_work && place < length && tarn_is_running(executor); place++) {
        const struct tarn_program_step *step = &steps[place];
        is_blocked =
            !may_start(executor, stream, step, iteration) ||
            (gate && gate->first == iteration && !may_pass(executor, stream, gate, begin + place));
        if (is_blocked) break;
        atomic_store_explicit(&stream->place, place, memory_order_relaxed);
        tarn_flight_begin(flight, s, step->op, iteration);
        int code = tarn_session_launch(session, step->op, iteration);
        tarn_flight_end(flight, s);
        if (code) {
            kernel_failed(executor, step->op, iteration, code);
            break;
        }
        if (step->record || (session->exits && session->exits[begin + place]))
            signal_step(worker, stream, done + place + 1, executor->wakes_blocking[begin + place]);
    }
    assert(first <= place && place <= length);
    if (place == length)
        finish_iteration(executor, stream, done + length, iteration, gate);
    else
        atomic_store_explicit(&stream->place, place, memory_order_relaxed);
    tarn_stream_release(executor, stream, is_blocked);
    return place - first;
}

/* ---- Workers ---- */

int tarn_executor_enter(struct tarn_executor *executor, pthread_t *thread, void *(*work)(void *),
                        void *argument)
{
    atomic_fetch_add(&executor->threads, 1);
    int code = pthread_create(thread, NULL, work, argument);
    if (code) atomic_fetch_sub(&executor->threads, 1);
    return code;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Leaves ready streams to other workers for a while; new work from outside ends the pause. */
static void be_patient(struct tarn_worker *worker)
{
    unsigned seen = tarn_event_count_read(&worker->executor->events);
    uint64_t began = tarn_now_ns();
    do relax();
    while (tarn_now_ns() - began < worker->patience_ns &&
           tarn_event_count_read(&worker->executor->events) == seen);
}

static struct tarn_host_stream *spin(struct tarn_worker *worker)
{
    struct tarn_host_stream *stream = NULL;
    uint64_t began = tarn_now_ns();
    while (!stream && tarn_now_ns() - began < SPIN_NS) {
        be_patient(worker);
        stream = claim(worker);
    }
    return stream;
}

/* A worker with maximum patience is not woken: that would cost the busy workers more than its help
 * is worth. It polls from time to time while there is work. Registering and leaving both end any
 * wake-up under way, so that no wake-up that reached no worker is counted as pending. */
static struct tarn_host_stream *sleep_for_work(struct tarn_worker *worker)
{
    struct tarn_executor *executor = worker->executor;
    unsigned seen = tarn_event_count_read(&executor->events);
    bool is_caller = !worker->blocking && worker->patience_ns < SPIN_NS;
    if (is_caller) atomic_fetch_add(&executor->callers, 1);
    atomic_store(&executor->is_calling, false);
    struct tarn_host_stream *stream = claim(worker);
    if (!stream && !atomic_load(&executor->quit)) {
        bool naps = !worker->blocking && !is_caller &&
                    !tarn_have_finished(executor, atomic_load(&executor->target));
        tarn_event_count_sleep(&executor->events, seen,
                               worker->blocking ? TARN_BLOCKING : TARN_WORKER,
                               naps ? tarn_now_ns() + NAP_NS : UINT64_MAX);
    }
    if (is_caller) atomic_fetch_sub(&executor->callers, 1);
    atomic_store(&executor->is_calling, false);
    return stream ? stream : claim(worker);
}

/* Adapts the worker's patience: the length of the ops that it ran last predicts whether the next
 * stream is worth taking. */
static void learn(struct tarn_worker *worker, uint64_t ops, uint64_t busy_ns)
{
    if (ops == 0) return;
    if (busy_ns / ops >= GRAIN_NS)
        worker->patience_ns = 0;
    else if (worker->patience_ns < SPIN_NS)
        worker->patience_ns = worker->patience_ns * 2 + GRAIN_NS;
}

/* The executor must not be accessed after the last line. */
void tarn_worker_run_task(void *argument)
{
    struct tarn_worker *worker = argument;
    struct tarn_executor *executor = worker->executor;
    do {
        for (struct tarn_host_stream *stream = claim(worker); stream; stream = claim(worker))
            run(worker, stream);
        atomic_store(&worker->is_scheduled, false);
    } while (tarn_is_running(executor) &&
             find_ready(executor, worker->streams, worker->streams_count) &&
             !atomic_exchange(&worker->is_scheduled, true));
    uint32_t before = atomic_fetch_sub(&executor->threads, 1);
    assert(before > 0);
    (void)before;
}

void *tarn_worker_run(void *argument)
{
    struct tarn_worker *worker = argument;
    struct tarn_executor *executor = worker->executor;
    while (!atomic_load(&executor->quit)) {
        struct tarn_host_stream *stream = worker->blocking ? NULL : spin(worker);
        if (!stream) stream = sleep_for_work(worker);
        uint64_t ops = 0, began = tarn_now_ns();
        for (; stream; stream = claim(worker)) ops += run(worker, stream);
        learn(worker, ops, tarn_now_ns() - began);
    }
    tarn_executor_leave(executor);
    return NULL;
}
