/* Budgets together with another order of ops: what fits in either of the two orders is never
 * refused, none takes less time than the plan, the least that a refusal tells can be had, and
 * reports tell of the order that was taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/budget_plan.h"
#include "support/random_graph.h"
#include "support/random_training.h"

enum { EFFORT = 100, REORDER_EFFORT = 4, FIRST = 20 };

struct tally {
    uint32_t kept, smaller;
};

/* Random training steps, whose random ops must not be repeated. */
static struct tarn_graph *training_of(uint64_t seed)
{
    return random_training(&(struct random_training_options){.seed = seed,
                                                             .ops = 6 + (uint32_t)(seed % 20),
                                                             .branch_share = 40,
                                                             .weight_share = 60,
                                                             .random_share = 30,
                                                             .implementation_share = 20,
                                                             .streams = 1});
}

/* What a plan tells of its orders. */
struct told {
    struct tarn_budget_report budget;
    struct tarn_reorder_report reorder;
};

/* The report's footprint is that of the budget's graph, or the least where it is refused. */
static enum tarn_status plan_and_tell(struct tarn_graph *graph, uint64_t budget, bool reorder,
                                      struct told *told, uint64_t *footprint)
{
    *told = (struct told){0};
    struct tarn_budget_options *within =
        TARN_BUDGET_OPTIONS(.budget = budget, .effort = EFFORT, .report = &told->budget);
    struct tarn_reorder_options *order =
        TARN_REORDER_OPTIONS(.effort = REORDER_EFFORT, .report = &told->reorder);
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.alignment = BUDGET_ALIGNMENT, .threads = 1, .budget = within,
                          .reorder = reorder ? order : NULL);
    struct tarn_plan *plan;
    struct tarn_error error;
    enum tarn_status status = tarn_plan_create(graph, options, &plan, &error);
    if (status != TARN_OK && status != TARN_DOES_NOT_FIT) fail_msg("%s", error.text);
    *footprint = told->budget.footprint;
    struct tarn_plan_summary summary = {0};
    if (status == TARN_OK) tarn_plan_summarize(plan, &summary);
    assert_true(summary.footprint <= budget);
    if (status == TARN_OK) assert_int_equal(summary.footprint, told->budget.footprint);
    tarn_plan_destroy(plan);
    return status;
}

static enum tarn_status plan_within(struct tarn_graph *graph, uint64_t budget, bool reorder,
                                    uint64_t *footprint)
{
    struct told told;
    return plan_and_tell(graph, budget, reorder, &told, footprint);
}

/* The report of reordering tells nothing of an order that was thrown away. */
static void require_order_kept(const struct tarn_reorder_report *report)
{
    assert_true(report->peak_before > 0);
    assert_int_equal(report->peak_after, report->peak_before);
    assert_int_equal(report->critical_path_ns, report->critical_path_before_ns);
    for (int stage = 0; stage < TARN_REORDER_STAGES; stage++)
        assert_int_equal(report->gains[stage].bytes, 0);
}

/* The budget alone, in an order that is given. */
static enum tarn_status budget_in(struct tarn_graph *graph, uint64_t budget,
                                  struct tarn_budget_report *report)
{
    struct tarn_graph *result;
    enum tarn_status status =
        tarn_graph_budget(graph,
                          TARN_BUDGET_OPTIONS(.budget = budget, .effort = EFFORT,
                                              .alignment = BUDGET_ALIGNMENT, .report = report),
                          &result, NULL);
    if (status != TARN_OK && status != TARN_DOES_NOT_FIT) fail_msg("status %d", (int)status);
    tarn_graph_destroy(result);
    return status;
}

static struct tarn_graph *reordered(struct tarn_graph *graph)
{
    struct tarn_graph *result;
    const struct tarn_reorder_options *options =
        TARN_REORDER_OPTIONS(.effort = REORDER_EFFORT, .alignment = BUDGET_ALIGNMENT);
    assert_int_equal(tarn_graph_reorder(graph, options, &result, NULL), TARN_OK);
    return result;
}

/* The plan is the best of the budget in either order, each made by the public calls. */
static void compare_orders(struct tarn_graph *graph, uint64_t budget, struct tally *tally)
{
    struct told told;
    struct tarn_budget_report given, other;
    struct tarn_graph *order = reordered(graph);
    uint64_t footprint;
    enum tarn_status fits = plan_and_tell(graph, budget, true, &told, &footprint);
    bool in_given = budget_in(graph, budget, &given) == TARN_OK;
    bool in_other = budget_in(order, budget, &other) == TARN_OK;
    tarn_graph_destroy(order);
    if (in_given || in_other) assert_int_equal(fits, TARN_OK);
    if (fits != TARN_OK) return;
    if (in_given) assert_true(told.budget.time_ns <= given.time_ns);
    if (in_other) assert_true(told.budget.time_ns <= other.time_ns);
    bool kept = in_given && (!in_other || given.time_ns < other.time_ns);
    if (kept && told.budget.time_ns >= given.time_ns) {
        require_order_kept(&told.reorder);
        tally->kept++;
    }
    if (in_other && !kept && other.time_ns == told.budget.time_ns)
        tally->smaller += told.budget.footprint < other.footprint;
}

static void what_fits_in_the_order_that_came_in_is_not_refused(void **state)
{
    (void)state;
    uint32_t refused = 0;
    for (uint64_t seed = FIRST; seed < FIRST + DRAWS(64); seed++) {
        struct tarn_graph *graph = training_of(seed);
        uint64_t least, ended;
        if (plan_within(graph, 1, false, &least) == TARN_DOES_NOT_FIT) {
            assert_int_equal(plan_within(graph, least, true, &ended), TARN_OK);
            refused++;
        }
        tarn_graph_destroy(graph);
    }
    assert_true(refused > 0);
}

static void the_least_that_a_refusal_tells_can_be_had(void **state)
{
    (void)state;
    for (uint64_t seed = FIRST; seed < FIRST + DRAWS(64); seed++) {
        struct tarn_graph *graph = training_of(seed);
        uint64_t least, ended;
        if (plan_within(graph, 1, true, &least) == TARN_DOES_NOT_FIT)
            assert_int_equal(plan_within(graph, least, true, &ended), TARN_OK);
        tarn_graph_destroy(graph);
    }
}

static void the_plan_is_the_best_of_both_orders(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = FIRST; seed < FIRST + DRAWS(64); seed++) {
        struct tarn_graph *graph = training_of(seed);
        if (seed % 2) graph = budget_assigned(graph, 2);
        struct tarn_budget_report least;
        uint64_t most = budget_footprint_of(graph);
        bool refused = budget_in(graph, 1, &least) != TARN_OK;
        for (uint64_t part = 0; refused && part < 4; part++)
            compare_orders(graph, least.footprint + (most - least.footprint) / 4 * part, &tally);
        tarn_graph_destroy(graph);
    }
    print_message("# the order kept %u times, %u smaller\n", tally.kept, tally.smaller);
    assert_true(tally.smaller > 0);
}

/* A BERT-base that PyTorch trains. The order with the fewest bytes alive leaves little that can be
 * computed again. */
static void a_captured_step_fits_in_one_of_two_orders(void **state)
{
    (void)state;
    struct tarn_graph *graph;
    struct tarn_error error;
    struct told told;
    uint64_t least, footprint;
    if (tarn_graph_load(TARN_SOURCE_DIR "/tests/data/torch/bert_base.json.gz", NULL, &graph,
                        &error))
        fail_msg("%s", error.text);
    assert_int_equal(plan_within(graph, 1, false, &least), TARN_DOES_NOT_FIT);
    assert_int_equal(plan_and_tell(graph, least, true, &told, &footprint), TARN_OK);
    require_order_kept(&told.reorder);
    assert_int_equal(plan_within(graph, 1, true, &footprint), TARN_DOES_NOT_FIT);
    assert_in_range(footprint, 1, least);
    tarn_graph_destroy(graph);
}

/* Of the same graph: what keeps to a budget needs less in another order, at the same time. */
static void what_keeps_to_a_budget_is_put_in_order(void **state)
{
    (void)state;
    struct tarn_graph *graph;
    struct tarn_error error;
    struct told told;
    struct tarn_budget_report given;
    uint64_t footprint;
    if (tarn_graph_load(TARN_SOURCE_DIR "/tests/data/torch/bert_base.json.gz", NULL, &graph,
                        &error))
        fail_msg("%s", error.text);
    uint64_t budget = budget_footprint_of(graph) / 2;
    assert_int_equal(budget_in(graph, budget, &given), TARN_OK);
    assert_int_equal(plan_and_tell(graph, budget, true, &told, &footprint), TARN_OK);
    assert_true(told.budget.time_ns <= given.time_ns);
    assert_true(footprint < given.footprint - given.footprint / 8);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_in_the_order_that_came_in_is_not_refused),
        cmocka_unit_test(the_least_that_a_refusal_tells_can_be_had),
        cmocka_unit_test(the_plan_is_the_best_of_both_orders),
        cmocka_unit_test(what_keeps_to_a_budget_is_put_in_order),
        cmocka_unit_test(a_captured_step_fits_in_one_of_two_orders),
    };
    return cmocka_run_group_tests_name("budget_order", tests, NULL, NULL);
}
