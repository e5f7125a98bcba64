/* The least that a refused budget is told: one number for a graph and the options of its plan, a
 * budget that is kept, and no plan within any budget is below it. Graphs: random training steps and
 * graphs of all features, in one stream and in two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/budget_plan.h"
#include "support/random_graph.h"
#include "support/random_training.h"

static struct tarn_graph *draw_training(uint64_t seed)
{
    struct tarn_graph *graph =
        random_training(&(struct random_training_options){.seed = seed,
                                                          .ops = 5 + (uint32_t)(seed % 8),
                                                          .branch_share = 30,
                                                          .inplace_share = seed % 7 == 0 ? 30 : 0,
                                                          .weight_share = 40,
                                                          .implementation_share = 30});
    return budget_assigned(graph, 1 + (uint32_t)(seed % 2));
}

/* Options of a plan that change what a budget comes to. */
struct way {
    struct tarn_plan_options plan;
    struct tarn_in_place_options in_place;
    struct tarn_couple_options couple;
    struct tarn_reorder_options reorder;
};

static void draw_way(struct way *way, uint64_t seed)
{
    static const char *const kinds[] = {"work", "relu"};
    way->in_place = *TARN_IN_PLACE_OPTIONS(.kinds = kinds, .kinds_count = 2);
    way->couple = *TARN_COUPLE_OPTIONS(.alignment = BUDGET_ALIGNMENT);
    way->reorder = *TARN_REORDER_OPTIONS(.effort = 2);
    way->plan = *TARN_PLAN_OPTIONS(.alignment = BUDGET_ALIGNMENT, .threads = 1, .effort = 10);
    if (seed % 2 == 1) way->plan.in_place = &way->in_place;
    if (seed % 4 == 3) way->plan.method = "single-object:size:first-fit";
    if (seed % 5 == 2) way->plan.couple = &way->couple;
    if (seed % 6 == 5) way->plan.reorder = &way->reorder;
}

/* 0: the budget cannot be kept; `told` receives the least then. */
static uint64_t footprint_within(struct tarn_graph *graph, const struct way *way, uint64_t budget,
                                 uint64_t *told)
{
    struct tarn_budget_report report;
    struct tarn_plan_options options = way->plan;
    struct tarn_plan_summary summary;
    struct tarn_plan *plan;
    struct tarn_error error;
    options.budget = TARN_BUDGET_OPTIONS(.budget = budget, .effort = 200, .report = &report);
    enum tarn_status status = tarn_plan_create(graph, &options, &plan, &error);
    if (told) *told = report.footprint;
    if (status == TARN_DOES_NOT_FIT) return 0;
    if (status != TARN_OK) fail_msg("%s", error.text);
    tarn_plan_summarize(plan, &summary);
    assert_true(summary.footprint <= budget);
    tarn_plan_destroy(plan);
    return summary.footprint;
}

static void requires_no_plan_below_the_least(struct tarn_graph *graph, const struct way *way)
{
    uint64_t least, told, most = budget_footprint_of(graph);
    if (footprint_within(graph, way, 1, &least) > 0 || least == 0) return;
    assert_int_equal(footprint_within(graph, way, least, NULL), least);
    for (uint64_t part = 0; part <= 10; part++) {
        uint64_t budget = part == 0 ? least - 1 : least / 10 * 9 + (most - least) / 10 * part;
        uint64_t footprint = footprint_within(graph, way, budget, &told);
        if (budget < least && (footprint > 0 || told != least))
            fail_msg("budget %llu: the least is %llu, now %llu", (unsigned long long)budget,
                     (unsigned long long)least, (unsigned long long)told);
        if (budget >= least) assert_true(footprint >= least);
    }
}

/* Little effort, so that a search for one budget comes upon what that for another does not. Seeds
 * 10, 12 and 47 of the first family were found by a campaign. */
static void no_plan_is_below_the_least_that_is_told(void **state)
{
    (void)state;
    for (uint64_t seed = 7; seed < 7 + DRAWS(6) || seed == 47; seed += seed == 12 ? 35 : 1) {
        struct tarn_graph *graph = draw_training(seed);
        struct way way = {.in_place = {0}};
        draw_way(&way, 0);
        requires_no_plan_below_the_least(graph, &way);
        tarn_graph_destroy(graph);
    }
    for (uint64_t seed = 0; seed < DRAWS(24); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 24);
        struct way way = {.in_place = {0}};
        draw_way(&way, seed);
        options.backward_share = 50;
        struct tarn_graph *graph = seed % 3 ? draw_training(seed) : random_graph(&options);
        requires_no_plan_below_the_least(graph, &way);
        tarn_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_plan_is_below_the_least_that_is_told),
    };
    return cmocka_run_group_tests_name("least", tests, NULL, NULL);
}
