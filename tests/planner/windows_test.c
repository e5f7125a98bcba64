/* Placement window by window: what cuts promise and what plans must keep to, from the definitions
 * and for every pair, on random graphs cut into tiny windows and on larger ones; on any number of
 * threads. TARN_DRAWS=N: N random graphs, and twenty runs on every number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/coupled_graph.h"
#include "bench/cut_graph.h"
#include "bench/dnn_graph.h"
#include "bench/rough_graph.h"
#include "planner/place/lowest/lowest.h"
#include "planner/place/problem/problem.h"
#include "planner/place/windows/cluster_problem.h"
#include "planner/place/windows/cuts.h"
#include "planner/place/windows/window.h"
#include "planner/place/windows/windows.h"
#include "streams/base/radix.h"
#include "support/check_offsets.h"
#include "support/place_fixture.h"
#include "support/random_graph.h"

enum { SEEDS = DRAWS(2000), OPS_MAX = 60, RUNS = SANITIZED ? 1 : 2, CAMPAIGN_RUNS = 20 };

static uint64_t seeds(void)
{
    const char *draws = getenv("TARN_DRAWS");
    return draws ? strtoull(draws, NULL, 10) : SEEDS;
}

static uint64_t check_plan(const struct fixture *fixture, const uint64_t *offset)
{
    return check_offsets(&fixture->problem, offset);
}

/* Places by windows; the offsets are the caller's to free. */
static uint64_t *place(const struct fixture *fixture, struct tarn_windows_options options,
                       uint64_t *footprint)
{
    uint64_t *offset = calloc((size_t)fixture->problem.conflicts.reuse.count + 1, sizeof *offset);
    *footprint = UINT64_MAX; /* anything is better */
    options.aim = fixture->problem.antichain.bound;
    assert_int_equal(tarn_windows_place(&fixture->problem, &options, offset, footprint), TARN_OK);
    assert_int_not_equal(*footprint, UINT64_MAX);
    return offset;
}

/* All storages, in the order of slots; the caller's to free. */
static uint32_t *all_storages(const struct fixture *fixture)
{
    uint32_t *storages =
        calloc((size_t)fixture->problem.conflicts.reuse.count + 1, sizeof *storages);
    for (uint32_t a = 0; a < fixture->problem.conflicts.reuse.count; a++)
        storages[fixture->problem.conflicts.slot_of[a]] = a;
    return storages;
}

/* Some of them, whole blocks: those drawn with one in `share`. */
static uint32_t *some_storages(const struct fixture *fixture, const uint32_t *block_of,
                               uint64_t seed, uint32_t share, uint32_t *count)
{
    uint32_t *storages = all_storages(fixture);
    *count = 0;
    for (uint32_t slot = 0; slot < fixture->problem.conflicts.reuse.count; slot++) {
        uint64_t draw = (seed * 1000 + block_of[storages[slot]]) * UINT64_C(0x9e3779b97f4a7c15);
        if ((draw >> 40) % share == 0) storages[(*count)++] = storages[slot];
    }
    return storages;
}

/* storage -> block; the caller's to free. */
static uint32_t *blocks_of(const struct fixture *fixture)
{
    uint32_t *block_of =
        calloc((size_t)fixture->problem.conflicts.reuse.count + 1, sizeof *block_of);
    for (uint32_t b = 0; b < fixture->problem.blocks.count; b++)
        for (uint32_t i = 0; i < tarn_block_at(&fixture->problem.blocks, b).members_count; i++)
            block_of[tarn_block_at(&fixture->problem.blocks, b).members[i]] = b;
    return block_of;
}

/* Random storages of a random graph, cut; every other time all groups count as large. */
static void set_up_cut(struct fixture *fixture, struct tarn_cuts *cuts, struct tarn_region *region,
                       uint32_t **block_of, uint64_t seed, uint32_t width)
{
    uint32_t count;
    set_up_random(fixture, seed, OPS_MAX);
    *block_of = blocks_of(fixture);
    uint32_t *storages = some_storages(fixture, *block_of, seed, 1 + (uint32_t)(seed % 3), &count);
    assert_int_equal(tarn_cuts_init(cuts, region, &fixture->problem, *block_of, storages, count,
                                    width, seed % 2 == 0 ? UINT64_MAX : 0),
                     TARN_OK);
    assert_true(tarn_cuts_are_valid(cuts, count));
    assert_int_equal(cuts->begin[cuts->count + 1], count);
    free(storages);
}

/* ---- Tests ---- */

static void storages_of_different_windows_are_safe(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < seeds(); seed++) {
        struct fixture fixture;
        struct tarn_region region = {.chunks = NULL};
        struct tarn_cuts cuts;
        uint32_t *block_of;
        set_up_cut(&fixture, &cuts, &region, &block_of, seed, 1 + (uint32_t)(seed % 7));
        for (uint32_t w = 0; w < cuts.count; w++)
            for (uint32_t i = cuts.begin[w]; i < cuts.begin[w + 1]; i++)
                for (uint32_t k = cuts.begin[w + 1]; k < cuts.begin[cuts.count]; k++)
                    assert_true(tarn_reuse_is_safe(&fixture.problem.conflicts.reuse,
                                                   cuts.storages[i], cuts.storages[k]));
        tarn_region_finish(&region);
        free(block_of);
        tear_down(&fixture);
    }
}

/* Also where no cut goes through it. */
static void a_large_group_is_placed_with_what_crosses(void **state)
{
    uint32_t groups = 0;
    (void)state;
    for (uint64_t seed = 1; seed < 100; seed += 2) {
        struct fixture fixture;
        struct tarn_region region = {.chunks = NULL};
        struct tarn_cuts cuts;
        uint32_t *block_of;
        set_up_cut(&fixture, &cuts, &region, &block_of, seed, 1000);
        for (uint32_t i = 0; i < cuts.begin[cuts.count + 1]; i++) {
            uint32_t b = block_of[cuts.storages[i]];
            bool is_group = tarn_block_at(&fixture.problem.blocks, b).members_count > 1;
            assert_true(!is_group || i >= cuts.begin[cuts.count]);
            groups += is_group;
        }
        tarn_region_finish(&region);
        free(block_of);
        tear_down(&fixture);
    }
    assert_true(groups > 0);
}

/* What crosses is in conflict only with windows first .. end, and with all of those between `first`
 * and `whole`. */
static void what_crosses_tells_the_windows_that_it_meets(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < seeds(); seed++) {
        struct fixture fixture;
        struct tarn_region region = {.chunks = NULL};
        struct tarn_cuts cuts;
        uint32_t *block_of;
        set_up_cut(&fixture, &cuts, &region, &block_of, seed, 1 + (uint32_t)(seed % 4));
        uint32_t crossing_begin = cuts.begin[cuts.count];
        for (uint32_t c = crossing_begin; c < cuts.begin[cuts.count + 1]; c++) {
            const struct tarn_crossing *crossing = &cuts.crossing[c - crossing_begin];
            for (uint32_t w = 0; w < cuts.count; w++)
                for (uint32_t i = cuts.begin[w]; i < cuts.begin[w + 1]; i++) {
                    bool safe = tarn_reuse_is_safe(&fixture.problem.conflicts.reuse,
                                                   cuts.storages[c], cuts.storages[i]);
                    if (w < crossing->first || w >= crossing->end) assert_true(safe);
                    if (w > crossing->first && w < crossing->whole) assert_false(safe);
                }
        }
        tarn_region_finish(&region);
        free(block_of);
        tear_down(&fixture);
    }
}

/* Lifetimes of storages in conflict meet; what is produced within one's `whole` is in conflict. */
static void lifetimes_enclose_every_conflict(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < seeds(); seed++) {
        struct fixture fixture;
        struct tarn_lifetimes life;
        uint32_t count;
        set_up_random(&fixture, seed, OPS_MAX);
        uint32_t *block_of = blocks_of(&fixture);
        uint32_t *storages =
            some_storages(&fixture, block_of, seed, 1 + (uint32_t)(seed % 3), &count);
        assert_int_equal(
            tarn_lifetimes_init(&life, &fixture.region, &fixture.problem, storages, count),
            TARN_OK);
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < count; k++) {
                bool safe =
                    tarn_reuse_is_safe(&fixture.problem.conflicts.reuse, storages[i], storages[k]);
                if (life.until[i] <= life.since[k]) assert_true(safe);
                if (life.since[i] < life.since[k] && life.since[k] < life.whole[i])
                    assert_false(safe);
            }
        free(storages);
        free(block_of);
        tear_down(&fixture);
    }
}

static void parts_keep_every_conflict_and_block(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < seeds(); seed++) {
        struct fixture fixture;
        struct tarn_region region = {.chunks = NULL};
        struct tarn_cuts cuts;
        uint32_t *block_of;
        set_up_cut(&fixture, &cuts, &region, &block_of, seed, 1 + (uint32_t)(seed % 20));
        for (uint32_t w = 0; w <= cuts.count; w++) {
            struct tarn_part part;
            uint32_t count = cuts.begin[w + 1] - cuts.begin[w];
            assert_int_equal(tarn_part_init(&part, &region, &fixture.problem, block_of,
                                            cuts.storages + cuts.begin[w], count),
                             TARN_OK);
            for (uint32_t a = 0; a < count; a++)
                for (uint32_t b = 0; b < count; b++)
                    assert_int_equal(tarn_reuse_precedes(&part.problem.conflicts.reuse, a, b),
                                     tarn_reuse_precedes(&fixture.problem.conflicts.reuse,
                                                         part.origin[a], part.origin[b]));
            for (uint32_t b = 0; b < part.problem.blocks.count; b++) {
                const struct tarn_block block = tarn_block_at(&part.problem.blocks, b);
                const struct tarn_block whole =
                    tarn_block_at(&fixture.problem.blocks, part.origin_block[b]);
                assert_int_equal(block.members_count, whole.members_count);
                for (uint32_t m = 0; m < block.members_count; m++)
                    assert_int_equal(part.origin[block.members[m]], whole.members[m]);
            }
        }
        tarn_region_finish(&region);
        free(block_of);
        tear_down(&fixture);
    }
}

/* Clusters of what crosses, by every pair of storages of different blocks: who is not safe shares
 * no unit. */
static void check_clusters(const struct fixture *fixture, const struct tarn_field *field,
                           const struct tarn_cuts *cuts, uint32_t unit_shift, int32_t top)
{
    for (uint32_t i = cuts->begin[cuts->count]; i < cuts->begin[cuts->count + 1]; i++) {
        struct tarn_span one = tarn_field_span(field, unit_shift, cuts->storages[i]);
        assert_true(one.begin >= 0 && one.end <= top);
        for (uint32_t k = cuts->begin[cuts->count]; k < i; k++) {
            struct tarn_span other = tarn_field_span(field, unit_shift, cuts->storages[k]);
            bool together =
                field->block_of[cuts->storages[i]] == field->block_of[cuts->storages[k]];
            if (!together && !tarn_reuse_is_safe(&fixture->problem.conflicts.reuse,
                                                 cuts->storages[i], cuts->storages[k]))
                assert_true(one.end <= other.begin || other.end <= one.begin);
        }
    }
}

static void clusters_share_no_byte_that_is_not_safe(void **state)
{
    uint64_t clustered = 0;
    (void)state;
    for (uint64_t seed = 0; seed < seeds(); seed++) {
        struct fixture fixture;
        struct tarn_region region = {.chunks = NULL};
        struct tarn_cuts cuts;
        struct tarn_field field;
        uint32_t *block_of;
        int32_t top;
        set_up_cut(&fixture, &cuts, &region, &block_of, seed, 1 + (uint32_t)(seed % 3));
        uint32_t *storages = all_storages(&fixture);
        /* The higher the aim, the fewer periods there are, and the larger are clusters. */
        uint64_t aim = fixture.problem.antichain.bound << seed % 12;
        struct tarn_effort effort = {.max = UINT64_MAX};
        struct tarn_windows_settings settings = {
            .unit_shift = tarn_lowest_unit_shift(&fixture.problem.blocks, 4 * aim),
            .effort = &effort};
        settings.aim = (int32_t)(aim >> settings.unit_shift);
        assert_true(tarn_field_init(&field, &region, &fixture.problem));
        assert_true(tarn_clusters_place(&field, &settings, &cuts, storages,
                                        fixture.problem.conflicts.reuse.count, &top));
        assert_int_not_equal(top, INT32_MAX);
        check_clusters(&fixture, &field, &cuts, settings.unit_shift, top);
        clustered += effort.priority_clusters < cuts.begin[cuts.count + 1] - cuts.begin[cuts.count];
        free(storages);
        tarn_region_finish(&region);
        free(block_of);
        tear_down(&fixture);
    }
    assert_true(clustered > seeds() / 4);
}

/* Every storage has one place; a line's places are in the global order; a storage precedes all that
 * the line produces from its end on. */
static void check_lines(const struct fixture *fixture, const struct tarn_clusters *clusters,
                        const uint32_t *storages)
{
    const struct tarn_reuse *reuse = &fixture->problem.conflicts.reuse;
    const struct tarn_lines *lines = &clusters->lines;
    for (uint32_t i = 0; i < clusters->count; i++) {
        assert_int_equal(clusters->storages[lines->place_of[i]], storages[i]);
        assert_int_equal(tarn_clusters_place_of(clusters, storages[i]), lines->place_of[i]);
    }
    for (uint32_t i = 0; i < clusters->count; i++) {
        uint32_t a = clusters->storages[i];
        for (uint32_t k = 0; k < clusters->count; k++) {
            uint32_t b = clusters->storages[k], line = lines->of[reuse->stream[b]];
            uint32_t own = lines->of[reuse->stream[a]];
            uint32_t rank = tarn_problem_begin(&fixture->problem, a);
            if (k >= lines->end[(size_t)line * clusters->count + i])
                assert_true(tarn_reuse_is_safe(reuse, a, b));
            if (k > i && own == line) assert_true(rank <= tarn_problem_begin(&fixture->problem, b));
            if (k > i) assert_true(own <= line);
        }
    }
}

/* The higher the aim, the more streams may be taken for one. */
static void what_a_line_produces_from_the_end_of_a_storage_on_may_reuse_it(void **state)
{
    uint64_t lined = 0, several = 0;
    (void)state;
    for (uint64_t seed = 0; seed < seeds(); seed++) {
        struct fixture fixture;
        struct tarn_region region = {.chunks = NULL};
        struct tarn_field field;
        struct tarn_clusters clusters = {.field = &field};
        set_up_random(&fixture, seed, OPS_MAX);
        uint32_t *block_of = blocks_of(&fixture);
        uint32_t *storages =
            some_storages(&fixture, block_of, seed, 1 + (uint32_t)(seed % 3), &clusters.count);
        struct tarn_windows_settings settings = {
            .aim = (int32_t)(fixture.problem.antichain.bound << seed % 12 & TARN_UNITS_MAX)};
        clusters.settings = &settings;
        clusters.storages = storages;
        assert_true(tarn_field_init(&field, &region, &fixture.problem));
        assert_int_equal(tarn_slot_set_init(&clusters.listed, &region, &fixture.problem.conflicts,
                                            storages, clusters.count),
                         TARN_OK);
        assert_true(tarn_lines_find(&clusters, &region));
        if (clusters.lines.of) check_lines(&fixture, &clusters, storages);
        for (uint32_t s = 0; clusters.lines.of && s < fixture.problem.conflicts.reuse.streams_count;
             s++)
            if (clusters.lines.of[s] == 1) {
                several++;
                break;
            }
        lined += clusters.lines.of != NULL;
        free(storages);
        free(block_of);
        tarn_region_finish(&region);
        tear_down(&fixture);
    }
    assert_true(lined > seeds() / 8);
    assert_true(several > 0);
}

/* ---- Priority orders at once ---- */

/* Priority orders of the list for all storages of the problem; the offsets of blocks are the
 * caller's to free.
 */
static int32_t *place_all(const struct fixture *fixture, struct tarn_windows_settings settings,
                          struct tarn_placements placements, int32_t *top)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_field field;
    uint32_t *storages = all_storages(fixture);
    struct tarn_obstacles none = {.unit_shift = settings.unit_shift,
                                  .reuse = &fixture->problem.conflicts.reuse};
    *top = INT32_MAX;
    assert_true(tarn_field_init(&field, &region, &fixture->problem));
    assert_int_equal(tarn_obstacles_sort(&none, &region), TARN_OK);
    assert_true(tarn_field_place(&field, &region, &settings, storages, none.reuse->count, &none,
                                 placements, top));
    size_t size = fixture->problem.blocks.count * sizeof *field.offset;
    int32_t *offset = malloc(size + 1);
    memcpy(offset, field.offset, size);
    free(storages);
    tarn_region_finish(&region);
    return offset;
}

/* Of plans of one priority order each: the first that meets the aim, else the first of the
 * lowest. */
static uint32_t best_of(const int32_t *tops, int32_t aim)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < TARN_PRIORITIES_COUNT; i++) {
        if (tops[i] <= aim) return i;
        if (tops[i] < tops[best]) best = i;
    }
    return best;
}

/* Compares with `expected`, which reaches up to `top`; returns the work. */
static uint64_t check_team(const struct fixture *fixture, struct tarn_windows_settings settings,
                           uint32_t threads, const int32_t *expected, int32_t top)
{
    struct tarn_effort effort = {.max = UINT64_MAX};
    struct tarn_team team;
    int32_t reached;
    settings.effort = &effort;
    if (threads > 0) {
        tarn_team_init(&team, threads, true);
        settings.team = &team;
    }
    const struct tarn_placements every = {0, TARN_PRIORITIES_COUNT, 0};
    int32_t *offset = place_all(fixture, settings, every, &reached);
    assert_int_equal(reached, top);
    assert_memory_equal(offset, expected, fixture->problem.blocks.count * sizeof *offset);
    free(offset);
    return effort.spent;
}

static void priorities_at_once_give_the_plan_of_one_after_the_other(void **state)
{
    uint32_t later = 0;
    (void)state;
    for (uint64_t seed = 0; seed < seeds(); seed++) {
        struct fixture fixture;
        int32_t tops[TARN_PRIORITIES_COUNT], *offsets[TARN_PRIORITIES_COUNT];
        set_up_random(&fixture, seed, OPS_MAX);
        struct tarn_windows_settings settings = {
            .unit_shift = tarn_lowest_unit_shift(&fixture.problem.blocks, UINT64_C(1) << 40)};
        for (uint32_t i = 0; i < TARN_PRIORITIES_COUNT; i++)
            offsets[i] =
                place_all(&fixture, settings, (struct tarn_placements){i, i + 1, 0}, &tops[i]);
        settings.aim = seed % 3 == 0 ? 0 : tops[seed % TARN_PRIORITIES_COUNT];
        uint32_t best = best_of(tops, settings.aim);
        check_team(&fixture, settings, 0, offsets[best], tops[best]);
        uint64_t work = check_team(&fixture, settings, 1, offsets[best], tops[best]);
        assert_int_equal(check_team(&fixture, settings, 3, offsets[best], tops[best]), work);
        later += best > 0;
        for (uint32_t i = 0; i < TARN_PRIORITIES_COUNT; i++) free(offsets[i]);
        tear_down(&fixture);
    }
    assert_true(later > seeds() / 20);
}

/* ---- Targets and promotion ---- */

/* Where everything may begin at a floor, one stream's highest target is what no plan is below. */
static void a_stream_without_holes_reaches_its_bound(void **state)
{
    const int32_t floor = 1000;
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        struct fixture fixture;
        struct tarn_field field;
        struct tarn_region region = {.chunks = NULL};
        set_up(&fixture, cut_graph(&(struct cut_graph_options){CUT_CHAIN, 100 + 150 * i, 1}), 512);
        uint32_t count = fixture.problem.conflicts.reuse.count;
        uint32_t *storages = all_storages(&fixture);
        assert_true(tarn_field_init(&field, &region, &fixture.problem));
        for (uint32_t b = 0; b < fixture.problem.blocks.count; b++) field.floor[b] = floor;
        int32_t *target = tarn_targets_find(&region, &field, 9, storages, count);
        assert_non_null(target);
        for (uint32_t t = 1; t < fixture.problem.ops_count; t++)
            assert_true(target[t] >= target[t - 1]);
        assert_int_equal(target[fixture.problem.ops_count - 1],
                         floor + (int32_t)(fixture.problem.antichain.bound / 512));
        free(storages);
        tarn_region_finish(&region);
        tear_down(&fixture);
    }
}

/* Promotes towards a bound; how far above it the plan is in the end, in units. */
static int32_t promote(const struct fixture *fixture, uint32_t placements)
{
    const struct tarn_problem *problem = &fixture->problem;
    struct tarn_region region = {.chunks = NULL};
    struct tarn_lowest lowest;
    struct tarn_traits traits;
    struct tarn_greedy greedy;
    assert_int_equal(tarn_lowest_init(&lowest, &region, problem, 4 * problem->antichain.bound),
                     TARN_OK);
    assert_int_equal(tarn_traits_init(&traits, &region, &lowest), TARN_OK);
    assert_int_equal(tarn_greedy_init(&greedy, &region, &lowest), TARN_OK);
    int32_t *target = tarn_region_take(&region, lowest.count, sizeof *target);
    struct tarn_promotion promotion = {
        .target = target,
        .priority = tarn_region_take(&region, lowest.count, sizeof *promotion.priority),
        .offset = tarn_region_take(&region, lowest.count, sizeof *promotion.offset),
        .placements_max = placements,
        .excess = INT32_MAX};
    assert_int_equal(tarn_priorities_fill(&lowest, &region, &traits, 0, promotion.priority),
                     TARN_OK);
    for (uint32_t place = 0; place < lowest.count; place++)
        target[place] = tarn_lowest_units(&lowest, problem->antichain.bound);
    assert_int_equal(tarn_promote(&promotion, &greedy, &region), TARN_OK);
    uint64_t *offset = tarn_region_take(&region, problem->conflicts.reuse.count, sizeof *offset);
    tarn_lowest_offsets(&lowest, promotion.offset, offset);
    uint64_t footprint = check_plan(fixture, offset);
    assert_int_equal(footprint, tarn_lowest_footprint(&lowest, promotion.offset));
    assert_int_equal(promotion.top, tarn_lowest_units(&lowest, footprint));
    assert_int_equal(promotion.excess, promotion.top - target[0]);
    tarn_region_finish(&region);
    return promotion.excess;
}

static void what_comes_first_where_it_ended_too_high_ends_lower(void **state)
{
    int64_t once = 0, often = 0;
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        struct fixture fixture;
        set_up(&fixture,
               coupled_graph(&(struct coupled_graph_options){COUPLED_EVERY, 400, 2 + i % 2, 50, i}),
               512);
        int32_t first = promote(&fixture, 1), last = promote(&fixture, 20);
        assert_true(last <= first);
        once += first;
        often += last;
        tear_down(&fixture);
    }
    assert_true(often < once / 2);
}

/* Streams that seldom wait for each other lie on top of each other: what each of them loses to
 * holes is added up. Without targets or without promotion the first of these plans is more than a
 * tenth above the bound.
 */
static void streams_that_seldom_wait_lose_little_to_holes(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct fixture fixture;
        const struct coupled_graph_options options = {COUPLED_EVERY, 9000, 2 + i, 300 + 400 * i, i};
        set_up(&fixture, coupled_graph(&options), 512);
        uint64_t bound = fixture.problem.antichain.bound, footprint;
        free(place(&fixture, (struct tarn_windows_options){.width = 1024, .far_windows = 1},
                   &footprint));
        assert_true(footprint - bound <= bound / 16);
        tear_down(&fixture);
    }
}

/* ---- Plans ---- */

/* Each group is about as high as the bound. Placed around what crosses, it would come on top. */
static void large_groups_do_not_lie_on_top_of_each_other(void **state)
{
    (void)state;
    for (uint32_t streams = 1; streams <= 16; streams *= 4) {
        struct fixture fixture;
        uint64_t footprint, highest = 0;
        set_up(&fixture,
               rough_graph(&(struct rough_graph_options){ROUGH_GROUPS, 6000, streams, streams}),
               512);
        for (uint32_t b = 0; b < fixture.problem.blocks.count; b++)
            if (tarn_block_at(&fixture.problem.blocks, b).size > highest)
                highest = tarn_block_at(&fixture.problem.blocks, b).size;
        free(place(&fixture, (struct tarn_windows_options){.width = 1024}, &footprint));
        assert_true(footprint < highest + highest / 2);
        tear_down(&fixture);
    }
}

static struct tarn_graph *coupled(uint32_t i)
{
    return coupled_graph(&(struct coupled_graph_options){(enum coupled_kind)(i % 4), 1500 + 100 * i,
                                                         2 + i % 5, 20, i + 1});
}

/* Without a limit every way is gone: none is better than the plan. */
static void the_best_of_all_widths_is_taken(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        struct fixture fixture;
        set_up(&fixture, coupled(i), 512);
        struct tarn_effort effort = {.max = UINT64_MAX};
        struct tarn_widths_options options = {
            .aim = fixture.problem.antichain.bound, .threads = 1, .effort = &effort};
        uint64_t *offset =
            calloc((size_t)fixture.problem.conflicts.reuse.count + 1, sizeof *offset);
        uint64_t least = UINT64_MAX, footprint;
        assert_int_equal(tarn_widths_place(&fixture.problem, &options, offset, &least), TARN_OK);
        assert_int_equal(check_plan(&fixture, offset), least);
        for (uint32_t width = 256; width <= 1024; width *= 4) {
            struct tarn_windows_options one = {.width = width, .threads = 1};
            free(place(&fixture, one, &footprint));
            assert_true(least <= footprint);
        }
        free(offset);
        tear_down(&fixture);
    }
}

/* What is told of a search, and how much of its work was done when the first plan was told. */
struct watch {
    const struct fixture *fixture;
    const uint64_t *offset;
    struct tarn_effort effort;
    uint64_t first_work, told;
};

static void note_plan(void *user, uint64_t footprint, uint64_t steps)
{
    struct watch *watch = user;
    (void)steps;
    if (watch->told == 0) watch->first_work = watch->effort.spent;
    watch->told++;
    assert_false(watch->effort.must);
    assert_int_equal(check_plan(watch->fixture, watch->offset), footprint);
}

/* Further priority orders for what crosses, and for the windows above the aim, come after it. */
static void the_first_plan_is_there_before_the_search_goes_on(void **state)
{
    uint64_t first = 0, all = 0;
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct fixture fixture;
        struct random_graph_options knobs = random_graph_knobs(i + 1, 2000);
        knobs.ops = 1000;
        knobs.streams = 1 + i;
        knobs.reach = 50;
        set_up(&fixture, random_graph(&knobs), 512);
        uint64_t *offset =
            calloc((size_t)fixture.problem.conflicts.reuse.count + 1, sizeof *offset);
        struct watch watch = {
            .fixture = &fixture, .offset = offset, .effort = {.max = UINT64_MAX, .must = true}};
        struct tarn_windows_options options = {.aim = fixture.problem.antichain.bound,
                                               .width = 64,
                                               .threads = 1,
                                               .effort = &watch.effort,
                                               .progress = note_plan,
                                               .user = &watch};
        uint64_t footprint = UINT64_MAX;
        assert_int_equal(tarn_windows_place(&fixture.problem, &options, offset, &footprint),
                         TARN_OK);
        assert_int_equal(check_plan(&fixture, offset), footprint);
        assert_true(watch.told > 0);
        first += watch.first_work;
        all += watch.effort.spent;
        free(offset);
        tear_down(&fixture);
    }
    assert_true(first < all / 2);
}

/* Units are as fine as the aim allows; here they are too fine for a footprint that any plan has. */
static void windows_that_are_too_high_to_be_counted_leave_the_plan_as_it_was(void **state)
{
    struct tarn_effort effort = {.max = UINT64_MAX, .must = true};
    const struct tarn_windows_options options = {
        .width = 100, .aim = 1, .threads = 1, .effort = &effort};
    const struct tarn_tensor_info large = {.size = (1 << 29) + 1};
    struct tarn_builder *b = tarn_builder_create("two large ones");
    uint64_t offset[2] = {12, 34}, footprint = UINT64_MAX;
    struct tarn_graph *graph;
    struct fixture fixture;
    (void)state;
    tarn_builder_stream(b, "s");
    tarn_tensor x = tarn_builder_tensor(b, &large), y = tarn_builder_tensor(b, &large);
    tarn_builder_op(b, &(struct tarn_op_info){.outputs = TARN_TENSORS(x, y)});
    assert_int_equal(tarn_builder_finish(b, &graph, NULL), TARN_OK);
    set_up(&fixture, graph, 1);
    assert_int_equal(tarn_windows_place(&fixture.problem, &options, offset, &footprint), TARN_OK);
    assert_int_equal(footprint, UINT64_MAX);
    assert_true(offset[0] == 12 && offset[1] == 34);
    tear_down(&fixture);
}

static void radix_sort_is_stable(void **state)
{
    enum { COUNT = 3000 };
    static uint64_t packed[COUNT], spare[COUNT];
    (void)state;
    for (uint32_t bits = 1; bits <= 32; bits++) {
        uint32_t priority_max = (uint32_t)((UINT64_C(1) << bits) - 1);
        for (uint32_t i = 0; i < COUNT; i++) {
            uint64_t draw = (i % 1000 + 1) * UINT64_C(0x9e3779b97f4a7c15); /* each thrice */
            packed[i] = tarn_radix_pack((uint32_t)(draw >> 32) & priority_max, i);
        }
        const uint64_t *sorted = tarn_radix_sort(packed, spare, COUNT, priority_max);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            sum += tarn_radix_number(sorted[i]);
            if (i > 0)
                assert_true(sorted[i - 1] <
                            sorted[i]); /* numbers tell equal priority orders apart */
        }
        assert_int_equal(sum, (uint64_t)COUNT * (COUNT - 1) / 2);
    }
}

static void radix_sort_of_wide_priorities_is_stable(void **state)
{
    enum { COUNT = 3000 };
    static struct tarn_radix_item items[COUNT], spare[COUNT];
    (void)state;
    for (uint32_t bits = 1; bits <= 64; bits++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < COUNT; i++) /* each priority order thrice */
            items[i] = (struct tarn_radix_item){
                (i % 1000 + 1) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits), i};
        const struct tarn_radix_item *sorted = tarn_radix_sort_items(items, spare, COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            sum += sorted[i].number;
            if (i > 0 && sorted[i - 1].key == sorted[i].key)
                assert_true(sorted[i - 1].number < sorted[i].number);
            else if (i > 0)
                assert_true(sorted[i - 1].key < sorted[i].key);
        }
        assert_int_equal(sum, (uint64_t)COUNT * (COUNT - 1) / 2);
    }
    assert_ptr_equal(tarn_radix_sort_items(items, spare, 0), items);
}

static void tiny_windows_of_random_graphs_give_safe_plans(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < seeds(); seed++) {
        struct fixture fixture;
        uint64_t footprint;
        set_up_random(&fixture, seed, OPS_MAX);
        struct tarn_windows_options options = {.width = 1 + (uint32_t)(seed % 9),
                                               .threads = 1,
                                               .far_windows = 1 + (uint32_t)(seed % 3),
                                               .crossing_max = 1 + (uint32_t)(seed % 5)};
        uint64_t *offset = place(&fixture, options, &footprint);
        assert_int_equal(check_plan(&fixture, offset), footprint);
        assert_true(footprint >= fixture.problem.antichain.bound);
        free(offset);
        tear_down(&fixture);
    }
}

static struct tarn_graph *large_graph(uint32_t i)
{
    switch (i) {
    case 0: return dnn_graph(&(struct dnn_graph_options){3000, 6});
    case 1: return dnn_graph(&(struct dnn_graph_options){2000, 3});
    case 2: return cut_graph(&(struct cut_graph_options){CUT_CHAIN, 4000, 1});
    case 3: return cut_graph(&(struct cut_graph_options){CUT_CHAIN, 3000, 55});
    case 4: return cut_graph(&(struct cut_graph_options){CUT_UNCOUPLED, 3000, 5});
    case 5: return cut_graph(&(struct cut_graph_options){CUT_CHAIN, 3000, 512});
    case 6: return coupled_graph(&(struct coupled_graph_options){COUPLED_EVERY, 3000, 3, 200, 1});
    }
    return NULL;
}

static void large_graphs_are_safe_and_do_not_depend_on_the_number_of_threads(void **state)
{
    uint32_t runs = getenv("TARN_DRAWS") ? CAMPAIGN_RUNS : RUNS;
    struct tarn_graph *graph;
    (void)state;
    for (uint32_t i = 0; (graph = large_graph(i)); i++) {
        struct fixture fixture;
        set_up(&fixture, graph, 512);
        for (uint32_t width = 64; width <= 1024; width *= 4) {
            struct tarn_windows_options options = {
                .width = width, .threads = 1, .crossing_max = width};
            uint64_t footprint, other_footprint;
            uint64_t *one = place(&fixture, options, &footprint);
            assert_int_equal(check_plan(&fixture, one), footprint);
            assert_true(footprint >= fixture.problem.antichain.bound);
            for (uint32_t run = 0; run < runs; run++)
                for (options.threads = 1; options.threads <= (SANITIZED ? 2 : 8);
                     options.threads *= 2) {
                    uint64_t *other = place(&fixture, options, &other_footprint);
                    assert_memory_equal(one, other,
                                        fixture.problem.conflicts.reuse.count * sizeof *one);
                    free(other);
                }
            free(one);
        }
        tear_down(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storages_of_different_windows_are_safe),
        cmocka_unit_test(a_large_group_is_placed_with_what_crosses),
        cmocka_unit_test(what_crosses_tells_the_windows_that_it_meets),
        cmocka_unit_test(lifetimes_enclose_every_conflict),
        cmocka_unit_test(parts_keep_every_conflict_and_block),
        cmocka_unit_test(clusters_share_no_byte_that_is_not_safe),
        cmocka_unit_test(what_a_line_produces_from_the_end_of_a_storage_on_may_reuse_it),
        cmocka_unit_test(priorities_at_once_give_the_plan_of_one_after_the_other),
        cmocka_unit_test(a_stream_without_holes_reaches_its_bound),
        cmocka_unit_test(what_comes_first_where_it_ended_too_high_ends_lower),
        cmocka_unit_test(streams_that_seldom_wait_lose_little_to_holes),
        cmocka_unit_test(large_groups_do_not_lie_on_top_of_each_other),
        cmocka_unit_test(the_best_of_all_widths_is_taken),
        cmocka_unit_test(the_first_plan_is_there_before_the_search_goes_on),
        cmocka_unit_test(windows_that_are_too_high_to_be_counted_leave_the_plan_as_it_was),
        cmocka_unit_test(radix_sort_is_stable),
        cmocka_unit_test(radix_sort_of_wide_priorities_is_stable),
        cmocka_unit_test(tiny_windows_of_random_graphs_give_safe_plans),
        cmocka_unit_test(large_graphs_are_safe_and_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
