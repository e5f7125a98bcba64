/* Coupling against brute force: what was in order stays in order, the bound is the heaviest clique
 * of unsafe storages and never rises, the modelled time is the simulator's, and where one arc of
 * all that there are would do, one is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "planner/transform/recipe.h"
#include "streams/base/region.h"
#include "streams/order/reuse.h"
#include "support/heaviest.h"
#include "support/order_oracle.h"
#include "support/random_graph.h"
#include "tarn/simulate.h"
#include "tarn/transform.h"

enum {
    GRAPHS = DRAWS(2000),
    OPS_MAX = 12,
    TINY_GRAPHS = 2000,
    TINY_OPS_MAX = 9,
    STORAGES_MAX = 24
};
enum { BIG_GRAPHS = DRAWS(300), BIG_OPS_MAX = 60, WAIT_NS = 20 };

/* ---- Oracles ---- */

/* In exact bytes. */
static uint64_t brute_bound(const struct tarn_graph *graph)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_clocks clocks;
    struct tarn_reuse reuse;
    uint32_t unsafe[STORAGES_MAX] = {0};
    uint64_t weight[STORAGES_MAX];
    assert_int_equal(tarn_clocks_init(&clocks, &region, graph), TARN_OK);
    assert_int_equal(tarn_reuse_init(&reuse, &region, &clocks, graph), TARN_OK);
    for (uint32_t a = 0; a < reuse.count; a++) {
        weight[a] = graph->storages[a].size;
        for (uint32_t b = 0; b < reuse.count; b++)
            if (a != b && !tarn_reuse_is_safe(&reuse, a, b)) unsafe[a] |= UINT32_C(1) << b;
    }
    uint64_t bound = heaviest_clique(unsafe, weight, (UINT32_C(1) << reuse.count) - 1);
    tarn_region_finish(&region);
    return bound;
}

static uint64_t makespan_of(const struct tarn_graph *graph)
{
    struct tarn_simulation *simulation;
    assert_int_equal(tarn_graph_simulate(graph, 1, WAIT_NS, &simulation, NULL), TARN_OK);
    uint64_t makespan = simulation->makespan_ns;
    tarn_simulation_destroy(simulation);
    return makespan;
}

static uint32_t find_order(struct tarn_graph *graph, struct order_oracle *oracle)
{
    struct tarn_plan *plan = tarn_plan_of_graph(graph);
    assert_non_null(plan);
    uint32_t waits = plan->waits_count;
    order_oracle_init(oracle, plan);
    tarn_plan_destroy(plan);
    return waits;
}

/* ---- What is kept ---- */

/* Of launched ops, by origin. */
static void check_order_is_kept(struct tarn_graph *before, struct tarn_graph *after,
                                uint32_t last_row_waits)
{
    struct order_oracle old, new;
    uint32_t place[ORDER_ORACLE_OPS];
    find_order(before, &old);
    assert_int_equal(find_order(after, &new), last_row_waits);
    assert_int_equal(after->ops_count, before->ops_count);
    for (uint32_t v = 0; v < after->ops_count; v++) {
        uint32_t origin = before == after ? v : after->ops[v].origin;
        place[origin] = v;
        assert_int_equal(after->ops[v].stream, before->ops[origin].stream);
        assert_int_equal(after->ops[v].position, before->ops[origin].position);
    }
    for (uint32_t v = 0; v < before->ops_count; v++)
        for (uint32_t u = 0; u < before->ops_count; u++)
            if (old.ancestors[v] >> u & 1) assert_true(new.ancestors[place[v]] >> place[u] & 1);
}

static void check_rows(const struct tarn_couple_report *report)
{
    assert_true(report->rows_count > 0);
    const struct tarn_couple_row *last = &report->rows[report->rows_count - 1];
    assert_int_equal(report->rows[0].arcs, 0);
    assert_int_equal(last->arcs, report->arcs);
    assert_int_equal(last->bound, report->bound);
    for (size_t i = 1; i < report->rows_count; i++) {
        assert_true(report->rows[i].arcs > report->rows[i - 1].arcs);
        assert_true(report->rows[i].bound < report->rows[i - 1].bound);
    }
}

static void check_couple(struct tarn_graph *graph, double slowdown_max, double keep)
{
    struct tarn_couple_report report;
    struct tarn_graph *after;
    struct tarn_error error;
    struct tarn_couple_options *options =
        TARN_COUPLE_OPTIONS(.alignment = 1, .slowdown_max = slowdown_max, .keep = keep,
                            .wait_ns = WAIT_NS, .report = &report);
    if (tarn_graph_couple(graph, options, &after, &error) != TARN_OK) fail_msg("%s", error.text);
    check_rows(&report);
    uint64_t before_ns = makespan_of(graph), after_ns = makespan_of(after);
    assert_int_equal(report.rows[0].critical_path_ns, before_ns);
    assert_int_equal(report.rows[report.rows_count - 1].critical_path_ns, after_ns);
    assert_true((double)after_ns <= (double)before_ns * (1 + slowdown_max));
    check_order_is_kept(graph, after, report.rows[report.rows_count - 1].waits);
    if (graph->planned_count < STORAGES_MAX) {
        bool exact = graph->groups_count == 0; /* else groups may need more */
        uint64_t first = brute_bound(graph), last = brute_bound(after);
        assert_true(exact ? report.rows[0].bound == first : report.rows[0].bound >= first);
        assert_true(exact ? report.bound == last : report.bound >= last);
    }
    if (report.arcs == 0) assert_ptr_equal(after, graph);
    tarn_couple_report_finish(&report);
    tarn_graph_destroy(after);
}

static void keeps_order_and_time_and_reports_the_bound(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS + BIG_GRAPHS; seed++) {
        struct random_graph_options options =
            random_graph_knobs(seed, seed < GRAPHS ? OPS_MAX : BIG_OPS_MAX);
        struct tarn_graph *graph = random_graph(&options);
        check_couple(graph, (double)(seed % 4) * 0.1, seed % 3 == 0 ? 0.5 : 0);
        tarn_graph_destroy(graph);
    }
}

/* A serial order is one of the timings: with all the time in the world the bound comes down to the
 * peak of some order, and nothing but a capacity asks for less. */
static void target_is_serial_peak_or_capacity(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS / 4; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
        struct tarn_graph *graph = random_graph(&options), *after;
        struct tarn_couple_report report;
        struct tarn_graph_summary summary;
        assert_int_equal(tarn_graph_summarize(graph, &summary, NULL), TARN_OK);
        assert_int_equal(tarn_graph_couple(graph,
                                           TARN_COUPLE_OPTIONS(.alignment = 1, .report = &report),
                                           &after, NULL),
                         TARN_OK);
        uint64_t first = report.rows[0].bound;
        assert_int_equal(report.serial_peak, summary.serial_peak);
        assert_int_equal(report.target, first < summary.serial_peak ? first : summary.serial_peak);
        tarn_couple_report_finish(&report);
        tarn_graph_destroy(after);
        assert_int_equal(tarn_graph_couple(graph,
                                           TARN_COUPLE_OPTIONS(.alignment = 1, .capacity = first,
                                                               .report = &report),
                                           &after, NULL),
                         TARN_OK);
        assert_int_equal(report.arcs, 0);
        tarn_couple_report_finish(&report);
        tarn_graph_destroy(after);
        tarn_graph_destroy(graph);
    }
}

/* ---- As few arcs as there need be ---- */

struct hunt {
    struct tarn_graph *graph;
    uint64_t target, makespan;
    struct tarn_recipe_arc arcs[2];
};

/* Do these arcs reach the target in the same time? */
static bool is_enough(const struct hunt *hunt, uint32_t count)
{
    struct tarn_recipe recipe = {.graph = hunt->graph, .arcs = hunt->arcs, .arcs_count = count};
    struct tarn_graph *after;
    if (tarn_recipe_build(&recipe, &after, NULL) != TARN_OK) return false; /* a cycle */
    bool enough = makespan_of(after) <= hunt->makespan && brute_bound(after) <= hunt->target;
    tarn_graph_destroy(after);
    return enough;
}

static bool is_enough_with(struct hunt *hunt, uint32_t count, uint32_t wanted)
{
    const struct tarn_graph *graph = hunt->graph;
    if (count == wanted) return is_enough(hunt, count);
    for (uint32_t u = 0; u < graph->ops_count; u++) {
        for (uint32_t w = 0; w < graph->ops_count; w++) {
            if (graph->ops[u].stream == graph->ops[w].stream) continue;
            if (graph->ops[u].view || graph->ops[w].view) continue;
            hunt->arcs[count] = (struct tarn_recipe_arc){.later = w, .earlier = u};
            if (is_enough_with(hunt, count + 1, wanted)) return true;
        }
    }
    return false;
}

/* *fewest: 1 or 2 arcs reach the target; 0: none are needed, or more. */
static uint32_t count_fewest(struct tarn_graph *graph, uint64_t target)
{
    struct hunt hunt = {.graph = graph, .target = target, .makespan = makespan_of(graph)};
    if (brute_bound(graph) <= target) return 0;
    if (is_enough_with(&hunt, 0, 1)) return 1;
    return graph->ops_count <= TINY_OPS_MAX - 2 && is_enough_with(&hunt, 0, 2) ? 2 : 0;
}

static void finds_as_few_arcs_as_there_need_be(void **state)
{
    (void)state;
    uint32_t enough[3] = {0}, found[3] = {0};
    for (uint64_t seed = 0; seed < TINY_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, TINY_OPS_MAX);
        options.group_share = 0; /* with groups the bound is not found by brute force */
        struct tarn_graph *graph = random_graph(&options), *after;
        struct tarn_couple_report report;
        assert_int_equal(tarn_graph_couple(graph,
                                           TARN_COUPLE_OPTIONS(.alignment = 1, .wait_ns = WAIT_NS,
                                                               .report = &report),
                                           &after, NULL),
                         TARN_OK);
        uint32_t fewest =
            graph->planned_count < STORAGES_MAX ? count_fewest(graph, report.target) : 0;
        enough[fewest]++;
        found[fewest] += report.bound <= report.target && report.arcs <= fewest;
        tarn_couple_report_finish(&report);
        tarn_graph_destroy(after);
        tarn_graph_destroy(graph);
    }
    assert_true(enough[1] > 50 && enough[2] > 0);
    assert_int_equal(found[1], enough[1]);
    assert_true(2 * found[2] > enough[2]);
}

/* ---- For as little time as there need be ---- */

/* The shortest makespan by which one arc reaches the target; UINT64_MAX: none does. */
static uint64_t shortest_with_one(struct tarn_graph *graph, uint64_t target)
{
    struct hunt hunt = {.graph = graph, .target = target, .makespan = 8 * makespan_of(graph)};
    uint64_t shortest = UINT64_MAX;
    while (is_enough_with(&hunt, 0, 1)) {
        struct tarn_recipe recipe = {.graph = graph, .arcs = hunt.arcs, .arcs_count = 1};
        struct tarn_graph *after;
        assert_int_equal(tarn_recipe_build(&recipe, &after, NULL), TARN_OK);
        shortest = makespan_of(after);
        hunt.makespan = shortest - 1;
        tarn_graph_destroy(after);
    }
    return shortest;
}

/* Where time may be spent without end, no more is spent than the bytes are worth. */
static void takes_little_more_time_than_the_best_arc(void **state)
{
    (void)state;
    uint64_t shortest_sum = 0, sum = 0;
    uint32_t counted = 0, reached = 0;
    for (uint64_t seed = 0; seed < TINY_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, TINY_OPS_MAX);
        options.group_share = 0;
        struct tarn_graph *graph = random_graph(&options), *after;
        struct tarn_couple_report report;
        assert_int_equal(
            tarn_graph_couple(graph,
                              TARN_COUPLE_OPTIONS(.alignment = 1, .wait_ns = WAIT_NS,
                                                  .slowdown_max = 100, .report = &report),
                              &after, NULL),
            TARN_OK);
        uint64_t shortest = UINT64_MAX;
        if (report.rows[0].bound > report.target)
            shortest = shortest_with_one(graph, report.target);
        counted += shortest < UINT64_MAX;
        if (shortest < UINT64_MAX && report.bound <= report.target) {
            reached++;
            shortest_sum += shortest;
            sum += report.rows[report.rows_count - 1].critical_path_ns;
        }
        tarn_couple_report_finish(&report);
        tarn_graph_destroy(after);
        tarn_graph_destroy(graph);
    }
    print_message("# %u graphs, %u reached, %llu ns, the best arcs %llu\n", counted, reached,
                  (unsigned long long)sum, (unsigned long long)shortest_sum);
    assert_true(counted > 50);
    assert_true(20 * reached > 19 * counted);
    assert_true(sum <= shortest_sum + shortest_sum / 50);
}

static void refuses_options_that_make_no_sense(void **state)
{
    (void)state;
    struct random_graph_options options = random_graph_knobs(1, OPS_MAX);
    struct tarn_graph *graph = random_graph(&options), *after;
    const struct tarn_couple_options bad[] = {
        {.struct_size = sizeof *bad, .alignment = 3},
        {.struct_size = sizeof *bad, .keep = 1.5},
        {.struct_size = sizeof *bad, .keep = -1},
        {.struct_size = sizeof *bad, .slowdown_max = -0.1},
        {.struct_size = 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tarn_error error;
        assert_int_equal(tarn_graph_couple(graph, &bad[i], &after, &error), TARN_USAGE);
        assert_true(error.text[0] != '\0');
    }
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_order_and_time_and_reports_the_bound),
        cmocka_unit_test(target_is_serial_peak_or_capacity),
        cmocka_unit_test(finds_as_few_arcs_as_there_need_be),
        cmocka_unit_test(takes_little_more_time_than_the_best_arc),
        cmocka_unit_test(refuses_options_that_make_no_sense),
    };
    return cmocka_run_group_tests_name("couple", tests, NULL, NULL);
}
