/* The host executor's control: the caller's side. It sets how far streams may run, waits for them,
 * reports their positions after a deadline, stops them, and creates and ends the workers
 * (host/executor.c). Cost: waiting is one futex; creation O(steps + waits). */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "executor.h"
#include "gate.h"
#include "host.h"
#include "listeners.h"
#include "runtime/state/arena.h"
#include "runtime/state/failure.h"
#include "runtime/state/flight.h"
#include "streams/base/cpu_quota.h"
#include "streams/base/log.h"
#include "streams/base/options.h"
#include "streams/graph/report.h"

#define REFUSED_NS \
    UINT64_C(1000000000) /* time for which `execute` may refuse tasks while none is running */

/* ---- Waiting ---- */

static bool have_drained(struct tarn_executor *executor)
{
    for (uint32_t s = 0; executor->streams && s < executor->program->streams_count; s++) {
        if (atomic_load(&executor->streams[s].claimed)) return false;
    }
    return atomic_load(&executor->phase) != TARN_FAILING;
}

/* 'runs op 7 "relu" of iteration 3': a stream that is stuck runs. */
static enum tarn_stream_state executor_describe(struct tarn_executor *executor, uint32_t s,
                                                char *text, size_t size)
{
    struct tarn_host_stream *stream = &executor->streams[s];
    int64_t end = (int64_t)executor->session->submitted * tarn_steps_of(executor, s);
    assert(tarn_steps_of(executor, s) > 0);
    if (tarn_has_reached(executor, s, end)) {
        snprintf(text, size, "has finished");
        return TARN_STREAM_FINISHED;
    }
    bool runs = atomic_load(&stream->claimed);
    uint64_t iteration = atomic_load_explicit(&stream->iteration, memory_order_relaxed);
    uint32_t place = atomic_load_explicit(&stream->place, memory_order_relaxed);
    uint32_t op = executor->program->steps[executor->program->begin[s] + place].op;
    snprintf(text, size, "%s %s of iteration %llu", runs ? "runs" : "waits before",
             tarn_op_label(executor->session->graph, op).text, (unsigned long long)iteration);
    return runs ? TARN_STREAM_STUCK : TARN_STREAM_WAITS;
}

static void stop(struct tarn_executor *executor)
{
    int running = TARN_RUNNING;
    atomic_compare_exchange_strong(&executor->phase, &running, TARN_STOPPED);
    bool is_made = executor->streams != NULL;
    if (is_made && !tarn_have_finished(executor, atomic_load(&executor->target)))
        tarn_gates_abandon(executor);
    tarn_event_count_wake(&executor->events, TARN_EVERYBODY, UINT32_MAX);
}

/* Sleeps until all streams are released after a stop; false if that takes too long. */
static bool drain(struct tarn_executor *executor, uint64_t deadline_ns)
{
    for (;;) {
        unsigned seen = tarn_event_count_read(&executor->events);
        if (have_drained(executor)) return true;
        if (!tarn_event_count_sleep(&executor->events, seen, TARN_WAITER, deadline_ns))
            return false;
    }
}

static enum tarn_status failure(const struct tarn_executor *executor, struct tarn_error *error)
{
    if (error && error->status == TARN_OK) *error = executor->failure_text;
    return executor->failure;
}

/* If no thread wakes the waiter for an event, the waiter polls: the next time to look. */
static uint64_t sooner(bool looks, uint64_t deadline_ns)
{
    uint64_t soon_ns = tarn_now_ns() + TARN_LOOK_NS;
    return looks && soon_ns < deadline_ns ? soon_ns : deadline_ns;
}

/* ---- Tasks that the caller's `execute` refuses ---- */

static bool has_task(struct tarn_executor *executor)
{
    for (uint32_t i = 0; i < executor->workers_count; i++) {
        if (atomic_load(&executor->workers[i].is_scheduled)) return true;
    }
    return false;
}

static bool is_refused(struct tarn_executor *executor)
{
    return atomic_load(&executor->has_missed) && !has_task(executor);
}

static enum tarn_status tell_refusals(struct tarn_executor *executor, enum tarn_status status,
                                      uint64_t waited_ns, struct tarn_error *error)
{
    return tarn_error_set(error, status,
                          "`execute` of the host device's options has refused tasks for %.1f s, %u "
                          "times, the last one with code %d: no thread runs the session's kernels",
                          (double)waited_ns * 1e-9, atomic_load(&executor->refusals),
                          atomic_load(&executor->refusal));
}

/* Offers refused tasks again from time to time; not for ever if no other task is running. */
static void try_again(struct tarn_executor *executor)
{
    if (!atomic_load(&executor->has_missed)) return;
    uint64_t now_ns = tarn_now_ns();
    if (now_ns < atomic_load(&executor->try_again_ns)) return;
    if (!atomic_exchange(&executor->has_missed, false)) return;
    tarn_workers_wake(executor, TARN_WORKER, UINT32_MAX);
    if (!is_refused(executor)) return;
    uint64_t refused_ns = tarn_now_ns() - atomic_load(&executor->refused_since_ns);
    if (refused_ns < REFUSED_NS) return;
    struct tarn_error error;
    tarn_error_clear(&error);
    tell_refusals(executor, TARN_SYSTEM, refused_ns, &error);
    tarn_executor_fail(executor, TARN_SYSTEM, &error);
}

static enum tarn_status executor_wait(struct tarn_executor *executor, uint64_t target,
                                      uint64_t timeout_ns, struct tarn_error *error)
{
    uint64_t deadline_ns = tarn_deadline_ns(timeout_ns);
    bool in_time = true;
    assert(target <= atomic_load(&executor->target) && timeout_ns > 0);
    atomic_store(&executor->awaited, target);
    for (;;) {
        unsigned seen = tarn_event_count_read(&executor->events);
        if (!tarn_is_running(executor)) {
            if (!drain(executor, deadline_ns)) executor->session->overdue = true;
            return failure(executor, error);
        }
        if (tarn_have_finished(executor, target)) return TARN_OK;
        if (!in_time) break;
        try_again(executor);
        bool tries = atomic_load(&executor->has_missed);
        in_time = tarn_event_count_sleep(&executor->events, seen, TARN_WAITER,
                                         sooner(tries, deadline_ns));
        if (tries && !in_time) in_time = tarn_now_ns() < deadline_ns;
    }
    executor->session->overdue = true;
    if (is_refused(executor))
        tell_refusals(executor, TARN_DEADLINE,
                      tarn_now_ns() - atomic_load(&executor->refused_since_ns), error);
    else
        tarn_session_deadline(executor->session, timeout_ns, error);
    stop(executor);
    return TARN_DEADLINE;
}

static enum tarn_status executor_query(struct tarn_executor *executor, uint64_t *finished,
                                       struct tarn_error *error)
{
    *finished = executor->session->submitted;
    try_again(executor);
    for (uint32_t s = 0; s < executor->program->streams_count; s++) {
        uint32_t steps = tarn_steps_of(executor, s);
        if (steps == 0) continue;
        uint64_t passes = (uint64_t)atomic_load(&executor->streams[s].progress) / steps;
        if (passes < *finished) *finished = passes;
    }
    return tarn_is_running(executor) ? TARN_OK : failure(executor, error);
}

static enum tarn_status executor_submit(struct tarn_executor *executor, uint64_t target,
                                        struct tarn_error *error)
{
    const struct tarn_session_options *options = &executor->session->settings.options;
    uint64_t patience_ns = options->patience_ns ? options->patience_ns : UINT64_MAX;
    uint64_t before = atomic_load(&executor->target), blocked = tarn_gates_full(executor);
    assert(target > before && target == executor->session->submitted);
    enum tarn_status status =
        blocked > 0 ? executor_wait(executor, blocked, patience_ns, error) : TARN_OK;
    if (status != TARN_OK) return status;
    tarn_gates_submit(executor, before, target - 1);
    atomic_store(&executor->target, target);
    tarn_workers_wake(executor, TARN_WORKER | TARN_BLOCKING, UINT32_MAX);
    if (options->depth == 0 || target <= options->depth) return TARN_OK;
    return executor_wait(executor, target - options->depth, patience_ns, error);
}

static enum tarn_status executor_surround(struct tarn_executor *executor,
                                          const struct tarn_submit_options *around,
                                          struct tarn_error *error)
{
    if (!around) {
        tarn_gates_drop(executor);
        return TARN_OK;
    }
    if (around->queue)
        return tarn_error_set(error, TARN_USAGE, "the host has no queues: wait for events of it");
    return tarn_gates_surround(executor, around, error);
}

/* Nothing to do: kernels find their addresses in the session. */
static void executor_rebind(struct tarn_executor *executor) { (void)executor; }

static void executor_cancel(struct tarn_executor *executor)
{
    struct tarn_error error;
    tarn_error_clear(&error);
    tarn_executor_fail(executor, tarn_session_was_cancelled(&error), &error);
}

/* ---- Creation and destruction ---- */

/* Sleeps until all other threads have left. A kernel or a device call that does not return keeps
 * its thread. */
static bool have_left(struct tarn_executor *executor, uint64_t deadline_ns)
{
    for (bool in_time = true;;) {
        unsigned seen = tarn_event_count_read(&executor->events);
        if (atomic_load(&executor->threads) == 0) return true;
        if (!in_time) return false;
        tarn_event_count_sleep(&executor->events, seen, TARN_WAITER,
                               sooner(executor->execute != NULL, deadline_ns));
        in_time = tarn_now_ns() < deadline_ns;
    }
}

static void join_workers(struct tarn_executor *executor)
{
    uint32_t count = executor->workers ? executor->workers_count + executor->blocking_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (executor->workers[i].started) pthread_join(executor->workers[i].thread, NULL);
        executor->workers[i].started = false;
    }
}

static enum tarn_status executor_destroy(struct tarn_executor *executor, uint64_t timeout_ns,
                                         struct tarn_error *error)
{
    stop(executor);
    tarn_listeners_leave(executor); /* other sessions schedule no workers of this executor any
                                     * more */
    atomic_store(&executor->quit, true);
    tarn_event_count_wake(&executor->events, TARN_EVERYBODY, UINT32_MAX);
    if (!have_left(executor, tarn_deadline_ns(timeout_ns)))
        return tarn_session_deadline(executor->session, timeout_ns, error);
    join_workers(executor);
    tarn_gates_finish(executor);
    tarn_topology_destroy(executor->topology);
    return TARN_OK;
}

/* Streams of the workers come first, those with own threads last. Streams without steps have no
 * worker: they have always finished. */
static void share_streams(struct tarn_executor *executor)
{
    uint32_t streams_count = executor->program->streams_count;
    for (uint32_t s = 0; s < streams_count; s++) {
        atomic_init(&executor->streams[s].awaited, &executor->streams[s].progress);
        if (tarn_steps_of(executor, s) == 0) continue;
        if (executor->session->settings.streams[s].blocking)
            executor->shared[streams_count - ++executor->blocking_count] = s;
        else
            executor->shared[executor->shared_count++] = s;
        tarn_stream_release(executor, &executor->streams[s], false);
    }
    assert(executor->shared_count + executor->blocking_count <= streams_count);
}

static void find_listeners(struct tarn_executor *executor)
{
    const struct tarn_program *program = executor->program;
    for (uint32_t i = 0; i < program->steps_count; i++) {
        const struct tarn_program_step *step = &program->steps[i];
        bool is_blocking = executor->session->settings.streams[step->stream].blocking;
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
        struct tarn_worker *worker = &executor->workers[i];
        worker->executor = executor;
        worker->blocking = i >= executor->workers_count;
        uint32_t own = streams_count - 1 - (i - executor->workers_count);
        worker->streams = worker->blocking ? &executor->shared[own] : executor->shared;
        worker->streams_count = worker->blocking ? 1 : executor->shared_count;
        if (executor->execute && !worker->blocking) continue;
        int code = tarn_executor_enter(executor, &worker->thread, tarn_worker_run, worker);
        if (code) return tarn_error_set(error, TARN_SYSTEM, "no thread: %s", strerror(code));
        worker->started = true;
        if (!worker->blocking && !tarn_topology_pin(executor->topology, worker->thread,
                                                    executor->binding, i, executor->workers_count))
            tarn_log(TARN_LOG_WARNING, "the system refuses to pin worker %u to its processors", i);
    }
    return TARN_OK;
}

/* Allocates whole cache lines, so that the items share no cache line with other data. */
static void *take_lines(struct tarn_region *region, size_t count, size_t size)
{
    assert(size % TARN_LINE == 0);
    unsigned char *bytes = tarn_region_take(region, count * size + TARN_LINE, 1);
    return bytes ? bytes + (-(uintptr_t)bytes & (TARN_LINE - 1)) : NULL;
}

static bool allocate_executor(struct tarn_executor *executor)
{
    const struct tarn_program *program = executor->program;
    struct tarn_region *region = &executor->session->region;
    executor->streams = take_lines(region, program->streams_count, sizeof *executor->streams);
    executor->wakes_blocking =
        tarn_region_take(region, program->steps_count, sizeof *executor->wakes_blocking);
    executor->shared = tarn_region_take(region, program->streams_count, sizeof *executor->shared);
    executor->topology = tarn_topology_create(NULL);
    return executor->streams && executor->wakes_blocking && executor->shared && executor->topology;
}

/* Binds memory that the host device allocated, for this session or for its shared arena. */
static void bind_memory(struct tarn_executor *executor)
{
    const struct tarn_session *session = executor->session;
    const struct tarn_arena *shared = session->settings.options.arena;
    for (uint32_t s = 0; s < session->memory.parts_count; s++) {
        const struct tarn_memory_part *part =
            shared ? &shared->memory.parts[s] : &session->memory.parts[s];
        if (part->memory && !part->is_borrowed)
            tarn_topology_bind_memory(executor->topology, part->memory, part->needs.size,
                                      executor->workers_count);
    }
}

/* Decides the number of workers, and binds memory near them. */
static bool choose_workers(struct tarn_executor *executor, const struct tarn_host_options *options)
{
    uint32_t cores = tarn_topology_cores(executor->topology), granted = tarn_cpu_quota();
    uint32_t wanted = cores < granted ? cores : granted;
    if (options->workers > 0) wanted = options->workers;
    executor->binding = options->execute ? TARN_BIND_NONE : options->binding;
    executor->execute = options->execute;
    executor->execute_user = options->execute_user;
    executor->task = tarn_worker_run_task;
    executor->workers_count = wanted < executor->shared_count ? wanted : executor->shared_count;
    executor->workers = tarn_region_take(&executor->session->region,
                                         (size_t)executor->workers_count + executor->blocking_count,
                                         sizeof *executor->workers);
    if (!options->memory && executor->binding != TARN_BIND_NONE) bind_memory(executor);
    return executor->workers;
}

/* Another device without queues has its own memory, and its `self` is not a struct
 * tarn_host_options. */
static enum tarn_status take_host_options(const struct tarn_session *session,
                                          struct tarn_host_options *options,
                                          struct tarn_error *error)
{
    const struct tarn_device *device = &session->device;
    const void *given = device->table == tarn_device_host(NULL).table ? device->self : NULL;
    enum tarn_status status =
        tarn_options_take(options, sizeof *options, given, "host options", error);
    if (status != TARN_OK) return status;
    if ((unsigned)options->binding > TARN_BIND_CORE)
        return tarn_error_set(error, TARN_USAGE, "host options: there is no binding %d",
                              (int)options->binding);
    if (options->binding > TARN_BIND_NONE && options->execute)
        return tarn_error_set(error, TARN_USAGE,
                              "host options: `binding` is for workers that are threads of Tarn's, "
                              "not for tasks of `execute`");
    return TARN_OK;
}

static enum tarn_status executor_create(struct tarn_session *session, struct tarn_executor **result,
                                        struct tarn_error *error)
{
    struct tarn_host_options host;
    enum tarn_status status = take_host_options(session, &host, error);
    if (status != TARN_OK) return status;
    struct tarn_executor *executor = take_lines(&session->region, 1, sizeof *executor);
    if (!executor) return tarn_error_no_memory(error);
    executor->session = session;
    executor->program = session->program;
    if (!allocate_executor(executor)) goto fail;
    share_streams(executor);
    find_listeners(executor);
    if (!choose_workers(executor, &host)) goto fail;
    status = tarn_gates_init(executor, error);
    if (status != TARN_OK) goto fail;
    status = start_workers(executor, error);
    if (status != TARN_OK) goto fail;
    *result = executor;
    return TARN_OK;
fail:
    executor_destroy(executor, TARN_FOREVER, NULL); /* nothing was submitted */
    return status != TARN_OK ? status : tarn_error_no_memory(error);
}

const struct tarn_executor_table tarn_executor_host = {
    .create = executor_create,
    .rebind = executor_rebind,
    .follow = tarn_gates_follow,
    .surround = executor_surround,
    .submit = executor_submit,
    .wait = executor_wait,
    .query = executor_query,
    .cancel = executor_cancel,
    .describe = executor_describe,
    .destroy = executor_destroy,
};
