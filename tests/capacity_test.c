/* Capacities that graphs give their memory spaces, where the planner changes the graph: what fits
 * is found, what does not is refused with the least, and nothing leaves the planner above them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/budget_plan.h"
#include "support/random_graph.h"
#include "support/random_training.h"

enum { EFFORT = 400 };

static void require(enum tarn_status status, const struct tarn_error *error)
{
    if (status != TARN_OK) fail_msg("%s", error->text);
}

static struct tarn_plan_summary summary_of(struct tarn_graph *graph,
                                           const struct tarn_plan_options *options)
{
    struct tarn_plan_summary summary;
    struct tarn_plan *plan;
    struct tarn_error error;
    require(tarn_plan_create(graph, options, &plan, &error), &error);
    tarn_plan_summarize(plan, &summary);
    tarn_plan_destroy(plan);
    return summary;
}

/* ---- With a budget ---- */

/* A training step in one memory space of so many bytes; 0: in none that is declared. */
static struct tarn_graph *training_in(uint64_t capacity, uint64_t seed)
{
    struct tarn_graph *graph =
        random_training(&(struct random_training_options){.seed = seed,
                                                          .ops = 5 + (uint32_t)(seed % 8),
                                                          .branch_share = 30,
                                                          .weight_share = 40,
                                                          .implementation_share = 30,
                                                          .capacity = capacity});
    return budget_assigned(graph, 1 + (uint32_t)(seed % 2));
}

/* What the refusal of a budget says; the error is that of the refusal. */
static uint64_t least_within(struct tarn_graph *graph, uint64_t budget, struct tarn_error *error)
{
    struct tarn_budget_report report;
    struct tarn_plan *plan;
    assert_int_equal(budget_plan_within(graph, budget, EFFORT, &report, &plan, error),
                     TARN_DOES_NOT_FIT);
    return report.footprint;
}

/* Whatever the budget is, arena and persistent part keep to the capacity. */
static void requires_fit(uint64_t seed, uint64_t capacity, uint64_t budget)
{
    struct tarn_graph *graph = training_in(capacity, seed);
    struct tarn_budget_options *within = TARN_BUDGET_OPTIONS(.budget = budget, .effort = EFFORT);
    struct tarn_plan_summary summary =
        summary_of(graph, TARN_PLAN_OPTIONS(.alignment = BUDGET_ALIGNMENT, .budget = within));
    assert_true(summary.footprint + summary.persistent <= capacity);
    tarn_graph_destroy(graph);
}

static void a_capacity_below_the_graph_is_kept_to_like_a_budget(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(8); seed++) {
        struct tarn_graph *graph = training_in(0, seed);
        struct tarn_error error;
        uint64_t least = least_within(graph, 1, &error), most = budget_footprint_of(graph);
        uint64_t persistent =
            summary_of(graph, TARN_PLAN_OPTIONS(.alignment = BUDGET_ALIGNMENT)).persistent;
        tarn_graph_destroy(graph);
        for (uint64_t fits = least; fits < most; fits += (most - least + 1) / 2) {
            requires_fit(seed, fits + persistent, fits + persistent);
            requires_fit(seed, fits + persistent, most);
            requires_fit(seed, fits + persistent, 0);
        }
        graph = training_in(least + persistent - 1, seed);
        assert_int_equal(least_within(graph, most, &error), least);
        assert_non_null(strstr(error.text, "capacity leaves, cannot be met"));
        tarn_graph_destroy(graph);
    }
}

/* ---- With another order, and waits ---- */

static struct tarn_graph *grouped_in(const uint64_t *capacity, uint64_t seed)
{
    struct random_graph_options knobs = random_graph_knobs(seed, 40);
    knobs.ops = 40;
    knobs.spaces = 1;
    knobs.capacities = capacity;
    return random_graph(&knobs);
}

static void orders_and_waits_make_a_graph_fit_its_own_capacity(void **state)
{
    (void)state;
    uint32_t smaller = 0;
    for (uint64_t seed = 0; seed < DRAWS(32) || (smaller == 0 && seed < 32); seed++) {
        struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.alignment = 16, .threads = 1, .effort = 40,
                              .reorder = TARN_REORDER_OPTIONS(.alignment = 16, .effort = 4),
                              .couple = seed % 2 ? TARN_COUPLE_OPTIONS(.alignment = 16) : NULL);
        struct tarn_plan_options *plain =
            TARN_PLAN_OPTIONS(.alignment = 16, .threads = 1, .effort = 40);
        struct tarn_graph *graph = grouped_in(NULL, seed);
        struct tarn_plan_summary before = summary_of(graph, plain),
                                 after = summary_of(graph, options);
        uint64_t capacity = after.footprint + after.persistent;
        tarn_graph_destroy(graph);
        if (after.footprint == 0) continue;
        smaller += after.footprint < before.footprint;
        graph = grouped_in(&capacity, seed);
        struct tarn_plan_summary within = summary_of(graph, options);
        assert_true(within.footprint + within.persistent <= capacity);
        tarn_graph_destroy(graph);
    }
    assert_true(smaller >= DRAWS(8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capacity_below_the_graph_is_kept_to_like_a_budget),
        cmocka_unit_test(orders_and_waits_make_a_graph_fit_its_own_capacity),
    };
    return cmocka_run_group_tests_name("capacity", tests, NULL, NULL);
}
