/* Capturing a block of iterations:
 *
 *     origin:  ──┬─────── steps ────────┬──►      fork: one event that all other queues wait for
 *     others:    └─────── steps ────────┘         join: one event of each, for which origin waits
 *
 * Inside, every step is enqueued as in direct execution, iteration after iteration; the first
 * iteration waits for no earlier one, as blocks run one after another. So boundary waits apply only
 * inside a block. All calls of a capture come from one thread; none of them allocates, waits or
 * queries. Source: docs/how-it-works.md, "Executors". Cost: a launch is one call of the device. */
#include "capture.h"

#include <assert.h>
#include <string.h>

#include "runtime/state/failure.h"
#include "streams/base/error.h"

static const struct tarn_program *program_of(const struct tarn_capture *capture)
{
    return capture->queues->session->program;
}

static bool takes_part(const struct tarn_capture *capture, uint32_t stream)
{
    return capture->queues->queues[stream] && stream != capture->origin;
}

/* TARN_OK for code 0. */
static enum tarn_status status_of(struct tarn_capture *capture, const char *what,
                                  uint64_t iteration, int code, struct tarn_error *error)
{
    uint32_t op = tarn_queues_last_op(capture->queues, capture->origin);
    return tarn_queues_status(capture->queues, what, op, iteration, code, error);
}

/* ---- Fork, steps, join ---- */

static int fork_streams(struct tarn_capture *capture)
{
    const struct tarn_device *device = &capture->queues->device;
    void **queues = capture->queues->queues;
    int code = device->table->event_record(device->self, capture->fork, queues[capture->origin]);
    for (uint32_t s = 0; s < program_of(capture)->streams_count && !code; s++) {
        if (takes_part(capture, s))
            code = device->table->event_wait(device->self, capture->fork, queues[s]);
    }
    return code;
}

static int join_streams(struct tarn_capture *capture)
{
    const struct tarn_device *device = &capture->queues->device;
    void **queues = capture->queues->queues;
    int code = 0;
    for (uint32_t s = 0; s < program_of(capture)->streams_count && !code; s++) {
        if (!takes_part(capture, s)) continue;
        code = device->table->event_record(device->self, capture->joins[s], queues[s]);
        if (!code)
            code =
                device->table->event_wait(device->self, capture->joins[s], queues[capture->origin]);
    }
    return code;
}

static enum tarn_status record(struct tarn_capture *capture, uint64_t iterations,
                               uint64_t iteration, void **graph, struct tarn_error *error)
{
    const struct tarn_device *device = &capture->queues->device;
    void *origin = capture->queues->queues[capture->origin];
    int code = device->table->capture_begin(device->self, origin);
    enum tarn_status status = status_of(capture, "beginning a capture", iteration, code, error);
    if (status != TARN_OK) return status;
    tarn_session_enqueues(capture->queues->session);
    status = status_of(capture, "forking a capture", iteration, fork_streams(capture), error);
    for (uint64_t k = 0; k < iterations && status == TARN_OK; k++)
        status = tarn_queues_enqueue(capture->queues, k, error);
    if (status == TARN_OK)
        status = status_of(capture, "joining a capture", iteration, join_streams(capture), error);
    void *made = NULL;
    code = device->table->capture_end(device->self, origin, &made);
    if (status == TARN_OK) status = status_of(capture, "ending a capture", iteration, code, error);
    if (status != TARN_OK && !code) device->table->graph_destroy(device->self, made);
    if (status == TARN_OK) *graph = made;
    return status;
}

/* ---- Launching ---- */

enum tarn_status tarn_capture_launch(struct tarn_capture *capture, uint64_t iterations,
                                     uint64_t iteration, struct tarn_error *error)
{
    const struct tarn_device *device = &capture->queues->device;
    void **graph = &capture->graphs[iterations == capture->unroll ? 0 : 1];
    enum tarn_status status = TARN_OK;
    assert(iterations == capture->unroll || iterations == 1);
    if (!*graph) status = record(capture, iterations, iteration, graph, error);
    if (status != TARN_OK) return status;
    int code =
        device->table->graph_launch(device->self, *graph, capture->queues->queues[capture->origin]);
    return status_of(capture, "launching a captured block", iteration, code, error);
}

/* ---- Life ---- */

enum tarn_status tarn_capture_init(struct tarn_capture *capture, struct tarn_queues *queues,
                                   uint32_t unroll, struct tarn_error *error)
{
    const struct tarn_device *device = &queues->device;
    const struct tarn_program *program = queues->session->program;
    *capture = (struct tarn_capture){.queues = queues, .unroll = unroll};
    capture->joins =
        tarn_region_take(&queues->session->region, program->streams_count, sizeof *capture->joins);
    if (!capture->joins) return tarn_error_no_memory(error);
    assert(unroll > 0 && program->steps_count > 0);
    while (!queues->queues[capture->origin]) capture->origin++;
    int code = device->table->event_create(device->self, &capture->fork);
    if (code) capture->fork = NULL;
    for (uint32_t s = 0; s < program->streams_count && !code; s++) {
        if (!takes_part(capture, s)) continue;
        code = device->table->event_create(device->self, &capture->joins[s]);
        if (code) capture->joins[s] = NULL;
    }
    return tarn_device_status(*device, "creating an event", code, error);
}

void tarn_capture_forget(struct tarn_capture *capture)
{
    const struct tarn_device *device = &capture->queues->device;
    for (uint32_t i = 0; i < 2; i++) {
        if (capture->graphs[i]) device->table->graph_destroy(device->self, capture->graphs[i]);
        capture->graphs[i] = NULL;
    }
}

void tarn_capture_finish(struct tarn_capture *capture)
{
    if (!capture->queues) return;
    const struct tarn_device *device = &capture->queues->device;
    tarn_capture_forget(capture);
    if (capture->fork) device->table->event_destroy(device->self, capture->fork);
    for (uint32_t s = 0; capture->joins && s < program_of(capture)->streams_count; s++) {
        if (capture->joins[s]) device->table->event_destroy(device->self, capture->joins[s]);
    }
    memset(capture, 0, sizeof *capture);
}
