/* Compaction and coarse sizes: plans stay safe and never get higher, on random graphs with groups,
 * slices and alignments; orders alone become plans; coarse problems are lower than fine ones; and
 * schedules of pipelines meet bounds that nothing else brings them to. TARN_DRAWS=N: N random
 * graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/pipeline_graph.h"
#include "bench/rough_graph.h"
#include "planner/place/coarse.h"
#include "planner/place/compact.h"
#include "streams/base/random.h"
#include "support/check_offsets.h"
#include "support/place_fixture.h"
#include "support/random_graph.h"

enum { GRAPHS = DRAWS(2000), OPS_MAX = 60 };

static uint64_t *room(const struct fixture *of)
{
    uint64_t *offset = calloc((size_t)of->problem.blocks.storages_count + 1, sizeof *offset);
    assert_non_null(offset);
    return offset;
}

static void compact(const struct fixture *of, uint64_t work_max, uint64_t *offset,
                    uint64_t *footprint)
{
    const struct tarn_compact_options options = {.work_max = work_max};
    uint64_t work;
    assert_int_equal(tarn_compact_place(&of->problem, &options, offset, footprint, &work), TARN_OK);
    assert_true(work_max == 0 || work < work_max + tarn_compact_estimate(&of->problem) + 1);
}

static void plans_stay_safe_and_get_no_higher(void **state)
{
    uint32_t lower = 0;
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct fixture of;
        set_up_random(&of, seed, OPS_MAX);
        uint64_t *offset = room(&of);
        uint64_t row = tarn_blocks_place_in_a_row(&of.problem.blocks, offset), footprint = row;
        compact(&of, 0, offset, &footprint);
        assert_int_equal(check_offsets(&of.problem, offset), footprint);
        assert_true(footprint <= row && footprint >= of.problem.antichain.bound);
        lower += footprint < row;
        uint64_t again = footprint;
        compact(&of, 0, offset, &again);
        assert_int_equal(check_offsets(&of.problem, offset), again);
        assert_true(again <= footprint);
        free(offset);
        tear_down(&of);
    }
    assert_true(lower > GRAPHS / 4);
}

/* Any numbers as offsets: they are an order. */
static void an_order_becomes_a_plan(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct fixture of;
        set_up_random(&of, seed, OPS_MAX);
        const struct tarn_blocks *blocks = &of.problem.blocks;
        uint64_t *offset = room(&of), random = seed, footprint = UINT64_MAX;
        for (uint32_t b = 0; b < blocks->count; b++)
            tarn_block_put(blocks, tarn_block_at(blocks, b), tarn_random_below(&random, 1 << 20),
                           offset);
        compact(&of, 0, offset, &footprint);
        assert_int_equal(check_offsets(&of.problem, offset), footprint);
        free(offset);
        tear_down(&of);
    }
}

static void with_too_little_work_nothing_changes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS / 10; seed++) {
        struct fixture of;
        set_up_random(&of, seed, OPS_MAX);
        uint64_t *offset = room(&of), *before = room(&of), footprint;
        size_t size = of.problem.blocks.storages_count * sizeof *offset;
        uint64_t row = footprint = tarn_blocks_place_in_a_row(&of.problem.blocks, offset);
        memcpy(before, offset, size);
        compact(&of, 1, offset, &footprint);
        assert_int_equal(footprint, row);
        assert_memory_equal(offset, before, size);
        free(before);
        free(offset);
        tear_down(&of);
    }
}

/* ---- Coarse sizes ---- */

static bool make_coarse(const struct fixture *of, struct tarn_region *region,
                        struct tarn_coarse *coarse)
{
    bool is_worth;
    assert_int_equal(
        tarn_coarse_init(coarse, region, &of->problem, of->problem.antichain.bound, &is_worth),
        TARN_OK);
    return is_worth;
}

/* Sizes are rounded down, the bound hardly changes, and a row of the coarse storages becomes a plan
 * of all. */
static void check_coarse(const struct fixture *of, const struct tarn_coarse *coarse)
{
    const struct tarn_blocks *own = &coarse->part.problem.blocks;
    const struct tarn_compact_options options = {.work_max = 0};
    uint64_t *rough = calloc((size_t)own->storages_count + 1, sizeof *rough), *offset = room(of);
    uint64_t footprint, work, bound = of->problem.antichain.bound;
    assert_non_null(rough);
    assert_true(tarn_problem_is_valid(&coarse->part.problem));
    assert_true(coarse->bound <= bound && coarse->bound >= bound - bound / 1000);
    for (uint32_t i = 0; i < own->storages_count; i++) {
        uint64_t fine = of->problem.blocks.reserved[coarse->part.origin[i]];
        assert_true(own->reserved[i] > 0 && own->reserved[i] % coarse->grain == 0);
        assert_true(own->reserved[i] <= fine && fine - own->reserved[i] < coarse->grain);
    }
    tarn_blocks_place_in_a_row(own, rough);
    assert_int_equal(tarn_coarse_refine(coarse, rough, &options, offset, &footprint, &work),
                     TARN_OK);
    assert_int_equal(check_offsets(&of->problem, offset), footprint);
    free(offset);
    free(rough);
}

static void pipelines_have_coarse_sizes(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 36; n++) {
        struct pipeline_graph_options options = {(enum pipeline_schedule)(n % PIPELINE_SCHEDULES),
                                                 2 + n / 3 % 3, 2 + n / 9, 1 + n % 2};
        struct tarn_region region = {.chunks = NULL};
        struct tarn_coarse coarse;
        struct fixture of;
        set_up(&of, pipeline_graph(&options), 512);
        assert_true(make_coarse(&of, &region, &coarse));
        assert_int_equal(coarse.grain, 4 << 20);
        assert_true(coarse.part.problem.blocks.count < of.problem.blocks.count);
        check_coarse(&of, &coarse);
        tarn_region_finish(&region);
        tear_down(&of);
    }
}

/* Groups, sizes of any kind, and sizes that are all multiples of one have none. */
static void other_graphs_have_none(void **state)
{
    static const enum rough_kind kinds[] = {ROUGH_GROUPS, ROUGH_LOOSE, ROUGH_ALIGNED};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct tarn_region region = {.chunks = NULL};
        struct tarn_coarse coarse;
        struct fixture of;
        set_up(&of, rough_graph(&(struct rough_graph_options){kinds[k], 500, 3, 1}), 512);
        assert_false(make_coarse(&of, &region, &coarse));
        tarn_region_finish(&region);
        tear_down(&of);
    }
}

/* The first by bands that are joined, the second by coarse sizes too. Work is counted, not time. */
static void pipelines_meet_their_bounds(void **state)
{
    static const struct pipeline_graph_options list[] = {{PIPELINE_1F1B, 4, 12, 1},
                                                         {PIPELINE_ZERO_BUBBLE, 3, 12, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        assert_meets_its_bound(pipeline_graph(&list[i]), "coarse");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_stay_safe_and_get_no_higher),
        cmocka_unit_test(an_order_becomes_a_plan),
        cmocka_unit_test(with_too_little_work_nothing_changes),
        cmocka_unit_test(pipelines_have_coarse_sizes),
        cmocka_unit_test(other_graphs_have_none),
        cmocka_unit_test(pipelines_meet_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
