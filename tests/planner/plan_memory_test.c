/* Every allocation that fails while a graph is planned, in turn, ends in TARN_SYSTEM or is done
 * without, and leaks nothing (a sanitizer sees to the second), in whichever thread of the portfolio
 * it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "planner/papers/pairs.h"
#include "planner/place/exact/exact.h"
#include "planner/place/improve.h"
#include "planner/place/windows/windows.h"
#include "streams/base/region.h"
#include "streams/order/flow.h"
#include "streams/order/gap_bound.h"
#include "support/check_offsets.h"
#include "support/failing_memory.h"
#include "support/random_graph.h"
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
    if (WITH_PAPERS) fail_each_allocation(plan_by_tree, 20);
    if (WITH_PAPERS) fail_each_allocation(plan_by_skyline, 20);
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
    fail_each_allocation(simulate, 4);
}

typedef enum tarn_status (*pairs_method)(const struct tarn_graph *graph,
                                         struct tarn_pair_matrix *matrix);

static enum tarn_status find_pairs(struct tarn_error *error)
{
    static const pairs_method methods[] = {tarn_pairs_clocks, tarn_pairs_ancestors,
                                           tarn_pairs_ancestors_opt, tarn_pairs_stream_graph};
    enum tarn_status status = TARN_OK;
    for (size_t i = 0; status == TARN_OK && i < sizeof methods / sizeof *methods; i++) {
        struct tarn_pair_matrix matrix;
        status = methods[i](graph, &matrix);
        if (status == TARN_OK) tarn_pair_matrix_finish(&matrix);
    }
    if (status == TARN_SYSTEM) snprintf(error->text, sizeof error->text, "out of memory");
    return status;
}

static void pairs_survive_every_failing_allocation(void **state)
{
    (void)state;
    fail_each_allocation(find_pairs, 8);
}

/* ---- Searching, which small graphs do not need ---- */

static struct search_fixture {
    struct tarn_region region; /* of the problem */
    struct tarn_problem problem;
    uint64_t *offset, bound;
} fixture;

enum { GAPS_SEED = 1 /* a bound with gaps in it */, ANTICHAIN_STREAMS = 4 };

static void fixture_init(void)
{
    assert_int_equal(tarn_problem_init(&fixture.problem, &fixture.region, graph, 1, NULL), TARN_OK);
    assert_int_equal(tarn_conflicts_init_rows(&fixture.problem.conflicts, &fixture.region),
                     TARN_OK);
    fixture.offset =
        calloc((size_t)fixture.problem.conflicts.reuse.count + 1, sizeof *fixture.offset);
}

static void fixture_finish(void)
{
    free(fixture.offset);
    tarn_region_finish(&fixture.region);
}

/* Whatever happened, there is a safe plan. */
static enum tarn_status end_of(enum tarn_status status, struct tarn_error *error)
{
    check_offsets(&fixture.problem, fixture.offset);
    if (status == TARN_SYSTEM) snprintf(error->text, sizeof error->text, "out of memory");
    return status;
}

static enum tarn_status walk(struct tarn_error *error)
{
    struct tarn_improve_report report;
    const struct tarn_improve_options options = {.steps = 30, .threads = 1};
    uint64_t footprint = tarn_blocks_place_in_a_row(&fixture.problem.blocks, fixture.offset);
    return end_of(
        tarn_improve_place(&fixture.problem, &options, fixture.offset, &footprint, &report), error);
}

static enum tarn_status place_by_windows(struct tarn_error *error)
{
    const struct tarn_windows_options options = {
        .width = 4, .threads = 1, .far_windows = 1, .crossing_max = 2};
    uint64_t footprint = tarn_blocks_place_in_a_row(&fixture.problem.blocks, fixture.offset);
    return end_of(tarn_windows_place(&fixture.problem, &options, fixture.offset, &footprint),
                  error);
}

static enum tarn_status place_exactly(struct tarn_error *error)
{
    struct tarn_exact_report report;
    const struct tarn_exact_options options = {.nodes_max = 1000, .threads = 1};
    tarn_blocks_place_in_a_row(&fixture.problem.blocks, fixture.offset);
    enum tarn_status status = tarn_exact_place(
        &fixture.problem, NULL, fixture.problem.antichain.bound, &options, fixture.offset, &report);
    return end_of(status == TARN_USAGE ? TARN_OK : status, error); /* too many: nothing is done */
}

static struct tarn_graph *tiny_graph(uint64_t seed)
{
    struct tarn_graph *made = NULL;
    if (seed > 0)
        return random_graph(&(struct random_graph_options){
            .seed = seed, .ops = (uint32_t)(1 + seed % 4), .streams = 1});
    assert_int_equal(tarn_builder_finish(tarn_builder_create("empty"), &made, NULL), TARN_OK);
    return made;
}

/* The linker's allocations (failing_calls.h) give NULL for no bytes. */
static void graphs_without_storages_need_no_memory_for_them(void **state)
{
    const act_in_memory acts[] = {
        plan_in_one_thread, plan_one_method, plan_by_tree, plan_by_skyline,
        find_pairs,         simulate,        walk,         place_exactly,
        place_by_windows};
    struct tarn_graph *small = graph;
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        graph = tiny_graph(seed);
        fixture_init();
        for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
            struct tarn_error error = {0};
            if (acts[i](&error) != TARN_OK) fail_msg("act %zu: %s", i, error.text);
        }
        fixture_finish();
        tarn_graph_destroy(graph);
    }
    graph = small;
}

/* Not a weaker bound than with memory. */
static enum tarn_status raise_bound(struct tarn_error *error)
{
    const struct tarn_reserve reserve = tarn_problem_reserve(&fixture.problem, 1);
    struct tarn_gap_bound bound;
    struct tarn_region region = {0};
    enum tarn_status status = tarn_gap_bound_init(&bound, &region, &fixture.problem.antichain,
                                                  &reserve, TARN_GAP_EFFORT_LOW);
    tarn_region_finish(&region);
    if (status == TARN_SYSTEM) {
        snprintf(error->text, sizeof error->text, "out of memory");
        return status;
    }
    if (fixture.bound == 0) fixture.bound = bound.bound;
    assert_int_equal(bound.bound, fixture.bound);
    return status;
}

static void a_bound_is_whole_or_refused_whichever_allocation_fails(void **state)
{
    struct tarn_graph *small = graph;
    (void)state;
    graph = random_graph(&(struct random_graph_options){
        .seed = GAPS_SEED, .ops = 40, .streams = 2, .group_share = 60});
    fixture_init();
    fail_each_allocation(raise_bound, 2);
    assert_true(fixture.bound > fixture.problem.antichain.bound); /* else no gap was kept */
    fixture_finish();
    tarn_graph_destroy(graph);
    graph = small;
}

static enum tarn_status find_antichain_within(uint64_t work, struct tarn_error *error)
{
    struct tarn_antichain antichain;
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status =
        tarn_antichain_init_within(&antichain, &region, &fixture.problem.conflicts.reuse, graph,
                                   fixture.problem.blocks.reserved, work);
    if (status == TARN_OK) assert_true(antichain.bound <= fixture.problem.antichain.bound);
    if (status == TARN_OK && work == UINT64_MAX)
        assert_int_equal(antichain.bound, fixture.problem.antichain.bound);
    tarn_region_finish(&region);
    if (status == TARN_SYSTEM) snprintf(error->text, sizeof error->text, "out of memory");
    return status;
}

static enum tarn_status find_antichain(struct tarn_error *error)
{
    return find_antichain_within(UINT64_MAX, error);
}

/* After so little work a cut of list order is looked at. */
static enum tarn_status find_any_antichain(struct tarn_error *error)
{
    return find_antichain_within(1, error);
}

/* The array of transfers is full: the first that the search gives makes it longer. */
static enum tarn_status augment_full_flow(struct tarn_error *error)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_flow flow;
    const uint64_t *reserved = fixture.problem.blocks.reserved;
    uint32_t threshold[ANTICHAIN_STREAMS];
    bool maximal = false;
    bool ok = tarn_flow_init(&flow, &region, &fixture.problem.conflicts.reuse, graph, reserved) &&
              tarn_flow_greedy(&flow);
    uint32_t given = flow.transfers_count;
    flow.transfers_room = given;
    ok = ok && tarn_flow_augment(&flow, UINT64_MAX, threshold, &maximal);
    if (ok)
        assert_true(maximal && flow.transfers_count > given && tarn_flow_is_valid(&flow, reserved));
    tarn_region_finish(&region);
    if (!ok) snprintf(error->text, sizeof error->text, "out of memory");
    return ok ? TARN_OK : TARN_SYSTEM;
}

/* So many ops that each array is an allocation of its own. */
static void an_antichain_is_the_heaviest_or_refused_whichever_allocation_fails(void **state)
{
    struct tarn_graph *small = graph;
    (void)state;
    graph = random_graph(&(struct random_graph_options){.seed = 4,
                                                        .ops = 800,
                                                        .streams = ANTICHAIN_STREAMS,
                                                        .control_share = 20,
                                                        .dead_share = 20});
    fixture_init();
    fail_each_allocation(find_antichain, 4);
    fail_each_allocation(find_any_antichain, 4);
    fail_each_allocation(augment_full_flow, 4);
    fixture_finish();
    tarn_graph_destroy(graph);
    graph = small;
}

static void searching_keeps_a_safe_plan_whichever_allocation_fails(void **state)
{
    struct tarn_graph *small = graph;
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        graph = random_graph(&(struct random_graph_options){.seed = seed,
                                                            .ops = 40,
                                                            .streams = 3,
                                                            .reach = 8,
                                                            .workspace_share = 20,
                                                            .group_share = seed == 0 ? 0 : 30});
        fixture_init();
        fail_single_allocations(walk, 8);
        fail_single_allocations(place_by_windows, 8);
        fixture_finish();
        tarn_graph_destroy(graph);
    }
    graph = small;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planning_survives_every_failing_allocation),
        cmocka_unit_test(memory_that_runs_out_in_any_thread_is_reported),
        cmocka_unit_test(streams_and_waits_survive_every_failing_allocation),
        cmocka_unit_test(pairs_survive_every_failing_allocation),
        cmocka_unit_test(graphs_without_storages_need_no_memory_for_them),
        cmocka_unit_test(a_bound_is_whole_or_refused_whichever_allocation_fails),
        cmocka_unit_test(an_antichain_is_the_heaviest_or_refused_whichever_allocation_fails),
        cmocka_unit_test(searching_keeps_a_safe_plan_whichever_allocation_fails),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
