/* The thread of a mixed session that enqueues for all devices: it drives the lanes (lane.h) of all
 * device streams one after another, sleeps on the executor's event count while nothing is on its
 * way, and sleeps for short times between looks at events while something is. Devices are called
 * from this thread alone as long as it runs; it leaves as soon as the executor is told to quit.
 * Source: docs/how-it-works.md, "Executors". Cost: O(lanes) per round; creation O(steps + waits).
 */
#include <assert.h>
#include <string.h>
#include <time.h>

#include "lane.h"
#include "runtime/state/failure.h"
#include "streams/base/error.h"

#define NAP_NS 20000 /* between looks at events while devices work */

/* ---- The thread ---- */

/* A lane whose device has not ended yet, or NULL. */
static const struct tarn_lane *find_under_way(const struct tarn_enqueuer *enqueuer)
{
    for (uint32_t i = 0; i < enqueuer->lanes_count; i++) {
        const struct tarn_lane *lane = &enqueuer->lanes[i];
        if (atomic_load(&enqueuer->executor->streams[lane->stream].claimed)) return lane;
    }
    return NULL;
}

static void end_lanes(const struct tarn_enqueuer *enqueuer)
{
    for (uint32_t i = 0; i < enqueuer->lanes_count; i++)
        tarn_lane_end(enqueuer, &enqueuer->lanes[i]);
}

static bool work_once(const struct tarn_enqueuer *enqueuer)
{
    bool any = false;
    for (uint32_t i = 0; i < enqueuer->lanes_count; i++) {
        struct tarn_lane *lane = &enqueuer->lanes[i];
        any |= tarn_lane_advance(enqueuer, lane);
        any |= tarn_lane_settle(enqueuer, lane);
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
    while (!atomic_load(&executor->quit)) {
        unsigned seen = tarn_event_count_read(&executor->events);
        if (!tarn_is_running(executor))
            end_lanes(enqueuer);
        else if (work_once(enqueuer))
            continue;
        bool naps = find_under_way(enqueuer) && !atomic_load(&executor->session->poisoned);
        if (!atomic_load(&executor->quit))
            tarn_event_count_sleep(&executor->events, seen, TARN_BLOCKING,
                                   naps ? tarn_now_ns() + NAP_NS : UINT64_MAX);
    }
    tarn_executor_leave(executor);
    return NULL;
}

enum tarn_status tarn_enqueuer_drain(struct tarn_enqueuer *enqueuer, uint64_t deadline_ns,
                                     struct tarn_error *error)
{
    if (!enqueuer) return TARN_OK;
    struct tarn_executor *executor = enqueuer->executor;
    if (enqueuer->started) pthread_join(enqueuer->thread, NULL);
    enqueuer->started = false;
    atomic_store(&executor->is_refused, false);
    for (uint32_t i = 0; i < enqueuer->lanes_count; i++) enqueuer->lanes[i].refusals = 0;
    for (;;) {
        end_lanes(enqueuer);
        const struct tarn_lane *lane = find_under_way(enqueuer);
        if (!lane) return TARN_OK;
        if (atomic_load(&executor->session->poisoned) || atomic_load(&executor->is_refused))
            return tarn_session_lost(lane->queues->device, error);
        if (tarn_now_ns() >= deadline_ns) return TARN_DEADLINE;
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

enum tarn_status tarn_enqueuer_late(const struct tarn_enqueuer *enqueuer, struct tarn_error *error)
{
    const struct tarn_lane *lane = enqueuer ? find_under_way(enqueuer) : NULL;
    bool is_lost = lane && atomic_load(&enqueuer->executor->session->poisoned);
    return is_lost ? tarn_session_lost(lane->queues->device, error) : TARN_DEADLINE;
}

/* ---- Creation and destruction ---- */

/* Marks the steps that others than queues of the same device wait for, and all last steps. */
static void mark_visible(const struct tarn_session *session, bool *marks)
{
    const struct tarn_program *program = session->program;
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
    struct tarn_lane *lane = &enqueuer->lanes[enqueuer->lanes_count++];
    assert(session->settings.streams[s].device < enqueuer->devices_count);
    lane->stream = s;
    lane->steps_count = tarn_steps_of(enqueuer->executor, s);
    lane->queues = &enqueuer->queues[session->settings.streams[s].device];
    lane->visible = tarn_region_take(&enqueuer->executor->session->region, lane->steps_count,
                                     sizeof *lane->visible);
    if (!lane->visible) return tarn_error_no_memory(error);
    for (uint32_t i = 0; i < lane->steps_count; i++) {
        if (marks[session->program->begin[s] + i]) lane->visible[lane->visible_count++] = i;
    }
    enqueuer->lane_of[s] = lane;
    assert(tarn_lane_is_valid(lane));
    const struct tarn_device *device = &lane->queues->device;
    int code = device->table->event_create(device->self, &lane->end);
    if (code) lane->end = NULL;
    return tarn_device_status(*device, "creating an event", code, error);
}

static enum tarn_status open_lanes(struct tarn_enqueuer *enqueuer, const bool *marks,
                                   struct tarn_error *error)
{
    struct tarn_session *session = enqueuer->executor->session;
    enum tarn_status status = TARN_OK;
    for (uint32_t s = 0; s < session->graph->streams_count && !status; s++) {
        uint32_t device = session->settings.streams[s].device;
        if (tarn_device_is_host(session->settings.devices[device])) continue;
        if (tarn_steps_of(enqueuer->executor, s) == 0) continue;
        if (!enqueuer->queues[device].session)
            status = tarn_queues_init(&enqueuer->queues[device], session, device, true, error);
        if (!status) status = open_lane(enqueuer, s, marks, error);
    }
    return status;
}

static enum tarn_status open_all(struct tarn_enqueuer *enqueuer, struct tarn_error *error)
{
    struct tarn_session *session = enqueuer->executor->session;
    struct tarn_region *region = &session->region, scratch = {0};
    uint32_t streams = session->graph->streams_count;
    bool *marks = tarn_region_take(&scratch, session->program->steps_count, sizeof *marks);
    enqueuer->devices_count = session->settings.devices_count;
    enqueuer->queues = tarn_region_take(region, enqueuer->devices_count, sizeof *enqueuer->queues);
    enqueuer->lanes = tarn_region_take(region, streams, sizeof *enqueuer->lanes);
    enqueuer->lane_of = tarn_region_take(region, streams, sizeof *enqueuer->lane_of);
    bool is_complete = marks && enqueuer->queues && enqueuer->lanes && enqueuer->lane_of;
    if (is_complete) mark_visible(session, marks);
    enum tarn_status status =
        is_complete ? open_lanes(enqueuer, marks, error) : tarn_error_no_memory(error);
    tarn_region_finish(&scratch);
    return status;
}

void tarn_enqueuer_destroy(struct tarn_enqueuer *enqueuer)
{
    if (!enqueuer) return;
    for (uint32_t i = 0; enqueuer->lanes && i < enqueuer->lanes_count; i++) {
        struct tarn_lane *lane = &enqueuer->lanes[i];
        const struct tarn_device *device = &lane->queues->device;
        if (lane->end) device->table->event_destroy(device->self, lane->end);
    }
    for (uint32_t i = 0; enqueuer->queues && i < enqueuer->devices_count; i++)
        tarn_queues_finish(&enqueuer->queues[i]);
}

enum tarn_status tarn_enqueuer_create(struct tarn_executor *executor, struct tarn_enqueuer **result,
                                      struct tarn_error *error)
{
    *result = NULL;
    if (!executor->session->settings.is_mixed) return TARN_OK;
    struct tarn_enqueuer *enqueuer =
        tarn_region_take(&executor->session->region, 1, sizeof *enqueuer);
    if (!enqueuer) return tarn_error_no_memory(error);
    enqueuer->executor = executor;
    enum tarn_status status = open_all(enqueuer, error);
    int code = status ? 0 : tarn_executor_enter(executor, &enqueuer->thread, run, enqueuer);
    if (code) status = tarn_error_set(error, TARN_SYSTEM, "no thread: %s", strerror(code));
    enqueuer->started = !status;
    if (!status)
        *result = enqueuer;
    else
        tarn_enqueuer_destroy(enqueuer);
    return status;
}
