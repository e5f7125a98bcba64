/* Waits at a switch between two plans, some of graphs with up to three memory spaces, compared with
 * the definition: all pairs of touches of common bytes of the same space, the closure of streams
 * and waits by brute force. And the proof of them, which must refuse whatever leaves a pair without
 * an order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "streams/plan/program.h"
#include "streams/verify/verify.h"
#include "support/random_graph.h"
#include "support/session_calls.h"
#include "tarn.h"

enum { NODES = 128, DRAWN = 3000 };

/* Two plans; nodes are the steps of the first, then those of the second. */
struct world {
    struct tarn_graph *graphs[2];
    struct tarn_plan *plans[2];
    const struct tarn_program *programs[2];
    struct tarn_region region;
    struct tarn_switch pair;
    uint32_t *same;
    struct tarn_wait *waits;
    uint32_t count;
    bool before[NODES][NODES];
};

static void plan_graph(struct world *w, uint32_t i, struct tarn_graph *graph, uint64_t alignment)
{
    struct tarn_error error;
    w->graphs[i] = graph;
    require(tarn_plan_create(
                graph,
                TARN_PLAN_OPTIONS(.alignment = alignment, .threads = 1, .effort = TARN_NO_EFFORT),
                &w->plans[i], &error),
            &error);
    require(tarn_plan_program(w->plans[i], &w->programs[i], &error), &error);
}

/* Every persistent storage of the second plan is one of the first, or none of them. */
static void match(struct world *w, struct random_source *source)
{
    const struct tarn_graph *from = w->graphs[0], *to = w->graphs[1];
    uint32_t count = to->storages_count - to->planned_count;
    uint32_t others = from->storages_count - from->planned_count;
    w->same = tarn_region_take(&w->region, count, sizeof *w->same);
    for (uint32_t i = 0; i < count; i++) {
        bool is_same = i < others && random_percent(source, 80);
        w->same[i] = is_same ? from->planned_count + i : TARN_NONE;
    }
}

static void find_waits(struct world *w)
{
    struct tarn_error error;
    w->pair = (struct tarn_switch){w->plans[0], w->plans[1], w->same};
    require(tarn_switch_waits(&w->pair, &w->region, &w->waits, &w->count, &error), &error);
}

static void draw(struct world *w, uint64_t seed)
{
    struct random_source source = {seed * 7919 + 11};
    memset(w, 0, sizeof *w);
    for (uint32_t i = 0; i < 2; i++) {
        struct random_graph_options options = random_graph_knobs(2 * seed + i, 24);
        options.size_max = 1 + (uint32_t)(seed % 24);
        options.spaces = (uint32_t)(seed / 2 % 4);
        plan_graph(w, i, random_graph(&options), 1);
    }
    match(w, &source);
    find_waits(w);
}

static void finish(struct world *w)
{
    for (uint32_t i = 0; i < 2; i++) {
        tarn_plan_destroy(w->plans[i]);
        tarn_graph_destroy(w->graphs[i]);
    }
    tarn_region_finish(&w->region);
}

/* ---- The definition ---- */

static void add_inside(struct world *w, uint32_t side)
{
    const struct tarn_program *program = w->programs[side];
    uint32_t first = side ? w->programs[0]->steps_count : 0;
    for (uint32_t i = 0; i < program->steps_count; i++) {
        const struct tarn_program_step *step = &program->steps[i];
        if (i > program->begin[step->stream]) w->before[first + i - 1][first + i] = true;
        for (uint32_t k = step->waits_begin; k < step->waits_end; k++) {
            const struct tarn_program_wait *wait = &program->waits[k];
            if (!wait->previous)
                w->before[first + program->begin[wait->stream] + wait->place][first + i] = true;
        }
    }
}

/* All waits but one. */
static void close_order(struct world *w, uint32_t without)
{
    uint32_t first = w->programs[0]->steps_count, nodes = first + w->programs[1]->steps_count;
    assert_true(nodes <= NODES);
    memset(w->before, 0, sizeof w->before);
    add_inside(w, 0);
    add_inside(w, 1);
    for (uint32_t i = 0; i < w->count; i++) {
        if (i == without) continue;
        uint32_t op = w->programs[1]->step_of[w->waits[i].op];
        w->before[w->programs[0]->step_of[w->waits[i].on]][first + op] = true;
    }
    for (uint32_t k = 0; k < nodes; k++) {
        for (uint32_t i = 0; i < nodes; i++) {
            if (!w->before[i][k]) continue;
            for (uint32_t j = 0; j < nodes; j++) w->before[i][j] |= w->before[k][j];
        }
    }
}

static bool writes(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    if (tarn_extra(&graph->ops[op])->workspace_storage == storage) return true;
    for (uint32_t k = 0; k < graph->ops[op].outputs_count; k++) {
        if (graph->tensors[tarn_outputs(&graph->ops[op])[k]].storage == storage) return true;
    }
    return false;
}

static uint64_t offset_in_space(const struct tarn_plan *plan, uint32_t storage, uint32_t space)
{
    uint64_t begin = plan->spaces ? plan->spaces[space].begin : 0;
    return tarn_plan_place(plan, storage)->offset - begin;
}

static bool share_bytes(const struct world *w, uint32_t a, uint32_t b)
{
    const struct tarn_graph *from = w->graphs[0], *to = w->graphs[1];
    if (from->storages[a].persistent != to->storages[b].persistent) return false;
    if (to->storages[b].persistent) return w->same[b - to->planned_count] == a;
    uint32_t space = from->storages[a].space;
    if (to->storages[b].space != space) return false;
    uint64_t x = offset_in_space(w->plans[0], a, space);
    uint64_t y = offset_in_space(w->plans[1], b, space);
    return x < y + tarn_storage_reserved(to, b, w->plans[1]->alignment) &&
           y < x + tarn_storage_reserved(from, a, w->plans[0]->alignment);
}

static bool are_ordered(const struct world *w, uint32_t a, uint32_t b)
{
    const struct tarn_storage *x = &w->graphs[0]->storages[a], *y = &w->graphs[1]->storages[b];
    for (uint32_t i = 0; i < x->users_count; i++) {
        for (uint32_t k = 0; k < y->users_count; k++) {
            uint32_t u = tarn_storage_users(w->graphs[0], x)[i],
                     v = tarn_storage_users(w->graphs[1], y)[k];
            if (!writes(w->graphs[0], u, a) && !writes(w->graphs[1], v, b)) continue;
            if (!w->before[w->programs[0]->step_of[u]]
                          [w->programs[0]->steps_count + w->programs[1]->step_of[v]])
                return false;
        }
    }
    return true;
}

static bool is_safe(struct world *w, uint32_t without)
{
    close_order(w, without);
    for (uint32_t a = 0; a < w->graphs[0]->storages_count; a++) {
        for (uint32_t b = 0; b < w->graphs[1]->storages_count; b++)
            if (share_bytes(w, a, b) && !are_ordered(w, a, b)) return false;
    }
    return true;
}

static enum tarn_status prove(const struct world *w, uint32_t without, struct tarn_error *error)
{
    struct tarn_wait waits[NODES * NODES];
    uint32_t count = 0;
    *error = (struct tarn_error){.status = TARN_OK};
    for (uint32_t i = 0; i < w->count; i++)
        if (i != without) waits[count++] = w->waits[i];
    return tarn_switch_verify(&w->pair, waits, count, error);
}

/* ---- Tests ---- */

static void waits_are_those_of_the_definition_and_the_proof_says_the_same(void **state)
{
    (void)state;
    static struct world w;
    struct tarn_error error;
    uint64_t waits = 0;
    for (uint64_t seed = 0; seed < DRAWS(DRAWN); seed++) {
        draw(&w, seed);
        assert_true(is_safe(&w, TARN_NONE));
        require(prove(&w, TARN_NONE, &error), &error);
        for (uint32_t i = 0; i < w.count; i++) {
            assert_false(is_safe(&w, i));
            assert_int_equal(prove(&w, i, &error), TARN_REJECTED);
        }
        waits += w.count;
        finish(&w);
    }
    print_message("# %llu waits\n", (unsigned long long)waits);
    assert_true(waits > DRAWS(DRAWN));
}

/* Any waits at all: the proof must agree with the definition, also where there are too many. */
static void the_proof_accepts_just_what_is_safe(void **state)
{
    (void)state;
    static struct world w;
    uint32_t safe = 0, harmful = 0;
    for (uint64_t seed = 0; seed < DRAWS(DRAWN); seed++) {
        struct random_source source = {seed};
        struct tarn_error error;
        draw(&w, seed);
        uint32_t ends[2] = {w.programs[0]->steps_count, w.programs[1]->steps_count};
        w.count = ends[0] > 0 && ends[1] > 0 ? random_below(&source, 8) : 0;
        w.waits = tarn_region_take(&w.region, w.count, sizeof *w.waits);
        for (uint32_t i = 0; i < w.count; i++) {
            w.waits[i].on = w.programs[0]->steps[ends[0] - 1 - random_below(&source, ends[0])].op;
            w.waits[i].op = w.programs[1]->steps[random_below(&source, ends[1])].op;
        }
        bool expected = is_safe(&w, TARN_NONE);
        assert_int_equal(prove(&w, TARN_NONE, &error), expected ? TARN_OK : TARN_REJECTED);
        safe += expected;
        harmful += !expected;
        finish(&w);
    }
    print_message("# %u safe, %u harmful\n", safe, harmful);
    assert_true(safe > 0 && harmful > 0);
}

static void the_first_and_the_last_op_of_a_stream_wait_for_no_more_than_each_other(void **state)
{
    (void)state;
    struct world w = {.same = NULL};
    for (uint32_t i = 0; i < 2; i++) {
        struct tarn_builder *b = tarn_builder_create("row");
        struct tarn_graph *graph;
        struct tarn_error error;
        tarn_stream s = tarn_builder_stream(b, "s");
        tarn_tensor x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = 8});
        tarn_tensor y = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "y", .size = 8});
        tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(x)});
        tarn_builder_op(b, &(struct tarn_op_info){
                               .stream = s, .inputs = TARN_TENSORS(x), .outputs = TARN_TENSORS(y)});
        require(tarn_builder_finish(b, &graph, &error), &error);
        plan_graph(&w, i, graph, 8);
    }
    find_waits(&w);
    assert_int_equal(w.count, 1); /* x lies on x, y on y: x's reader is the last user of both */
    assert_int_equal(w.waits[0].op, 0);
    assert_int_equal(w.waits[0].on, 1);
    finish(&w);
}

/* ---- Real graphs ---- */

static struct tarn_graph *previous;

static void pair_up(const char *path)
{
    static struct world w;
    struct tarn_graph *graph;
    struct tarn_error error;
    memset(&w, 0, sizeof w);
    require(tarn_graph_load(path, NULL, &graph, &error), &error);
    plan_graph(&w, 0, previous ? previous : tarn_graph_retain(graph), 512);
    plan_graph(&w, 1, tarn_graph_retain(graph), 512);
    struct random_source source = {1};
    match(&w, &source);
    find_waits(&w);
    require(tarn_switch_verify(&w.pair, w.waits, w.count, &error), &error);
    struct tarn_error *places[] = {&error, NULL};
    for (int i = 0; i < 2 && w.count > 0; i++)
        assert_int_equal(tarn_switch_verify(&w.pair, w.waits + 1, w.count - 1, places[i]),
                         TARN_REJECTED);
    print_message("# %s: %u waits of %u steps for %u\n", path, w.count, w.programs[1]->steps_count,
                  w.programs[0]->steps_count);
    finish(&w);
    previous = graph;
}

static void waits_between_large_graphs_are_proved_and_each_is_needed(void **state)
{
    (void)state;
    pair_up(TARN_SOURCE_DIR "/examples/graphs/alexnet_b1_adam.ddp.json");
    pair_up(TARN_SOURCE_DIR "/examples/graphs/bert_base_b1_adam.ddp.json.gz");
    pair_up(TARN_SOURCE_DIR "/examples/graphs/resnet50_b1_adam.ddp.json.gz");
    tarn_graph_destroy(previous);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_those_of_the_definition_and_the_proof_says_the_same),
        cmocka_unit_test(the_proof_accepts_just_what_is_safe),
        cmocka_unit_test(the_first_and_the_last_op_of_a_stream_wait_for_no_more_than_each_other),
        cmocka_unit_test(waits_between_large_graphs_are_proved_and_each_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
