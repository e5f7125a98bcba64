/* Checked execution: tarn_session_check. Persistent storages get their initial patterns. The
 * session runs with checking kernels, whose expected contents come from the graph alone
 * (expected.h), on its streams or as one linear order (linear.h). At the end the final contents are
 * checked. The host's kernels are used if it can reach the memory (check/kernel.h), else the
 * device's (check/device.h), a window of iterations at a time. Cost: every byte that the ops read
 * is compared once and every byte that they write is written once, plus 8 bytes per access and
 * iteration of a window. */
#include <string.h>

#include "check.h"
#include "device.h"
#include "runtime/state/event_count.h"
#include "runtime/state/failure.h"
#include "streams/base/options.h"
#include "streams/graph/report.h"

#define DEVICE_ROWS 4u /* maximum iterations of a window if a device checks */

/* ---- Set-up ---- */

static enum tarn_status fill_persistent(const struct tarn_check *check, struct tarn_error *error)
{
    const struct tarn_graph *graph = check->session->graph;
    enum tarn_status status = TARN_OK;
    for (uint32_t p = 0; p < graph->parts_count && status == TARN_OK; p++) {
        const struct tarn_graph_part part = tarn_part(graph, p);
        if (!graph->storages[part.storage].persistent) continue;
        uint64_t seed = tarn_expected_initial(graph->storages[part.storage].tensor);
        if (check->device)
            status = tarn_device_checker_fill(check->device, p, seed, error);
        else
            tarn_pattern_fill(check->checker->addresses[part.storage] + part.offset, part.size,
                              tarn_expected_bytes(graph, p, seed));
        check->finals[p] = seed;
    }
    return status;
}

static void bind_checker(const struct tarn_check *check)
{
    struct tarn_session *session = check->session;
    struct tarn_binding host = {tarn_checker_kernel, check->checker, true};
    struct tarn_binding device = {tarn_device_checker_kernel, check->device, true};
    for (uint32_t v = 0; v < session->graph->ops_count; v++)
        session->bindings[v] = check->device ? device : host;
    session->kernels = check->device ? TARN_KERNELS_INLINE : TARN_KERNELS_CLOSURES;
}

/* Unbinds the checking kernels, unless one of them may still run. */
static void unbind_checker(struct tarn_session *session)
{
    if (session->refused) return;
    memset(session->bindings, 0, session->graph->ops_count * sizeof *session->bindings);
    tarn_session_bind_moves(session);
    session->kernels = TARN_KERNELS_AS_TABLE;
    session->ready = false;
}

static void check_finish(struct tarn_check *check)
{
    unbind_checker(check->session);
    tarn_region_finish(&check->region);
}

/* Iterations that the device's kernels check before the host reads the findings: one captured
 * block, or a few, so that iterations overlap. */
static uint64_t rows_of(const struct tarn_check *check)
{
    const struct tarn_session_options *options = &check->session->settings.options;
    uint64_t rows = tarn_expected_window(&check->checker->expected);
    if (options->capture) return options->unroll > 0 ? options->unroll : 1;
    if (check->options.order) { /* a legal order has a step of each iteration */
        rows = tarn_check_order_iterations(&check->options);
        if (rows > check->options.order_count) rows = check->options.order_count;
        return rows > 0 ? rows : 1;
    }
    if (rows > DEVICE_ROWS) rows = DEVICE_ROWS;
    return rows < check->options.iterations ? rows : check->options.iterations;
}

/* Can the host do the work? */
static bool host_reaches(const struct tarn_session *session)
{
    return session->memory.on_host && !session->device.table->region_create &&
           (tarn_device_is_host(session->device) || session->device.table->launch);
}

/* Data that a kernel may need after the check has ended, for example after a deadline. The session
 * keeps it. */
struct kept {
    struct tarn_checker checker;
    struct tarn_device_checker device;
    bool has_device; /* false: the host does the work */
};

static void finish_kept(void *object)
{
    struct kept *kept = object;
    if (kept->has_device) tarn_device_checker_finish(&kept->device);
    tarn_checker_finish(&kept->checker);
}

static enum tarn_status check_open(struct tarn_check *check, struct kept *kept,
                                   struct tarn_error *error)
{
    struct tarn_session *session = check->session;
    session->check = (struct tarn_kept){kept, finish_kept};
    check->checker = &kept->checker;
    if (tarn_checker_init(&kept->checker, session, check->options.seed, check->options.delay_ns))
        return tarn_error_no_memory(error);
    enum tarn_status status = TARN_OK;
    kept->has_device = !host_reaches(session);
    if (kept->has_device) {
        check->device = &kept->device;
        status =
            tarn_device_checker_init(&kept->device, session, check->checker, rows_of(check), error);
    }
    if (status == TARN_OK) status = fill_persistent(check, error);
    if (status == TARN_OK) bind_checker(check);
    return status;
}

/* The checker stays with the session, since a kernel may still run after a deadline. Bytes that one
 * check leaves in the arena could hide missing writes from the next check. */
static enum tarn_status check_init(struct tarn_check *check, struct tarn_session *session,
                                   const struct tarn_check_options *options,
                                   struct tarn_error *error)
{
    const struct tarn_graph *graph = session->graph;
    *check = (struct tarn_check){.session = session, .options = *options};
    if (check->options.iterations == 0) check->options.iterations = 1;
    check->finals = tarn_region_take(&check->region, graph->parts_count, sizeof(uint64_t));
    struct kept *kept = tarn_region_take(&session->region, 1, sizeof *kept);
    enum tarn_status status =
        tarn_linear_init(&check->linear, &check->region, session->program, graph);
    if (!check->finals || !kept || status != TARN_OK)
        status = tarn_error_no_memory(error);
    else
        status = check_open(check, kept, error);
    if (status != TARN_OK) check_finish(check);
    check->deadline_ns = tarn_deadline_ns(options->timeout_ns ? options->timeout_ns : TARN_FOREVER);
    return status;
}

/* ---- Final contents ---- */

/* Checks every storage that outlives the run. */
static enum tarn_status inspect_finals(struct tarn_check *check, struct tarn_error *error)
{
    const struct tarn_graph *graph = check->session->graph;
    for (uint32_t p = 0; p < graph->parts_count; p++) {
        uint64_t seed = check->finals[p];
        const struct tarn_storage *storage = &graph->storages[tarn_part(graph, p).storage];
        if (seed == 0 || !(storage->persistent || storage->pinned)) continue;
        enum tarn_status status = TARN_OK;
        if (check->device)
            status = tarn_device_checker_look(check->device, p, seed, error);
        else if (!tarn_checker_look(check->checker, p, seed))
            status = tarn_check_failed(check, error);
        if (status != TARN_OK) return status;
        check->report.bytes_read += tarn_part(graph, p).size;
        if (p > storage->part && check->finals[p - 1] == seed) continue; /* of one version */
        check->report.digest += tarn_seed_mix(seed, 0); /* ids differ from graph to graph */
    }
    return TARN_OK;
}

/* ---- On the session's streams ---- */

static enum tarn_status run_window(struct tarn_check *check, uint64_t iterations,
                                   struct tarn_error *error)
{
    tarn_ticket ticket;
    enum tarn_status status = TARN_OK;
    uint64_t timeout_ns = tarn_check_time_left(check);
    if (check->device) status = tarn_device_checker_begin(check->device, error);
    if (status == TARN_OK) status = tarn_session_submit(check->session, iterations, &ticket, error);
    if (status != TARN_OK) return status;
    status = tarn_session_wait(check->session, ticket, timeout_ns > 0 ? timeout_ns : 1, error);
    if (check->device && status == TARN_OK) return tarn_device_checker_end(check->device, error);
    if (status == TARN_DEVICE && atomic_load(&check->checker->failed) == 2)
        return tarn_check_failed(check, error);
    return status;
}

/* Selects the arms of an iteration: the first arm of every conditional, then random ones. */
static void take_arms(const struct tarn_check *check, uint64_t iteration)
{
    struct tarn_session *session = check->session;
    const struct tarn_graph *graph = session->graph;
    for (uint32_t c = 0; c < graph->conditionals_count; c++) {
        uint32_t arms = 0;
        for (uint32_t v = 0; v < graph->ops_count; v++)
            for (uint32_t i = 0; i < tarn_extra(&graph->ops[v])->branch_count; i++) {
                const uint32_t *arm = graph->ops[v].extra->branch[i];
                if (arm[0] == c && arm[1] >= arms) arms = arm[1] + 1;
            }
        uint64_t draw = tarn_seed_mix(tarn_seed_mix(check->options.seed, iteration), c);
        session->arms[c] = arms > 0 && iteration > 0 ? (uint32_t)((iteration + draw) % arms) : 0;
    }
    tarn_session_skip(session);
    session->ready = false;
}

static enum tarn_status run_streams(struct tarn_check *check, struct tarn_error *error)
{
    const struct tarn_program *program = check->session->program;
    struct tarn_expected *expected = &check->checker->expected;
    uint64_t window = tarn_check_window(check), left = check->options.iterations;
    while (left > 0) {
        uint64_t iterations = left < window ? left : window;
        if (left < window && check->device && check->session->settings.options.capture)
            iterations = 1; /* iterations that fill no block are launched one by one */
        if (check->session->arms) {
            iterations = 1;
            take_arms(check, check->options.iterations - left);
        }
        if (tarn_expected_advance(expected, iterations) != TARN_OK)
            return tarn_error_no_memory(error);
        enum tarn_status status = run_window(check, iterations, error);
        if (status != TARN_OK) return status;
        for (uint32_t s = 0; s < program->streams_count; s++) {
            check->linear.done[s] += iterations * tarn_linear_length(&check->linear, s);
        }
        tarn_check_settle(check);
        left -= iterations;
    }
    return TARN_OK;
}

/* ---- The call ---- */

static enum tarn_status refuse_use(const struct tarn_session *session,
                                   const struct tarn_check_options *options,
                                   struct tarn_error *error)
{
    if (!session) return tarn_error_null(error, "tarn_session_check");
    if (session->submitted != 0 || session->refused || session->check.object)
        return tarn_error_set(error, TARN_USAGE, "checked execution needs a fresh session");
    if (tarn_plan_memory_unbound(&session->memory) != TARN_NONE)
        return tarn_error_set(
            error, TARN_USAGE, "%s has no memory: bind it first",
            tarn_tensor_label(session->graph, tarn_plan_memory_unbound(&session->memory)).text);
    if (!host_reaches(session)) {
        const char *name = tarn_device_name(session->device.table);
        if (!session->device.table->pattern_fill)
            return tarn_error_set(error, TARN_USAGE,
                                  "the host does not reach the memory of device '%s', which has no "
                                  "checking kernels for it",
                                  name);
        if (options->delay_ns > 0)
            return tarn_error_set(error, TARN_USAGE, "the kernels of device '%s' cannot be delayed",
                                  name);
        if (session->settings.options.capture && (options->order || options->random_order))
            return tarn_error_set(error, TARN_USAGE, "a linear order is not captured");
    }
    if (options->order && options->random_order)
        return tarn_error_set(error, TARN_USAGE, "a given order cannot be random as well");
    if (options->order_count > 0 && !options->order)
        return tarn_error_set(error, TARN_USAGE, "an order of %zu steps at NULL",
                              options->order_count);
    return TARN_OK;
}

static enum tarn_status run(struct tarn_check *check, struct tarn_error *error)
{
    if (check->options.order) return tarn_check_run_given_order(check, error);
    if (check->options.random_order) return tarn_check_run_random_order(check, error);
    return run_streams(check, error);
}

static enum tarn_status check_session(struct tarn_session *session,
                                      const struct tarn_check_options *options,
                                      struct tarn_check_report *report, size_t size,
                                      struct tarn_error *error)
{
    struct tarn_check check;
    enum tarn_status status = check_init(&check, session, options, error);
    if (status != TARN_OK) return status;
    status = run(&check, error);
    if (status == TARN_OK) status = inspect_finals(&check, error);
    if (report) tarn_struct_give(report, size, &check.report, sizeof check.report);
    check_finish(&check);
    return status;
}

enum tarn_status tarn_session_check_sized(struct tarn_session *session,
                                          const struct tarn_check_options *options,
                                          struct tarn_check_report *report, size_t size,
                                          struct tarn_error *error)
{
    struct tarn_check_options taken;
    tarn_error_clear(error);
    if (report) memset(report, 0, size);
    enum tarn_status status =
        tarn_options_take(&taken, sizeof taken, options, "check options", error);
    if (status == TARN_OK) status = refuse_use(session, &taken, error);
    if (status == TARN_OK) status = tarn_arena_begin_turn(session, false, error);
    if (status != TARN_OK) return status;
    status = check_session(session, &taken, report, size, error);
    tarn_arena_end_turn(session);
    return status;
}
