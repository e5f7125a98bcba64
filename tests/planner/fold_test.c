/* What repeats: classes of storages that lie at one offset, exact search for one of each class
 * against trying every offset, and schedules of pipelines, which nothing else brings to the bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/pipeline_graph.h"
#include "planner/place/exact/exact.h"
#include "planner/place/fold.h"
#include "streams/graph/graph.h"
#include "support/place_fixture.h"
#include "support/random_graph.h"

enum { GRAPHS = DRAWS(2000), BLOCKS_MAX = 64, TRIED_MAX = 7 };

static struct tarn_block block_at(const struct fixture *of, uint32_t b)
{
    return tarn_block_at(&of->problem.blocks, b);
}

/* ---- Classes ---- */

static bool are_safe(const struct fixture *of, uint32_t b, uint32_t c)
{
    return tarn_reuse_is_safe(&of->problem.conflicts.reuse, block_at(of, b).members[0],
                              block_at(of, c).members[0]);
}

/* Returns how many blocks have a leader. */
static uint32_t assert_classes(const struct fixture *of, const uint32_t *leader, uint32_t leaders)
{
    uint32_t count = of->problem.blocks.count, led = 0;
    for (uint32_t b = 0; b < count; b++) {
        if (leader[b] == b) continue;
        led++;
        assert_int_equal(leader[leader[b]], leader[b]);
        assert_int_equal(block_at(of, b).members_count, 1);
        assert_int_equal(block_at(of, leader[b]).members_count, 1);
        assert_int_equal(block_at(of, b).size, block_at(of, leader[b]).size);
        assert_int_equal(block_at(of, b).alignment, block_at(of, leader[b]).alignment);
        for (uint32_t c = 0; c < b; c++) assert_true(leader[c] != leader[b] || are_safe(of, b, c));
    }
    assert_int_equal(leaders + led, count);
    return led;
}

static void classes_are_alike_and_safe(void **state)
{
    (void)state;
    uint32_t led = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct fixture of;
        struct tarn_fold fold;
        set_up_random(&of, seed, 30);
        uint32_t *leader =
            tarn_region_take(&of.region, of.problem.blocks.count + 1, sizeof *leader);
        assert_non_null(leader);
        assert_int_equal(tarn_fold_init(&fold, &of.region, &of.problem), TARN_OK);
        for (uint32_t period = 1; period < 4; period++) {
            uint32_t leaders = tarn_fold_lead(&fold, period, leader);
            led += assert_classes(&of, leader, leaders);
        }
        tear_down(&of);
    }
    assert_true(led > 0);
}

/* A microbatch more is as many storages more, but no block more when all of them are folded. */
static void microbatches_fold_to_one_number_of_blocks(void **state)
{
    (void)state;
    for (uint32_t schedule = 0; schedule < PIPELINE_SCHEDULES; schedule++) {
        uint32_t before = 0;
        for (uint32_t microbatches = 24; microbatches <= 32; microbatches += 8) {
            struct fixture of;
            struct tarn_fold fold;
            set_up(&of,
                   pipeline_graph(&(struct pipeline_graph_options){(enum pipeline_schedule)schedule,
                                                                   2, microbatches, 1}),
                   512);
            uint32_t count = of.problem.blocks.count;
            uint32_t *leader = tarn_region_take(&of.region, count, sizeof *leader);
            assert_non_null(leader);
            assert_int_equal(tarn_fold_init(&fold, &of.region, &of.problem), TARN_OK);
            uint32_t leaders = tarn_fold_lead(&fold, 4, leader);
            assert_classes(&of, leader, leaders);
            assert_true(leaders < count / 2);
            assert_true(before == 0 || leaders == before);
            before = leaders;
            tear_down(&of);
        }
    }
}

/* ---- Search for leaders ---- */

struct trial {
    struct fixture of;
    uint32_t leader[BLOCKS_MAX];
    uint64_t offset[BLOCKS_MAX]; /* by storage */
};

static bool collide(const struct trial *trial, uint32_t b, uint32_t c)
{
    const struct tarn_problem *problem = &trial->of.problem;
    struct tarn_block x = block_at(&trial->of, b), y = block_at(&trial->of, c);
    for (uint32_t i = 0; i < x.members_count; i++) {
        for (uint32_t k = 0; k < y.members_count; k++) {
            uint32_t p = x.members[i], q = y.members[k];
            if (trial->offset[p] < trial->offset[q] + problem->blocks.reserved[q] &&
                trial->offset[q] < trial->offset[p] + problem->blocks.reserved[p] &&
                !tarn_reuse_is_safe(&problem->conflicts.reuse, p, q))
                return true;
        }
    }
    return false;
}

/* Puts the class of b there; is it clear of all classes of the leaders before b? */
static bool put(struct trial *trial, uint32_t b, uint64_t at)
{
    uint32_t count = trial->of.problem.blocks.count;
    bool clear = true;
    for (uint32_t c = b; c < count; c++)
        if (trial->leader[c] == b)
            tarn_block_put(&trial->of.problem.blocks, block_at(&trial->of, c), at, trial->offset);
    for (uint32_t c = b; c < count; c++)
        for (uint32_t d = 0; d < count && trial->leader[c] == b; d++)
            clear = clear && (trial->leader[d] >= b || !collide(trial, c, d));
    return clear;
}

/* Is there room for the classes of all leaders from b on? */
static bool fits(struct trial *trial, uint32_t b, uint64_t capacity)
{
    if (b == trial->of.problem.blocks.count) return true;
    if (trial->leader[b] != b) return fits(trial, b + 1, capacity);
    const struct tarn_block block = block_at(&trial->of, b);
    for (uint64_t at = 0; at + block.size <= capacity; at += block.alignment)
        if (put(trial, b, at) && fits(trial, b + 1, capacity)) return true;
    return false;
}

/* Makes classes at random; returns how many blocks lead or are alone. */
static uint32_t draw_classes(struct trial *trial, struct random_source *source)
{
    const struct fixture *of = &trial->of;
    uint32_t count = of->problem.blocks.count, leaders = count;
    for (uint32_t b = 0; b < count; b++) {
        trial->leader[b] = b;
        for (uint32_t c = 0; c < b && trial->leader[b] == b; c++) {
            struct tarn_block x = block_at(of, b), y = block_at(of, c);
            bool joins = trial->leader[c] == c && random_percent(source, 70) && x.size == y.size &&
                         x.alignment == y.alignment && x.members_count + y.members_count == 2;
            for (uint32_t d = c; d < b && joins; d++)
                joins = trial->leader[d] != c || are_safe(of, b, d);
            if (!joins) continue;
            trial->leader[b] = c;
            leaders--;
        }
    }
    return leaders;
}

static enum tarn_exact_result search(struct trial *trial, uint64_t capacity, uint64_t seed)
{
    struct tarn_exact_report report;
    const struct tarn_exact_options options = {.seed = seed, .threads = 1, .leader = trial->leader};
    assert_int_equal(
        tarn_exact_place(&trial->of.problem, NULL, capacity, &options, trial->offset, &report),
        TARN_OK);
    return report.result;
}

static void assert_placed(const struct trial *trial, uint64_t capacity)
{
    uint32_t count = trial->of.problem.blocks.count;
    assert_true(tarn_blocks_footprint(&trial->of.problem.blocks, trial->offset) <= capacity);
    for (uint32_t b = 0; b < count; b++) {
        assert_int_equal(trial->offset[block_at(&trial->of, b).members[0]],
                         trial->offset[block_at(&trial->of, trial->leader[b]).members[0]]);
        for (uint32_t c = 0; c < b; c++) assert_false(collide(trial, b, c));
    }
}

static void classes_are_placed_at_the_least_capacity(void **state)
{
    (void)state;
    uint32_t tried = 0, led = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct random_source source = {seed};
        struct trial trial;
        struct random_graph_options knobs = random_graph_knobs(seed, 9);
        knobs.size_max = 3;
        knobs.alignment_share = knobs.workspace_share = 0;
        set_up(&trial.of, random_graph(&knobs), 1);
        uint32_t count = trial.of.problem.blocks.count;
        uint64_t least = trial.of.problem.antichain.bound;
        uint32_t leaders = count <= BLOCKS_MAX ? draw_classes(&trial, &source) : BLOCKS_MAX;
        if (leaders <= TRIED_MAX && trial.of.problem.blocks.storages_count <= BLOCKS_MAX) {
            while (!fits(&trial, 0, least)) least++;
            assert_int_equal(search(&trial, least, seed), TARN_EXACT_FOUND);
            assert_placed(&trial, least);
            if (least > 0) assert_int_equal(search(&trial, least - 1, seed), TARN_EXACT_INFEASIBLE);
            tried++;
            led += count - leaders;
        }
        tear_down(&trial.of);
    }
    assert_true(tried > GRAPHS / 20 && led > 0);
}

/* ---- Schedules ---- */

/* By the default work and no clock. Each of them was above the bound as long as complete search
 * had to begin anew for each core. */
static void schedules_of_pipelines_meet_the_bound(void **state)
{
    static const struct pipeline_graph_options schedules[] = {
        {PIPELINE_1F1B, 3, 12, 1}, {PIPELINE_1F1B, 3, 40, 1}, {PIPELINE_ZERO_BUBBLE, 2, 40, 1}};
    (void)state;
    for (size_t i = 0; i < (HAS_FEW_DRAWS ? 1 : sizeof schedules / sizeof *schedules); i++)
        assert_meets_its_bound(pipeline_graph(&schedules[i]), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_alike_and_safe),
        cmocka_unit_test(microbatches_fold_to_one_number_of_blocks),
        cmocka_unit_test(classes_are_placed_at_the_least_capacity),
        cmocka_unit_test(schedules_of_pipelines_meet_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
