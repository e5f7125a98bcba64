/* The host executor: order kept, results right, errors and deadlines reported, nothing allocated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "streams/plan/plan.h"
#include "support/order_oracle.h"
#include "support/random_graph.h"
#include "support/session_calls.h"
#include "support/unshared_plan.h"
#include "tarn.h"

static struct tarn_session *open_session(struct tarn_plan *plan,
                                         const struct tarn_host_options *host,
                                         const struct tarn_session_options *options)
{
    struct tarn_session *session;
    struct tarn_error error;
    require(tarn_session_create(plan, tarn_device_host(host), options, &session, &error), &error);
    return session;
}

/* ---- Order: every op starts after all its ancestors have ended ---- */

struct order_test {
    struct order_oracle oracle;
    atomic_uint disorder;
    uint32_t delay_ns; /* at most */
};

static void pause_at_random(uint64_t seed, uint32_t delay_ns)
{
    struct random_source source = {seed};
    uint32_t kind = random_below(&source, 4);
    if (delay_ns == 0 || kind == 0) return;
    if (kind == 1) {
        sched_yield();
        return;
    }
    volatile uint32_t turns = random_below(&source, delay_ns);
    while (turns > 0) turns--;
}

static int check_order(void *user, const struct tarn_call *call)
{
    struct order_test *test = user;
    bool in_order = order_oracle_start(&test->oracle, call->op, call->iteration);
    pause_at_random(call->iteration * 977 + call->op, test->delay_ns);
    if (!order_oracle_end(&test->oracle, call->op, call->iteration) || !in_order)
        atomic_fetch_add(&test->disorder, 1);
    return 0;
}

static void check_order_of(struct tarn_graph *graph, const struct tarn_host_options *host,
                           const struct tarn_session_options *options, uint32_t delay_ns)
{
    struct order_test test = {.delay_ns = delay_ns};
    struct tarn_plan *plan = unshared_plan(graph, 64);
    order_oracle_init(&test.oracle, plan);
    struct tarn_session *session = open_session(plan, host, options);
    assert_int_equal(tarn_session_bind_default(session, check_order, &test), TARN_OK);
    const uint64_t iterations = 6;
    run_iterations(session, iterations);
    assert_int_equal(atomic_load(&test.disorder), 0);
    for (uint32_t v = 0; v < graph->ops_count; v++)
        assert_int_equal(atomic_load(&test.oracle.ended[v]), graph->ops[v].view ? 0 : iterations);
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
}

static void keeps_happens_before_on_any_number_of_workers(void **state)
{
    (void)state;
    static const uint32_t workers[] = {1, 2, 4};
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, ORDER_ORACLE_OPS);
        struct tarn_graph *graph = random_graph(&knobs);
        check_order_of(graph, TARN_HOST_OPTIONS(.workers = workers[seed % 3]), NULL,
                       seed % 2 ? 3000 : 0);
        tarn_graph_destroy(graph);
    }
}

static void keeps_happens_before_with_more_streams_than_cores(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct random_graph_options knobs = {.seed = seed,
                                             .ops = ORDER_ORACLE_OPS,
                                             .streams = 20,
                                             .parameters = 3,
                                             .reach = 12,
                                             .view_share = 10,
                                             .control_share = 20};
        struct tarn_graph *graph = random_graph(&knobs);
        check_order_of(graph, NULL, NULL, seed % 2 ? 1000 : 0);
        tarn_graph_destroy(graph);
    }
}

static void keeps_happens_before_with_blocking_streams(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, ORDER_ORACLE_OPS);
        struct tarn_graph *graph = random_graph(&knobs);
        uint32_t ids[] = {0, graph->streams_count - 1};
        check_order_of(graph, NULL, TARN_SESSION_OPTIONS(.blocking = {ids, 1 + seed % 2}), 500);
        tarn_graph_destroy(graph);
    }
}

/* ---- Results: equal to a serial run by the test itself ---- */

struct hash_kernel {
    const struct tarn_graph *graph;
    atomic_uint workspaces_lost;
};

static uint64_t mix(uint64_t hash, const unsigned char *bytes, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void fill(unsigned char *bytes, uint64_t size, uint64_t hash, bool in_place)
{
    struct random_source source = {hash};
    for (uint64_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)random_next(&source);
        bytes[i] = in_place ? (unsigned char)(bytes[i] + byte) : byte;
    }
}

/* Every output is a function of all that the op reads; a further write of a storage also of what
 * was there. */
static int hash_inputs(void *user, const struct tarn_call *call)
{
    struct hash_kernel *kernel = user;
    const struct tarn_graph *graph = kernel->graph;
    const struct tarn_graph_op *op = &graph->ops[call->op];
    const struct tarn_op_extra *extra = tarn_extra(op);
    uint64_t hash = mix(call->origin, (const unsigned char *)&call->iteration, sizeof(uint64_t));
    for (uint32_t i = 0; i < op->inputs_count; i++)
        hash = mix(hash, call->inputs[i], graph->tensors[op->inputs[i]].size);
    if (extra->workspace > 0) fill(call->workspace, extra->workspace, hash, false);
    uint64_t before = extra->workspace > 0 ? mix(0, call->workspace, extra->workspace) : 0;
    for (uint32_t i = 0; i < op->outputs_count; i++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[tarn_outputs(op)[i]];
        fill(call->outputs[i], tensor->size, hash + i, tensor->root != tarn_outputs(op)[i]);
    }
    uint64_t after = extra->workspace > 0 ? mix(0, call->workspace, extra->workspace) : 0;
    if (before != after) atomic_fetch_add(&kernel->workspaces_lost, 1);
    return 0;
}

/* Own memory for every root, list order, one op after another. Returns the contents by root. */
static unsigned char **run_serially(struct hash_kernel *kernel, uint64_t iterations)
{
    const struct tarn_graph *graph = kernel->graph;
    unsigned char **contents = calloc((size_t)graph->tensors_count + 1, sizeof *contents);
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        if (graph->tensors[t].root == t) contents[t] = calloc(1, graph->tensors[t].size);
    }
    for (uint64_t i = 0; i < iterations * graph->ops_count; i++) {
        uint32_t v = graph->order[i % graph->ops_count];
        const struct tarn_graph_op *op = &graph->ops[v];
        if (op->view) continue;
        void **addresses = calloc((size_t)op->inputs_count + op->outputs_count + 1, sizeof(void *));
        for (uint32_t k = 0; k < op->inputs_count; k++)
            addresses[k] = contents[graph->tensors[op->inputs[k]].root];
        for (uint32_t k = 0; k < op->outputs_count; k++)
            addresses[op->inputs_count + k] = contents[graph->tensors[tarn_outputs(op)[k]].root];
        void *workspace = calloc(1, tarn_extra(op)->workspace + 1);
        struct tarn_call call = {.op = v,
                                 .origin = op->origin,
                                 .stream = op->stream,
                                 .iteration = i / graph->ops_count,
                                 .inputs = addresses,
                                 .outputs = addresses + op->inputs_count,
                                 .workspace = workspace};
        hash_inputs(kernel, &call);
        free(workspace);
        free(addresses);
    }
    return contents;
}

static void free_contents(unsigned char **contents, const struct tarn_graph *graph)
{
    for (uint32_t t = 0; t < graph->tensors_count; t++) free(contents[t]);
    free(contents);
}

/* What must outlive an iteration: persistent storages and outputs. */
static void compare_lasting(struct tarn_session *session, const struct tarn_graph *graph,
                            unsigned char *const *expected)
{
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[t];
        if (tensor->root != t || tensor->kind < TARN_OUTPUT) continue;
        unsigned char *found = malloc(tensor->size);
        struct tarn_error error;
        require(tarn_session_read(session, t, found, tensor->size, &error), &error);
        assert_memory_equal(found, expected[t], tensor->size);
        free(found);
    }
}

static void check_results_over(struct tarn_plan *plan)
{
    struct hash_kernel kernel = {.graph = plan->graph};
    const uint64_t iterations = 3;
    unsigned char **expected = run_serially(&kernel, iterations);
    struct tarn_session *session = open_session(plan, TARN_HOST_OPTIONS(.workers = 3), NULL);
    assert_int_equal(tarn_session_bind_default(session, hash_inputs, &kernel), TARN_OK);
    run_iterations(session, iterations);
    compare_lasting(session, plan->graph, expected);
    assert_int_equal(atomic_load(&kernel.workspaces_lost), 0);
    tarn_session_destroy(session);
    free_contents(expected, plan->graph);
}

enum { GRAPHS = SANITIZED ? 15 : 60 };

static void gives_the_serial_result_when_nothing_is_shared(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 80);
        struct tarn_graph *graph = random_graph(&knobs);
        struct tarn_plan *plan = unshared_plan(graph, 64);
        check_results_over(plan);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

static void gives_the_serial_result_over_the_real_plan(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 80);
        struct tarn_graph *graph = random_graph(&knobs);
        struct tarn_plan *plan;
        struct tarn_error error;
        require(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.effort = TARN_NO_EFFORT), &plan, &error),
                &error);
        check_results_over(plan);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* ---- Tickets ---- */

struct counter {
    atomic_ullong ops;
};

static int count_op(void *user, const struct tarn_call *call)
{
    (void)call;
    atomic_fetch_add(&((struct counter *)user)->ops, 1);
    return 0;
}

static uint64_t count_launched(const struct tarn_graph *graph)
{
    uint64_t launched = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++) launched += !graph->ops[v].view;
    return launched;
}

static struct tarn_graph *graph_of(uint64_t seed, uint32_t ops, uint32_t streams)
{
    return random_graph(&(struct random_graph_options){
        .seed = seed, .ops = ops, .streams = streams, .parameters = 2, .reach = 8});
}

static void runs_every_submitted_iteration_when_submits_are_pipelined(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(1, 30, 4);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct tarn_session *session = open_session(plan, NULL, NULL);
    struct counter counter = {0};
    assert_int_equal(tarn_session_bind_default(session, count_op, &counter), TARN_OK);
    struct tarn_error error;
    tarn_ticket tickets[200];
    for (uint64_t i = 0; i < 200; i++) {
        require(tarn_session_submit(session, i % 5, &tickets[i], &error), &error);
        if (i % 7 == 6) {
            require(tarn_session_wait(session, tickets[i - 3], TARN_FOREVER, &error), &error);
            assert_true(atomic_load(&counter.ops) >= tickets[i - 3] * count_launched(graph));
        }
    }
    require(tarn_session_wait(session, tickets[199], TARN_FOREVER, &error), &error);
    assert_int_equal(tickets[199], 400);
    assert_int_equal(atomic_load(&counter.ops), 400 * count_launched(graph));
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void runs_again_after_it_was_idle(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(2, 20, 3);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct tarn_session *session = open_session(plan, NULL, NULL);
    struct counter counter = {0};
    assert_int_equal(tarn_session_bind_default(session, count_op, &counter), TARN_OK);
    for (uint64_t i = 1; i <= 50; i++) {
        if (i % 10 == 0) nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL); /* all asleep */
        run_iterations(session, 1);
        assert_int_equal(atomic_load(&counter.ops), i * count_launched(graph));
    }
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

struct limit {
    atomic_ullong submitted, beyond, ops;
};

static int stay_below_limit(void *user, const struct tarn_call *call)
{
    struct limit *limit = user;
    if (call->iteration >= atomic_load(&limit->submitted)) atomic_fetch_add(&limit->beyond, 1);
    atomic_fetch_add(&limit->ops, 1);
    return 0;
}

/* Streams of one op each: a worker that claims a stream just when another has finished it. */
static void runs_nothing_beyond_what_was_submitted(void **state)
{
    (void)state;
    struct tarn_graph *graph = random_graph(
        &(struct random_graph_options){.seed = 8, .ops = 12, .streams = 12, .reach = 1});
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct tarn_session *session = open_session(plan, TARN_HOST_OPTIONS(.workers = 4), NULL);
    struct limit limit = {0};
    assert_int_equal(tarn_session_bind_default(session, stay_below_limit, &limit), TARN_OK);
    for (uint64_t i = 1; i <= 3000; i++) {
        atomic_store(&limit.submitted, i);
        run_iterations(session, 1);
    }
    assert_int_equal(atomic_load(&limit.beyond), 0);
    assert_int_equal(atomic_load(&limit.ops), 3000 * count_launched(graph));
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void stops_when_destroyed_with_work_left(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(3, 20, 3);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct tarn_session *session = open_session(plan, NULL, NULL);
    struct counter counter = {0};
    assert_int_equal(tarn_session_bind_default(session, count_op, &counter), TARN_OK);
    const uint64_t endless = UINT64_C(1) << 40;
    struct tarn_error error;
    require(tarn_session_submit(session, endless, NULL, &error), &error);
    tarn_session_destroy(session);
    assert_true(atomic_load(&counter.ops) < endless);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Failures ---- */

struct failing {
    struct counter counter;
    tarn_op op;
    uint64_t iteration;
    atomic_bool late; /* something ran in a later iteration than the boundary allows */
};

static int fail_once(void *user, const struct tarn_call *call)
{
    struct failing *failing = user;
    if (call->iteration > failing->iteration) atomic_store(&failing->late, true);
    count_op(&failing->counter, call);
    return call->op == failing->op && call->iteration == failing->iteration ? 41 : 0;
}

static void check_failure_at(struct tarn_plan *plan, tarn_op op)
{
    const struct tarn_graph *graph = plan->graph;
    struct failing failing = {.op = op, .iteration = 2};
    struct tarn_session *session = open_session(plan, TARN_HOST_OPTIONS(.workers = 2), NULL);
    assert_int_equal(tarn_session_bind_default(session, fail_once, &failing), TARN_OK);
    struct tarn_error error;
    tarn_ticket ticket;
    require(tarn_session_submit(session, 5, &ticket, &error), &error);
    assert_int_equal(tarn_session_wait(session, ticket, TARN_FOREVER, &error), TARN_DEVICE);
    assert_int_equal(error.device_code, 41);
    assert_int_equal(error.op, op);
    char text[sizeof error.text];
    snprintf(
        text, sizeof text, "stream %u \"%s\", op %u \"%s\", iteration 2: the kernel returned 41",
        graph->ops[op].stream, graph->streams[graph->ops[op].stream].name, op, graph->ops[op].name);
    assert_string_equal(error.text, text);
    assert_false(atomic_load(&failing.late));
    uint64_t ops = atomic_load(&failing.counter.ops);
    assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_USAGE);
    assert_int_equal(tarn_session_wait(session, ticket, 0, &error), TARN_USAGE);
    tarn_session_destroy(session);
    assert_int_equal(atomic_load(&failing.counter.ops), ops); /* drained: nothing ran since */
}

static void reports_the_failing_op_whichever_it_is(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(4, 24, 4);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    for (tarn_op op = 0; op < graph->ops_count; op++) check_failure_at(plan, op);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static int fail_always(void *user, const struct tarn_call *call)
{
    (void)user;
    return 1 + (int)call->op;
}

static void keeps_one_failure_when_several_ops_fail(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(5, 24, 6);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    for (uint32_t turn = 0; turn < 50; turn++) {
        struct tarn_session *session = open_session(plan, TARN_HOST_OPTIONS(.workers = 4), NULL);
        assert_int_equal(tarn_session_bind_default(session, fail_always, NULL), TARN_OK);
        struct tarn_error error;
        tarn_ticket ticket;
        require(tarn_session_submit(session, 1, &ticket, &error), &error);
        assert_int_equal(tarn_session_wait(session, ticket, TARN_FOREVER, &error), TARN_DEVICE);
        assert_int_equal(error.device_code, 1 + (int)error.op);
        tarn_session_destroy(session);
    }
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Deadlines ---- */

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
};

static int pass_gate(void *user, const struct tarn_call *call)
{
    (void)call;
    struct gate *gate = user;
    pthread_mutex_lock(&gate->mutex);
    while (!gate->open) pthread_cond_wait(&gate->changed, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
    return 0;
}

static int open_gate(void *user, const struct tarn_call *call)
{
    (void)call;
    struct gate *gate = user;
    pthread_mutex_lock(&gate->mutex);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
    return 0;
}

/* compute: first, stuck, last     comm: send (waits for stuck)     idle: free */
static struct tarn_graph *graph_with_a_stuck_op(void)
{
    struct tarn_builder *b = tarn_builder_create("stuck");
    tarn_stream compute = tarn_builder_stream(b, "compute"), comm = tarn_builder_stream(b, "comm");
    tarn_stream idle = tarn_builder_stream(b, "idle");
    tarn_tensor t[5];
    for (uint32_t i = 0; i < 5; i++)
        t[i] = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "t", .size = 16});
    const char *names[] = {"first", "stuck", "last", "send", "free"};
    tarn_stream streams[] = {compute, compute, compute, comm, idle};
    for (uint32_t i = 0; i < 5; i++) {
        tarn_builder_op(b, &(struct tarn_op_info){.name = names[i],
                                                  .stream = streams[i],
                                                  .outputs = TARN_TENSORS(t[i]),
                                                  .inputs = i == 3 ? TARN_TENSORS(t[1])
                                                                   : (struct tarn_list){0}});
    }
    struct tarn_graph *graph;
    struct tarn_error error;
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

static struct tarn_session *open_stuck_session(struct tarn_plan *plan, struct gate *gate)
{
    static struct tarn_host_options options = {.struct_size = sizeof options, .workers = 2};
    struct tarn_session *session = open_session(plan, &options, NULL);
    assert_int_equal(tarn_session_bind_default(session, do_nothing, NULL), TARN_OK);
    assert_int_equal(tarn_session_bind(session, 1, pass_gate, gate, NULL), TARN_OK);
    struct tarn_error error;
    tarn_ticket ticket;
    require(tarn_session_submit(session, 1, &ticket, &error), &error);
    assert_int_equal(tarn_session_wait(session, ticket, 200000000, &error), TARN_DEADLINE);
    assert_string_equal(error.text,
                        "not finished after 0.200 s; stream 0 \"compute\" runs op 1 \"stuck\" of "
                        "iteration 0; stream 1 \"comm\" waits before op 3 \"send\" of iteration "
                        "0; stream 2 \"idle\" has finished");
    assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_USAGE);
    return session;
}

static void reports_every_streams_position_at_the_deadline(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_with_a_stuck_op();
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct tarn_session *session = open_stuck_session(plan, &gate);
    open_gate(&gate, NULL); /* the kernel returns after all: everything is freed */
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* Op 0 of the last of many streams; all others wait for it, more than a message can tell. */
static struct tarn_graph *graph_with_many_waiters(void)
{
    enum { STREAMS = 40 };
    struct tarn_builder *b = tarn_builder_create("many");
    for (uint32_t s = 0; s < STREAMS; s++) tarn_builder_stream(b, "waiter");
    for (uint32_t s = STREAMS; s-- > 0;) {
        tarn_op op = tarn_builder_op(b, &(struct tarn_op_info){.name = "op", .stream = s});
        if (op > 0) tarn_builder_control(b, op, 0);
    }
    struct tarn_graph *graph;
    struct tarn_error error;
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

static void tells_of_stuck_streams_before_those_that_wait(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_with_many_waiters();
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct tarn_session *session = open_session(plan, TARN_HOST_OPTIONS(.workers = 2), NULL);
    struct tarn_error error;
    tarn_ticket ticket;
    assert_int_equal(tarn_session_bind_default(session, pass_gate, &gate), TARN_OK);
    require(tarn_session_submit(session, 1, &ticket, &error), &error);
    assert_int_equal(tarn_session_wait(session, ticket, 100000000, &error), TARN_DEADLINE);
    const char *start = "not finished after 0.100 s; stream 39 \"waiter\" runs op 0 \"op\" of "
                        "iteration 0; stream 0 \"waiter\" waits before op 39 \"op\" of";
    assert_memory_equal(error.text, start, strlen(start));
    assert_string_equal(error.text + strlen(error.text) - 3, "...");
    open_gate(&gate, NULL);
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void destroying_does_not_wait_for_a_kernel_that_does_not_return(void **state)
{
    (void)state;
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct tarn_graph *graph = graph_with_a_stuck_op();
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct tarn_session *session = open_stuck_session(plan, &gate);
    assert_int_equal(tarn_session_destroy(session), TARN_DEADLINE);
    open_gate(&gate, NULL);
    assert_int_equal(tarn_session_destroy_within(session, TARN_FOREVER, NULL), TARN_OK);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Streams at the same time ---- */

struct meeting {
    atomic_bool is_on;
    atomic_uint arrived;
};

/* Returns when both streams' ops run at the same time. */
static int meet(void *user, const struct tarn_call *call)
{
    (void)call;
    struct meeting *meeting = user;
    if (!atomic_load(&meeting->is_on)) return 0;
    atomic_fetch_add(&meeting->arrived, 1);
    while (atomic_load(&meeting->arrived) % 2 != 0) sched_yield();
    return 0;
}

/* Also after many tiny ops, when workers have learnt to leave streams to each other. */
static void two_workers_run_two_ready_streams_at_the_same_time(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_with_a_stuck_op();
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct tarn_session *session = open_session(plan, TARN_HOST_OPTIONS(.workers = 2), NULL);
    struct meeting meeting = {0};
    assert_int_equal(tarn_session_bind_default(session, do_nothing, NULL), TARN_OK);
    assert_int_equal(tarn_session_bind(session, 1, meet, &meeting, NULL), TARN_OK);
    assert_int_equal(tarn_session_bind(session, 4, meet, &meeting, NULL), TARN_OK);
    for (uint32_t turn = 0; turn < 20; turn++) {
        atomic_store(&meeting.is_on, false);
        run_iterations(session, 2000);
        atomic_store(&meeting.is_on, true);
        run_iterations(session, 5);
    }
    assert_int_equal(atomic_load(&meeting.arrived), 20 * 5 * 2);
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Streams that may block ---- */

/* One worker: if the blocked stream shared it, the op that opens the gate could never run. */
static void a_blocking_stream_does_not_hold_up_the_others(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_with_a_stuck_op();
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct tarn_session *session = open_session(plan, TARN_HOST_OPTIONS(.workers = 1),
                                                TARN_SESSION_OPTIONS(.blocking = TARN_LIST(0)));
    assert_int_equal(tarn_session_bind_default(session, do_nothing, NULL), TARN_OK);
    assert_int_equal(tarn_session_bind(session, 1, pass_gate, &gate, NULL), TARN_OK);
    assert_int_equal(tarn_session_bind(session, 4, open_gate, &gate, NULL), TARN_OK);
    run_iterations(session, 3);
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Steady state ---- */

#if !SANITIZED
/* This program's own allocator front counts; the work is glibc's. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_ullong allocations;

void *malloc(size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(old, size);
}
void *aligned_alloc(size_t alignment, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(alignment, size);
}

static void allocates_nothing_once_it_runs(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(6, 60, 5);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    uint64_t created = atomic_load(&allocations);
    struct tarn_session *session = open_session(plan, NULL, NULL);
    assert_true(atomic_load(&allocations) > created); /* the counter counts */
    assert_int_equal(tarn_session_bind_default(session, do_nothing, NULL), TARN_OK);
    run_iterations(session, 10);
    uint64_t before = atomic_load(&allocations);
    for (uint32_t i = 0; i < 10; i++) run_iterations(session, 1000);
    assert_int_equal(atomic_load(&allocations), before);
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}
#endif

static void *run_a_session(void *argument)
{
    struct tarn_plan *plan = argument;
    struct counter counter = {0};
    struct tarn_session *session;
    if (tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, NULL)) return NULL;
    tarn_session_bind_default(session, count_op, &counter);
    for (uint32_t i = 0; i < 100; i++) {
        tarn_ticket ticket;
        if (tarn_session_submit(session, 5, &ticket, NULL)) return NULL;
        if (tarn_session_wait(session, ticket, TARN_FOREVER, NULL)) return NULL;
    }
    tarn_session_destroy(session);
    bool is_right = atomic_load(&counter.ops) == 500 * count_launched(plan->graph);
    return is_right ? argument : NULL;
}

static void two_sessions_of_one_plan_run_at_once(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(7, 40, 4);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    pthread_t threads[2];
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_a_session, plan), 0);
    for (uint32_t i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, plan);
    }
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_happens_before_on_any_number_of_workers),
        cmocka_unit_test(keeps_happens_before_with_more_streams_than_cores),
        cmocka_unit_test(keeps_happens_before_with_blocking_streams),
        cmocka_unit_test(gives_the_serial_result_when_nothing_is_shared),
        cmocka_unit_test(gives_the_serial_result_over_the_real_plan),
        cmocka_unit_test(runs_every_submitted_iteration_when_submits_are_pipelined),
        cmocka_unit_test(runs_again_after_it_was_idle),
        cmocka_unit_test(runs_nothing_beyond_what_was_submitted),
        cmocka_unit_test(stops_when_destroyed_with_work_left),
        cmocka_unit_test(reports_the_failing_op_whichever_it_is),
        cmocka_unit_test(keeps_one_failure_when_several_ops_fail),
        cmocka_unit_test(reports_every_streams_position_at_the_deadline),
        cmocka_unit_test(tells_of_stuck_streams_before_those_that_wait),
        cmocka_unit_test(destroying_does_not_wait_for_a_kernel_that_does_not_return),
        cmocka_unit_test(two_workers_run_two_ready_streams_at_the_same_time),
        cmocka_unit_test(a_blocking_stream_does_not_hold_up_the_others),
#if !SANITIZED
        cmocka_unit_test(allocates_nothing_once_it_runs),
#endif
        cmocka_unit_test(two_sessions_of_one_plan_run_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
