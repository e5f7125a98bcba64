/* A build without hwloc: cores are the processors of the affinity mask, and nothing is bound,
 * whatever is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <string.h>

#include "runtime/state/machine.h"
#include "support/session_calls.h"
#include "tarn.h"

static char log_text[512];

static void keep_line(void *user, enum tarn_log_level level, const char *line)
{
    (void)user;
    if (level == TARN_LOG_WARNING) strncat(log_text, line, sizeof log_text - strlen(log_text) - 1);
}

static void the_machine_is_the_affinity_mask_and_a_log_line_says_so(void **state)
{
    (void)state;
    cpu_set_t own;
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    assert_int_equal(tarn_set_log(TARN_LOG(.line = keep_line), NULL), TARN_OK);
    assert_int_equal(tarn_host_cores(), CPU_COUNT(&own));
    assert_int_equal(tarn_set_log(NULL, NULL), TARN_OK);
    assert_false(tarn_machine()->is_known);
    assert_non_null(strstr(log_text, "not bound"));
}

static int compare_mask(void *own, const struct tarn_call *call)
{
    cpu_set_t mask;
    (void)call;
    return sched_getaffinity(0, sizeof mask, &mask) || !CPU_EQUAL(&mask, (cpu_set_t *)own);
}

static void workers_run_where_their_creator_may(void **state)
{
    (void)state;
    cpu_set_t own;
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_error error;
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    struct tarn_builder *b = tarn_builder_create("unbound");
    tarn_stream stream = tarn_builder_stream(b, "only");
    tarn_tensor x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = 64});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = stream, .outputs = TARN_TENSORS(x)});
    require(tarn_builder_finish(b, &graph, &error), &error);
    require(tarn_plan_create(graph, NULL, &plan, &error), &error);
    for (int binding = TARN_BIND_AUTO; binding <= TARN_BIND_CORE; binding++) {
        struct tarn_session *session;
        struct tarn_host_options *options =
            TARN_HOST_OPTIONS(.binding = (enum tarn_worker_binding)binding);
        require(tarn_session_create(plan, tarn_device_host(options), NULL, &session, &error),
                &error);
        tarn_session_bind_default(session, compare_mask, &own);
        run_iterations(session, 2);
        require(tarn_session_destroy(session), &error);
    }
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machine_is_the_affinity_mask_and_a_log_line_says_so),
        cmocka_unit_test(workers_run_where_their_creator_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
