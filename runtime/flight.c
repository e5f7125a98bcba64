/* The flight recorder and the words of a watchdog. A ring has one writer, which stores a few words
 * and the clock twice per command; a reader may meet an entry that is being overwritten and then
 * tells a mixture of two commands, never anything worse. Nothing is allocated while it records.
 * Cost: two readings of the clock per command. */
#include "flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../streams/graph/report.h"

#define COMMANDS_MAX (UINT32_C(1) << 20)

/* ---- Life ---- */

enum tarn_status tarn_flight_create(const struct tarn_session *session, uint32_t commands,
                                    struct tarn_flight **result, struct tarn_error *error)
{
    struct tarn_flight *flight = calloc(1, sizeof *flight);
    if (!flight) return tarn_error_no_memory(error);
    if (commands > COMMANDS_MAX) commands = COMMANDS_MAX;
    for (flight->capacity = 1; flight->capacity < commands;) flight->capacity *= 2;
    flight->rings = calloc((size_t)session->graph->streams_count + 1, sizeof *flight->rings);
    bool is_complete = flight->rings;
    for (uint32_t s = 0; is_complete && s < session->graph->streams_count; s++) {
        flight->rings[s].entries = calloc(flight->capacity, sizeof(struct tarn_flight_entry));
        flight->streams_count = s + 1;
        is_complete = flight->rings[s].entries;
    }
    if (!is_complete) {
        tarn_flight_destroy(flight);
        return tarn_error_no_memory(error);
    }
    *result = flight;
    return TARN_OK;
}

void tarn_flight_destroy(struct tarn_flight *flight)
{
    if (!flight) return;
    for (uint32_t s = 0; s < flight->streams_count; s++) free(flight->rings[s].entries);
    free(flight->rings);
    free(flight);
}

/* ---- Where streams are ---- */

static enum tarn_turn position(struct tarn_session *session, uint32_t s, char text[static 160])
{
    const struct tarn_program *program = &session->program;
    if (program->begin[s] == program->begin[s + 1]) return TARN_TURN_NONE;
    return session->executor_table->describe(session->executor, s, text, 160);
}

enum tarn_status tarn_session_deadline(struct tarn_session *session, uint64_t timeout_ns,
                                       struct tarn_error *error)
{
    char text[sizeof error->text], at[160];
    size_t used =
        (size_t)snprintf(text, sizeof text, "not finished after %.3f s", (double)timeout_ns * 1e-9);
    for (enum tarn_turn turn = TARN_TURN_STUCK; turn < TARN_TURN_NONE; turn++) {
        for (uint32_t s = 0; s < session->graph->streams_count && used < sizeof text; s++) {
            if (position(session, s, at) != turn) continue;
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
    const struct tarn_device *device =
        &session->settings.devices[session->settings.streams[s].device];
    bool runs = tarn_device_is_host(*device) || tarn_session_calls(session, device->table);
    char text[300], at[160] = "launches nothing";
    position(dump->session, s, at);
    snprintf(text, sizeof text, "%s on device '%s' %s", tarn_stream_label(session->graph, s).text,
             device->table->name, at);
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
    const char *name = session->graph->name;
    char text[700];
    snprintf(text, sizeof text, "session of graph %s: %llu iterations submitted%s%s",
             tarn_quote(name ? name : "").text, (unsigned long long)session->submitted,
             reason ? "; " : "", reason ? reason : "");
    line(user, text);
    for (uint32_t s = 0; s < session->graph->streams_count; s++) tell_stream(&dump, s);
}
