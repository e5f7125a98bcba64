/* A device's stream in a mixed session is a lane: its steps are enqueued in order, by one thread
 * for all lanes, as soon as what they wait for allows it:
 *
 *     wait for a stream of the same device    its record must be enqueued; then an event wait
 *     wait for any other stream               that stream's progress must have passed it
 *
 * so one lane may stop before a host step while the others go on. In the other direction a step
 * is visible if the host or another device waits for it, or if it is the last of its stream. The
 * events of visible steps are asked for, in order, and progress is published as the host's workers
 * do it; whoever waits for a device step cannot tell it from a host step.
 *
 *     lane:  [ settled ][ recorded: on its way ][ next step | ... ]      at most two iterations
 *
 * An event is recorded again two iterations later, and only after it was settled. A wait that is
 * enqueued late may then name a later record than it needs: that record was enqueued before the
 * waiting step, so nothing that it depends on can depend on that step, and no deadlock arises.
 * Source: docs/how-it-works.md, "Executors". Cost: one call of the device per wait, launch, record
 * and look. */
#include "lane.h"

#include <assert.h>

#include "streams/base/error.h"

#define TRIES 8u /* of calls after a stop */

/* How many visible steps are before that number of steps. */
static uint64_t visible_before(const struct tarn_lane *lane, uint64_t steps)
{
    uint64_t count = steps / lane->steps_count * lane->visible_count;
    for (uint32_t i = 0; i < lane->visible_count; i++)
        count += lane->visible[i] < steps % lane->steps_count;
    return count;
}

bool tarn_lane_is_valid(const struct tarn_lane *lane)
{
    if (lane->visible_count == 0 || lane->visible[lane->visible_count - 1] + 1 != lane->steps_count)
        return false;
    for (uint32_t i = 1; i < lane->visible_count; i++) {
        if (lane->visible[i - 1] >= lane->visible[i]) return false;
    }
    return lane->settled <= lane->recorded &&
           lane->recorded - lane->settled <= 2 * (uint64_t)lane->visible_count &&
           lane->recorded == visible_before(lane, lane->enqueued);
}

/* ---- May the next step be enqueued? ---- */

/* Is the awaited step in a queue of the same device, where an event can be waited for? */
static const struct tarn_lane *neighbour(const struct tarn_enqueuer *enqueuer,
                                         const struct tarn_lane *lane,
                                         const struct tarn_program_wait *wait)
{
    const struct tarn_lane *other = enqueuer->lane_of[wait->stream];
    return other && other->queues == lane->queues ? other : NULL;
}

static const struct tarn_program_step *next_step(const struct tarn_enqueuer *enqueuer,
                                                 const struct tarn_lane *lane)
{
    const struct tarn_program *program = enqueuer->executor->program;
    return &program->steps[program->begin[lane->stream] + lane->enqueued % lane->steps_count];
}

static bool is_visible(const struct tarn_lane *lane)
{
    return lane->visible[lane->recorded % lane->visible_count] ==
           lane->enqueued % lane->steps_count;
}

static bool may_enqueue(const struct tarn_enqueuer *enqueuer, const struct tarn_lane *lane)
{
    struct tarn_executor *executor = enqueuer->executor;
    const struct tarn_program_step *step = next_step(enqueuer, lane);
    uint64_t iteration = lane->enqueued / lane->steps_count;
    if (iteration >= atomic_load(&executor->target) || !tarn_is_running(executor)) return false;
    bool has_room = lane->recorded - lane->settled < 2 * (uint64_t)lane->visible_count;
    if (is_visible(lane) && !has_room) return false;
    for (uint32_t i = step->waits_begin; i < step->waits_end; i++) {
        const struct tarn_program_wait *wait = &executor->program->waits[i];
        const struct tarn_lane *other = neighbour(enqueuer, lane, wait);
        int64_t count = tarn_awaited_count(executor, wait, iteration);
        bool is_met = other ? (int64_t)other->enqueued >= count
                            : tarn_has_reached(executor, wait->stream, count);
        if (!is_met) return false;
    }
    return true;
}

/* ---- Enqueueing ---- */

static enum tarn_status enqueue_step(const struct tarn_enqueuer *enqueuer, struct tarn_lane *lane,
                                     struct tarn_error *error)
{
    struct tarn_executor *executor = enqueuer->executor;
    const struct tarn_program_step *step = next_step(enqueuer, lane);
    uint64_t iteration = lane->enqueued / lane->steps_count;
    uint32_t index = (uint32_t)(step - executor->program->steps);
    enum tarn_status status = TARN_OK;
    for (uint32_t i = step->waits_begin; i < step->waits_end && !status; i++) {
        const struct tarn_program_wait *wait = &executor->program->waits[i];
        int64_t count = tarn_awaited_count(executor, wait, iteration);
        if (!neighbour(enqueuer, lane, wait)) continue;
        if (tarn_has_reached(executor, wait->stream, count)) continue;
        status = tarn_queues_wait(lane->queues, step, wait, iteration, error);
    }
    if (!status) status = tarn_queues_launch(lane->queues, index, iteration, error);
    if (!status) status = tarn_queues_record(lane->queues, index, iteration, error);
    return status;
}

/* Where the lane is, for whoever asks: the visible step that is on its way, else the next one. */
static void tell_position(const struct tarn_enqueuer *enqueuer, const struct tarn_lane *lane)
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

bool tarn_lane_advance(const struct tarn_enqueuer *enqueuer, struct tarn_lane *lane)
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
    assert(tarn_lane_is_valid(lane));
    return any;
}

/* ---- Progress ---- */

static void publish(const struct tarn_enqueuer *enqueuer, const struct tarn_lane *lane)
{
    struct tarn_executor *executor = enqueuer->executor;
    assert(lane->settled > 0);
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

static enum tarn_status look_at(const struct tarn_lane *lane, void *event, bool *done,
                                struct tarn_error *error)
{
    const struct tarn_device *device = &lane->queues->device;
    int code = device->table->event_query(device->self, event, done);
    if (code)
        return tarn_queues_status(lane->queues, "the device's work",
                                  tarn_queues_last_op(lane->queues, lane->stream),
                                  lane->settled / lane->visible_count, code, error);
    return tarn_queues_failure(lane->queues, error);
}

bool tarn_lane_settle(const struct tarn_enqueuer *enqueuer, struct tarn_lane *lane)
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

/* Nobody waits any longer for a device that does not even take the last event, however often it is
 * asked. */
static void note_refusal(struct tarn_executor *executor, struct tarn_lane *lane)
{
    if (++lane->refusals < TRIES) return;
    atomic_store(&executor->is_refused, true);
    tarn_event_count_wake(&executor->events, TARN_WAITER, UINT32_MAX);
}

void tarn_lane_end(const struct tarn_enqueuer *enqueuer, struct tarn_lane *lane)
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
