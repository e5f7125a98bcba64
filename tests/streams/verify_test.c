/* One small plan, broken in one way at a time: the verifier names the way, the ops and tensors, and
 * shows an order that corrupts. Then final graphs that differ from their source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/region.h"
#include "streams/graph/builder.h"
#include "streams/verify/byte_map.h"
#include "streams/verify/verdict.h"
#include "streams/verify/verify.h"
#include "support/plan_oracle.h"
#include "support/random_graph.h"
#include "tarn.h"

#define UNSAFE_PLANS TARN_SOURCE_DIR "/tests/data/unsafe_plans"

/* ---- The plan to break ----
 *
 *     compute:  make ──► square ──────────► join ──► close
 *                 │a        │b               ▲         │out
 *                 └──► comm: reduce(a in place) ──► send (reads a')
 *
 * Tensors: weight (persistent), state (persistent, updated by close), a, a' (alias of a), b, c
 * (what send writes), out (output), left and right (a group made by join), workspace of square. */
enum { MAKE, SQUARE, REDUCE, SEND, JOIN, CLOSE };
enum { WEIGHT, STATE, A, B, C, OUT, LEFT, RIGHT, A_REDUCED, STATE_NEXT };

static tarn_tensor add_tensor(struct tarn_builder *builder, const char *name, uint64_t size,
                              enum tarn_tensor_kind kind)
{
    return tarn_builder_tensor(
        builder, &(struct tarn_tensor_info){.name = name, .size = size, .kind = kind});
}

static tarn_op add_op(struct tarn_builder *builder, const char *name, tarn_stream stream,
                      struct tarn_list inputs, struct tarn_list outputs, uint64_t workspace)
{
    return tarn_builder_op(builder, &(struct tarn_op_info){.name = name,
                                                           .stream = stream,
                                                           .inputs = inputs,
                                                           .outputs = outputs,
                                                           .workspace = workspace});
}

static void add_tensors(struct tarn_builder *builder)
{
    add_tensor(builder, "weight", 64, TARN_PARAMETER);
    add_tensor(builder, "state", 64, TARN_OPTIMIZER_STATE);
    add_tensor(builder, "a", 128, TARN_GRADIENT);
    add_tensor(builder, "b", 128, TARN_INTERMEDIATE);
    add_tensor(builder, "c", 64, TARN_INTERMEDIATE);
    add_tensor(builder, "out", 64, TARN_OUTPUT);
    add_tensor(builder, "left", 32, TARN_INTERMEDIATE);
    add_tensor(builder, "right", 32, TARN_INTERMEDIATE);
    tarn_builder_alias(builder, A, "a.reduced");
    tarn_builder_alias(builder, STATE, "state.next");
}

static struct tarn_graph *finish(struct tarn_builder *builder)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    if (tarn_builder_finish(builder, &graph, &error)) fail_msg("%s", error.text);
    return graph;
}

static struct tarn_graph *small_graph(void)
{
    struct tarn_builder *builder = tarn_builder_create("small");
    tarn_stream compute = tarn_builder_stream(builder, "compute");
    tarn_stream comm = tarn_builder_stream(builder, "comm");
    struct tarn_list none = {0};
    add_tensors(builder);
    add_op(builder, "make", compute, TARN_LIST(WEIGHT), TARN_LIST(A), 0);
    add_op(builder, "square", compute, none, TARN_LIST(B), 32);
    add_op(builder, "reduce", comm, TARN_LIST(A), TARN_LIST(A_REDUCED), 0);
    add_op(builder, "send", comm, TARN_LIST(A_REDUCED), TARN_LIST(C), 0);
    add_op(builder, "join", compute, TARN_LIST(B, C), TARN_LIST(LEFT, RIGHT), 0);
    add_op(builder, "close", compute, TARN_LIST(LEFT, RIGHT, STATE), TARN_LIST(OUT, STATE_NEXT), 0);
    tarn_builder_control(builder, CLOSE, SEND);
    tarn_builder_group(builder, TARN_LIST(LEFT, RIGHT));
    return finish(builder);
}

struct fixture {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_verdict *verdict;
    struct tarn_error error;
};

static struct tarn_place *place(struct fixture *fixture, uint32_t tensor)
{
    uint32_t storage = fixture->graph->tensors[tensor].storage;
    return (struct tarn_place *)tarn_plan_place(fixture->plan, storage);
}

/* Every storage on its own: a 0, b 128, c 256, out 320, left 384, right 416, workspace 448. */
static int set_up(void **state)
{
    static const uint32_t roots[] = {A, B, C, OUT, LEFT, RIGHT};
    static const uint64_t offsets[] = {0, 128, 256, 320, 384, 416};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->graph = small_graph();
    fixture->plan = tarn_plan_of_graph(fixture->graph);
    fixture->plan->alignment = 64;
    fixture->plan->footprint = 512;
    fixture->plan->persistent = 128;
    for (size_t i = 0; i < 6; i++) place(fixture, roots[i])->offset = offsets[i];
    fixture->plan->workspaces[0].offset = 448;
    place(fixture, STATE)->offset = 64;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    tarn_verdict_destroy(fixture->verdict);
    tarn_plan_destroy(fixture->plan);
    tarn_graph_destroy(fixture->graph);
    free(fixture);
    return 0;
}

static enum tarn_status verify(struct fixture *fixture)
{
    tarn_plan_drop_program(fixture->plan); /* tests change the plan */
    return tarn_plan_verify(fixture->plan, fixture->graph, NULL, &fixture->verdict,
                            &fixture->error);
}

/* The first violation of that kind; the plan must be rejected. */
static const struct tarn_violation *find(struct fixture *fixture, enum tarn_violation_kind kind)
{
    assert_int_equal(verify(fixture), TARN_REJECTED);
    assert_int_equal(fixture->error.status, TARN_REJECTED);
    for (size_t i = 0; i < tarn_verdict_count(fixture->verdict); i++) {
        const struct tarn_violation *violation = tarn_verdict_get(fixture->verdict, i);
        if (violation->kind == kind) return violation;
    }
    fail_msg("no \"%s\", but %s", tarn_violation_text(kind), fixture->error.text);
    return NULL;
}

static void require_witness(const struct fixture *fixture, const struct tarn_violation *violation)
{
    assert_non_null(violation->witness);
    assert_true(oracle_is_legal(fixture->plan, violation->witness, violation->witness_count));
    assert_true(oracle_corrupts(fixture->plan, violation->witness, violation->witness_count));
}

static void require_text(const struct tarn_violation *violation, const char *part)
{
    if (!strstr(violation->text, part)) fail_msg("no '%s' in: %s", part, violation->text);
}

static void drop_wait(struct tarn_wait *waits, uint32_t *count, uint32_t op, uint32_t on)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (waits[i].op != op || waits[i].on != on) continue;
        memmove(&waits[i], &waits[i + 1], (--*count - i) * sizeof *waits);
        return;
    }
    fail_msg("op %u does not wait for op %u", op, on);
}

static void swap(uint32_t *list, uint32_t i, uint32_t j)
{
    uint32_t op = list[i];
    list[i] = list[j];
    list[j] = op;
}

/* ---- Safety ---- */

static void accepts_a_sound_plan(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(verify(fixture), TARN_OK);
    assert_int_equal(tarn_verdict_count(fixture->verdict), 0);
    assert_null(tarn_verdict_get(fixture->verdict, 0));
    assert_int_equal(fixture->error.status, TARN_OK);
}

static void accepts_reuse_of_bytes_that_order_allows(void **state)
{
    struct fixture *fixture = *state;
    place(fixture, LEFT)->offset = 0; /* a is read for the last time by send, before join */
    place(fixture, RIGHT)->offset = 32;
    assert_int_equal(verify(fixture), TARN_OK);
}

/* Its second write finds the first, and nobody is between the two. */
static void accepts_an_op_that_writes_a_storage_through_several_tensors(void **state)
{
    (void)state;
    struct tarn_builder *builder = tarn_builder_create("twice");
    struct tarn_list none = {0};
    tarn_builder_stream(builder, "");
    tarn_tensor whole = add_tensor(builder, "whole", 64, TARN_INTERMEDIATE);
    tarn_tensor left = tarn_builder_alias(builder, whole, "left");
    tarn_tensor right = tarn_builder_alias(builder, whole, "right");
    add_op(builder, "make", 0, none, TARN_LIST(whole), 0);
    add_op(builder, "fill", 0, none, TARN_LIST(left, right), 0);
    add_op(builder, "use", 0, TARN_LIST(left, right), none, 0);
    struct fixture fixture = {.graph = finish(builder)};
    fixture.plan = tarn_plan_of_graph(fixture.graph);
    fixture.plan->alignment = fixture.plan->footprint = 64;
    if (verify(&fixture)) fail_msg("%s", fixture.error.text);
    tarn_verdict_destroy(fixture.verdict);
    swap(fixture.plan->list, 1, 2);
    find(&fixture, TARN_HAZARD_LOST);
    tarn_verdict_destroy(fixture.verdict);
    tarn_plan_destroy(fixture.plan);
    tarn_graph_destroy(fixture.graph);
}

static void rejects_overlap_between_unordered_streams(void **state)
{
    struct fixture *fixture = *state;
    place(fixture, B)->offset = 64; /* square writes b while reduce and send use a */
    const struct tarn_violation *violation = find(fixture, TARN_UNORDERED_OVERLAP);
    assert_int_equal(violation->tensor, A);
    assert_int_equal(violation->other_tensor, B);
    require_text(violation, "tensor 2 \"a\" (bytes 0..128)");
    require_text(violation, "tensor 3 \"b\" (bytes 64..192)");
    require_witness(fixture, violation);
}

static void rejects_an_op_whose_own_storages_share_bytes(void **state)
{
    struct fixture *fixture = *state;
    place(fixture, LEFT)->offset = 256; /* join reads c and writes left */
    place(fixture, RIGHT)->offset = 288;
    const struct tarn_violation *violation = find(fixture, TARN_UNORDERED_OVERLAP);
    assert_int_equal(violation->op, JOIN);
    assert_int_equal(violation->other_op, JOIN);
    require_text(violation, "uses itself");
    require_witness(fixture, violation);
}

static void rejects_a_workspace_over_what_its_op_writes(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->workspaces[0].offset = 128;
    const struct tarn_violation *violation = find(fixture, TARN_UNORDERED_OVERLAP);
    assert_int_equal(violation->op, SQUARE);
    assert_int_equal(violation->tensor, B);
    assert_int_equal(violation->other_tensor, TARN_NONE);
    require_text(violation, "workspace of op 1 \"square\"");
    require_witness(fixture, violation);
}

static void rejects_bytes_overwritten_before_their_last_reader(void **state)
{
    struct fixture *fixture = *state;
    place(fixture, A)->offset = 128; /* reduce writes a over b before join reads b, always */
    const struct tarn_violation *violation = find(fixture, TARN_OVERWRITTEN_INPUT);
    assert_int_equal(violation->op, JOIN);
    assert_int_equal(violation->other_op, REDUCE);
    assert_int_equal(violation->tensor, B);
    assert_int_equal(violation->other_tensor, A);
    require_witness(fixture, violation);
}

static void rejects_an_output_that_its_iteration_overwrites(void **state)
{
    struct fixture *fixture = *state;
    struct tarn_plan *plan = fixture->plan;
    plan->workspaces[0].offset = 320; /* square's workspace lies under out, before close */
    assert_int_equal(verify(fixture), TARN_OK);
    tarn_verdict_destroy(fixture->verdict);
    swap(plan->list, 1, 3); /* make, close ... square: the waits of close and join go along */
    const struct tarn_violation *violation = find(fixture, TARN_OVERWRITTEN_INPUT);
    assert_non_null(violation);
    for (size_t i = 0; i < tarn_verdict_count(fixture->verdict); i++) {
        violation = tarn_verdict_get(fixture->verdict, i);
        if (violation->other_tensor == OUT) break;
    }
    assert_int_equal(violation->other_tensor, OUT);
    require_text(violation, "which must stay until the iteration ends");
    require_witness(fixture, violation);
}

static void rejects_a_read_that_no_longer_waits_for_its_write(void **state)
{
    struct fixture *fixture = *state;
    drop_wait(fixture->plan->waits, &fixture->plan->waits_count, REDUCE, MAKE);
    const struct tarn_violation *violation = find(fixture, TARN_HAZARD_LOST);
    assert_int_equal(violation->op, REDUCE);
    assert_int_equal(violation->other_op, MAKE);
    assert_int_equal(violation->tensor, A);
    require_witness(fixture, violation);
}

static void rejects_ops_of_one_stream_in_an_order_that_breaks_a_hazard(void **state)
{
    struct fixture *fixture = *state;
    swap(fixture->plan->list, 4, 5); /* send before reduce */
    const struct tarn_violation *violation = find(fixture, TARN_HAZARD_LOST);
    require_witness(fixture, violation);
}

static void rejects_iterations_that_may_overtake_each_other(void **state)
{
    struct fixture *fixture = *state;
    struct tarn_plan *plan = fixture->plan;
    drop_wait(plan->boundary_waits, &plan->boundary_waits_count, MAKE, SEND);
    /* close waits for send, so compute cannot run ahead; without that arc's wait it can */
    drop_wait(plan->waits, &plan->waits_count, JOIN, SEND);
    find(fixture, TARN_HAZARD_LOST);
    bool boundary = false;
    for (size_t i = 0; i < tarn_verdict_count(fixture->verdict); i++) {
        const struct tarn_violation *violation = tarn_verdict_get(fixture->verdict, i);
        if (!strstr(violation->text, "of the previous iteration")) continue;
        boundary = true;
        require_witness(fixture, violation);
    }
    assert_true(boundary);
}

static void rejects_a_control_arc_that_nothing_keeps(void **state)
{
    (void)state;
    struct tarn_builder *builder = tarn_builder_create("control");
    tarn_stream left = tarn_builder_stream(builder, "left");
    tarn_stream right = tarn_builder_stream(builder, "right");
    struct tarn_list none = {0};
    tarn_op first = add_op(builder, "first", left, none, none, 0);
    tarn_op second = add_op(builder, "second", right, none, none, 0);
    tarn_builder_control(builder, second, first);
    struct fixture fixture = {.graph = finish(builder)};
    fixture.plan = tarn_plan_of_graph(fixture.graph);
    fixture.plan->alignment = 1;
    assert_int_equal(verify(&fixture), TARN_OK);
    tarn_verdict_destroy(fixture.verdict);
    fixture.plan->waits_count = 0;
    const struct tarn_violation *violation = find(&fixture, TARN_HAZARD_LOST);
    assert_int_equal(violation->op, second);
    assert_int_equal(violation->other_op, first);
    assert_null(violation->witness); /* no byte tells */
    tarn_verdict_destroy(fixture.verdict);
    tarn_plan_destroy(fixture.plan);
    tarn_graph_destroy(fixture.graph);
}

/* ---- Orders that only views carry ----
 *
 *     first:   produce ──a──► (looks) ──v──► (glances)      views in brackets, on streams of their
 *     second:                              update           own; who controls whom varies */
enum { PRODUCE, LOOK, GLANCE, UPDATE_OP };

/* The arcs into look, glance and update: by data (where there is a tensor), by control, or none. */
enum link { NO_LINK, DATA, CONTROL };

struct view_chain {
    enum link look, glance;
    bool is_update_free; /* no control arc to glance: nothing orders update */
};

static struct tarn_graph *view_chain(struct view_chain chain, bool final)
{
    struct tarn_builder *builder = tarn_builder_create("views");
    for (int s = 0; s < 4; s++) tarn_builder_stream(builder, "");
    tarn_tensor a = add_tensor(builder, "a", 8, TARN_INTERMEDIATE);
    tarn_tensor w = add_tensor(builder, "w", 8, TARN_PARAMETER);
    tarn_tensor looked = tarn_builder_alias(builder, chain.look == DATA ? a : w, "looked");
    tarn_tensor glanced = tarn_builder_alias(builder, chain.glance == DATA ? looked : w, "glanced");
    tarn_tensor b = add_tensor(builder, "b", 8, TARN_INTERMEDIATE);
    const uint32_t looks_at[] = {chain.look == DATA ? a : w};
    const uint32_t glances_at[] = {chain.glance == DATA ? looked : w};
    const struct tarn_op_info ops[] = {
        {.name = "produce", .stream = 0, .outputs = TARN_LIST(a)},
        {.stream = 1, .inputs = {looks_at, 1}, .outputs = TARN_LIST(looked), .view = true},
        {.stream = 2, .inputs = {glances_at, 1}, .outputs = TARN_LIST(glanced), .view = true},
        {.name = "update", .stream = 3, .outputs = TARN_LIST(b)}};
    for (uint32_t v = PRODUCE; v <= UPDATE_OP; v++) {
        tarn_builder_op(builder, &ops[v]);
        if (final) tarn_builder_origin(builder, v, TARN_NONE);
    }
    if (chain.look == CONTROL) tarn_builder_control(builder, LOOK, PRODUCE);
    if (chain.glance == CONTROL) tarn_builder_control(builder, GLANCE, LOOK);
    if (!chain.is_update_free) tarn_builder_control(builder, UPDATE_OP, GLANCE);
    return finish(builder);
}

static struct tarn_plan *plan_of_views(struct tarn_graph *graph)
{
    struct tarn_plan *plan = tarn_plan_of_graph(graph);
    plan->alignment = 8;
    plan->footprint = 16;
    plan->storages[1].offset = 8;
    plan->persistent = 8;
    return plan;
}

static void require_lost_order(struct fixture *fixture, const char *part)
{
    const struct tarn_violation *violation = find(fixture, TARN_HAZARD_LOST);
    assert_int_equal(violation->op, UPDATE_OP);
    assert_int_equal(violation->other_op, PRODUCE);
    require_text(violation, part);
    tarn_verdict_destroy(fixture->verdict);
    fixture->verdict = NULL;
}

static const struct view_chain view_chains[] = {
    {DATA, DATA, false}, {DATA, CONTROL, false}, {CONTROL, DATA, false}, {CONTROL, CONTROL, false}};

static void rejects_a_plan_without_an_order_that_views_carry(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct fixture fixture = {.graph = view_chain(view_chains[i], false)};
        fixture.plan = plan_of_views(fixture.graph);
        assert_int_equal(fixture.plan->waits_count, 1); /* update waits for produce */
        assert_int_equal(verify(&fixture), TARN_OK);
        tarn_verdict_destroy(fixture.verdict);
        fixture.plan->waits_count = 0;
        require_lost_order(&fixture, "a control arc says");
        tarn_plan_destroy(fixture.plan);
        tarn_graph_destroy(fixture.graph);
    }
}

static void rejects_a_final_graph_without_an_order_that_views_carry(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct fixture fixture = {.graph = view_chain(view_chains[i], false)};
        struct view_chain freed = view_chains[i];
        freed.is_update_free = true;
        struct tarn_graph *final = view_chain(freed, true);
        fixture.plan = plan_of_views(final);
        fixture.plan->transformed = true;
        fixture.plan->source_hash = fixture.graph->hash;
        require_lost_order(&fixture, "of the source graph");
        tarn_plan_destroy(fixture.plan);
        tarn_graph_destroy(final);
        tarn_graph_destroy(fixture.graph);
    }
}

static void rejects_persistent_storages_that_share_bytes(void **state)
{
    struct fixture *fixture = *state;
    place(fixture, STATE)->offset = 0;
    const struct tarn_violation *violation = find(fixture, TARN_UNORDERED_OVERLAP);
    assert_int_equal(violation->tensor, STATE);
    assert_int_equal(violation->other_tensor, WEIGHT);
    require_witness(fixture, violation);
}

static void rejects_waits_that_form_a_cycle_and_names_it(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->waits[0] = (struct tarn_wait){MAKE, SEND};
    fixture->plan->waits[1] = (struct tarn_wait){REDUCE, SQUARE};
    const struct tarn_violation *violation = find(fixture, TARN_DEADLOCK);
    require_text(violation, "op 0 \"make\"");
    require_text(violation, "op 3 \"send\"");
    assert_null(violation->witness);
}

/* ---- Form ---- */

static void rejects_a_group_that_is_not_back_to_back(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->footprint = 1024;
    place(fixture, RIGHT)->offset = 512;
    const struct tarn_violation *violation = find(fixture, TARN_GROUP_BROKEN);
    assert_int_equal(violation->tensor, RIGHT);
    assert_int_equal(violation->other_tensor, LEFT);
}

static void rejects_misaligned_offsets_outside_groups(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->footprint = 1024;
    place(fixture, C)->offset = 544;
    assert_int_equal(find(fixture, TARN_MISALIGNED)->tensor, C);
}

static void rejects_a_group_that_starts_misaligned(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->footprint = 1024;
    place(fixture, LEFT)->offset = 544;
    place(fixture, RIGHT)->offset = 576;
    assert_int_equal(find(fixture, TARN_MISALIGNED)->tensor, LEFT);
}

static void rejects_reserved_bytes_above_the_footprint(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->footprint = 480; /* the workspace's 32 bytes fit, its padding to 64 does not */
    const struct tarn_violation *violation = find(fixture, TARN_OUT_OF_RANGE);
    assert_int_equal(violation->op, SQUARE);
    assert_int_equal(violation->tensor, TARN_NONE);
    require_text(violation, "workspace of op 1 \"square\"");
}

static void rejects_an_offset_whose_end_overflows(void **state)
{
    struct fixture *fixture = *state;
    place(fixture, B)->offset = UINT64_MAX - 63;
    assert_int_equal(find(fixture, TARN_OUT_OF_RANGE)->tensor, B);
}

static void rejects_persistent_storages_above_their_part(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->persistent = 64;
    assert_int_equal(find(fixture, TARN_OUT_OF_RANGE)->tensor, STATE);
}

static void rejects_an_op_that_is_absent(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->list[3] = fixture->plan->list[2]; /* join twice, close never */
    find(fixture, TARN_MISSING);
    assert_int_equal(tarn_verdict_get(fixture->verdict, 0)->op, JOIN);
    assert_int_equal(tarn_verdict_get(fixture->verdict, 1)->op, CLOSE);
    assert_int_equal(tarn_verdict_count(fixture->verdict), 2);
}

static void rejects_an_op_in_the_list_of_another_stream(void **state)
{
    struct fixture *fixture = *state;
    swap(fixture->plan->list, 3, 4);
    require_text(find(fixture, TARN_MISSING), "another stream");
}

static void rejects_a_wait_for_what_is_not_launched(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->waits[0].on = 99;
    require_text(find(fixture, TARN_MISSING), "op 99 is waited for, but is not launched");
}

static void rejects_a_storage_without_a_place(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->workspaces_count = 0;
    require_text(find(fixture, TARN_MISSING), "workspace of op 1 \"square\" has no place");
}

static void rejects_a_place_of_the_wrong_size(void **state)
{
    struct fixture *fixture = *state;
    place(fixture, OUT)->size = 32;
    assert_int_equal(find(fixture, TARN_MISSING)->tensor, OUT);
}

static void rejects_a_place_that_nothing_needs(void **state)
{
    struct fixture *fixture = *state;
    place(fixture, RIGHT)->id = A_REDUCED;
    find(fixture, TARN_MISSING);
    assert_int_equal(tarn_verdict_count(fixture->verdict), 2);
}

static void rejects_a_plan_of_another_graph(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->source_hash.word[0] ^= 1;
    find(fixture, TARN_WRONG_GRAPH);
    assert_int_equal(tarn_verdict_count(fixture->verdict), 1);
}

static void rejects_a_list_with_what_the_graph_has_not(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->list[3] = 99;
    require_text(find(fixture, TARN_MISSING), "op 99 is in a stream's list, but not in the graph");
}

static void rejects_a_view_that_is_launched(void **state)
{
    (void)state;
    struct fixture fixture = {.graph = view_chain(view_chains[0], false)};
    fixture.plan = plan_of_views(fixture.graph);
    fixture.plan->list[0] = LOOK;
    require_text(find(&fixture, TARN_MISSING), "is a view, but in a stream's list");
    tarn_verdict_destroy(fixture.verdict);
    tarn_plan_destroy(fixture.plan);
    tarn_graph_destroy(fixture.graph);
}

static void rejects_lists_for_other_streams_than_there_are(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->streams_count = 1;
    require_text(find(fixture, TARN_MISSING), "1 stream lists for a graph of 2 streams");
}

static void rejects_a_wait_of_what_is_not_launched(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->waits[0].op = 99;
    require_text(find(fixture, TARN_MISSING), "op 99 has to wait, but is not launched");
}

static void rejects_a_place_that_nothing_needs_among_those_needed(void **state)
{
    struct fixture *fixture = *state;
    place(fixture, A)->id = WEIGHT; /* the first of the list, whose other ids are higher */
    require_text(find(fixture, TARN_MISSING), "a place for id 0, which needs none there");
    require_text(tarn_verdict_get(fixture->verdict, 1), "\"a\" has no place");
    assert_int_equal(tarn_verdict_count(fixture->verdict), 2);
}

static void rejects_two_places_for_one_storage(void **state)
{
    struct fixture *fixture = *state;
    struct tarn_place *other = place(fixture, B);
    other->id = A;
    require_text(find(fixture, TARN_MISSING), "two places for id 2");
}

static void rejects_an_alignment_that_is_no_power_of_two(void **state)
{
    struct fixture *fixture = *state;
    struct tarn_error error = {0};
    fixture->plan->alignment = 96;
    require_text(find(fixture, TARN_MISALIGNED), "the alignment 96 is no power of two");
    assert_int_equal(tarn_plan_check_form(fixture->plan, &error), TARN_BAD_INPUT);
    assert_string_equal(error.text, "misaligned: the alignment 96 is no power of two");
}

static void rejects_parts_that_exceed_64_bits_together(void **state)
{
    struct fixture *fixture = *state;
    fixture->plan->footprint = UINT64_MAX - 64;
    require_text(find(fixture, TARN_OUT_OF_RANGE), "together exceed 64 bits");
}

static void rejects_a_plan_whose_graph_is_not_the_one_given(void **state)
{
    struct fixture *fixture = *state;
    struct tarn_graph *own = fixture->plan->graph;
    fixture->plan->graph = view_chain(view_chains[0], false); /* as the source it claims to be */
    require_text(find(fixture, TARN_WRONG_GRAPH), tarn_hash_format(own->hash).text);
    tarn_graph_destroy(fixture->plan->graph);
    fixture->plan->graph = own;
}

static void every_kind_of_violation_has_a_text_of_its_own(void **state)
{
    (void)state;
    for (int a = TARN_UNORDERED_OVERLAP; a <= TARN_MISPLACED + 1; a++)
        for (int b = TARN_UNORDERED_OVERLAP; b < a; b++)
            assert_string_not_equal(tarn_violation_text((enum tarn_violation_kind)a),
                                    tarn_violation_text((enum tarn_violation_kind)b));
    assert_string_equal(tarn_violation_text((enum tarn_violation_kind)(TARN_MISPLACED + 1)),
                        "unknown violation");
}

static void collects_several_violations_and_reports_the_first(void **state)
{
    struct fixture *fixture = *state;
    place(fixture, A)->offset = place(fixture, B)->offset = place(fixture, C)->offset = 0;
    assert_int_equal(verify(fixture), TARN_REJECTED);
    assert_true(tarn_verdict_count(fixture->verdict) > 1);
    const struct tarn_violation *first = tarn_verdict_get(fixture->verdict, 0);
    assert_int_equal(fixture->error.op, first->op);
    assert_int_equal(fixture->error.tensor, first->tensor);
    assert_non_null(strstr(fixture->error.text, first->text));
}

static void stops_at_a_hundred_violations(void **state)
{
    (void)state;
    struct tarn_builder *builder = tarn_builder_create("wide");
    struct fixture fixture = {0};
    for (uint32_t i = 0; i < 60; i++) {
        tarn_stream stream = tarn_builder_stream(builder, "");
        tarn_tensor tensor = add_tensor(builder, "", 8, TARN_OUTPUT);
        add_op(builder, "", stream, (struct tarn_list){0}, TARN_LIST(tensor), 0);
    }
    fixture.graph = finish(builder);
    fixture.plan = tarn_plan_of_graph(fixture.graph);
    fixture.plan->alignment = 8;
    fixture.plan->footprint = 8; /* all at 0 */
    find(&fixture, TARN_UNORDERED_OVERLAP);
    assert_int_equal(tarn_verdict_count(fixture.verdict), 100);
    assert_null(tarn_verdict_get(fixture.verdict, 100));
    tarn_verdict_destroy(fixture.verdict);
    tarn_plan_destroy(fixture.plan);
    tarn_graph_destroy(fixture.graph);
}

/* Ops that make a scratch storage each, which nobody reads; all lie at offset 0. The first ones
 * have a stream each, all others follow in the first stream; `joined`: behind all of those. */
static struct fixture scratches(uint32_t streams, uint32_t ops, bool joined)
{
    struct tarn_builder *builder = tarn_builder_create("scratches");
    struct fixture fixture = {0};
    for (uint32_t s = 0; s < streams; s++) tarn_builder_stream(builder, "");
    for (uint32_t v = 0; v < ops; v++) {
        tarn_tensor tensor = add_tensor(builder, "", 8, TARN_INTERMEDIATE);
        add_op(builder, "", v < streams ? v : 0, (struct tarn_list){0}, TARN_LIST(tensor), 0);
    }
    for (uint32_t v = 0; joined && v < streams; v++) tarn_builder_control(builder, streams, v);
    fixture.graph = finish(builder);
    fixture.plan = tarn_plan_of_graph(fixture.graph);
    fixture.plan->alignment = fixture.plan->footprint = 8;
    return fixture;
}

static void finish_scratches(struct fixture *fixture)
{
    tarn_verdict_destroy(fixture->verdict);
    tarn_plan_destroy(fixture->plan);
    tarn_graph_destroy(fixture->graph);
}

/* Two writes that nobody reads harm nobody, in whichever order; the search tries them all. */
static void ends_the_search_for_witnesses_before_it_takes_too_long(void **state)
{
    (void)state;
    struct fixture fixture = scratches(60, 12000, false);
    find(&fixture, TARN_UNORDERED_OVERLAP);
    assert_int_equal(tarn_verdict_count(fixture.verdict), 100);
    for (size_t i = 0; i < 100; i++) assert_null(tarn_verdict_get(fixture.verdict, i)->witness);
    finish_scratches(&fixture);
}

/* What the first two do leaves all in doubt that is written later over the same bytes. */
static void ends_the_look_at_what_lies_beneath_before_it_takes_too_long(void **state)
{
    (void)state;
    struct fixture fixture = scratches(2, 8000, true);
    const struct tarn_violation *violation = find(&fixture, TARN_UNORDERED_OVERLAP);
    assert_int_equal(violation->op + violation->other_op, 1);
    assert_true(tarn_verdict_count(fixture.verdict) < 10);
    finish_scratches(&fixture);
}

/* ---- Refinement ----
 * Source: x = load(); y = f(x); z = g(y); w = h(z, y). The final graphs run f a second time. */

enum change { FAITHFUL, NOT_RECOMPUTABLE, WRONG_INPUT, NO_H, OTHER_SIZE, BAD_ORIGIN };

static void add_copy(struct tarn_builder *builder, bool final, tarn_op origin, uint32_t stream,
                     struct tarn_list inputs, struct tarn_list outputs, bool recomputable)
{
    tarn_builder_op(builder,
                    &(struct tarn_op_info){.stream = stream,
                                           .inputs = inputs,
                                           .outputs = outputs,
                                           .recomputable = recomputable ? TARN_RECOMPUTABLE
                                                                        : TARN_NOT_RECOMPUTABLE});
    if (final) tarn_builder_origin(builder, origin, TARN_NONE);
}

static struct tarn_graph *chain(bool final, enum change change)
{
    struct tarn_builder *builder = tarn_builder_create("chain");
    uint32_t s = tarn_builder_stream(builder, "compute");
    bool recomputable = change != NOT_RECOMPUTABLE;
    tarn_tensor x = add_tensor(builder, "x", 64, TARN_INTERMEDIATE);
    tarn_tensor y = add_tensor(builder, "y", 64, TARN_INTERMEDIATE);
    tarn_tensor z =
        add_tensor(builder, "z", change == OTHER_SIZE && final ? 32 : 64, TARN_INTERMEDIATE);
    tarn_tensor w = add_tensor(builder, "w", 64, TARN_OUTPUT);
    add_copy(builder, final, 0, s, (struct tarn_list){0}, TARN_LIST(x), false);
    add_copy(builder, final, 1, s, TARN_LIST(x), TARN_LIST(y), recomputable);
    add_copy(builder, final, 2, s, TARN_LIST(y), TARN_LIST(z), false);
    tarn_tensor again = y;
    if (final) {
        again = add_tensor(builder, "y", 64, TARN_INTERMEDIATE);
        tarn_builder_tensor_origin(builder, y);
        tarn_tensor from = change == WRONG_INPUT ? z : x;
        add_copy(builder, final, change == BAD_ORIGIN ? 9 : 1, s, TARN_LIST(from), TARN_LIST(again),
                 recomputable);
    }
    if (change == NO_H && final)
        add_copy(builder, final, 0, s, (struct tarn_list){0}, TARN_LIST(w), false);
    else
        add_copy(builder, final, 3, s, TARN_LIST(z, again), TARN_LIST(w), false);
    return finish(builder);
}

static struct tarn_plan *plan_of_chain(struct tarn_graph *graph)
{
    struct tarn_plan *plan = tarn_plan_of_graph(graph);
    plan->alignment = 64;
    plan->footprint = 64 * plan->storages_count;
    for (uint32_t i = 0; i < plan->storages_count; i++) plan->storages[i].offset = 64 * i;
    return plan;
}

static enum tarn_status verify_change(enum change change, struct tarn_verdict **verdict,
                                      struct tarn_error *error)
{
    struct tarn_graph *source = chain(false, change), *final = chain(true, change);
    struct tarn_plan *plan = plan_of_chain(final);
    plan->transformed = true;
    plan->source_hash = source->hash;
    enum tarn_status status = tarn_plan_verify(plan, source, NULL, verdict, error);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(source);
    tarn_graph_destroy(final);
    return status;
}

static void require_change_rejected(enum change change, enum tarn_violation_kind kind,
                                    const char *part)
{
    struct tarn_verdict *verdict;
    struct tarn_error error;
    assert_int_equal(verify_change(change, &verdict, &error), TARN_REJECTED);
    bool found = false;
    for (size_t i = 0; i < tarn_verdict_count(verdict); i++) {
        const struct tarn_violation *violation = tarn_verdict_get(verdict, i);
        found = found || (violation->kind == kind && strstr(violation->text, part));
    }
    if (!found) fail_msg("%s", error.text);
    tarn_verdict_destroy(verdict);
}

static void accepts_a_final_graph_that_recomputes(void **state)
{
    (void)state;
    struct tarn_error error;
    if (verify_change(FAITHFUL, NULL, &error)) fail_msg("%s", error.text);
}

static void rejects_a_second_run_of_what_is_not_recomputable(void **state)
{
    (void)state;
    require_change_rejected(NOT_RECOMPUTABLE, TARN_MISSING, "runs more than once");
}

static void rejects_a_copy_that_reads_another_version(void **state)
{
    (void)state;
    require_change_rejected(WRONG_INPUT, TARN_HAZARD_LOST, "must see");
}

static void rejects_a_final_graph_that_drops_an_op(void **state)
{
    (void)state;
    require_change_rejected(NO_H, TARN_MISSING, "op 3 of the source graph is absent");
}

static void rejects_a_copy_with_other_tensors_than_its_origin(void **state)
{
    (void)state;
    require_change_rejected(OTHER_SIZE, TARN_WRONG_GRAPH, "tensor 2 \"z\" has another size than");
}

static void rejects_a_copy_of_nothing(void **state)
{
    (void)state;
    require_change_rejected(BAD_ORIGIN, TARN_WRONG_GRAPH, "names no launched op");
}

static void rejects_a_run_of_a_view(void **state)
{
    (void)state;
    struct fixture fixture = {.graph = view_chain((struct view_chain){DATA, DATA, true}, false)};
    struct tarn_graph *final = view_chain(view_chains[0], true);
    fixture.plan = plan_of_views(final);
    fixture.plan->transformed = true;
    fixture.plan->source_hash = fixture.graph->hash;
    assert_int_equal(verify(&fixture), TARN_OK);
    tarn_verdict_destroy(fixture.verdict);
    final->ops[UPDATE_OP].origin = LOOK;
    require_text(find(&fixture, TARN_WRONG_GRAPH), "names no launched op");
    tarn_verdict_destroy(fixture.verdict);
    tarn_plan_destroy(fixture.plan);
    tarn_graph_destroy(final);
    tarn_graph_destroy(fixture.graph);
}

static void rejects_a_final_graph_with_fewer_tensors_than_its_source(void **state)
{
    (void)state;
    struct fixture fixture = {.graph = chain(true, FAITHFUL)};
    struct tarn_graph *final = chain(false, FAITHFUL);
    fixture.plan = plan_of_chain(final);
    fixture.plan->transformed = true;
    fixture.plan->source_hash = fixture.graph->hash;
    require_text(find(&fixture, TARN_WRONG_GRAPH), "has 4 tensors, the source graph 5");
    tarn_verdict_destroy(fixture.verdict);
    tarn_plan_destroy(fixture.plan);
    tarn_graph_destroy(final);
    tarn_graph_destroy(fixture.graph);
}

/* Its ops name others as their origin, or none that there is: that was another graph's. */
static void accepts_a_graph_out_of_a_transform_as_its_own_source(void **state)
{
    (void)state;
    static const enum change changes[] = {FAITHFUL, BAD_ORIGIN};
    for (size_t i = 0; i < 2; i++) {
        struct tarn_graph *graph = chain(true, changes[i]);
        struct tarn_plan *plan = plan_of_chain(graph);
        struct tarn_error error;
        if (tarn_plan_verify(plan, graph, NULL, NULL, &error)) fail_msg("%s", error.text);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* ---- The bound ---- */

static void give_certificate(struct fixture *fixture, uint64_t bound, uint32_t compute,
                             uint32_t comm)
{
    fixture->plan->claim.bound = bound;
    fixture->plan->claim.threshold =
        tarn_region_take(&fixture->plan->region, 2, sizeof *fixture->plan->claim.threshold);
    fixture->plan->claim.threshold[0] = compute;
    fixture->plan->claim.threshold[1] = comm;
}

/* Before join and behind send: a, b, c and the workspace of square. */
static void accepts_a_bound_that_the_certificate_proves(void **state)
{
    struct fixture *fixture = *state;
    struct tarn_plan_summary summary;
    give_certificate(fixture, 384, 2, 2);
    assert_int_equal(verify(fixture), TARN_OK);
    tarn_plan_summarize(fixture->plan, &summary);
    assert_int_equal(summary.bound, 384);
    assert_false(summary.optimal); /* the footprint is 512 */
}

static void rejects_a_bound_above_what_is_proved(void **state)
{
    struct fixture *fixture = *state;
    give_certificate(fixture, 385, 2, 2);
    require_text(find(fixture, TARN_WRONG_BOUND), "none is below 385 bytes; its certificate "
                                                  "proves 384");
}

static void rejects_a_certificate_of_another_cut(void **state)
{
    struct fixture *fixture = *state;
    give_certificate(fixture, 384, 3, 2); /* a and the workspace are free at join */
    require_text(find(fixture, TARN_WRONG_BOUND), "proves 256");
}

static void rejects_a_threshold_beyond_its_stream(void **state)
{
    struct fixture *fixture = *state;
    give_certificate(fixture, 0, 2, 3);
    require_text(find(fixture, TARN_WRONG_BOUND), "beyond its stream");
}

static void rejects_a_gap_outside_every_group(void **state)
{
    struct fixture *fixture = *state;
    give_certificate(fixture, 0, 2, 2);
    fixture->plan->claim.gaps =
        tarn_region_take(&fixture->plan->region, 1, sizeof *fixture->plan->claim.gaps);
    fixture->plan->claim.gaps[fixture->plan->claim.gaps_count++] = B;
    require_text(find(fixture, TARN_WRONG_BOUND), "names a gap that is none");
}

static void rejects_gaps_that_do_not_ascend(void **state)
{
    struct fixture *fixture = *state;
    give_certificate(fixture, 0, 2, 2);
    fixture->plan->claim.gaps =
        tarn_region_take(&fixture->plan->region, 2, sizeof *fixture->plan->claim.gaps);
    fixture->plan->claim.gaps_count = 2;
    require_text(find(fixture, TARN_WRONG_BOUND), "gaps do not ascend");
}

static void rejects_a_proof_by_sizes_beyond_64_bits(void **state)
{
    (void)state;
    struct fixture fixture = scratches(1, 2, false);
    fixture.plan->alignment = fixture.plan->footprint = UINT64_C(1) << 63;
    give_certificate(&fixture, 0, 1, 0);
    require_text(find(&fixture, TARN_WRONG_BOUND), "the sizes exceed 64 bits");
    finish_scratches(&fixture);
}

/* A proof of more bytes than the plan has is no proof, whatever it says. */
static void rejects_a_footprint_below_the_bound(void **state)
{
    struct fixture *fixture = *state;
    give_certificate(fixture, 576, 2, 2);
    require_text(find(fixture, TARN_WRONG_BOUND), "none is below 576 bytes, but has a footprint of "
                                                  "512 itself");
    struct tarn_error error;
    assert_int_equal(tarn_plan_check_form(fixture->plan, &error),
                     TARN_BAD_INPUT); /* trusted, too */
}

/* Nothing runs that could corrupt anything. */
static void rejects_a_plan_of_nothing_without_a_witness(void **state)
{
    (void)state;
    struct fixture fixture = {.graph = finish(tarn_builder_create("empty"))};
    fixture.plan = tarn_plan_of_graph(fixture.graph);
    fixture.plan->alignment = fixture.plan->footprint = 64;
    give_certificate(&fixture, 64, 0, 0);
    assert_null(find(&fixture, TARN_WRONG_BOUND)->witness);
    tarn_verdict_destroy(fixture.verdict);
    tarn_plan_destroy(fixture.plan);
    tarn_graph_destroy(fixture.graph);
}

/* ---- Plans from files that were accepted once ---- */

static void rejects_plans_that_were_accepted_once(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum tarn_violation_kind kind;
        const char *part;
    } files[] = {
        {"bound_above_footprint", TARN_WRONG_BOUND, "none is below 8 bytes"},
        {"padding_shared", TARN_UNORDERED_OVERLAP, "reserved up to 4"},
        {"control_arc_to_view", TARN_HAZARD_LOST, "op 2 \"X\" comes after op 0 \"P\""},
        {"control_arc_to_view_assigned", TARN_HAZARD_LOST, "op 4 \"o4\" comes after op 0 \"o0\""},
        {"control_arc_to_view_of_many", TARN_HAZARD_LOST, "a control arc"},
        {"names_swapped", TARN_WRONG_GRAPH,
         "tensor 0 \"p1\" has another name than tensor 0 \"p0\""},
        {"alignment_dropped", TARN_WRONG_GRAPH, "tensor 2 \"x\" has the alignment 0"},
        {"symmetric_outside_window", TARN_GROUP_BROKEN, "outside of the plan's window"},
        {"arm_not_taken", TARN_HAZARD_LOST, "if an arm of a conditional is not taken"},
        {"in_place_unasked", TARN_WRONG_GRAPH, "op 1 \"matmul\" writes tensor 1 \"y\" over"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct fixture fixture = {0};
        char path[200];
        snprintf(path, sizeof path, UNSAFE_PLANS "/%s.graph.json", files[i].name);
        assert_int_equal(tarn_graph_load(path, NULL, &fixture.graph, NULL), TARN_OK);
        snprintf(path, sizeof path, UNSAFE_PLANS "/%s.plan.json", files[i].name);
        enum tarn_status status =
            tarn_plan_verify_file(path, fixture.graph, NULL, &fixture.verdict, &fixture.error);
        if (status != TARN_REJECTED) fail_msg("%s: %d %s", path, status, fixture.error.text);
        const struct tarn_violation *violation = tarn_verdict_get(fixture.verdict, 0);
        assert_int_equal(violation->kind, files[i].kind);
        require_text(violation, files[i].part);
        tarn_verdict_destroy(fixture.verdict);
        tarn_graph_destroy(fixture.graph);
    }
}

/* A chain of ops, each with an output of its own. */
static struct tarn_graph *many_outputs(uint32_t count, bool final)
{
    struct tarn_builder *builder = tarn_builder_create("many");
    uint32_t s = tarn_builder_stream(builder, "compute");
    for (uint32_t i = 0; i < count; i++) add_tensor(builder, "t", 64, TARN_OUTPUT);
    for (uint32_t i = 0; i < count; i++) {
        tarn_builder_op(builder, &(struct tarn_op_info){.stream = s, .outputs = {&i, 1}});
        if (final) tarn_builder_origin(builder, i, TARN_NONE);
    }
    return finish(builder);
}

/* A hundred violations leave no room to say that an origin is none: it is not gone after. */
static void a_full_verdict_ends_the_comparison_all_the_same(void **state)
{
    (void)state;
    for (int what = 0; what < 2; what++) {
        struct fixture fixture = {.graph = many_outputs(120, false)};
        struct tarn_graph *final = many_outputs(120, true);
        fixture.plan = plan_of_chain(final);
        for (uint32_t i = 0; i < fixture.plan->storages_count; i++)
            fixture.plan->storages[i].offset = 128 * (uint64_t)i + 8;
        fixture.plan->footprint = 128 * 121;
        fixture.plan->transformed = true;
        fixture.plan->source_hash = fixture.graph->hash;
        *(what ? &final->ops[119].origin : &final->tensors[119].origin) = 1 << 28;
        final->hash.word[0] ^= 1;
        assert_int_equal(verify(&fixture), TARN_REJECTED);
        assert_int_equal(tarn_verdict_count(fixture.verdict), 100);
        tarn_verdict_destroy(fixture.verdict);
        tarn_plan_destroy(fixture.plan);
        tarn_graph_destroy(final);
        tarn_graph_destroy(fixture.graph);
    }
}

/* A plan in which a matrix product writes over its input, which the graph does not say. */
static void who_loads_or_verifies_a_plan_says_what_it_may_do(void **state)
{
    static const char graph_path[] = UNSAFE_PLANS "/in_place_unasked.graph.json";
    static const char path[] = UNSAFE_PLANS "/in_place_unasked.plan.json";
    static const char *const kinds[] = {"sum", "matmul"};
    struct tarn_verify_options *others =
        TARN_VERIFY_OPTIONS(.in_place_kinds = kinds, .in_place_kinds_count = 1);
    struct tarn_verify_options *allowed =
        TARN_VERIFY_OPTIONS(.in_place_kinds = kinds, .in_place_kinds_count = 2);
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_error error;
    (void)state;
    assert_int_equal(tarn_graph_load(graph_path, NULL, &graph, NULL), TARN_OK);
    assert_int_equal(tarn_plan_verify_file(path, graph, others, NULL, &error), TARN_REJECTED);
    assert_int_equal(tarn_plan_verify_file(path, graph, allowed, NULL, &error), TARN_OK);
    assert_int_equal(tarn_plan_load(path, graph, TARN_VERIFY, NULL, &plan, &error), TARN_REJECTED);
    assert_int_equal(tarn_plan_load(path, graph, TARN_TRUST, NULL, &plan, &error), TARN_OK);
    assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, &error), TARN_REJECTED);
    assert_int_equal(tarn_plan_verify(plan, graph, allowed, NULL, &error), TARN_OK);
    tarn_plan_destroy(plan);
    assert_int_equal(tarn_plan_load(path, graph, TARN_VERIFY, allowed, &plan, &error), TARN_OK);
    assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, &error),
                     TARN_OK); /* it keeps that */
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* Names and meta of graphs are no content: one plan serves graphs that differ in these alone. */
static void a_plans_graph_has_name_and_meta_of_the_source(void **state)
{
    static const char graph_text[] =
        "{\"format\":\"tarn.graph\",\"version\":1,\"name\":\"%s\",\"meta\":{\"by\":\"%s\"},"
        "\"streams\":[{\"id\":0,\"name\":\"s\"}],\"ops\":[{\"id\":0,\"name\":\"a\",\"kind\":\"k\","
        "\"stream\":0,\"inputs\":[],\"outputs\":[0]},{\"id\":1,\"name\":\"b\",\"kind\":\"k\","
        "\"stream\":0,"
        "\"inputs\":[0],\"outputs\":[1],\"inplace\":[[0,1]]}],\"tensors\":[{\"id\":0,\"name\":"
        "\"x\","
        "\"size\":8,\"kind\":\"intermediate\"},{\"id\":1,\"name\":\"y\",\"size\":8,\"kind\":"
        "\"output\"}],\"contiguous\":[]}";
    struct tarn_graph *graphs[2];
    struct tarn_plan *plans[2];
    char text[1024];
    char saved[4096];
    size_t size = 0;
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, graph_text, i ? "new" : "old", i ? "me" : "you");
        assert_int_equal(tarn_graph_read(TARN_READER(.bytes = text, .size = strlen(text)), NULL,
                                         &graphs[i], NULL),
                         TARN_OK);
    }
    struct tarn_plan_options *options = TARN_PLAN_OPTIONS(.in_place = TARN_IN_PLACE_OPTIONS(0));
    assert_int_equal(tarn_plan_create(graphs[0], options, &plans[0], NULL), TARN_OK);
    assert_int_equal(
        tarn_plan_write(plans[0], TARN_WRITER(.bytes = saved, .room = sizeof saved, .size = &size),
                        NULL),
        TARN_OK);
    assert_int_equal(tarn_plan_read(TARN_READER(.bytes = saved, .size = size), graphs[1],
                                    TARN_VERIFY, NULL, &plans[1], NULL),
                     TARN_OK);
    assert_string_equal(tarn_graph_name(tarn_plan_graph(plans[1])), "new");
    assert_string_equal(plans[1]->graph->meta, graphs[1]->meta);
    for (int i = 0; i < 2; i++) {
        tarn_plan_destroy(plans[i]);
        tarn_graph_destroy(graphs[i]);
    }
}

/* What assertions of the verifier ask of its map of bytes. */
static void a_map_of_bytes_that_is_broken_is_not_valid(void **state)
{
    struct random_graph_options knobs = random_graph_knobs(1, 90);
    struct tarn_graph *graph = random_graph(&knobs);
    struct tarn_region region = {.chunks = NULL};
    struct tarn_byte_map map;
    struct tarn_plan *plan;
    (void)state;
    assert_int_equal(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.threads = 1), &plan, NULL), 0);
    assert_int_equal(tarn_byte_map_init(&map, &region, plan, TARN_EXACT_BYTES), TARN_OK);
    assert_true(map.levels == 2 && tarn_byte_map_is_valid(&map));
    map.levels = 0;
    assert_false(tarn_byte_map_is_valid(&map));
    map.levels = 2;
    map.bits[0][0] ^= 1; /* no interval begins with the first cell */
    assert_false(tarn_byte_map_is_valid(&map));
    map.bits[0][0] ^= 1;
    map.bits[1][0] ^= 2; /* the second word has a start, which it has not */
    assert_false(tarn_byte_map_is_valid(&map));
    map.bits[1][0] ^= 2;
    map.owner[0] = map.parts_count;
    assert_false(tarn_byte_map_is_valid(&map));
    for (uint32_t a = 0; a < map.parts_count; a++) { /* before its first byte */
        map.owner[0] = a;
        assert_int_equal(tarn_byte_map_is_valid(&map), map.begin[a] == 0);
    }
    tarn_byte_map_clear(&map);
    tarn_byte_map_assign(&map, 0);
    map.owner[map.end[0]] = 0; /* behind its last byte */
    assert_false(tarn_byte_map_is_valid(&map));
    tarn_region_finish(&region);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void a_bound_is_only_as_good_as_the_waits(void **state)
{
    struct fixture *fixture = *state;
    struct tarn_wait *waits =
        tarn_region_take(&fixture->plan->region, fixture->plan->waits_count + 1, sizeof *waits);
    memcpy(waits, fixture->plan->waits, fixture->plan->waits_count * sizeof *waits);
    fixture->plan->waits = waits;
    waits[fixture->plan->waits_count++] = (struct tarn_wait){SEND, SQUARE};
    give_certificate(fixture, 384, 2, 2); /* the workspace is free at send now */
    require_text(find(fixture, TARN_WRONG_BOUND), "proves 320");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(accepts_a_sound_plan),
        with_fixture(accepts_reuse_of_bytes_that_order_allows),
        cmocka_unit_test(accepts_an_op_that_writes_a_storage_through_several_tensors),
        with_fixture(rejects_overlap_between_unordered_streams),
        with_fixture(rejects_an_op_whose_own_storages_share_bytes),
        with_fixture(rejects_a_workspace_over_what_its_op_writes),
        with_fixture(rejects_bytes_overwritten_before_their_last_reader),
        with_fixture(rejects_an_output_that_its_iteration_overwrites),
        with_fixture(rejects_a_read_that_no_longer_waits_for_its_write),
        with_fixture(rejects_ops_of_one_stream_in_an_order_that_breaks_a_hazard),
        with_fixture(rejects_iterations_that_may_overtake_each_other),
        cmocka_unit_test(rejects_a_control_arc_that_nothing_keeps),
        cmocka_unit_test(rejects_a_plan_without_an_order_that_views_carry),
        cmocka_unit_test(rejects_a_final_graph_without_an_order_that_views_carry),
        with_fixture(rejects_persistent_storages_that_share_bytes),
        with_fixture(rejects_waits_that_form_a_cycle_and_names_it),
        with_fixture(rejects_a_group_that_is_not_back_to_back),
        with_fixture(rejects_misaligned_offsets_outside_groups),
        with_fixture(rejects_a_group_that_starts_misaligned),
        with_fixture(rejects_reserved_bytes_above_the_footprint),
        with_fixture(rejects_an_offset_whose_end_overflows),
        with_fixture(rejects_persistent_storages_above_their_part),
        with_fixture(rejects_an_op_that_is_absent),
        with_fixture(rejects_an_op_in_the_list_of_another_stream),
        with_fixture(rejects_a_wait_for_what_is_not_launched),
        with_fixture(rejects_a_storage_without_a_place),
        with_fixture(rejects_a_place_of_the_wrong_size),
        with_fixture(rejects_a_place_that_nothing_needs),
        with_fixture(rejects_a_plan_of_another_graph),
        with_fixture(rejects_a_list_with_what_the_graph_has_not),
        cmocka_unit_test(rejects_a_view_that_is_launched),
        with_fixture(rejects_lists_for_other_streams_than_there_are),
        with_fixture(rejects_a_wait_of_what_is_not_launched),
        with_fixture(rejects_a_place_that_nothing_needs_among_those_needed),
        with_fixture(rejects_two_places_for_one_storage),
        with_fixture(rejects_an_alignment_that_is_no_power_of_two),
        with_fixture(rejects_parts_that_exceed_64_bits_together),
        with_fixture(rejects_a_plan_whose_graph_is_not_the_one_given),
        cmocka_unit_test(every_kind_of_violation_has_a_text_of_its_own),
        with_fixture(collects_several_violations_and_reports_the_first),
        cmocka_unit_test(stops_at_a_hundred_violations),
        cmocka_unit_test(ends_the_search_for_witnesses_before_it_takes_too_long),
        cmocka_unit_test(ends_the_look_at_what_lies_beneath_before_it_takes_too_long),
        cmocka_unit_test(accepts_a_final_graph_that_recomputes),
        cmocka_unit_test(rejects_a_second_run_of_what_is_not_recomputable),
        cmocka_unit_test(rejects_a_copy_that_reads_another_version),
        cmocka_unit_test(rejects_a_final_graph_that_drops_an_op),
        cmocka_unit_test(rejects_a_copy_with_other_tensors_than_its_origin),
        cmocka_unit_test(rejects_a_copy_of_nothing),
        cmocka_unit_test(rejects_a_run_of_a_view),
        cmocka_unit_test(rejects_a_final_graph_with_fewer_tensors_than_its_source),
        cmocka_unit_test(accepts_a_graph_out_of_a_transform_as_its_own_source),
        with_fixture(accepts_a_bound_that_the_certificate_proves),
        with_fixture(rejects_a_bound_above_what_is_proved),
        with_fixture(rejects_a_certificate_of_another_cut),
        with_fixture(rejects_a_threshold_beyond_its_stream),
        with_fixture(rejects_a_gap_outside_every_group),
        with_fixture(rejects_gaps_that_do_not_ascend),
        cmocka_unit_test(rejects_a_proof_by_sizes_beyond_64_bits),
        with_fixture(rejects_a_footprint_below_the_bound),
        cmocka_unit_test(rejects_a_plan_of_nothing_without_a_witness),
        cmocka_unit_test(rejects_plans_that_were_accepted_once),
        cmocka_unit_test(a_full_verdict_ends_the_comparison_all_the_same),
        cmocka_unit_test(who_loads_or_verifies_a_plan_says_what_it_may_do),
        cmocka_unit_test(a_plans_graph_has_name_and_meta_of_the_source),
        cmocka_unit_test(a_map_of_bytes_that_is_broken_is_not_valid),
        with_fixture(a_bound_is_only_as_good_as_the_waits),
    };
    return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
