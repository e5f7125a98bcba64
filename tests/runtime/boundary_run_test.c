/* Waits across the iteration boundary while it runs: any mix of them, not only those of the two
 * rules, is kept by the host's workers and by queues with events, in every interleaving that comes
 * up; and iterations do overlap where no wait is against it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "streams/plan/program.h"
#include "support/order_oracle.h"
#include "support/queue_device.h"
#include "support/random_graph.h"
#include "support/session_calls.h"
#include "support/unshared_plan.h"
#include "tarn.h"

enum { ITERATIONS = 7, WAITS_MAX = 24 };

struct subject {
    struct queue_device device;
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct order_oracle oracle;
    atomic_uint disorder, begun; /* launches too early; launches at all */
    atomic_uint overlaps;        /* launches before the previous iteration's last one */
    uint32_t launches;           /* of one iteration */
};

static void draw_waits(struct tarn_plan *plan, struct random_source *source)
{
    uint32_t launches = plan->list_begin[plan->streams_count];
    uint32_t wanted = random_below(source, WAITS_MAX), count = 0;
    tarn_plan_drop_program(plan);
    plan->boundary_waits =
        tarn_region_take(&plan->boundary_region, WAITS_MAX, sizeof *plan->boundary_waits);
    for (uint32_t i = 0; i < wanted && launches > 0; i++) {
        uint32_t op = plan->list[random_below(source, launches)];
        uint32_t on = plan->list[random_below(source, launches)];
        if (plan->graph->ops[op].stream == plan->graph->ops[on].stream) continue;
        plan->boundary_waits[count++] = (struct tarn_wait){op, on};
    }
    plan->boundary_waits_count = count;
}

static void subject_init(struct subject *subject, uint64_t seed)
{
    struct random_source source = {seed};
    struct random_graph_options knobs = random_graph_knobs(seed, 40);
    memset(subject, 0, sizeof *subject);
    subject->device.source.state = seed;
    subject->graph = random_graph(&knobs);
    subject->plan = unshared_plan(subject->graph, 64);
    subject->launches = subject->plan->list_begin[subject->plan->streams_count];
    draw_waits(subject->plan, &source);
    order_oracle_init(&subject->oracle, subject->plan);
}

static void subject_finish(struct subject *subject)
{
    tarn_plan_destroy(subject->plan);
    tarn_graph_destroy(subject->graph);
}

static void begin_work(struct subject *subject, const struct tarn_call *call)
{
    uint32_t before = atomic_fetch_add(&subject->begun, 1);
    if (before < call->iteration * subject->launches) atomic_fetch_add(&subject->overlaps, 1);
    if (!order_oracle_start(&subject->oracle, call->op, call->iteration))
        atomic_fetch_add(&subject->disorder, 1);
}

static void end_work(struct subject *subject, const struct tarn_call *call)
{
    if (!order_oracle_end(&subject->oracle, call->op, call->iteration))
        atomic_fetch_add(&subject->disorder, 1);
}

static void work(void *user, const struct tarn_call *call)
{
    begin_work(user, call);
    end_work(user, call);
}

/* Some take long, so that others get far ahead. */
static int work_now(void *user, const struct tarn_call *call)
{
    struct random_source source = {call->op * ITERATIONS + call->iteration};
    begin_work(user, call);
    if (random_percent(&source, 10)) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    end_work(user, call);
    return 0;
}

static int enqueue_work(void *user, const struct tarn_call *call)
{
    struct subject *subject = user;
    queue_device_enqueue(&subject->device, work, subject, call);
    return 0;
}

/* The number of launches that overlapped the previous iteration. */
static uint32_t run(struct subject *subject, struct tarn_device device, tarn_kernel kernel)
{
    struct tarn_session *session;
    struct tarn_error error;
    tarn_ticket ticket;
    require(tarn_session_create(subject->plan, device, NULL, &session, &error), &error);
    assert_int_equal(tarn_session_bind_default(session, kernel, subject), TARN_OK);
    require(tarn_session_submit(session, 2, &ticket, &error), &error);
    require(tarn_session_submit(session, ITERATIONS - 2, &ticket, &error), &error);
    require(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
    tarn_session_destroy(session);
    assert_int_equal(subject->disorder, 0);
    assert_int_equal(subject->begun, ITERATIONS * subject->launches);
    return subject->overlaps;
}

static void queues_keep_any_waits_across_the_boundary_and_iterations_overlap(void **state)
{
    (void)state;
    uint32_t overlaps = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct subject subject;
        subject_init(&subject, seed);
        overlaps += run(&subject, queue_device(&subject.device), enqueue_work);
        assert_int_equal(subject.device.strange, 0);
        subject_finish(&subject);
    }
    assert_true(overlaps > 1000);
}

static void workers_keep_any_waits_across_the_boundary(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct subject subject;
        subject_init(&subject, seed);
        struct tarn_host_options *host =
            TARN_HOST_OPTIONS(.workers = 1 + (uint32_t)seed % 3, .binding = TARN_BIND_NONE);
        run(&subject, tarn_device_host(host), work_now);
        subject_finish(&subject);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_keep_any_waits_across_the_boundary_and_iterations_overlap),
        cmocka_unit_test(workers_keep_any_waits_across_the_boundary),
    };
    return cmocka_run_group_tests_name("boundary_run", tests, NULL, NULL);
}
