/* Every allocation that fails while a graph is planned, in turn, ends in TARN_SYSTEM or is done
 * without, and leaks nothing (a sanitizer sees to the second), in whichever thread of the portfolio
 * it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "random_graph.h"
#include "tarn/plan.h"
#include "tarn/simulate.h"
#include "tarn/transform.h"

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
        graph, TARN_PLAN_OPTIONS(.method = method, .threads = threads, .effort = 2), &made, error);
    tarn_plan_destroy(made);
    return status;
}

static enum tarn_status plan_one_method(struct tarn_error *error)
{
    return plan("many-objects:unsafe:best-fit", 1, error);
}

static enum tarn_status plan_by_tree(struct tarn_error *error)
{
    return plan("roam-tree", 1, error);
}

static enum tarn_status plan_by_skyline(struct tarn_error *error) { return plan("llfb", 1, error); }

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
    fail_each_allocation(plan_one_method, 20);
    fail_each_allocation(plan_by_tree, 20);
    fail_each_allocation(plan_by_skyline, 20);
    fail_each_allocation(plan_in_one_thread, 20);
}

static void memory_that_runs_out_in_any_thread_is_reported(void **state)
{
    (void)state;
    fail_each_allocation(plan_in_four_threads, 20);
}

static enum tarn_status assign(enum tarn_assign_mode mode, struct tarn_error *error)
{
    struct tarn_assign_report report;
    struct tarn_graph *after;
    enum tarn_status status = tarn_graph_assign(
        graph, TARN_ASSIGN_OPTIONS(.mode = mode, .report = &report), &after, error);
    tarn_graph_destroy(after);
    return status;
}

static enum tarn_status schedule(struct tarn_error *error)
{
    return assign(TARN_ASSIGN_SCHEDULE, error);
}

static enum tarn_status chain(struct tarn_error *error)
{
    return assign(TARN_ASSIGN_CONCURRENCY, error);
}

static enum tarn_status couple(struct tarn_error *error)
{
    struct tarn_couple_report report = {.rows = NULL};
    struct tarn_graph *after;
    enum tarn_status status = tarn_graph_couple(
        graph, TARN_COUPLE_OPTIONS(.wait_ns = 1, .report = &report), &after, error);
    tarn_couple_report_finish(&report);
    tarn_graph_destroy(after);
    return status;
}

static enum tarn_status simulate(struct tarn_error *error)
{
    struct tarn_simulation *simulation;
    enum tarn_status status = tarn_graph_simulate(graph, 1, TARN_WAIT_NS, &simulation, error);
    tarn_simulation_destroy(simulation);
    return status;
}

static void streams_and_waits_survive_every_failing_allocation(void **state)
{
    (void)state;
    fail_each_allocation(schedule, 20);
    fail_each_allocation(chain, 20);
    fail_each_allocation(couple, 20);
    fail_each_allocation(simulate, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planning_survives_every_failing_allocation),
        cmocka_unit_test(memory_that_runs_out_in_any_thread_is_reported),
        cmocka_unit_test(streams_and_waits_survive_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
