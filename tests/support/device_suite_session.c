/* Whole sessions on the device: checked execution with the digest that the host gets, in every way
 * in which a session can be run; and sessions that end early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device_suite_parts.h"
#include "random_graph.h"
#include "runtime/check/pattern.h"
#include "runtime/state/settings.h"
#include "session_calls.h"
#include "streams/plan/plan.h"
#include "tarn.h"
#include "unshared_plan.h"

enum { ITERATIONS = 5, GRAPHS = SANITIZED ? 4 : 12 };

/* ---- A graph, its plan, and what the host makes of it ---- */

struct subject {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_check_report expected; /* of ITERATIONS */
};

static void check_on(struct tarn_plan *plan, struct tarn_device device,
                     const struct tarn_session_options *options, struct tarn_check_options *check,
                     struct tarn_check_report *report)
{
    struct tarn_session *session;
    struct tarn_error error;
    check->iterations = ITERATIONS;
    require(tarn_session_create(plan, device, options, &session, &error), &error);
    enum tarn_status status = tarn_session_check(session, check, report, &error);
    tarn_session_destroy(session);
    require(status, &error);
}

static struct subject subject_of(uint64_t seed, uint32_t ops_max)
{
    struct subject subject;
    struct tarn_error error;
    struct random_graph_options knobs = random_graph_knobs(seed, ops_max);
    knobs.parameters += 2;
    knobs.alignment_share = 0;
    subject.graph = random_graph(&knobs);
    require(tarn_plan_create(subject.graph,
                             TARN_PLAN_OPTIONS(.alignment = 64, .effort = TARN_NO_EFFORT),
                             &subject.plan, &error),
            &error);
    check_on(subject.plan, tarn_device_host(NULL), NULL, TARN_CHECK_OPTIONS(.seed = 1),
             &subject.expected);
    return subject;
}

static struct subject subject_create(uint64_t seed) { return subject_of(seed, 60); }

static void subject_destroy(struct subject *subject)
{
    tarn_plan_destroy(subject->plan);
    tarn_graph_destroy(subject->graph);
}

static void requires_expected(const struct subject *subject, struct tarn_device device,
                              const struct tarn_session_options *options,
                              struct tarn_check_options *check)
{
    struct tarn_check_report report;
    check_on(subject->plan, device, options, check, &report);
    assert_int_equal(report.ops_run, subject->expected.ops_run);
    assert_int_equal(report.bytes_read, subject->expected.bytes_read);
    assert_int_equal(report.bytes_written, subject->expected.bytes_written);
    assert_int_equal(report.digest, subject->expected.digest);
}

/* Skips where checked execution has no way. */
static struct tarn_device need_checks(void **state)
{
    device_suite_need(state, true);
    struct tarn_device device = device_suite_device(state);
    struct tarn_memory_limits limits;
    assert_int_equal(device.table->memory_limits(device.self, &limits), 0);
    bool by_host = limits.on_host && (device.table->launch || tarn_device_is_host(device));
    device_suite_need(state, by_host || device.table->pattern_fill);
    return device;
}

static void for_all_graphs(struct tarn_device device,
                           void (*act)(const struct subject *subject, struct tarn_device device))
{
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct subject subject = subject_create(seed);
        act(&subject, device);
        subject_destroy(&subject);
    }
}

/* ---- Every way to run ---- */

static void run_directly(const struct subject *subject, struct tarn_device device)
{
    requires_expected(subject, device, NULL, TARN_CHECK_OPTIONS(.seed = 0));
    requires_expected(subject, device, TARN_SESSION_OPTIONS(.depth = 1, .flight = 10),
                      TARN_CHECK_OPTIONS(.seed = 0));
    requires_expected(subject, device, NULL, TARN_CHECK_OPTIONS(.seed = 5, .random_order = true));
}

/* Whole iterations, one op after another, in list order. */
static void run_in_given_order(const struct subject *subject, struct tarn_device device)
{
    const struct tarn_graph *graph = subject->graph;
    struct tarn_step *steps = calloc((size_t)graph->ops_count * ITERATIONS + 1, sizeof *steps);
    size_t count = 0;
    for (uint32_t k = 0; k < ITERATIONS; k++) {
        for (uint32_t rank = 0; rank < graph->ops_count; rank++) {
            tarn_op op = graph->order[rank];
            if (!graph->ops[op].view) steps[count++] = (struct tarn_step){op, k};
        }
    }
    requires_expected(subject, device, NULL,
                      TARN_CHECK_OPTIONS(.order = steps, .order_count = count));
    free(steps);
}

static void a_given_order_leaves_what_the_graph_says(void **state)
{
    for_all_graphs(need_checks(state), run_in_given_order);
}

static void direct_execution_leaves_what_the_graph_says(void **state)
{
    for_all_graphs(need_checks(state), run_directly);
}

/* Blocks of one, blocks with a rest, and more than there are iterations. */
static void run_captured(const struct subject *subject, struct tarn_device device)
{
    for (uint32_t unroll = 0; unroll <= ITERATIONS + 1; unroll += 1 + unroll / 2) {
        requires_expected(subject, device, TARN_SESSION_OPTIONS(.capture = true, .unroll = unroll),
                          TARN_CHECK_OPTIONS(.seed = 0));
    }
}

static void captured_execution_leaves_what_the_graph_says(void **state)
{
    struct tarn_device device = need_checks(state);
    device_suite_need(state, device.table->capture_begin);
    for_all_graphs(device, run_captured);
}

static void run_in_borrowed_memory(const struct subject *subject, struct tarn_device device)
{
    struct tarn_session_memory needed;
    struct tarn_error error;
    void *memory;
    require(tarn_session_memory_size(subject->plan, device, NULL, &needed, &error), &error);
    assert_true(needed.size >= needed.arena + needed.persistent);
    assert_int_equal(device.table->memory_create(device.self, needed.size, &memory), 0);
    struct tarn_session_options *options =
        TARN_SESSION_OPTIONS(.memory = memory, .memory_size = needed.size);
    requires_expected(subject, device, options, TARN_CHECK_OPTIONS(.seed = 0));
    options->memory_size--;
    struct tarn_session *session;
    assert_int_equal(tarn_session_create(subject->plan, device, options, &session, &error),
                     TARN_USAGE);
    device.table->memory_destroy(device.self, memory, needed.size);
}

static void the_caller_may_bring_the_memory(void **state)
{
    for_all_graphs(need_checks(state), run_in_borrowed_memory);
}

static void bind_all(const struct subject *subject, struct tarn_device device,
                     struct tarn_session *session, void **memory)
{
    const struct tarn_graph *graph = subject->graph;
    struct tarn_error error;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        assert_int_equal(device.table->memory_create(device.self, storage->size + 1, &memory[a]),
                         0);
        require(tarn_session_bind_memory(session, storage->tensor, memory[a], &error), &error);
    }
}

static void run_with_bound_tensors(const struct subject *subject, struct tarn_device device)
{
    const struct tarn_graph *graph = subject->graph;
    struct tarn_session_options *options = TARN_SESSION_OPTIONS(.binds_persistent = true);
    struct tarn_check_report report;
    struct tarn_session *session;
    struct tarn_error error;
    void **memory = calloc(graph->storages_count, sizeof *memory);
    require(tarn_session_create(subject->plan, device, options, &session, &error), &error);
    assert_int_equal(tarn_session_check(session, NULL, NULL, &error), TARN_USAGE); /* unbound */
    bind_all(subject, device, session, memory);
    require(
        tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = ITERATIONS), &report, &error),
        &error);
    assert_int_equal(report.digest, subject->expected.digest);
    tarn_session_destroy(session);
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++)
        device.table->memory_destroy(device.self, memory[a], graph->storages[a].size + 1);
    free(memory);
}

static void persistent_tensors_may_be_the_callers(void **state)
{
    for_all_graphs(need_checks(state), run_with_bound_tensors);
}

/* ---- Contents ---- */

static void what_is_written_is_read_back_through_host_memory(void **state)
{
    device_suite_need(state, true);
    struct subject subject = subject_create(2);
    struct tarn_session *session;
    struct tarn_error error;
    require(tarn_session_create(subject.plan, device_suite_device(state), NULL, &session, &error),
            &error);
    for (uint32_t a = subject.graph->planned_count; a < subject.graph->storages_count; a++) {
        const struct tarn_storage *storage = &subject.graph->storages[a];
        void *memory;
        require(tarn_session_host_memory_create(session, storage->size, &memory, &error), &error);
        tarn_pattern_fill(memory, storage->size, a);
        require(tarn_session_write(session, storage->tensor, memory, storage->size, &error),
                &error);
        memset(memory, 0, storage->size);
        require(tarn_session_read(session, storage->tensor, memory, storage->size, &error), &error);
        assert_int_equal(tarn_pattern_compare(memory, storage->size, a), storage->size);
        tarn_session_host_memory_destroy(session, memory, storage->size);
    }
    tarn_session_destroy(session);
    subject_destroy(&subject);
}

/* ---- Wrong plans ---- */

/* make writes t, spoil writes u over it, use reads t. */
static void a_plan_that_corrupts_is_caught(void **state)
{
    struct tarn_device device = need_checks(state);
    struct tarn_error error;
    struct tarn_graph *graph;
    struct tarn_session *session;
    struct tarn_builder *b = tarn_builder_create("spoilt");
    tarn_stream s = tarn_builder_stream(b, "s");
    struct tarn_tensor_info info = {.name = "t", .size = 1000};
    tarn_tensor t = tarn_builder_tensor(b, &info);
    info.name = "u";
    tarn_tensor u = tarn_builder_tensor(b, &info);
    tarn_builder_op(
        b, &(struct tarn_op_info){.name = "make", .stream = s, .outputs = TARN_TENSORS(t)});
    tarn_builder_op(
        b, &(struct tarn_op_info){.name = "spoil", .stream = s, .outputs = TARN_TENSORS(u)});
    tarn_op use = tarn_builder_op(
        b, &(struct tarn_op_info){.name = "use", .stream = s, .inputs = TARN_TENSORS(t, u)});
    require(tarn_builder_finish(b, &graph, &error), &error);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    plan->storages[1].offset = plan->storages[0].offset + 448;
    require(tarn_session_create(plan, device, NULL, &session, &error), &error);
    assert_int_equal(tarn_session_check(session, NULL, NULL, &error), TARN_CHECK_FAILED);
    assert_int_equal(error.op, use);
    assert_int_equal(error.tensor, t);
    assert_non_null(strstr(error.text, "op 2 \"use\" of iteration 0: byte 448 of tensor 0 \"t\""));
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Sessions that end early ---- */

struct kernel_state {
    tarn_op failing;
    uint64_t iteration;
};

/* Enqueues nothing, which any device allows. */
static int fail_if_told(void *user, const struct tarn_call *call)
{
    const struct kernel_state *state = user;
    return state && call->op == state->failing && call->iteration == state->iteration ? 33 : 0;
}

static struct tarn_session *open_idle(const struct subject *subject, void **state,
                                      const struct tarn_session_options *options)
{
    struct tarn_session *session;
    struct tarn_error error;
    device_suite_need(state, true);
    require(
        tarn_session_create(subject->plan, device_suite_device(state), options, &session, &error),
        &error);
    assert_int_equal(tarn_session_bind_default(session, fail_if_told, NULL), TARN_OK);
    return session;
}

static void a_session_can_be_destroyed_in_every_state(void **state)
{
    device_suite_need(state, true);
    struct subject subject = subject_create(3);
    struct tarn_error error;
    tarn_ticket ticket;
    for (uint32_t steps = 0; steps < 8; steps++) {
        struct tarn_session *session = open_idle(&subject, state, NULL);
        uint64_t finished;
        if (steps & 1) require(tarn_session_submit(session, 9, &ticket, &error), &error);
        if (steps & 2) require(tarn_session_query(session, &finished, &error), &error);
        if (steps == 7) require(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
        if (steps & 4) tarn_session_cancel(session);
        if (steps == 5)
            assert_int_equal(tarn_session_wait(session, ticket, TARN_FOREVER, &error),
                             TARN_INTERRUPTED);
        tarn_session_destroy(session);
    }
    subject_destroy(&subject);
}

static void a_failing_kernel_ends_the_session(void **state)
{
    device_suite_need(state, true);
    struct subject subject = subject_create(4);
    struct tarn_error error;
    tarn_ticket ticket = 0;
    for (tarn_op op = 0; op < subject.graph->ops_count; op += 7) {
        struct kernel_state failure = {op, 2};
        if (subject.graph->ops[op].view) continue;
        struct tarn_session *session = open_idle(&subject, state, NULL);
        tarn_session_bind_default(session, fail_if_told, &failure);
        enum tarn_status status = tarn_session_submit(session, 20, &ticket, &error);
        if (!status) status = tarn_session_wait(session, ticket, TARN_FOREVER, &error);
        assert_int_equal(status, TARN_DEVICE);
        assert_int_equal(error.op, op);
        assert_int_equal(error.device_code, 33);
        assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_USAGE);
        tarn_session_destroy(session);
    }
    subject_destroy(&subject);
}

static void asking_ends_nothing(void **state)
{
    device_suite_need(state, true);
    struct subject subject = subject_create(5);
    struct tarn_session *session = open_idle(&subject, state, TARN_SESSION_OPTIONS(.depth = 3));
    struct tarn_error error;
    tarn_ticket ticket;
    for (uint32_t round = 1; round < 30; round++) {
        uint64_t finished = 0;
        enum tarn_status status;
        require(tarn_session_submit(session, round % 5 + 1, &ticket, &error), &error);
        require(tarn_session_query(session, &finished, &error), &error);
        assert_true(finished <= ticket && finished + 3 >= ticket);
        while ((status = tarn_session_wait(session, ticket, 0, &error)) == TARN_DEADLINE) continue;
        require(status, &error);
    }
    tarn_session_destroy(session);
    subject_destroy(&subject);
}

static void *cancel_soon(void *session)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    tarn_session_cancel(session);
    return NULL;
}

static void anybody_can_cancel(void **state)
{
    device_suite_need(state, true);
    struct subject subject = subject_create(6);
    struct tarn_session *session = open_idle(&subject, state, NULL);
    struct tarn_error error;
    tarn_ticket ticket = 0;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, session), 0);
    enum tarn_status status = tarn_session_submit(session, 1000000000, &ticket, &error);
    if (!status) status = tarn_session_wait(session, ticket, TARN_FOREVER, &error);
    pthread_join(thread, NULL);
    assert_int_equal(status, TARN_INTERRUPTED);
    assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_USAGE);
    tarn_session_destroy(session);
    subject_destroy(&subject);
}

/* ---- Growth ---- */

static uint64_t resident_bytes(void)
{
    unsigned long whole, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &whole, &resident) != 2) resident = 0;
    if (file) fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void nothing_grows(const struct subject *subject, void **state,
                          const struct tarn_session_options *options)
{
    const struct device_suite *suite = device_suite_facts(state);
    struct tarn_session *session = open_idle(subject, state, options);
    run_iterations(session, 100);
    uint64_t alive = suite->alive ? suite->alive(suite->user) : 0, resident = resident_bytes();
    for (uint32_t i = 0; i < 10; i++) run_iterations(session, 100);
    if (suite->alive) assert_int_equal(suite->alive(suite->user), alive);
    uint64_t grown = resident_bytes() > resident ? resident_bytes() - resident : 0;
    if (!SANITIZED && grown > (1 << 20)) fail_msg("%llu bytes more", (unsigned long long)grown);
    tarn_session_destroy(session);
}

static void a_thousand_iterations_leave_nothing_behind(void **state)
{
    device_suite_need(state, true);
    struct subject subject = subject_create(7);
    nothing_grows(&subject, state, NULL);
    if (device_suite_device(state).table->capture_begin)
        nothing_grows(&subject, state, TARN_SESSION_OPTIONS(.capture = true, .unroll = 3));
    subject_destroy(&subject);
}

/* ---- Two sessions at once ---- */

struct half {
    const struct subject *subject;
    struct tarn_device device;
    struct tarn_check_report report;
    struct tarn_error error;
    enum tarn_status status;
};

static void *check_half(void *argument)
{
    struct half *half = argument;
    for (uint32_t i = 0; i < 5 && !half->status; i++) {
        struct tarn_session *session = NULL;
        half->status =
            tarn_session_create(half->subject->plan, half->device, NULL, &session, &half->error);
        if (!half->status)
            half->status = tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = ITERATIONS),
                                              &half->report, &half->error);
        tarn_session_destroy(session);
    }
    return NULL;
}

static void two_sessions_run_at_once(void **state)
{
    struct tarn_device device = need_checks(state);
    struct subject subjects[2] = {subject_create(8), subject_create(9)};
    struct half halves[2] = {{.subject = &subjects[0], .device = device},
                             {.subject = &subjects[1], .device = device}};
    pthread_t threads[2];
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_half, &halves[i]), 0);
    for (uint32_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < 2; i++) {
        require(halves[i].status, &halves[i].error);
        assert_int_equal(halves[i].report.digest, subjects[i].expected.digest);
        subject_destroy(&subjects[i]);
    }
}

/* ---- Errors at every call ---- */

/* There and back, the first persistent storage; then checked, and a picture of it. */
static enum tarn_status copy_check_and_trace(const struct subject *subject,
                                             struct tarn_session *session, bool has_trace,
                                             void *memory, struct tarn_check_report *report,
                                             struct tarn_error *error)
{
    const struct tarn_storage *storage = &subject->graph->storages[subject->graph->planned_count];
    memset(memory, 0, storage->size);
    enum tarn_status status =
        tarn_session_write(session, storage->tensor, memory, storage->size, error);
    if (!status) status = tarn_session_read(session, storage->tensor, memory, storage->size, error);
    if (!status)
        status = tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = ITERATIONS), report,
                                    error);
    if (!status && has_trace) status = tarn_session_save_trace(session, "/dev/null", error);
    return status;
}

static enum tarn_status whole_life(const struct subject *subject, struct tarn_device device,
                                   const struct tarn_session_options *options,
                                   struct tarn_error *error)
{
    struct tarn_session *session = NULL;
    struct tarn_check_report report = {0};
    void *memory = NULL;
    uint64_t size = subject->graph->storages[subject->graph->planned_count].size;
    enum tarn_status status = tarn_session_create(subject->plan, device, options, &session, error);
    if (!status) status = tarn_session_host_memory_create(session, size, &memory, error);
    if (!status)
        status = copy_check_and_trace(subject, session, options && options->flight > 0, memory,
                                      &report, error);
    tarn_session_host_memory_destroy(session, memory, size);
    tarn_session_destroy(session);
    if (!status) assert_int_equal(report.digest, subject->expected.digest);
    return status;
}

/* The n-th call fails once, for every n (or only each that the stride leads to; sanitized, every
 * seventh). Only a failure while destroying
 * may go unnoticed. */
static void fail_each_call(const struct subject *subject, void **state,
                           const struct tarn_session_options *options, uint32_t stride)
{
    const struct device_suite *suite = device_suite_facts(state);
    struct tarn_device device = device_suite_device(state);
    if (getenv("TARN_CAMPAIGN")) stride = 1;
    if (SANITIZED && stride < 7) stride = 7;
    uint64_t before = suite->alive ? suite->alive(suite->user) : 0;
    uint32_t unnoticed = 0, runs = 0;
    for (bool failed = true; failed; runs++) {
        struct tarn_error error = {0};
        suite->fail_after(suite->user, runs * stride);
        enum tarn_status status = whole_life(subject, device, options, &error);
        failed = suite->fail_after(suite->user, UINT64_MAX);
        if (!failed) require(status, &error);
        if (failed && status == TARN_OK) unnoticed++;
        if (status && status != TARN_DEVICE && status != TARN_SYSTEM) require(status, &error);
        if (status) assert_true(error.text[0]);
        if (suite->alive) assert_int_equal(suite->alive(suite->user), before);
    }
    assert_true(runs > 2 && runs * stride > 20);
    assert_true(unnoticed < runs / 2);
}

static void every_call_may_fail_once(void **state)
{
    struct tarn_device device = need_checks(state);
    device_suite_need(state, device_suite_facts(state)->fail_after != NULL);
    struct subject subject = subject_of(17, 20); /* small, with everything in it */
    assert_true(subject.graph->storages_count > subject.graph->planned_count);
    fail_each_call(&subject, state, NULL, 1);
    fail_each_call(&subject, state, TARN_SESSION_OPTIONS(.flight = 8, .stamps = true), 16);
    if (device.table->capture_begin)
        fail_each_call(&subject, state, TARN_SESSION_OPTIONS(.capture = true, .unroll = 2), 1);
    subject_destroy(&subject);
}

/* ---- All of it ---- */

#define PART(test) \
    cmocka_unit_test_prestate_setup_teardown(test, device_suite_open, device_suite_close, NULL)
const struct CMUnitTest *device_suite_sessions(size_t *count)
{
    static const struct CMUnitTest parts[] = {
        PART(direct_execution_leaves_what_the_graph_says),
        PART(a_given_order_leaves_what_the_graph_says),
        PART(captured_execution_leaves_what_the_graph_says),
        PART(the_caller_may_bring_the_memory),
        PART(persistent_tensors_may_be_the_callers),
        PART(what_is_written_is_read_back_through_host_memory),
        PART(a_plan_that_corrupts_is_caught),
        PART(a_session_can_be_destroyed_in_every_state),
        PART(a_failing_kernel_ends_the_session),
        PART(asking_ends_nothing),
        PART(anybody_can_cancel),
        PART(a_thousand_iterations_leave_nothing_behind),
        PART(two_sessions_run_at_once),
        PART(every_call_may_fail_once),
    };
    *count = sizeof parts / sizeof *parts;
    return parts;
}
