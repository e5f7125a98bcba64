/* Capacities that graphs give their memory spaces, where the planner changes the graph: what fits
 * is found, what does not is refused with the least, and nothing leaves the planner above them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bench/named_graph.h"
#include "bench/rough_graph.h"
#include "streams/plan/plan.h"
#include "support/budget_plan.h"
#include "support/random_graph.h"
#include "support/random_training.h"

enum { EFFORT = 200 };

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

/* The plan's capacity is above what the graph leaves of its own: waits come down to the latter. */
static void waits_aim_at_the_smaller_capacity(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(32); seed++) {
        struct tarn_couple_report report = {.target = 0};
        struct tarn_couple_options *couple =
            TARN_COUPLE_OPTIONS(.alignment = 16, .report = &report, .report_size = sizeof report);
        struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.alignment = 16, .threads = 1, .effort = TARN_NO_EFFORT);
        struct tarn_graph *graph = grouped_in(NULL, seed);
        struct tarn_plan_summary before = summary_of(graph, options);
        uint64_t left = before.footprint - before.footprint / 10, capacity = left;
        struct tarn_plan *plan = NULL;
        struct tarn_error error;
        tarn_graph_destroy(graph);
        if (left == 0) continue;
        capacity += before.persistent;
        graph = grouped_in(&capacity, seed);
        for (int larger = 0; larger < 2; larger++) {
            options->couple = couple;
            options->capacity = larger ? before.footprint : left / 2;
            tarn_plan_create(graph, options, &plan, &error);
            assert_int_equal(report.target, larger ? left : left / 2);
            tarn_couple_report_finish(&report);
            tarn_plan_destroy(plan);
        }
        tarn_graph_destroy(graph);
    }
}

/* ---- In a second memory space ---- */

static struct tarn_graph *two_spaces(const uint64_t *capacities, uint64_t seed)
{
    struct random_graph_options knobs = random_graph_knobs(seed, 40);
    knobs.ops = 30;
    knobs.spaces = 2;
    knobs.backward_share = 50;
    knobs.capacities = capacities;
    return random_graph(&knobs);
}

/* What the graph takes as it is, space by space. */
static void measure_spaces(uint64_t seed, const struct tarn_plan_options *options,
                           struct tarn_plan_space_summary spaces[2])
{
    struct tarn_graph *graph = two_spaces(NULL, seed);
    struct tarn_plan *plan;
    struct tarn_error error;
    require(tarn_plan_create(graph, options, &plan, &error), &error);
    for (tarn_space s = 0; s < 2; s++) assert_true(tarn_plan_space(plan, s, &spaces[s]));
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static bool keeps_spaces(struct tarn_graph *graph, const struct tarn_plan_options *options,
                         const uint64_t *capacities)
{
    struct tarn_plan_space_summary space;
    struct tarn_plan *plan;
    struct tarn_error error;
    enum tarn_status status = tarn_plan_create(graph, options, &plan, &error);
    if (status == TARN_DOES_NOT_FIT) return false;
    require(status, &error);
    for (tarn_space s = 0; tarn_plan_space(plan, s, &space); s++)
        assert_true(capacities[s] == 0 || space.footprint + space.persistent <= capacities[s]);
    tarn_plan_destroy(plan);
    return true;
}

/* Exactly what the graph takes there is left of the second space. */
static void a_second_space_without_room_to_spare_is_kept_to(void **state)
{
    (void)state;
    uint32_t tight = 0;
    for (uint64_t seed = 0; seed < DRAWS(20) || (tight == 0 && seed < 60); seed++) {
        struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.alignment = 16, .threads = 1, .effort = 40);
        struct tarn_plan_space_summary spaces[2];
        struct tarn_budget_report report = {.footprint = 0};
        measure_spaces(seed, options, spaces);
        uint64_t capacities[2] = {0, spaces[1].footprint + spaces[1].persistent};
        if (spaces[1].footprint == 0 || spaces[0].footprint == 0) continue;
        struct tarn_graph *graph = two_spaces(capacities, seed);
        options->reorder = TARN_REORDER_OPTIONS(.alignment = 16, .effort = 4);
        if (!keeps_spaces(graph, options, capacities))
            fail_msg("seed %llu: another order takes more", (unsigned long long)seed);
        options->couple = TARN_COUPLE_OPTIONS(.alignment = 16);
        assert_true(keeps_spaces(graph, options, capacities));
        options->reorder = NULL;
        options->couple = NULL;
        options->budget = TARN_BUDGET_OPTIONS(.budget = 1, .effort = 100, .report = &report);
        if (!keeps_spaces(graph, options, capacities)) {
            uint64_t least = report.footprint, most = spaces[0].footprint;
            assert_true(least <= most);
            for (uint64_t budget = least; budget <= most; budget += (most - least) / 3 + 1) {
                options->budget =
                    TARN_BUDGET_OPTIONS(.budget = budget, .effort = 100, .report = &report);
                if (!keeps_spaces(graph, options, capacities))
                    fail_msg("seed %llu: %llu is refused, the least is %llu",
                             (unsigned long long)seed, (unsigned long long)budget,
                             (unsigned long long)least);
                assert_true(report.footprint >= least);
            }
            tight++;
        }
        tarn_graph_destroy(graph);
    }
    assert_true(tight >= DRAWS(8));
}

/* Nothing fits: the message names the space that is too small. */
static void a_second_space_that_is_too_small_is_named(void **state)
{
    (void)state;
    uint32_t named = 0;
    for (uint64_t seed = 0; seed < DRAWS(20) || (named == 0 && seed < 20); seed++) {
        struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.alignment = 16, .threads = 1, .effort = 40);
        struct tarn_plan_space_summary spaces[2];
        struct tarn_error error;
        struct tarn_plan *plan;
        measure_spaces(seed, options, spaces);
        uint64_t capacities[2] = {0, 1 + spaces[1].persistent};
        if (spaces[1].footprint == 0 || spaces[0].footprint == 0) continue;
        struct tarn_graph *graph = two_spaces(capacities, seed);
        options->budget = TARN_BUDGET_OPTIONS(.budget = spaces[0].footprint, .effort = 100);
        assert_int_equal(tarn_plan_create(graph, options, &plan, &error), TARN_DOES_NOT_FIT);
        assert_non_null(strstr(error.text, "memory space 1"));
        tarn_graph_destroy(graph);
        named++;
    }
    assert_true(named > 0);
}

/* ---- Without a budget ---- */

/* Placements that the default search leaves above the bound, of several families: a capacity that
 * is met stays met when it grows, whatever stage meets it, and a plan keeps to it. */
static void what_fits_fits_a_larger_capacity(void **state)
{
    static const enum rough_kind kinds[] = {ROUGH_LOOSE, ROUGH_MESH, ROUGH_GROUPS, ROUGH_INTERVALS};
    uint32_t refused = 0, met = 0;
    (void)state;
    for (uint32_t seed = 0; seed < DRAWS(24); seed++) {
        struct rough_graph_options options = {kinds[seed % 4], 30 + seed * 5, 1 + seed % 4, seed};
        struct tarn_graph *graph = rough_graph(&options);
        struct tarn_plan_options *plan_options =
            TARN_PLAN_OPTIONS(.threads = 1, .effort = TARN_NO_EFFORT, .method = "lowest");
        struct tarn_plan_summary first = summary_of(graph, plan_options);
        bool has_fitted = false;
        plan_options->effort = EFFORT;
        plan_options->method = NULL;
        for (uint64_t k = 0; k <= 6; k++) {
            struct tarn_plan *plan;
            struct tarn_error error;
            plan_options->capacity = first.bound + (first.footprint - first.bound) * k / 6;
            enum tarn_status status = tarn_plan_create(graph, plan_options, &plan, &error);
            if (status != TARN_OK) {
                assert_int_equal(status, TARN_DOES_NOT_FIT);
                assert_false(has_fitted);
                refused++;
                continue;
            }
            assert_true(tarn_plan_footprint(plan) <= plan_options->capacity);
            has_fitted = true;
            met++;
            tarn_plan_destroy(plan);
        }
        assert_true(has_fitted);
        tarn_graph_destroy(graph);
    }
    print_message("# %u met, %u refused\n", met, refused);
    assert_true(met > DRAWS(24));
}

/* A graph of one of several families, small enough for a default search of few steps. */
static struct tarn_graph *graph_of_family(uint32_t seed)
{
    static const char *const names[] = {"loose:120x3:%u", "mesh:90x3:%u",    "groups:80x2:%u",
                                        "wide:120x3:%u",  "aligned:90x3:%u", "intervals:100x1:%u",
                                        "1F1B:2x%u",      "interleaved:2x%u"};
    enum { NAMES = sizeof names / sizeof *names };
    char name[64];
    if (seed % (NAMES + 1) == NAMES) {
        struct random_graph_options knobs = random_graph_knobs(seed, 60);
        return random_graph(&knobs);
    }
    snprintf(name, sizeof name, names[seed % (NAMES + 1)], 2 + seed / (NAMES + 1));
    struct tarn_graph *graph = named_graph(name);
    assert_non_null(graph);
    return graph;
}

/* Whatever the method, and with other orders, paddings and merges: the plan is the one without a
 * capacity, or it is refused. */
static void a_larger_capacity_never_makes_the_plan_larger(void **state)
{
    static const char *const methods[] = {NULL, "lowest", "baseline"};
    static const uint64_t eighths[] = {0, 4, 7, 8, 9, 16};
    uint32_t above = 0, refused = 0, met = 0;
    (void)state;
    for (uint32_t seed = 0; seed < DRAWS(27); seed++) {
        struct tarn_graph *graph = graph_of_family(seed);
        struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.threads = 1, .effort = 30, .method = methods[seed / 9 % 3]);
        struct tarn_reorder_options *reorder = TARN_REORDER_OPTIONS(.effort = 4);
        struct tarn_in_place_options *in_place = TARN_IN_PLACE_OPTIONS(.kinds_count = 0);
        if (seed % 2) options->pad_groups = TARN_GROUPS_SMALLER;
        if (seed % 4 == 3) {
            options->reorder = reorder;
            options->in_place = in_place;
        }
        struct tarn_plan_summary free = summary_of(graph, options);
        above += free.footprint > free.bound;
        for (size_t i = 0; i < sizeof eighths / sizeof *eighths && free.footprint > 0; i++) {
            uint64_t k = eighths[i];
            struct tarn_plan *plan;
            struct tarn_error error;
            struct tarn_plan_summary within;
            options->capacity =
                k < 8 ? free.bound + (free.footprint - free.bound) * k / 8 : free.footprint * k / 8;
            if (options->capacity == 0) continue;
            enum tarn_status status = tarn_plan_create(graph, options, &plan, &error);
            bool fits = options->capacity >= free.footprint;
            assert_int_equal(status, fits ? TARN_OK : TARN_DOES_NOT_FIT);
            refused += !fits;
            met += fits;
            if (!fits) continue;
            tarn_plan_summarize(plan, &within);
            assert_int_equal(within.footprint, free.footprint);
            tarn_plan_destroy(plan);
        }
        tarn_graph_destroy(graph);
    }
    print_message("# %u above the bound; %u met, %u refused\n", above, met, refused);
    assert_true(met > 0 && (above == 0) == (refused == 0));
}

/* Where only a clock would end the search, what fits ends it, but not before its usual end. */
static void a_capacity_ends_a_search_by_the_clock_after_its_usual_end(void **state)
{
    (void)state;
    struct tarn_graph *graph = named_graph("groups:80x2:1");
    struct tarn_plan_summary usual = summary_of(graph, TARN_PLAN_OPTIONS(.threads = 1));
    assert_true(usual.footprint > usual.bound);
    struct tarn_plan_summary within = summary_of(
        graph, TARN_PLAN_OPTIONS(.threads = 1, .capacity = 2 * usual.footprint, .seconds = 3600));
    assert_int_equal(within.ended, TARN_END_CAPACITY);
    assert_true(within.footprint <= usual.footprint);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capacity_below_the_graph_is_kept_to_like_a_budget),
        cmocka_unit_test(orders_and_waits_make_a_graph_fit_its_own_capacity),
        cmocka_unit_test(waits_aim_at_the_smaller_capacity),
        cmocka_unit_test(a_second_space_without_room_to_spare_is_kept_to),
        cmocka_unit_test(a_second_space_that_is_too_small_is_named),
        cmocka_unit_test(what_fits_fits_a_larger_capacity),
        cmocka_unit_test(a_larger_capacity_never_makes_the_plan_larger),
        cmocka_unit_test(a_capacity_ends_a_search_by_the_clock_after_its_usual_end),
    };
    return cmocka_run_group_tests_name("capacity", tests, NULL, NULL);
}
