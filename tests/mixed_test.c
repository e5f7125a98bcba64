/* Streams of one session on several devices: order kept, results as on one device, errors on either
 * side, and what cannot be mixed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/host/lane.h"
#include "support/order_oracle.h"
#include "support/queue_device.h"
#include "support/random_graph.h"
#include "support/session_calls.h"
#include "support/unshared_plan.h"
#include "tarn.h"

enum { STREAMS = 6, DEVICES = 3, GRAPHS = 40 };

/* Paper devices whose kernels are closures on host memory, and the host; in a drawn order. */
struct machine {
    struct queue_device paper[DEVICES];
    struct tarn_device devices[DEVICES];
    uint32_t stream_devices[STREAMS];
    struct tarn_session_options options;
};

static void machine_init(struct machine *machine, uint64_t seed)
{
    struct random_source source = {seed};
    memset(machine, 0, sizeof *machine);
    uint32_t host = random_below(&source, DEVICES);
    for (uint32_t i = 0; i < DEVICES; i++) {
        machine->paper[i].source.state = seed * DEVICES + i;
        machine->paper[i].closures = true;
        machine->devices[i] = i == host ? tarn_device_host(NULL) : queue_device(&machine->paper[i]);
    }
    for (uint32_t s = 0; s < STREAMS; s++)
        machine->stream_devices[s] = random_below(&source, DEVICES);
    machine->options = (struct tarn_session_options){
        .struct_size = sizeof machine->options,
        .stream_devices = machine->stream_devices,
        .more_devices = machine->devices + 1,
        .more_devices_count = DEVICES - 1,
        .flight = 16,
    };
}

static void assert_nothing_is_left(const struct machine *machine)
{
    for (uint32_t i = 0; i < DEVICES; i++) {
        assert_int_equal(queue_device_alive(&machine->paper[i]), 0);
        assert_int_equal(machine->paper[i].strange, 0);
    }
}

static struct tarn_graph *graph_of(uint64_t seed)
{
    struct random_graph_options knobs = random_graph_knobs(seed, ORDER_ORACLE_OPS);
    knobs.streams = 2 + (uint32_t)(seed % (STREAMS - 1));
    knobs.alignment_share = 0;
    return random_graph(&knobs);
}

/* ---- Order and results ---- */

struct watch {
    struct order_oracle oracle;
    _Atomic uint32_t disorder;
    tarn_op failing; /* in iteration 2 */
};

static int watch_kernel(void *user, const struct tarn_call *call)
{
    struct watch *watch = user;
    if (call->op == watch->failing && call->iteration == 2) return 33;
    bool in_order = order_oracle_start(&watch->oracle, call->op, call->iteration);
    in_order = order_oracle_end(&watch->oracle, call->op, call->iteration) && in_order;
    watch->disorder += !in_order;
    return 0;
}

static void keeps_happens_before_across_devices(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct machine machine;
        struct watch watch = {.failing = TARN_NONE};
        struct tarn_session *session;
        struct tarn_error error;
        tarn_ticket ticket;
        machine_init(&machine, seed);
        struct tarn_graph *graph = graph_of(seed);
        struct tarn_plan *plan = unshared_plan(graph, 64);
        order_oracle_init(&watch.oracle, plan);
        require(tarn_session_create(plan, machine.devices[0], &machine.options, &session, &error),
                &error);
        assert_int_equal(tarn_session_bind_default(session, watch_kernel, &watch), TARN_OK);
        for (uint32_t n = 1; n <= 3; n++)
            require(tarn_session_submit(session, n, &ticket, &error), &error);
        require(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
        assert_int_equal(watch.disorder, 0);
        for (uint32_t v = 0; v < graph->ops_count; v++)
            assert_int_equal(watch.oracle.ended[v], graph->ops[v].view ? 0 : 6);
        tarn_session_destroy(session);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
        assert_nothing_is_left(&machine);
    }
}

static void leaves_what_the_host_alone_leaves(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct machine machine;
        struct tarn_graph *graph = graph_of(seed);
        struct tarn_plan *plan;
        struct tarn_error error;
        struct tarn_check_report reports[2];
        require(tarn_plan_create(graph,
                                 TARN_PLAN_OPTIONS(.alignment = 64, .effort = TARN_NO_EFFORT),
                                 &plan, &error),
                &error);
        machine_init(&machine, seed);
        for (uint32_t mixed = 0; mixed < 2; mixed++) {
            struct tarn_session *session;
            require(tarn_session_create(plan, mixed ? machine.devices[0] : tarn_device_host(NULL),
                                        mixed ? &machine.options : NULL, &session, &error),
                    &error);
            require(tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = 4),
                                       &reports[mixed], &error),
                    &error);
            tarn_session_destroy(session);
        }
        assert_memory_equal(&reports[0], &reports[1], sizeof reports[0]);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
        assert_nothing_is_left(&machine);
    }
}

/* ---- Errors ---- */

static void a_failing_kernel_on_any_device_is_named(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(4);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    for (tarn_op op = 0; op < graph->ops_count; op += 3) {
        struct machine machine;
        struct watch watch = {.failing = op};
        struct tarn_session *session;
        struct tarn_error error;
        tarn_ticket ticket;
        if (graph->ops[op].view) continue;
        machine_init(&machine, op);
        order_oracle_init(&watch.oracle, plan);
        require(tarn_session_create(plan, machine.devices[0], &machine.options, &session, &error),
                &error);
        assert_int_equal(tarn_session_bind_default(session, watch_kernel, &watch), TARN_OK);
        require(tarn_session_submit(session, 10, &ticket, &error), &error);
        assert_int_equal(tarn_session_wait(session, ticket, TARN_FOREVER, &error), TARN_DEVICE);
        assert_int_equal(error.op, op);
        assert_int_equal(error.device_code, 33);
        tarn_session_destroy(session);
        assert_nothing_is_left(&machine);
    }
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* The n-th call of either paper device fails once. */
static void every_call_of_a_device_may_fail_once(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(7);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    bool failed = true;
    for (uint32_t n = 1; failed; n++) {
        struct machine machine;
        struct tarn_session *session = NULL;
        struct tarn_error error = {0};
        machine_init(&machine, 5);
        failed = false;
        for (uint32_t i = 0; i < DEVICES; i++) {
            machine.paper[i].fail_after = n;
            machine.paper[i].fail_once = true;
        }
        enum tarn_status status =
            tarn_session_create(plan, machine.devices[0], &machine.options, &session, &error);
        if (!status)
            status = tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = 2), NULL, &error);
        tarn_session_destroy(session);
        for (uint32_t i = 0; i < DEVICES; i++) failed |= machine.paper[i].failed;
        if (!failed || status != TARN_DEVICE) require(status, &error);
        assert_nothing_is_left(&machine);
    }
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* What a lost device may still use is nobody's; it stays reachable here. */
static void a_lost_device_ends_the_session(void **state)
{
    (void)state;
    enum { LOSSES = 12 };
    static struct machine machines[LOSSES];
    static struct tarn_session *sessions[LOSSES];
    static struct watch watches[LOSSES];
    struct tarn_graph *graph = graph_of(9);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    for (uint32_t n = 0; n < LOSSES; n++) {
        struct machine *machine = &machines[n];
        struct tarn_error error;
        tarn_ticket ticket;
        unsigned char byte;
        machine_init(machine, 9);
        watches[n].failing = TARN_NONE;
        order_oracle_init(&watches[n].oracle, plan);
        require(
            tarn_session_create(plan, machine->devices[0], &machine->options, &sessions[n], &error),
            &error);
        assert_int_equal(tarn_session_bind_default(sessions[n], watch_kernel, &watches[n]),
                         TARN_OK);
        for (uint32_t i = 0; i < DEVICES; i++) {
            if (!machine->paper[i].table.name) continue; /* the host's place */
            pthread_mutex_lock(&machine->paper[i].lock); /* the session's thread is there already */
            machine->paper[i].fail_class = TARN_ERROR_POISONED;
            machine->paper[i].fail_after = 3 * n + 2;
            pthread_mutex_unlock(&machine->paper[i].lock);
        }
        require(tarn_session_submit(sessions[n], 20, &ticket, &error), &error);
        assert_int_equal(tarn_session_wait(sessions[n], ticket, TARN_FOREVER, &error), TARN_DEVICE);
        assert_int_equal(error.device_code, 700);
        assert_int_equal(tarn_session_read(sessions[n], 0, &byte, 1, &error), TARN_USAGE);
        /* also before the threads have left */
        assert_int_equal(tarn_session_destroy_within(sessions[n], 1, &error), TARN_DEVICE);
        assert_int_equal(tarn_session_destroy(sessions[n]), TARN_DEVICE);
        assert_int_equal(watches[n].disorder, 0);
    }
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void note_line(void *user, const char *line)
{
    strncat(user, line, 8000 - strlen(user));
    strncat(user, "\n", 8000 - strlen(user));
}

static void set_stuck(struct machine *machine, uint32_t i, bool stuck)
{
    if (!machine->paper[i].table.name) return; /* the host's place */
    pthread_mutex_lock(&machine->paper[i].lock);
    machine->paper[i].stuck = stuck;
    pthread_mutex_unlock(&machine->paper[i].lock);
}

static void a_stuck_device_is_told_with_its_position(void **state)
{
    (void)state;
    struct machine machine;
    static char told[8001];
    struct watch watch;
    struct tarn_session *session;
    struct tarn_error error;
    tarn_ticket ticket;
    struct tarn_graph *graph = graph_of(9);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    machine_init(&machine, 9);
    machine.options.flight_line = note_line;
    machine.options.flight_user = told;
    watch.failing = TARN_NONE;
    order_oracle_init(&watch.oracle, plan);
    require(tarn_session_create(plan, machine.devices[0], &machine.options, &session, &error),
            &error);
    assert_int_equal(tarn_session_bind_default(session, watch_kernel, &watch), TARN_OK);
    for (uint32_t i = 0; i < DEVICES; i++) set_stuck(&machine, i, true);
    require(tarn_session_submit(session, 5, &ticket, &error), &error);
    assert_int_equal(tarn_session_wait(session, ticket, 20000000, &error), TARN_DEADLINE);
    assert_non_null(strstr(error.text, "has not passed op "));
    assert_non_null(strstr(told, "on device 'paper' has not passed op "));
    assert_non_null(strstr(told, "not finished after 0.020 s"));
    assert_int_equal(tarn_session_destroy(session), TARN_DEADLINE);
    for (uint32_t i = 0; i < DEVICES; i++) set_stuck(&machine, i, false);
    assert_int_equal(tarn_session_destroy_within(session, TARN_FOREVER, &error), TARN_OK);
    assert_nothing_is_left(&machine);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Ends ---- */

struct moods {
    struct machine *machine;
    uint64_t seed;
    atomic_bool ends;
};

/* Devices are stuck now and then. */
static void *change_moods(void *argument)
{
    struct moods *moods = argument;
    struct random_source source = {moods->seed};
    while (!atomic_load(&moods->ends)) {
        set_stuck(moods->machine, random_below(&source, DEVICES), random_below(&source, 2));
        nanosleep(&(struct timespec){.tv_nsec = 1 + random_below(&source, 200000)}, NULL);
    }
    for (uint32_t i = 0; i < DEVICES; i++) set_stuck(moods->machine, i, false);
    return NULL;
}

/* Everything goes as soon as the answer is there. */
static void live_and_end(uint64_t seed)
{
    struct random_source source = {seed};
    struct machine *machine = malloc(sizeof *machine);
    struct watch *watch = calloc(1, sizeof *watch);
    struct moods moods = {.machine = machine, .seed = seed};
    struct tarn_graph *graph = graph_of(seed);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct tarn_session *session;
    struct tarn_error error;
    enum tarn_status status = TARN_OK;
    tarn_ticket ticket;
    pthread_t thread;
    machine_init(machine, seed);
    machine->options.patience_ns = 1 + random_below(&source, 300000);
    watch->failing = random_below(&source, 2 * graph->ops_count);
    order_oracle_init(&watch->oracle, plan);
    require(tarn_session_create(plan, machine->devices[0], &machine->options, &session, &error),
            &error);
    assert_int_equal(tarn_session_bind_default(session, watch_kernel, watch), TARN_OK);
    assert_int_equal(pthread_create(&thread, NULL, change_moods, &moods), 0);
    for (uint32_t n = 0; n < 4 && !status; n++) {
        status = tarn_session_submit(session, 1 + random_below(&source, 3), &ticket, &error);
        if (!status && random_below(&source, 2))
            status = tarn_session_wait(session, ticket, 1 + random_below(&source, 300000), &error);
    }
    status = TARN_DEADLINE;
    for (uint32_t n = 0; n < 3 && status == TARN_DEADLINE; n++)
        status = tarn_session_destroy_within(session, random_below(&source, 200000), &error);
    if (status) assert_int_equal(status, TARN_DEADLINE);
    atomic_store(&moods.ends, true);
    pthread_join(thread, NULL);
    if (status) require(tarn_session_destroy_within(session, TARN_FOREVER, &error), &error);
    assert_int_equal(watch->disorder, 0);
    assert_nothing_is_left(machine);
    free(machine);
    free(watch);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void whenever_it_is_destroyed_nothing_is_touched_after_the_answer(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(200); seed++) live_and_end(seed);
}

/* ---- What cannot be mixed ---- */

static void what_cannot_be_mixed_is_refused(void **state)
{
    (void)state;
    struct tarn_session *session;
    struct tarn_error error;
    struct tarn_graph *graph = graph_of(0);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct queue_device regions = {.regions = true};
    struct tarn_device first = queue_device(&regions), host = tarn_device_host(NULL);
    const uint32_t all_on_host[STREAMS] = {1, 1, 1, 1, 1, 1}, too_many[STREAMS] = {7};
    struct tarn_session_options *options =
        TARN_SESSION_OPTIONS(.stream_devices = all_on_host, .more_devices = &host,
                             .more_devices_count = 1);
    assert_int_equal(tarn_session_create(plan, first, options, &session, &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "gives no addresses that others understand"));
    regions = (struct queue_device){0};
    first = queue_device(&regions);
    options->capture = true;
    assert_int_equal(tarn_session_create(plan, first, options, &session, &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "several devices cannot be captured"));
    options->capture = false;
    options->stream_devices = too_many;
    assert_int_equal(tarn_session_create(plan, first, options, &session, &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "is on device 7; the session has 2"));
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* Five steps, of which the second and the last are visible; seven are enqueued: 1, 4 and 6. */
static void a_lane_is_valid_while_its_counters_agree(void **state)
{
    (void)state;
    uint32_t visible[] = {1, 4};
    const struct tarn_lane valid = {.steps_count = 5,
                                    .visible = visible,
                                    .visible_count = 2,
                                    .enqueued = 7,
                                    .recorded = 3,
                                    .settled = 1};
    struct tarn_lane lane = valid;
    assert_true(tarn_lane_is_valid(&lane));
    lane.settled = 4; /* more than there are */
    assert_false(tarn_lane_is_valid(&lane));
    lane = valid;
    lane.recorded = 2; /* one was forgotten */
    assert_false(tarn_lane_is_valid(&lane));
    lane = valid;
    lane.enqueued = 15, lane.recorded = 6; /* more than two iterations are under way */
    assert_false(tarn_lane_is_valid(&lane));
    lane = valid;
    lane.visible_count = 1; /* the last step is not among them */
    lane.enqueued = 6, lane.recorded = 1;
    assert_false(tarn_lane_is_valid(&lane));
    lane = valid;
    visible[0] = 4; /* twice the same */
    lane.enqueued = 0, lane.recorded = lane.settled = 0;
    assert_false(tarn_lane_is_valid(&lane));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_happens_before_across_devices),
        cmocka_unit_test(leaves_what_the_host_alone_leaves),
        cmocka_unit_test(a_failing_kernel_on_any_device_is_named),
        cmocka_unit_test(every_call_of_a_device_may_fail_once),
        cmocka_unit_test(a_lost_device_ends_the_session),
        cmocka_unit_test(a_stuck_device_is_told_with_its_position),
        cmocka_unit_test(whenever_it_is_destroyed_nothing_is_touched_after_the_answer),
        cmocka_unit_test(what_cannot_be_mixed_is_refused),
        cmocka_unit_test(a_lane_is_valid_while_its_counters_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
