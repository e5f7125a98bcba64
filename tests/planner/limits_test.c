/* Limits in a tree: graphs of several levels, with groups, placed with and without forgetting what
 * is placed, on any number of threads, against all pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/cut_graph.h"
#include "bench/dnn_graph.h"
#include "bench/rough_graph.h"
#include "planner/place/improve.h"
#include "planner/place/lowest/greedy.h"
#include "planner/place/lowest/kernels.h"
#include "planner/place/lowest/limits.h"
#include "planner/place/lowest/lowest.h"
#include "support/check_offsets.h"
#include "support/place_fixture.h"
#include "support/random_graph.h"

/* The graphs that all tests run on. */
static struct tarn_graph *graph_of(uint32_t i)
{
    switch (i) {
    case 0: return dnn_graph(&(struct dnn_graph_options){3000, 6});
    case 1: return dnn_graph(&(struct dnn_graph_options){20000, 3});
    case 2: return cut_graph(&(struct cut_graph_options){CUT_CHAIN, 4000, 1});
    case 3: return cut_graph(&(struct cut_graph_options){CUT_CHAIN, 3000, 55});
    case 4: return cut_graph(&(struct cut_graph_options){CUT_UNCOUPLED, 4000, 5});
    case 5: return rough_graph(&(struct rough_graph_options){ROUGH_UNSAFE, 2500, 1, 1});
    }
    return NULL;
}
enum { GRAPHS = DRAWS(6), PAIRS_MAX = 5000, STOPS = 40, LOOPS = 4000 };

static void fill_priorities(int32_t *priority, uint32_t count, uint32_t seed)
{
    for (uint32_t i = 0; i < count; i++)
        priority[i] =
            (int32_t)(((uint64_t)(i + 1) * (seed * 2 + 1) * UINT64_C(0x9e3779b97f4a7c15)) >> 44);
}

static void place(struct tarn_greedy *greedy, const int32_t *priority)
{
    struct tarn_objective objective = {0, 1, 0};
    tarn_greedy_start(greedy, NULL);
    assert_true(tarn_greedy_advance(greedy, priority, NULL, objective, TARN_MISS_MAX,
                                    greedy->lowest->count));
    assert_true(tarn_limits_is_valid(greedy));
}

static void init_greedies(struct fixture *fixture, struct tarn_lowest *lowest,
                          struct tarn_greedy *plain, struct tarn_greedy *narrow)
{
    struct tarn_region *region = &fixture->region;
    assert_int_equal(tarn_lowest_init(lowest, region, &fixture->problem, UINT64_MAX), TARN_OK);
    assert_int_equal(tarn_greedy_init(plain, region, lowest), TARN_OK);
    assert_int_equal(tarn_greedy_init(narrow, region, lowest), TARN_OK);
    assert_int_equal(tarn_greedy_narrow(narrow, region), TARN_OK);
}

static void forgetting_what_is_placed_changes_no_offset(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < GRAPHS; i++) {
        struct fixture fixture;
        struct tarn_lowest lowest;
        struct tarn_greedy plain, narrow;
        set_up(&fixture, graph_of(i), 512);
        init_greedies(&fixture, &lowest, &plain, &narrow);
        int32_t *priority = malloc((lowest.count + 1) * sizeof *priority);
        for (uint32_t seed = 0; seed < 2; seed++) {
            fill_priorities(priority, lowest.count, seed);
            place(&plain, priority);
            place(&narrow, priority);
            assert_memory_equal(plain.offset, narrow.offset, lowest.count * sizeof *plain.offset);
            assert_int_equal(plain.top, narrow.top);
        }
        free(priority);
        tear_down(&fixture);
    }
}

/* ---- The inner loops, against plain ones ---- */

/* The largest code of the places with this limit, or of all that are not placed with `at` below 0;
 * -1: none. */
static int32_t first_of(const int32_t *limit, const int32_t *priority, uint32_t count, int32_t at)
{
    int32_t best = -1;
    for (uint32_t i = 0; i < count; i++) {
        int32_t code = priority[i] * TARN_LANE_RUN + (int32_t)(TARN_LANE_RUN - 1 - i);
        bool counts = at < 0 ? limit[i] != INT32_MAX : limit[i] == at;
        if (counts && code > best) best = code;
    }
    return best;
}

static void inner_loops_find_what_plain_ones_do(void **state)
{
    const struct tarn_lane_kernels *kernels = tarn_kernels_choose();
    struct random_source source = {1};
    (void)state;
    for (uint32_t draw = 0; draw < LOOPS; draw++) {
        uint32_t count = 1 + random_below(&source, TARN_LANE_RUN), share = draw % 4 * 33 + 1;
        int32_t limit[TARN_LANE_RUN], priority[TARN_LANE_RUN], row[TARN_LANE_RUN];
        int32_t least = INT32_MAX, highest = 0, lowest = INT32_MAX, high, low;
        for (uint32_t i = 0; i < count; i++) {
            limit[i] =
                random_percent(&source, share) ? INT32_MAX : (int32_t)random_below(&source, 3);
            priority[i] =
                (int32_t)random_below(&source, random_percent(&source, 50) ? 3 : TARN_PRIORITY_MAX);
            row[i] = (int32_t)random_below(&source, 1000);
            if (limit[i] < least) least = limit[i];
            if (limit[i] < INT32_MAX && row[i] > highest) highest = row[i];
            if (limit[i] < INT32_MAX && row[i] < lowest) lowest = row[i];
        }
        kernels->extremes(row, limit, count, &high, &low);
        assert_true(high == highest && low == lowest);
        assert_int_equal(kernels->least(limit, count), least);
        assert_int_equal(kernels->foremost(limit, priority, count, 1),
                         first_of(limit, priority, count, 1));
        assert_int_equal(kernels->champion(limit, priority, count),
                         first_of(limit, priority, count, -1));
    }
}

/* ---- Decoders ---- */

/* Has no node of the tree a number that is still to be handed down to its places? */
static bool are_handed_down(const struct tarn_greedy *greedy)
{
    for (uint32_t level = 0; level < greedy->extremes->levels_count; level++)
        for (uint32_t node = 0; node < greedy->levels[level].count; node++)
            if (greedy->levels[level].pending[node] > 0) return false;
    return true;
}

/* A placement that is stopped by its miss leaves numbers pending; one that is stopped by its count
 * of blocks has handed them down. */
static void limits_are_valid_wherever_a_place_stops(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < GRAPHS; i++) {
        struct fixture fixture;
        struct tarn_lowest lowest;
        struct tarn_greedy plain, narrow;
        struct tarn_objective objective = {0, 1, 0};
        set_up(&fixture, graph_of(i), 512);
        init_greedies(&fixture, &lowest, &plain, &narrow);
        int32_t *priority = malloc((lowest.count + 1) * sizeof *priority);
        fill_priorities(priority, lowest.count, i);
        place(&plain, priority);
        int64_t miss = plain.miss;
        struct tarn_greedy *greedies[] = {&plain, &narrow};
        for (uint32_t d = 0; d < 2; d++) {
            tarn_greedy_start(greedies[d], NULL);
            for (uint32_t stop = 1; stop <= STOPS; stop++) { /* at half of the blocks, last */
                assert_true(tarn_greedy_advance(greedies[d], priority, NULL, objective,
                                                TARN_MISS_MAX, lowest.count / (2 * STOPS) * stop));
                assert_true(tarn_limits_is_valid(greedies[d]));
                assert_true(are_handed_down(greedies[d]));
            }
            assert_false(tarn_greedy_advance(greedies[d], priority, NULL, objective, miss - 1,
                                             lowest.count));
            assert_true(tarn_limits_is_valid(greedies[d]));
        }
        plain.levels[0].least[0] = -1;
        assert_false(tarn_limits_is_valid(&plain));
        free(priority);
        tear_down(&fixture);
    }
}

static uint64_t improve(const struct fixture *fixture, uint32_t threads, uint64_t *offset)
{
    struct tarn_improve_options options = {.bound = fixture->problem.antichain.bound,
                                           .threads = threads};
    struct tarn_improve_report report;
    uint64_t footprint = tarn_blocks_place_in_a_row(&fixture->problem.blocks, offset);
    assert_int_equal(tarn_improve_place(&fixture->problem, &options, offset, &footprint, &report),
                     TARN_OK);
    return footprint;
}

static void large_graphs_are_safe_and_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < GRAPHS; i++) {
        struct fixture fixture;
        set_up(&fixture, graph_of(i), 512);
        size_t size = fixture.problem.conflicts.reuse.count * sizeof(uint64_t);
        uint64_t *one = malloc(size), *other = malloc(size);
        uint64_t footprint = improve(&fixture, 1, one);
        assert_true(footprint >= fixture.problem.antichain.bound);
        for (uint32_t threads = 2; threads <= 8; threads *= 2) {
            assert_int_equal(improve(&fixture, threads, other), footprint);
            assert_memory_equal(one, other, size);
        }
        if (fixture.problem.conflicts.reuse.count <= PAIRS_MAX) check_pairs(&fixture.problem, one);
        free(one);
        free(other);
        tear_down(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inner_loops_find_what_plain_ones_do),
        cmocka_unit_test(forgetting_what_is_placed_changes_no_offset),
        cmocka_unit_test(limits_are_valid_wherever_a_place_stops),
        cmocka_unit_test(large_graphs_are_safe_and_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
