/* Orders the iterations of a submit between events of other software:
 *
 *     caller's queue   ── before ─┬─────────────────────────────────────────────┬─► after
 *     streams                     └─► passed ─► iterations ─► mark ─┬─────────────┘
 *     joint                                                        └─► records of the caller's
 * events
 *
 * One stream records `passed` after its waits. After that, all streams wait only for work of the
 * session, which proceeds without the caller. Before that, a call that waits for room may wait for
 * ever. No stream waits for the end of the other streams: the caller's queue does, or a queue of
 * the session that does nothing else. If only one stream has marks, it waits for itself. Cost: one
 * call of the device for each event and stream; queue and events are made once. */
#include "around.h"

#include <string.h>

#include "runtime/state/failure.h"

static const struct tarn_device *device_of(const struct tarn_queues_around *around)
{
    return &around->marks->queues->device;
}

static void *queue_of(const struct tarn_queues_around *around, uint32_t stream)
{
    return around->marks->queues->queues[stream];
}

static uint32_t streams_count(const struct tarn_queues_around *around)
{
    return around->marks->queues->session->program->streams_count;
}

/* TARN_OK for code 0. */
static enum tarn_status status_of(const struct tarn_queues_around *around, const char *what,
                                  int code, struct tarn_error *error)
{
    return tarn_session_status(around->marks->queues->session, *device_of(around), what, code,
                               error);
}

/* ---- Before ---- */

static int make_event(const struct tarn_queues_around *around, void **event)
{
    if (*event) return 0;
    int code = device_of(around)->table->event_create(device_of(around)->self, event);
    if (code) *event = NULL;
    return code;
}

static int wait_for_all(const struct tarn_queues_around *around, void *queue)
{
    const struct tarn_device *device = device_of(around);
    int code = around->door && around->asked->queue
                   ? device->table->event_wait(device->self, around->door, queue)
                   : 0;
    for (size_t i = 0; i < around->asked->waits_count && !code; i++)
        code = device->table->event_wait(device->self, around->asked->waits[i].event, queue);
    return code;
}

/* All streams wait for the same events, so one stream records for all. */
static int record_passed(struct tarn_queues_around *around)
{
    const struct tarn_device *device = device_of(around);
    int code = make_event(around, &around->passed);
    for (uint32_t s = 0; s < streams_count(around) && !code; s++) {
        if (!tarn_marks_has(around->marks, s)) continue;
        code = device->table->event_record(device->self, around->passed, queue_of(around, s));
        around->is_closed = !code;
        break;
    }
    return code;
}

int tarn_around_look_before(struct tarn_queues_around *around)
{
    const struct tarn_device *device = device_of(around);
    bool has_passed = true;
    int code = 0;
    if (around->is_closed)
        code = device->table->event_query(device->self, around->passed, &has_passed);
    if (!code) around->is_closed = !has_passed;
    return code;
}

enum tarn_status tarn_around_enter(struct tarn_queues_around *around, struct tarn_error *error)
{
    if (!around->asked) return TARN_OK;
    const struct tarn_device *device = device_of(around);
    int code = 0;
    tarn_session_enqueues(around->marks->queues->session);
    if (around->asked->queue) code = make_event(around, &around->door);
    if (!code && around->asked->queue)
        code = device->table->event_record(device->self, around->door, around->asked->queue);
    for (uint32_t s = 0; s < streams_count(around) && !code; s++)
        if (tarn_marks_has(around->marks, s)) code = wait_for_all(around, queue_of(around, s));
    if (!code) code = record_passed(around);
    return status_of(around, "waiting for the caller's work", code, error);
}

/* ---- Behind ---- */

static int make_joint(struct tarn_queues_around *around)
{
    const struct tarn_device *device = device_of(around);
    struct tarn_queue_info info = {.name = "joint"};
    if (around->joint) return 0;
    int code = device->table->queue_create(device->self, &info, &around->joint);
    if (code) around->joint = NULL;
    return code;
}

static int wait_for_mark(const struct tarn_queues_around *around, void *queue)
{
    const struct tarn_device *device = device_of(around);
    const struct tarn_mark *mark = tarn_marks_last(around->marks);
    int code = 0;
    for (uint32_t s = 0; s < streams_count(around) && !code; s++)
        if (mark->events[s]) code = device->table->event_wait(device->self, mark->events[s], queue);
    return code;
}

static int record_signals(const struct tarn_queues_around *around, void *queue)
{
    const struct tarn_device *device = device_of(around);
    int code = 0;
    for (size_t i = 0; i < around->asked->signals_count && !code; i++)
        code = device->table->event_record(device->self, around->asked->signals[i].event, queue);
    return code;
}

/* The only stream that has marks, or TARN_NONE: there are several. */
static uint32_t find_only(const struct tarn_queues_around *around)
{
    uint32_t found = TARN_NONE;
    for (uint32_t s = 0; s < streams_count(around); s++) {
        if (!tarn_marks_has(around->marks, s)) continue;
        if (found != TARN_NONE) return TARN_NONE;
        found = s;
    }
    return found;
}

static int signal_at_joint(struct tarn_queues_around *around)
{
    const struct tarn_device *device = device_of(around);
    int code = make_joint(around);
    if (!code) code = wait_for_mark(around, around->joint);
    if (!code) code = record_signals(around, around->joint);
    if (!code) code = make_event(around, &around->end);
    if (!code) code = device->table->event_record(device->self, around->end, around->joint);
    return code;
}

enum tarn_status tarn_around_leave(struct tarn_queues_around *around, struct tarn_error *error)
{
    if (!around->asked) return TARN_OK;
    uint32_t only = find_only(around);
    void *queue = around->asked->queue;
    int code = queue ? wait_for_mark(around, queue) : 0;
    if (!code && around->asked->signals_count > 0) {
        if (queue)
            code = record_signals(around, queue);
        else if (only != TARN_NONE)
            code = record_signals(around, queue_of(around, only));
        else
            code = signal_at_joint(around);
    }
    return status_of(around, "telling the caller's queue or events", code, error);
}

int tarn_around_look(const struct tarn_queues_around *around, bool *is_over)
{
    const struct tarn_device *device = device_of(around);
    *is_over = true;
    return around->end ? device->table->event_query(device->self, around->end, is_over) : 0;
}

void tarn_around_finish(struct tarn_queues_around *around)
{
    bool is_used = around->door || around->end || around->joint || around->passed;
    if (!is_used) return; /* perhaps no queues either */
    const struct tarn_device *device = device_of(around);
    if (around->door) device->table->event_destroy(device->self, around->door);
    if (around->end) device->table->event_destroy(device->self, around->end);
    if (around->passed) device->table->event_destroy(device->self, around->passed);
    if (around->joint) device->table->queue_destroy(device->self, around->joint);
    memset(around, 0, sizeof *around);
}
