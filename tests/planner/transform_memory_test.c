/* Every allocation that fails in a transform, in turn, ends in TARN_SYSTEM or is done without, and
 * leaks nothing (a sanitizer sees to the second). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/failing_memory.h"
#include "support/random_graph.h"
#include "support/training_graph.h"
#include "tarn.h"

enum { OPS = 70 }; /* more than complete search takes as a whole */

static struct tarn_graph *graph;

static void draw(uint32_t streams)
{
    graph = random_graph(&(struct random_graph_options){.seed = 3,
                                                        .ops = OPS,
                                                        .streams = streams,
                                                        .parameters = 2,
                                                        .view_share = 10,
                                                        .inplace_share = 10,
                                                        .workspace_share = 10,
                                                        .size_max = 4});
}

/* Whatever came of it: what changed is asked for as well. */
static enum tarn_status compare(enum tarn_status status, struct tarn_graph *result,
                                struct tarn_error *error)
{
    struct tarn_change *changes = NULL;
    size_t count;
    if (status == TARN_OK) status = tarn_graph_changes(graph, result, &changes, &count, error);
    free(changes);
    tarn_graph_destroy(result);
    return status;
}

static enum tarn_status reorder(struct tarn_error *error)
{
    struct tarn_graph *result;
    enum tarn_status status =
        tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.effort = 4), &result, error);
    return compare(status, result, error);
}

static enum tarn_status in_place(struct tarn_error *error)
{
    static const char *const kinds[] = {"work"};
    struct tarn_graph *result;
    enum tarn_status status = tarn_graph_in_place(
        graph, TARN_IN_PLACE_OPTIONS(.kinds = kinds, .kinds_count = 1), &result, error);
    return compare(status, result, error);
}

static void transforms_of_one_stream_survive_every_failing_allocation(void **state)
{
    (void)state;
    draw(1);
    fail_each_allocation(reorder, 20);
    fail_each_allocation(in_place, 20);
    tarn_graph_destroy(graph);
}

static void transforms_of_several_streams_survive_every_failing_allocation(void **state)
{
    (void)state;
    draw(3);
    fail_each_allocation(reorder, 20);
    fail_each_allocation(in_place, 20);
    tarn_graph_destroy(graph);
}

static enum tarn_status implement(struct tarn_error *error)
{
    struct tarn_cost_table *costs;
    struct tarn_graph *result = NULL;
    enum tarn_status status =
        tarn_cost_table_load(TARN_SOURCE_DIR "/examples/costs.csv", &costs, error);
    if (status == TARN_OK)
        status = tarn_graph_implementations(
            graph, TARN_IMPLEMENTATIONS_OPTIONS(.costs = costs, .split_backward = true), &result,
            error);
    tarn_cost_table_destroy(costs);
    tarn_graph_destroy(result);
    return status;
}

static void adding_implementations_survives_every_failing_allocation(void **state)
{
    (void)state;
    graph = training_graph(3).graph;
    fail_each_allocation(implement, 20);
    tarn_graph_destroy(graph);
}

static uint64_t budget;

static enum tarn_status keep_to_budget(struct tarn_error *error)
{
    struct tarn_graph *result = NULL;
    enum tarn_status status = tarn_graph_budget(
        graph, TARN_BUDGET_OPTIONS(.budget = budget, .effort = 20), &result, error);
    return compare(status, result, error);
}

/* Nine tenths of what keeping everything takes: there is something to search. */
static void keeping_to_a_budget_survives_every_failing_allocation(void **state)
{
    struct tarn_budget_report report;
    struct tarn_graph *fastest;
    (void)state;
    graph = training_graph(3).graph;
    assert_int_equal(
        tarn_graph_budget(graph, TARN_BUDGET_OPTIONS(.report = &report), &fastest, NULL), TARN_OK);
    tarn_graph_destroy(fastest);
    budget = report.footprint / 10 * 9;
    fail_each_allocation(keep_to_budget, 20);
    tarn_graph_destroy(graph);
}

/* Two streams, between which there may be waits instead. */
static void coupling_for_a_budget_survives_every_failing_allocation(void **state)
{
    struct tarn_budget_report report;
    struct tarn_graph *one, *fastest;
    (void)state;
    one = training_graph(1).graph;
    assert_int_equal(tarn_graph_assign(one, TARN_ASSIGN_OPTIONS(.streams = 2), &graph, NULL),
                     TARN_OK);
    tarn_graph_destroy(one);
    assert_int_equal(
        tarn_graph_budget(graph, TARN_BUDGET_OPTIONS(.report = &report), &fastest, NULL), TARN_OK);
    tarn_graph_destroy(fastest);
    budget = report.footprint / 10 * 8;
    fail_each_allocation(keep_to_budget, 20);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms_of_one_stream_survive_every_failing_allocation),
        cmocka_unit_test(transforms_of_several_streams_survive_every_failing_allocation),
        cmocka_unit_test(adding_implementations_survives_every_failing_allocation),
        cmocka_unit_test(keeping_to_a_budget_survives_every_failing_allocation),
        cmocka_unit_test(coupling_for_a_budget_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
