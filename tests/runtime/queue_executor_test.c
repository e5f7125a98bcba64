/* Devices with queues and events: order kept in every interleaving that the queues allow, tickets,
 * errors, deadlines, and memory that the device may still touch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support/order_oracle.h"
#include "support/queue_device.h"
#include "support/random_graph.h"
#include "support/session_calls.h"
#include "support/unshared_plan.h"
#include "tarn.h"

struct subject {
    struct queue_device device;
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_session *session;
    struct order_oracle oracle;
    uint32_t disorder;
    tarn_op failing; /* its kernel fails in iteration 1 */
};

static void work(void *user, const struct tarn_call *call)
{
    struct subject *subject = user;
    bool in_order = order_oracle_start(&subject->oracle, call->op, call->iteration);
    in_order = order_oracle_end(&subject->oracle, call->op, call->iteration) && in_order;
    subject->disorder += !in_order;
}

static int enqueue_work(void *user, const struct tarn_call *call)
{
    struct subject *subject = user;
    if (call->op == subject->failing && call->iteration == 1) return 33;
    queue_device_enqueue(&subject->device, work, subject, call);
    return 0;
}

static void subject_init(struct subject *subject, struct tarn_graph *graph, uint64_t seed)
{
    struct tarn_error error;
    memset(subject, 0, sizeof *subject);
    subject->device.source.state = seed;
    subject->failing = TARN_NONE;
    subject->graph = graph;
    subject->plan = unshared_plan(graph, 64);
    order_oracle_init(&subject->oracle, subject->plan);
    require(tarn_session_create(subject->plan, queue_device(&subject->device), NULL,
                                &subject->session, &error),
            &error);
    assert_int_equal(tarn_session_bind_default(subject->session, enqueue_work, subject), TARN_OK);
}

static void subject_finish(struct subject *subject)
{
    tarn_session_destroy(subject->session);
    tarn_plan_destroy(subject->plan);
    tarn_graph_destroy(subject->graph);
}

static void assert_nothing_is_left(const struct queue_device *device)
{
    assert_int_equal(device->queues_alive, 0);
    assert_int_equal(device->events_alive, 0);
    assert_int_equal(device->memories_alive, 0);
}

static struct tarn_graph *graph_of(uint64_t seed, uint32_t ops, uint32_t streams)
{
    return random_graph(&(struct random_graph_options){
        .seed = seed, .ops = ops, .streams = streams, .parameters = 2, .reach = 8});
}

static void keeps_happens_before_in_every_interleaving(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, ORDER_ORACLE_OPS);
        struct subject subject;
        subject_init(&subject, random_graph(&knobs), seed);
        struct tarn_error error;
        tarn_ticket ticket;
        for (uint32_t submit = 1; submit <= 3; submit++)
            require(tarn_session_submit(subject.session, submit, &ticket, &error), &error);
        require(tarn_session_wait(subject.session, ticket, TARN_FOREVER, &error), &error);
        assert_int_equal(subject.disorder, 0);
        assert_int_equal(subject.device.strange, 0);
        for (uint32_t v = 0; v < subject.graph->ops_count; v++)
            assert_int_equal(subject.oracle.ended[v], subject.graph->ops[v].view ? 0 : 6);
        struct queue_device *device = &subject.device;
        subject_finish(&subject);
        assert_nothing_is_left(device);
    }
}

static void fills_the_devices_memory_with_zeros(void **state)
{
    (void)state;
    struct subject subject;
    subject_init(&subject, graph_of(1, 10, 2), 1);
    for (uint32_t t = 0; t < subject.graph->tensors_count; t++) {
        unsigned char byte = 1;
        struct tarn_error error;
        require(tarn_session_read(subject.session, t, &byte, 1, &error), &error);
        assert_int_equal(byte, 0);
    }
    subject_finish(&subject);
}

static void waiting_for_an_early_ticket_does_not_wait_for_later_ones(void **state)
{
    (void)state;
    struct subject subject;
    subject_init(&subject, graph_of(2, 20, 3), 2);
    struct tarn_error error;
    tarn_ticket early, late;
    require(tarn_session_submit(subject.session, 1, &early, &error), &error);
    queue_device_run(&subject.device);
    subject.device.stuck = true;
    require(tarn_session_submit(subject.session, 1, &late, &error), &error);
    require(tarn_session_wait(subject.session, early, TARN_FOREVER, &error), &error);
    subject.device.stuck = false;
    subject_finish(&subject);
}

static void a_failing_kernel_is_named_and_ends_the_session(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(3, 20, 3);
    for (tarn_op op = 0; op < graph->ops_count; op++) {
        struct subject subject;
        subject_init(&subject, graph_of(3, 20, 3), op);
        subject.failing = op;
        struct tarn_error error;
        tarn_ticket ticket;
        assert_int_equal(tarn_session_submit(subject.session, 4, &ticket, &error), TARN_DEVICE);
        assert_int_equal(error.op, op);
        assert_int_equal(error.device_code, 33);
        assert_non_null(strstr(error.text, "iteration 1: the kernel returned 33"));
        assert_int_equal(tarn_session_submit(subject.session, 1, &ticket, &error), TARN_USAGE);
        subject_finish(&subject); /* waits for what was enqueued */
        assert_int_equal(subject.disorder, 0);
        assert_nothing_is_left(&subject.device);
    }
    tarn_graph_destroy(graph);
}

/* What a device that is gone holds stays with the device: the test frees nothing of it. */
static void a_poisoned_device_ends_the_session_and_keeps_its_memory(void **state)
{
    (void)state;
    static struct subject subjects[40]; /* reachable to the end */
    for (uint32_t n = 0; n < 40; n++) {
        struct subject *subject = &subjects[n];
        subject_init(subject, graph_of(4, 20, 4), n);
        subject->device.fail_class = TARN_ERROR_POISONED;
        subject->device.fail_after = n + 1;
        struct tarn_error error;
        tarn_ticket ticket;
        enum tarn_status status = TARN_OK;
        while (!status) {
            status = tarn_session_submit(subject->session, 1, &ticket, &error);
            if (!status) status = tarn_session_wait(subject->session, ticket, TARN_FOREVER, &error);
        }
        assert_int_equal(status, TARN_DEVICE);
        assert_int_equal(error.device_code, 700);
        assert_non_null(strstr(error.text, "illegal address"));
        char byte;
        assert_int_equal(tarn_session_read(subject->session, 0, &byte, 1, &error), TARN_USAGE);
        assert_int_equal(tarn_session_submit(subject->session, 1, &ticket, &error), TARN_USAGE);
        struct tarn_session *session = subject->session;
        tarn_session_destroy(session);
        assert_int_equal(subject->device.memories_alive, 1);
        tarn_plan_destroy(subject->plan);
        tarn_graph_destroy(subject->graph);
    }
}

static void a_stuck_queue_is_reported_and_its_memory_given_up(void **state)
{
    (void)state;
    static struct subject subject;
    subject_init(&subject, graph_of(5, 20, 2), 5);
    struct tarn_error error;
    tarn_ticket ticket;
    subject.device.stuck = true;
    require(tarn_session_submit(subject.session, 2, &ticket, &error), &error);
    assert_int_equal(tarn_session_wait(subject.session, ticket, 3000000, &error), TARN_DEADLINE);
    for (uint32_t s = 0; s < 2; s++) {
        char start[64];
        snprintf(start, sizeof start, "; stream %u \"%s\" has not passed op ", s,
                 subject.graph->streams[s].name);
        assert_non_null(strstr(error.text, start));
    }
    assert_non_null(strstr(error.text, "of iteration 1"));
    subject_finish(&subject);
    assert_int_equal(subject.device.memories_alive, 1);
    assert_int_equal(subject.device.queues_alive, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_happens_before_in_every_interleaving),
        cmocka_unit_test(fills_the_devices_memory_with_zeros),
        cmocka_unit_test(waiting_for_an_early_ticket_does_not_wait_for_later_ones),
        cmocka_unit_test(a_failing_kernel_is_named_and_ends_the_session),
        cmocka_unit_test(a_poisoned_device_ends_the_session_and_keeps_its_memory),
        cmocka_unit_test(a_stuck_queue_is_reported_and_its_memory_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
