/* Teams of threads, and planning where the process may not have threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "streams/base/parallel.h"
#include "support/failing_calls.h"
#include "support/footprint.h"
#include "support/random_graph.h"
#include "tarn/session.h"
#include "tarn/transform.h"

enum { ITEMS = 300, EFFORT = 80 };

/* ---- Teams ---- */

struct tally {
    atomic_uint done[ITEMS];     /* by item */
    atomic_bool busy[ITEMS];     /* by thread: is it doing an item? */
    atomic_uint helped, wrong;   /* items done by helpers; rules broken, looked at by the test */
    atomic_bool wait_for_helper; /* the caller holds its item until a helper has done one */
    uint32_t threads;
};

static void count_item(void *user, uint32_t thread, uint32_t item)
{
    struct tally *tally = user;
    if (thread >= tally->threads || atomic_exchange(&tally->busy[thread], true)) tally->wrong++;
    tally->done[item]++;
    if (thread > 0) tally->helped++;
    while (thread == 0 && tally->wait_for_helper && tally->helped == 0) sched_yield();
    tally->busy[thread] = false;
}

static struct tally *run_team(uint32_t threads, bool eager, uint32_t items, uint32_t rounds)
{
    struct tarn_team team;
    struct tally *tally = calloc(1, sizeof *tally);
    assert_non_null(tally);
    tally->threads = threads;
    tarn_team_init(&team, threads, eager);
    for (uint32_t r = 0; r < rounds; r++) tarn_team_run(&team, items, count_item, tally);
    tarn_team_finish(&team);
    assert_int_equal(tally->wrong, 0);
    for (uint32_t i = 0; i < ITEMS; i++) assert_int_equal(tally->done[i], i < items ? rounds : 0);
    return tally;
}

static void does_every_item_once(void **state)
{
    (void)state;
    static const uint32_t threads[] = {1, 2, 3, 8, 64}, items[] = {0, 1, 2, 7, ITEMS};
    for (uint32_t t = 0; t < 5; t++)
        for (uint32_t i = 0; i < 5; i++) {
            free(run_team(threads[t], true, items[i], 3));
            free(run_team(threads[t], false, items[i], 3));
        }
}

static void helpers_take_part(void **state)
{
    (void)state;
    struct tarn_team team;
    struct tally *tally = calloc(1, sizeof *tally);
    assert_non_null(tally);
    tally->threads = 2;
    tally->wait_for_helper = true;
    tarn_team_init(&team, 2, true);
    tarn_team_run(&team, ITEMS, count_item, tally);
    tarn_team_finish(&team);
    assert_true(tally->helped > 0);
    free(tally);
}

static void starts_no_thread_for_little_work(void **state)
{
    (void)state;
    fail_calls(FAILING_THREADS, 0, UINT64_MAX);
    struct tally *tally = run_team(8, true, 1, 1);
    assert_int_equal(calls_made(FAILING_THREADS), 0);
    free(tally);
}

/* Writes what a helper may be interrupted by. */
static void note_mask(void *user, uint32_t thread, uint32_t item)
{
    (void)item;
    sigset_t *masks = user;
    pthread_sigmask(SIG_BLOCK, NULL, &masks[thread]);
    struct timespec wait = {0, 1000000};
    nanosleep(&wait, NULL);
}

static void helpers_leave_signals_to_the_host(void **state)
{
    (void)state;
    struct tarn_team team;
    sigset_t masks[2], before;
    sigfillset(&masks[1]);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    allow_calls(FAILING_THREADS);
    tarn_team_init(&team, 2, true);
    for (uint32_t i = 0; i < 10; i++) tarn_team_run(&team, 8, note_mask, masks);
    tarn_team_finish(&team);
    assert_int_equal(sigismember(&masks[1], SIGINT), 1);
    assert_int_equal(sigismember(&masks[1], SIGALRM), 1);
    assert_int_equal(sigismember(&masks[1], SIGSEGV), 0);
    for (int i = 1; i < NSIG; i++)
        assert_int_equal(sigismember(&masks[0], i), sigismember(&before, i));
}

static void refused_threads_are_done_without(void **state)
{
    (void)state;
    for (uint32_t allowed = 0; allowed < 8; allowed++) {
        fail_calls(FAILING_THREADS, allowed, UINT64_MAX);
        free(run_team(8, true, ITEMS, 2));
        assert_int_equal(calls_made(FAILING_THREADS), allowed + 1 < 7 ? allowed + 1 : 7);
    }
    allow_calls(FAILING_THREADS);
}

/* ---- Planning ---- */

/* For exact search, for keys and walks, and for windows. */
static struct tarn_graph *graph_of(uint32_t n)
{
    static const struct random_graph_options options[] = {
        {.seed = 1, .ops = 60, .streams = 4, .reach = 40, .size_max = 1 << 20},
        {.seed = 2, .ops = 400, .streams = 4, .reach = 40, .size_max = 1 << 20},
        {.seed = 3, .ops = 1500, .streams = 2, .reach = 3, .size_max = 1 << 20},
    };
    return random_graph(&options[n]);
}

static uint64_t footprint_with(struct tarn_graph *graph, uint32_t threads)
{
    struct tarn_error error = {0};
    struct tarn_plan *plan;
    if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.threads = threads, .effort = EFFORT), &plan,
                         &error))
        fail_msg("%s", error.text);
    uint64_t footprint = footprint_of(plan);
    tarn_plan_destroy(plan);
    return footprint;
}

static void plans_the_same_with_every_thread_refused_in_turn(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 3; n++) {
        struct tarn_graph *graph = graph_of(n);
        allow_calls(FAILING_THREADS);
        uint64_t footprint = footprint_with(graph, 3);
        uint32_t asked = (uint32_t)calls_made(FAILING_THREADS);
        for (uint32_t allowed = 0; allowed <= asked; allowed += asked / DRAWS(8) + 1) {
            fail_calls(FAILING_THREADS, allowed, UINT64_MAX);
            assert_int_equal(footprint_with(graph, 3), footprint);
        }
        allow_calls(FAILING_THREADS);
        tarn_graph_destroy(graph);
    }
}

static bool count_beat(void *user, const struct tarn_plan_progress *progress)
{
    (void)progress;
    (*(uint32_t *)user)++;
    return false;
}

static void a_call_that_beats_plans_without_its_thread(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(0);
    struct tarn_plan *plan;
    uint32_t beats = 0;
    fail_calls(FAILING_THREADS, 0, UINT64_MAX);
    assert_int_equal(
        tarn_plan_create(graph,
                         TARN_PLAN_OPTIONS(.effort = EFFORT, .beat = count_beat, .user = &beats),
                         &plan, NULL),
        TARN_OK);
    allow_calls(FAILING_THREADS);
    assert_int_equal(beats, 0);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Sessions ---- */

static int do_nothing(void *user, const struct tarn_call *call)
{
    (void)user, (void)call;
    return 0;
}

/* Three streams of which one has a thread of its own. */
static enum tarn_status run_session(struct tarn_plan *plan, struct tarn_error *error)
{
    static const uint32_t blocking = 0;
    struct tarn_host_options host = {.struct_size = sizeof host, .workers = 2};
    struct tarn_session *session = NULL;
    enum tarn_status status =
        tarn_session_create(plan, tarn_device_host(&host),
                            TARN_SESSION_OPTIONS(.blocking = {&blocking, 1}), &session, error);
    if (!status) status = tarn_session_bind_default(session, do_nothing, NULL);
    if (!status) status = tarn_session_submit(session, 2, NULL, error);
    if (!status) status = tarn_session_wait(session, 2, TARN_FOREVER, error);
    tarn_session_destroy(session);
    return status;
}

static struct tarn_plan *plan_of_three_streams(void)
{
    struct tarn_plan *plan;
    struct tarn_graph *graph = random_graph(&(struct random_graph_options){
        .seed = 5, .ops = 40, .streams = 3, .reach = 10, .size_max = 1 << 12});
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, NULL), TARN_OK);
    tarn_graph_destroy(graph);
    return plan;
}

static void a_session_whose_threads_are_refused_is_an_error(void **state)
{
    (void)state;
    struct tarn_plan *plan = plan_of_three_streams();
    struct tarn_error error;
    allow_calls(FAILING_THREADS);
    assert_int_equal(run_session(plan, &error), TARN_OK);
    uint32_t asked = (uint32_t)calls_made(FAILING_THREADS);
    assert_true(asked >= 3);
    for (uint32_t allowed = 0; allowed <= asked; allowed++) {
        fail_calls(FAILING_THREADS, allowed, UINT64_MAX);
        assert_int_equal(run_session(plan, &error), allowed < asked ? TARN_SYSTEM : TARN_OK);
        if (allowed < asked) assert_non_null(strstr(error.text, "no thread"));
    }
    allow_calls(FAILING_THREADS);
    tarn_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_every_item_once),
        cmocka_unit_test(helpers_take_part),
        cmocka_unit_test(starts_no_thread_for_little_work),
        cmocka_unit_test(helpers_leave_signals_to_the_host),
        cmocka_unit_test(refused_threads_are_done_without),
        cmocka_unit_test(plans_the_same_with_every_thread_refused_in_turn),
        cmocka_unit_test(a_call_that_beats_plans_without_its_thread),
        cmocka_unit_test(a_session_whose_threads_are_refused_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
