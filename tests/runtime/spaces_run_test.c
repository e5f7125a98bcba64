/* Sessions of graphs with several memory spaces: an allocation for each, from the device, from the
 * caller or from an arena that sessions share, and every byte of every op checked in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "streams/plan/plan.h"
#include "support/queue_device.h"
#include "support/session_calls.h"
#include "support/small_full_graph.h"
#include "tarn.h"

enum { SPACES = 3, ITERATIONS = 4 };

struct subject {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    tarn_tensor weight, x, y, z;
};

/* compute: make x (device, scratch workspace) ── read y (pinned) ──► z, an output (pinned)
 * copy:         └─► copy x to y, and the weight (pinned) into it. */
static struct subject make_subject(uint64_t size)
{
    struct subject s;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("spaces");
    tarn_stream compute = tarn_builder_stream(b, "compute"), copy = tarn_builder_stream(b, "copy");
    tarn_builder_space(b, &(struct tarn_space_info){.name = "device"});
    tarn_space pinned = tarn_builder_space(
        b, &(struct tarn_space_info){
               .name = "host", .kind = TARN_SPACE_PINNED, .alignment = 64, .capacity = 1 << 20});
    tarn_space chip = tarn_builder_space(
        b, &(struct tarn_space_info){.name = "chip", .kind = TARN_SPACE_SCRATCH, .alignment = 16});
    s.weight = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){
               .name = "weight", .size = 100, .kind = TARN_PARAMETER, .space = pinned});
    s.x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = size});
    s.y = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "y", .size = size, .space = pinned});
    s.z = tarn_builder_tensor(
        b,
        &(struct tarn_tensor_info){.name = "z", .size = 300, .kind = TARN_OUTPUT, .space = pinned});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = compute,
                                              .outputs = TARN_TENSORS(s.x),
                                              .workspace = 48,
                                              .workspace_space = chip});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = copy,
                                              .inputs = TARN_TENSORS(s.x, s.weight),
                                              .outputs = TARN_TENSORS(s.y)});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = compute,
                                              .inputs = TARN_TENSORS(s.y),
                                              .outputs = TARN_TENSORS(s.z)});
    require(tarn_builder_finish(b, &s.graph, &error), &error);
    require(tarn_plan_create(s.graph, NULL, &s.plan, &error), &error);
    return s;
}

static void drop(struct subject *s)
{
    tarn_plan_destroy(s->plan);
    tarn_graph_destroy(s->graph);
}

static struct tarn_session *open_session(struct tarn_plan *plan, struct tarn_device device,
                                         const struct tarn_session_options *options)
{
    struct tarn_session *session;
    struct tarn_error error;
    require(tarn_session_create(plan, device, options, &session, &error), &error);
    return session;
}

static uint64_t check(struct tarn_session *session)
{
    struct tarn_check_report report;
    struct tarn_error error;
    require(
        tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = ITERATIONS), &report, &error),
        &error);
    return report.digest;
}

/* ---- Addresses ---- */

static bool is_at(const void *address, const char *base, uint64_t offset)
{
    return base && (const char *)address == base + offset;
}

static void every_address_counts_from_the_base_of_its_space(void **state)
{
    (void)state;
    struct subject s = make_subject(1000);
    struct tarn_session *session = open_session(s.plan, tarn_device_host(NULL), NULL);
    struct tarn_memory_needs needs[SPACES];
    char *base[SPACES];
    for (tarn_space k = 0; k < SPACES; k++) {
        base[k] = tarn_session_memory(session, k, &needs[k]);
        for (tarn_space i = 0; i < k; i++)
            assert_true(base[i] >= base[k] + needs[k].size || base[k] >= base[i] + needs[i].size);
    }
    assert_int_equal(needs[0].alignment, 512);
    assert_int_equal(needs[1].alignment, 64);
    assert_int_equal(needs[1].persistent, 128);
    assert_int_equal(needs[2].size, 48);
    assert_true(is_at(tarn_session_address(session, s.x), base[0], tarn_plan_offset(s.plan, s.x)));
    assert_true(is_at(tarn_session_address(session, s.y), base[1], tarn_plan_offset(s.plan, s.y)));
    assert_true(is_at(tarn_session_address(session, s.weight), base[1],
                      needs[1].size - needs[1].persistent + tarn_plan_offset(s.plan, s.weight)));
    assert_true(
        is_at(tarn_session_workspace(session, 0), base[2], tarn_plan_workspace_offset(s.plan, 0)));
    assert_null(tarn_session_memory(session, SPACES, &needs[0]));
    assert_int_equal(needs[0].size, 0);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    drop(&s);
}

/* ---- Bytes ---- */

/* On the host, and on a device with kinds of memory or without; what regions are for, too. */
static void run_everywhere(const struct tarn_graph *graph, struct tarn_plan *plan)
{
    struct tarn_session *session = open_session(plan, tarn_device_host(NULL), NULL);
    uint64_t digest = check(session);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    for (unsigned way = 0; way < 8; way++) {
        struct queue_device device = {.closures = way & 1,
                                      .regions = way & 2,
                                      .off_host = way & 1 && !(way & 2),
                                      .has_spaces = way & 4,
                                      .source = {way}};
        session =
            open_session(plan, queue_device(&device),
                         TARN_SESSION_OPTIONS(.capture = way == 5, .unroll = way == 5 ? 2 : 0));
        uint32_t kinds = device.spaces_alive[0] + device.spaces_alive[1] + device.spaces_alive[2];
        uint32_t spaces = 0;
        for (tarn_space k = 0; k < tarn_graph_spaces_count(graph); k++)
            spaces += tarn_session_memory(session, k, NULL) != NULL;
        assert_int_equal(device.memories_alive, spaces);
        assert_int_equal(kinds, device.has_spaces && graph->spaces_count > 0 ? spaces : 0);
        assert_int_equal(check(session), digest);
        assert_int_equal(tarn_session_destroy(session), TARN_OK);
        assert_int_equal(queue_device_alive(&device), 0);
        pthread_mutex_destroy(&device.lock);
    }
}

static void every_byte_is_right_on_every_kind_of_device(void **state)
{
    (void)state;
    struct subject s = make_subject(1000);
    run_everywhere(s.graph, s.plan);
    drop(&s);
}

/* Arcs, streams and groupings at random. */
static struct small_graph draw_shape(struct random_source *source)
{
    struct small_graph shape = {.ops = 3 + (unsigned)random_below(source, SMALL_OPS - 2)};
    small_graph_set_arcs(&shape,
                         (unsigned)random_below(source, 1u << (shape.ops * (shape.ops - 1) / 2)));
    for (uint64_t k = random_below(source, 8); k > 0; k--) small_graph_next_streams(&shape);
    for (uint64_t k = random_below(source, 8); k > 0; k--) small_graph_next_grouping(&shape);
    return shape;
}

static void small_full_graphs_run_with_all_their_spaces(void **state)
{
    (void)state;
    struct random_source source = {7};
    uint32_t several = 0;
    for (uint32_t i = 0; i < DRAWS(300); i++) {
        struct small_graph shape = draw_shape(&source);
        struct small_full_graph full = small_full_graph_draw(&shape, 64, &source);
        struct tarn_graph *graph = small_full_graph_build(&full);
        struct tarn_plan *plan;
        struct tarn_error error;
        require(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 64, .threads = 1), &plan,
                                 &error),
                &error);
        several += tarn_graph_spaces_count(graph) > 1;
        run_everywhere(graph, plan);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_true(several >= DRAWS(20));
}

/* ---- The caller's memory ---- */

static void the_caller_may_bring_the_memory_of_any_space(void **state)
{
    (void)state;
    struct subject s = make_subject(1000);
    struct tarn_memory_needs needs;
    struct tarn_session *session;
    struct tarn_error error;
    struct tarn_device host = tarn_device_host(NULL);
    require(tarn_session_needs(s.plan, host, NULL, 1, &needs, &error), &error);
    assert_int_equal(needs.arena, 1024 + 320);
    assert_int_equal(needs.size, 1024 + 320 + 128);
    void *pinned = aligned_alloc(64, needs.size);
    struct tarn_space_memory memory[SPACES + 1] = {{NULL, 0}, {pinned, needs.size}};
    struct tarn_session_options *options =
        TARN_SESSION_OPTIONS(.space_memory = memory, .space_memory_count = 2);
    session = open_session(s.plan, host, options);
    assert_ptr_equal(tarn_session_memory(session, 1, NULL), pinned);
    assert_true(tarn_session_memory(session, 0, NULL) && tarn_session_memory(session, 2, NULL));
    check(session);
    struct tarn_session *second;
    assert_int_equal(tarn_session_create(s.plan, host, options, &second, &error), TARN_USAGE);
    assert_says(&error, "in use by another session");
    assert_int_equal(tarn_session_destroy(session), TARN_OK);

    memory[1].size--;
    assert_int_equal(tarn_session_create(s.plan, host, options, &session, &error), TARN_USAGE);
    assert_says(&error, "the session needs 1472");
    memory[1].size++;
    options->space_memory_count = SPACES + 1;
    assert_int_equal(tarn_session_create(s.plan, host, options, &session, &error), TARN_USAGE);
    assert_says(&error, "the graph has 3");
    options->space_memory_count = 2;
    memory[0] = memory[1];
    options->memory = pinned;
    assert_int_equal(tarn_session_create(s.plan, host, options, &session, &error), TARN_USAGE);
    assert_says(&error, "twice");
    options->memory = NULL; /* one allocation for two spaces */
    memory[1].size = memory[0].size = 1 << 12;
    assert_int_equal(tarn_session_create(s.plan, host, options, &session, &error), TARN_USAGE);
    free(pinned);
    drop(&s);
}

static void a_space_beyond_the_devices_limit_is_refused_by_its_name(void **state)
{
    (void)state;
    struct queue_device device = {.has_spaces = true, .memory_size = 2000};
    struct subject s = make_subject(1000);
    struct tarn_session *session;
    struct tarn_error error;
    assert_int_equal(tarn_session_create(s.plan, queue_device(&device), NULL, &session, &error),
                     TARN_SYSTEM);
    assert_says(&error, "memory space 1 \"host\"");
    assert_int_equal(queue_device_alive(&device), 0);
    pthread_mutex_destroy(&device.lock);
    drop(&s);
}

static void a_table_with_some_of_the_functions_for_spaces_is_refused(void **state)
{
    (void)state;
    struct queue_device device = {.has_spaces = true};
    struct tarn_device opened = queue_device(&device);
    struct subject s = make_subject(1000);
    struct tarn_session *session;
    struct tarn_error error;
    device.table.space_destroy = NULL;
    assert_int_equal(tarn_session_create(s.plan, opened, NULL, &session, &error), TARN_USAGE);
    assert_says(&error, "memory spaces all or none");
    pthread_mutex_destroy(&device.lock);
    drop(&s);
}

/* ---- Arenas that sessions share ---- */

enum { BUCKETS = 2, TURNS = 40, WEIGHT = 3 };

/* Checks on the way that each op finds what the ones before it have left. */
struct bucket {
    struct subject s;
    struct tarn_session *session;
    uint64_t size;
    unsigned char mark; /* of this bucket's bytes */
    bool is_wrong;
};

static void expect(struct bucket *bucket, const unsigned char *bytes, unsigned char byte)
{
    for (uint64_t i = 0; i < bucket->size; i++) bucket->is_wrong |= bytes[i] != byte;
}

static int bucket_kernel(void *user, const struct tarn_call *call)
{
    struct bucket *bucket = user;
    const unsigned char *weight = call->op == 1 ? call->inputs[1] : NULL;
    unsigned char mark = bucket->mark;
    if (call->workspace) memset(call->workspace, 0xee, call->workspace_size);
    if (call->op > 0) expect(bucket, call->inputs[0], call->op == 1 ? mark : mark + WEIGHT);
    if (weight) mark = (unsigned char)(mark + weight[99]);
    memset(call->outputs[0], mark, call->output_sizes[0]);
    return 0;
}

static void plan_buckets(struct bucket buckets[BUCKETS], struct tarn_plan *plans[BUCKETS])
{
    static const uint64_t sizes[BUCKETS] = {1000, 3000};
    struct tarn_graph *graphs[BUCKETS];
    struct tarn_error error;
    for (uint32_t k = 0; k < BUCKETS; k++) {
        buckets[k] = (struct bucket){.s = make_subject(sizes[k]), .size = sizes[k]};
        buckets[k].mark = (unsigned char)(17 + 40 * k);
        graphs[k] = buckets[k].s.graph;
        tarn_plan_destroy(buckets[k].s.plan);
    }
    require(tarn_family_plan(graphs, BUCKETS, NULL, plans, &error), &error);
    for (uint32_t k = 0; k < BUCKETS; k++) buckets[k].s.plan = plans[k];
}

static bool has_wait(struct tarn_waits waits, tarn_op op, tarn_op on)
{
    bool found = false;
    for (size_t i = 0; i < waits.count; i++)
        found |= waits.waits[i].op == op && waits.waits[i].on == on;
    return found;
}

static void take_turns(struct bucket buckets[BUCKETS], struct tarn_arena *arena,
                       struct tarn_device device)
{
    unsigned char weight[100];
    tarn_ticket tickets[BUCKETS];
    struct tarn_error error;
    memset(weight, WEIGHT, sizeof weight);
    for (uint32_t k = 0; k < BUCKETS; k++) {
        buckets[k].session =
            open_session(buckets[k].s.plan, device, TARN_SESSION_OPTIONS(.arena = arena));
        assert_int_equal(tarn_session_bind_default(buckets[k].session, bucket_kernel, &buckets[k]),
                         TARN_OK);
    }
    assert_ptr_equal(tarn_session_memory(buckets[0].session, 1, NULL),
                     tarn_arena_memory(arena, 1, NULL));
    require(tarn_session_write(buckets[0].session, buckets[0].s.weight, weight, 100, &error),
            &error);
    for (uint32_t i = 0; i < TURNS; i++) /* the weight is the same for both */
        require(tarn_session_submit(buckets[i % 2].session, 1 + i % 3, &tickets[i % 2], &error),
                &error);
    for (uint32_t k = 0; k < BUCKETS; k++)
        require(tarn_session_wait(buckets[k].session, tickets[k], TARN_FOREVER, &error), &error);
    for (uint32_t k = 0; k < BUCKETS; k++) {
        assert_false(buckets[k].is_wrong);
        assert_int_equal(tarn_session_destroy(buckets[k].session), TARN_OK);
    }
}

static void an_arena_has_each_space_as_large_as_the_largest_plan(void **state)
{
    (void)state;
    struct bucket buckets[BUCKETS];
    struct tarn_plan *plans[BUCKETS];
    struct tarn_error error;
    plan_buckets(buckets, plans);
    for (uint32_t way = 0; way < 5; way++) {
        struct queue_device paper = {.closures = true, .has_spaces = way % 2, .source = {way}};
        struct tarn_device device = way == 4 ? tarn_device_host(NULL) : queue_device(&paper);
        struct tarn_arena *arena;
        struct tarn_memory_needs needs, told;
        require(tarn_arena_create(plans, BUCKETS, device, NULL, &arena, &error), &error);
        for (tarn_space space = 0; space < SPACES; space++) {
            static const uint64_t arenas[] = {3072, 3008 + 320, 48};
            assert_non_null(tarn_arena_memory(arena, space, &needs));
            require(tarn_arena_needs(plans, BUCKETS, device, NULL, space, &told, &error), &error);
            assert_memory_equal(&needs, &told, sizeof needs);
            assert_int_equal(needs.arena, arenas[space]);
        }
        /* y of one lies on y of the other, and x and y in spaces of their own */
        assert_true(has_wait(tarn_arena_waits(arena, 0, 1), 1, 2));
        assert_false(has_wait(tarn_arena_waits(arena, 0, 1), 0, 2));
        take_turns(buckets, arena, device);
        assert_int_equal(tarn_arena_destroy(arena), TARN_OK);
        if (way < 4) assert_int_equal(queue_device_alive(&paper), 0);
    }
    for (uint32_t k = 0; k < BUCKETS; k++) drop(&buckets[k].s);
}

static void graphs_of_other_spaces_share_no_arena(void **state)
{
    (void)state;
    struct subject s = make_subject(1000);
    struct tarn_builder *b = tarn_builder_create("plain");
    struct tarn_graph *plain;
    struct tarn_error error;
    tarn_tensor t = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 8});
    tarn_builder_stream(b, "s");
    tarn_builder_op(b, &(struct tarn_op_info){.outputs = TARN_TENSORS(t)});
    require(tarn_builder_finish(b, &plain, &error), &error);
    struct tarn_graph *graphs[] = {s.graph, plain};
    struct tarn_plan *plans[2];
    struct tarn_arena *arena;
    assert_int_equal(tarn_family_plan(graphs, 2, NULL, plans, &error), TARN_BAD_INPUT);
    assert_says(&error, "memory spaces");
    plans[0] = s.plan;
    require(tarn_plan_create(plain, NULL, &plans[1], &error), &error);
    assert_int_equal(tarn_arena_create(plans, 2, tarn_device_host(NULL), NULL, &arena, &error),
                     TARN_USAGE);
    assert_says(&error, "memory spaces");
    tarn_plan_destroy(plans[1]);
    tarn_graph_destroy(plain);
    drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_address_counts_from_the_base_of_its_space),
        cmocka_unit_test(every_byte_is_right_on_every_kind_of_device),
        cmocka_unit_test(small_full_graphs_run_with_all_their_spaces),
        cmocka_unit_test(the_caller_may_bring_the_memory_of_any_space),
        cmocka_unit_test(a_space_beyond_the_devices_limit_is_refused_by_its_name),
        cmocka_unit_test(an_arena_has_each_space_as_large_as_the_largest_plan),
        cmocka_unit_test(graphs_of_other_spaces_share_no_arena),
        cmocka_unit_test(a_table_with_some_of_the_functions_for_spaces_is_refused),
    };
    return cmocka_run_group_tests_name("spaces_run", tests, NULL, NULL);
}
