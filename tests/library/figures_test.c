/* What bounds and searches find on fixed problems is exactly what it was: a sum that says how good
 * it is, counted work, and a checksum of all that they return. A change that is meant to be none
 * changes nothing here; one that is meant changes rows, which a failing test prints anew.
 * Cost: about three seconds. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/coupled_graph.h"
#include "bench/cut_graph.h"
#include "bench/rough_graph.h"
#include "planner/place/core.h"
#include "planner/place/effort/effort.h"
#include "planner/place/exact/exact.h"
#include "planner/place/improve.h"
#include "planner/place/lowest/moves.h"
#include "planner/place/place.h"
#include "planner/place/windows/window.h"
#include "planner/place/windows/windows.h"
#include "streams/order/gap_bound.h"
#include "streams/order/worst.h"
#include "support/place_fixture.h"
#include "support/random_graph.h"
#include "tarn/simulate.h"

struct figures {
    uint64_t sum;      /* bytes, or nodes of exact searches: the lower the better, but for bounds */
    uint64_t work;     /* see work.h */
    uint64_t checksum; /* FNV-1a, a number at a time */
};

static void take(struct figures *figures, uint64_t number)
{
    figures->checksum = (figures->checksum ^ number) * UINT64_C(0x100000001b3);
    figures->checksum ^= figures->checksum >> 29;
}

static void take_text(struct figures *figures, const char *text)
{
    for (; text && *text; text++) take(figures, (unsigned char)*text);
}

static void take_list(struct figures *figures, const uint32_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++) take(figures, list[i]);
}

static void take_plan(struct figures *figures, const struct fixture *of, const uint64_t *offset,
                      uint64_t footprint)
{
    figures->sum += footprint;
    for (uint32_t a = 0; a < of->problem.conflicts.reuse.count; a++) take(figures, offset[a]);
}

/* ---- Problems ---- */

typedef struct tarn_graph *(*graph_maker)(uint64_t seed);

static struct tarn_graph *small_random(uint64_t seed)
{
    struct random_graph_options options = random_graph_knobs(seed, 60);
    return random_graph(&options);
}

static struct tarn_graph *with_groups(uint64_t seed)
{
    return random_graph(&(struct random_graph_options){.seed = seed,
                                                       .ops = 30 + (uint32_t)seed,
                                                       .streams = 1 + (uint32_t)(seed % 4),
                                                       .view_share = 10,
                                                       .workspace_share = 10,
                                                       .group_share = 40,
                                                       .tiny_share = 10});
}

static struct tarn_graph *rough(uint64_t seed)
{
    return rough_graph(&(struct rough_graph_options){(enum rough_kind)(seed % ROUGH_KINDS),
                                                     40 + (uint32_t)seed, 1 + (uint32_t)(seed % 5),
                                                     seed});
}

static struct tarn_graph *many(uint64_t seed)
{
    const struct coupled_graph_options layers = {COUPLED_LAYERS, 1500, 6, 0, 1},
                                       every = {COUPLED_EVERY, 1200, 8, 40, 1},
                                       never = {COUPLED_NEVER, 1200, 5, 0, 1},
                                       randomly = {COUPLED_RANDOMLY, 1100, 4, 0, seed};
    switch (seed % 6) {
    case 0: return coupled_graph(&layers);
    case 1: return coupled_graph(&every);
    case 2: return coupled_graph(&never);
    case 3: return coupled_graph(&randomly);
    case 4: return cut_graph(&(struct cut_graph_options){CUT_CHAIN, 1500, 7});
    default: return rough_graph(&(struct rough_graph_options){ROUGH_GROUPS, 1300, 3, seed});
    }
}

/* More streams than every priority order is worth its work on. */
static struct tarn_graph *wide(uint64_t seed)
{
    return coupled_graph(&(struct coupled_graph_options){COUPLED_EVERY, 2300, 290, 4, seed});
}

static struct tarn_graph *huge(uint64_t seed)
{
    return random_graph(&(struct random_graph_options){
        .seed = seed, .ops = 20, .streams = 2, .size_max = (uint32_t)1 << 30, .tiny_share = 20});
}

static struct tarn_graph *lengthy(uint64_t seed)
{
    (void)seed;
    return cut_graph(&(struct cut_graph_options){CUT_CHAIN, 34000, 1});
}

static uint64_t alignment_of(uint64_t seed) { return UINT64_C(1) << (seed % 4 * 3); }

typedef void (*trial)(struct figures *figures, const struct fixture *of, uint64_t *offset,
                      uint64_t seed);

/* A trial on the problems of seeds 0 to seeds - 1, and the figures it has. */
struct row {
    const char *name;
    graph_maker make;
    uint64_t seeds;
    trial act;
    struct figures figures;
};

static struct figures figures_of(const struct row *row)
{
    struct figures figures = {0};
    for (uint64_t seed = 0; seed < row->seeds; seed++) {
        struct fixture of;
        set_up(&of, row->make(seed), alignment_of(seed));
        uint64_t *offset = calloc((size_t)of.problem.conflicts.reuse.count + 1, sizeof *offset);
        row->act(&figures, &of, offset, seed);
        free(offset);
        tear_down(&of);
    }
    take(&figures, figures.work);
    return figures;
}

/* Prints every row that has changed. */
static void assert_rows(const struct row *rows, size_t count)
{
    size_t changed = 0;
    for (size_t i = 0; i < count; i++) {
        struct figures before = rows[i].figures, now = figures_of(&rows[i]);
        if (memcmp(&now, &before, sizeof now) == 0) continue;
        changed++;
        print_error("%s: now {%" PRIu64 ", %" PRIu64 ", 0x%" PRIx64 "}, before {%" PRIu64
                    ", %" PRIu64 ", 0x%" PRIx64 "}\n",
                    rows[i].name, now.sum, now.work, now.checksum, before.sum, before.work,
                    before.checksum);
    }
    assert_int_equal(changed, 0);
}

/* ---- Bounds ---- */

static void bound_within(struct figures *figures, const struct fixture *of, uint64_t *offset,
                         uint64_t seed)
{
    (void)offset;
    for (uint64_t work = 1; work <= 4096; work *= 4 + seed % 2) {
        struct tarn_antichain antichain;
        struct tarn_region region = {0};
        assert_int_equal(tarn_antichain_init_within(&antichain, &region,
                                                    &of->problem.conflicts.reuse, of->graph,
                                                    of->problem.blocks.reserved, work),
                         TARN_OK);
        figures->sum += antichain.bound;
        take_list(figures, antichain.threshold, antichain.streams_count);
        tarn_region_finish(&region);
    }
}

static void bound_with_gaps(struct figures *figures, const struct fixture *of, uint64_t *offset,
                            uint64_t seed)
{
    const struct tarn_reserve reserve = {&of->problem.conflicts.reuse, of->graph,
                                         of->problem.blocks.reserved, alignment_of(seed)};
    (void)offset;
    for (uint32_t effort = 500; effort < 300000; effort *= 3) {
        struct tarn_gap_bound bound;
        struct tarn_region region = {0};
        assert_int_equal(
            tarn_gap_bound_init(&bound, &region, &of->problem.antichain, &reserve, effort),
            TARN_OK);
        figures->sum += bound.bound;
        take_list(figures, bound.threshold, bound.streams_count);
        take_list(figures, bound.gaps, bound.gaps_count);
        tarn_region_finish(&region);
    }
}

/* From the middle of the list order. */
static void worst_of(struct figures *figures, const struct fixture *of, uint64_t *offset,
                     uint64_t seed)
{
    struct tarn_clocks clocks;
    struct tarn_worst worst;
    struct tarn_region region = {0};
    uint32_t *begun = calloc((size_t)of->graph->streams_count + 1, sizeof *begun);
    (void)offset;
    for (uint32_t i = 0; i < of->graph->ops_count / (1 + seed % 3); i++)
        begun[of->graph->ops[of->graph->order[i]].stream]++;
    assert_int_equal(tarn_clocks_init(&clocks, &region, of->graph), TARN_OK);
    assert_int_equal(tarn_worst_init(&worst, &region, &clocks, &of->problem.conflicts.reuse,
                                     of->graph, of->problem.blocks.reserved, begun),
                     TARN_OK);
    figures->sum += worst.reached;
    take(figures, worst.bound);
    take_list(figures, worst.begun, of->graph->streams_count);
    tarn_region_finish(&region);
    free(begun);
}

static const struct row bounds[] = {
    {"antichains", small_random, 150, bound_within, {45931939, 0, 0x83e895a509b77b51}},
    {"antichains of many", many, 6, bound_within, {7563559542, 0, 0x6e3922a2b7593686}},
    {"gaps", with_groups, 60, bound_with_gaps, {23342526, 0, 0x2febfe5cbe046846}},
    {"worst states", small_random, 150, worst_of, {7050833, 0, 0x764b9feef1bbda5c}},
};

static void bounds_are_what_they_were(void **state)
{
    (void)state;
    assert_rows(bounds, sizeof bounds / sizeof *bounds);
}

/* ---- Priority orders, local searches and windows ---- */

static void note_progress(void *user, uint64_t footprint, uint64_t steps)
{
    take(user, footprint);
    take(user, steps);
}

static void improve(struct figures *figures, const struct fixture *of, uint64_t *offset,
                    const struct tarn_improve_options *options)
{
    struct tarn_improve_report report;
    uint64_t footprint = tarn_blocks_place_in_a_row(&of->problem.blocks, offset);
    assert_int_equal(tarn_improve_place(&of->problem, options, offset, &footprint, &report),
                     TARN_OK);
    take_plan(figures, of, offset, footprint);
    take_text(figures, report.priority);
    take(figures, report.by_local_search);
    take(figures, report.cut);
    take(figures, report.steps);
    figures->work += report.work;
}

/* Without a limit, with one that priority orders keep, and with one that cuts. */
static void improve_within_limits(struct figures *figures, const struct fixture *of,
                                  uint64_t *offset, uint64_t seed)
{
    struct tarn_improve_options options = {.bound = of->problem.antichain.bound,
                                           .seed = seed,
                                           .threads = 1, /* reports progress in a fixed order */
                                           .progress = note_progress,
                                           .user = figures};
    if (of->problem.blocks.count < 2000) improve(figures, of, offset, &options);
    for (uint64_t work = 3000; work<100000000; work *= of->problem.blocks.count> 2000 ? 1000 : 10) {
        options.work_max = work;
        improve(figures, of, offset, &options);
    }
    if (of->problem.blocks.count > 1000) return;
    options.steps = 150 + 37 * seed % 100;
    options.patience = seed % 2 ? 60 : 0;
    improve(figures, of, offset, &options);
    options.work_max = 0;
    options.capacity = of->problem.antichain.bound + of->problem.antichain.bound / (2 + seed % 50);
    improve(figures, of, offset, &options);
}

static void place_by_windows(struct figures *figures, const struct fixture *of, uint64_t *offset,
                             uint64_t seed)
{
    for (uint32_t width = 16; width <= 256; width *= 4) {
        struct tarn_effort effort = {.max = seed % 2 ? 6 : UINT64_MAX, .must = seed % 2};
        const struct tarn_windows_options options = {.aim = of->problem.antichain.bound,
                                                     .width = width,
                                                     .threads = 2,
                                                     .far_windows = 1 + (uint32_t)(seed % 3),
                                                     .crossing_max = width / 4,
                                                     .effort = &effort};
        uint64_t footprint = UINT64_MAX;
        assert_int_equal(tarn_windows_place(&of->problem, &options, offset, &footprint), TARN_OK);
        take_plan(figures, of, offset, footprint);
        take(figures, effort.crossing);
        take(figures, effort.priority_work);
        take(figures, effort.priority_clusters);
        figures->work += effort.spent;
    }
}

/* Longer than a slice of a placement; the first plan lower than a row ends it. */
static void improve_long(struct figures *figures, const struct fixture *of, uint64_t *offset,
                         uint64_t seed)
{
    const struct tarn_improve_options options = {
        .capacity = tarn_blocks_place_in_a_row(&of->problem.blocks, offset) - 1,
        .steps = 1,
        .seed = seed,
        .threads = 1};
    assert_true(of->problem.blocks.count > 1 << 15);
    improve(figures, of, offset, &options);
}

/* Where no priority order makes a plan that can be counted in units of the aim, no local search
 * begins. */
static void improve_in_vain(struct figures *figures, const struct fixture *of, uint64_t *offset,
                            uint64_t seed)
{
    const struct tarn_improve_options options = {
        .bound = 1, .steps = 10, .seed = seed, .threads = 1};
    improve(figures, of, offset, &options);
}

/* One local search that closes holes more often than others. */
static void local_search_alone(struct figures *figures, const struct fixture *of, uint64_t *offset,
                               uint64_t seed)
{
    struct tarn_region region = {0};
    struct tarn_lowest lowest;
    struct tarn_traits traits;
    struct tarn_local_search local;
    uint32_t count = of->problem.conflicts.reuse.count;
    int32_t *priority = calloc((size_t)count + 1, sizeof *priority),
            *floor = calloc((size_t)count + 1, sizeof *floor);
    uint64_t end = tarn_blocks_place_in_a_row(&of->problem.blocks, offset);
    assert_int_equal(tarn_lowest_init(&lowest, &region, &of->problem, end), TARN_OK);
    assert_int_equal(tarn_traits_init(&traits, &region, &lowest), TARN_OK);
    const struct tarn_local_search_setting setting = {
        60, 5, {tarn_lowest_units(&lowest, of->problem.antichain.bound), 1, seed % 2}};
    assert_int_equal(tarn_local_search_init(&local, &region, &lowest, &traits, &setting, seed),
                     TARN_OK);
    if (seed % 4 < 2)
        assert_int_equal(tarn_priorities_fill(&lowest, &region, &traits, 0, priority), TARN_OK);
    tarn_local_search_start(&local, priority, floor);
    for (uint32_t i = 0; lowest.count > 0 && i < 200; i++) tarn_local_search_step(&local);
    figures->sum += tarn_lowest_footprint(&lowest, local.replay.offset);
    figures->work += local.replay.greedy.work;
    for (uint32_t i = 0; i < lowest.count; i++) take(figures, (uint64_t)local.replay.offset[i]);
    tarn_region_finish(&region);
    free(priority);
    free(floor);
}

static void place_by_widths(struct figures *figures, const struct fixture *of, uint64_t *offset,
                            uint64_t seed)
{
    uint64_t work = tarn_work_default(of->problem.conflicts.reuse.count);
    struct tarn_effort effort = {.max = work >> seed, .must = true};
    const struct tarn_widths_options options = {
        .aim = of->problem.antichain.bound, .threads = 2, .effort = &effort};
    uint64_t footprint = UINT64_MAX;
    assert_int_equal(tarn_widths_place(&of->problem, &options, offset, &footprint), TARN_OK);
    take_plan(figures, of, offset, footprint);
    take(figures, effort.crossing);
    figures->work += effort.spent;
}

static void split_streams(struct figures *figures, const struct fixture *of, uint64_t *offset,
                          uint64_t seed)
{
    uint32_t phases, streams = of->graph->streams_count;
    uint32_t *phase = calloc((size_t)streams + 1, sizeof *phase);
    (void)offset;
    for (uint32_t far = 1; far < 300; far *= 2 + (uint32_t)(seed % 2)) {
        assert_int_equal(tarn_split_streams(&of->problem, far, phase, &phases), TARN_OK);
        figures->sum += phases;
        take_list(figures, phase, streams);
    }
    free(phase);
}

static const struct row improvements[] = {
    {"random", small_random, 30, improve_within_limits, {28273087, 460188590, 0x2727fa2e352c036}},
    {"rough", rough, 28, improve_within_limits, {10066181184, 301632320, 0xf7922c565369393b}},
    {"many", many, 6, improve_within_limits, {7262890908, 1226748856, 0xada0a554871e4fb3}},
    {"wide", wide, 1, improve_within_limits, {652965440, 607594936, 0x343afc224354d539}},
    {"long", lengthy, 1, improve_long, {211927552, 0, 0x58180104d1afabd4}},
    {"too high", huge, 10, improve_in_vain, {81581673671, 0, 0xbd786a2608ebab1c}},
    {"local searches", rough, 60, local_search_alone, {2646207680, 318070084, 0x49cce94f278d126b}},
    {"windows", many, 6, place_by_windows, {3663733180, 50660210, 0xfdcf1a799c8bd3d3}},
    {"small windows", small_random, 40, place_by_windows, {8853479, 26481606, 0xd39c428ac0440f80}},
    {"widths", many, 6, place_by_widths, {1209766554, 270216698, 0x7ce9285081f37881}},
    {"streams apart", many, 6, split_streams, {111, 0, 0xc8fc3bd6d4268a36}},
    {"few streams apart", small_random, 60, split_streams, {769, 0, 0xd6a7dde39aedbabf}},
};

static void priorities_local_searches_and_windows_are_what_they_were(void **state)
{
    (void)state;
    assert_rows(improvements, sizeof improvements / sizeof *improvements);
}

/* ---- Exact search and cores ---- */

static void search_exactly(struct figures *figures, const struct fixture *of, uint64_t *offset,
                           uint64_t seed)
{
    for (uint64_t percent = 98; percent < 110; percent += 4) {
        const struct tarn_exact_options options = {.seed = seed, .nodes_max = 1500, .threads = 2};
        struct tarn_exact_report report;
        enum tarn_status status =
            tarn_exact_place(&of->problem, NULL, of->problem.antichain.bound * percent / 100,
                             &options, offset, &report);
        take(figures, status);
        if (status != TARN_OK) continue; /* too many */
        figures->sum += report.nodes;
        figures->work += report.work;
        take(figures, report.result);
        take(figures, report.visits);
        take(figures, report.rounds);
        take(figures, report.storages);
        if (report.result == TARN_EXACT_FOUND) take_plan(figures, of, offset, 0);
    }
}

static void search_by_cores(struct figures *figures, const struct fixture *of, uint64_t *offset,
                            uint64_t seed)
{
    const struct tarn_core_options options = {.aim = of->problem.antichain.bound,
                                              .visits = 300000,
                                              .work_max = UINT64_MAX / 2,
                                              .seed = seed,
                                              .threads = 2};
    struct tarn_core_report report;
    uint64_t footprint = tarn_blocks_place_in_a_row(&of->problem.blocks, offset);
    assert_int_equal(tarn_core_place(&of->problem, &options, offset, &footprint, &report), TARN_OK);
    take_plan(figures, of, offset, footprint);
    take(figures, report.impossible);
    figures->work += report.work;
}

static const struct row exact_searches[] = {
    {"exact, random", small_random, 40, search_exactly, {47056, 274487750, 0xbda32713ad85e5ca}},
    {"exact, rough", rough, 28, search_exactly, {19234, 43477030, 0x3b98f840de4826cf}},
    {"cores, random", small_random, 40, search_by_cores, {6263388, 52446530, 0xae15a40e8ce34b84}},
    {"cores, rough", rough, 28, search_by_cores, {1342183744, 64922217, 0xfeb039b3fe987e98}},
};

static void exact_searches_are_what_they_were(void **state)
{
    (void)state;
    assert_rows(exact_searches, sizeof exact_searches / sizeof *exact_searches);
}

/* ---- Placement as a whole ---- */

static enum tarn_status keep_bound(void *user, uint64_t *bound)
{
    take(user, *bound);
    return TARN_OK;
}

static void place_by_methods(struct figures *figures, const struct fixture *of, uint64_t *offset,
                             uint64_t seed)
{
    for (uint32_t method = TARN_PLACE_ALL; method <= TARN_PLACE_SOMAS; method++) {
        struct tarn_place_result result = {.offset = offset};
        const struct tarn_place_request request = {
            .method = (enum tarn_place_method)method,
            .somas = (uint32_t)(seed % 20),
            .raise_bound = keep_bound,
            .user = figures,
            .improve = {.bound = of->problem.antichain.bound,
                        .steps = seed % 4 ? 5 + seed : 0,
                        .work_max = UINT64_C(20000) << seed % 10,
                        .seed = seed,
                        .threads = 1,
                        .progress = note_progress,
                        .user = figures}};
        assert_int_equal(tarn_place(&of->problem, &request, &result), TARN_OK);
        take_plan(figures, of, offset, result.footprint);
        take_text(figures, result.method);
        take(figures, result.stopped);
        take(figures, result.cannot_fit);
    }
}

static const struct row plans[] = {
    {"plans, random", small_random, 40, place_by_methods, {14803860, 0, 0x12a9be415e60c5c1}},
    {"plans, rough", rough, 28, place_by_methods, {4644100992, 0, 0xfe5457b7d0a3ba11}},
};

static void plans_are_what_they_were(void **state)
{
    (void)state;
    assert_rows(plans, sizeof plans / sizeof *plans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_what_they_were),
        cmocka_unit_test(priorities_local_searches_and_windows_are_what_they_were),
        cmocka_unit_test(exact_searches_are_what_they_were),
        cmocka_unit_test(plans_are_what_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
