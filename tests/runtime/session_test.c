/* The session's front: every wrong argument is a clear error, memory is what was promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/state/state.h"
#include "streams/graph/builder.h"
#include "support/queue_device.h"
#include "support/session_calls.h"
#include "support/unshared_plan.h"
#include "tarn.h"

/* ---- One small session: w ─► scale ─► x ─► sum ─► y (output), a view of x, an empty stream ----
 */

struct subject {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_session *session;
    tarn_tensor w, x, y, seen;
    tarn_op scale, look, sum;
};

static struct tarn_graph *make_graph(struct subject *s, uint64_t alignment)
{
    struct tarn_builder *b = tarn_builder_create("small");
    tarn_stream first = tarn_builder_stream(b, "first"), second = tarn_builder_stream(b, "second");
    tarn_builder_stream(b, "empty");
    struct tarn_tensor_info info = {.name = "w", .size = 64, .kind = TARN_PARAMETER};
    s->w = tarn_builder_tensor(b, &info);
    info = (struct tarn_tensor_info){.name = "x", .size = 64, .alignment = alignment};
    s->x = tarn_builder_tensor(b, &info);
    s->seen = tarn_builder_alias(b, s->x, "seen");
    info = (struct tarn_tensor_info){.name = "y", .size = 8, .kind = TARN_OUTPUT};
    s->y = tarn_builder_tensor(b, &info);
    s->scale = tarn_builder_op(b, &(struct tarn_op_info){.name = "scale",
                                                         .stream = first,
                                                         .inputs = TARN_TENSORS(s->w),
                                                         .outputs = TARN_TENSORS(s->x)});
    s->look = tarn_builder_op(b, &(struct tarn_op_info){.name = "look",
                                                        .stream = first,
                                                        .inputs = TARN_TENSORS(s->x),
                                                        .outputs = TARN_TENSORS(s->seen),
                                                        .view = true});
    s->sum = tarn_builder_op(b, &(struct tarn_op_info){.name = "sum",
                                                       .stream = second,
                                                       .inputs = TARN_TENSORS(s->seen),
                                                       .outputs = TARN_TENSORS(s->y),
                                                       .workspace = 32});
    struct tarn_graph *graph;
    struct tarn_error error;
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

static int open_subject(void **state)
{
    struct subject *s = calloc(1, sizeof *s);
    struct tarn_error error;
    s->graph = make_graph(s, 0);
    s->plan = unshared_plan(s->graph, 512);
    require(tarn_session_create(s->plan, tarn_device_host(NULL), NULL, &s->session, &error),
            &error);
    *state = s;
    return 0;
}

static int close_subject(void **state)
{
    struct subject *s = *state;
    tarn_session_destroy(s->session);
    tarn_plan_destroy(s->plan);
    tarn_graph_destroy(s->graph);
    free(s);
    return 0;
}

static int scale(void *user, const struct tarn_call *call)
{
    const unsigned char *w = call->inputs[0];
    unsigned char *x = call->outputs[0], factor = *(unsigned char *)user;
    for (uint32_t i = 0; i < 64; i++) x[i] = (unsigned char)(w[i] * factor);
    return 0;
}

static int sum(void *user, const struct tarn_call *call)
{
    (void)user;
    const unsigned char *x = call->inputs[0];
    uint64_t total = 0;
    for (uint32_t i = 0; i < 64; i++) total += x[i];
    memset(call->workspace, 0xff, 32);
    memcpy(call->outputs[0], &total, sizeof total);
    return 0;
}

static void run_once(struct subject *s)
{
    struct tarn_error error;
    tarn_ticket ticket;
    require(tarn_session_submit(s->session, 1, &ticket, &error), &error);
    require(tarn_session_wait(s->session, ticket, TARN_FOREVER, &error), &error);
}

/* ---- Kernels and memory ---- */

static void kernels_find_their_tensors_and_the_caller_finds_the_result(void **state)
{
    struct subject *s = *state;
    unsigned char w[64], factor = 3;
    memset(w, 2, sizeof w);
    struct tarn_error error;
    uint64_t y = 0;
    assert_int_equal(tarn_session_bind(s->session, s->scale, scale, &factor, NULL), TARN_OK);
    assert_int_equal(tarn_session_bind(s->session, s->sum, sum, NULL, NULL), TARN_OK);
    require(tarn_session_write(s->session, s->w, w, sizeof w, &error), &error);
    run_once(s);
    require(tarn_session_read(s->session, s->y, &y, sizeof y, &error), &error);
    assert_int_equal(y, 64 * 6);
    factor = 5;
    run_once(s);
    require(tarn_session_read(s->session, s->y, &y, sizeof y, &error), &error);
    assert_int_equal(y, 64 * 10);
}

static void memory_is_zero_at_first_and_keeps_what_is_written(void **state)
{
    struct subject *s = *state;
    struct tarn_error error;
    unsigned char bytes[64], zeros[64] = {0};
    tarn_tensor tensors[] = {s->w, s->x};
    for (uint32_t i = 0; i < 2; i++) {
        require(tarn_session_read(s->session, tensors[i], bytes, 64, &error), &error);
        assert_memory_equal(bytes, zeros, 64);
    }
    memset(bytes, 7, 64);
    require(tarn_session_write(s->session, s->w, bytes, 10, &error), &error);
    require(tarn_session_read(s->session, s->w, bytes, 64, &error), &error);
    assert_int_equal(bytes[9], 7);
    assert_int_equal(bytes[10], 0);
    require(tarn_session_write(s->session, s->w, NULL, 0, &error), &error);
}

static void an_alias_is_at_its_roots_address_and_addresses_are_aligned(void **state)
{
    struct subject *s = *state;
    assert_ptr_equal(tarn_session_address(s->session, s->seen),
                     tarn_session_address(s->session, s->x));
    assert_int_equal((uintptr_t)tarn_session_address(s->session, s->x) % 512, 0);
    assert_int_equal((uintptr_t)tarn_session_address(s->session, s->w) % 512, 0);
    assert_ptr_not_equal(tarn_session_address(s->session, s->w),
                         tarn_session_address(s->session, s->x));
}

static void a_large_alignment_of_a_tensor_reaches_its_address(void **state)
{
    (void)state;
    struct subject s;
    const uint64_t alignment = UINT64_C(1) << 20;
    struct tarn_graph *graph = make_graph(&s, alignment);
    struct tarn_plan *plan = unshared_plan(graph, 512);
    struct tarn_error error;
    struct tarn_session *session;
    require(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error), &error);
    assert_int_equal((uintptr_t)tarn_session_address(session, s.x) % alignment, 0);
    tarn_session_destroy(session);
    /* 4096 is all that this device gives. */
    struct queue_device device = {0};
    assert_int_equal(tarn_session_create(plan, queue_device(&device), NULL, &session, &error),
                     TARN_USAGE);
    assert_says(&error,
                "tensor 1 \"x\" needs an alignment of 1048576 bytes but device 'paper' gives "
                "4096: give the tensor a smaller one");
    assert_int_equal(error.tensor, s.x);
    assert_null(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void an_arena_beyond_the_machine_is_an_error_that_says_how_much_there_is(void **state)
{
    struct subject *s = *state;
    struct tarn_plan *plan = unshared_plan(s->graph, 512);
    plan->footprint = UINT64_C(1) << 46;
    struct tarn_session *session;
    struct tarn_error error;
    assert_int_equal(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error),
                     TARN_SYSTEM);
    assert_says(&error, "it needs 70368744178176 bytes (arena");
    assert_says(&error, "are available");
    plan->footprint = UINT64_MAX - 100;
    assert_int_equal(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error),
                     TARN_SYSTEM);
    tarn_plan_destroy(plan);
}

static void the_session_outlives_the_callers_plan_and_graph(void **state)
{
    struct subject *s = *state;
    tarn_plan_destroy(s->plan);
    tarn_graph_destroy(s->graph);
    s->plan = NULL;
    s->graph = NULL;
    assert_int_equal(tarn_session_bind_default(s->session, do_nothing, NULL), TARN_OK);
    run_once(s);
}

/* ---- Bindings ---- */

static int note_user(void *user, const struct tarn_call *call)
{
    (void)call;
    ++*(uint32_t *)user;
    return 0;
}

static void a_default_serves_exactly_the_ops_without_a_binding(void **state)
{
    struct subject *s = *state;
    uint32_t own = 0, old = 0, new = 0;
    assert_int_equal(tarn_session_bind(s->session, s->sum, note_user, &own, NULL), TARN_OK);
    assert_int_equal(tarn_session_bind_default(s->session, note_user, &old), TARN_OK);
    run_once(s);
    assert_int_equal(tarn_session_bind_default(s->session, note_user, &new), TARN_OK);
    run_once(s);
    assert_int_equal(own, 2);
    assert_int_equal(old, 1);
    assert_int_equal(new, 1);
}

static int note_origin(void *user, const struct tarn_call *call)
{
    *(tarn_op *)user = call->origin;
    return 0;
}

/* Both ops say that they come from op 0 of the graph before the transform. */
static void ops_of_a_graph_out_of_a_transform_are_bound_by_their_own_ids(void **state)
{
    (void)state;
    struct subject s = {0};
    struct tarn_builder *b = tarn_builder_create("copies");
    struct tarn_op_info op = {.stream = tarn_builder_stream(b, "stream")};
    tarn_op origins[2] = {TARN_NONE, TARN_NONE};
    struct tarn_error error;
    for (uint32_t v = 0; v < 2; v++) {
        tarn_builder_op(b, &op);
        tarn_builder_origin(b, 0, 0);
    }
    require(tarn_builder_finish(b, &s.graph, &error), &error);
    s.plan = unshared_plan(s.graph, 512);
    require(tarn_session_create(s.plan, tarn_device_host(NULL), NULL, &s.session, &error), &error);
    for (uint32_t v = 0; v < 2; v++)
        assert_int_equal(tarn_session_bind(s.session, v, note_origin, &origins[v], NULL), TARN_OK);
    run_once(&s);
    assert_int_equal(origins[0], 0);
    assert_int_equal(origins[1], 1);
    tarn_session_destroy(s.session);
    tarn_plan_destroy(s.plan);
    tarn_graph_destroy(s.graph);
}

static void an_op_without_kernel_is_named(void **state)
{
    struct subject *s = *state;
    struct tarn_error error;
    tarn_ticket ticket;
    assert_int_equal(tarn_session_bind(s->session, s->scale, do_nothing, NULL, NULL), TARN_OK);
    assert_int_equal(tarn_session_submit(s->session, 1, &ticket, &error), TARN_USAGE);
    assert_int_equal(error.op, s->sum);
    assert_says(&error, "op 2 \"sum\" has no kernel");
    assert_int_equal(tarn_session_bind(s->session, s->sum, do_nothing, NULL, NULL), TARN_OK);
    run_once(s); /* the view needs none */
}

static void unknown_ops_and_null_kernels_cannot_be_bound(void **state)
{
    struct subject *s = *state;
    assert_int_equal(tarn_session_bind(s->session, 3, do_nothing, NULL, NULL), TARN_USAGE);
    assert_int_equal(tarn_session_bind(s->session, TARN_NONE, do_nothing, NULL, NULL), TARN_USAGE);
    assert_int_equal(tarn_session_bind(s->session, s->sum, NULL, NULL, NULL), TARN_USAGE);
    assert_int_equal(tarn_session_bind(NULL, s->sum, do_nothing, NULL, NULL), TARN_USAGE);
    assert_int_equal(tarn_session_bind_default(s->session, NULL, NULL), TARN_USAGE);
}

static void nothing_is_bound_read_or_written_before_the_work_was_waited_for(void **state)
{
    struct subject *s = *state;
    struct tarn_error error;
    tarn_ticket ticket;
    char byte = 0;
    assert_int_equal(tarn_session_bind_default(s->session, do_nothing, NULL), TARN_OK);
    require(tarn_session_submit(s->session, 2, &ticket, &error), &error);
    assert_int_equal(tarn_session_bind(s->session, s->sum, do_nothing, NULL, NULL), TARN_USAGE);
    assert_int_equal(tarn_session_bind_default(s->session, do_nothing, NULL), TARN_USAGE);
    assert_int_equal(tarn_session_write(s->session, s->w, &byte, 1, &error), TARN_USAGE);
    assert_says(&error, "wait for ticket 2 first");
    assert_int_equal(tarn_session_read(s->session, s->w, &byte, 1, &error), TARN_USAGE);
    require(tarn_session_wait(s->session, ticket, TARN_FOREVER, &error), &error);
    require(tarn_session_read(s->session, s->w, &byte, 1, &error), &error);
}

/* ---- Wrong arguments ---- */

static void wrong_accesses_are_refused(void **state)
{
    struct subject *s = *state;
    struct tarn_error error;
    char bytes[65] = {0};
    assert_int_equal(tarn_session_write(s->session, 4, bytes, 1, &error), TARN_USAGE);
    assert_says(&error, "tensor 4 does not exist");
    assert_int_equal(tarn_session_read(s->session, s->w, bytes, 65, &error), TARN_USAGE);
    assert_says(&error, "65 bytes for tensor 0 \"w\" of 64 bytes");
    assert_int_equal(error.tensor, s->w);
    assert_int_equal(tarn_session_read(s->session, s->w, NULL, 1, &error), TARN_USAGE);
    assert_int_equal(tarn_session_read(NULL, s->w, bytes, 1, &error), TARN_USAGE);
    assert_int_equal(tarn_session_read(s->session, s->w, bytes, 65, NULL), TARN_USAGE);
}

static void tickets_that_were_never_given_are_refused(void **state)
{
    struct subject *s = *state;
    struct tarn_error error;
    assert_int_equal(tarn_session_wait(s->session, 1, TARN_FOREVER, &error), TARN_USAGE);
    assert_says(&error, "ticket 1 was never given; the last is 0");
    require(tarn_session_wait(s->session, 0, TARN_FOREVER, &error), &error);
    assert_int_equal(tarn_session_bind_default(s->session, do_nothing, NULL), TARN_OK);
    assert_int_equal(tarn_session_submit(s->session, UINT64_MAX, NULL, &error), TARN_USAGE);
    assert_int_equal(tarn_session_submit(NULL, 1, NULL, &error), TARN_USAGE);
}

static const char *no_text(void *self, int code)
{
    (void)self, (void)code;
    return NULL;
}

static void devices_of_another_abi_and_incomplete_tables_are_refused(void **state)
{
    struct subject *s = *state;
    struct queue_device device = {0};
    struct tarn_device good = queue_device(&device), bad = {0};
    struct tarn_session *session;
    struct tarn_error error;
    assert_int_equal(tarn_session_create(s->plan, bad, NULL, &session, &error), TARN_USAGE);
    struct tarn_device_table table = *good.table;
    bad = (struct tarn_device){&table, &device};
    table.abi_version = TARN_DEVICE_ABI + 1;
    assert_int_equal(tarn_session_create(s->plan, bad, NULL, &session, &error), TARN_USAGE);
    assert_says(&error, "the device table is of ABI 3");
    table = *good.table;
    table.struct_size = 16;
    assert_int_equal(tarn_session_create(s->plan, bad, NULL, &session, &error), TARN_USAGE);
    table = *good.table;
    table.event_wait = NULL;
    assert_int_equal(tarn_session_create(s->plan, bad, NULL, &session, &error), TARN_USAGE);
    assert_says(&error, "queues and events all or none");
    table.name = NULL;
    assert_int_equal(tarn_session_create(s->plan, bad, NULL, &session, &error), TARN_USAGE);
    assert_says(&error, "the table of device 'unnamed' lacks functions");
    table = *good.table;
    table.name = NULL;
    table.error_text = no_text;
    device = (struct queue_device){.fail_after = 1};
    queue_device(&device);
    bad.self = &device;
    assert_int_equal(tarn_session_create(s->plan, bad, NULL, &session, &error), TARN_DEVICE);
    assert_says(&error, "device 'unnamed': ");
    assert_says(&error, "(no text)");
    assert_int_equal(tarn_session_create(NULL, good, NULL, &session, &error), TARN_USAGE);
    assert_int_equal(tarn_session_create(s->plan, good, NULL, NULL, &error), TARN_USAGE);
    tarn_session_destroy(NULL);
}

static void options_of_another_size_and_unknown_streams_are_refused(void **state)
{
    struct subject *s = *state;
    struct tarn_session *session;
    struct tarn_error error;
    struct tarn_session_options options = {0};
    struct tarn_device host = tarn_device_host(NULL);
    assert_int_equal(tarn_session_create(s->plan, host, &options, &session, &error), TARN_USAGE);
    assert_int_equal(tarn_session_create(s->plan, host,
                                         TARN_SESSION_OPTIONS(.blocking = TARN_LIST(0, 3)),
                                         &session, &error),
                     TARN_USAGE);
    assert_says(&error, "blocking stream 3 does not exist");
    struct tarn_host_options host_options = {0};
    assert_int_equal(
        tarn_session_create(s->plan, tarn_device_host(&host_options), NULL, &session, &error),
        TARN_USAGE);
}

/* ---- Inside ---- */

static void an_arena_is_valid_while_each_storage_is_where_the_plan_says(void **state)
{
    struct subject *s = *state;
    struct tarn_plan_memory *arena = &s->session->memory;
    assert_true(tarn_plan_memory_is_valid(arena));
    void *address = arena->addresses[0];
    arena->addresses[0] = (unsigned char *)address + 1;
    assert_false(tarn_plan_memory_is_valid(arena));
    arena->addresses[0] = address;
    struct tarn_memory_part *part = arena->parts;
    uint64_t begin = part->persistent_begin;
    part->persistent_begin = part->needs.size + 1;
    assert_false(tarn_plan_memory_is_valid(arena));
    part->persistent_begin = 8; /* too small for what is planned */
    assert_false(tarn_plan_memory_is_valid(arena));
    part->persistent_begin = begin;
    assert_true(tarn_plan_memory_is_valid(arena));
}

/* ---- The program ---- */

static void a_plan_is_compiled_once_and_sessions_run_what_the_verifier_has_proved(void **state)
{
    struct subject *s = *state;
    const struct tarn_program *proved, *again;
    struct tarn_plan *plan;
    struct tarn_session *sessions[2];
    struct tarn_error error;
    require(tarn_plan_create(s->graph, NULL, &plan, &error), &error); /* ends with the verifier */
    proved = atomic_load(&plan->program);
    assert_non_null(proved);
    require(tarn_plan_verify(plan, s->graph, NULL, NULL, &error), &error);
    for (int i = 0; i < 2; i++)
        require(tarn_session_create(plan, tarn_device_host(NULL), NULL, &sessions[i], &error),
                &error);
    require(tarn_plan_program(plan, &again, &error), &error);
    assert_ptr_equal(again, proved);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(sessions[i]->program, proved);
        assert_int_equal(tarn_session_destroy(sessions[i]), TARN_OK);
    }
    tarn_plan_destroy(plan);
}

static void *ask_for_program(void *plan)
{
    const struct tarn_program *program;
    return tarn_plan_program(plan, &program, NULL) ? NULL : (void *)(uintptr_t)program;
}

static void threads_that_ask_first_at_the_same_time_get_one_program(void **state)
{
    struct subject *s = *state;
    enum { THREADS = 4, ROUNDS = 50 };
    for (int round = 0; round < ROUNDS; round++) {
        struct tarn_plan *plan = unshared_plan(s->graph, 64);
        pthread_t threads[THREADS];
        void *programs[THREADS];
        tarn_plan_drop_program(plan);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, ask_for_program, plan), 0);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], &programs[i]);
        for (int i = 0; i < THREADS; i++) {
            assert_non_null(programs[i]);
            assert_ptr_equal(programs[i], atomic_load(&plan->program));
        }
        tarn_plan_destroy(plan);
    }
}

/* Lists and waits are the plan's: a change of either is seen. */
static void a_program_is_valid_for_the_plan_that_it_was_compiled_from_alone(void **state)
{
    struct subject *s = *state;
    const struct tarn_program *program;
    struct tarn_error error;
    struct tarn_plan *plan = unshared_plan(s->graph, 64);
    require(tarn_plan_program(plan, &program, &error), &error);
    assert_true(tarn_program_is_valid(program, plan));
    assert_true(plan->waits_count > 0);
    struct tarn_wait wait = plan->waits[0];
    plan->waits[0] = (struct tarn_wait){wait.on, wait.op};
    assert_false(tarn_program_is_valid(program, plan));
    plan->waits[0] = wait;
    plan->waits_count--;
    assert_false(tarn_program_is_valid(program, plan));
    plan->waits_count++;
    uint32_t op = plan->list[0];
    plan->list[0] = plan->list[1];
    assert_false(tarn_program_is_valid(program, plan));
    plan->list[0] = op;
    assert_true(tarn_program_is_valid(program, plan));
    tarn_plan_destroy(plan);
}

int main(void)
{
#define WITH_SUBJECT(test) cmocka_unit_test_setup_teardown(test, open_subject, close_subject)
    const struct CMUnitTest tests[] = {
        WITH_SUBJECT(kernels_find_their_tensors_and_the_caller_finds_the_result),
        WITH_SUBJECT(memory_is_zero_at_first_and_keeps_what_is_written),
        WITH_SUBJECT(an_alias_is_at_its_roots_address_and_addresses_are_aligned),
        cmocka_unit_test(a_large_alignment_of_a_tensor_reaches_its_address),
        WITH_SUBJECT(an_arena_beyond_the_machine_is_an_error_that_says_how_much_there_is),
        WITH_SUBJECT(the_session_outlives_the_callers_plan_and_graph),
        WITH_SUBJECT(a_default_serves_exactly_the_ops_without_a_binding),
        cmocka_unit_test(ops_of_a_graph_out_of_a_transform_are_bound_by_their_own_ids),
        WITH_SUBJECT(an_op_without_kernel_is_named),
        WITH_SUBJECT(unknown_ops_and_null_kernels_cannot_be_bound),
        WITH_SUBJECT(nothing_is_bound_read_or_written_before_the_work_was_waited_for),
        WITH_SUBJECT(wrong_accesses_are_refused),
        WITH_SUBJECT(tickets_that_were_never_given_are_refused),
        WITH_SUBJECT(devices_of_another_abi_and_incomplete_tables_are_refused),
        WITH_SUBJECT(options_of_another_size_and_unknown_streams_are_refused),
        WITH_SUBJECT(an_arena_is_valid_while_each_storage_is_where_the_plan_says),
        WITH_SUBJECT(a_plan_is_compiled_once_and_sessions_run_what_the_verifier_has_proved),
        WITH_SUBJECT(threads_that_ask_first_at_the_same_time_get_one_program),
        WITH_SUBJECT(a_program_is_valid_for_the_plan_that_it_was_compiled_from_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
