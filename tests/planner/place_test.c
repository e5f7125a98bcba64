/* Placement: the fast baseline against the paper's pseudocode written down naively, every plan
 * against a brute-force check of what must hold, footprints against the best of all placements, and
 * the paper's own examples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/papers/pairs.h"
#include "planner/place/search.h"
#include "planner/place/somas/somas.h"
#include "streams/base/region.h"
#include "streams/plan/plan.h"
#include "support/place_fixture.h"
#include "support/place_naive.h"
#include "support/random_graph.h"

enum { RANDOM_GRAPHS = DRAWS(2000), RANDOM_OPS = 40, LARGE_GRAPHS = DRAWS(10), LARGE_OPS = 400 };

/* ---- Helpers ---- */

static struct tarn_graph *finish(struct tarn_builder *builder)
{
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_builder_finish(builder, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

static struct tarn_plan *plan_with(struct tarn_graph *graph,
                                   const struct tarn_plan_options *options)
{
    struct tarn_plan *plan = NULL;
    struct tarn_error error;
    if (tarn_plan_create(graph, options, &plan, &error) != TARN_OK)
        fail_msg("%s: %s", tarn_graph_name(graph), error.text);
    return plan;
}

static struct tarn_plan *plan_by(struct tarn_graph *graph, const char *method, uint64_t alignment)
{
    return plan_with(graph,
                     TARN_PLAN_OPTIONS(.method = method, .alignment = alignment, .effort = 50));
}

static uint64_t footprint_by(struct tarn_graph *graph, const char *method)
{
    struct tarn_plan *plan = plan_with(
        graph, TARN_PLAN_OPTIONS(.method = method, .alignment = 1, .threads = 1, .effort = 50));
    uint64_t footprint = plan->footprint;
    tarn_plan_destroy(plan);
    return footprint;
}

/* Alignments of 1, where nothing is padded, up to some that are larger than most tensors. */
static uint64_t alignment_of(uint64_t seed) { return UINT64_C(1) << (seed % 4 * 4); }

/* An op of the only stream. */
static tarn_op add_op(struct tarn_builder *builder, struct tarn_list inputs,
                      struct tarn_list outputs)
{
    return tarn_builder_op(builder, &(struct tarn_op_info){.inputs = inputs, .outputs = outputs});
}

static tarn_tensor add_tensor(struct tarn_builder *builder, uint64_t size)
{
    return tarn_builder_tensor(builder, &(struct tarn_tensor_info){.size = size});
}

static const struct tarn_list nothing = {NULL, 0};

/* ---- The paper's examples ---- */

/* Figure 7: A lives at ops 0 and 1, C at 1 and 2, E from 2 to 4, B at 3 and 4, D at 4 and 5. */
static struct tarn_graph *figure_7(void)
{
    struct tarn_builder *builder = tarn_builder_create("figure_7");
    tarn_builder_stream(builder, "stream");
    tarn_tensor a = add_tensor(builder, 1024), b = add_tensor(builder, 768);
    tarn_tensor c = add_tensor(builder, 640), d = add_tensor(builder, 512);
    tarn_tensor e = add_tensor(builder, 256);
    add_op(builder, nothing, TARN_TENSORS(a));
    add_op(builder, TARN_TENSORS(a), TARN_TENSORS(c));
    add_op(builder, TARN_TENSORS(c), TARN_TENSORS(e));
    add_op(builder, nothing, TARN_TENSORS(b));
    add_op(builder, TARN_TENSORS(e, b), TARN_TENSORS(d));
    add_op(builder, TARN_TENSORS(d), nothing);
    return finish(builder);
}

static void figure_7_needs_1920_in_a_single_object_and_1664_in_many(void **state)
{
    (void)state;
    struct tarn_graph *graph = figure_7();
    assert_int_equal(footprint_by(graph, "single-object:size:first-fit"), 1920);
    assert_int_equal(footprint_by(graph, "many-objects:size:first-fit"), 1664);
    assert_int_equal(footprint_by(graph, NULL), 1664);
    tarn_graph_destroy(graph);
}

/* Figure 6: block ABC(G) is placed at 0; in block DEF (8, 6, 6) only E is unsafe, with B and, where
 * there is one, with G. Returns where D comes to lie. */
static uint64_t place_figure_6(const char *method, bool with_g)
{
    struct tarn_builder *builder = tarn_builder_create("figure_6");
    tarn_builder_stream(builder, "stream");
    tarn_tensor a = add_tensor(builder, 10), b = add_tensor(builder, 5);
    tarn_tensor c = add_tensor(builder, with_g ? 7 : 3), d = add_tensor(builder, 8);
    tarn_tensor e = add_tensor(builder, 6), f = add_tensor(builder, 6);
    add_op(builder, nothing, TARN_TENSORS(a));
    add_op(builder, nothing, TARN_TENSORS(c));
    if (with_g) {
        tarn_tensor g = add_tensor(builder, 5);
        add_op(builder, nothing, TARN_TENSORS(b, g));
        add_op(builder, nothing, TARN_TENSORS(e));
        add_op(builder, TARN_TENSORS(b, g), nothing);
        tarn_builder_group(builder, TARN_TENSORS(a, b, c, g));
    } else {
        add_op(builder, nothing, TARN_TENSORS(b));
        add_op(builder, nothing, TARN_TENSORS(e));
        add_op(builder, TARN_TENSORS(b), nothing);
        tarn_builder_group(builder, TARN_TENSORS(a, b, c));
    }
    add_op(builder, nothing, TARN_TENSORS(d, f));
    tarn_builder_group(builder, TARN_TENSORS(d, e, f));
    struct tarn_graph *graph = finish(builder);
    struct tarn_plan *plan = plan_by(graph, method, 1);
    assert_int_equal(tarn_plan_offset(plan, a), 0);
    uint64_t offset = tarn_plan_offset(plan, d);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return offset;
}

/* [-3, 7) becomes [0, 7): the block starts at 7, and E begins where B ends. */
static void figure_6_avoids_offsets_0_to_7(void **state)
{
    (void)state;
    assert_int_equal(place_figure_6("single-object:source:first-fit", false), 7);
    assert_int_equal(place_figure_6("single-object:source:first-fit:paper", false), 7);
}

/* The starts 7 and 8 are allowed, fewer than D has bytes: the head-size test sees no room there,
 * although only E would have come too near to anything. */
static void paper_fit_rejects_a_start_that_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(place_figure_6("single-object:source:first-fit", true), 7);
    assert_int_equal(place_figure_6("single-object:source:first-fit:paper", true), 19);
}

/* ---- Step by step ---- */

enum { STEPS_GRAPHS = DRAWS(400), STEPS_OPS_MAX = 20 };

/* Does the block at `start` keep clear of all that is placed? */
static bool fits_at(const struct tarn_problem *problem, struct tarn_block block, uint64_t start,
                    const uint64_t *offset, const bool *placed)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    for (uint32_t i = 0; i < block.members_count; i++) {
        uint32_t a = block.members[i];
        uint64_t begin = start + blocks->within[a], end = begin + blocks->reserved[a];
        for (uint32_t b = 0; b < blocks->storages_count; b++)
            if (placed[b] && !tarn_reuse_is_safe(&problem->conflicts.reuse, a, b) &&
                begin < offset[b] + blocks->reserved[b] && offset[b] < end)
                return false;
    }
    return true;
}

/* Where something begins or ends, and where the block would end there: it touches, or is one byte
 * off. */
static uint64_t draw_start(const struct tarn_blocks *blocks, struct tarn_block block,
                           const uint64_t *offset, struct random_source *source)
{
    uint32_t a = random_below(source, blocks->storages_count);
    uint64_t start = offset[a] + (random_percent(source, 50) ? blocks->reserved[a] : 0);
    if (random_percent(source, 50)) start -= start < block.size ? start : block.size;
    return start + random_below(source, 2);
}

static void a_block_fits_where_it_meets_nothing_that_it_must_not(void **state)
{
    uint32_t counts[2] = {0, 0};
    (void)state;
    for (uint64_t seed = 0; seed < STEPS_GRAPHS; seed++) {
        struct random_source source = {seed};
        struct fixture fixture;
        set_up_random(&fixture, seed, STEPS_OPS_MAX);
        const struct tarn_blocks *blocks = &fixture.problem.blocks;
        size_t room = (size_t)blocks->storages_count + 1;
        uint64_t *offset = calloc(room, sizeof *offset);
        bool *placed = calloc(room, sizeof *placed);
        struct tarn_placer *placer = tarn_placer_create(&fixture.region, &fixture.problem, offset);
        for (uint32_t b = 0; b < blocks->count; b++) {
            struct tarn_block block = tarn_block_at(blocks, b);
            uint64_t start = draw_start(blocks, block, offset, &source);
            bool fits, expected = fits_at(&fixture.problem, block, start, offset, placed);
            assert_int_equal(tarn_placer_try(placer, block, start, &fits), TARN_OK);
            assert_true(fits == expected);
            counts[fits]++;
            for (uint32_t i = 0; fits && i < block.members_count; i++) {
                assert_int_equal(offset[block.members[i]],
                                 start + blocks->within[block.members[i]]);
                placed[block.members[i]] = true;
            }
        }
        free(offset);
        free(placed);
        tear_down(&fixture);
    }
    assert_true(counts[0] > STEPS_GRAPHS && counts[1] > STEPS_GRAPHS);
}

/* A footprint that no plan has: in units as fine as it allows, what a decode finds is too high. */
static void a_pass_that_is_too_high_to_be_counted_leaves_the_plan_as_it_was(void **state)
{
    (void)state;
    struct tarn_builder *builder = tarn_builder_create("two large ones");
    tarn_builder_stream(builder, "stream");
    tarn_tensor a = add_tensor(builder, (1 << 29) + 1), b = add_tensor(builder, (1 << 29) + 3);
    add_op(builder, nothing, TARN_TENSORS(a, b));
    struct fixture fixture;
    set_up(&fixture, finish(builder), 1);
    uint64_t offset[2] = {12, 34}, footprint = (1 << 30) - 1;
    assert_int_equal(tarn_pass_place(&fixture.problem, 1, offset, &footprint), TARN_OK);
    assert_int_equal(footprint, (1 << 30) - 1);
    assert_true(offset[0] == 12 && offset[1] == 34);
    footprint = UINT64_C(1) << 32;
    assert_int_equal(tarn_pass_place(&fixture.problem, 1, offset, &footprint), TARN_OK);
    assert_in_range(footprint, (UINT64_C(1) << 30) + 4,
                    (UINT64_C(1) << 30) + 16); /* units of 8 bytes */
    tear_down(&fixture);
}

/* ---- Against the pseudocode ---- */

struct inputs {
    struct tarn_region region; /* of the problem */
    struct tarn_problem problem;
};

static void inputs_init(struct inputs *inputs, const struct tarn_graph *graph, uint64_t alignment)
{
    inputs->region = (struct tarn_region){.chunks = NULL};
    assert_int_equal(tarn_problem_init(&inputs->problem, &inputs->region, graph, alignment, NULL),
                     TARN_OK);
    assert_int_equal(tarn_conflicts_init_rows(&inputs->problem.conflicts, &inputs->region),
                     TARN_OK);
}

static void inputs_finish(struct inputs *inputs) { tarn_region_finish(&inputs->region); }

static void assert_offsets_are_the_pseudocodes(const struct tarn_graph *graph, uint64_t alignment)
{
    struct inputs inputs;
    inputs_init(&inputs, graph, alignment);
    uint64_t *fast = calloc(graph->planned_count + 1, sizeof *fast);
    uint64_t *slow = calloc(graph->planned_count + 1, sizeof *slow);
    for (uint32_t m = 0; m < tarn_methods_count; m++) {
        uint64_t footprint;
        assert_int_equal(tarn_baseline_place(&inputs.problem, &inputs.region, &tarn_methods[m],
                                             NULL, fast, &footprint),
                         TARN_OK);
        uint64_t expected = naive_place(graph, alignment, tarn_methods[m].name, slow);
        for (uint32_t a = 0; a < graph->planned_count; a++) {
            if (fast[a] != slow[a])
                fail_msg("%s, alignment %llu, %s: storage %u of %u at %llu, not %llu", graph->name,
                         (unsigned long long)alignment, tarn_methods[m].name, a,
                         graph->planned_count, (unsigned long long)fast[a],
                         (unsigned long long)slow[a]);
        }
        assert_int_equal(footprint, expected);
    }
    free(fast);
    free(slow);
    inputs_finish(&inputs);
}

static void offsets_are_those_of_the_papers_pseudocode(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < RANDOM_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, RANDOM_OPS);
        struct tarn_graph *graph = random_graph(&options);
        assert_offsets_are_the_pseudocodes(graph, alignment_of(seed));
        tarn_graph_destroy(graph);
    }
}

/* Enough storages for several words of 64 slots and edges. */
static void offsets_of_large_graphs_are_those_of_the_papers_pseudocode(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LARGE_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, LARGE_OPS);
        options.ops = LARGE_OPS;
        options.reach = 1 + (uint32_t)(seed % 3) * 50;
        struct tarn_graph *graph = random_graph(&options);
        assert_offsets_are_the_pseudocodes(graph, alignment_of(seed));
        tarn_graph_destroy(graph);
    }
}

static void a_problem_is_valid_until_a_number_of_it_changes(void **state)
{
    (void)state;
    struct random_graph_options options = random_graph_knobs(3, LARGE_OPS);
    struct tarn_graph *graph = random_graph(&options);
    struct inputs inputs;
    inputs_init(&inputs, graph, 64);
    struct tarn_conflicts *conflicts = &inputs.problem.conflicts;
    struct tarn_blocks *blocks = &inputs.problem.blocks;
    uint32_t *numbers[] = {conflicts->slot_of, conflicts->slot_at,     conflicts->row,
                           conflicts->highest, conflicts->reuse.first, &conflicts->words_count,
                           blocks->members,    blocks->members_begin};
    assert_true(graph->planned_count > 0 && tarn_problem_is_valid(&inputs.problem));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ++*numbers[i];
        if (tarn_problem_is_valid(&inputs.problem)) fail_msg("number %zu is not looked at", i);
        --*numbers[i];
    }
    ++*blocks->within;
    assert_false(tarn_problem_is_valid(&inputs.problem));
    --*blocks->within;
    assert_true(tarn_problem_is_valid(&inputs.problem));
    inputs.problem.ops_count = 0;
    assert_false(tarn_problem_is_valid(&inputs.problem));
    inputs_finish(&inputs);
    tarn_graph_destroy(graph);
}

static void a_conflict_mask_is_a_row_of_the_pair_matrix(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4 * LARGE_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, LARGE_OPS);
        struct tarn_graph *graph = random_graph(&options);
        struct inputs inputs;
        struct tarn_pair_matrix matrix;
        inputs_init(&inputs, graph, 1);
        assert_int_equal(tarn_pairs_stream_graph(graph, &matrix), TARN_OK);
        uint64_t *mask = calloc(inputs.problem.conflicts.words_count, sizeof *mask);
        uint32_t *degree = calloc(graph->planned_count + 1, sizeof *degree);
        assert_int_equal(tarn_conflicts_count(&inputs.problem.conflicts, degree), TARN_OK);
        for (uint32_t a = 0; a < graph->planned_count; a++) {
            uint32_t expected = 0;
            tarn_conflicts_mask(&inputs.problem.conflicts, a, mask);
            for (uint32_t b = 0; b < graph->planned_count; b++) {
                uint32_t slot = inputs.problem.conflicts.slot_of[b];
                bool unsafe = a != b && tarn_pair_matrix_get(&matrix, a, b);
                assert_int_equal(mask[slot / 64] >> (slot % 64) & 1, unsafe || a == b);
                expected += unsafe;
            }
            assert_int_equal(degree[a], expected);
        }
        free(mask);
        free(degree);
        tarn_pair_matrix_finish(&matrix);
        inputs_finish(&inputs);
        tarn_graph_destroy(graph);
    }
}

/* ---- What must hold for every plan ---- */

/* Reserved bytes by storage as docs/how-it-works.md, "Reserved bytes and blocks", says, from the
 * graph alone. */
static uint64_t *reserved_sizes(const struct tarn_graph *graph, uint64_t alignment)
{
    uint64_t *reserved = calloc(graph->storages_count + 1, sizeof *reserved);
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        uint64_t size = graph->storages[a].size;
        bool lone = graph->storages[a].group == TARN_NONE;
        reserved[a] = lone ? (size + alignment - 1) / alignment * alignment : size;
    }
    for (uint32_t g = 0; g < graph->groups_count; g++) {
        const struct tarn_group *group = &graph->groups[g];
        uint64_t sum = 0;
        for (uint32_t i = 0; i < group->storages_count; i++)
            sum += graph->storages[group->storages[i]].size;
        uint64_t padding = (alignment - sum % alignment) % alignment;
        reserved[group->storages[group->storages_count - 1]] += padding;
    }
    return reserved;
}

static uint64_t offset_of(const struct tarn_plan *plan, uint32_t a)
{
    const struct tarn_storage *storage = &plan->graph->storages[a];
    return storage->tensor == TARN_NONE ? tarn_plan_workspace_offset(plan, storage->producer)
                                        : tarn_plan_offset(plan, storage->tensor);
}

static void assert_aligned(const struct tarn_plan *plan, uint32_t a)
{
    const struct tarn_storage *storage = &plan->graph->storages[a];
    bool leads =
        storage->group == TARN_NONE || plan->graph->groups[storage->group].storages[0] == a;
    if (leads) assert_int_equal(offset_of(plan, a) % plan->alignment, 0);
    if (tarn_own_alignment(plan->graph, storage))
        assert_int_equal(offset_of(plan, a) % tarn_own_alignment(plan->graph, storage), 0);
}

static void assert_groups_are_whole(const struct tarn_plan *plan)
{
    for (uint32_t g = 0; g < plan->graph->groups_count; g++) {
        const struct tarn_group *group = &plan->graph->groups[g];
        for (uint32_t i = 1; i < group->storages_count; i++) {
            uint32_t before = group->storages[i - 1];
            assert_int_equal(offset_of(plan, group->storages[i]),
                             offset_of(plan, before) + plan->graph->storages[before].size);
        }
    }
}

/* No two storages that must not share a reserved byte do; pairs are looked at one by one. */
static void assert_plan_is_valid(const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    struct tarn_pair_matrix unsafe;
    assert_int_equal(tarn_pairs_ancestors(graph, &unsafe), TARN_OK);
    uint64_t *reserved = reserved_sizes(graph, plan->alignment);
    uint64_t end[2] = {0, 0}; /* planned, persistent */
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        bool persistent = a >= graph->planned_count;
        uint64_t begin_a = offset_of(plan, a), end_a = begin_a + reserved[a];
        assert_aligned(plan, a);
        if (end_a > end[persistent]) end[persistent] = end_a;
        for (uint32_t b = persistent ? graph->planned_count : 0; b < a; b++) {
            uint64_t begin_b = offset_of(plan, b), end_b = begin_b + reserved[b];
            bool must_differ = persistent || tarn_pair_matrix_get(&unsafe, a, b);
            if (must_differ && begin_a < end_b && begin_b < end_a)
                fail_msg("%s, %s: storages %u and %u overlap", graph->name, plan->method, a, b);
        }
    }
    assert_groups_are_whole(plan);
    assert_int_equal(plan->footprint, end[0]);
    assert_int_equal(plan->persistent, end[1]);
    free(reserved);
    tarn_pair_matrix_finish(&unsafe);
}

static void every_method_makes_valid_plans(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < RANDOM_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed ^ 0xabcdef, RANDOM_OPS);
        struct tarn_graph *graph = random_graph(&options);
        const char *method = tarn_methods[seed % tarn_methods_count].name;
        struct tarn_plan *plan = plan_by(graph, method, alignment_of(seed / 4));
        assert_plan_is_valid(plan);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* ---- Real graphs ---- */

static struct tarn_graph *load_example(const char *name)
{
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    char path[512];
    snprintf(path, sizeof path, "%s/examples/graphs/%s", TARN_SOURCE_DIR, name);
    if (tarn_graph_load(path, NULL, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

static const char *const examples[] = {"alexnet_b1_adam.ddp.json", "resnet50_b1_adam.ddp.json.gz",
                                       "googlenet_b1_adam.ddp_branch4.json.gz",
                                       "bert_base_b1_adam.ddp.json.gz"};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static void real_graphs_get_a_valid_plan_that_no_single_method_beats(void **state)
{
    (void)state;
    for (unsigned i = 0; i < EXAMPLES; i++) {
        struct tarn_graph *graph = load_example(examples[i]);
        struct tarn_plan *best = plan_by(graph, "baseline", 512);
        bool winner_met = false;
        assert_plan_is_valid(best);
        for (size_t m = 0; m < tarn_methods_count; m++) {
            struct tarn_plan *plan = plan_by(graph, tarn_methods[m].name, 512);
            assert_true(plan->footprint >= best->footprint);
            if (!winner_met && plan->footprint == best->footprint) {
                winner_met = true; /* of equal ones the first in order wins */
                assert_string_equal(best->method, tarn_methods[m].name);
            }
            tarn_plan_destroy(plan);
        }
        assert_true(winner_met);
        tarn_plan_destroy(best);
        tarn_graph_destroy(graph);
    }
}

/* ---- Threads ---- */

static void assert_same_places(const struct tarn_place *a, const struct tarn_place *b,
                               uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) assert_int_equal(a[i].offset, b[i].offset);
}

static void assert_plan_does_not_depend_on_threads(struct tarn_graph *graph)
{
    struct tarn_plan *one = plan_with(graph, TARN_PLAN_OPTIONS(.threads = 1, .effort = DRAWS(50)));
    for (uint32_t threads = 2; threads <= 8; threads *= 2) {
        struct tarn_plan *plan =
            plan_with(graph, TARN_PLAN_OPTIONS(.threads = threads, .effort = DRAWS(50)));
        assert_string_equal(plan->method, one->method);
        assert_int_equal(plan->footprint, one->footprint);
        assert_same_places(plan->storages, one->storages, one->storages_count);
        assert_same_places(plan->workspaces, one->workspaces, one->workspaces_count);
        assert_same_places(plan->places_persistent, one->places_persistent,
                           one->places_persistent_count);
        tarn_plan_destroy(plan);
    }
    tarn_plan_destroy(one);
}

static void the_plan_is_the_same_for_any_number_of_threads(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(50); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, RANDOM_OPS);
        struct tarn_graph *graph = random_graph(&options);
        assert_plan_does_not_depend_on_threads(graph);
        tarn_graph_destroy(graph);
    }
    for (unsigned i = 0; i < EXAMPLES; i++) {
        struct tarn_graph *graph = load_example(examples[i]);
        assert_plan_does_not_depend_on_threads(graph);
        tarn_graph_destroy(graph);
    }
}

/* ---- Every small instance ---- */

/* Op i writes storage i, and reads those whose last reader it is; ops with a set bit run on a
 * second stream. */
static struct tarn_graph *small_graph(uint32_t count, const uint32_t *sizes,
                                      const uint32_t *last_reader, uint32_t second_stream)
{
    struct tarn_builder *builder = tarn_builder_create("small");
    tarn_builder_stream(builder, "first");
    tarn_builder_stream(builder, "second");
    for (uint32_t i = 0; i < count; i++) add_tensor(builder, sizes[i]);
    for (uint32_t op = 0; op <= count; op++) {
        uint32_t inputs[8], inputs_count = 0;
        for (uint32_t i = 0; i < op && i < count; i++)
            if (last_reader[i] == op) inputs[inputs_count++] = i;
        tarn_builder_op(builder, &(struct tarn_op_info){.stream = second_stream >> op & 1,
                                                        .inputs = {inputs, inputs_count},
                                                        .outputs = {&op, op < count}});
    }
    return finish(builder);
}

struct tally {
    uint32_t instances, optimal;
};

static void compare_with_best(struct tarn_graph *graph, struct tally *tally)
{
    uint64_t best = naive_best(graph), footprint = footprint_by(graph, NULL);
    if (footprint < best)
        fail_msg("footprint %llu, but no placement is below %llu", (unsigned long long)footprint,
                 (unsigned long long)best);
    tally->instances++;
    tally->optimal += footprint == best;
}

/* All lifetimes of `count` storages, all sizes from 1 to 3, every `stride`-th of these instances,
 * with the streams changing from one to the next. */
static void compare_all(uint32_t count, uint32_t stride, struct tally *tally)
{
    uint32_t instances = 1;
    for (uint32_t i = 0; i < count; i++) instances *= 3 * (count - i);
    for (uint32_t n = 0; n < instances; n += stride) {
        uint32_t sizes[8], last_reader[8], code = n;
        for (uint32_t i = 0; i < count; i++) {
            sizes[i] = 1 + code % 3;
            code /= 3;
            last_reader[i] = i + 1 + code % (count - i);
            code /= count - i;
        }
        struct tarn_graph *graph =
            small_graph(count, sizes, last_reader, n / stride % (1u << count));
        compare_with_best(graph, tally);
        tarn_graph_destroy(graph);
    }
}

static void no_small_footprint_is_below_the_best_and_most_are_the_best(void **state)
{
    (void)state;
    struct tally tally = {0, 0};
    compare_all(1, 1, &tally);
    compare_all(2, 1, &tally);
    assert_int_equal(tally.optimal, tally.instances);
    compare_all(3, 1, &tally);
    compare_all(4, 1, &tally);
    compare_all(5, 13 * (SANITIZED ? 7 : 1), &tally);
    assert_true(tally.instances > (SANITIZED ? 2000 : 4000));
    assert_true(tally.optimal >= tally.instances / 100 * 99);
}

/* With an alignment that no size is above, all sizes are one: then the bound is met, always. */
static void storages_of_one_size_meet_their_bound(void **state)
{
    (void)state;
    uint32_t by_chains = 0;
    for (uint64_t seed = 0; seed < RANDOM_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 4 * RANDOM_OPS);
        options.group_share = options.alignment_share = options.spaces = 0;
        options.size_max = 4096;
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_plan *plan = plan_with(graph, TARN_PLAN_OPTIONS(.alignment = 4096));
        assert_int_equal(plan->footprint, plan->claim.bound);
        by_chains += strcmp(plan->method, "chains") == 0;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_true(by_chains > RANDOM_GRAPHS / 2);
}

static void a_lone_storage_takes_its_size_rounded_up(void **state)
{
    (void)state;
    const struct {
        uint64_t size, alignment, footprint;
    } cases[] = {{1, 1, 1}, {1, 512, 512}, {512, 512, 512}, {513, 512, 1024}, {513, 1, 513}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_builder *builder = tarn_builder_create("lone");
        tarn_builder_stream(builder, "stream");
        tarn_tensor lone = add_tensor(builder, cases[i].size);
        add_op(builder, nothing, TARN_TENSORS(lone));
        struct tarn_graph *graph = finish(builder);
        for (size_t m = 0; m < tarn_methods_count; m++) {
            struct tarn_plan *plan = plan_by(graph, tarn_methods[m].name, cases[i].alignment);
            assert_int_equal(plan->footprint, cases[i].footprint);
            assert_int_equal(tarn_plan_offset(plan, lone), 0);
            tarn_plan_destroy(plan);
        }
        tarn_graph_destroy(graph);
    }
}

static void a_graph_without_planned_storages_needs_nothing(void **state)
{
    (void)state;
    struct tarn_builder *builder = tarn_builder_create("empty");
    tarn_builder_stream(builder, "stream");
    add_op(builder, nothing, nothing);
    struct tarn_graph *graph = finish(builder);
    assert_int_equal(footprint_by(graph, NULL), 0);
    for (size_t m = 0; tarn_plan_method(m); m++)
        assert_int_equal(footprint_by(graph, tarn_plan_method(m)), 0);
    tarn_graph_destroy(graph);
}

/* ---- Options ---- */

static void assert_refused(const struct tarn_plan_options *options, enum tarn_status status,
                           const char *words)
{
    struct tarn_graph *graph = figure_7();
    struct tarn_plan *plan = (struct tarn_plan *)graph;
    struct tarn_error error;
    assert_int_equal(tarn_plan_create(graph, options, &plan, &error), status);
    assert_null(plan);
    assert_int_equal(error.status, status);
    if (!strstr(error.text, words)) fail_msg("no '%s' in: %s", words, error.text);
    assert_int_equal(tarn_plan_create(graph, options, &plan, NULL), status);
    tarn_graph_destroy(graph);
}

static void refuses_options_that_make_no_sense(void **state)
{
    (void)state;
    assert_refused(TARN_PLAN_OPTIONS(.alignment = 3), TARN_USAGE, "3 is not a power of two");
    assert_refused(TARN_PLAN_OPTIONS(.method = "fastest"), TARN_USAGE, "'fastest'");
    assert_refused(&(struct tarn_plan_options){.capacity = 1}, TARN_USAGE, "struct_size");
    const char *const words[] = {"single-object", "many-objects", "size",     "breadth",
                                 "source",        "unsafe",       "lifetime", "first-fit",
                                 "best-fit",      ":paper",       "all"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        assert_refused(TARN_PLAN_OPTIONS(.method = ""), TARN_USAGE, words[i]);
}

static void says_what_blocks_a_capacity_below_the_bound(void **state)
{
    (void)state;
    assert_refused(TARN_PLAN_OPTIONS(.alignment = 1, .capacity = 1663), TARN_DOES_NOT_FIT,
                   "no plan fits 1663 bytes, all need 1664 or more: 2 storages cannot share bytes; "
                   "the heaviest: tensor 0 (1024), tensor 2 (640)");
    struct tarn_graph *graph = figure_7();
    tarn_plan_destroy(plan_with(graph, TARN_PLAN_OPTIONS(.alignment = 1, .capacity = 1664)));
    tarn_graph_destroy(graph);
}

static void refuses_an_alignment_at_which_sizes_overflow(void **state)
{
    (void)state;
    assert_refused(TARN_PLAN_OPTIONS(.alignment = UINT64_C(1) << 63), TARN_BAD_INPUT,
                   "smaller alignment");
}

/* What an older caller's struct does not have is the default. */
static void accepts_options_of_an_older_caller(void **state)
{
    (void)state;
    struct tarn_graph *graph = figure_7();
    struct tarn_plan_options options = {.struct_size = offsetof(struct tarn_plan_options, capacity),
                                        .alignment = 1,
                                        .capacity = 1,
                                        .method = "not looked at"};
    struct tarn_plan *plan = plan_with(graph, &options);
    assert_int_equal(plan->alignment, 1);
    assert_int_equal(plan->footprint, 1664);
    tarn_plan_destroy(plan);
    plan = plan_with(graph, NULL);
    assert_int_equal(plan->alignment, 512);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void lists_every_word_for_a_method_once(void **state)
{
    (void)state;
    size_t count = 0;
    for (; tarn_plan_method(count); count++) {
        for (size_t other = 0; other < count; other++)
            assert_string_not_equal(tarn_plan_method(count), tarn_plan_method(other));
    }
    assert_int_equal(tarn_methods_count, 40);
    assert_int_equal(count,
                     44 + 2 * WITH_PAPERS); /* all, baseline, lowest, exact; roam-tree, llfb */
    for (uint32_t m = 0; m < tarn_methods_count; m++)
        assert_int_equal(tarn_method_find(tarn_methods[m].name), m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figure_7_needs_1920_in_a_single_object_and_1664_in_many),
        cmocka_unit_test(figure_6_avoids_offsets_0_to_7),
        cmocka_unit_test(paper_fit_rejects_a_start_that_is_allowed),
        cmocka_unit_test(a_block_fits_where_it_meets_nothing_that_it_must_not),
        cmocka_unit_test(a_pass_that_is_too_high_to_be_counted_leaves_the_plan_as_it_was),
        cmocka_unit_test(offsets_are_those_of_the_papers_pseudocode),
        cmocka_unit_test(offsets_of_large_graphs_are_those_of_the_papers_pseudocode),
        cmocka_unit_test(a_problem_is_valid_until_a_number_of_it_changes),
        cmocka_unit_test(a_conflict_mask_is_a_row_of_the_pair_matrix),
        cmocka_unit_test(every_method_makes_valid_plans),
        cmocka_unit_test(real_graphs_get_a_valid_plan_that_no_single_method_beats),
        cmocka_unit_test(the_plan_is_the_same_for_any_number_of_threads),
        cmocka_unit_test(no_small_footprint_is_below_the_best_and_most_are_the_best),
        cmocka_unit_test(storages_of_one_size_meet_their_bound),
        cmocka_unit_test(a_lone_storage_takes_its_size_rounded_up),
        cmocka_unit_test(a_graph_without_planned_storages_needs_nothing),
        cmocka_unit_test(refuses_options_that_make_no_sense),
        cmocka_unit_test(says_what_blocks_a_capacity_below_the_bound),
        cmocka_unit_test(refuses_an_alignment_at_which_sizes_overflow),
        cmocka_unit_test(accepts_options_of_an_older_caller),
        cmocka_unit_test(lists_every_word_for_a_method_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
