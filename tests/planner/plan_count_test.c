/* What is planned while transforms look for the final graph is not planned again, and a plan has
 * its clocks made once: calls of tarn_plan_make and tarn_clocks_init are counted
 * by the linker (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "planner/plan_graph/plan_graph.h"
#include "streams/graph/clocks.h"
#include "support/random_graph.h"
#include "support/random_training.h"
#include "tarn.h"

enum { GRAPHS = 60, CALLS_MAX = 1000 };

/* The calls of one planning. Plans that succeeded are retained, so that no address is used twice.
 */
static struct tarn_plan *made[CALLS_MAX];
static uint64_t capacity[CALLS_MAX]; /* plan -> of the options that it was made by */
static uint32_t made_count, calls_count, clocks_count;

static double least_seconds, most_seconds; /* that plans with a search were given */

static enum tarn_status count(enum tarn_status status, const struct tarn_plan_options *options,
                              struct tarn_plan *const *plan)
{
    calls_count++;
    if (options->effort != TARN_NO_EFFORT) {
        if (options->seconds < least_seconds) least_seconds = options->seconds;
        if (options->seconds > most_seconds) most_seconds = options->seconds;
    }
    if (status != TARN_OK) return status;
    assert_in_range(made_count, 0, CALLS_MAX - 1);
    capacity[made_count] = options->capacity;
    made[made_count++] = tarn_plan_retain(*plan);
    return TARN_OK;
}

enum tarn_status __real_tarn_plan_make(struct tarn_graph *graph,
                                       const struct tarn_plan_options *options, uint32_t unlimited,
                                       struct tarn_plan **plan, struct tarn_error *error);
enum tarn_status __wrap_tarn_plan_make(struct tarn_graph *graph,
                                       const struct tarn_plan_options *options, uint32_t unlimited,
                                       struct tarn_plan **plan, struct tarn_error *error);
enum tarn_status __real_tarn_planned_make(struct tarn_planned *planned,
                                          const struct tarn_plan_options *options, bool aims,
                                          uint32_t work_part, struct tarn_error *error);
enum tarn_status __wrap_tarn_planned_make(struct tarn_planned *planned,
                                          const struct tarn_plan_options *options, bool aims,
                                          uint32_t work_part, struct tarn_error *error);

enum tarn_status __wrap_tarn_plan_make(struct tarn_graph *graph,
                                       const struct tarn_plan_options *options, uint32_t unlimited,
                                       struct tarn_plan **plan, struct tarn_error *error)
{
    return count(__real_tarn_plan_make(graph, options, unlimited, plan, error), options, plan);
}

enum tarn_status __wrap_tarn_planned_make(struct tarn_planned *planned,
                                          const struct tarn_plan_options *options, bool aims,
                                          uint32_t work_part, struct tarn_error *error)
{
    return count(__real_tarn_planned_make(planned, options, aims, work_part, error), options,
                 &planned->plan);
}

enum tarn_status __real_tarn_clocks_init(struct tarn_clocks *clocks, struct tarn_region *region,
                                         const struct tarn_graph *graph);
enum tarn_status __wrap_tarn_clocks_init(struct tarn_clocks *clocks, struct tarn_region *region,
                                         const struct tarn_graph *graph);

enum tarn_status __wrap_tarn_clocks_init(struct tarn_clocks *clocks, struct tarn_region *region,
                                         const struct tarn_graph *graph)
{
    clocks_count++;
    return __real_tarn_clocks_init(clocks, region, graph);
}

static void forget(void)
{
    for (uint32_t i = 0; i < made_count; i++) tarn_plan_destroy(made[i]);
    made_count = calls_count = clocks_count = 0;
}

static bool is_made(const struct tarn_plan *plan)
{
    for (uint32_t i = 0; i < made_count; i++) {
        if (made[i] == plan) return true;
    }
    return false;
}

/* ---- Budgets ---- */

static uint64_t footprint_of(struct tarn_graph *graph)
{
    struct tarn_plan *plan;
    struct tarn_plan_summary summary;
    assert_int_equal(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 1), &plan, NULL),
                     TARN_OK);
    tarn_plan_summarize(plan, &summary);
    tarn_plan_destroy(plan);
    return summary.footprint;
}

/* It is searched for within the budget, or within the footprint of a quick plan that fits. */
static void the_plan_that_keeps_to_a_budget_is_delivered(void **state)
{
    uint32_t met = 0;
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct tarn_graph *graph = random_training(
            &(struct random_training_options){.seed = seed, .ops = 12, .weight_share = 50});
        uint64_t budget = footprint_of(graph) * 9 / 10;
        struct tarn_plan *plan;
        forget();
        enum tarn_status status = tarn_plan_create(
            graph,
            TARN_PLAN_OPTIONS(.alignment = 1, .budget = TARN_BUDGET_OPTIONS(.budget = budget)),
            &plan, NULL);
        if (status == TARN_OK && plan->transformed) {
            uint32_t times = 0;
            for (uint32_t i = 0; i < made_count; i++)
                times += made[i]->graph == plan->graph && capacity[i] > 0 && capacity[i] <= budget;
            assert_int_equal(times, 1);
            assert_true(is_made(plan));
            met++;
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    forget();
    assert_in_range(met, GRAPHS / 4, GRAPHS);
}

/* ---- Time ---- */

/* Every plan that is made on the way has a part of the caller's seconds: a call that began later,
 * or comes before another, has less. */
static void all_plans_share_the_seconds_of_the_call(void **state)
{
    uint32_t searched = 0;
    const double seconds = 1000;
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct tarn_graph *graph = random_training(
            &(struct random_training_options){.seed = seed, .ops = 12, .weight_share = 50});
        struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.alignment = 1, .effort = 10, .seconds = seconds,
                              .budget = TARN_BUDGET_OPTIONS(.budget = footprint_of(graph) * 7 / 10),
                              .reorder = TARN_REORDER_OPTIONS(.effort = 2));
        struct tarn_plan *plan;
        forget();
        least_seconds = 2 * seconds;
        most_seconds = 0;
        enum tarn_status status = tarn_plan_create(graph, options, &plan, NULL);
        assert_true(status == TARN_OK || status == TARN_DOES_NOT_FIT);
        assert_true(least_seconds > 0 && most_seconds < seconds);
        searched += most_seconds > 0;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    forget();
    assert_true(searched > 0);
}

/* ---- Orders ---- */

static struct tarn_graph *grouped_graph(uint64_t seed)
{
    struct random_graph_options options = random_graph_knobs(seed, 20);
    options.streams = 1;
    options.group_share = 15;
    return random_graph(&options);
}

static void a_reordered_graph_placed_at_its_bound_is_planned_once(void **state)
{
    uint32_t proved = 0;
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct tarn_graph *graph = grouped_graph(seed);
        struct tarn_plan *plan;
        forget();
        assert_int_equal(
            tarn_plan_create(
                graph,
                TARN_PLAN_OPTIONS(.alignment = 1, .reorder = TARN_REORDER_OPTIONS(.alignment = 1)),
                &plan, NULL),
            TARN_OK);
        uint32_t times = 0;
        const struct tarn_plan *first = NULL;
        for (uint32_t i = 0; i < made_count; i++) {
            times += made[i]->graph == plan->graph;
            if (!first && made[i]->graph == plan->graph) first = made[i];
        }
        assert_non_null(first);
        if (first->footprint == first->claim.bound && calls_count > 1) {
            assert_int_equal(times, 1);
            proved++;
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    forget();
    assert_in_range(proved, GRAPHS / 6, GRAPHS);
}

static void without_transforms_a_graph_is_planned_once_and_has_its_clocks_once(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct tarn_graph *graph = grouped_graph(seed);
        struct tarn_plan *plan;
        forget();
        assert_int_equal(tarn_plan_create(graph, NULL, &plan, NULL), TARN_OK);
        assert_int_equal(calls_count, 1);
        assert_int_equal(clocks_count, 1);
        assert_ptr_equal(made[0], plan);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_that_keeps_to_a_budget_is_delivered),
        cmocka_unit_test(all_plans_share_the_seconds_of_the_call),
        cmocka_unit_test(a_reordered_graph_placed_at_its_bound_is_planned_once),
        cmocka_unit_test(without_transforms_a_graph_is_planned_once_and_has_its_clocks_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
