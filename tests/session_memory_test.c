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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failing_allocation_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
