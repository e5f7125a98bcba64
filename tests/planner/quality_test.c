/* What searching is worth: priority orders are what their names say; local searches, windows and
 * exact search reach on fixed problems what they reached when this was written, in as many steps. A
 * change that is meant to trade one for another changes the figures here. */
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
#include "planner/place/exact/exact.h"
#include "planner/place/improve.h"
#include "planner/place/lowest/lowest.h"
#include "planner/place/windows/windows.h"
#include "support/place_fixture.h"
#include "support/random_graph.h"

struct trial {
    struct fixture of;
    uint64_t *offset, end; /* one block behind the other */
};

static void begin_in_a_row(struct trial *trial)
{
    trial->offset =
        calloc((size_t)trial->of.problem.conflicts.reuse.count + 1, sizeof *trial->offset);
    trial->end = tarn_blocks_place_in_a_row(&trial->of.problem.blocks, trial->offset);
}

/* The graph becomes the trial's. */
static void begin(struct trial *trial, struct tarn_graph *graph, uint64_t alignment)
{
    set_up(&trial->of, graph, alignment);
    begin_in_a_row(trial);
}

static void begin_random(struct trial *trial, uint64_t seed, uint32_t ops_max)
{
    set_up_random(&trial->of, seed, ops_max);
    begin_in_a_row(trial);
}

static void begin_rough(struct trial *trial, uint64_t seed, uint32_t storages)
{
    const struct rough_graph_options options = {(enum rough_kind)(seed % ROUGH_KINDS), storages,
                                                1 + (uint32_t)(seed % 5), seed};
    begin(trial, rough_graph(&options), 1);
}

static void finish(struct trial *trial)
{
    free(trial->offset);
    tear_down(&trial->of);
}

/* ---- Priority orders ---- */

struct block_traits {
    bool in_antichain;
    double life, conflicts, size;
};

static double life_of(const struct tarn_graph *graph, uint32_t a)
{
    const struct tarn_storage *storage = &graph->storages[a];
    uint32_t begin = graph->rank[storage->producer], end = begin;
    for (uint32_t k = 0; k < storage->users_count; k++)
        if (graph->rank[tarn_storage_users(graph, storage)[k]] > end)
            end = graph->rank[tarn_storage_users(graph, storage)[k]];
    return storage->pinned ? (double)(graph->ops_count - begin) : (double)(end + 1 - begin);
}

/* From the definition, over all members and all pairs. */
static struct block_traits traits_of(const struct trial *trial, const struct tarn_lowest *lowest,
                                     uint32_t place)
{
    const struct tarn_block block = tarn_block_at(&trial->of.problem.blocks, lowest->block[place]);
    struct block_traits traits = {.size = lowest->size[place]};
    for (uint32_t i = 0; i < block.members_count; i++) {
        uint32_t a = block.members[i];
        double life = life_of(trial->of.graph, a), conflicts = 0;
        for (uint32_t b = 0; b < trial->of.problem.conflicts.reuse.count; b++)
            if (a == b || !tarn_reuse_is_safe(&trial->of.problem.conflicts.reuse, a, b))
                conflicts += (double)trial->of.problem.blocks.reserved[b];
        if (tarn_antichain_has(trial->of.problem.antichain.threshold,
                               &trial->of.problem.conflicts.reuse, a))
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

static void compare_priorities(struct trial *trial, const struct tarn_lowest *lowest)
{
    struct tarn_traits given;
    struct block_traits *traits = calloc((size_t)lowest->count + 1, sizeof *traits);
    int32_t *priority = calloc((size_t)lowest->count + 1, sizeof *priority);
    assert_int_equal(tarn_traits_init(&given, &trial->of.region, lowest), TARN_OK);
    for (uint32_t p = 0; p < lowest->count; p++) traits[p] = traits_of(trial, lowest, p);
    for (uint32_t i = 0; i < TARN_PRIORITIES_COUNT; i++) {
        assert_int_equal(tarn_priorities_fill(lowest, &trial->of.region, &given, i, priority),
                         TARN_OK);
        for (uint32_t p = 0; p < lowest->count; p++) {
            assert_in_range(priority[p], 0, TARN_PRIORITY_MAX);
            for (uint32_t q = 0; q < p; q++)
                assert_int_equal(priority[p] > priority[q],
                                 comes_first(tarn_priorities_name(i), traits, p, q));
        }
    }
    free(priority);
    free(traits);
}

static void compare_priorities_of_plan(struct trial *trial, const struct tarn_lowest *lowest)
{
    int32_t *priority = calloc((size_t)lowest->count + 1, sizeof *priority);
    uint64_t *offset = calloc((size_t)trial->of.problem.conflicts.reuse.count + 1, sizeof *offset);
    for (uint32_t a = 0; a < trial->of.problem.conflicts.reuse.count; a++)
        offset[a] = (trial->offset[a] * 37 + 11) % (trial->end + 1);
    assert_int_equal(tarn_priorities_of_plan(lowest, &trial->of.region, offset, priority), TARN_OK);
    for (uint32_t p = 0; p < lowest->count; p++) {
        uint64_t own =
            offset[tarn_block_at(&trial->of.problem.blocks, lowest->block[p]).members[0]];
        for (uint32_t q = 0; q < p; q++) {
            uint64_t other =
                offset[tarn_block_at(&trial->of.problem.blocks, lowest->block[q]).members[0]];
            assert_int_equal(priority[p] > priority[q], own < other);
        }
    }
    free(offset);
    free(priority);
}

static void priorities_are_what_their_names_say(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(300); seed++) {
        struct trial trial;
        struct tarn_lowest lowest;
        begin_random(&trial, seed, 60);
        assert_int_equal(tarn_lowest_init(&lowest, &trial.of.region, &trial.of.problem, UINT64_MAX),
                         TARN_OK);
        compare_priorities(&trial, &lowest);
        compare_priorities_of_plan(&trial, &lowest);
        finish(&trial);
    }
}

/* ---- Searches ---- */

#define WORK_MAX UINT64_C(8000000000)

enum { PROBLEMS = 60, LOCAL_STEPS = 1000, CORE_VISITS = 1000000, NODES_MAX = 5000 };

/* Parts per million of the bound that a footprint is above it. */
static double above(const struct trial *trial, uint64_t footprint)
{
    uint64_t bound =
        tarn_improve_round_bound(&trial->of.problem.blocks, trial->of.problem.antichain.bound);
    assert_true(bound > 0 && footprint >= bound);
    return 1e6 * (double)(footprint - bound) / (double)bound;
}

/* A figure may not be worse than it was, by more than a thousandth. */
static void assert_no_worse(const char *what, double figure, double before)
{
    print_message("# %s: %.0f\n", what, figure);
    if (figure > before * 1.001) fail_msg("%s: %.0f, which was %.0f", what, figure, before);
}

static double improve(struct trial *trial, uint64_t steps, double *steps_taken)
{
    const struct tarn_improve_options options = {.bound = trial->of.problem.antichain.bound,
                                                 .steps = steps,
                                                 .work_max = WORK_MAX,
                                                 .seed = 1,
                                                 .threads = 2};
    struct tarn_improve_report report;
    uint64_t footprint = tarn_blocks_place_in_a_row(&trial->of.problem.blocks, trial->offset);
    assert_int_equal(
        tarn_improve_place(&trial->of.problem, &options, trial->offset, &footprint, &report),
        TARN_OK);
    *steps_taken += (double)report.steps;
    return above(trial, footprint);
}

static void priorities_and_locals_reach_what_they_did(void **state)
{
    double priorities = 0, locals = 0, steps = 0;
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        struct trial trial;
        begin_rough(&trial, seed, 40 + (uint32_t)seed);
        priorities += improve(&trial, 0, &steps);
        locals += improve(&trial, LOCAL_STEPS, &steps);
        finish(&trial);
    }
    assert_no_worse("keys above the bound", priorities, 1279010);
    assert_no_worse("walks above the bound", locals, 588253);
    assert_no_worse("steps of walks", steps, 29280);
}

static void cores_reach_what_they_did(void **state)
{
    double cores = 0;
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        struct trial trial;
        struct tarn_core_report report;
        begin_rough(&trial, seed, 40 + (uint32_t)seed);
        const struct tarn_core_options options = {.aim = trial.of.problem.antichain.bound,
                                                  .visits = CORE_VISITS,
                                                  .seed = seed,
                                                  .threads = 2};
        double steps = 0, priorities = improve(&trial, 0, &steps);
        uint64_t footprint = tarn_blocks_footprint(&trial.of.problem.blocks, trial.offset);
        assert_int_equal(
            tarn_core_place(&trial.of.problem, &options, trial.offset, &footprint, &report),
            TARN_OK);
        cores += above(&trial, footprint);
        assert_true(above(&trial, footprint) <= priorities);
        finish(&trial);
    }
    assert_no_worse("cores above the bound", cores, 1152498);
}

static void windows_reach_what_they_did(void **state)
{
    double rough = 0, chains = 0;
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        const struct cut_graph_options chain = {CUT_CHAIN, 500, 1 + (uint32_t)seed % 40};
        struct trial trial;
        if (seed % 3)
            begin_rough(&trial, seed, 600);
        else
            begin(&trial, cut_graph(&chain), 1);
        for (uint32_t width = 16; width <= 256; width *= 4) {
            const struct tarn_windows_options options = {
                .width = width, .threads = 2, .crossing_max = width};
            uint64_t footprint = UINT64_MAX;
            assert_int_equal(
                tarn_windows_place(&trial.of.problem, &options, trial.offset, &footprint), TARN_OK);
            *(seed % 3 ? &rough : &chains) += above(&trial, footprint);
        }
        finish(&trial);
    }
    assert_no_worse("windows of rough graphs above the bound", rough, 8401405);
    assert_no_worse("windows of chains above the bound", chains, 31446);
}

/* By windows of several widths alone. */
static double place_by_widths(struct trial *trial)
{
    struct tarn_effort effort = {.max = WORK_MAX, .must = true};
    const struct tarn_widths_options options = {
        .aim = trial->of.problem.antichain.bound, .threads = 2, .effort = &effort};
    uint64_t footprint = UINT64_MAX;
    assert_int_equal(tarn_widths_place(&trial->of.problem, &options, trial->offset, &footprint),
                     TARN_OK);
    return above(trial, footprint);
}

/* So many that windows come first, and that only the best priority orders follow. */
static void many_blocks_reach_what_they_did(void **state)
{
    static const struct {
        const char *name;
        struct coupled_graph_options options;
        double widths, all;
    } graphs[] = {
        {"layers", {COUPLED_LAYERS, 90000, 6, 0, 1}, 74, 74},
        {"chains", {COUPLED_EVERY, 34000, 16, 1000, 1}, 88301, 74077},
        {"short chains", {COUPLED_EVERY, 6000, 48, 200, 1}, 10701, 10701},
    };
    (void)state;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        struct trial trial;
        double steps = 0;
        begin(&trial, coupled_graph(&graphs[i].options), 512);
        print_message("# %s:\n", graphs[i].name);
        assert_no_worse("windows above the bound", place_by_widths(&trial), graphs[i].widths);
        assert_no_worse("all above the bound", improve(&trial, 0, &steps), graphs[i].all);
        finish(&trial);
    }
}

static void exact_search_takes_no_more_nodes_than_it_did(void **state)
{
    double nodes = 0, visits = 0, unanswered = 0;
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        struct trial trial;
        begin_rough(&trial, seed, 30 + (uint32_t)(seed % 40));
        for (uint64_t percent = 100; percent < 108; percent += 2) {
            const struct tarn_exact_options options = {
                .seed = seed, .nodes_max = NODES_MAX, .threads = 1};
            struct tarn_exact_report report;
            assert_int_equal(tarn_exact_place(&trial.of.problem, NULL,
                                              trial.of.problem.antichain.bound * percent / 100,
                                              &options, trial.offset, &report),
                             TARN_OK);
            nodes += (double)report.nodes;
            visits += (double)report.visits;
            unanswered += report.result == TARN_EXACT_STOPPED;
        }
        finish(&trial);
    }
    assert_no_worse("nodes", nodes, 200883);
    assert_no_worse("visits", visits, 59810237);
    assert_no_worse("unanswered", unanswered, 36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(priorities_are_what_their_names_say),
        cmocka_unit_test(priorities_and_locals_reach_what_they_did),
        cmocka_unit_test(cores_reach_what_they_did),
        cmocka_unit_test(windows_reach_what_they_did),
        cmocka_unit_test(many_blocks_reach_what_they_did),
        cmocka_unit_test(exact_search_takes_no_more_nodes_than_it_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
