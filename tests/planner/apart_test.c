/* Streams apart: plans of bands are safe and never higher than what they replace, on random graphs
 * with groups; and streams that hardly ever wait for each other come near their bound by them.
 * TARN_DRAWS=N: N random graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/rough_graph.h"
#include "planner/place/apart.h"
#include "support/check_offsets.h"
#include "support/place_fixture.h"
#include "support/random_graph.h"

enum { GRAPHS = DRAWS(2000), OPS_MAX = 60, VISITS = 20000 };

static void place(const struct fixture *of, uint32_t threads, uint64_t work_max, uint64_t *offset,
                  uint64_t *footprint)
{
    const struct tarn_apart_options options = {.whole = &of->problem,
                                               .visits = VISITS,
                                               .work_max = work_max,
                                               .seed = 1,
                                               .threads = threads};
    uint64_t work;
    assert_int_equal(tarn_apart_place(&of->problem, &options, offset, footprint, &work), TARN_OK);
}

/* The most bytes of a stream that live at once, by looking at every position. */
static uint64_t peak_of(const struct fixture *of, uint32_t s)
{
    const struct tarn_reuse *reuse = &of->problem.conflicts.reuse;
    uint64_t peak = 0;
    for (uint32_t p = 0; p < reuse->length[s]; p++) {
        uint64_t alive = 0;
        for (uint32_t a = 0; a < reuse->count; a++)
            if (reuse->stream[a] == s && reuse->position[a] <= p &&
                p < reuse->first[(size_t)s * reuse->count + a])
                alive += of->problem.blocks.reserved[a];
        if (alive > peak) peak = alive;
    }
    return peak;
}

static uint64_t sum_of_peaks(const struct fixture *of)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < of->problem.conflicts.reuse.streams_count; s++) sum += peak_of(of, s);
    return sum;
}

/* Every other plan that comes in is in a row, and every third search has no work to spend. */
static void bands_give_safe_plans_that_are_never_higher(void **state)
{
    uint32_t lower = 0, kept = 0;
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct fixture of;
        set_up_random(&of, seed, OPS_MAX);
        const struct tarn_blocks *blocks = &of.problem.blocks;
        uint64_t *offset = calloc((size_t)blocks->storages_count + 1, sizeof *offset);
        assert_non_null(offset);
        uint64_t row = tarn_blocks_place_in_a_row(blocks, offset);
        uint64_t before = seed % 2 ? row : of.problem.antichain.bound, footprint = before;
        place(&of, 1, seed % 3 ? 0 : 1, offset, &footprint);
        if (footprint < before) assert_int_equal(check_offsets(&of.problem, offset), footprint);
        if (footprint == before && seed % 2)
            assert_int_equal(check_offsets(&of.problem, offset), row);
        assert_true(footprint >= of.problem.antichain.bound);
        lower += footprint < before;
        kept += footprint == before;
        free(offset);
        tear_down(&of);
    }
    assert_true(lower > GRAPHS / 8);
    assert_true(kept > GRAPHS / 8);
}

/* No lower plan of bands exists: no more work is done than to know that. */
static void bands_that_cannot_be_lower_are_not_placed(void **state)
{
    (void)state;
    for (uint32_t streams = 2; streams <= 6; streams += 2) {
        struct fixture of;
        set_up(&of, rough_graph(&(struct rough_graph_options){ROUGH_LOOSE, 300, streams, 3}), 512);
        uint64_t *offset = calloc((size_t)of.problem.blocks.storages_count, sizeof *offset);
        const struct tarn_apart_options options = {
            .whole = &of.problem, .visits = VISITS, .work_max = UINT64_C(1) << 30, .threads = 1};
        uint64_t bound = of.problem.antichain.bound, looked = 0, work = 0;
        uint64_t footprint = bound - bound / 16; /* no joining makes up for that */
        assert_non_null(offset);
        assert_int_equal(tarn_apart_place(&of.problem, &options, offset, &footprint, &looked),
                         TARN_OK);
        assert_int_equal(footprint, bound - bound / 16);
        footprint = sum_of_peaks(&of) + 1;
        assert_int_equal(tarn_apart_place(&of.problem, &options, offset, &footprint, &work),
                         TARN_OK);
        assert_true(work > looked);
        free(offset);
        tear_down(&of);
    }
}

/* Also with several threads the same plan. */
static void streams_that_seldom_wait_lie_close_in_bands(void **state)
{
    (void)state;
    for (uint32_t streams = 2; streams <= 16; streams *= 2) {
        struct fixture of;
        set_up(&of, rough_graph(&(struct rough_graph_options){ROUGH_LOOSE, 1000, streams, 1}), 512);
        size_t count = of.problem.blocks.storages_count;
        uint64_t *offset = calloc(2 * count, sizeof *offset), *again = offset + count;
        uint64_t footprint = UINT64_MAX, footprint_again = UINT64_MAX;
        assert_non_null(offset);
        place(&of, 1, 0, offset, &footprint);
        place(&of, 2, 0, again, &footprint_again);
        assert_int_equal(check_offsets(&of.problem, offset), footprint);
        assert_int_equal(footprint_again, footprint);
        assert_memory_equal(offset, again, count * sizeof *offset);
        uint64_t peaks = sum_of_peaks(&of);
        assert_true(footprint >= peaks && footprint <= peaks + peaks / 10);
        free(offset);
        tear_down(&of);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_give_safe_plans_that_are_never_higher),
        cmocka_unit_test(bands_that_cannot_be_lower_are_not_placed),
        cmocka_unit_test(streams_that_seldom_wait_lie_close_in_bands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
