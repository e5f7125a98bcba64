/* The flight recorder, and the text of deadline errors. A ring has one writer, which stores a few
 * words and the clock twice per command. A reader may read an entry while it is overwritten; it
 * then reports a mixture of two commands, which is harmless. Nothing is allocated while it records.
 * Cost: two readings of the clock per command. */
#include "flight.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "streams/graph/report.h"
#include "streams/text/text_file.h"

#define COMMANDS_MAX (UINT32_C(1) << 20)

/* ---- Life ---- */

static bool wants_stamps(const struct tarn_session *session)
{
    const struct tarn_session_options *options = &session->settings.options;
    const struct tarn_device_table *table = session->device.table;
    return options->stamps && !options->capture && table->stamp_create &&
           !tarn_session_calls(session, table);
}

static bool allocate(struct tarn_session *session, struct tarn_flight *flight)
{
    struct tarn_region *region = &session->region;
    uint32_t streams_count = session->graph->streams_count;
    flight->rings = tarn_region_take(region, streams_count, sizeof *flight->rings);
    if (!flight->rings) return false;
    flight->streams_count = streams_count;
    for (uint32_t s = 0; s < streams_count; s++) {
        struct tarn_flight_ring *ring = &flight->rings[s];
        ring->entries = tarn_region_take(region, flight->capacity, sizeof *ring->entries);
        if (!ring->entries) return false;
        if (!wants_stamps(session)) continue;
        ring->base = &flight->base;
        ring->stamps = tarn_region_take(region, 2 * (size_t)flight->capacity, sizeof *ring->stamps);
        if (!ring->stamps) return false;
    }
    return true;
}

static int create_stamp(const struct tarn_device *device, void **stamp)
{
    int code = device->table->stamp_create(device->self, stamp);
    if (code) *stamp = NULL;
    return code;
}

static enum tarn_status create_stamps(const struct tarn_session *session,
                                      struct tarn_flight *flight, struct tarn_error *error)
{
    flight->base.device = session->device;
    for (uint32_t s = 0; s < flight->streams_count; s++) {
        const struct tarn_flight_ring *ring = &flight->rings[s];
        if (!ring->stamps) continue;
        int code = 0;
        if (!ring->base->stamp) code = create_stamp(&ring->base->device, &ring->base->stamp);
        for (uint32_t i = 0; i < 2 * flight->capacity && !code; i++)
            code = create_stamp(&ring->base->device, &ring->stamps[i]);
        if (code) return tarn_device_status(ring->base->device, "creating a stamp", code, error);
    }
    return TARN_OK;
}

enum tarn_status tarn_flight_create(struct tarn_session *session, uint32_t commands,
                                    struct tarn_flight **result, struct tarn_error *error)
{
    assert(commands > 0);
    struct tarn_flight *flight = tarn_region_take(&session->region, 1, sizeof *flight);
    if (!flight) return tarn_error_no_memory(error);
    if (commands > COMMANDS_MAX) commands = COMMANDS_MAX;
    for (flight->capacity = 1; flight->capacity < commands;) flight->capacity *= 2;
    enum tarn_status status = allocate(session, flight) ? create_stamps(session, flight, error)
                                                        : tarn_error_no_memory(error);
    assert((flight->capacity & (flight->capacity - 1)) == 0);
    if (status != TARN_OK)
        tarn_flight_destroy(flight);
    else
        *result = flight;
    return status;
}

static void destroy_stamps(struct tarn_flight_ring *ring, uint32_t count)
{
    const struct tarn_device *device = ring->stamps ? &ring->base->device : NULL;
    for (uint32_t i = 0; ring->stamps && i < count; i++)
        if (ring->stamps[i]) device->table->stamp_destroy(device->self, ring->stamps[i]);
}

void tarn_flight_destroy(struct tarn_flight *flight)
{
    if (!flight) return;
    for (uint32_t s = 0; s < flight->streams_count; s++) {
        destroy_stamps(&flight->rings[s], 2 * flight->capacity);
    }
    struct tarn_flight_base *base = &flight->base;
    if (base->stamp) base->device.table->stamp_destroy(base->device.self, base->stamp);
}

/* ---- Stamps ---- */

static int record_base(struct tarn_flight_base *base, void *queue)
{
    if (base->recorded) return 0;
    base->at_ns = tarn_now_ns();
    int code = base->device.table->stamp_record(base->device.self, base->stamp, queue);
    base->recorded = code == 0;
    return code;
}

int tarn_flight_stamp(struct tarn_flight *flight, uint32_t stream, void *queue, bool is_end)
{
    if (!flight || !flight->rings[stream].stamps) return 0;
    struct tarn_flight_ring *ring = &flight->rings[stream];
    uint64_t count = atomic_load_explicit(&ring->count, memory_order_relaxed);
    assert(count > 0); /* a command has begun */
    size_t entry = (size_t)(count - 1) & (flight->capacity - 1);
    int code = record_base(ring->base, queue);
    if (code) return code;
    return ring->base->device.table->stamp_record(ring->base->device.self,
                                                  ring->stamps[2 * entry + is_end], queue);
}

static int since_base(const struct tarn_flight_base *base, void *stamp, uint64_t *at_ns)
{
    double elapsed_ns;
    assert(base->recorded);
    int code =
        base->device.table->stamp_elapsed(base->device.self, base->stamp, stamp, &elapsed_ns);
    if (!code) *at_ns = base->at_ns + (uint64_t)(int64_t)elapsed_ns; /* may be before the base */
    return code;
}

int tarn_flight_times(const struct tarn_flight_ring *ring, uint32_t index, uint64_t *begin_ns,
                      uint64_t *end_ns)
{
    const struct tarn_flight_entry *entry = &ring->entries[index];
    *begin_ns = atomic_load_explicit(&entry->begin_ns, memory_order_relaxed);
    *end_ns = atomic_load_explicit(&entry->end_ns, memory_order_relaxed);
    if (!ring->stamps || !ring->base->recorded || *end_ns == 0) return 0;
    int code = since_base(ring->base, ring->stamps[2 * (size_t)index], begin_ns);
    return code ? code : since_base(ring->base, ring->stamps[2 * (size_t)index + 1], end_ns);
}

/* ---- Where streams are ---- */

static enum tarn_stream_state position(struct tarn_session *session, uint32_t s,
                                       char text[static 160])
{
    const struct tarn_program *program = session->program;
    if (program->begin[s] == program->begin[s + 1]) return TARN_STREAM_EMPTY;
    return session->executor_table->describe(session->executor, s, text, 160);
}

enum tarn_status tarn_session_deadline(struct tarn_session *session, uint64_t timeout_ns,
                                       struct tarn_error *error)
{
    char text[sizeof error->text], at[160];
    size_t used =
        (size_t)snprintf(text, sizeof text, "not finished after %.3f s", (double)timeout_ns * 1e-9);
    for (enum tarn_stream_state state = TARN_STREAM_STUCK; state < TARN_STREAM_EMPTY; state++) {
        for (uint32_t s = 0; s < session->graph->streams_count && used < sizeof text; s++) {
            if (position(session, s, at) != state) continue;
            used += (size_t)snprintf(text + used, sizeof text - used, "; %s %s",
                                     tarn_stream_label(session->graph, s).text, at);
        }
    }
    if (used >= sizeof text) memcpy(text + sizeof text - sizeof "...", "...", sizeof "...");
    return tarn_error_set(error, TARN_DEADLINE, "%s", text);
}

/* ---- Dumping ---- */

struct dump {
    struct tarn_session *session;
    tarn_line line;
    void *user;
    uint64_t now_ns;
};

static void tell_command(const struct dump *dump, const struct tarn_flight_entry *entry,
                         const char *verb)
{
    uint64_t begin = atomic_load_explicit(&entry->begin_ns, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&entry->end_ns, memory_order_relaxed);
    uint32_t op = atomic_load_explicit(&entry->op, memory_order_relaxed);
    uint64_t iteration = atomic_load_explicit(&entry->iteration, memory_order_relaxed);
    char text[256], took[64] = "and has not ended";
    if (end >= begin) snprintf(took, sizeof took, "took %.3f us", (double)(end - begin) * 1e-3);
    snprintf(text, sizeof text, "  iteration %llu, %s: %s %.3f us ago, %s",
             (unsigned long long)iteration, tarn_op_label(dump->session->graph, op).text, verb,
             (double)(int64_t)(dump->now_ns - begin) * 1e-3, took);
    dump->line(dump->user, text);
}

static void tell_stream(const struct dump *dump, uint32_t s)
{
    const struct tarn_session *session = dump->session;
    const struct tarn_flight *flight = session->flight;
    struct tarn_device device = session->device;
    bool runs = tarn_device_is_host(device) || tarn_session_calls(session, device.table);
    char text[300], at[160] = "launches nothing";
    position(dump->session, s, at);
    snprintf(text, sizeof text, "%s on device '%s' %s", tarn_stream_label(session->graph, s).text,
             tarn_device_name(device.table), at);
    dump->line(dump->user, text);
    if (!flight) return;
    uint64_t count = atomic_load_explicit(&flight->rings[s].count, memory_order_acquire);
    uint64_t first = count > flight->capacity ? count - flight->capacity : 0;
    for (uint64_t i = first; i < count; i++)
        tell_command(dump, &flight->rings[s].entries[i & (flight->capacity - 1)],
                     runs ? "began" : "was enqueued");
}

void tarn_flight_dump(struct tarn_session *session, const char *reason, tarn_line line, void *user)
{
    struct dump dump = {session, line, user, tarn_now_ns()};
    char text[700];
    snprintf(text, sizeof text, "session of graph %s: %llu iterations submitted%s%s",
             tarn_quote(session->graph->name).text, (unsigned long long)session->submitted,
             reason ? "; " : "", reason ? reason : "");
    line(user, text);
    for (uint32_t s = 0; s < session->graph->streams_count; s++) tell_stream(&dump, s);
}

struct saving {
    struct tarn_session *session;
    const char *reason;
};

static void print_line(void *file, const char *line)
{
    fputs(line, file);
    fputc('\n', file);
}

static void print_saving(const void *subject, FILE *file)
{
    const struct saving *saving = subject;
    tarn_flight_dump(saving->session, saving->reason, print_line, file);
}

enum tarn_status tarn_flight_save(struct tarn_session *session, const char *reason,
                                  const char *path, struct tarn_error *error)
{
    const struct saving saving = {session, reason};
    return tarn_text_save(path, print_saving, &saving, error);
}
