/* Checked execution: tarn_session_check. Persistent storages get their initial patterns, the
 * session runs with checking kernels (check_kernel.h) that know from the graph alone what they must
 * find (expected.h), on its streams or as one linear order (linear.h), and in the end what must
 * still be there is looked at. Cost: every byte that the ops read is compared once and every byte
 * that they write is written once, plus 8 bytes per access and iteration of a window. */
#include <stdlib.h>
#include <string.h>

#include "../streams/graph/report.h"
#include "check_kernel.h"
#include "event_count.h"
#include "linear.h"

struct check {
    struct tarn_session *session;
    struct tarn_checker *checker; /* the session's */
    struct tarn_check_options options;
    struct tarn_linear linear; /* how far the streams are */
    uint64_t *finals;          /* by storage: seed of what must be there in the end, 0: none */
    struct tarn_check_report report;
    uint64_t deadline_ns;
};

/* ---- Time ---- */

static void set_deadline(struct check *check)
{
    uint64_t now = tarn_now_ns(), timeout = check->options.timeout_ns;
    check->deadline_ns = timeout == 0 || timeout > UINT64_MAX - now ? UINT64_MAX : now + timeout;
}

static uint64_t time_left(const struct check *check)
{
    if (check->deadline_ns == UINT64_MAX) return TARN_FOREVER;
    uint64_t now = tarn_now_ns();
    return now < check->deadline_ns ? check->deadline_ns - now : 0;
}

/* ---- Set-up ---- */

static void fill_persistent(const struct check *check)
{
    const struct tarn_graph *graph = check->session->graph;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++) {
        tarn_pattern_fill(check->checker->addresses[a], graph->storages[a].size,
                          tarn_expected_initial(a));
        check->finals[a] = tarn_expected_initial(a);
    }
}

static void bind_checker(const struct check *check)
{
    for (uint32_t v = 0; v < check->session->graph->ops_count; v++) {
        check->session->bindings[v] =
            (struct tarn_binding){tarn_checker_kernel, check->checker, true};
    }
}

/* Takes the checking kernels off the session, unless one of them may still run. */
static void unbind_checker(struct tarn_session *session)
{
    if (session->refused) return;
    memset(session->bindings, 0, session->graph->ops_count * sizeof *session->bindings);
    session->ready = false;
}

static void check_finish(struct check *check)
{
    unbind_checker(check->session);
    tarn_linear_finish(&check->linear);
    free(check->finals);
}

/* The checker stays with the session: a kernel may still be at work after a deadline, and what one
 * check leaves in the arena would hide from the next what is missing. */
static enum tarn_status check_init(struct check *check, struct tarn_session *session,
                                   const struct tarn_check_options *options)
{
    const struct tarn_graph *graph = session->graph;
    *check = (struct check){.session = session, .options = *options};
    if (check->options.iterations == 0) check->options.iterations = 1;
    check->finals = calloc((size_t)graph->storages_count + 1, sizeof *check->finals);
    check->checker = tarn_checker_create(session, options->seed, options->delay_ns);
    session->checker = check->checker;
    if (!check->finals || !check->checker ||
        tarn_linear_init(&check->linear, &session->program, graph) != TARN_OK) {
        check_finish(check);
        return TARN_SYSTEM;
    }
    fill_persistent(check);
    bind_checker(check);
    set_deadline(check);
    return TARN_OK;
}

/* ---- What ran, and what it must have left ---- */

static bool has_run(const struct check *check, uint32_t op, uint64_t iteration)
{
    const struct tarn_program *program = &check->session->program;
    uint32_t step = program->step_of[op], stream = program->steps[step].stream;
    uint64_t launch = iteration * tarn_linear_length(&check->linear, stream);
    return launch + (step - program->begin[stream]) < check->linear.done[stream];
}

static void settle_op(struct check *check, uint32_t op, uint64_t iteration)
{
    const struct tarn_expected *expected = &check->checker->expected;
    const struct tarn_graph *graph = check->session->graph;
    uint64_t digest = tarn_expected_digest(expected, op, iteration);
    check->report.ops_run++;
    for (uint32_t i = expected->begin[op]; i < expected->begin[op + 1]; i++) {
        const struct tarn_access *access = &expected->accesses[i];
        uint64_t size = graph->storages[access->storage].size;
        bool workspace = access->storage == graph->ops[op].workspace_storage;
        if (access->reads || workspace) check->report.bytes_read += size;
        if (!access->writes) continue;
        check->report.bytes_written += size;
        check->finals[access->storage] = tarn_expected_written(digest, access);
    }
}

/* Outputs last until an op of the next iteration runs. */
static void forget_outputs(struct check *check)
{
    const struct tarn_graph *graph = check->session->graph;
    for (uint32_t a = 0; a < graph->planned_count; a++) check->finals[a] = 0;
}

/* Counts what ran in the window and finds the version that each storage has now. */
static void settle_window(struct check *check)
{
    const struct tarn_graph *graph = check->session->graph;
    const struct tarn_expected *expected = &check->checker->expected;
    for (uint64_t k = expected->window_begin; k < expected->window_end; k++) {
        bool begun = false;
        for (uint32_t rank = 0; rank < graph->ops_count; rank++) {
            uint32_t op = graph->order[rank];
            if (graph->ops[op].view || !has_run(check, op, k)) continue;
            if (!begun) forget_outputs(check);
            begun = true;
            settle_op(check, op, k);
        }
    }
}

static enum tarn_status check_failed(const struct check *check, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (error) *error = check->checker->failure;
    return TARN_CHECK_FAILED;
}

/* Looks at everything that outlives the run. */
static enum tarn_status inspect_finals(struct check *check, struct tarn_error *error)
{
    const struct tarn_graph *graph = check->session->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        uint64_t seed = check->finals[a];
        if (seed == 0 || !(graph->storages[a].persistent || graph->storages[a].pinned)) continue;
        if (!tarn_checker_look(check->checker, a, seed)) return check_failed(check, error);
        check->report.bytes_read += graph->storages[a].size;
        check->report.digest = tarn_seed_mix(tarn_seed_mix(check->report.digest, a), seed);
    }
    return TARN_OK;
}

/* ---- On the session's streams ---- */

static enum tarn_status run_window(struct check *check, uint64_t iterations,
                                   struct tarn_error *error)
{
    tarn_ticket ticket;
    enum tarn_status status = tarn_session_submit(check->session, iterations, &ticket, error);
    if (status != TARN_OK) return status;
    status = tarn_session_wait(check->session, ticket, time_left(check), error);
    if (status == TARN_DEVICE && atomic_load(&check->checker->failed) == 2)
        return check_failed(check, error);
    return status;
}

static enum tarn_status run_streams(struct check *check, struct tarn_error *error)
{
    const struct tarn_program *program = &check->session->program;
    struct tarn_expected *expected = &check->checker->expected;
    uint64_t window = tarn_expected_window(expected), left = check->options.iterations;
    while (left > 0) {
        uint64_t iterations = left < window ? left : window;
        if (tarn_expected_advance(expected, iterations) != TARN_OK)
            return tarn_error_no_memory(error);
        enum tarn_status status = run_window(check, iterations, error);
        if (status != TARN_OK) return status;
        for (uint32_t s = 0; s < program->streams_count; s++) {
            check->linear.done[s] += iterations * tarn_linear_length(&check->linear, s);
        }
        settle_window(check);
        left -= iterations;
    }
    return TARN_OK;
}

/* ---- As one linear order ---- */

static enum tarn_status launch(const struct check *check, struct tarn_step step,
                               struct tarn_error *error)
{
    if (time_left(check) == 0) {
        return tarn_error_set(error, TARN_DEADLINE,
                              "the checked linear order is not finished; next would be %s of "
                              "iteration %u",
                              tarn_op_label(check->session->graph, step.op).text, step.iteration);
    }
    if (tarn_session_launch(check->session, step.op, step.iteration) == 0) return TARN_OK;
    return check_failed(check, error);
}

static enum tarn_status run_given_order(struct check *check, struct tarn_error *error)
{
    const struct tarn_step *steps = check->options.order;
    size_t count = check->options.order_count;
    enum tarn_status status = tarn_linear_follow(&check->linear, steps, count, error);
    if (status != TARN_OK) return status;
    uint64_t iterations = 0;
    for (size_t i = 0; i < count; i++) {
        if (iterations <= steps[i].iteration) iterations = (uint64_t)steps[i].iteration + 1;
    }
    if (tarn_expected_advance(&check->checker->expected, iterations) != TARN_OK)
        return tarn_error_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        status = launch(check, steps[i], error);
        if (status != TARN_OK) return status;
    }
    settle_window(check);
    return TARN_OK;
}

/* The next iterations to the end; no stream runs ahead of a window. */
static enum tarn_status draw_window(struct check *check, struct tarn_draw *draw,
                                    uint64_t iterations, struct tarn_error *error)
{
    struct tarn_expected *expected = &check->checker->expected;
    struct tarn_step step;
    if (tarn_expected_advance(expected, iterations) != TARN_OK) return tarn_error_no_memory(error);
    while (tarn_draw_step(draw, &check->linear, expected->window_end, &step)) {
        enum tarn_status status = launch(check, step, error);
        if (status != TARN_OK) return status;
    }
    settle_window(check);
    return TARN_OK;
}

static enum tarn_status run_random_order(struct check *check, struct tarn_error *error)
{
    struct tarn_draw draw;
    if (tarn_draw_init(&draw, check->session->program.streams_count, check->options.seed) !=
        TARN_OK) {
        return tarn_error_no_memory(error);
    }
    enum tarn_status status = TARN_OK;
    uint64_t window = tarn_expected_window(&check->checker->expected), begin = 0;
    for (; status == TARN_OK && begin < check->options.iterations; begin += window) {
        uint64_t left = check->options.iterations - begin;
        status = draw_window(check, &draw, left < window ? left : window, error);
    }
    tarn_draw_finish(&draw);
    return status;
}

/* ---- The call ---- */

static enum tarn_status refuse_use(const struct tarn_session *session,
                                   const struct tarn_check_options *options,
                                   struct tarn_error *error)
{
    if (!session) return tarn_error_set(error, TARN_USAGE, "no session");
    if (options->struct_size < sizeof *options)
        return tarn_error_set(error, TARN_USAGE,
                              "check options of %zu bytes where %zu are needed: fill them with "
                              "their macro",
                              options->struct_size, sizeof *options);
    if (!tarn_session_is_host(session))
        return tarn_error_set(error, TARN_USAGE, "checked execution needs the host device");
    if (session->submitted != 0 || session->refused || session->checker)
        return tarn_error_set(error, TARN_USAGE, "checked execution needs a fresh session");
    if (options->order && options->random_order)
        return tarn_error_set(error, TARN_USAGE, "a given order cannot be random as well");
    if (options->order_count > 0 && !options->order)
        return tarn_error_set(error, TARN_USAGE, "an order of %zu steps at NULL",
                              options->order_count);
    return TARN_OK;
}

static enum tarn_status run(struct check *check, struct tarn_error *error)
{
    if (check->options.order) return run_given_order(check, error);
    if (check->options.random_order) return run_random_order(check, error);
    return run_streams(check, error);
}

enum tarn_status tarn_session_check(struct tarn_session *session,
                                    const struct tarn_check_options *options,
                                    struct tarn_check_report *report, struct tarn_error *error)
{
    struct check check;
    const struct tarn_check_options defaults = {.struct_size = sizeof defaults};
    if (!options) options = &defaults;
    tarn_error_clear(error);
    if (report) *report = (struct tarn_check_report){0};
    enum tarn_status status = refuse_use(session, options, error);
    if (status != TARN_OK) return status;
    if (check_init(&check, session, options) != TARN_OK) {
        return tarn_error_no_memory(error);
    }
    status = run(&check, error);
    if (status == TARN_OK) status = inspect_finals(&check, error);
    if (report) *report = check.report;
    check_finish(&check);
    return status;
}
