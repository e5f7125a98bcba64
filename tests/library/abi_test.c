/* Programs that were built with older or newer headers than the library: structs that are shorter
 * or longer than the library's. docs/abi.md has the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/random_graph.h"
#include "tarn.h"

enum { MARK = 0xa5 };

/* A struct of the caller's, with room behind it. */
#define ROOMY(type)                            \
    union {                                    \
        type known;                            \
        unsigned char bytes[2 * sizeof(type)]; \
    }

static bool all_are(const unsigned char *bytes, size_t begin, size_t end, unsigned char value)
{
    while (begin < end && bytes[begin] == value) begin++;
    return begin >= end;
}

static struct tarn_graph *make_graph(void)
{
    return random_graph(&(struct random_graph_options){.seed = 3, .ops = 12, .streams = 2});
}

static void an_older_program_gets_what_it_knows_and_no_byte_more(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph();
    struct tarn_op_info whole;
    ROOMY(struct tarn_op_info) older;
    size_t size = offsetof(struct tarn_op_info, cost);
    memset(&older, MARK, sizeof older);
    assert_true(tarn_graph_op(graph, 5, &whole));
    assert_true(tarn_graph_op_sized(graph, 5, &older.known, size));
    assert_true(older.known.name == whole.name && older.known.stream == whole.stream);
    assert_true(older.known.inputs.ids == whole.inputs.ids);
    assert_true(older.known.workspace == whole.workspace);
    assert_true(all_are(older.bytes, size, sizeof older, MARK));
    tarn_graph_destroy(graph);
}

static void a_newer_program_gets_zeros_for_what_the_library_lacks(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph();
    struct tarn_plan *plan;
    struct tarn_plan_summary whole;
    ROOMY(struct tarn_plan_summary) newer;
    memset(&newer, MARK, sizeof newer);
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, NULL), TARN_OK);
    tarn_plan_summarize(plan, &whole);
    tarn_plan_summarize_sized(plan, &newer.known, sizeof newer);
    assert_true(newer.known.footprint == whole.footprint && newer.known.method == whole.method);
    assert_true(all_are(newer.bytes, sizeof newer.known, sizeof newer, 0));
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void a_record_may_be_of_any_age_as_long_as_it_asks_for_nothing_unknown(void **state)
{
    (void)state;
    for (int asks = 0; asks < 2; asks++) {
        struct tarn_builder *builder = tarn_builder_create("graph");
        struct tarn_graph *graph;
        struct tarn_error error;
        ROOMY(struct tarn_tensor_info) newer;
        memset(&newer, 0, sizeof newer);
        newer.known.size = 64;
        newer.known.kind = TARN_INPUT;
        newer.known.alignment = 3; /* wrong, but an older program does not say it */
        size_t older = offsetof(struct tarn_tensor_info, alignment);
        assert_int_equal(tarn_builder_tensor_sized(builder, &newer.known, older), 0);
        newer.known.alignment = 0;
        newer.bytes[sizeof newer - 1] = (unsigned char)asks;
        assert_int_equal(tarn_builder_tensor_sized(builder, &newer.known, sizeof newer),
                         asks ? TARN_NONE : 1u);
        assert_int_equal(tarn_builder_finish(builder, &graph, &error), asks ? TARN_USAGE : TARN_OK);
        assert_true(!asks || strstr(error.text, "newer fields"));
        tarn_graph_destroy(graph);
    }
}

static void a_report_is_filled_as_far_as_the_caller_says(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph(), *result;
    struct tarn_reorder_report whole;
    ROOMY(struct tarn_reorder_report) older;
    size_t size = offsetof(struct tarn_reorder_report, bound);
    memset(&older, MARK, sizeof older);
    assert_int_equal(
        tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.report = &whole), &result, NULL), TARN_OK);
    tarn_graph_destroy(result);
    assert_int_equal(
        tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.report = &older.known, .report_size = size),
                           &result, NULL),
        TARN_OK);
    tarn_graph_destroy(result);
    assert_memory_equal(&older, &whole, size);
    assert_true(all_are(older.bytes, size, sizeof older, MARK));
    tarn_graph_destroy(graph);
}

static void rows_of_a_curve_are_as_far_apart_as_in_the_callers_array(void **state)
{
    (void)state;
    enum { ROWS = 3 };
    struct tarn_graph *graph = make_graph();
    struct tarn_budget_report whole[ROWS];
    ROOMY(struct tarn_budget_report) newer[ROWS];
    memset(newer, MARK, sizeof newer);
    assert_int_equal(tarn_graph_budget_curve(graph, NULL, whole, ROWS, NULL), TARN_OK);
    assert_int_equal(
        tarn_graph_budget_curve_sized(graph, NULL, &newer[0].known, sizeof newer[0], ROWS, NULL),
        TARN_OK);
    for (int i = 0; i < ROWS; i++) {
        assert_memory_equal(&newer[i].known, &whole[i], sizeof whole[i]);
        assert_true(all_are(newer[i].bytes, sizeof whole[i], sizeof newer[i], 0));
    }
    tarn_graph_destroy(graph);
}

static void what_the_library_hands_out_says_its_size(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph();
    struct tarn_simulation *simulation;
    assert_int_equal(tarn_graph_simulate(graph, 0, 0, &simulation, NULL), TARN_OK);
    assert_int_equal(simulation->struct_size, sizeof *simulation);
    tarn_simulation_destroy(simulation);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_program_gets_what_it_knows_and_no_byte_more),
        cmocka_unit_test(a_newer_program_gets_zeros_for_what_the_library_lacks),
        cmocka_unit_test(a_record_may_be_of_any_age_as_long_as_it_asks_for_nothing_unknown),
        cmocka_unit_test(a_report_is_filled_as_far_as_the_caller_says),
        cmocka_unit_test(rows_of_a_curve_are_as_far_apart_as_in_the_callers_array),
        cmocka_unit_test(what_the_library_hands_out_says_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
