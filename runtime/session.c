/* The session's front: checks every argument, owns the memory, and hands work to the executor of
 * its device. The plan is compiled into a program once; every op gets its struct tarn_call, with
 * all addresses, before the first iteration, so that a launch is one indirect call.
 *
 *     memory:  [ arena: planned storages ][ persistent part ]      one allocation
 *
 * Cost: creation O(ops + tensors log storages); submit and wait O(1) here. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>

#include "../streams/graph/report.h"
#include "../streams/graph/size.h"
#include "check_kernel.h"
#include "topology.h"

/* ---- Checks of what the caller hands in ---- */

static bool table_is_complete(const struct tarn_device_table *table)
{
    bool queues = table->queue_create && table->queue_destroy && table->event_create &&
                  table->event_destroy && table->event_record && table->event_wait &&
                  table->event_query;
    bool no_queues = !table->queue_create && !table->queue_destroy && !table->event_create &&
                     !table->event_destroy && !table->event_record && !table->event_wait &&
                     !table->event_query;
    return table->memory_limits && table->memory_create && table->memory_destroy &&
           table->copy_in && table->copy_out && table->fill && table->error_text &&
           table->error_class && (queues || no_queues);
}

static enum tarn_status check_device(struct tarn_device device, struct tarn_error *error)
{
    const struct tarn_device_table *table = device.table;
    if (!table) return tarn_error_set(error, TARN_USAGE, "the device has no table");
    if (table->abi_version != TARN_DEVICE_ABI || table->struct_size < sizeof *table)
        return tarn_error_set(error, TARN_USAGE,
                              "the device table is of ABI %u with %u bytes; this library needs ABI "
                              "%u with at least %zu bytes: build the device against its headers",
                              table->abi_version, table->struct_size, TARN_DEVICE_ABI,
                              sizeof *table);
    if (!table_is_complete(table))
        return tarn_error_set(error, TARN_USAGE,
                              "the device table lacks functions: memory, copies and errors are "
                              "required, queues and events all or none");
    return TARN_OK;
}

static enum tarn_status check_options(const struct tarn_session_options *options,
                                      uint32_t streams_count, struct tarn_error *error)
{
    if (!options) return TARN_OK;
    if (options->struct_size < sizeof *options)
        return tarn_error_set(error, TARN_USAGE,
                              "session options of %zu bytes where %zu are needed: fill them with "
                              "their macro",
                              options->struct_size, sizeof *options);
    for (size_t i = 0; i < options->blocking.count; i++) {
        if (options->blocking.ids[i] >= streams_count)
            return tarn_error_set(error, TARN_USAGE,
                                  "blocking stream %u does not exist; the graph has %u streams",
                                  options->blocking.ids[i], streams_count);
    }
    return TARN_OK;
}

/* Offsets are multiples of the plan's or the tensor's own alignment; so must their base be.
 * *tensor: whose it is; TARN_NONE: the plan's. */
static uint64_t alignment_needed(const struct tarn_plan *plan, tarn_tensor *tensor)
{
    uint64_t needed = plan->alignment;
    *tensor = TARN_NONE;
    for (uint32_t t = 0; t < plan->graph->tensors_count; t++) {
        if (plan->graph->tensors[t].alignment <= needed) continue;
        needed = plan->graph->tensors[t].alignment;
        *tensor = t;
    }
    return needed;
}

static enum tarn_status alignment_refused(const struct tarn_session *session, uint64_t needed,
                                          uint64_t given, tarn_tensor tensor,
                                          struct tarn_error *error)
{
    const struct tarn_device *device = &session->device;
    bool is_own = tensor != TARN_NONE;
    if (error && error->status == TARN_OK) error->tensor = tensor;
    return tarn_error_set(
        error, TARN_USAGE, "%s needs an alignment of %llu bytes but device '%s' gives %llu: %s",
        is_own ? tarn_tensor_label(session->graph, tensor).text : "the plan",
        (unsigned long long)needed, device->table->name, (unsigned long long)given,
        is_own ? "give the tensor a smaller one" : "plan with a smaller one");
}

/* ---- Memory ---- */

static enum tarn_status device_failed(const struct tarn_session *session, const char *what,
                                      int code, struct tarn_error *error)
{
    const struct tarn_device_table *table = session->device.table;
    if (error && error->status == TARN_OK) error->device_code = code;
    return tarn_error_set(error, TARN_DEVICE, "device '%s': %s failed with code %d: %s",
                          table->name, what, code, table->error_text(session->device.self, code));
}

static enum tarn_status memory_refused(const struct tarn_session *session, uint64_t persistent,
                                       int code, struct tarn_error *error)
{
    const struct tarn_device_table *table = session->device.table;
    if (table->error_class(session->device.self, code) != TARN_ERROR_OUT_OF_MEMORY)
        return device_failed(session, "allocation of the arena", code, error);
    char available[64] = "";
    uint64_t left = tarn_memory_available();
    if (tarn_session_is_host(session) && left != UINT64_MAX)
        snprintf(available, sizeof available, "; %llu are available", (unsigned long long)left);
    if (error && error->status == TARN_OK) error->device_code = code;
    return tarn_error_set(error, TARN_SYSTEM,
                          "device '%s' has no memory for this session: it needs %llu bytes (arena "
                          "%llu, persistent part %llu)%s",
                          table->name, (unsigned long long)session->memory_size,
                          (unsigned long long)(session->memory_size - persistent),
                          (unsigned long long)persistent, available);
}

/* Where the last of these places ends, at least `size`: a plan that is run without verification
 * may say less than it uses, and must then corrupt its own arena only. */
static bool find_end(const struct tarn_place *places, uint32_t count, uint64_t *size)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end;
        if (!tarn_size_add(places[i].offset, places[i].size, &end)) return false;
        if (end > *size) *size = end;
    }
    return true;
}

static bool measure(const struct tarn_plan *plan, uint64_t *arena, uint64_t *persistent)
{
    *arena = plan->footprint;
    *persistent = plan->persistent;
    return find_end(plan->storages, plan->storages_count, arena) &&
           find_end(plan->workspaces, plan->workspaces_count, arena) &&
           find_end(plan->places_persistent, plan->places_persistent_count, persistent);
}

static enum tarn_status allocate(struct tarn_session *session, struct tarn_error *error)
{
    const struct tarn_plan *plan = session->plan;
    const struct tarn_device *device = &session->device;
    struct tarn_memory_limits limits;
    int code = device->table->memory_limits(device->self, &limits);
    if (code) return device_failed(session, "asking for the memory's limits", code, error);
    tarn_tensor strictest;
    uint64_t needed = alignment_needed(plan, &strictest);
    if (needed > limits.alignment)
        return alignment_refused(session, needed, limits.alignment, strictest, error);
    uint64_t arena, persistent, begin;
    if (!measure(plan, &arena, &persistent) || !tarn_size_round_up(arena, needed, &begin) ||
        !tarn_size_add(begin, persistent, &session->memory_size))
        return tarn_error_set(error, TARN_SYSTEM, "arena and persistent part exceed 64 bits");
    if (session->memory_size == 0) return TARN_OK;
    void *memory;
    code = device->table->memory_create(device->self, session->memory_size, &memory);
    if (code) return memory_refused(session, persistent, code, error);
    session->memory = memory;
    if (arena > 0) session->arena = memory;
    if (persistent > 0) session->persistent = (unsigned char *)memory + begin;
    if (tarn_session_is_host(session)) return TARN_OK; /* the system gives zeros */
    code = device->table->fill(device->self, memory, 0, session->memory_size);
    return code ? device_failed(session, "filling the arena with zeros", code, error) : TARN_OK;
}

/* ---- Calls and addresses, made once ---- */

unsigned char *tarn_session_address(const struct tarn_session *session, tarn_tensor tensor)
{
    const struct tarn_graph_tensor *tensors = session->graph->tensors;
    bool is_persistent = tarn_kind_is_persistent(tensors[tensors[tensor].root].kind);
    uint64_t offset = tarn_plan_offset(session->plan, tensor);
    if (offset == UINT64_MAX) return NULL;
    return (is_persistent ? session->persistent : session->arena) + offset;
}

static size_t count_addresses(const struct tarn_graph *graph)
{
    size_t count = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++)
        count += (size_t)graph->ops[v].inputs_count + graph->ops[v].outputs_count;
    return count;
}

static void **fill_addresses(const struct tarn_session *session, void **next,
                             const uint32_t *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) *next++ = tarn_session_address(session, tensors[i]);
    return next;
}

static enum tarn_status make_calls(struct tarn_session *session, struct tarn_error *error)
{
    const struct tarn_graph *graph = session->graph;
    session->bindings = calloc((size_t)graph->ops_count + 1, sizeof *session->bindings);
    session->calls = calloc((size_t)graph->ops_count + 1, sizeof *session->calls);
    session->addresses = calloc(count_addresses(graph) + 1, sizeof *session->addresses);
    if (!session->bindings || !session->calls || !session->addresses)
        return tarn_error_no_memory(error);
    void **next = session->addresses;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        struct tarn_call *call = &session->calls[v];
        uint64_t workspace = tarn_plan_workspace_offset(session->plan, v);
        call->op = v;
        call->origin = tarn_plan_origin(session->plan, v);
        call->implementation = op->implementation;
        call->stream = op->stream;
        call->workspace = workspace == UINT64_MAX ? NULL : session->arena + workspace;
        call->inputs = next;
        next = fill_addresses(session, next, op->inputs, op->inputs_count);
        call->outputs = next;
        next = fill_addresses(session, next, op->outputs, op->outputs_count);
    }
    return TARN_OK;
}

/* ---- Creation and destruction ---- */

static void release(struct tarn_session *session)
{
    if (session->memory)
        session->device.table->memory_destroy(session->device.self, session->memory,
                                              session->memory_size);
    tarn_checker_destroy(session->checker);
    free(session->bindings);
    free(session->calls);
    free(session->addresses);
    tarn_program_finish(&session->program);
    tarn_plan_destroy(session->plan);
    free(session);
}

void tarn_session_destroy(struct tarn_session *session)
{
    if (!session) return;
    /* A kernel that never returned may still use all of this: then it is given up for good. */
    if (session->executor && !session->executor_table->destroy(session->executor)) return;
    release(session);
}

static enum tarn_status build(struct tarn_session *session,
                              const struct tarn_session_options *options, struct tarn_error *error)
{
    enum tarn_status status = tarn_program_init(&session->program, session->plan, error);
    if (!status) status = allocate(session, error);
    if (!status) status = make_calls(session, error);
    if (!status)
        status = session->executor_table->create(session, options, &session->executor, error);
    return status;
}

enum tarn_status tarn_session_create(struct tarn_plan *plan, struct tarn_device device,
                                     const struct tarn_session_options *options,
                                     struct tarn_session **session, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session) return tarn_error_set(error, TARN_USAGE, "no place for the session");
    *session = NULL;
    if (!plan) return tarn_error_set(error, TARN_USAGE, "no plan");
    enum tarn_status status = check_device(device, error);
    if (!status) status = check_options(options, plan->graph->streams_count, error);
    if (status) return status;
    struct tarn_session *made = calloc(1, sizeof *made);
    if (!made) return tarn_error_no_memory(error);
    made->plan = tarn_plan_retain(plan);
    made->graph = plan->graph;
    made->device = device;
    made->executor_table = tarn_session_is_host(made) ? &tarn_executor_host : &tarn_executor_queues;
    status = build(made, options, error);
    if (status) {
        tarn_session_destroy(made);
        return status;
    }
    *session = made;
    return TARN_OK;
}

bool tarn_session_is_host(const struct tarn_session *session)
{
    return !session->device.table->queue_create;
}

/* ---- Bindings ---- */

static bool is_idle(const struct tarn_session *session)
{
    return !session->refused && session->submitted == session->finished;
}

enum tarn_status tarn_session_bind(struct tarn_session *session, tarn_op origin, tarn_kernel kernel,
                                   void *user)
{
    if (!session || !kernel || !is_idle(session)) return TARN_USAGE;
    const struct tarn_graph *graph = session->graph;
    bool found = false;
    /* Copies of an op exist only where a transform ran; else an op is its own origin. */
    bool copies = session->plan->transformed;
    for (uint32_t v = copies ? 0 : origin; v < graph->ops_count; v++) {
        if (session->calls[v].origin != origin) continue;
        session->bindings[v] = (struct tarn_binding){kernel, user, true};
        found = true;
        if (!copies) break;
    }
    session->ready = false;
    return found ? TARN_OK : TARN_USAGE;
}

enum tarn_status tarn_session_bind_default(struct tarn_session *session, tarn_kernel kernel,
                                           void *user)
{
    if (!session || !kernel || !is_idle(session)) return TARN_USAGE;
    for (uint32_t v = 0; v < session->graph->ops_count; v++) {
        if (!session->bindings[v].own)
            session->bindings[v] = (struct tarn_binding){kernel, user, false};
    }
    session->ready = false;
    return TARN_OK;
}

static enum tarn_status check_bindings(struct tarn_session *session, struct tarn_error *error)
{
    for (uint32_t i = 0; i < session->program.steps_count && !session->ready; i++) {
        uint32_t op = session->program.steps[i].op;
        if (session->bindings[op].kernel) continue;
        if (error) error->op = op;
        return tarn_error_set(error, TARN_USAGE, "%s has no kernel: bind one, or a default for all",
                              tarn_op_label(session->graph, op).text);
    }
    session->ready = true;
    return TARN_OK;
}

enum tarn_status tarn_session_kernel_failed(const struct tarn_session *session, tarn_op op,
                                            uint64_t iteration, int code, struct tarn_error *error)
{
    const struct tarn_graph *graph = session->graph;
    if (error && error->status == TARN_OK) {
        error->device_code = code;
        error->op = op;
    }
    return tarn_error_set(error, TARN_DEVICE, "%s, %s, iteration %llu: the kernel returned %d",
                          tarn_stream_label(graph, graph->ops[op].stream).text,
                          tarn_op_label(graph, op).text, (unsigned long long)iteration, code);
}

int tarn_session_launch(struct tarn_session *session, tarn_op op, uint64_t iteration)
{
    session->calls[op].iteration = iteration;
    return session->bindings[op].kernel(session->bindings[op].user, &session->calls[op]);
}

/* ---- Contents ---- */

static enum tarn_status check_access(const struct tarn_session *session, tarn_tensor tensor,
                                     const void *data, uint64_t size, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session || (!data && size > 0)) return tarn_error_set(error, TARN_USAGE, "null argument");
    const struct tarn_graph *graph = session->graph;
    if (tensor >= graph->tensors_count)
        return tarn_error_set(error, TARN_USAGE, "tensor %u does not exist; the graph has %u",
                              tensor, graph->tensors_count);
    if (error) error->tensor = tensor;
    if (size > graph->tensors[tensor].size)
        return tarn_error_set(error, TARN_USAGE, "%llu bytes for %s of %llu bytes",
                              (unsigned long long)size, tarn_tensor_label(graph, tensor).text,
                              (unsigned long long)graph->tensors[tensor].size);
    if (session->refused)
        return tarn_error_set(error, TARN_USAGE,
                              "the session has stopped after an error: it can only be destroyed");
    if (!is_idle(session))
        return tarn_error_set(error, TARN_USAGE, "%s is in use: wait for ticket %llu first",
                              tarn_tensor_label(graph, tensor).text,
                              (unsigned long long)session->submitted);
    return TARN_OK;
}

enum tarn_status tarn_session_write(struct tarn_session *session, tarn_tensor tensor,
                                    const void *data, uint64_t size, struct tarn_error *error)
{
    enum tarn_status status = check_access(session, tensor, data, size, error);
    if (status || size == 0) return status;
    int code = session->device.table->copy_in(session->device.self,
                                              tarn_session_address(session, tensor), data, size);
    return code ? device_failed(session, "copy to the device", code, error) : TARN_OK;
}

enum tarn_status tarn_session_read(struct tarn_session *session, tarn_tensor tensor, void *data,
                                   uint64_t size, struct tarn_error *error)
{
    enum tarn_status status = check_access(session, tensor, data, size, error);
    if (status || size == 0) return status;
    int code = session->device.table->copy_out(session->device.self, data,
                                               tarn_session_address(session, tensor), size);
    return code ? device_failed(session, "copy from the device", code, error) : TARN_OK;
}

/* ---- Work ---- */

/* Progress is counted in steps since the session's start, in 63 bits. */
static bool is_countable(const struct tarn_session *session, uint64_t iterations)
{
    uint64_t total, steps;
    return tarn_size_add(session->submitted, iterations, &total) &&
           tarn_size_multiply(total, (uint64_t)session->graph->ops_count + 1, &steps) &&
           steps <= INT64_MAX;
}

enum tarn_status tarn_session_submit(struct tarn_session *session, uint64_t iterations,
                                     tarn_ticket *ticket, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session) return tarn_error_set(error, TARN_USAGE, "no session");
    if (session->refused)
        return tarn_error_set(error, TARN_USAGE,
                              "the session has stopped after an error: it can only be destroyed");
    if (!is_countable(session, iterations))
        return tarn_error_set(error, TARN_USAGE, "%llu iterations are too many to count",
                              (unsigned long long)iterations);
    enum tarn_status status = check_bindings(session, error);
    if (status) return status;
    session->submitted += iterations;
    status = session->executor_table->submit(session->executor, session->submitted, error);
    if (status) session->refused = true;
    if (ticket) *ticket = session->submitted;
    return status;
}

enum tarn_status tarn_session_wait(struct tarn_session *session, tarn_ticket ticket,
                                   uint64_t timeout_ns, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session) return tarn_error_set(error, TARN_USAGE, "no session");
    if (ticket > session->submitted)
        return tarn_error_set(error, TARN_USAGE, "ticket %llu was never given; the last is %llu",
                              (unsigned long long)ticket, (unsigned long long)session->submitted);
    if (ticket <= session->finished) return TARN_OK;
    if (session->refused)
        return tarn_error_set(error, TARN_USAGE,
                              "the session has stopped after an error: it can only be destroyed");
    enum tarn_status status =
        session->executor_table->wait(session->executor, ticket, timeout_ns, error);
    if (status) session->refused = true;
    if (!status) session->finished = ticket;
    return status;
}
