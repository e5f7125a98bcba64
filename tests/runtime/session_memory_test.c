/* Every allocation of a session that fails, in turn, ends in TARN_SYSTEM or is done without, and
 * leaks nothing (a sanitizer sees to the second). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "streams/plan/plan.h"
#include "support/failing_memory.h"
#include "support/random_graph.h"
#include "support/session_calls.h"
#include "tarn.h"

static struct tarn_graph *graph;

static enum tarn_status run(struct tarn_session *session, struct tarn_error *error)
{
    tarn_ticket ticket;
    enum tarn_status status = tarn_session_bind_default(session, do_nothing, NULL);
    if (!status) status = tarn_session_submit(session, 3, &ticket, error);
    if (!status) status = tarn_session_wait(session, ticket, TARN_FOREVER, error);
    return status;
}

/* All offsets are zero: these kernels touch nothing. */
static enum tarn_status make_and_run(struct tarn_error *error)
{
    struct tarn_session *session = NULL;
    struct tarn_plan *plan = tarn_plan_of_graph(graph);
    if (!plan) {
        *error = (struct tarn_error){.status = TARN_SYSTEM, .text = "out of memory"};
        return TARN_SYSTEM;
    }
    plan->alignment = 64;
    enum tarn_status status = tarn_session_create(
        plan, tarn_device_host(NULL), TARN_SESSION_OPTIONS(.blocking = TARN_LIST(1), .flight = 8),
        &session, error);
    if (!status) status = run(session, error);
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    return status;
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    graph = random_graph(&(struct random_graph_options){
        .seed = 1, .ops = 30, .streams = 4, .parameters = 2, .workspace_share = 20});
    fail_each_allocation(make_and_run, 10);
    tarn_graph_destroy(graph);
}

/* ---- Sessions on one arena, between events, with other memory in every iteration ---- */

static struct tarn_graph *shapes[2];

static struct tarn_graph *make_shape(uint32_t batch)
{
    struct tarn_builder *b = tarn_builder_create("shape");
    struct tarn_graph *made;
    struct tarn_error error;
    tarn_stream first = tarn_builder_stream(b, "first"), second = tarn_builder_stream(b, "second");
    const struct tarn_tensor_info info[] = {{.name = "x", .size = 8 * batch, .kind = TARN_INPUT},
                                            {.name = "w", .size = 8, .kind = TARN_PARAMETER},
                                            {.name = "h", .size = 64 * batch},
                                            {.name = "y", .size = 8, .kind = TARN_OUTPUT}};
    tarn_tensor t[4];
    for (uint32_t i = 0; i < 4; i++) t[i] = tarn_builder_tensor(b, &info[i]);
    tarn_builder_op(b, &(struct tarn_op_info){.stream = first,
                                              .inputs = TARN_TENSORS(t[0], t[1]),
                                              .outputs = TARN_TENSORS(t[2])});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = second,
                                              .inputs = TARN_TENSORS(t[2]),
                                              .outputs = TARN_TENSORS(t[3])});
    require(tarn_builder_finish(b, &made, &error), &error);
    return made;
}

static enum tarn_status submit_around(struct tarn_session *session, struct tarn_host_event *event,
                                      struct tarn_error *error)
{
    static unsigned char x[64];
    tarn_ticket ticket;
    struct tarn_event around[9]; /* more than there is room for at once */
    for (uint32_t i = 0; i < 9; i++) around[i] = (struct tarn_event){event, 0};
    enum tarn_status status = tarn_session_submit(session, 1, &ticket, error);
    if (!status) status = tarn_session_bind_memory(session, 0, x, error);
    if (!status)
        status =
            tarn_session_submit_with(session, 1,
                                     TARN_SUBMIT_OPTIONS(.waits = around, .waits_count = 9,
                                                         .signals = around, .signals_count = 9),
                                     &ticket, error);
    return status;
}

static enum tarn_status run_shapes(struct tarn_session **sessions, struct tarn_host_event *event,
                                   struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < 4 && !status; i++) {
        tarn_session_bind_default(sessions[i % 2], do_nothing, NULL);
        status = submit_around(sessions[i % 2], event, error);
        if (!status && i >= 2) status = tarn_session_wait(sessions[i % 2], 4, TARN_FOREVER, error);
    }
    return status;
}

static enum tarn_status share_an_arena(struct tarn_error *error)
{
    struct tarn_plan *plans[2] = {NULL};
    struct tarn_arena *arena = NULL;
    struct tarn_session *sessions[2] = {NULL};
    struct tarn_host_event *event = NULL;
    struct tarn_device host = tarn_device_host(NULL);
    enum tarn_status status =
        tarn_family_plan(shapes, 2, TARN_PLAN_OPTIONS(.threads = 1), plans, error);
    if (!status) status = tarn_host_event_create(&event, error);
    if (!status) status = tarn_arena_create(plans, 2, host, NULL, &arena, error);
    for (uint32_t i = 0; i < 2 && !status; i++)
        status = tarn_session_create(plans[i], host, TARN_SESSION_OPTIONS(.arena = arena),
                                     &sessions[i], error);
    if (!status) status = run_shapes(sessions, event, error);
    for (uint32_t i = 0; i < 2; i++) tarn_session_destroy(sessions[i]);
    assert_int_equal(tarn_arena_destroy(arena), TARN_OK);
    tarn_host_event_destroy(event);
    for (uint32_t i = 0; i < 2; i++) tarn_plan_destroy(plans[i]);
    return status;
}

static void every_failing_allocation_of_shared_arenas_is_reported(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) shapes[i] = make_shape(1 + i);
    fail_each_allocation(share_an_arena, 30);
    for (uint32_t i = 0; i < 2; i++) tarn_graph_destroy(shapes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(every_failing_allocation_of_shared_arenas_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
