/* Every allocation that fails while a graph is planned, in turn, ends in TARN_SYSTEM and leaks
 * nothing (a sanitizer sees to the second), in whichever thread of the portfolio it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "random_graph.h"
#include "tarn/plan.h"

static struct tarn_graph *graph;

static int set_up(void **state)
{
    (void)state;
    graph = random_graph(&(struct random_graph_options){.seed = 7,
                                                        .ops = 12,
                                                        .streams = 2,
                                                        .parameters = 2,
                                                        .inplace_share = 20,
                                                        .workspace_share = 30,
                                                        .group_share = 30});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tarn_graph_destroy(graph);
    return 0;
}

static enum tarn_status plan(const char *method, uint32_t threads, struct tarn_error *error)
{
    struct tarn_plan *made = NULL;
    enum tarn_status status = tarn_plan_create(
        graph, TARN_PLAN_OPTIONS(.method = method, .threads = threads, .effort = 10), &made, error);
    tarn_plan_destroy(made);
    return status;
}

static enum tarn_status plan_one_method(struct tarn_error *error)
{
    return plan("many-objects:unsafe:best-fit", 1, error);
}

static enum tarn_status plan_in_one_thread(struct tarn_error *error)
{
    return plan("all", 1, error);
}

static enum tarn_status plan_in_four_threads(struct tarn_error *error)
{
    return plan("all", 4, error);
}

static void planning_survives_every_failing_allocation(void **state)
{
    (void)state;
    fail_each_allocation(plan_one_method, false);
    fail_each_allocation(plan_in_one_thread, false);
}

static void memory_that_runs_out_in_any_thread_is_reported(void **state)
{
    (void)state;
    fail_each_allocation(plan_in_four_threads, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planning_survives_every_failing_allocation),
        cmocka_unit_test(memory_that_runs_out_in_any_thread_is_reported),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
