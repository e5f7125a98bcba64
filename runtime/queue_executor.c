/* The executor of devices with queues and events: one queue per stream, everything enqueued from
 * the caller's thread in one topological order, so that no wait names an event before its record.
 *
 *     for each iteration, for each step in order:   event_wait ...   kernel   event_record
 *
 * A recorded step has two events, for even and for odd iterations: a wait on the previous iteration
 * must not see this iteration's record when the awaited step comes first in the order. Every submit
 * ends with a mark, one event per queue; waiting for a ticket polls the oldest mark that covers it.
 * The first failure stops the enqueueing; memory that a queue may still touch is never given back.
 * Source: DESIGN.md, section 5. Cost: one call per wait, launch and record; nothing allocated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../streams/graph/report.h"
#include "event_count.h"
#include "session.h"

#define GRACE_NS 100000000 /* after a deadline, how long destroying waits for the queues */
#define PAUSE_NS 2000      /* between polls at first; doubles up to ... */
#define PAUSE_MAX_NS 500000

enum { MARKS = 8 };

/* The ends of all queues when iterations up to `target` were enqueued. */
struct mark {
    uint64_t target;
    void **events; /* by stream; NULL for streams without steps */
};

struct tarn_executor {
    struct tarn_session *session;
    const struct tarn_program *program;
    const struct tarn_device_table *table;
    void *self;       /* the device's */
    void **queues;    /* by stream; NULL for streams without steps */
    void **events[2]; /* by step, for even and odd iterations; NULL where nobody waits */
    struct mark marks[MARKS];
    uint32_t marks_count; /* made since the start; the last MARKS are kept */
    uint64_t enqueued;    /* iterations */
    bool overdue;         /* a deadline passed: the queues may never end */
    bool poisoned;        /* the device answers nothing any more */
};

/* ---- Errors ---- */

static enum tarn_status device_failed(struct tarn_executor *executor, const char *what, uint32_t op,
                                      uint64_t iteration, int code, struct tarn_error *error)
{
    const struct tarn_graph *graph = executor->session->graph;
    executor->poisoned |= executor->table->error_class(executor->self, code) == TARN_ERROR_POISONED;
    if (error && error->status == TARN_OK) {
        error->device_code = code;
        error->op = op;
    }
    return tarn_error_set(error, TARN_DEVICE, "%s, %s, iteration %llu: %s failed with code %d (%s)",
                          tarn_stream_label(graph, graph->ops[op].stream).text,
                          tarn_op_label(graph, op).text, (unsigned long long)iteration, what, code,
                          executor->table->error_text(executor->self, code));
}

/* ---- Enqueueing ---- */

static int enqueue_waits(struct tarn_executor *executor, const struct tarn_program_step *step,
                         uint64_t iteration)
{
    const struct tarn_program *program = executor->program;
    int code = 0;
    for (uint32_t i = step->waits_begin; i < step->waits_end && !code; i++) {
        const struct tarn_program_wait *wait = &program->waits[i];
        if (iteration < wait->previous) continue;
        uint32_t on = program->begin[wait->stream] + wait->place;
        void *event = executor->events[(iteration - wait->previous) & 1][on];
        code = executor->table->event_wait(executor->self, event, executor->queues[step->stream]);
    }
    return code;
}

static enum tarn_status enqueue_step(struct tarn_executor *executor, uint32_t index,
                                     uint64_t iteration, struct tarn_error *error)
{
    const struct tarn_program_step *step = &executor->program->steps[index];
    int code = enqueue_waits(executor, step, iteration);
    if (code)
        return device_failed(executor, "waiting for an event", step->op, iteration, code, error);
    code = tarn_session_launch(executor->session, step->op, iteration);
    if (code)
        return tarn_session_kernel_failed(executor->session, step->op, iteration, code, error);
    if (!step->record) return TARN_OK;
    code = executor->table->event_record(executor->self, executor->events[iteration & 1][index],
                                         executor->queues[step->stream]);
    return code ? device_failed(executor, "recording an event", step->op, iteration, code, error)
                : TARN_OK;
}

static uint32_t last_op(const struct tarn_executor *executor, uint32_t stream)
{
    return executor->program->steps[executor->program->begin[stream + 1] - 1].op;
}

static enum tarn_status make_mark(struct tarn_executor *executor, struct tarn_error *error)
{
    struct mark *mark = &executor->marks[executor->marks_count++ % MARKS];
    mark->target = executor->enqueued;
    for (uint32_t s = 0; s < executor->program->streams_count; s++) {
        if (!executor->queues[s]) continue;
        int code =
            executor->table->event_record(executor->self, mark->events[s], executor->queues[s]);
        if (code)
            return device_failed(executor, "recording the end of a submit", last_op(executor, s),
                                 executor->enqueued, code, error);
    }
    return TARN_OK;
}

static enum tarn_status executor_submit(struct tarn_executor *executor, uint64_t target,
                                        struct tarn_error *error)
{
    for (; executor->enqueued < target; executor->enqueued++) {
        for (uint32_t i = 0; i < executor->program->steps_count; i++) {
            enum tarn_status status =
                enqueue_step(executor, executor->program->order[i], executor->enqueued, error);
            if (status) return status;
        }
    }
    return make_mark(executor, error);
}

/* ---- Waiting ---- */

static const struct mark *find_mark(const struct tarn_executor *executor, uint64_t target)
{
    uint32_t oldest = executor->marks_count > MARKS ? executor->marks_count - MARKS : 0;
    while (executor->marks[oldest % MARKS].target < target) oldest++;
    return &executor->marks[oldest % MARKS];
}

/* *stream: the first whose queue has not reached the mark, or streams_count when all have. */
static enum tarn_status query_mark(struct tarn_executor *executor, const struct mark *mark,
                                   uint32_t *stream, struct tarn_error *error)
{
    for (*stream = 0; *stream < executor->program->streams_count; ++*stream) {
        bool done = true;
        int code = 0;
        if (executor->queues[*stream])
            code = executor->table->event_query(executor->self, mark->events[*stream], &done);
        if (code)
            return device_failed(executor, "the device's work", last_op(executor, *stream),
                                 mark->target - 1, code, error);
        if (!done) break;
    }
    return TARN_OK;
}

/* Polls until all queues have reached the mark or the time is up (then *stream says which has not).
 */
static enum tarn_status poll_mark(struct tarn_executor *executor, const struct mark *mark,
                                  uint64_t timeout_ns, uint32_t *stream, struct tarn_error *error)
{
    uint64_t began = tarn_now_ns(), pause_ns = PAUSE_NS;
    for (;;) {
        enum tarn_status status = query_mark(executor, mark, stream, error);
        if (status || *stream == executor->program->streams_count) return status;
        uint64_t spent_ns = tarn_now_ns() - began;
        if (spent_ns >= timeout_ns) return TARN_DEADLINE;
        if (pause_ns > timeout_ns - spent_ns) pause_ns = timeout_ns - spent_ns;
        nanosleep(&(struct timespec){.tv_nsec = (long)pause_ns}, NULL);
        if (pause_ns < PAUSE_MAX_NS) pause_ns *= 2;
    }
}

static bool is_past(struct tarn_executor *executor, void *event)
{
    bool done = false;
    return executor->table->event_query(executor->self, event, &done) == 0 && done;
}

/* '; stream 0 "compute" has not passed op 7 "relu" of iteration 3': the first recorded step of the
 * last iteration that its queue has not reached, else its end. */
static int describe(struct tarn_executor *executor, uint32_t s, bool has_finished, char *text,
                    size_t size)
{
    const struct tarn_program *program = executor->program;
    const struct tarn_graph *graph = executor->session->graph;
    struct tarn_label name = tarn_stream_label(graph, s);
    if (has_finished) return snprintf(text, size, "; %s has finished", name.text);
    uint64_t last = executor->enqueued - 1;
    uint32_t op = last_op(executor, s);
    for (uint32_t i = program->begin[s]; i < program->begin[s + 1]; i++) {
        void *event = executor->events[last & 1][i];
        if (!event || is_past(executor, event)) continue;
        op = program->steps[i].op;
        break;
    }
    return snprintf(text, size, "; %s has not passed %s of iteration %llu", name.text,
                    tarn_op_label(graph, op).text, (unsigned long long)last);
}

/* Stuck streams first. */
static void report_deadline(struct tarn_executor *executor, const struct mark *mark,
                            uint64_t timeout_ns, struct tarn_error *error)
{
    char text[sizeof error->text];
    size_t used =
        (size_t)snprintf(text, sizeof text, "not finished after %.3f s", (double)timeout_ns * 1e-9);
    for (int finished = 0; finished < 2; finished++) {
        for (uint32_t s = 0; s < executor->program->streams_count && used < sizeof text; s++) {
            if (!executor->queues[s] || is_past(executor, mark->events[s]) != finished) continue;
            used += (size_t)describe(executor, s, finished, text + used, sizeof text - used);
        }
    }
    if (used >= sizeof text) memcpy(text + sizeof text - sizeof "...", "...", sizeof "...");
    tarn_error_set(error, TARN_DEADLINE, "%s", text);
}

static enum tarn_status executor_wait(struct tarn_executor *executor, uint64_t target,
                                      uint64_t timeout_ns, struct tarn_error *error)
{
    const struct mark *mark = find_mark(executor, target);
    uint32_t stream;
    enum tarn_status status = poll_mark(executor, mark, timeout_ns, &stream, error);
    if (status != TARN_DEADLINE) return status;
    executor->overdue = true;
    report_deadline(executor, mark, timeout_ns, error);
    return TARN_DEADLINE;
}

/* ---- Creation and destruction ---- */

static void destroy_events(struct tarn_executor *executor, void **events, uint32_t count)
{
    for (uint32_t i = 0; events && i < count; i++) {
        if (events[i]) executor->table->event_destroy(executor->self, events[i]);
    }
    free(events);
}

static void release_executor(struct tarn_executor *executor)
{
    uint32_t streams_count = executor->program->streams_count;
    for (uint32_t parity = 0; parity < 2; parity++)
        destroy_events(executor, executor->events[parity], executor->program->steps_count);
    for (uint32_t i = 0; i < MARKS; i++)
        destroy_events(executor, executor->marks[i].events, streams_count);
    for (uint32_t s = 0; executor->queues && s < streams_count; s++) {
        if (executor->queues[s])
            executor->table->queue_destroy(executor->self, executor->queues[s]);
    }
    free(executor->queues);
    free(executor);
}

/* Work that is enqueued cannot be taken back: waits for all of it. */
static bool executor_destroy(struct tarn_executor *executor)
{
    uint32_t stream;
    uint64_t timeout_ns = executor->overdue ? GRACE_NS : UINT64_MAX;
    if (executor->poisoned || make_mark(executor, NULL) != TARN_OK) return false;
    const struct mark *last = &executor->marks[(executor->marks_count - 1) % MARKS];
    if (poll_mark(executor, last, timeout_ns, &stream, NULL) != TARN_OK) return false;
    release_executor(executor);
    return true;
}

static int create_queues(struct tarn_executor *executor)
{
    const struct tarn_graph *graph = executor->session->graph;
    for (uint32_t i = 0; i < executor->program->steps_count; i++) {
        const struct tarn_program_step *step = &executor->program->steps[i];
        void **queue = &executor->queues[step->stream];
        int code =
            *queue
                ? 0
                : executor->table->queue_create(
                      executor->self,
                      &(struct tarn_queue_info){.name = graph->streams[step->stream].name}, queue);
        if (code) return code;
        executor->session->calls[step->op].queue = *queue;
    }
    return 0;
}

static int create_events(struct tarn_executor *executor)
{
    int code = 0;
    for (uint32_t i = 0; i < executor->program->steps_count && !code; i++) {
        if (!executor->program->steps[i].record) continue;
        code = executor->table->event_create(executor->self, &executor->events[0][i]);
        if (!code) code = executor->table->event_create(executor->self, &executor->events[1][i]);
    }
    for (uint32_t i = 0; i < MARKS; i++) {
        for (uint32_t s = 0; s < executor->program->streams_count && !code; s++) {
            if (executor->queues[s])
                code = executor->table->event_create(executor->self, &executor->marks[i].events[s]);
        }
    }
    return code;
}

static bool allocate_executor(struct tarn_executor *executor)
{
    size_t streams_count = (size_t)executor->program->streams_count + 1;
    size_t steps_count = (size_t)executor->program->steps_count + 1;
    executor->queues = calloc(streams_count, sizeof(void *));
    executor->events[0] = calloc(steps_count, sizeof(void *));
    executor->events[1] = calloc(steps_count, sizeof(void *));
    bool is_complete = executor->queues && executor->events[0] && executor->events[1];
    for (uint32_t i = 0; i < MARKS; i++) {
        executor->marks[i].events = calloc(streams_count, sizeof(void *));
        is_complete = is_complete && executor->marks[i].events;
    }
    return is_complete;
}

static enum tarn_status executor_create(struct tarn_session *session,
                                        const struct tarn_session_options *options,
                                        struct tarn_executor **result, struct tarn_error *error)
{
    (void)options; /* kernels only enqueue: none blocks */
    struct tarn_executor *executor = calloc(1, sizeof *executor);
    if (!executor) return tarn_error_no_memory(error);
    executor->session = session;
    executor->program = &session->program;
    executor->table = session->device.table;
    executor->self = session->device.self;
    if (!allocate_executor(executor)) {
        release_executor(executor);
        return tarn_error_no_memory(error);
    }
    int code = create_queues(executor);
    if (!code) code = create_events(executor);
    if (!code) {
        *result = executor;
        return TARN_OK;
    }
    if (error && error->status == TARN_OK) error->device_code = code;
    tarn_error_set(error, TARN_DEVICE,
                   "device '%s': creating queues and events failed with code %d (%s)",
                   executor->table->name, code, executor->table->error_text(executor->self, code));
    release_executor(executor);
    return TARN_DEVICE;
}

const struct tarn_executor_table tarn_executor_queues = {
    .create = executor_create,
    .submit = executor_submit,
    .wait = executor_wait,
    .destroy = executor_destroy,
};
