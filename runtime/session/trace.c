/* Writes Chrome trace events, as JSON with one event per line: first the names of the tracks, then
 * a complete event ("X") for every recorded command, then the counter.
 *
 * The counter is the bytes of live planned storages: in an iteration, a storage lives from the
 * start of its producer to the latest end of its users; an output lives until the next iteration's
 * output replaces it. Only completely recorded iterations count, as others would look too small.
 * Times are microseconds after the earliest command, and the device's times if the recorder has
 * stamps.
 * Source: the Trace Event Format document. Cost: O(n log n) for n commands and lives. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/state/failure.h"
#include "runtime/state/flight.h"
#include "session.h"
#include "streams/graph/report.h"
#include "streams/text/json_write.h"
#include "streams/text/text_file.h"

/* A recorded command; `end_ns` 0: not ended. */
struct command {
    uint64_t begin_ns, end_ns, iteration;
    uint32_t op;
};

/* A change of the bytes that are alive. */
struct change {
    uint64_t at_ns;
    int64_t bytes;
};

struct trace {
    struct tarn_region region; /* has the arrays */
    const struct tarn_session *session;
    struct command *commands; /* sorted by iteration, then by op */
    size_t commands_count;
    struct change *changes; /* sorted by time */
    size_t changes_count;
    uint64_t zero_ns; /* when the earliest command began */
};

/* ---- Commands ---- */

static int read_entry(const struct tarn_flight_ring *ring, uint32_t index, struct command *command)
{
    const struct tarn_flight_entry *entry = &ring->entries[index];
    command->iteration = atomic_load_explicit(&entry->iteration, memory_order_relaxed);
    command->op = atomic_load_explicit(&entry->op, memory_order_relaxed);
    return tarn_flight_times(ring, index, &command->begin_ns, &command->end_ns);
}

static enum tarn_status collect_ring(struct trace *trace, const struct tarn_flight_ring *ring,
                                     struct tarn_error *error)
{
    uint32_t capacity = trace->session->flight->capacity;
    uint64_t count = atomic_load_explicit(&ring->count, memory_order_acquire);
    for (uint64_t i = count > capacity ? count - capacity : 0; i < count; i++) {
        struct command *command = &trace->commands[trace->commands_count++];
        int code = read_entry(ring, (uint32_t)(i & (capacity - 1)), command);
        if (code) return tarn_device_status(ring->base->device, "reading a stamp", code, error);
        if (command->begin_ns < trace->zero_ns) trace->zero_ns = command->begin_ns;
    }
    return TARN_OK;
}

static enum tarn_status collect_commands(struct trace *trace, struct tarn_error *error)
{
    const struct tarn_flight *flight = trace->session->flight;
    size_t room = (size_t)flight->streams_count * flight->capacity;
    trace->commands = tarn_region_take(&trace->region, room, sizeof *trace->commands);
    if (!trace->commands) return tarn_error_no_memory(error);
    trace->zero_ns = UINT64_MAX;
    enum tarn_status status = TARN_OK;
    for (uint32_t s = 0; s < flight->streams_count && status == TARN_OK; s++)
        status = collect_ring(trace, &flight->rings[s], error);
    return status;
}

static int compare_commands(const void *a, const void *b)
{
    const struct command *x = a, *y = b;
    if (x->iteration != y->iteration) return x->iteration < y->iteration ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->at_ns != y->at_ns) return x->at_ns < y->at_ns ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* deaths first */
}

/* ---- Bytes alive ---- */

/* command_of: the commands of one whole iteration, by op. */
static void add_lives(struct trace *trace, const size_t *command_of)
{
    const struct tarn_graph *graph = trace->session->graph;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        const struct command *producer = &trace->commands[command_of[storage->producer]];
        uint64_t end_ns = producer->end_ns;
        for (uint32_t i = 0; i < storage->users_count; i++) {
            uint64_t touched_ns =
                trace->commands[command_of[tarn_storage_users(graph, storage)[i]]].end_ns;
            if (touched_ns > end_ns) end_ns = touched_ns;
        }
        int64_t bytes = (int64_t)storage->size;
        trace->changes[trace->changes_count++] = (struct change){producer->begin_ns, bytes};
        if (!storage->pinned)
            trace->changes[trace->changes_count++] = (struct change){end_ns, -bytes};
    }
}

/* Does commands[first, last) hold every launched op, each ended? */
static bool is_whole(const struct trace *trace, size_t first, size_t last)
{
    if (last - first != trace->session->program->steps_count) return false;
    for (size_t i = first; i < last; i++)
        if (trace->commands[i].end_ns == 0) return false;
    return true;
}

/* Outputs of an iteration replace the previous iteration's outputs, so they count once. */
static void forget_outputs(struct trace *trace, uint64_t at_ns)
{
    const struct tarn_graph *graph = trace->session->graph;
    int64_t bytes = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++)
        if (graph->storages[a].pinned) bytes += (int64_t)graph->storages[a].size;
    trace->changes[trace->changes_count++] = (struct change){at_ns, -bytes};
}

static bool collect_changes(struct trace *trace)
{
    const struct tarn_graph *graph = trace->session->graph;
    size_t steps = trace->session->program->steps_count;
    size_t iterations = steps ? trace->commands_count / steps : 0;
    size_t *command_of = tarn_region_take(&trace->region, graph->ops_count, sizeof *command_of);
    trace->changes =
        tarn_region_take(&trace->region, iterations * (2 * (size_t)graph->planned_count + 1),
                         sizeof *trace->changes);
    bool is_complete = command_of && trace->changes;
    qsort(trace->commands, trace->commands_count, sizeof *trace->commands, compare_commands);
    bool has_outputs = false;
    for (size_t first = 0, last; is_complete && first < trace->commands_count; first = last) {
        uint64_t begin_ns = UINT64_MAX;
        for (last = first; last < trace->commands_count &&
                           trace->commands[last].iteration == trace->commands[first].iteration;
             last++) {
            command_of[trace->commands[last].op] = last;
            if (trace->commands[last].begin_ns < begin_ns)
                begin_ns = trace->commands[last].begin_ns;
        }
        if (!is_whole(trace, first, last)) continue;
        if (has_outputs) forget_outputs(trace, begin_ns);
        add_lives(trace, command_of);
        has_outputs = true;
    }
    if (is_complete)
        qsort(trace->changes, trace->changes_count, sizeof *trace->changes, compare_changes);
    return is_complete;
}

/* ---- Writing ---- */

static double microseconds(const struct trace *trace, uint64_t at_ns)
{
    return (double)(at_ns - trace->zero_ns) / 1000;
}

static void print_event(FILE *file, json_t *event)
{
    tarn_json_write(file, event);
    fputs(",\n", file);
}

/* Metadata of a track, or of the process. */
static json_t *about(int track, const char *what, json_t *arguments)
{
    json_t *event = json_pack("{s:s, s:i}", "ph", "M", "pid", 0);
    if (track >= 0) tarn_json_put(&event, "tid", json_integer(track));
    tarn_json_put(&event, "name", json_string(what));
    tarn_json_put(&event, "args", arguments);
    return event;
}

static void print_track(const struct trace *trace, uint32_t s, FILE *file)
{
    const char *name = trace->session->graph->streams[s].name;
    print_event(
        file, about((int)s, "thread_name", json_pack("{s:s}", "name", name[0] ? name : "stream")));
    print_event(file, about((int)s, "thread_sort_index", json_pack("{s:i}", "sort_index", s)));
}

static void print_command(const struct trace *trace, const struct command *command, FILE *file)
{
    const struct tarn_graph_op *op = &trace->session->graph->ops[command->op];
    bool has_ended = command->end_ns >= command->begin_ns;
    json_t *event = json_pack("{s:s, s:i, s:I, s:f}", "ph", has_ended ? "X" : "B", "pid", 0, "tid",
                              (json_int_t)op->stream, "ts", microseconds(trace, command->begin_ns));
    if (has_ended)
        tarn_json_put(&event, "dur",
                      json_real((double)(command->end_ns - command->begin_ns) / 1000));
    tarn_json_put(&event, "name", json_string(op->name[0] ? op->name : "op"));
    tarn_json_put(&event, "cat", json_string(op->kind[0] ? op->kind : "op"));
    tarn_json_put(&event, "args",
                  json_pack("{s:I, s:I}", "op", (json_int_t)command->op, "iteration",
                            (json_int_t)command->iteration));
    print_event(file, event);
}

static void print_counter(const struct trace *trace, FILE *file)
{
    int64_t alive = 0;
    for (size_t i = 0; i < trace->changes_count; i++) {
        alive += trace->changes[i].bytes;
        bool is_last =
            i + 1 == trace->changes_count || trace->changes[i + 1].at_ns > trace->changes[i].at_ns;
        if (!is_last) continue;
        print_event(file, json_pack("{s:s, s:i, s:f, s:s, s:{s:I}}", "ph", "C", "pid", 0, "ts",
                                    microseconds(trace, trace->changes[i].at_ns), "name",
                                    "planned bytes alive", "args", "bytes", (json_int_t)alive));
    }
}

static void print_trace(const void *subject, FILE *file)
{
    const struct trace *trace = subject;
    const char *name = trace->session->graph->name;
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
    for (uint32_t s = 0; s < trace->session->graph->streams_count; s++) print_track(trace, s, file);
    for (size_t i = 0; i < trace->commands_count; i++)
        print_command(trace, &trace->commands[i], file);
    print_counter(trace, file);
    tarn_json_write(file,
                    about(-1, "process_name", json_pack("{s:s}", "name", name[0] ? name : "tarn")));
    fputs("\n]}\n", file);
}

enum tarn_status tarn_trace_save(const struct tarn_session *session, const char *path,
                                 struct tarn_error *error)
{
    struct trace trace = {.session = session};
    enum tarn_status status = collect_commands(&trace, error);
    if (status == TARN_OK && !collect_changes(&trace)) status = tarn_error_no_memory(error);
    if (status == TARN_OK) status = tarn_text_save(path, print_trace, &trace, error);
    tarn_region_finish(&trace.region);
    return status;
}
