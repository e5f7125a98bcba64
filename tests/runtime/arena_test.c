/* Sessions that share an arena: turns in any sequence give what one after another would, on the
 * host and under all interleavings of queues on paper, without a wait between them; persistent
 * tensors are the same in all; what cannot work is refused with words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "support/buckets.h"
#include "support/session_calls.h"

/* ---- A world of three sessions ---- */

struct world {
    struct buckets buckets;
    struct queue_device paper;
    struct tarn_device device;
    struct tarn_arena *arena;
    struct tarn_session *sessions[BUCKETS];
    tarn_ticket tickets[BUCKETS];
    uint32_t last; /* whose turn was the last */
};

static void open_session(struct world *w, uint32_t k, bool capture)
{
    struct tarn_error error;
    require(tarn_session_create(
                w->buckets.plans[k], w->device,
                TARN_SESSION_OPTIONS(.arena = w->arena, .capture = capture, .unroll = capture * 2),
                &w->sessions[k], &error),
            &error);
    assert_int_equal(tarn_session_bind_default(w->sessions[k], bucket_kernel, &w->buckets),
                     TARN_OK);
}

static void world_open(struct world *w, struct tarn_device device, struct queue_device *paper)
{
    struct tarn_error error;
    memset(w->sessions, 0, sizeof w->sessions);
    memset(w->tickets, 0, sizeof w->tickets);
    w->device = device;
    buckets_init(&w->buckets, paper);
    require(tarn_arena_create(w->buckets.plans, BUCKETS, device, NULL, &w->arena, &error), &error);
}

static void world_close(struct world *w)
{
    for (uint32_t k = 0; k < BUCKETS; k++)
        assert_int_equal(tarn_session_destroy(w->sessions[k]), TARN_OK);
    assert_int_equal(tarn_arena_destroy(w->arena), TARN_OK);
    buckets_finish(&w->buckets);
    if (w->buckets.paper) assert_int_equal(queue_device_alive(&w->paper), 0);
}

static tarn_tensor find(const struct world *w, uint32_t k, const char *name)
{
    return tarn_graph_find_tensor(w->buckets.graphs[k], name);
}

static uint64_t size_of(const struct world *w, uint32_t k, const char *name)
{
    struct tarn_tensor_info info;
    tarn_graph_tensor(w->buckets.graphs[k], find(w, k, name), &info);
    return info.size;
}

static void wait_all(struct world *w)
{
    struct tarn_error error;
    for (uint32_t k = 0; k < BUCKETS; k++)
        if (w->sessions[k])
            require(tarn_session_wait(w->sessions[k], w->tickets[k], TARN_FOREVER, &error), &error);
}

static void write_tensor(struct world *w, uint32_t k, const char *name,
                         struct random_source *source)
{
    unsigned char *bytes = buckets_bytes(&w->buckets, k, name);
    struct tarn_error error;
    for (uint64_t i = 0; i < size_of(w, k, name); i++)
        bytes[i] = (unsigned char)random_next(source);
    require(
        tarn_session_write(w->sessions[k], find(w, k, name), bytes, size_of(w, k, name), &error),
        &error);
}

static void expect(struct world *w, uint32_t k, const char *name)
{
    unsigned char bytes[4096];
    struct tarn_error error;
    uint64_t size = size_of(w, k, name);
    require(tarn_session_read(w->sessions[k], find(w, k, name), bytes, size, &error), &error);
    assert_memory_equal(bytes, buckets_bytes(&w->buckets, k, name), (size_t)size);
}

/* Everything that must be there: what is common, and the outputs of the last turn. */
static void expect_all(struct world *w)
{
    for (uint32_t k = 0; k < BUCKETS; k++) {
        if (!w->sessions[k]) continue;
        expect(w, k, "w");
        expect(w, k, "x");
    }
    expect(w, w->last, "l");
    expect(w, w->last, "s");
}

static void take_turn(struct world *w, uint32_t k, uint64_t iterations)
{
    struct tarn_error error;
    require(tarn_session_submit(w->sessions[k], iterations, &w->tickets[k], &error), &error);
    for (uint64_t i = 0; i < iterations; i++) buckets_step(&w->buckets, k);
    w->last = k;
}

static void take_turns(struct world *w, uint64_t seed, uint32_t turns)
{
    struct random_source source = {seed};
    write_tensor(w, BUCKETS - 1, "x", &source);
    write_tensor(w, 0, "w", &source);
    for (uint32_t i = 0; i < turns; i++) {
        if (random_percent(&source, 5)) {
            wait_all(w);
            write_tensor(w, random_below(&source, BUCKETS), "x", &source);
        }
        take_turn(w, random_below(&source, BUCKETS), 1 + random_below(&source, 3));
    }
    wait_all(w);
    expect_all(w);
}

/* ---- Turns ---- */

static void turns_on_the_host_compute_what_one_after_another_would(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers++) {
        struct tarn_host_options *options =
            TARN_HOST_OPTIONS(.workers = workers, .binding = TARN_BIND_NONE);
        struct world w;
        world_open(&w, tarn_device_host(options), NULL);
        for (uint32_t k = 0; k < BUCKETS; k++) open_session(&w, k, false);
        take_turns(&w, workers, SANITIZED ? 60 : 400);
        world_close(&w);
    }
}

/* Which of the sessions are captures: none, some, all. */
static void play_on_paper(const struct queue_device *kind, uint32_t captures)
{
    for (uint64_t seed = 0; seed < DRAWS(200); seed++) {
        struct world w = {.paper = *kind};
        w.paper.source.state = seed;
        world_open(&w, queue_device(&w.paper), &w.paper);
        for (uint32_t k = 0; k < BUCKETS; k++) open_session(&w, k, captures >> k & 1);
        take_turns(&w, seed, 12);
        assert_int_equal(w.paper.strange, 0);
        world_close(&w);
    }
}

static void no_interleaving_of_queues_spoils_a_turn(void **state)
{
    (void)state;
    play_on_paper(&(struct queue_device){.closures = false}, 0);
    play_on_paper(&(struct queue_device){.closures = true}, 0);
    play_on_paper(&(struct queue_device){.regions = true}, 0);
}

static void captured_and_direct_sessions_follow_each_other(void **state)
{
    (void)state;
    play_on_paper(&(struct queue_device){.closures = false}, 5);
    play_on_paper(&(struct queue_device){.closures = false}, 7);
    play_on_paper(&(struct queue_device){.closures = true}, 2);
}

static void waits_between_plans_are_told_and_are_all_the_order_that_a_switch_has(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, tarn_device_host(NULL), NULL);
    for (uint32_t from = 0; from < BUCKETS; from++) {
        assert_int_equal(tarn_arena_waits(w.arena, from, from).count, 0);
        for (uint32_t to = 0; to < BUCKETS; to++)
            if (from != to) assert_true(tarn_arena_waits(w.arena, from, to).count > 0);
    }
    assert_int_equal(tarn_arena_waits(w.arena, BUCKETS, 0).count, 0);
    assert_int_equal(tarn_arena_waits(w.arena, 0, BUCKETS).count, 0);
    world_close(&w);
}

/* ---- One memory ---- */

static void persistent_tensors_have_one_address_in_all_sessions(void **state)
{
    (void)state;
    struct world w;
    struct tarn_memory_needs needs, single;
    struct tarn_error error;
    uint64_t largest = 0;
    world_open(&w, tarn_device_host(NULL), NULL);
    unsigned char *base = tarn_arena_memory(w.arena, 0, &needs);
    for (uint32_t k = 0; k < BUCKETS; k++) {
        struct tarn_plan_summary summary;
        open_session(&w, k, false);
        tarn_plan_summarize(w.buckets.plans[k], &summary);
        if (summary.footprint > largest) largest = summary.footprint;
        assert_ptr_equal(tarn_session_address(w.sessions[k], find(&w, k, "w")),
                         tarn_session_address(w.sessions[0], find(&w, 0, "w")));
        assert_ptr_equal(tarn_session_address(w.sessions[k], find(&w, k, "x")),
                         tarn_session_address(w.sessions[0], find(&w, 0, "x")));
        assert_ptr_equal(tarn_session_address(w.sessions[k], find(&w, k, "w")),
                         base + needs.size - needs.persistent +
                             tarn_plan_offset(w.buckets.plans[k], find(&w, k, "w")));
    }
    assert_int_equal(needs.arena, largest);
    require(tarn_session_needs(w.buckets.plans[BUCKETS - 1], w.device, NULL, 0, &single, &error),
            &error);
    assert_true(needs.size >= single.size);
    world_close(&w);
}

static void the_caller_may_bring_the_memory_and_bind_what_is_persistent(void **state)
{
    (void)state;
    struct world w = {.last = 0};
    struct tarn_memory_needs needs;
    struct tarn_error error;
    struct tarn_arena_options options = {.struct_size = sizeof options, .binds_persistent = true};
    unsigned char weight[BUCKET_WEIGHT] = {1}, x[4096] = {2};
    w.device = tarn_device_host(NULL);
    buckets_init(&w.buckets, NULL);
    require(tarn_arena_needs(w.buckets.plans, BUCKETS, w.device, &options, 0, &needs, &error),
            &error);
    assert_int_equal(needs.persistent, 0);
    options.memory_size = needs.size;
    options.memory = aligned_alloc(4096, (size_t)(needs.size + 4095) / 4096 * 4096);
    require(tarn_arena_create(w.buckets.plans, BUCKETS, w.device, &options, &w.arena, &error),
            &error);
    assert_ptr_equal(tarn_arena_memory(w.arena, 0, NULL), options.memory);
    for (uint32_t k = 0; k < BUCKETS; k++) {
        open_session(&w, k, false);
        require(tarn_session_bind_memory(w.sessions[k], find(&w, k, "w"), weight, &error), &error);
        require(tarn_session_bind_memory(w.sessions[k], find(&w, k, "x"), x, &error), &error);
    }
    take_turns(&w, 9, 50);
    assert_memory_equal(weight, buckets_bytes(&w.buckets, 0, "w"), sizeof weight);
    world_close(&w);
    free(options.memory);
}

/* The others' work may still wait for that of the session that goes. */
static void make_again(struct world *w, struct tarn_device device, struct queue_device *paper)
{
    world_open(w, device, paper);
    for (uint32_t k = 0; k < BUCKETS; k++) open_session(w, k, false);
    take_turns(w, 4, 20);
    for (uint32_t round = 0; round < 5; round++) {
        take_turn(w, 1, 2);
        take_turn(w, 0, 1);
        require(tarn_session_wait(w->sessions[1], w->tickets[1], TARN_FOREVER, NULL), NULL);
        assert_int_equal(tarn_session_destroy(w->sessions[1]), TARN_OK);
        open_session(w, 1, false);
        w->tickets[1] = 0;
        take_turn(w, 1, 1);
        take_turn(w, 2, 1);
    }
    wait_all(w);
    expect_all(w);
    world_close(w);
}

static void a_session_may_be_made_again_and_finds_what_is_persistent(void **state)
{
    (void)state;
    struct world w;
    make_again(&w, tarn_device_host(NULL), NULL);
    for (uint64_t seed = 0; seed < DRAWS(100); seed++) {
        w = (struct world){.paper = {.source = {seed}, .closures = seed % 2 > 0}};
        make_again(&w, queue_device(&w.paper), &w.paper);
    }
}

static void a_check_of_one_session_holds_while_the_others_rest(void **state)
{
    (void)state;
    struct world w;
    struct tarn_error error;
    struct tarn_check_report report;
    world_open(&w, tarn_device_host(NULL), NULL);
    for (uint32_t k = 0; k < 2; k++) open_session(&w, k, false);
    struct tarn_session *fresh = NULL;
    require(tarn_session_create(w.buckets.plans[2], w.device,
                                TARN_SESSION_OPTIONS(.arena = w.arena), &fresh, &error),
            &error);
    w.sessions[2] = fresh;
    require(tarn_session_check(fresh, TARN_CHECK_OPTIONS(.iterations = 5), &report, &error),
            &error);
    assert_true(report.bytes_read > 0);
    assert_int_equal(tarn_session_bind_default(fresh, bucket_kernel, &w.buckets), TARN_OK);
    struct random_source source = {3};
    write_tensor(&w, 2, "x", &source);
    write_tensor(&w, 2, "w", &source);
    w.tickets[2] = 5; /* the check's */
    take_turn(&w, 0, 1);
    take_turn(&w, 2, 1);
    wait_all(&w);
    expect_all(&w);
    world_close(&w);
}

/* ---- What cannot work ---- */

static int wait_for_flag(void *user, const struct tarn_call *call)
{
    (void)call;
    atomic_bool *flag = user;
    while (!atomic_load(flag)) sched_yield();
    return 0;
}

static void copies_are_refused_while_another_session_is_at_work(void **state)
{
    (void)state;
    struct world w;
    struct tarn_error error;
    unsigned char bytes[BUCKET_WEIGHT] = {0};
    atomic_bool flag = false;
    world_open(&w, tarn_device_host(NULL), NULL);
    for (uint32_t k = 0; k < BUCKETS; k++) open_session(&w, k, false);
    assert_int_equal(tarn_session_bind(w.sessions[0], 0, wait_for_flag, &flag, NULL), TARN_OK);
    require(tarn_session_submit(w.sessions[0], 1, &w.tickets[0], &error), &error);
    tarn_tensor weight = find(&w, 1, "w");
    assert_int_equal(tarn_session_read(w.sessions[1], weight, bytes, 1, &error), TARN_USAGE);
    assert_says(&error, "is at work on the same arena: wait for its ticket 1 first");
    assert_int_equal(tarn_session_write(w.sessions[1], weight, bytes, 1, &error), TARN_USAGE);
    assert_int_equal(tarn_session_check(w.sessions[2], NULL, NULL, &error), TARN_USAGE);
    atomic_store(&flag, true);
    wait_all(&w);
    require(tarn_session_read(w.sessions[1], weight, bytes, 1, &error), &error);
    world_close(&w);
}

struct submission {
    struct tarn_session *session;
    enum tarn_status status;
    struct tarn_error error;
};

struct nested {
    struct submission submission;
    pthread_t thread;
};

static void *submit_elsewhere(void *argument)
{
    struct submission *submission = argument;
    submission->status = tarn_session_submit(submission->session, 1, NULL, &submission->error);
    return NULL;
}

/* Called while the submit of another session is under way, as kernels of queues are. */
static int submit_from_a_thread(void *user, const struct tarn_call *call)
{
    struct nested *nested = user;
    (void)call;
    pthread_create(&nested->thread, NULL, submit_elsewhere, &nested->submission);
    pthread_join(nested->thread, NULL);
    return 0;
}

static void two_submits_at_once_are_refused(void **state)
{
    (void)state;
    struct world w = {.paper = {.closures = false}};
    struct tarn_error error;
    world_open(&w, queue_device(&w.paper), &w.paper);
    for (uint32_t k = 0; k < BUCKETS; k++) open_session(&w, k, false);
    struct nested nested = {.submission = {.session = w.sessions[1]}};
    assert_int_equal(tarn_session_bind(w.sessions[0], 0, submit_from_a_thread, &nested, NULL),
                     TARN_OK);
    require(tarn_session_submit(w.sessions[0], 1, &w.tickets[0], &error), &error);
    assert_int_equal(nested.submission.status, TARN_USAGE);
    assert_says(&nested.submission.error, "another thread is at work");
    wait_all(&w);
    world_close(&w);
}

static int fail_always(void *user, const struct tarn_call *call)
{
    (void)user, (void)call;
    return 5;
}

static void who_follows_a_session_that_fails_is_told_and_may_go_on_without_it(void **state)
{
    (void)state;
    struct world w;
    struct tarn_error error;
    atomic_bool flag = false;
    world_open(&w, tarn_device_host(NULL), NULL);
    for (uint32_t k = 0; k < BUCKETS; k++) open_session(&w, k, false);
    assert_int_equal(tarn_session_bind(w.sessions[0], 0, wait_for_flag, &flag, NULL), TARN_OK);
    assert_int_equal(tarn_session_bind(w.sessions[0], 1, fail_always, NULL, NULL), TARN_OK);
    require(tarn_session_submit(w.sessions[0], 1, &w.tickets[0], &error), &error);
    require(tarn_session_submit(w.sessions[1], 1, &w.tickets[1], &error), &error);
    atomic_store(&flag, true);
    assert_int_equal(tarn_session_wait(w.sessions[1], 1, TARN_FOREVER, &error), TARN_DEVICE);
    assert_says(&error, "has stopped");
    assert_int_equal(tarn_session_wait(w.sessions[0], 1, TARN_FOREVER, &error), TARN_DEVICE);
    assert_int_equal(tarn_session_submit(w.sessions[2], 1, NULL, &error), TARN_USAGE);
    assert_says(&error, "has stopped with an error: destroy it first");
    for (uint32_t k = 0; k < 2; k++) {
        assert_int_equal(tarn_session_destroy(w.sessions[k]), TARN_OK);
        w.sessions[k] = NULL;
    }
    for (uint32_t k = 0; k < 2; k++) {
        w.tickets[k] = 0;
        open_session(&w, k, false);
    }
    take_turns(&w, 8, 30);
    world_close(&w);
}

static void sessions_that_do_not_fit_the_arena_are_refused(void **state)
{
    (void)state;
    struct world w;
    struct tarn_error error;
    struct tarn_session *session;
    struct queue_device paper = {.closures = false};
    unsigned char byte;
    struct tarn_graph *graph = bucket_graph(2, false);
    struct tarn_plan *stranger;
    require(tarn_plan_create(graph, NULL, &stranger, &error), &error);
    world_open(&w, tarn_device_host(NULL), NULL);
    open_session(&w, 0, false);
    struct tarn_session_options *on = TARN_SESSION_OPTIONS(.arena = w.arena);
    assert_int_equal(tarn_session_create(stranger, w.device, on, &session, &error), TARN_USAGE);
    assert_says(&error, "was not made for this plan");
    assert_int_equal(tarn_session_create(w.buckets.plans[0], w.device, on, &session, &error),
                     TARN_USAGE);
    assert_says(&error, "has a session on the arena already");
    assert_int_equal(
        tarn_session_create(w.buckets.plans[1], queue_device(&paper), on, &session, &error),
        TARN_USAGE);
    assert_says(&error, "on another device");
    on->memory = &byte;
    assert_int_equal(tarn_session_create(w.buckets.plans[1], w.device, on, &session, &error),
                     TARN_USAGE);
    assert_says(&error, "the arena has the memory");
    assert_int_equal(tarn_arena_destroy(w.arena), TARN_USAGE);
    tarn_plan_destroy(stranger);
    tarn_graph_destroy(graph);
    world_close(&w);
}

static void plans_that_do_not_go_together_are_refused(void **state)
{
    (void)state;
    struct tarn_graph *graphs[2] = {bucket_graph(1, false), bucket_graph(8, false)};
    struct tarn_plan *plans[2], *twice[2];
    struct tarn_arena *arena;
    struct tarn_error error;
    for (uint32_t i = 0; i < 2; i++)
        require(tarn_plan_create(graphs[i], TARN_PLAN_OPTIONS(.alignment = 8), &plans[i], &error),
                &error);
    struct tarn_device host = tarn_device_host(NULL);
    assert_int_equal(tarn_arena_create(plans, 2, host, NULL, &arena, &error), TARN_USAGE);
    assert_says(&error, "tarn_family_plan");
    assert_null(arena);
    twice[0] = twice[1] = plans[0];
    assert_int_equal(tarn_arena_create(twice, 2, host, NULL, &arena, &error), TARN_USAGE);
    assert_says(&error, "the same one");
    require(tarn_arena_create(plans, 2, host, TARN_ARENA_OPTIONS(.binds_persistent = true), &arena,
                              &error),
            &error);
    assert_int_equal(tarn_arena_destroy(arena), TARN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        tarn_plan_destroy(plans[i]);
        tarn_graph_destroy(graphs[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_on_the_host_compute_what_one_after_another_would),
        cmocka_unit_test(no_interleaving_of_queues_spoils_a_turn),
        cmocka_unit_test(captured_and_direct_sessions_follow_each_other),
        cmocka_unit_test(waits_between_plans_are_told_and_are_all_the_order_that_a_switch_has),
        cmocka_unit_test(persistent_tensors_have_one_address_in_all_sessions),
        cmocka_unit_test(the_caller_may_bring_the_memory_and_bind_what_is_persistent),
        cmocka_unit_test(a_session_may_be_made_again_and_finds_what_is_persistent),
        cmocka_unit_test(a_check_of_one_session_holds_while_the_others_rest),
        cmocka_unit_test(copies_are_refused_while_another_session_is_at_work),
        cmocka_unit_test(two_submits_at_once_are_refused),
        cmocka_unit_test(who_follows_a_session_that_fails_is_told_and_may_go_on_without_it),
        cmocka_unit_test(sessions_that_do_not_fit_the_arena_are_refused),
        cmocka_unit_test(plans_that_do_not_go_together_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
