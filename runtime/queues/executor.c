/* The executor of devices with queues and events: one queue per stream, everything enqueued from
 * the caller's thread in one topological order, so that no wait names an event before its record;
 * or whole blocks of iterations captured once and replayed.
 *
 *     batches:  [ iterations 0..u ][ u..2u ] ...     each ends with a mark, one event per queue
 *                reached ───────┘     └── at most `depth` iterations of batches are under way
 *
 * Submit waits for the oldest batch if there is no room for the next. A waiting thread polls the
 * oldest mark that was not reached. While the streams wait for events or a queue of the caller, no
 * queue gets more kernels than it takes (device.h, queue_depth). Otherwise a call that waits for
 * room would wait for an action that the caller may take only after submit has returned. The first
 * failure stops the enqueueing. Memory that a queue may still touch is freed only after a last
 * mark, which follows all enqueued work, is reached. Source: docs/how-it-works.md, "Executors".
 * Cost: one call per wait, launch, record and mark; nothing allocated after creation. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "around.h"
#include "capture.h"
#include "marks.h"
#include "runtime/state/failure.h"
#include "runtime/state/flight.h"
#include "streams/graph/report.h"

#define PAUSE_NS 2000 /* between polls at first; doubles up to ... */
#define PAUSE_MAX_NS 200000
#define TRIES 3u                                 /* tries of each call while destroying */
#define AROUND_PATIENCE_NS UINT64_C(10000000000) /* for events that only the caller can trigger */
#define DEPTH_DEFAULT 8u
#define DEPTH_MAX 4096u /* batches under way */

struct tarn_executor {
    struct tarn_session *session;
    const struct tarn_program *program;
    struct tarn_queues queues;
    struct tarn_capture capture; /* unroll 0: iterations are enqueued one by one */
    struct tarn_marks marks;
    struct tarn_queues_around around;
    uint64_t enqueued, finished; /* iterations */
    uint32_t queue_depth;        /* number of kernels that a queue takes; 0: no limit */
    bool is_ending;              /* the last mark was made */
};

/* Checks which marks have been reached since. */
static enum tarn_status look(struct tarn_executor *executor, struct tarn_error *error)
{
    return tarn_marks_look(&executor->marks, &executor->finished, error);
}

static enum tarn_status make_mark(struct tarn_executor *executor, struct tarn_error *error)
{
    return tarn_marks_make(&executor->marks, executor->enqueued, error);
}

/* ---- Waiting ---- */

/* The status of a failed kernel or a cancellation, after enqueued work has passed without
 * kernels. */
static enum tarn_status stopped(struct tarn_executor *executor, struct tarn_error *error)
{
    enum tarn_status status = tarn_queues_failure(&executor->queues, error);
    if (status == TARN_OK && atomic_load(&executor->session->cancelled)) {
        tarn_queues_halt(&executor->queues);
        status = tarn_session_was_cancelled(error);
    }
    return status;
}

/* Sleeps for the pause, at most until the deadline; false if the deadline has passed. */
static bool rest(uint64_t *pause_ns, uint64_t deadline_ns)
{
    uint64_t now_ns = tarn_now_ns();
    if (now_ns >= deadline_ns) return false;
    uint64_t left_ns = deadline_ns - now_ns;
    uint64_t nap_ns = *pause_ns < left_ns ? *pause_ns : left_ns;
    nanosleep(&(struct timespec){.tv_nsec = (long)nap_ns}, NULL);
    if (*pause_ns < PAUSE_MAX_NS) *pause_ns *= 2;
    return true;
}

/* Polls until `target` iterations have finished, or until all enqueued ones have if there is a
 * reason to stop. TARN_DEADLINE: the time is up. */
static enum tarn_status poll(struct tarn_executor *executor, uint64_t target, uint64_t timeout_ns,
                             struct tarn_error *error)
{
    uint64_t deadline_ns = tarn_deadline_ns(timeout_ns), pause_ns = PAUSE_NS;
    for (;;) {
        enum tarn_status status = look(executor, error);
        if (status != TARN_OK) return status;
        bool ended = tarn_marks_all_reached(&executor->marks);
        status = stopped(executor, error);
        if (status != TARN_OK && ended) return status;
        if (status == TARN_OK && executor->finished >= target) return TARN_OK;
        if (rest(&pause_ns, deadline_ns)) continue;
        executor->session->overdue = true;
        return status != TARN_OK ? status : TARN_DEADLINE;
    }
}

static enum tarn_status executor_wait(struct tarn_executor *executor, uint64_t target,
                                      uint64_t timeout_ns, struct tarn_error *error)
{
    assert(target <= executor->enqueued && timeout_ns > 0);
    enum tarn_status status = poll(executor, target, timeout_ns, error);
    if (status == TARN_DEADLINE) tarn_session_deadline(executor->session, timeout_ns, error);
    return status;
}

static enum tarn_status executor_query(struct tarn_executor *executor, uint64_t *finished,
                                       struct tarn_error *error)
{
    enum tarn_status status = look(executor, error);
    if (status == TARN_OK) status = stopped(executor, error);
    *finished = executor->finished;
    return status;
}

static void executor_cancel(struct tarn_executor *executor) { tarn_queues_halt(&executor->queues); }

/* ---- Enqueueing ---- */

/* Waits until the streams have passed the caller's events and queue. `why`: what the submit cannot
 * do before that. */
static enum tarn_status pass_caller(struct tarn_executor *executor, const char *why,
                                    struct tarn_error *error)
{
    uint64_t patience_ns = executor->session->settings.options.patience_ns, pause_ns = PAUSE_NS;
    if (patience_ns == 0) patience_ns = AROUND_PATIENCE_NS;
    const uint64_t deadline_ns = tarn_deadline_ns(patience_ns);
    for (;;) {
        int code = tarn_around_look_before(&executor->around);
        enum tarn_status status =
            tarn_session_status(executor->session, executor->queues.device,
                                "asking for the caller's events", code, error);
        if (status == TARN_OK) status = stopped(executor, error);
        if (status != TARN_OK || !executor->around.is_closed) return status;
        if (rest(&pause_ns, deadline_ns)) continue;
        executor->session->overdue = true;
        return tarn_error_set(
            error, TARN_DEADLINE,
            "submit waited %.1f s for the events or the queue that its options name: %s. Let them "
            "be reached without waiting for submit to return, or use the option 'capture', or "
            "'patience_ns' for more time",
            (double)patience_ns * 1e-9, why);
    }
}

/* May the queue of the step be full? */
static bool is_full(const struct tarn_executor *executor, uint32_t index)
{
    const struct tarn_program *program = executor->program;
    uint32_t s = program->steps[index].stream, begin = program->begin[s];
    uint64_t steps = program->begin[s + 1] - begin, depth = executor->queue_depth;
    uint64_t under_way = (executor->enqueued - executor->finished) * steps + (index - begin);
    return depth > 0 && under_way >= depth;
}

static enum tarn_status enqueue_iteration(struct tarn_executor *executor, struct tarn_error *error)
{
    const struct tarn_program *program = executor->program;
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < program->steps_count && status == TARN_OK; i++) {
        uint32_t index = program->order[i];
        if (executor->around.is_closed && is_full(executor, index))
            status = pass_caller(executor, "a queue holds as many kernels as it takes", error);
        if (status == TARN_OK)
            status = tarn_queues_enqueue_step(&executor->queues, index, executor->enqueued, error);
    }
    executor->queues.follows_count = 0;
    return status;
}

static enum tarn_status make_room(struct tarn_executor *executor, struct tarn_error *error)
{
    uint64_t patience_ns = executor->session->settings.options.patience_ns;
    if (patience_ns == 0) patience_ns = TARN_FOREVER;
    enum tarn_status status = stopped(executor, error);
    bool has_room = tarn_marks_have_room(&executor->marks);
    if (status != TARN_OK || has_room) return status;
    if (executor->around.is_closed)
        status = pass_caller(executor, "as many iterations as 'depth' says are under way", error);
    if (status != TARN_OK) return status;
    uint64_t oldest = tarn_marks_oldest(&executor->marks)->target;
    return executor_wait(executor, oldest, patience_ns, error);
}

/* Makes the next iteration wait for the last iteration of a session on the arena. If one of the two
 * is a capture, its single steps cannot be waited for: then streams wait for the ends of
 * streams. */
static void executor_follow(struct tarn_executor *executor, uint32_t plan)
{
    const struct tarn_arena *arena = executor->session->settings.options.arena;
    const struct tarn_executor *other = arena->members[plan].session->executor;
    executor->queues.follows[executor->queues.follows_count++] = &other->queues;
}

/* Waits for the sessions whose steps cannot be waited for, and leaves only the others in the
 * list. */
static enum tarn_status follow_captures(struct tarn_executor *executor, struct tarn_error *error)
{
    struct tarn_queues *queues = &executor->queues;
    uint32_t kept = 0;
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < queues->follows_count && status == TARN_OK; i++) {
        const struct tarn_executor *other = queues->follows[i]->session->executor;
        if (executor->capture.unroll > 0 || other->capture.unroll > 0)
            status = tarn_marks_follow(&executor->marks, &other->marks, error);
        else
            queues->follows[kept++] = queues->follows[i];
    }
    queues->follows_count = kept;
    return status;
}

static enum tarn_status enqueue_batch(struct tarn_executor *executor, uint64_t target,
                                      struct tarn_error *error)
{
    uint64_t iterations = 1;
    enum tarn_status status = make_room(executor, error);
    if (status != TARN_OK) return status;
    if (executor->capture.unroll > 0) {
        iterations = tarn_capture_next(&executor->capture, target - executor->enqueued);
        assert(executor->enqueued + iterations <= target);
        status = tarn_capture_launch(&executor->capture, iterations, executor->enqueued, error);
    } else {
        status = enqueue_iteration(executor, error);
    }
    if (status != TARN_OK) return status;
    executor->enqueued += iterations;
    return make_mark(executor, error);
}

static enum tarn_status executor_submit(struct tarn_executor *executor, uint64_t target,
                                        struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    assert(target > executor->enqueued && !executor->is_ending);
    if (executor->program->steps_count == 0) executor->enqueued = executor->finished = target;
    status = follow_captures(executor, error);
    if (status == TARN_OK) status = tarn_around_enter(&executor->around, error);
    while (executor->enqueued < target && status == TARN_OK)
        status = enqueue_batch(executor, target, error);
    if (status == TARN_OK) status = tarn_around_leave(&executor->around, error);
    executor->around.asked = NULL;
    if (status != TARN_OK) tarn_queues_halt(&executor->queues);
    return status;
}

static enum tarn_status executor_surround(struct tarn_executor *executor,
                                          const struct tarn_submit_options *around,
                                          struct tarn_error *error)
{
    (void)error;
    executor->around.asked = around;
    if (!around) executor->queues.follows_count = 0;
    return TARN_OK;
}

static void executor_rebind(struct tarn_executor *executor)
{
    if (executor->capture.unroll > 0) tarn_capture_forget(&executor->capture);
}

/* ---- Where streams are ---- */

static bool is_past(struct tarn_executor *executor, void *event)
{
    const struct tarn_device *device = &executor->queues.device;
    bool done = false;
    return device->table->event_query(device->self, event, &done) == 0 && done;
}

/* The first recorded step of the last iteration that the queue has not reached, else its end. In a
 * capture events belong to the graph, so only the whole iteration is known. */
static uint32_t find_open_step(struct tarn_executor *executor, uint32_t s)
{
    const struct tarn_program *program = executor->program;
    uint32_t i = program->begin[s], end = program->begin[s + 1] - 1;
    void **events = executor->queues.events[(executor->enqueued - 1) & 1];
    if (executor->capture.unroll > 0) return end;
    while (i < end && (!events[i] || is_past(executor, events[i]))) i++;
    return i;
}

static enum tarn_stream_state executor_describe(struct tarn_executor *executor, uint32_t s,
                                                char *text, size_t size)
{
    const struct tarn_session *session = executor->session;
    bool all_reached = tarn_marks_all_reached(&executor->marks);
    bool has_finished = all_reached;
    assert(executor->program->begin[s] < executor->program->begin[s + 1]);
    if (atomic_load(&session->poisoned)) {
        snprintf(text, size, "is on a device that answers no more");
        return TARN_STREAM_STUCK;
    }
    if (!all_reached) {
        const struct tarn_mark *last = tarn_marks_last(&executor->marks);
        uint32_t with_mark = executor->capture.unroll > 0 ? executor->capture.origin : s;
        has_finished = is_past(executor, last->events[with_mark]);
    }
    if (has_finished) {
        snprintf(text, size, "has finished");
        return TARN_STREAM_FINISHED;
    }
    uint32_t op = executor->program->steps[find_open_step(executor, s)].op;
    snprintf(text, size, "has not passed %s of iteration %llu",
             tarn_op_label(session->graph, op).text, (unsigned long long)executor->enqueued - 1);
    return TARN_STREAM_STUCK;
}

/* ---- Creation and destruction ---- */

static void release_executor(struct tarn_executor *executor)
{
    tarn_around_finish(&executor->around);
    tarn_marks_finish(&executor->marks);
    tarn_capture_finish(&executor->capture);
    tarn_queues_finish(&executor->queues);
}

/* May a failed call succeed if it is tried again? Not on a poisoned device. */
static bool may_retry(const struct tarn_executor *executor, uint32_t *failures)
{
    return ++*failures < TRIES && !atomic_load(&executor->session->poisoned);
}

/* Waits for all marks, and for work after the last mark. TARN_DEADLINE, TARN_DEVICE. */
static enum tarn_status reach_marks(struct tarn_executor *executor, uint64_t deadline_ns)
{
    uint64_t pause_ns = PAUSE_NS;
    for (uint32_t failures = 0;;) {
        enum tarn_status status = look(executor, NULL);
        bool is_over = tarn_marks_all_reached(&executor->marks);
        if (is_over && tarn_around_look(&executor->around, &is_over)) status = TARN_DEVICE;
        if (is_over && status == TARN_OK) return TARN_OK;
        if (status != TARN_OK && !may_retry(executor, &failures)) return status;
        if (!rest(&pause_ns, deadline_ns)) return TARN_DEADLINE;
    }
}

/* Enqueued work cannot be withdrawn: the last mark covers all of it, also work enqueued outside of
 * the executor, or before a call failed half way. */
static enum tarn_status make_last_mark(struct tarn_executor *executor)
{
    uint32_t failures = 0;
    if (executor->is_ending) return TARN_OK;
    executor->enqueued++;
    while (make_mark(executor, NULL)) {
        if (!may_retry(executor, &failures)) return TARN_DEVICE;
    }
    executor->is_ending = true;
    return TARN_OK;
}

static enum tarn_status drain(struct tarn_executor *executor, uint64_t deadline_ns)
{
    if (!executor->session->has_enqueued) return TARN_OK;
    if (atomic_load(&executor->session->poisoned)) return TARN_DEVICE;
    tarn_queues_halt(&executor->queues);
    enum tarn_status status = reach_marks(executor, deadline_ns); /* makes room for one more */
    if (status == TARN_OK) status = make_last_mark(executor);
    if (status == TARN_OK) status = reach_marks(executor, deadline_ns);
    return status;
}

static enum tarn_status executor_destroy(struct tarn_executor *executor, uint64_t timeout_ns,
                                         struct tarn_error *error)
{
    enum tarn_status status = drain(executor, tarn_deadline_ns(timeout_ns));
    if (status == TARN_DEADLINE) return tarn_session_deadline(executor->session, timeout_ns, error);
    if (status != TARN_OK) return tarn_session_lost(executor->queues.device, error);
    release_executor(executor);
    return TARN_OK;
}

/* In a capture all streams are joined into one queue, whose end is the end of all streams. */
static enum tarn_status create_marks(struct tarn_executor *executor, uint32_t depth,
                                     struct tarn_error *error)
{
    const struct tarn_capture *capture = &executor->capture;
    uint32_t unroll = capture->unroll > 0 ? capture->unroll : 1;
    if (depth == 0) depth = DEPTH_DEFAULT;
    uint32_t batches = depth / unroll + (depth % unroll > 0);
    return tarn_marks_init(&executor->marks, &executor->queues,
                           capture->unroll > 0 ? capture->origin : TARN_NONE,
                           batches < DEPTH_MAX ? batches : DEPTH_MAX, error);
}

static enum tarn_status executor_create(struct tarn_session *session, struct tarn_executor **result,
                                        struct tarn_error *error)
{
    const struct tarn_session_options *options = &session->settings.options;
    struct tarn_executor *executor = tarn_region_take(&session->region, 1, sizeof *executor);
    if (!executor) return tarn_error_no_memory(error);
    executor->session = session;
    executor->program = session->program;
    enum tarn_status status = tarn_queues_init(&executor->queues, session, error);
    bool captures = options->capture && executor->program->steps_count > 0;
    if (status == TARN_OK && captures)
        status = tarn_capture_init(&executor->capture, &executor->queues,
                                   options->unroll > 0 ? options->unroll : 1, error);
    executor->around.marks = &executor->marks;
    executor->queue_depth = tarn_device_queue_depth(session->device.table);
    if (status == TARN_OK) status = create_marks(executor, options->depth, error);
    if (status != TARN_OK) release_executor(executor);
    *result = status != TARN_OK ? NULL : executor;
    return status;
}

const struct tarn_executor_table tarn_executor_queues = {
    .create = executor_create,
    .rebind = executor_rebind,
    .follow = executor_follow,
    .surround = executor_surround,
    .submit = executor_submit,
    .wait = executor_wait,
    .query = executor_query,
    .cancel = executor_cancel,
    .describe = executor_describe,
    .destroy = executor_destroy,
};
