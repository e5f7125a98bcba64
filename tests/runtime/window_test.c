/* The window of symmetric groups is registered once for a session or an arena, with every
 * communicator, and given up in the opposite order before the memory goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/session_calls.h"
#include "tarn.h"

/* ---- A communicator that remembers ---- */

enum { LOG_MAX = 16 };

struct communicator {
    char name;
    int fails_with;
    void *address; /* of the window; NULL: none is registered */
    uint64_t size;
};

static char story[LOG_MAX + 1]; /* a letter for each call: lower case enters, upper case leaves */

static void note(char letter)
{
    size_t length = strlen(story);
    assert_true(length < LOG_MAX);
    story[length] = letter;
    story[length + 1] = 0;
}

static int enter(void *user, void *address, uint64_t size, void **handle)
{
    struct communicator *communicator = user;
    note(communicator->name);
    if (communicator->fails_with) return communicator->fails_with;
    assert_null(communicator->address);
    communicator->address = address;
    communicator->size = size;
    *handle = communicator;
    return 0;
}

static int leave(void *user, void *handle)
{
    struct communicator *communicator = user;
    assert_ptr_equal(handle, communicator);
    assert_non_null(communicator->address);
    *(volatile char *)communicator->address = 1; /* the memory is still there */
    communicator->address = NULL;
    note((char)(communicator->name - 'a' + 'A'));
    return 0;
}

static const char *text(void *user, int code)
{
    (void)user;
    return code == 5 ? "invalid usage" : "another";
}

static struct tarn_registrar registrar_of(struct communicator *communicator, uint64_t alignment)
{
    return (struct tarn_registrar){enter, leave, text, communicator, alignment};
}

/* ---- Plans ---- */

static struct tarn_graph *build(const char *name, uint64_t before, const char *symmetric)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create(name);
    tarn_stream s = tarn_builder_stream(b, "s");
    tarn_tensor x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = before});
    tarn_tensor y = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "y", .size = 96});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(x)});
    tarn_builder_op(b, &(struct tarn_op_info){.kind = "all_reduce",
                                              .stream = s,
                                              .inputs = TARN_TENSORS(x),
                                              .outputs = TARN_TENSORS(y)});
    tarn_builder_group(b, TARN_TENSORS(y));
    if (symmetric) tarn_builder_group_symmetric(b, 0, symmetric);
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

static struct tarn_plan *plan_of(struct tarn_graph *graph)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    require(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 32), &plan, &error), &error);
    tarn_graph_destroy(graph);
    return plan;
}

static int begin(void **state)
{
    (void)state;
    story[0] = 0;
    return 0;
}

/* ---- Sessions ---- */

static void a_session_registers_its_window_with_every_communicator(void **state)
{
    (void)state;
    struct communicator a = {.name = 'a'}, b = {.name = 'b'};
    struct tarn_registrar registrars[] = {registrar_of(&a, 0), registrar_of(&b, 64)};
    struct tarn_plan *plan = plan_of(build("one", 32, "y"));
    struct tarn_session *session;
    struct tarn_window window;
    struct tarn_error error;
    require(
        tarn_session_create(plan, tarn_device_host(NULL),
                            TARN_SESSION_OPTIONS(.registrars = registrars, .registrars_count = 2),
                            &session, &error),
        &error);
    assert_string_equal(story, "ab");
    assert_true(tarn_plan_window(plan, &window));
    char *memory = tarn_session_memory(session, 0, NULL);
    assert_ptr_equal(a.address, memory + window.offset);
    assert_int_equal(a.size, window.size);
    assert_ptr_equal(b.address, memory + window.offset / 64 * 64);
    assert_ptr_equal((char *)b.address + b.size, memory + window.offset + window.size);
    char *y = tarn_session_address(session, tarn_graph_find_tensor(tarn_plan_graph(plan), "y"));
    assert_true(y >= (char *)a.address && y + 96 <= (char *)a.address + a.size);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    assert_string_equal(story, "abBA");
    tarn_plan_destroy(plan);
}

static void what_a_communicator_refuses_leaves_nothing_registered(void **state)
{
    (void)state;
    struct communicator a = {.name = 'a'}, b = {.name = 'b', .fails_with = 5};
    struct tarn_registrar registrars[] = {registrar_of(&a, 0), registrar_of(&b, 0)};
    struct tarn_plan *plan = plan_of(build("one", 32, "y"));
    struct tarn_session *session;
    struct tarn_error error;
    assert_int_equal(
        tarn_session_create(plan, tarn_device_host(NULL),
                            TARN_SESSION_OPTIONS(.registrars = registrars, .registrars_count = 2),
                            &session, &error),
        TARN_DEVICE);
    assert_int_equal(error.device_code, 5);
    assert_says(&error, "invalid usage");
    assert_null(session);
    assert_string_equal(story, "abA");
    registrars[1].leave = NULL;
    assert_int_equal(
        tarn_session_create(plan, tarn_device_host(NULL),
                            TARN_SESSION_OPTIONS(.registrars = registrars, .registrars_count = 2),
                            &session, &error),
        TARN_USAGE);
    assert_says(&error, "both functions");
    assert_int_equal(tarn_session_create(plan, tarn_device_host(NULL),
                                         TARN_SESSION_OPTIONS(.registrars_count = 1), &session,
                                         &error),
                     TARN_USAGE);
    tarn_plan_destroy(plan);
}

static void a_plan_without_symmetric_groups_registers_nothing(void **state)
{
    (void)state;
    struct communicator a = {.name = 'a'};
    struct tarn_registrar registrar = registrar_of(&a, 0);
    struct tarn_plan *plan = plan_of(build("one", 32, NULL));
    struct tarn_session *session;
    struct tarn_error error;
    require(
        tarn_session_create(plan, tarn_device_host(NULL),
                            TARN_SESSION_OPTIONS(.registrars = &registrar, .registrars_count = 1),
                            &session, &error),
        &error);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    assert_string_equal(story, "");
    tarn_plan_destroy(plan);
}

/* ---- Arenas ---- */

static void an_arena_registers_the_window_of_its_family_once(void **state)
{
    (void)state;
    struct communicator a = {.name = 'a'};
    struct tarn_registrar registrar = registrar_of(&a, 0);
    struct tarn_graph *graphs[] = {build("small", 32, "y"), build("large", 320, "y")};
    struct tarn_plan *plans[2];
    struct tarn_session *sessions[2];
    struct tarn_arena *arena;
    struct tarn_window window;
    struct tarn_error error;
    struct tarn_device device = tarn_device_host(NULL);
    require(tarn_family_plan(graphs, 2, NULL, plans, &error), &error);
    require(tarn_arena_create(plans, 2, device,
                              TARN_ARENA_OPTIONS(.registrars = &registrar, .registrars_count = 1),
                              &arena, &error),
            &error);
    assert_string_equal(story, "a");
    tarn_plan_window(plans[0], &window);
    assert_ptr_equal(a.address, (char *)tarn_arena_memory(arena, 0, NULL) + window.offset);
    for (size_t i = 0; i < 2; i++) {
        struct tarn_session_options *options = TARN_SESSION_OPTIONS(.arena = arena);
        options->registrars = &registrar;
        options->registrars_count = 1;
        assert_int_equal(tarn_session_create(plans[i], device, options, &sessions[i], &error),
                         TARN_USAGE);
        assert_says(&error, "registrars to the arena");
        options->registrars_count = 0;
        require(tarn_session_create(plans[i], device, options, &sessions[i], &error), &error);
    }
    assert_ptr_equal(tarn_session_address(sessions[0], 1), tarn_session_address(sessions[1], 1));
    for (size_t i = 0; i < 2; i++) assert_int_equal(tarn_session_destroy(sessions[i]), TARN_OK);
    assert_string_equal(story, "a");
    assert_int_equal(tarn_arena_destroy(arena), TARN_OK);
    assert_string_equal(story, "aA");
    for (size_t i = 0; i < 2; i++) {
        tarn_plan_destroy(plans[i]);
        tarn_graph_destroy(graphs[i]);
    }
}

static void an_arena_of_plans_of_no_family_registers_nothing(void **state)
{
    (void)state;
    struct communicator a = {.name = 'a'};
    struct tarn_registrar registrar = registrar_of(&a, 0);
    struct tarn_plan *plans[] = {plan_of(build("small", 32, "y")),
                                 plan_of(build("large", 320, NULL))};
    struct tarn_arena *arena;
    struct tarn_error error;
    assert_int_equal(
        tarn_arena_create(plans, 2, tarn_device_host(NULL),
                          TARN_ARENA_OPTIONS(.registrars = &registrar, .registrars_count = 1),
                          &arena, &error),
        TARN_USAGE);
    assert_says(&error, "as a family");
    assert_string_equal(story, "");
    for (size_t i = 0; i < 2; i++) tarn_plan_destroy(plans[i]);
}

/* ---- NCCL ---- */

static void a_library_that_is_no_nccl_is_named(void **state)
{
    (void)state;
    struct tarn_nccl *nccl;
    struct tarn_error error;
    assert_int_equal(tarn_nccl_open("./no-such-library.so", &nccl, &error), TARN_DEVICE);
    assert_says(&error, "NCCL could not be loaded");
    assert_null(nccl);
    assert_int_equal(tarn_nccl_open("libm.so.6", &nccl, &error), TARN_DEVICE);
    assert_says(&error, "libm.so.6 has no ncclMemAlloc");
    assert_null(tarn_nccl_memory(NULL).create);
    assert_null(tarn_nccl_registrar(NULL).enter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_session_registers_its_window_with_every_communicator, begin),
        cmocka_unit_test_setup(what_a_communicator_refuses_leaves_nothing_registered, begin),
        cmocka_unit_test_setup(a_plan_without_symmetric_groups_registers_nothing, begin),
        cmocka_unit_test_setup(an_arena_registers_the_window_of_its_family_once, begin),
        cmocka_unit_test_setup(an_arena_of_plans_of_no_family_registers_nothing, begin),
        cmocka_unit_test_setup(a_library_that_is_no_nccl_is_named, begin),
    };
    return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
