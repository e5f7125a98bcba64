/* Mixed sessions. A device's stream is a lane: its steps are enqueued in order, by one thread for
 * all lanes, as soon as what they wait for allows it:
 *
 *     wait for a stream of the same device    its record must be enqueued; then an event wait
 *     wait for any other stream               that stream's progress must have passed it
 *
 * so one lane may stop before a host step while the others go on. In the other direction some steps
 * are visible: others than their own device's queues wait for them, or they are the last of their
 * stream. Their events are asked for, in order, and progress is published as the host's workers do
 * it; whoever waits for a device step cannot tell it from a host step.
 *
 *     lane:  [ settled ][ recorded: on its way ][ next step | ... ]      at most two iterations
 *
 * An event is recorded again two iterations later, and only after it was settled. A wait that is
 * enqueued late may then name a later record than it needs: that record was enqueued before the
 * waiting step, so nothing that it depends on can depend on that step, and no deadlock arises.
 * Source: DESIGN.md, section 5. Cost: one call of the device per wait, launch, record and look. */
#include "enqueuer.h"

#include <stdlib.h>
#include <string.h>

#include "../streams/graph/error.h"
#include "host_executor.h"
#include "queues.h"

#define TRIES 8u     /* of calls after a stop */
#define NAP_NS 20000 /* between looks at events while devices work */

struct lane {
    struct tarn_queues *queues;
    uint32_t stream;
    uint32_t steps_count;
    uint64_t enqueued; /* steps, since the start */
    uint32_t *visible; /* places of visible steps; the last step is one */
    uint32_t visible_count;
    uint64_t recorded, settled; /* of the visible steps, since the start */
    void *end;                  /* event: everything is over, also after an error */
    bool is_ending;
    uint32_t refusals; /* of calls about `end` */
};

struct tarn_enqueuer {
    struct tarn_executor *executor;
    struct tarn_queues *queues; /* by device; without session where there is nothing to enqueue */
    uint32_t devices_count;
    struct lane *lanes;
    uint32_t lanes_count;
    struct lane **lane_of; /* by stream; NULL: the host's */
    atomic_bool given_up;  /* the devices will not end */
    pthread_t thread;
    bool has_thread;
};

/* ---- May the next step be enqueued? ---- */

static int64_t awaited_count(const struct tarn_executor *executor,
                             const struct tarn_program_wait *wait, uint64_t iteration)
{
    int64_t passes = (int64_t)iteration - (int64_t)wait->previous;
    return passes * tarn_steps_of(executor, wait->stream) + wait->place + 1;
}

/* Is the awaited step in a queue of the same device, where an event can be waited for? */
static const struct lane *neighbour(const struct tarn_enqueuer *enqueuer, const struct lane *lane,
                                    const struct tarn_program_wait *wait)
{
    const struct lane *other = enqueuer->lane_of[wait->stream];
    return other && other->queues == lane->queues ? other : NULL;
}

static const struct tarn_program_step *next_step(const struct tarn_enqueuer *enqueuer,
                                                 const struct lane *lane)
{
    const struct tarn_program *program = enqueuer->executor->program;
    return &program->steps[program->begin[lane->stream] + lane->enqueued % lane->steps_count];
}

static bool is_visible(const struct lane *lane)
{
    return lane->visible[lane->recorded % lane->visible_count] ==
           lane->enqueued % lane->steps_count;
}

static bool may_enqueue(const struct tarn_enqueuer *enqueuer, const struct lane *lane)
{
    struct tarn_executor *executor = enqueuer->executor;
    const struct tarn_program_step *step = next_step(enqueuer, lane);
    uint64_t iteration = lane->enqueued / lane->steps_count;
    if (iteration >= atomic_load(&executor->target) || !tarn_is_running(executor)) return false;
    bool has_room = lane->recorded - lane->settled < 2 * (uint64_t)lane->visible_count;
    if (is_visible(lane) && !has_room) return false;
    for (uint32_t i = step->waits_begin; i < step->waits_end; i++) {
        const struct tarn_program_wait *wait = &executor->program->waits[i];
        const struct lane *other = neighbour(enqueuer, lane, wait);
        int64_t count = awaited_count(executor, wait, iteration);
        bool is_met = other ? (int64_t)other->enqueued >= count
                            : tarn_has_reached(executor, wait->stream, count);
        if (!is_met) return false;
    }
    return true;
}

/* ---- Enqueueing ---- */

static enum tarn_status enqueue_step(const struct tarn_enqueuer *enqueuer, struct lane *lane,
                                     struct tarn_error *error)
{
    struct tarn_executor *executor = enqueuer->executor;
    const struct tarn_program_step *step = next_step(enqueuer, lane);
    uint64_t iteration = lane->enqueued / lane->steps_count;
    uint32_t index = (uint32_t)(step - executor->program->steps);
    enum tarn_status status = TARN_OK;
    for (uint32_t i = step->waits_begin; i < step->waits_end && !status; i++) {
        const struct tarn_program_wait *wait = &executor->program->waits[i];
        int64_t count = awaited_count(executor, wait, iteration);
        if (!neighbour(enqueuer, lane, wait)) continue;
        if (tarn_has_reached(executor, wait->stream, count)) continue;
        status = tarn_queues_wait(lane->queues, step, wait, iteration, error);
    }
    if (!status) status = tarn_queues_launch(lane->queues, index, iteration, error);
    if (!status) status = tarn_queues_record(lane->queues, index, iteration, error);
    return status;
}

/* Where the lane is, for whoever asks: the visible step that is on its way, else the next one. */
static void tell_position(const struct tarn_enqueuer *enqueuer, const struct lane *lane)
{
    struct tarn_host_stream *stream = &enqueuer->executor->streams[lane->stream];
    bool under_way = lane->recorded > lane->settled;
    uint64_t place = under_way ? lane->visible[lane->settled % lane->visible_count]
                               : lane->enqueued % lane->steps_count;
    uint64_t iteration =
        under_way ? lane->settled / lane->visible_count : lane->enqueued / lane->steps_count;
    atomic_store_explicit(&stream->place, (uint32_t)place, memory_order_relaxed);
    atomic_store_explicit(&stream->iteration, iteration, memory_order_relaxed);
}

/* Enqueues what it can; true when that was something. */
static bool advance(const struct tarn_enqueuer *enqueuer, struct lane *lane)
{
    struct tarn_executor *executor = enqueuer->executor;
    bool any = false;
    while (may_enqueue(enqueuer, lane)) {
        struct tarn_error error;
        tarn_error_clear(&error);
        atomic_store(&executor->streams[lane->stream].claimed, true);
        enum tarn_status status = enqueue_step(enqueuer, lane, &error);
        if (status) {
            tarn_executor_fail(executor, status, &error);
            return true;
        }
        lane->recorded += is_visible(lane);
        lane->enqueued++;
        any = true;
    }
    if (any) tell_position(enqueuer, lane);
    return any;
}

/* ---- Progress ---- */

static void publish(const struct tarn_enqueuer *enqueuer, const struct lane *lane)
{
    struct tarn_executor *executor = enqueuer->executor;
    uint64_t last = lane->settled - 1, pass = last / lane->visible_count;
    uint32_t place = lane->visible[last % lane->visible_count];
    atomic_store(&executor->streams[lane->stream].progress,
                 (int64_t)(pass * lane->steps_count + place + 1));
    tarn_worker_call(executor);
    uint32_t kinds = executor->blocking_count > 0 ? TARN_BLOCKING : 0;
    bool ends = place + 1 == lane->steps_count;
    if (ends && tarn_have_finished(executor, pass + 1)) kinds |= TARN_WAITER;
    if (kinds) tarn_event_count_wake(&executor->events, kinds, UINT32_MAX);
}

static enum tarn_status look_at(const struct lane *lane, void *event, bool *done,
                                struct tarn_error *error)
{
    const struct tarn_device *device = &lane->queues->device;
    int code = device->table->event_query(device->self, event, done);
    if (code)
        return tarn_queues_failed_call(lane->queues, "the device's work",
                                       tarn_queues_last_op(lane->queues, lane->stream),
                                       lane->settled / lane->visible_count, code, error);
    return tarn_queues_failure(lane->queues, error);
}

/* Looks at the visible steps on their way; true when one has passed. */
static bool settle(const struct tarn_enqueuer *enqueuer, struct lane *lane)
{
    struct tarn_executor *executor = enqueuer->executor;
    uint32_t begin = executor->program->begin[lane->stream];
    bool any = false;
    while (lane->settled < lane->recorded) {
        struct tarn_error error;
        bool done = false;
        uint64_t parity = lane->settled / lane->visible_count & 1;
        uint32_t place = lane->visible[lane->settled % lane->visible_count];
        tarn_error_clear(&error);
        enum tarn_status status =
            look_at(lane, lane->queues->events[parity][begin + place], &done, &error);
        if (status) tarn_executor_fail(executor, status, &error);
        if (status || !done) break;
        lane->settled++;
        any = true;
        publish(enqueuer, lane);
    }
    if (!any) return false;
    tell_position(enqueuer, lane);
    bool idle = lane->settled == lane->recorded && lane->enqueued % lane->steps_count == 0;
    if (idle && tarn_is_running(executor))
        atomic_store(&executor->streams[lane->stream].claimed, false);
    return true;
}

/* ---- Stopping ---- */

/* A device that does not even take the last event, however often it is asked, is lost. */
static void note_refusal(struct tarn_executor *executor, struct lane *lane)
{
    if (++lane->refusals < TRIES) return;
    atomic_store(&executor->session->poisoned, true);
    tarn_event_count_wake(&executor->events, TARN_WAITER, UINT32_MAX);
}

/* After a stop: everything that was enqueued is over once an event behind it is reached. */
static void end_lane(const struct tarn_enqueuer *enqueuer, struct lane *lane)
{
    struct tarn_executor *executor = enqueuer->executor;
    const struct tarn_device *device = &lane->queues->device;
    struct tarn_host_stream *stream = &executor->streams[lane->stream];
    bool done = false;
    if (!atomic_load(&stream->claimed) || atomic_load(&executor->session->poisoned)) return;
    tarn_queues_halt(lane->queues);
    int code = 0;
    if (!lane->is_ending)
        code = device->table->event_record(device->self, lane->end,
                                           lane->queues->queues[lane->stream]);
    lane->is_ending = code == 0;
    if (!code) code = device->table->event_query(device->self, lane->end, &done);
    if (code) note_refusal(executor, lane);
    if (code || !done) return;
    atomic_store(&stream->claimed, false);
    tarn_event_count_wake(&executor->events, TARN_WAITER, UINT32_MAX);
}

static bool is_under_way(const struct tarn_enqueuer *enqueuer)
{
    struct tarn_executor *executor = enqueuer->executor;
    if (atomic_load(&executor->session->poisoned)) return false;
    for (uint32_t i = 0; i < enqueuer->lanes_count; i++) {
        if (atomic_load(&executor->streams[enqueuer->lanes[i].stream].claimed)) return true;
    }
    return false;
}

/* ---- The thread ---- */

static bool work_once(const struct tarn_enqueuer *enqueuer)
{
    bool any = false;
    for (uint32_t i = 0; i < enqueuer->lanes_count; i++) {
        struct lane *lane = &enqueuer->lanes[i];
        if (tarn_is_running(enqueuer->executor)) {
            any |= advance(enqueuer, lane);
            any |= settle(enqueuer, lane);
        } else {
            end_lane(enqueuer, lane);
        }
    }
    return any;
}

/* A device that wants to know its threads is called once on this one before anything else. */
static void enter_devices(const struct tarn_enqueuer *enqueuer)
{
    for (uint32_t i = 0; i < enqueuer->devices_count; i++) {
        const struct tarn_device *device = &enqueuer->queues[i].device;
        struct tarn_memory_limits limits;
        if (enqueuer->queues[i].session) device->table->memory_limits(device->self, &limits);
    }
}

static void *run(void *argument)
{
    struct tarn_enqueuer *enqueuer = argument;
    struct tarn_executor *executor = enqueuer->executor;
    enter_devices(enqueuer);
    for (;;) {
        unsigned seen = tarn_event_count_read(&executor->events);
        if (work_once(enqueuer)) continue;
        bool under_way = is_under_way(enqueuer) && !atomic_load(&enqueuer->given_up);
        if (!under_way && atomic_load(&executor->quit)) return NULL;
        tarn_event_count_sleep(&executor->events, seen, TARN_BLOCKING,
                               under_way ? tarn_now_ns() + NAP_NS : UINT64_MAX);
    }
}

/* ---- Creation and destruction ---- */

static bool is_foreign(const struct tarn_session *session, uint32_t stream)
{
    uint32_t device = session->settings.streams[stream].device;
    return !tarn_device_is_host(session->settings.devices[device]);
}

/* Marks the steps that others than queues of the same device wait for, and all last steps. */
static void mark_visible(const struct tarn_session *session, bool *marks)
{
    const struct tarn_program *program = &session->program;
    const struct tarn_stream_settings *streams = session->settings.streams;
    for (uint32_t i = 0; i < program->steps_count; i++) {
        const struct tarn_program_step *step = &program->steps[i];
        for (uint32_t k = step->waits_begin; k < step->waits_end; k++) {
            const struct tarn_program_wait *wait = &program->waits[k];
            if (streams[wait->stream].device != streams[step->stream].device)
                marks[program->begin[wait->stream] + wait->place] = true;
        }
        if (i + 1 == program->begin[step->stream + 1]) marks[i] = true;
    }
}

static enum tarn_status open_lane(struct tarn_enqueuer *enqueuer, uint32_t s, const bool *marks,
                                  struct tarn_error *error)
{
    const struct tarn_session *session = enqueuer->executor->session;
    struct lane *lane = &enqueuer->lanes[enqueuer->lanes_count++];
    lane->stream = s;
    lane->steps_count = tarn_steps_of(enqueuer->executor, s);
    lane->queues = &enqueuer->queues[session->settings.streams[s].device];
    lane->visible = calloc(lane->steps_count, sizeof *lane->visible);
    if (!lane->visible) return tarn_error_no_memory(error);
    for (uint32_t i = 0; i < lane->steps_count; i++) {
        if (marks[session->program.begin[s] + i]) lane->visible[lane->visible_count++] = i;
    }
    enqueuer->lane_of[s] = lane;
    const struct tarn_device *device = &lane->queues->device;
    int code = device->table->event_create(device->self, &lane->end);
    if (code) lane->end = NULL;
    return code ? tarn_device_failed(*device, "creating an event", code, error) : TARN_OK;
}

static enum tarn_status open_lanes(struct tarn_enqueuer *enqueuer, const bool *marks,
                                   struct tarn_error *error)
{
    struct tarn_session *session = enqueuer->executor->session;
    enum tarn_status status = TARN_OK;
    for (uint32_t s = 0; s < session->graph->streams_count && !status; s++) {
        uint32_t device = session->settings.streams[s].device;
        if (!is_foreign(session, s) || tarn_steps_of(enqueuer->executor, s) == 0) continue;
        if (!enqueuer->queues[device].session)
            status = tarn_queues_init(&enqueuer->queues[device], session, device, true, error);
        if (!status) status = open_lane(enqueuer, s, marks, error);
    }
    return status;
}

static enum tarn_status open_all(struct tarn_enqueuer *enqueuer, struct tarn_error *error)
{
    const struct tarn_session *session = enqueuer->executor->session;
    size_t streams = (size_t)session->graph->streams_count + 1;
    bool *marks = calloc((size_t)session->program.steps_count + 1, sizeof *marks);
    enqueuer->devices_count = session->settings.devices_count;
    enqueuer->queues = calloc(enqueuer->devices_count, sizeof *enqueuer->queues);
    enqueuer->lanes = calloc(streams, sizeof *enqueuer->lanes);
    enqueuer->lane_of = calloc(streams, sizeof *enqueuer->lane_of);
    bool is_complete = marks && enqueuer->queues && enqueuer->lanes && enqueuer->lane_of;
    if (is_complete) mark_visible(session, marks);
    enum tarn_status status =
        is_complete ? open_lanes(enqueuer, marks, error) : tarn_error_no_memory(error);
    free(marks);
    return status;
}

static void release(struct tarn_enqueuer *enqueuer)
{
    for (uint32_t i = 0; enqueuer->lanes && i < enqueuer->lanes_count; i++) {
        struct lane *lane = &enqueuer->lanes[i];
        const struct tarn_device *device = &lane->queues->device;
        if (lane->end) device->table->event_destroy(device->self, lane->end);
        free(lane->visible);
    }
    for (uint32_t i = 0; enqueuer->queues && i < enqueuer->devices_count; i++)
        tarn_queues_finish(&enqueuer->queues[i]);
    free(enqueuer->queues);
    free(enqueuer->lanes);
    free(enqueuer->lane_of);
    free(enqueuer);
}

enum tarn_status tarn_enqueuer_create(struct tarn_executor *executor, struct tarn_enqueuer **result,
                                      struct tarn_error *error)
{
    *result = NULL;
    if (!executor->session->settings.is_mixed) return TARN_OK;
    struct tarn_enqueuer *enqueuer = calloc(1, sizeof *enqueuer);
    if (!enqueuer) return tarn_error_no_memory(error);
    enqueuer->executor = executor;
    enum tarn_status status = open_all(enqueuer, error);
    int code = status ? 0 : pthread_create(&enqueuer->thread, NULL, run, enqueuer);
    if (code) status = tarn_error_set(error, TARN_SYSTEM, "no thread: %s", strerror(code));
    enqueuer->has_thread = !status;
    if (!status)
        *result = enqueuer;
    else
        release(enqueuer);
    return status;
}

void tarn_enqueuer_destroy(struct tarn_enqueuer *enqueuer, bool has_drained)
{
    if (!enqueuer) return;
    if (!has_drained) {
        atomic_store(&enqueuer->given_up, true);
        tarn_event_count_wake(&enqueuer->executor->events, TARN_BLOCKING, UINT32_MAX);
        pthread_detach(enqueuer->thread);
        return;
    }
    pthread_join(enqueuer->thread, NULL);
    release(enqueuer);
}
