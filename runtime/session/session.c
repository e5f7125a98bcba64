/* The session's public functions: they check every argument, and pass work to the executor of the
 * session's device. The program is the plan's, compiled once; arguments of kernels are made
 * beforehand (calls.c). Device and options are checked first (settings.h); plan_memory.h and
 * arena.h have the memory.
 *
 * Cost: creation O(ops + tensors); submit and wait O(1) here. */
#include "session.h"

#include <assert.h>
#include <unistd.h>

#include "runtime/host/host.h"
#include "runtime/queues/queues.h"
#include "runtime/state/failure.h"
#include "runtime/state/flight.h"
#include "streams/base/checked.h"
#include "streams/base/log.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/graph/report.h"

#define GRACE_NS 100000000 /* after a deadline, how long destroy waits without a given timeout */

/* ---- Creation and destruction ---- */

static void release(struct tarn_session *session)
{
    if (session->check.object) session->check.finish(session->check.object);
    tarn_plan_memory_finish(&session->memory);
    tarn_arena_leave(session);
    tarn_flight_destroy(session->flight);
    tarn_plan_destroy(session->plan);
    tarn_region_finish(&session->region);
    tarn_free(session);
}

enum tarn_status tarn_session_destroy_within(struct tarn_session *session, uint64_t timeout_ns,
                                             struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session) return TARN_OK;
    enum tarn_status status = tarn_session_check_process(session, error);
    if (status != TARN_OK) return status;
    session->refused = true;
    if (session->executor) {
        status = session->executor_table->destroy(session->executor, timeout_ns, error);
        session->overdue |= status != TARN_OK;
        if (status != TARN_OK) return status;
    }
    release(session);
    return TARN_OK;
}

enum tarn_status tarn_session_destroy(struct tarn_session *session)
{
    uint64_t timeout_ns = session ? session->settings.options.patience_ns : 0;
    if (timeout_ns == 0) timeout_ns = TARN_FOREVER;
    if (session && session->overdue && timeout_ns > GRACE_NS) timeout_ns = GRACE_NS;
    return tarn_session_destroy_within(session, timeout_ns, NULL);
}

static enum tarn_status build(struct tarn_session *session, struct tarn_device device,
                              const struct tarn_session_options *options, struct tarn_error *error)
{
    const struct tarn_session_options *taken = &session->settings.options;
    struct tarn_region *region = &session->region;
    enum tarn_status status =
        tarn_settings_init(&session->settings, region, session->plan, device, options, error);
    if (status == TARN_OK) status = tarn_plan_program(session->plan, &session->program, error);
    if (status == TARN_OK) status = tarn_arena_enter(session, error);
    if (status == TARN_OK)
        status =
            tarn_plan_memory_init(&session->memory, region, session->plan, device, taken, error);
    if (status == TARN_OK) status = tarn_session_make_calls(session, error);
    if (status == TARN_OK && taken->flight > 0)
        status = tarn_flight_create(session, taken->flight, &session->flight, error);
    if (status != TARN_OK) return status;
    session->executor_table =
        tarn_device_is_host(device) ? &tarn_executor_host : &tarn_executor_queues;
    return session->executor_table->create(session, &session->executor, error);
}

enum tarn_status tarn_session_create(struct tarn_plan *plan, struct tarn_device device,
                                     const struct tarn_session_options *options,
                                     struct tarn_session **session, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session) return tarn_error_set(error, TARN_USAGE, "no place for the session");
    *session = NULL;
    if (!plan) return tarn_error_set(error, TARN_USAGE, "no plan");
    struct tarn_session *made = tarn_take_zeros(1, sizeof *made);
    if (!made) return tarn_error_no_memory(error);
    made->plan = tarn_plan_retain(plan);
    made->graph = plan->graph;
    made->process = getpid();
    made->device = device;
    enum tarn_status status = build(made, device, options, error);
    if (status != TARN_OK) {
        release(made);
        return status;
    }
    *session = made;
    tarn_log(TARN_LOG_INFO, "session of '%s' on device '%s': %s of arena, %u streams",
             made->graph->name, tarn_device_name(device.table),
             tarn_bytes_phrase(tarn_plan_footprint(plan)).text, made->graph->streams_count);
    return TARN_OK;
}

/* ---- Bindings ---- */

static enum tarn_status check_binding(const struct tarn_session *session, tarn_op origin,
                                      tarn_kernel kernel, struct tarn_error *error)
{
    if (!session || !kernel)
        return tarn_error_set(error, TARN_USAGE, session ? "no kernel" : "no session");
    enum tarn_status status = tarn_session_check_life(session, error);
    if (status != TARN_OK) return status;
    if (!tarn_session_is_idle(session))
        return tarn_error_set(error, TARN_USAGE,
                              "kernels are bound while nothing is submitted: wait for ticket %llu "
                              "first",
                              (unsigned long long)session->submitted);
    if (error) error->op = origin;
    return TARN_OK;
}

enum tarn_status tarn_session_bind(struct tarn_session *session, tarn_op origin, tarn_kernel kernel,
                                   void *user, struct tarn_error *error)
{
    tarn_error_clear(error);
    enum tarn_status status = check_binding(session, origin, kernel, error);
    if (status != TARN_OK) return status;
    const struct tarn_graph *graph = session->graph;
    bool found = false;
    /* Copies of an op exist only if a transform ran; else an op is its own origin. */
    bool copies = session->plan->transformed;
    for (uint32_t v = copies ? 0 : origin; v < graph->ops_count; v++) {
        if (session->calls[v].origin != origin) continue;
        session->bindings[v] = (struct tarn_binding){kernel, user, true};
        found = true;
        if (!copies) break;
    }
    session->ready = false;
    if (found) {
        tarn_error_clear(error);
        return TARN_OK;
    }
    return tarn_error_set(error, TARN_USAGE,
                          "op %u of the source graph is none that the plan runs: ops are bound by "
                          "their ids in the graph that was planned, before transforms",
                          origin);
}

enum tarn_status tarn_session_take(struct tarn_session *session, uint32_t conditional, uint32_t arm,
                                   struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session) return tarn_error_null(error, __func__);
    if (conditional >= session->graph->conditionals_count)
        return tarn_error_set(error, TARN_USAGE, "conditional %u does not exist; the graph has %u",
                              conditional, session->graph->conditionals_count);
    if (!tarn_session_is_idle(session))
        return tarn_error_set(error, TARN_USAGE,
                              "a conditional takes another arm only while nothing is under way: "
                              "wait for what was submitted");
    session->arms[conditional] = arm;
    tarn_session_skip(session);
    session->ready = false;
    return TARN_OK;
}

enum tarn_status tarn_session_bind_default(struct tarn_session *session, tarn_kernel kernel,
                                           void *user)
{
    if (!session || !kernel || !tarn_session_is_idle(session)) return TARN_USAGE;
    for (uint32_t v = 0; v < session->graph->ops_count; v++) {
        if (!session->bindings[v].own && !tarn_session_moves(session, v))
            session->bindings[v] = (struct tarn_binding){kernel, user, false};
    }
    session->ready = false;
    return TARN_OK;
}

/* Binds for the next submit: work under way keeps its address. Waits if too many bindings are
 * pending. */
static enum tarn_status bind_under_way(struct tarn_session *session, tarn_tensor tensor,
                                       void *address, struct tarn_error *error)
{
    uint32_t storage = session->graph->tensors[tensor].storage;
    enum tarn_status status = tarn_session_check_life(session, error);
    if (status != TARN_OK) return status;
    if (session->settings.options.capture)
        return tarn_error_set(
            error, TARN_USAGE, "%s is in use in a captured block: wait for ticket %llu first",
            tarn_tensor_label(session->graph, tensor).text, (unsigned long long)session->submitted);
    for (uint64_t blocked = 1;
         blocked > 0 && status == TARN_OK && !tarn_session_is_idle(session);) {
        status = tarn_rebinds_add(session, storage, address, &blocked, error);
        if (status == TARN_OK && blocked > 0)
            status = tarn_session_wait(session, blocked, TARN_FOREVER, error);
    }
    return status;
}

enum tarn_status tarn_session_bind_memory(struct tarn_session *session, tarn_tensor tensor,
                                          void *address, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session || !address) return tarn_error_set(error, TARN_USAGE, "null argument");
    if (tensor >= session->graph->tensors_count)
        return tarn_error_set(error, TARN_USAGE, "tensor %u does not exist; the graph has %u",
                              tensor, session->graph->tensors_count);
    if (error) error->tensor = tensor;
    enum tarn_status status = tarn_plan_memory_check_bind(&session->memory, tensor, address, error);
    if (status == TARN_OK && !tarn_session_is_idle(session))
        status = bind_under_way(session, tensor, address, error);
    if (status != TARN_OK) return status;
    session->memory.addresses[session->graph->tensors[tensor].storage] = address;
    if (tarn_session_is_idle(session)) session->ready = false;
    return TARN_OK;
}

static enum tarn_status check_kernels(const struct tarn_session *session, struct tarn_error *error)
{
    for (uint32_t i = 0; i < session->program->steps_count; i++) {
        uint32_t op = session->program->steps[i].op;
        if (session->bindings[op].kernel) continue;
        if (error) error->op = op;
        if (session->graph->ops[op].move)
            return tarn_error_set(error, TARN_USAGE,
                                  "%s is a move, and device '%s' does not copy on its queues (its "
                                  "table has no copy_enqueue): bind a kernel that copies, for all "
                                  "ops without one (tarn_session_bind_default)",
                                  tarn_op_label(session->graph, op).text,
                                  tarn_device_name(session->device.table));
        return tarn_error_set(error, TARN_USAGE, "%s has no kernel: bind one, or a default for all",
                              tarn_op_label(session->graph, op).text);
    }
    return TARN_OK;
}

static enum tarn_status get_ready(struct tarn_session *session, struct tarn_error *error)
{
    if (session->ready) return TARN_OK;
    enum tarn_status status = check_kernels(session, error);
    tarn_tensor unbound = tarn_plan_memory_unbound(&session->memory);
    if (status != TARN_OK) return status;
    if (unbound != TARN_NONE) {
        if (error) error->tensor = unbound;
        return tarn_error_set(error, TARN_USAGE,
                              "%s has no memory: bind it, as the session has no persistent part",
                              tarn_tensor_label(session->graph, unbound).text);
    }
    tarn_session_find_addresses(session);
    tarn_rebinds_settle(session);
    session->executor_table->rebind(session->executor);
    session->ready = true;
    return TARN_OK;
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

/* The first error ends the session. */
static enum tarn_status end(struct tarn_session *session, enum tarn_status status)
{
    session->refused |= status != TARN_OK;
    return status;
}

/* Sets the events around the submit, and checks them. */
static enum tarn_status surround(struct tarn_session *session, uint64_t iterations,
                                 const struct tarn_submit_options *given,
                                 struct tarn_submit_options *taken, struct tarn_error *error)
{
    enum tarn_status status =
        tarn_options_take(taken, sizeof *taken, given, "submit options", error);
    if (status != TARN_OK) return status;
    if ((taken->waits_count > 0 && !taken->waits) || (taken->signals_count > 0 && !taken->signals))
        return tarn_error_set(error, TARN_USAGE, "events at NULL");
    for (size_t i = 0; i < taken->waits_count + taken->signals_count; i++) {
        size_t k = i - taken->waits_count;
        if (!(i < taken->waits_count ? taken->waits[i].event : taken->signals[k].event))
            return tarn_error_set(error, TARN_USAGE, "an event is NULL");
    }
    if (taken->waits_count + taken->signals_count == 0 && !taken->queue) return TARN_OK;
    if (session->program->steps_count == 0 || iterations == 0)
        return tarn_error_set(error, TARN_USAGE, "there is no op that could wait");
    return session->executor_table->surround(session->executor, taken, error);
}

enum tarn_status tarn_session_submit(struct tarn_session *session, uint64_t iterations,
                                     tarn_ticket *ticket, struct tarn_error *error)
{
    return tarn_session_submit_with(session, iterations, NULL, ticket, error);
}

/* Runs all checks that may refuse the submit; a refused submit changes nothing. */
static enum tarn_status prepare(struct tarn_session *session, uint64_t iterations,
                                const struct tarn_submit_options *options,
                                struct tarn_submit_options *around, struct tarn_error *error)
{
    enum tarn_status status = tarn_session_check_life(session, error);
    if (status != TARN_OK) return status;
    if (!is_countable(session, iterations))
        return tarn_error_set(error, TARN_USAGE, "%llu iterations are too many to count",
                              (unsigned long long)iterations);
    status = surround(session, iterations, options, around, error);
    if (status == TARN_OK) status = get_ready(session, error);
    if (status == TARN_OK && iterations > 0) status = tarn_arena_begin_turn(session, true, error);
    if (status != TARN_OK) session->executor_table->surround(session->executor, NULL, NULL);
    return status;
}

enum tarn_status tarn_session_submit_with(struct tarn_session *session, uint64_t iterations,
                                          const struct tarn_submit_options *options,
                                          tarn_ticket *ticket, struct tarn_error *error)
{
    struct tarn_submit_options around;
    tarn_error_clear(error);
    if (!session) return tarn_error_set(error, TARN_USAGE, "no session");
    enum tarn_status status = prepare(session, iterations, options, &around, error);
    if (status != TARN_OK) return status;
    if (ticket) *ticket = session->submitted + iterations;
    if (iterations == 0) return TARN_OK;
    session->submitted += iterations;
    status = atomic_load(&session->cancelled)
                 ? tarn_session_was_cancelled(error)
                 : session->executor_table->submit(session->executor, session->submitted, error);
    status = end(session, status);
    tarn_arena_end_turn(session);
    return status;
}

/* Records that the caller knows that this many iterations have finished. */
static void note_finished(struct tarn_session *session, uint64_t finished)
{
    assert(session->finished <= finished && finished <= session->submitted);
    session->finished = finished;
}

enum tarn_status tarn_session_query(struct tarn_session *session, uint64_t *finished,
                                    struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session || !finished) return tarn_error_set(error, TARN_USAGE, "null argument");
    *finished = session->finished;
    enum tarn_status status = tarn_session_check_life(session, error);
    if (status != TARN_OK) return status;
    status = session->executor_table->query(session->executor, finished, error);
    if (status == TARN_OK) note_finished(session, *finished);
    return end(session, status);
}

/* Has the ticket's work ended? If not, nothing changes. */
static enum tarn_status ask(struct tarn_session *session, tarn_ticket ticket,
                            struct tarn_error *error)
{
    uint64_t finished;
    enum tarn_status status = tarn_session_query(session, &finished, error);
    if (status != TARN_OK || finished >= ticket) return status;
    return tarn_error_set(error, TARN_DEADLINE, "%llu of %llu iterations have finished",
                          (unsigned long long)finished, (unsigned long long)ticket);
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
    enum tarn_status status = tarn_session_check_life(session, error);
    if (status != TARN_OK) return status;
    if (timeout_ns == 0) return ask(session, ticket, error);
    status = session->executor_table->wait(session->executor, ticket, timeout_ns, error);
    if (status == TARN_OK) note_finished(session, ticket);
    return end(session, status);
}

/* ---- Cancel, and reports of progress ---- */

void tarn_session_cancel(struct tarn_session *session)
{
    if (!session) return;
    atomic_store(&session->cancelled, true);
    session->executor_table->cancel(session->executor);
}

void tarn_session_dump(struct tarn_session *session, tarn_line line, void *user)
{
    if (session && line) tarn_flight_dump(session, NULL, line, user);
}

enum tarn_status tarn_session_save_dump(struct tarn_session *session, const char *why,
                                        const char *path, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session || !path) return tarn_error_set(error, TARN_USAGE, "null argument");
    return tarn_flight_save(session, why, path, error);
}

enum tarn_status tarn_session_save_trace(struct tarn_session *session, const char *path,
                                         struct tarn_error *error)
{
    tarn_error_clear(error);
    if (!session || !path) return tarn_error_set(error, TARN_USAGE, "null argument");
    if (!session->flight)
        return tarn_error_set(error, TARN_USAGE,
                              "the session has no flight recorder: create it with the option "
                              "'flight'");
    if (!tarn_session_is_idle(session))
        return tarn_error_set(error, TARN_USAGE,
                              "the session is at work: wait for ticket %llu first",
                              (unsigned long long)session->submitted);
    return tarn_trace_save(session, path, error);
}
