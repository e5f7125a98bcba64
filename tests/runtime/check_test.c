/* Checked execution: right plans pass in every legal timing, wrong ones are caught and explained.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "planner/papers/pairs.h"
#include "runtime/check/expected.h"
#include "runtime/check/linear.h"
#include "streams/plan/plan.h"
#include "support/random_graph.h"
#include "support/session_calls.h"
#include "support/unshared_plan.h"
#include "tarn.h"

/* A fresh session, checked and destroyed. */
static enum tarn_status check(struct tarn_plan *plan, uint32_t workers,
                              const struct tarn_check_options *options,
                              struct tarn_check_report *report, struct tarn_error *error)
{
    struct tarn_session *session;
    struct tarn_host_options *host =
        TARN_HOST_OPTIONS(.workers = workers, .binding = TARN_BIND_NONE);
    require(tarn_session_create(plan, tarn_device_host(host), NULL, &session, error), error);
    enum tarn_status status = tarn_session_check(session, options, report, error);
    tarn_session_destroy(session);
    return status;
}

static enum tarn_status check_order(struct tarn_plan *plan, const struct tarn_step *steps,
                                    size_t count, struct tarn_error *error)
{
    return check(plan, 1, TARN_CHECK_OPTIONS(.order = steps, .order_count = count), NULL, error);
}

/* The place of a planned storage, workspaces included. */
static struct tarn_place *place_of(struct tarn_plan *plan, uint32_t storage)
{
    return storage < plan->storages_count ? &plan->storages[storage]
                                          : &plan->workspaces[storage - plan->storages_count];
}

/* ---- Patterns ---- */

static void a_pattern_is_found_where_it_was_filled_and_nowhere_else(void **state)
{
    (void)state;
    unsigned char bytes[8300];
    for (uint64_t size = 1; size < 8200; size += size < 70 ? 1 : 509) {
        unsigned char *begin = bytes + size % 9;
        memset(bytes, 0xee, sizeof bytes);
        tarn_pattern_fill(begin, size, 42);
        assert_int_equal(begin[size], 0xee);
        if (begin > bytes) assert_int_equal(begin[-1], 0xee);
        assert_int_equal(tarn_pattern_compare(begin, size, 42), size);
        for (uint64_t i = 0; i < size; i += size < 70 ? 1 : 97) {
            assert_int_equal(begin[i], tarn_pattern_byte(42, i));
            begin[i] ^= 1;
            assert_int_equal(tarn_pattern_compare(begin, size, 42), i);
            begin[i] ^= 1;
        }
        if (size >= 8) assert_true(tarn_pattern_compare(begin, size, 43) < 8);
    }
}

/* ---- Right plans ---- */

/* Runs one graph in many ways and requires one digest. */
static void requires_one_digest(struct tarn_plan *plan, uint64_t seed)
{
    struct tarn_error error;
    struct tarn_check_report first, report;
    require(check(plan, 1, TARN_CHECK_OPTIONS(.iterations = 3), &first, &error), &error);
    for (uint32_t workers = 1; workers <= 4; workers++) {
        struct tarn_check_options *options =
            TARN_CHECK_OPTIONS(.iterations = 3, .seed = seed, .delay_ns = 3000 * (workers % 3));
        require(check(plan, workers, options, &report, &error), &error);
        assert_memory_equal(&report, &first, sizeof report);
    }
    for (uint64_t draw = 0; draw < 4; draw++) {
        struct tarn_check_options *options =
            TARN_CHECK_OPTIONS(.iterations = 3, .seed = draw, .random_order = true);
        require(check(plan, 1, options, &report, &error), &error);
        assert_memory_equal(&report, &first, sizeof report);
    }
}

static void right_plans_pass_with_one_digest_in_every_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < (SANITIZED ? 16 : 80); seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 60);
        knobs.early_share = seed % 2 * 60;
        struct tarn_graph *graph = random_graph(&knobs);
        struct tarn_plan *apart = unshared_plan(graph, 64), *shared;
        struct tarn_error error;
        require(tarn_plan_create(graph,
                                 TARN_PLAN_OPTIONS(.alignment = 16, .effort = TARN_NO_EFFORT),
                                 &shared, &error),
                &error);
        requires_one_digest(apart, seed);
        requires_one_digest(shared, seed);
        tarn_plan_destroy(apart);
        tarn_plan_destroy(shared);
        tarn_graph_destroy(graph);
    }
}

static void the_digest_does_not_depend_on_the_plan_but_on_the_work(void **state)
{
    (void)state;
    uint64_t digests[3];
    struct random_graph_options knobs = random_graph_knobs(7, 60);
    knobs.parameters = 3;
    knobs.inplace_share = 30;
    struct tarn_graph *graph = random_graph(&knobs);
    for (uint32_t i = 0; i < 3; i++) {
        struct tarn_plan *plan;
        struct tarn_check_report report;
        struct tarn_error error;
        require(tarn_plan_create(graph,
                                 TARN_PLAN_OPTIONS(.alignment = 1u << i, .effort = TARN_NO_EFFORT),
                                 &plan, &error),
                &error);
        require(check(plan, 2, TARN_CHECK_OPTIONS(.iterations = 1 + i / 2), &report, &error),
                &error);
        digests[i] = report.digest;
        tarn_plan_destroy(plan);
    }
    assert_int_equal(digests[0], digests[1]);
    assert_int_not_equal(digests[0], digests[2]); /* one iteration more */
    tarn_graph_destroy(graph);
}

static void counts_what_ran(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("counted");
    tarn_stream s = tarn_builder_stream(b, "s");
    tarn_tensor w = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "w", .size = 100, .kind = TARN_PARAMETER});
    tarn_tensor x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = 30});
    tarn_tensor v = tarn_builder_alias(b, x, "v");
    tarn_tensor x2 = tarn_builder_alias(b, x, "x2");
    tarn_builder_op(
        b, &(struct tarn_op_info){
               .stream = s, .inputs = TARN_TENSORS(w), .outputs = TARN_TENSORS(x), .workspace = 7});
    tarn_builder_op(
        b, &(struct tarn_op_info){
               .stream = s, .inputs = TARN_TENSORS(x), .outputs = TARN_TENSORS(v), .view = true});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(x2)});
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_check_report report;
    require(tarn_builder_finish(b, &graph, &error), &error);
    struct tarn_plan *plan = unshared_plan(graph, 16);
    require(check(plan, 1, TARN_CHECK_OPTIONS(.iterations = 2), &report, &error), &error);
    assert_int_equal(report.ops_run, 4);
    assert_int_equal(report.bytes_written, 2 * (30 + 7 + 30));
    assert_int_equal(report.bytes_read, 2 * (100 + 7 + 30) + 100); /* w once more at the end */
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Expected versions ---- */

static void versions_do_not_depend_on_how_the_window_moves(void **state)
{
    (void)state;
    struct random_graph_options knobs = random_graph_knobs(11, 60);
    knobs.parameters = 4;
    knobs.inplace_share = 30;
    struct tarn_graph *graph = random_graph(&knobs);
    struct tarn_region region = {0};
    struct tarn_expected whole, parts;
    assert_int_equal(tarn_expected_init(&whole, &region, graph), TARN_OK);
    assert_int_equal(tarn_expected_init(&parts, &region, graph), TARN_OK);
    assert_int_equal(tarn_expected_advance(&whole, 3), TARN_OK);
    assert_int_equal(tarn_expected_advance(&parts, 1), TARN_OK);
    assert_int_equal(tarn_expected_advance(&parts, 2), TARN_OK);
    assert_int_equal(parts.window_begin, 1);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        uint32_t count = whole.begin[v + 1] - whole.begin[v];
        for (uint64_t k = 1; k < 3; k++) {
            assert_memory_equal(tarn_expected_seeds(&whole, v, k),
                                tarn_expected_seeds(&parts, v, k), count * sizeof(uint64_t));
        }
    }
    assert_memory_equal(whole.versions, parts.versions, graph->storages_count * sizeof(uint64_t));
    tarn_expected_finish(&whole);
    tarn_expected_finish(&parts);
    tarn_region_finish(&region);
    tarn_graph_destroy(graph);
}

/* ---- Wrong plans: every order of small graphs ---- */

/* All linear orders of one iteration, by depth-first search over which stream goes next. */
struct enumeration {
    struct tarn_plan *plan;
    struct tarn_linear linear;
    struct tarn_step steps[16];
    size_t count;
    uint64_t orders, failures;
};

static void try_order(struct enumeration *e)
{
    struct tarn_error error;
    enum tarn_status status = check_order(e->plan, e->steps, e->count, &error);
    if (status != TARN_OK && status != TARN_CHECK_FAILED) require(status, &error);
    e->orders++;
    e->failures += status == TARN_CHECK_FAILED;
}

static void enumerate(struct enumeration *e)
{
    bool end = true;
    for (uint32_t s = 0; s < e->linear.program->streams_count && e->failures == 0; s++) {
        if (e->linear.done[s] == tarn_linear_length(&e->linear, s)) continue;
        end = false;
        if (!tarn_linear_is_ready(&e->linear, s)) continue;
        e->steps[e->count++] = tarn_linear_next(&e->linear, s);
        e->linear.done[s]++;
        enumerate(e);
        e->linear.done[s]--;
        e->count--;
    }
    if (end) try_order(e);
}

static bool some_order_fails(struct tarn_plan *plan)
{
    struct enumeration e = {.plan = plan};
    struct tarn_region region = {0};
    struct tarn_program program;
    struct tarn_error error;
    require(tarn_program_init(&program, plan, &error), &error);
    assert_int_equal(tarn_linear_init(&e.linear, &region, &program, plan->graph), TARN_OK);
    enumerate(&e);
    assert_true(e.orders > 0);
    tarn_region_finish(&region);
    tarn_program_finish(&program);
    return e.failures > 0;
}

/* Two storages that only one op each ever touches, and nobody looks at afterwards: a collision of
 * two different ops can then only be seen while both run, which no linear order shows. */
static bool nobody_looks(const struct tarn_graph *graph, uint32_t a, uint32_t b)
{
    const struct tarn_storage *x = &graph->storages[a], *y = &graph->storages[b];
    return x->users_count == 1 && y->users_count == 1 && !x->pinned && !y->pinned &&
           x->producer != y->producer;
}

/* Few bytes may be right by chance. */
static bool is_tiny(const struct tarn_graph *graph, uint32_t a)
{
    return graph->storages[a].size < 8;
}

static void two_storages_on_the_same_bytes_fail_in_some_order_exactly_when_unsafe(void **state)
{
    (void)state;
    uint32_t unsafe_pairs = 0, safe_pairs = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 6);
        knobs.size_max = 4096;
        struct tarn_graph *graph = random_graph(&knobs);
        struct tarn_pair_matrix matrix;
        assert_int_equal(tarn_pairs_ancestors(graph, &matrix), TARN_OK);
        for (uint32_t b = 0; b < graph->planned_count; b++) {
            for (uint32_t a = 0; a < b; a++) {
                if (nobody_looks(graph, a, b) || is_tiny(graph, a) || is_tiny(graph, b)) continue;
                struct tarn_plan *plan = unshared_plan(graph, 64);
                place_of(plan, a)->offset = place_of(plan, b)->offset = plan->footprint;
                bool unsafe = tarn_pair_matrix_get(&matrix, a, b);
                if (some_order_fails(plan) != unsafe)
                    fail_msg("seed %llu, storages %u and %u", (unsigned long long)seed, a, b);
                *(unsafe ? &unsafe_pairs : &safe_pairs) += 1;
                tarn_plan_destroy(plan);
            }
        }
        tarn_pair_matrix_finish(&matrix);
        tarn_graph_destroy(graph);
    }
    print_message("# %u unsafe pairs, %u safe pairs\n", unsafe_pairs, safe_pairs);
    assert_true(unsafe_pairs > 300 && safe_pairs > 100);
}

/* ---- Wrong plans: one of each kind, and what is said about it ---- */

/*     stream 0:  make ──t──┐          first   stream 1 reads what stream 0 makes; `late` makes
 *     stream 1:        use ┘  late            another tensor at any time */
struct toy {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    tarn_tensor w, t, u, out;
    tarn_op make, use, late;
};

static struct toy toy_create(void)
{
    struct toy toy;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("toy");
    tarn_stream left = tarn_builder_stream(b, "left"), right = tarn_builder_stream(b, "right"),
                third = tarn_builder_stream(b, "third");
    toy.w = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "w", .size = 64, .kind = TARN_PARAMETER});
    toy.t = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "t", .size = 64});
    toy.u = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "u", .size = 64});
    toy.out = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "out", .size = 64, .kind = TARN_OUTPUT});
    tarn_tensor updated = tarn_builder_alias(b, toy.w, "w.updated");
    toy.make = tarn_builder_op(b, &(struct tarn_op_info){.name = "make",
                                                         .stream = left,
                                                         .inputs = TARN_TENSORS(toy.w),
                                                         .outputs = TARN_TENSORS(toy.t)});
    toy.use = tarn_builder_op(b, &(struct tarn_op_info){.name = "use",
                                                        .stream = right,
                                                        .inputs = TARN_TENSORS(toy.t),
                                                        .outputs = TARN_TENSORS(toy.out, updated),
                                                        .workspace = 64});
    toy.late = tarn_builder_op(
        b, &(struct tarn_op_info){.name = "late", .stream = third, .outputs = TARN_TENSORS(toy.u)});
    require(tarn_builder_finish(b, &toy.graph, &error), &error);
    toy.plan = unshared_plan(toy.graph, 64);
    return toy;
}

static void toy_destroy(struct toy *toy)
{
    tarn_plan_destroy(toy->plan);
    tarn_graph_destroy(toy->graph);
}

static uint64_t *offset_of(const struct toy *toy, tarn_tensor tensor)
{
    return &place_of(toy->plan, toy->graph->tensors[tensor].storage)->offset;
}

static void names_reader_byte_and_writer_of_an_overwritten_input(void **state)
{
    (void)state;
    struct toy toy = toy_create();
    struct tarn_error error;
    *offset_of(&toy, toy.u) = *offset_of(&toy, toy.t) + 16;
    const struct tarn_step harmless[] = {{toy.late, 0}, {toy.make, 0}, {toy.use, 0}};
    const struct tarn_step harmful[] = {{toy.make, 0}, {toy.late, 0}, {toy.use, 0}};
    require(check_order(toy.plan, harmless, 3, &error), &error);
    assert_int_equal(check_order(toy.plan, harmful, 3, &error), TARN_CHECK_FAILED);
    assert_int_equal(error.status, TARN_CHECK_FAILED);
    assert_int_equal(error.op, toy.use);
    assert_int_equal(error.tensor, toy.t);
    assert_says(&error, "op 1 \"use\" of iteration 0: byte 16 of tensor 1 \"t\" is 0x");
    assert_says(&error, ": op 2 \"late\" of iteration 0 wrote it there as tensor 2 \"u\"");
    toy_destroy(&toy);
}

static void sees_that_a_wait_is_missing(void **state)
{
    (void)state;
    struct toy toy = toy_create();
    struct tarn_error error;
    const struct tarn_step steps[] = {{toy.use, 0}, {toy.make, 0}, {toy.late, 0}};
    assert_int_equal(check_order(toy.plan, steps, 3, &error), TARN_BAD_INPUT);
    assert_says(&error, "must wait for op 0 \"make\" of iteration 0");
    toy.plan->waits_count = 0;
    tarn_plan_drop_program(toy.plan);
    assert_int_equal(check_order(toy.plan, steps, 3, &error), TARN_CHECK_FAILED);
    assert_says(&error, "op 1 \"use\" of iteration 0: byte 0 of tensor 1 \"t\" is 0x00");
    toy_destroy(&toy);
}

static void sees_that_a_wait_on_the_previous_iteration_is_missing(void **state)
{
    (void)state;
    struct toy toy = toy_create();
    struct tarn_error error;
    /* make of iteration 1 reads w before use of iteration 0 has updated it */
    const struct tarn_step steps[] = {{toy.make, 0}, {toy.make, 1}};
    assert_int_equal(check_order(toy.plan, steps, 2, &error), TARN_BAD_INPUT);
    assert_says(&error, "of iteration 0");
    toy.plan->boundary_waits_count = 0;
    tarn_plan_drop_program(toy.plan);
    assert_int_equal(check_order(toy.plan, steps, 2, &error), TARN_CHECK_FAILED);
    assert_int_equal(error.op, toy.make);
    assert_int_equal(error.tensor, toy.w);
    assert_says(&error, "iteration 1");
    toy_destroy(&toy);
}

static void sees_an_output_that_is_overwritten_before_the_end(void **state)
{
    (void)state;
    struct toy toy = toy_create();
    struct tarn_error error;
    const struct tarn_step steps[] = {{toy.make, 0}, {toy.use, 0}, {toy.late, 0}};
    *offset_of(&toy, toy.u) = *offset_of(&toy, toy.out);
    assert_int_equal(check_order(toy.plan, steps, 3, &error), TARN_CHECK_FAILED);
    assert_int_equal(error.op, TARN_NONE);
    assert_int_equal(error.tensor, toy.out);
    assert_says(&error, "after the last op: byte 0 of tensor 3 \"out\"");
    assert_says(&error, "op 2 \"late\"");
    require(check_order(toy.plan, steps, 2, &error), &error); /* a beginning that does no harm */
    toy_destroy(&toy);
}

static void sees_a_persistent_tensor_that_is_overwritten(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("persistent");
    tarn_stream s = tarn_builder_stream(b, "s");
    struct tarn_tensor_info info = {.name = "p", .size = 40, .kind = TARN_PARAMETER};
    tarn_tensor p = tarn_builder_tensor(b, &info), q = tarn_builder_tensor(b, &info);
    tarn_tensor next = tarn_builder_alias(b, p, "next");
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(next)});
    struct tarn_graph *graph;
    struct tarn_error error;
    require(tarn_builder_finish(b, &graph, &error), &error);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    require(check(plan, 1, NULL, NULL, &error), &error);
    plan->places_persistent[1].offset = 8; /* 0 is p's */
    assert_int_equal(check(plan, 1, NULL, NULL, &error), TARN_CHECK_FAILED);
    assert_true(error.tensor == p || error.tensor == q);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void sees_that_an_ops_own_storages_share_bytes(void **state)
{
    (void)state;
    struct tarn_error error;
    for (int kind = 0; kind < 3; kind++) {
        struct toy toy = toy_create();
        uint64_t *workspace = &toy.plan->workspaces[0].offset;
        if (kind == 0) *offset_of(&toy, toy.out) = *offset_of(&toy, toy.t); /* input, output */
        if (kind == 1) *workspace = *offset_of(&toy, toy.t) + 60;
        if (kind == 2) *workspace = *offset_of(&toy, toy.out) + 60;
        /* one worker: the moved workspace also reaches into u, which `late` writes at any time */
        assert_int_equal(check(toy.plan, 1, NULL, NULL, &error), TARN_CHECK_FAILED);
        assert_int_equal(error.op, toy.use);
        toy_destroy(&toy);
    }
}

static void the_first_of_many_failures_on_many_workers_is_told_whole(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 60);
        knobs.early_share = seed % 2 * 60;
        knobs.streams = 4;
        knobs.ops = 60;
        knobs.tiny_share = 0;
        struct tarn_graph *graph = random_graph(&knobs);
        struct tarn_plan *plan = unshared_plan(graph, 64);
        for (uint32_t a = 0; a < graph->planned_count; a++) place_of(plan, a)->offset = 0;
        struct tarn_error error;
        /* one worker: everything on the same bytes is also a race that sanitizers would report */
        enum tarn_status status = check(plan, 1, TARN_CHECK_OPTIONS(.iterations = 4), NULL, &error);
        assert_int_equal(status, TARN_CHECK_FAILED);
        assert_int_equal(error.status, TARN_CHECK_FAILED);
        assert_says(&error, " instead of 0x");
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* ---- Orders ---- */

static void refuses_orders_that_are_not_legal(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("chain");
    tarn_stream s = tarn_builder_stream(b, "s");
    tarn_tensor x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = 8});
    tarn_tensor y = tarn_builder_alias(b, x, "y");
    tarn_tensor z = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "z", .size = 8});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(x)});
    tarn_builder_op(
        b, &(struct tarn_op_info){
               .stream = s, .inputs = TARN_TENSORS(x), .outputs = TARN_TENSORS(y), .view = true});
    tarn_builder_op(b, &(struct tarn_op_info){
                           .stream = s, .inputs = TARN_TENSORS(y), .outputs = TARN_TENSORS(z)});
    struct tarn_graph *graph;
    struct tarn_error error;
    require(tarn_builder_finish(b, &graph, &error), &error);
    struct tarn_plan *plan = unshared_plan(graph, 8);
    static const struct {
        struct tarn_step steps[3];
        size_t count;
        const char *text;
    } cases[] = {
        {{{2, 0}}, 1, "step 0 of the order, op 2 of iteration 0, is not the next of its stream"},
        {{{0, 0}, {0, 0}},
         2,
         "step 1 of the order, op 0 of iteration 0, is not the next of its stream"},
        {{{0, 1}}, 1, "step 0 of the order, op 0 of iteration 1, is not the next of its stream"},
        {{{0, 0}, {1, 0}}, 2, "is a view and never launched"},
        {{{3, 0}}, 1, "is not in the graph"},
        {{{0, 0}, {2, 0}, {2, 1}}, 3, "which is op 0 of iteration 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum tarn_status status = check_order(plan, cases[i].steps, cases[i].count, &error);
        assert_int_equal(status, TARN_BAD_INPUT);
        assert_int_equal(error.status, TARN_BAD_INPUT);
        assert_says(&error, cases[i].text);
    }
    const struct tarn_step legal[] = {{0, 0}, {2, 0}, {0, 1}};
    require(check_order(plan, legal, 3, &error), &error);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void an_order_may_stop_anywhere(void **state)
{
    (void)state;
    enum { ITERATIONS = 3, STEPS_MAX = 20 * ITERATIONS };
    for (uint64_t seed = 0; seed < (SANITIZED ? 5 : 25); seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 20);
        struct tarn_graph *graph = random_graph(&knobs);
        struct tarn_plan *plan;
        struct tarn_error error;
        struct tarn_program program;
        struct tarn_linear linear;
        struct tarn_draw draw;
        struct tarn_region region = {0};
        struct tarn_step steps[STEPS_MAX + 1];
        struct tarn_check_report report;
        require(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.effort = TARN_NO_EFFORT), &plan, &error),
                &error);
        require(tarn_program_init(&program, plan, &error), &error);
        assert_int_equal(tarn_linear_init(&linear, &region, &program, graph), TARN_OK);
        assert_int_equal(tarn_draw_init(&draw, &region, program.streams_count, seed), TARN_OK);
        size_t count = 0;
        while (tarn_draw_step(&draw, &linear, ITERATIONS, &steps[count])) count++;
        assert_int_equal(count, (size_t)program.steps_count * ITERATIONS);
        for (size_t end = 0; end <= count; end++) {
            struct tarn_check_options *options =
                TARN_CHECK_OPTIONS(.order = steps, .order_count = end);
            require(check(plan, 1, options, &report, &error), &error);
            assert_int_equal(report.ops_run, end);
        }
        tarn_region_finish(&region);
        tarn_program_finish(&program);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* Beginnings of random orders show that streams really overtake each other. */
static void random_orders_differ_and_repeat(void **state)
{
    (void)state;
    struct random_graph_options knobs = {.seed = 5, .ops = 60, .streams = 5, .parameters = 2};
    struct tarn_graph *graph = random_graph(&knobs);
    struct tarn_plan *plan = unshared_plan(graph, 64);
    struct tarn_program program;
    struct tarn_error error;
    require(tarn_program_init(&program, plan, &error), &error);
    struct tarn_step orders[4][120];
    memset(orders, 0, sizeof orders);
    for (int i = 0; i < 4; i++) {
        struct tarn_linear linear;
        struct tarn_draw draw;
        struct tarn_region region = {0};
        assert_int_equal(tarn_linear_init(&linear, &region, &program, graph), TARN_OK);
        assert_int_equal(tarn_draw_init(&draw, &region, program.streams_count, (uint64_t)i % 3),
                         TARN_OK);
        for (size_t n = 0; tarn_draw_step(&draw, &linear, 2, &orders[i][n]);) n++;
        tarn_region_finish(&region);
    }
    assert_memory_equal(orders[0], orders[3], sizeof orders[0]);
    assert_memory_not_equal(orders[0], orders[1], sizeof orders[0]);
    assert_memory_not_equal(orders[1], orders[2], sizeof orders[0]);
    tarn_program_finish(&program);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Use ---- */

static void stops_at_the_deadline_on_streams_and_in_order(void **state)
{
    (void)state;
    struct toy toy = toy_create();
    struct tarn_error error;
    struct tarn_check_options options =
        *TARN_CHECK_OPTIONS(.iterations = 1000, .delay_ns = 1000000, .timeout_ns = 1000000);
    assert_int_equal(check(toy.plan, 2, &options, NULL, &error), TARN_DEADLINE);
    options.random_order = true;
    assert_int_equal(check(toy.plan, 2, &options, NULL, &error), TARN_DEADLINE);
    assert_says(&error, "next would be op");
    toy_destroy(&toy);
}

static void asks_for_a_fresh_session_and_leaves_it_unbound(void **state)
{
    (void)state;
    struct toy toy = toy_create();
    struct tarn_error error;
    struct tarn_session *session;
    tarn_ticket ticket;
    require(tarn_session_create(toy.plan, tarn_device_host(NULL), NULL, &session, &error), &error);
    assert_int_equal(tarn_session_bind_default(session, do_nothing, NULL), TARN_OK);
    require(tarn_session_check(session, NULL, NULL, &error), &error);
    assert_int_equal(tarn_session_check(session, NULL, NULL, &error), TARN_USAGE);
    assert_int_equal(tarn_session_submit(session, 1, &ticket, &error), TARN_USAGE);
    assert_says(&error, "no kernel");
    assert_int_equal(tarn_session_bind_default(session, do_nothing, NULL), TARN_OK);
    require(tarn_session_submit(session, 1, &ticket, &error), &error);
    require(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
    tarn_session_destroy(session);
    require(tarn_session_create(toy.plan, tarn_device_host(NULL), NULL, &session, &error), &error);
    assert_int_equal(tarn_session_bind_default(session, do_nothing, NULL), TARN_OK);
    require(tarn_session_submit(session, 1, &ticket, &error), &error);
    require(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
    assert_int_equal(tarn_session_check(session, NULL, NULL, &error), TARN_USAGE);
    assert_says(&error, "fresh session");
    tarn_session_destroy(session);
    toy_destroy(&toy);
}

static void refuses_options_that_contradict_each_other(void **state)
{
    (void)state;
    struct toy toy = toy_create();
    struct tarn_error error;
    const struct tarn_step step = {0, 0};
    struct tarn_check_options old = {.struct_size = 8, .random_order = true}, none = {0};
    require(check(toy.plan, 1, &old, NULL, &error), &error); /* what it does not have is default */
    assert_int_equal(check(toy.plan, 1, &none, NULL, &error), TARN_USAGE);
    assert_int_equal(check(toy.plan, 1, TARN_CHECK_OPTIONS(.order_count = 1), NULL, &error),
                     TARN_USAGE);
    struct tarn_check_options *both =
        TARN_CHECK_OPTIONS(.order = &step, .order_count = 1, .random_order = true);
    assert_int_equal(check(toy.plan, 1, both, NULL, &error), TARN_USAGE);
    toy_destroy(&toy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_is_found_where_it_was_filled_and_nowhere_else),
        cmocka_unit_test(right_plans_pass_with_one_digest_in_every_order),
        cmocka_unit_test(the_digest_does_not_depend_on_the_plan_but_on_the_work),
        cmocka_unit_test(counts_what_ran),
        cmocka_unit_test(versions_do_not_depend_on_how_the_window_moves),
        cmocka_unit_test(two_storages_on_the_same_bytes_fail_in_some_order_exactly_when_unsafe),
        cmocka_unit_test(names_reader_byte_and_writer_of_an_overwritten_input),
        cmocka_unit_test(sees_that_a_wait_is_missing),
        cmocka_unit_test(sees_that_a_wait_on_the_previous_iteration_is_missing),
        cmocka_unit_test(sees_an_output_that_is_overwritten_before_the_end),
        cmocka_unit_test(sees_a_persistent_tensor_that_is_overwritten),
        cmocka_unit_test(sees_that_an_ops_own_storages_share_bytes),
        cmocka_unit_test(the_first_of_many_failures_on_many_workers_is_told_whole),
        cmocka_unit_test(refuses_orders_that_are_not_legal),
        cmocka_unit_test(an_order_may_stop_anywhere),
        cmocka_unit_test(random_orders_differ_and_repeat),
        cmocka_unit_test(stops_at_the_deadline_on_streams_and_in_order),
        cmocka_unit_test(asks_for_a_fresh_session_and_leaves_it_unbound),
        cmocka_unit_test(refuses_options_that_contradict_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
