/* Better placement: the greedy placement against a naive one that looks at all pairs, replays
 * against placements from the start, and every result against a brute-force check of what must
 * hold, against the bound, and on tiny graphs against the best of all placements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/rough_graph.h"
#include "planner/place/improve.h"
#include "planner/place/lowest/limits.h"
#include "planner/place/lowest/lowest.h"
#include "support/check_offsets.h"
#include "support/place_fixture.h"
#include "support/random_graph.h"

enum { PLACEMENTS = DRAWS(3000), OPS_MAX = 40, RESULTS = DRAWS(400), TINY = 1500, TINY_BLOCKS = 6 };

/* ---- Problems ---- */

static uint64_t check_plan(struct fixture *fixture, const uint64_t *offset)
{
    return check_offsets(&fixture->problem, offset);
}

static void draw_priorities(const struct tarn_lowest *lowest, struct random_source *source,
                            int32_t *priority, int32_t *floor)
{
    uint32_t spread = random_percent(source, 50) ? 4 : TARN_PRIORITY_MAX; /* few: many ties */
    for (uint32_t i = 0; i < lowest->count; i++) {
        priority[i] = (int32_t)random_below(source, spread);
        floor[i] = random_percent(source, 15) ? (int32_t)random_below(source, 3000) : 0;
    }
}

/* ---- The greedy placement ---- */

/* Members of the block at a place, as half-open intervals from its start. */
static int32_t member_begin(const struct tarn_lowest *lowest, uint32_t place, uint32_t i)
{
    if (place < lowest->lone.count) return 0;
    return lowest->within[lowest->member[lowest->group_begin[place - lowest->lone.count] + i]];
}

static int32_t member_end(const struct tarn_lowest *lowest, uint32_t place, uint32_t i)
{
    if (place < lowest->lone.count) return lowest->size[place];
    return lowest->member_end[lowest->member[lowest->group_begin[place - lowest->lone.count] + i]];
}

/* How high the block at `place` must at least lie so as not to meet the placed one that it meets at
 * `offset`; `offset` when it meets none. */
static int32_t clear_of(const struct tarn_lowest *lowest, uint32_t place, int32_t offset,
                        uint32_t other, int32_t other_offset)
{
    const struct tarn_block a = tarn_block_at(&lowest->problem->blocks, lowest->block[place]);
    const struct tarn_block b = tarn_block_at(&lowest->problem->blocks, lowest->block[other]);
    for (uint32_t i = 0; i < a.members_count; i++) {
        for (uint32_t k = 0; k < b.members_count; k++) {
            int32_t begin = member_begin(lowest, place, i), end = member_end(lowest, place, i);
            int32_t other_begin = other_offset + member_begin(lowest, other, k);
            int32_t other_end = other_offset + member_end(lowest, other, k);
            if (offset + begin < other_end && other_begin < offset + end &&
                !tarn_reuse_is_safe(&lowest->problem->conflicts.reuse, a.members[i], b.members[k]))
                return other_end - begin;
        }
    }
    return offset;
}

/* The least aligned offset from the floor on at which the block meets no placed one. */
static int32_t least_offset(const struct tarn_lowest *lowest, uint32_t place, int32_t floor,
                            const int32_t *offset)
{
    int32_t alignment = lowest->alignment[place], least = floor;
    for (bool moved = true; moved;) {
        moved = false;
        least = (least + alignment - 1) / alignment * alignment;
        for (uint32_t other = 0; other < lowest->count; other++) {
            if (offset[other] < 0) continue;
            int32_t cleared = clear_of(lowest, place, least, other, offset[other]);
            moved = moved || cleared > least;
            least = cleared;
        }
    }
    return least;
}

static void place_naively(const struct tarn_lowest *lowest, const int32_t *priority,
                          const int32_t *floor, int32_t *offset)
{
    for (uint32_t i = 0; i < lowest->count; i++) offset[i] = -1;
    for (uint32_t done = 0; done < lowest->count; done++) {
        uint32_t chosen = TARN_NONE;
        int32_t lowest_offset = INT32_MAX;
        for (uint32_t i = 0; i < lowest->count; i++) {
            if (offset[i] >= 0) continue;
            int32_t own = least_offset(lowest, i, floor[i], offset);
            if (own < lowest_offset || (own == lowest_offset && priority[i] > priority[chosen])) {
                lowest_offset = own;
                chosen = i;
            }
        }
        offset[chosen] = lowest_offset;
    }
}

static int32_t *numbers(uint32_t count)
{
    int32_t *made = calloc((size_t)count + 1, sizeof *made);
    assert_non_null(made);
    return made;
}

static void compare_with_naive(struct fixture *fixture, uint64_t seed)
{
    struct random_source source = {seed};
    struct tarn_lowest lowest;
    struct tarn_greedy greedy;
    struct tarn_objective objective = {500, 3, 2};
    assert_int_equal(tarn_lowest_init(&lowest, &fixture->region, &fixture->problem, 1 << 24),
                     TARN_OK);
    assert_int_equal(tarn_greedy_init(&greedy, &fixture->region, &lowest), TARN_OK);
    int32_t *priority = numbers(lowest.count), *floor = numbers(lowest.count);
    int32_t *offset = numbers(lowest.count), top = 0;
    int64_t above = 0;
    draw_priorities(&lowest, &source, priority, floor);
    place_naively(&lowest, priority, floor, offset);
    tarn_greedy_start(&greedy, floor);
    assert_true(
        tarn_greedy_advance(&greedy, priority, floor, objective, TARN_MISS_MAX, lowest.count));
    assert_memory_equal(offset, greedy.offset, lowest.count * sizeof *offset);
    for (uint32_t i = 0; i < lowest.count; i++) {
        int32_t end = offset[i] + lowest.size[i], over = end > 500 ? end - 500 : 0;
        above += over < lowest.size[i] ? over : lowest.size[i];
        if (end > top) top = end;
    }
    assert_int_equal(greedy.top, top);
    assert_int_equal(greedy.miss, 2 * above + 3 * (int64_t)(top > 500 ? top - 500 : 0));
    tarn_greedy_start(&greedy, floor);
    bool stopped = !tarn_greedy_advance(&greedy, priority, floor, objective, above, lowest.count);
    assert_true(tarn_limits_is_valid(&greedy));
    assert_true(stopped == (2 * above + 3 * (int64_t)(top > 500 ? top - 500 : 0) > above));
    free(priority);
    free(floor);
    free(offset);
}

static void greedy_places_as_a_naive_one_that_looks_at_all_pairs(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PLACEMENTS; seed++) {
        struct fixture fixture;
        set_up_random(&fixture, seed, OPS_MAX);
        compare_with_naive(&fixture, seed);
        tear_down(&fixture);
    }
    for (uint64_t seed = 0; seed < 20; seed++) { /* more than one run of 64 places */
        struct fixture fixture;
        set_up_random(&fixture, seed, 300);
        compare_with_naive(&fixture, seed);
        tear_down(&fixture);
    }
    for (uint64_t seed = 0; seed < 4;
         seed++) { /* more than one run of members; the first ones end early */
        struct fixture fixture;
        const struct random_graph_options options = {.seed = seed,
                                                     .ops = 300,
                                                     .streams = 1 + (uint32_t)(seed % 2),
                                                     .reach = 6,
                                                     .group_share = 60};
        set_up(&fixture, random_graph(&options), 8);
        compare_with_naive(&fixture, seed);
        tear_down(&fixture);
    }
}

/* Work of one placement, counted, for each storage of a graph with many long groups. */
static uint64_t work_a_storage(uint32_t storages)
{
    struct fixture fixture;
    struct tarn_lowest lowest;
    struct tarn_greedy greedy;
    set_up(&fixture, rough_graph(&(struct rough_graph_options){ROUGH_GROUPS, storages, 3, 1}), 512);
    assert_int_equal(
        tarn_lowest_init(&lowest, &fixture.region, &fixture.problem, UINT64_C(1) << 40), TARN_OK);
    assert_int_equal(tarn_greedy_init(&greedy, &fixture.region, &lowest), TARN_OK);
    assert_int_equal(tarn_greedy_narrow(&greedy, &fixture.region), TARN_OK);
    int32_t *priority = numbers(lowest.count);
    assert_true(lowest.groups_count > storages / 2000);
    tarn_greedy_start(&greedy, NULL);
    assert_true(tarn_greedy_advance(&greedy, priority, NULL, (struct tarn_objective){0, 1, 0},
                                    TARN_MISS_MAX, lowest.count));
    assert_int_equal(greedy.done, lowest.count);
    free(priority);
    tear_down(&fixture);
    return greedy.work / storages;
}

static void a_lone_storage_passes_over_groups_that_it_does_not_meet(void **state)
{
    (void)state;
    uint64_t few = work_a_storage(4000), many = work_a_storage(16000);
    print_message("# work for each storage: %llu; of four times as many %llu\n",
                  (unsigned long long)few, (unsigned long long)many);
    assert_true(many < 3 * few);
}

/* Units far coarser than the sizes: borders round outward. */
static void coarse_units_keep_plans_safe(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < RESULTS; seed++) {
        struct random_source source = {seed};
        struct fixture fixture;
        struct tarn_lowest lowest;
        struct tarn_greedy greedy;
        set_up_random(&fixture, seed, OPS_MAX);
        assert_int_equal(
            tarn_lowest_init(&lowest, &fixture.region, &fixture.problem, UINT64_C(1) << 40),
            TARN_OK);
        assert_true(lowest.unit_shift >= 10);
        assert_int_equal(tarn_greedy_init(&greedy, &fixture.region, &lowest), TARN_OK);
        int32_t *priority = numbers(lowest.count), *floor = numbers(lowest.count);
        uint64_t *offset =
            calloc((size_t)fixture.problem.conflicts.reuse.count + 1, sizeof *offset);
        draw_priorities(&lowest, &source, priority, floor);
        tarn_greedy_start(&greedy, NULL);
        assert_true(tarn_greedy_advance(&greedy, priority, NULL, (struct tarn_objective){0, 1, 0},
                                        TARN_MISS_MAX, lowest.count));
        tarn_lowest_offsets(&lowest, greedy.offset, offset);
        assert_int_equal(check_plan(&fixture, offset),
                         tarn_lowest_footprint(&lowest, greedy.offset));
        free(priority);
        free(floor);
        free(offset);
        tear_down(&fixture);
    }
}

/* A few random changes to priority orders and floors, as a local search makes them. */
static uint32_t draw_changes(const struct tarn_lowest *lowest, struct random_source *source,
                             int32_t *priority, int32_t *floor, struct tarn_replay_change *changes)
{
    uint32_t count = random_below(source, 4);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = random_below(source, lowest->count);
        changes[i] = (struct tarn_replay_change){place, priority[place], floor[place]};
        if (random_percent(source, 60))
            priority[place] =
                (int32_t)random_below(source, random_percent(source, 50) ? 4 : 1 << 20);
        else
            floor[place] = random_percent(source, 50) ? 0 : (int32_t)random_below(source, 3000);
    }
    return count;
}

static void take_back(int32_t *priority, int32_t *floor, const struct tarn_replay_change *changes,
                      uint32_t count)
{
    while (count-- > 0) {
        priority[changes[count].place] = changes[count].priority;
        floor[changes[count].place] = changes[count].floor;
    }
}

/* Returns how many tries were taken back. */
static uint32_t compare_replays(struct fixture *fixture, uint64_t seed)
{
    struct random_source source = {seed};
    struct tarn_lowest lowest;
    struct tarn_greedy greedy;
    struct tarn_replay replay;
    struct tarn_replay_change changes[4];
    struct tarn_objective objective = {500, 1, 1};
    uint32_t refused = 0;
    assert_int_equal(tarn_lowest_init(&lowest, &fixture->region, &fixture->problem, 1 << 24),
                     TARN_OK);
    assert_int_equal(tarn_greedy_init(&greedy, &fixture->region, &lowest), TARN_OK);
    assert_int_equal(tarn_replay_init(&replay, &fixture->region, &lowest), TARN_OK);
    int32_t *priority = numbers(lowest.count), *floor = numbers(lowest.count);
    draw_priorities(&lowest, &source, priority, floor);
    assert_true(tarn_replay_start(&replay, priority, floor, objective));
    for (uint32_t i = 0; i < 30 && lowest.count > 0; i++) {
        uint32_t count = draw_changes(&lowest, &source, priority, floor, changes);
        int64_t allowed = replay.miss + random_below(&source, 200);
        bool kept = tarn_replay_try(&replay, priority, floor, changes, count, objective, allowed);
        tarn_greedy_start(&greedy, floor);
        assert_true(
            tarn_greedy_advance(&greedy, priority, floor, objective, TARN_MISS_MAX, lowest.count));
        assert_true(kept == (greedy.miss <= allowed));
        refused += !kept;
        if (!kept) {
            take_back(priority, floor, changes, count);
            continue;
        }
        assert_int_equal(replay.miss, greedy.miss);
        assert_int_equal(replay.top, greedy.top);
        assert_memory_equal(replay.offset, greedy.offset, lowest.count * sizeof *greedy.offset);
    }
    free(priority);
    free(floor);
    return refused;
}

static void replays_end_as_placements_from_the_start(void **state)
{
    (void)state;
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < PLACEMENTS / 3; seed++) {
        struct fixture fixture;
        set_up_random(&fixture, seed, seed % 10 == 0 ? 200 : OPS_MAX);
        refused += compare_replays(&fixture, seed);
        tear_down(&fixture);
    }
    assert_true(refused > PLACEMENTS / 3);
}

/* ---- Results ---- */

static uint64_t improve(struct fixture *fixture, const struct tarn_improve_options *given,
                        uint64_t *offset, uint64_t footprint)
{
    struct tarn_improve_options options = *given;
    struct tarn_improve_report report;
    options.bound = fixture->problem.antichain.bound;
    assert_int_equal(tarn_improve_place(&fixture->problem, &options, offset, &footprint, &report),
                     TARN_OK);
    return footprint;
}

/* From one block behind the other. */
static uint64_t improve_row(struct fixture *fixture, const struct tarn_improve_options *options,
                            uint64_t *offset)
{
    return improve(fixture, options, offset,
                   tarn_blocks_place_in_a_row(&fixture->problem.blocks, offset));
}

static uint64_t *bytes(struct fixture *fixture)
{
    uint64_t *made = calloc((size_t)fixture->problem.conflicts.reuse.count + 1, sizeof *made);
    assert_non_null(made);
    return made;
}

static void results_are_safe_and_between_the_bound_and_what_came_in(void **state)
{
    (void)state;
    uint32_t met = 0;
    for (uint64_t seed = 0; seed < RESULTS; seed++) {
        struct fixture fixture;
        set_up_random(&fixture, seed, seed % 20 == 0 ? 300 : OPS_MAX);
        uint64_t *offset = bytes(&fixture), row;
        uint64_t bound =
            tarn_improve_round_bound(&fixture.problem.blocks, fixture.problem.antichain.bound);
        row = tarn_blocks_place_in_a_row(&fixture.problem.blocks, offset);
        uint64_t footprint = improve(
            &fixture, &(struct tarn_improve_options){.steps = 30, .threads = 2}, offset, row);
        assert_int_equal(check_plan(&fixture, offset), footprint);
        assert_true(footprint >= bound && bound >= fixture.problem.antichain.bound &&
                    footprint <= row);
        met += footprint == bound;
        /* A better plan than it finds again stays. */
        uint64_t again =
            improve(&fixture, &(struct tarn_improve_options){.threads = 1}, offset, footprint);
        assert_true(again <= footprint);
        assert_int_equal(check_plan(&fixture, offset), again);
        free(offset);
        tear_down(&fixture);
    }
    print_message("# at the antichain's weight: %u of %d\n", met, RESULTS);
    assert_true(met > RESULTS / 2);
}

static void results_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < RESULTS / 8; seed++) {
        struct fixture fixture;
        struct random_graph_options knobs = random_graph_knobs(seed, 300);
        knobs.ops = 150;
        set_up(&fixture, random_graph(&knobs), 8);
        uint64_t *offset = bytes(&fixture), *other = bytes(&fixture);
        struct tarn_improve_options options = {.steps = 60, .threads = 1, .seed = seed};
        uint64_t footprint = improve_row(&fixture, &options, offset);
        for (options.threads = 2; options.threads <= 8; options.threads *= 2) {
            assert_int_equal(improve_row(&fixture, &options, other), footprint);
            assert_memory_equal(offset, other,
                                fixture.problem.conflicts.reuse.count * sizeof *offset);
        }
        free(offset);
        free(other);
        tear_down(&fixture);
    }
}

static void a_plan_that_fits_the_capacity_ends_the_search(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < RESULTS; seed++) {
        struct fixture fixture;
        set_up_random(&fixture, seed, OPS_MAX);
        uint64_t *offset = bytes(&fixture), row, footprint;
        row = tarn_blocks_place_in_a_row(&fixture.problem.blocks, offset);
        struct tarn_improve_options options = {.steps = 10, .threads = 1, .capacity = row};
        assert_int_equal(improve(&fixture, &options, offset, row), row); /* nothing to do */
        options.capacity = options.steps =
            0; /* priority orders lead to the same plans for every aim */
        footprint = improve(&fixture, &options, offset, row);
        options.steps = 10;
        options.capacity = footprint + (row - footprint) / 2;
        assert_true(improve_row(&fixture, &options, offset) <= options.capacity);
        check_plan(&fixture, offset);
        free(offset);
        tear_down(&fixture);
    }
}

static void a_search_that_is_stopped_gives_the_plan_that_came_in(void **state)
{
    (void)state;
    atomic_bool stop;
    atomic_init(&stop, true);
    struct fixture fixture;
    set_up_random(&fixture, 7, 200);
    uint64_t *offset = bytes(&fixture), *row = bytes(&fixture);
    uint64_t footprint = tarn_blocks_place_in_a_row(&fixture.problem.blocks, row);
    struct tarn_improve_options options = {.steps = UINT64_MAX, .deadline = {.stop = &stop}};
    assert_int_equal(improve_row(&fixture, &options, offset), footprint);
    assert_memory_equal(offset, row, fixture.problem.conflicts.reuse.count * sizeof *offset);
    free(offset);
    free(row);
    tear_down(&fixture);
}

static void empty_graphs_have_the_empty_plan(void **state)
{
    (void)state;
    struct fixture fixture;
    struct tarn_builder *builder = tarn_builder_create("empty");
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    tarn_builder_stream(builder, "s");
    assert_int_equal(tarn_builder_finish(builder, &graph, &error), TARN_OK);
    set_up(&fixture, graph, 512);
    uint64_t offset = 0;
    assert_int_equal(improve(&fixture, &(struct tarn_improve_options){.steps = 5}, &offset, 0), 0);
    assert_int_equal(
        improve(&fixture, &(struct tarn_improve_options){.steps = 5}, &offset, UINT64_MAX), 0);
    tear_down(&fixture);
}

/* ---- The best of all placements ---- */

/* Some order of the blocks, each put as low as it can, gives the least footprint: take a best plan,
 * its blocks by offset, and let each sink. */
static void try_orders(const struct tarn_lowest *lowest, int32_t *offset, int32_t top,
                       int32_t *least)
{
    bool complete = true;
    for (uint32_t i = 0; i < lowest->count; i++) {
        if (offset[i] >= 0) continue;
        complete = false;
        int32_t own = least_offset(lowest, i, 0, offset), end = own + lowest->size[i];
        if (end >= *least) continue;
        offset[i] = own;
        try_orders(lowest, offset, end > top ? end : top, least);
        offset[i] = -1;
    }
    if (complete && top < *least) *least = top;
}

static void tiny_graphs_get_their_smallest_plan(void **state)
{
    (void)state;
    uint32_t tried = 0, best = 0, at_bound = 0;
    for (uint64_t seed = 0; seed < TINY; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 8);
        struct fixture fixture;
        struct tarn_lowest lowest;
        knobs.size_max = 3;
        set_up(&fixture, random_graph(&knobs), 1);
        assert_int_equal(tarn_lowest_init(&lowest, &fixture.region, &fixture.problem, 1 << 20),
                         TARN_OK);
        if (lowest.count <= TINY_BLOCKS && lowest.count > 1) {
            int32_t offset_of[TINY_BLOCKS], least = INT32_MAX;
            uint64_t *offset = bytes(&fixture);
            for (uint32_t i = 0; i < lowest.count; i++) offset_of[i] = -1;
            try_orders(&lowest, offset_of, 0, &least);
            uint64_t found = improve_row(
                &fixture, &(struct tarn_improve_options){.steps = 40, .threads = 1}, offset);
            assert_true(found >= (uint64_t)least << lowest.unit_shift);
            assert_true((uint64_t)least << lowest.unit_shift >= fixture.problem.antichain.bound);
            tried++;
            best += found == (uint64_t)least << lowest.unit_shift;
            at_bound += found == fixture.problem.antichain.bound;
            free(offset);
        }
        tear_down(&fixture);
    }
    print_message("# smallest: %u of %u, at the antichain's weight %u\n", best, tried, at_bound);
    assert_true(tried > TINY / 4 && best >= tried - tried / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_places_as_a_naive_one_that_looks_at_all_pairs),
        cmocka_unit_test(a_lone_storage_passes_over_groups_that_it_does_not_meet),
        cmocka_unit_test(coarse_units_keep_plans_safe),
        cmocka_unit_test(replays_end_as_placements_from_the_start),
        cmocka_unit_test(results_are_safe_and_between_the_bound_and_what_came_in),
        cmocka_unit_test(results_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(a_plan_that_fits_the_capacity_ends_the_search),
        cmocka_unit_test(a_search_that_is_stopped_gives_the_plan_that_came_in),
        cmocka_unit_test(empty_graphs_have_the_empty_plan),
        cmocka_unit_test(tiny_graphs_get_their_smallest_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
