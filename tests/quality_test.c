/* What searching is worth: keys are what their names say; walks, windows and exact search reach on
 * fixed problems what they reached when this was written, in as many steps. A change that is meant
 * to trade one for another changes the figures here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "bench/coupled_graph.h"
#include "bench/cut_graph.h"
#include "bench/rough_graph.h"
#include "planner/place/core.h"
#include "planner/place/exact.h"
#include "planner/place/improve.h"
#include "planner/place/keys.h"
#include "planner/place/lowest.h"
#include "planner/place/widths.h"
#include "planner/place/windows.h"
#include "random_graph.h"

struct fixture {
    struct tarn_graph *graph;
    struct tarn_reuse reuse;
    struct tarn_blocks blocks;
    struct tarn_conflicts conflicts;
    struct tarn_antichain antichain;
    struct tarn_problem problem;
    uint64_t *offset, end; /* one block behind the other */
};

/* The graph becomes the fixture's. */
static void set_up(struct fixture *fixture, struct tarn_graph *graph, uint64_t alignment)
{
    struct tarn_clocks clocks;
    fixture->graph = graph;
    assert_int_equal(tarn_clocks_init(&clocks, graph), TARN_OK);
    assert_int_equal(tarn_reuse_init(&fixture->reuse, &clocks, graph), TARN_OK);
    tarn_clocks_finish(&clocks);
    assert_int_equal(tarn_blocks_init(&fixture->blocks, graph, false, alignment, NULL), TARN_OK);
    assert_int_equal(tarn_conflicts_init(&fixture->conflicts, &fixture->reuse, graph), TARN_OK);
    assert_int_equal(
        tarn_antichain_init(&fixture->antichain, &fixture->reuse, graph, fixture->blocks.reserved),
        TARN_OK);
    fixture->problem = (struct tarn_problem){graph, &fixture->blocks, &fixture->conflicts};
    fixture->offset = calloc((size_t)fixture->reuse.count + 1, sizeof *fixture->offset);
    fixture->end = tarn_blocks_place_in_a_row(&fixture->blocks, fixture->offset);
}

static void set_up_random(struct fixture *fixture, uint64_t seed, uint32_t ops_max)
{
    struct random_graph_options options = random_graph_knobs(seed, ops_max);
    set_up(fixture, random_graph(&options), UINT64_C(1) << (seed % 4 * 3));
}

static void set_up_rough(struct fixture *fixture, uint64_t seed, uint32_t storages)
{
    const struct rough_graph_options options = {(enum rough_kind)(seed % ROUGH_KINDS), storages,
                                                1 + (uint32_t)(seed % 5), seed};
    set_up(fixture, rough_graph(&options), 1);
}

static void tear_down(struct fixture *fixture)
{
    free(fixture->offset);
    tarn_antichain_finish(&fixture->antichain);
    tarn_conflicts_finish(&fixture->conflicts);
    tarn_blocks_finish(&fixture->blocks);
    tarn_reuse_finish(&fixture->reuse);
    tarn_graph_destroy(fixture->graph);
}

/* ---- Keys ---- */

struct block_traits {
    bool in_antichain;
    double life, conflicts, size;
};

static double life_of(const struct tarn_graph *graph, uint32_t a)
{
    const struct tarn_storage *storage = &graph->storages[a];
    uint32_t begin = graph->rank[storage->producer], end = begin;
    for (uint32_t k = 0; k < storage->touchers_count; k++)
        if (graph->rank[storage->touchers[k]] > end) end = graph->rank[storage->touchers[k]];
    return storage->pinned ? (double)(graph->ops_count - begin) : (double)(end + 1 - begin);
}

/* From the definition, over all members and all pairs. */
static struct block_traits traits_of(const struct fixture *fixture,
                                     const struct tarn_lowest *lowest, uint32_t place)
{
    const struct tarn_block block = tarn_block_at(&fixture->blocks, lowest->block[place]);
    struct block_traits traits = {.size = lowest->size[place]};
    for (uint32_t i = 0; i < block.members_count; i++) {
        uint32_t a = block.members[i];
        double life = life_of(fixture->graph, a), conflicts = 0;
        for (uint32_t b = 0; b < fixture->reuse.count; b++)
            if (a == b || !tarn_reuse_is_safe(&fixture->reuse, a, b))
                conflicts += (double)fixture->blocks.reserved[b];
        if (tarn_antichain_has(fixture->antichain.threshold, &fixture->reuse, a))
            traits.in_antichain = true;
        if (life > traits.life) traits.life = life;
        if (conflicts > traits.conflicts) traits.conflicts = conflicts;
    }
    return traits;
}

static double measure_of(const char *name, const struct block_traits *traits)
{
    if (strcmp(name, "life") == 0) return traits->life;
    if (strcmp(name, "conflicts") == 0) return traits->conflicts;
    if (strcmp(name, "size") == 0) return traits->size;
    if (strcmp(name, "size-life") == 0) return traits->size * traits->life;
    assert_string_equal(name, "conflicts-life");
    return traits->conflicts * sqrt(traits->life);
}

/* Does the block at p come before that at q? Of equal ones the first does. */
static bool comes_first(const char *name, const struct block_traits *traits, uint32_t p, uint32_t q)
{
    const char *antichain = "antichain-";
    if (strncmp(name, antichain, strlen(antichain)) == 0) {
        name += strlen(antichain);
        if (traits[p].in_antichain != traits[q].in_antichain) return traits[p].in_antichain;
    }
    double own = measure_of(name, &traits[p]), other = measure_of(name, &traits[q]);
    return own > other || (own == other && p < q);
}

static void compare_keys(const struct fixture *fixture, const struct tarn_lowest *lowest)
{
    struct tarn_traits given;
    struct block_traits *traits = calloc((size_t)lowest->count + 1, sizeof *traits);
    int32_t *key = calloc((size_t)lowest->count + 1, sizeof *key);
    bool *in_antichain = calloc((size_t)fixture->reuse.count + 1, sizeof *in_antichain);
    for (uint32_t a = 0; a < fixture->reuse.count; a++)
        in_antichain[a] = tarn_antichain_has(fixture->antichain.threshold, &fixture->reuse, a);
    assert_int_equal(tarn_traits_init(&given, lowest, in_antichain), TARN_OK);
    for (uint32_t p = 0; p < lowest->count; p++) traits[p] = traits_of(fixture, lowest, p);
    for (uint32_t i = 0; i < TARN_KEYS_COUNT; i++) {
        assert_int_equal(tarn_keys_fill(lowest, &given, i, key), TARN_OK);
        for (uint32_t p = 0; p < lowest->count; p++) {
            assert_in_range(key[p], 0, TARN_KEY_MAX);
            for (uint32_t q = 0; q < p; q++)
                assert_int_equal(key[p] > key[q], comes_first(tarn_keys_name(i), traits, p, q));
        }
    }
    tarn_traits_finish(&given);
    free(in_antichain);
    free(key);
    free(traits);
}

static void compare_keys_of_plan(const struct fixture *fixture, const struct tarn_lowest *lowest)
{
    int32_t *key = calloc((size_t)lowest->count + 1, sizeof *key);
    uint64_t *offset = calloc((size_t)fixture->reuse.count + 1, sizeof *offset);
    for (uint32_t a = 0; a < fixture->reuse.count; a++)
        offset[a] = (fixture->offset[a] * 37 + 11) % (fixture->end + 1);
    assert_int_equal(tarn_keys_of_plan(lowest, offset, key), TARN_OK);
    for (uint32_t p = 0; p < lowest->count; p++) {
        uint64_t own = offset[tarn_block_at(&fixture->blocks, lowest->block[p]).members[0]];
        for (uint32_t q = 0; q < p; q++) {
            uint64_t other = offset[tarn_block_at(&fixture->blocks, lowest->block[q]).members[0]];
            assert_int_equal(key[p] > key[q], own < other);
        }
    }
    free(offset);
    free(key);
}

static void keys_are_what_their_names_say(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(300); seed++) {
        struct fixture fixture;
        struct tarn_lowest lowest;
        set_up_random(&fixture, seed, 60);
        assert_int_equal(tarn_lowest_init(&lowest, &fixture.problem, UINT64_MAX), TARN_OK);
        compare_keys(&fixture, &lowest);
        compare_keys_of_plan(&fixture, &lowest);
        tarn_lowest_finish(&lowest);
        tear_down(&fixture);
    }
}

/* ---- Searches ---- */

enum { PROBLEMS = 60, WALK_STEPS = 1000, CORE_VISITS = 1000000, NODES_MAX = 5000 };

/* Parts per million of the bound that a footprint is above it. */
static double above(const struct fixture *fixture, uint64_t footprint)
{
    uint64_t bound = tarn_improve_round_bound(&fixture->blocks, fixture->antichain.bound);
    assert_true(bound > 0 && footprint >= bound);
    return 1e6 * (double)(footprint - bound) / (double)bound;
}

/* A figure may not be worse than it was, by more than a thousandth. */
static void assert_no_worse(const char *what, double figure, double before)
{
    print_message("# %s: %.0f\n", what, figure);
    if (figure > before * 1.001) fail_msg("%s: %.0f, which was %.0f", what, figure, before);
}

static double improve(struct fixture *fixture, uint64_t steps, double *steps_taken)
{
    const struct tarn_improve_options options = {
        .bound = fixture->antichain.bound, .steps = steps, .seed = 1, .threads = 2};
    struct tarn_improve_report report;
    uint64_t footprint = tarn_blocks_place_in_a_row(&fixture->blocks, fixture->offset);
    assert_int_equal(tarn_improve_place(&fixture->problem, &fixture->antichain, &options,
                                        fixture->offset, &footprint, &report),
                     TARN_OK);
    *steps_taken += (double)report.steps;
    return above(fixture, footprint);
}

static void keys_and_walks_reach_what_they_did(void **state)
{
    double keys = 0, walks = 0, steps = 0;
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        struct fixture fixture;
        set_up_rough(&fixture, seed, 40 + (uint32_t)seed);
        keys += improve(&fixture, 0, &steps);
        walks += improve(&fixture, WALK_STEPS, &steps);
        tear_down(&fixture);
    }
    assert_no_worse("keys above the bound", keys, 1279010);
    assert_no_worse("walks above the bound", walks, 588253);
    assert_no_worse("steps of walks", steps, 29280);
}

static void cores_reach_what_they_did(void **state)
{
    double cores = 0;
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        struct fixture fixture;
        struct tarn_core_report report;
        set_up_rough(&fixture, seed, 40 + (uint32_t)seed);
        const struct tarn_core_options options = {
            .aim = fixture.antichain.bound, .visits = CORE_VISITS, .seed = seed, .threads = 2};
        double steps = 0, keys = improve(&fixture, 0, &steps);
        uint64_t footprint = tarn_blocks_footprint(&fixture.blocks, fixture.offset);
        assert_int_equal(tarn_core_place(&fixture.problem, &fixture.antichain, &options,
                                         fixture.offset, &footprint, &report),
                         TARN_OK);
        cores += above(&fixture, footprint);
        assert_true(above(&fixture, footprint) <= keys);
        tear_down(&fixture);
    }
    assert_no_worse("cores above the bound", cores, 1152498);
}

static void windows_reach_what_they_did(void **state)
{
    double rough = 0, chains = 0;
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        const struct cut_graph_options chain = {CUT_CHAIN, 500, 1 + (uint32_t)seed % 40};
        struct fixture fixture;
        if (seed % 3)
            set_up_rough(&fixture, seed, 600);
        else
            set_up(&fixture, cut_graph(&chain), 1);
        for (uint32_t width = 16; width <= 256; width *= 4) {
            const struct tarn_windows_options options = {
                .width = width, .threads = 2, .crossing_max = width};
            uint64_t footprint = UINT64_MAX;
            assert_int_equal(tarn_windows_place(&fixture.problem, &fixture.antichain, &options,
                                                fixture.offset, &footprint),
                             TARN_OK);
            *(seed % 3 ? &rough : &chains) += above(&fixture, footprint);
        }
        tear_down(&fixture);
    }
    assert_no_worse("windows of rough graphs above the bound", rough, 8238219);
    assert_no_worse("windows of chains above the bound", chains, 31446);
}

/* By windows of several widths alone, within the usual effort. */
static double place_by_widths(struct fixture *fixture)
{
    struct tarn_effort effort = {.max = tarn_widths_effort(&fixture->problem), .must = true};
    const struct tarn_improve_options options = {.threads = 2};
    uint64_t footprint = UINT64_MAX;
    assert_int_equal(tarn_widths_place(&fixture->problem, &fixture->antichain, &options,
                                       fixture->antichain.bound, &effort, fixture->offset,
                                       &footprint),
                     TARN_OK);
    return above(fixture, footprint);
}

/* So many that windows come first, and that only the best keys follow. */
static void many_blocks_reach_what_they_did(void **state)
{
    static const struct {
        const char *name;
        struct coupled_graph_options options;
        double widths, all;
    } graphs[] = {
        {"layers", {COUPLED_LAYERS, 90000, 6, 0, 1}, 74, 74},
        {"chains", {COUPLED_EVERY, 34000, 16, 1000, 1}, 88301, 74077},
    };
    (void)state;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        struct fixture fixture;
        double steps = 0;
        set_up(&fixture, coupled_graph(&graphs[i].options), 512);
        print_message("# %s:\n", graphs[i].name);
        assert_no_worse("windows above the bound", place_by_widths(&fixture), graphs[i].widths);
        assert_no_worse("all above the bound", improve(&fixture, 0, &steps), graphs[i].all);
        tear_down(&fixture);
    }
}

static void exact_search_takes_no_more_nodes_than_it_did(void **state)
{
    double nodes = 0, visits = 0, unanswered = 0;
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        struct fixture fixture;
        set_up_rough(&fixture, seed, 30 + (uint32_t)(seed % 40));
        for (uint64_t percent = 100; percent < 108; percent += 2) {
            const struct tarn_exact_options options = {
                .seed = seed, .nodes_max = NODES_MAX, .threads = 1};
            struct tarn_exact_report report;
            assert_int_equal(tarn_exact_place(&fixture.problem, NULL,
                                              fixture.antichain.bound * percent / 100, &options,
                                              fixture.offset, &report),
                             TARN_OK);
            nodes += (double)report.nodes;
            visits += (double)report.visits;
            unanswered += report.result == TARN_EXACT_STOPPED;
        }
        tear_down(&fixture);
    }
    assert_no_worse("nodes", nodes, 200883);
    assert_no_worse("visits", visits, 59810237);
    assert_no_worse("unanswered", unanswered, 36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_what_their_names_say),
        cmocka_unit_test(keys_and_walks_reach_what_they_did),
        cmocka_unit_test(cores_reach_what_they_did),
        cmocka_unit_test(windows_reach_what_they_did),
        cmocka_unit_test(many_blocks_reach_what_they_did),
        cmocka_unit_test(exact_search_takes_no_more_nodes_than_it_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
