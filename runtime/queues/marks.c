/* A ring of marks. A mark is an event for every stream, recorded after a batch of iterations and
 * queried in the order of streams. Cost: one call of the device for each stream of a mark. */
#include "marks.h"

#include <string.h>

#include "runtime/state/failure.h"
#include "streams/base/error.h"

static uint32_t streams_count(const struct tarn_marks *marks)
{
    return marks->queues->session->program->streams_count;
}

static struct tarn_mark *mark_at(const struct tarn_marks *marks, uint64_t number)
{
    return &marks->ring[number % marks->count];
}

/* TARN_OK for code 0. */
static enum tarn_status status_of(const struct tarn_marks *marks, const char *what, uint32_t stream,
                                  uint64_t target, int code, struct tarn_error *error)
{
    return tarn_queues_status(marks->queues, what, tarn_queues_last_op(marks->queues, stream),
                              target - 1, code, error);
}

enum tarn_status tarn_marks_make(struct tarn_marks *marks, uint64_t target,
                                 struct tarn_error *error)
{
    const struct tarn_device *device = &marks->queues->device;
    struct tarn_mark *mark = mark_at(marks, marks->made);
    assert(tarn_marks_have_room(marks));
    mark->target = target;
    mark->reached = 0;
    for (uint32_t s = 0; s < streams_count(marks); s++) {
        if (!mark->events[s]) continue;
        int code =
            device->table->event_record(device->self, mark->events[s], marks->queues->queues[s]);
        if (code)
            return status_of(marks, "recording the end of an iteration", s, target, code, error);
    }
    marks->made++;
    return TARN_OK;
}

/* Skips the streams that have reached the mark; mark->reached counts them. */
static enum tarn_status ask(const struct tarn_marks *marks, struct tarn_mark *mark,
                            struct tarn_error *error)
{
    const struct tarn_device *device = &marks->queues->device;
    for (; mark->reached < streams_count(marks); mark->reached++) {
        uint32_t s = mark->reached;
        bool done = true;
        int code = 0;
        if (mark->events[s])
            code = device->table->event_query(device->self, mark->events[s], &done);
        if (code) return status_of(marks, "the device's work", s, mark->target, code, error);
        if (!done) break;
    }
    return TARN_OK;
}

enum tarn_status tarn_marks_look(struct tarn_marks *marks, uint64_t *finished,
                                 struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    while (marks->reached < marks->made && status == TARN_OK) {
        struct tarn_mark *mark = mark_at(marks, marks->reached);
        status = ask(marks, mark, error);
        if (mark->reached < streams_count(marks)) break;
        assert(*finished <= mark->target);
        *finished = mark->target;
        marks->reached++;
    }
    return status;
}

enum tarn_status tarn_marks_follow(const struct tarn_marks *marks, const struct tarn_marks *others,
                                   struct tarn_error *error)
{
    const struct tarn_device *device = &marks->queues->device;
    if (others->made == 0) return TARN_OK;
    const struct tarn_mark *mark = tarn_marks_last(others);
    tarn_session_enqueues(marks->queues->session);
    for (uint32_t s = 0; s < streams_count(marks); s++) {
        if (!tarn_marks_has(marks, s)) continue;
        for (uint32_t t = 0; t < streams_count(others); t++) {
            if (!mark->events[t]) continue;
            int code =
                device->table->event_wait(device->self, mark->events[t], marks->queues->queues[s]);
            if (code) return status_of(marks, "waiting for another session", s, 1, code, error);
        }
    }
    return TARN_OK;
}

/* ---- Life ---- */

static enum tarn_status create_mark(struct tarn_marks *marks, struct tarn_mark *mark,
                                    uint32_t origin, struct tarn_error *error)
{
    const struct tarn_device *device = &marks->queues->device;
    struct tarn_region *region = &marks->queues->session->region;
    mark->events = tarn_region_take(region, streams_count(marks), sizeof *mark->events);
    if (!mark->events) return tarn_error_no_memory(error);
    for (uint32_t s = 0; s < streams_count(marks); s++) {
        if (!marks->queues->queues[s] || (origin != TARN_NONE && s != origin)) continue;
        int code = device->table->event_create(device->self, &mark->events[s]);
        if (!code) continue;
        mark->events[s] = NULL;
        return tarn_device_status(*device, "creating an event", code, error);
    }
    return TARN_OK;
}

enum tarn_status tarn_marks_init(struct tarn_marks *marks, struct tarn_queues *queues,
                                 uint32_t origin, uint32_t count, struct tarn_error *error)
{
    *marks = (struct tarn_marks){.queues = queues, .count = count};
    marks->ring = tarn_region_take(&queues->session->region, count, sizeof *marks->ring);
    if (!marks->ring) return tarn_error_no_memory(error);
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < count && status == TARN_OK; i++)
        status = create_mark(marks, &marks->ring[i], origin, error);
    return status;
}

void tarn_marks_finish(struct tarn_marks *marks)
{
    if (!marks->queues) return;
    const struct tarn_device *device = &marks->queues->device;
    for (uint32_t i = 0; marks->ring && i < marks->count; i++) {
        void **events = marks->ring[i].events;
        for (uint32_t s = 0; events && s < streams_count(marks); s++)
            if (events[s]) device->table->event_destroy(device->self, events[s]);
    }
    memset(marks, 0, sizeof *marks);
}
