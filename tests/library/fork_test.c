/* Forked children: whatever the parent has done and its other threads are doing, a child loads,
 * plans, transforms, verifies and runs sessions of its own, ends in either way, and the parent goes
 * on. A child has the memory of all threads and only the one that forked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/footprint.h"
#include "support/random_graph.h"
#include "support/session_calls.h"
#include "tarn.h"

enum { CHILD_SECONDS = 60, EFFORT = 20, FORKS = 4 };

static char folder[] = "/tmp/tarn-fork-test-XXXXXX";
static char graph_path[sizeof folder + 16], plan_path[sizeof folder + 16];
static struct tarn_graph *graph;
static struct tarn_plan *plan;
static uint64_t footprint;

static enum tarn_status make_plan(uint32_t threads, struct tarn_plan **made)
{
    return tarn_plan_create(graph, TARN_PLAN_OPTIONS(.threads = threads, .effort = EFFORT), made,
                            NULL);
}

static int set_up(void **state)
{
    (void)state;
    graph = random_graph(&(struct random_graph_options){
        .seed = 2, .ops = 200, .streams = 4, .reach = 40, .size_max = 1 << 20});
    if (!mkdtemp(folder) || make_plan(3, &plan)) return -1;
    footprint = footprint_of(plan);
    snprintf(graph_path, sizeof graph_path, "%s/g.json", folder);
    snprintf(plan_path, sizeof plan_path, "%s/p.json", folder);
    return tarn_graph_save(graph, graph_path, NULL) || tarn_plan_save(plan, plan_path, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(graph_path);
    unlink(plan_path);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return rmdir(folder);
}

/* ---- What a child does: 0, or the number of what went wrong ---- */

static bool plans(uint32_t threads)
{
    struct tarn_plan *made = NULL;
    bool is_right = !make_plan(threads, &made) && footprint_of(made) == footprint;
    tarn_plan_destroy(made);
    return is_right;
}

static bool loads_and_verifies(void)
{
    struct tarn_graph *loaded_graph = NULL;
    struct tarn_plan *loaded_plan = NULL;
    bool is_right =
        !tarn_graph_load(graph_path, NULL, &loaded_graph, NULL) &&
        !tarn_plan_load(plan_path, loaded_graph, TARN_VERIFY, NULL, &loaded_plan, NULL) &&
        footprint_of(loaded_plan) == footprint;
    tarn_plan_destroy(loaded_plan);
    tarn_graph_destroy(loaded_graph);
    return is_right;
}

static bool transforms(void)
{
    struct tarn_graph *result = NULL;
    bool is_right = !tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.effort = 2), &result, NULL);
    tarn_graph_destroy(result);
    return is_right;
}

/* One stream has a thread of its own. */
static bool runs(void)
{
    static const uint32_t blocking = 0;
    const struct tarn_host_options host = {.struct_size = sizeof host, .workers = 2};
    struct tarn_session *session = NULL;
    bool is_right =
        !tarn_session_create(plan, tarn_device_host(&host),
                             TARN_SESSION_OPTIONS(.blocking = {&blocking, 1}), &session, NULL) &&
        !tarn_session_check(session, NULL, NULL, NULL);
    return !tarn_session_destroy(session) && is_right;
}

static int do_everything(void)
{
    if (!plans(3)) return 1;
    if (!plans(1)) return 2;
    if (!loads_and_verifies()) return 3;
    if (!transforms()) return 4;
    return runs() ? 0 : 5;
}

/* It is killed when it hangs. The exit code; -1: it did not end by itself. */
static int code_of_child(bool by_exit)
{
    int status;
    fflush(stdout); /* else a child that calls exit says it again */
    pid_t child = fork();
    if (child < 0) return -1;
    if (child > 0)
        return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    alarm(CHILD_SECONDS);
    int code = do_everything();
    if (by_exit) exit(code);
    _exit(code);
}

static void assert_children_do_everything(void)
{
    assert_int_equal(code_of_child(false), 0);
    assert_int_equal(code_of_child(true), 0);
}

/* ---- When it is forked ---- */

static void a_child_does_everything_after_its_parent_has(void **state)
{
    (void)state;
    assert_int_equal(do_everything(), 0);
    assert_children_do_everything();
    assert_int_equal(do_everything(), 0);
}

static void a_child_does_everything_beside_a_session_of_its_parent(void **state)
{
    (void)state;
    if (SANITIZED) skip(); /* sanitizers do not follow a fork of several threads */
    struct tarn_session *session;
    struct tarn_error error;
    require(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error), &error);
    assert_children_do_everything();
    require(tarn_session_check(session, NULL, NULL, &error), &error);
    tarn_session_destroy(session);
}

static int wait_for_the_parent(void *user, const struct tarn_call *call)
{
    atomic_bool *goes_on = user;
    (void)call;
    while (!*goes_on) sched_yield();
    return 0;
}

/* It has none of the session's threads, and what it began would never end. 0, or the number of the
 * call that is not refused. */
static int use(struct tarn_session *session)
{
    unsigned char byte = 0;
    uint64_t finished;
    tarn_ticket ticket;
    struct tarn_error errors[7];
    const enum tarn_status answers[] = {
        tarn_session_submit(session, 1, &ticket, &errors[0]),
        tarn_session_wait(session, 1, TARN_FOREVER, &errors[1]),
        tarn_session_wait(session, 1, 0, &errors[2]),
        tarn_session_query(session, &finished, &errors[3]),
        tarn_session_write(session, 0, &byte, 1, &errors[4]),
        tarn_session_read(session, 0, &byte, 1, &errors[5]),
        tarn_session_destroy_within(session, TARN_FOREVER, &errors[6]),
    };
    for (int i = 0; i < 7; i++)
        if (answers[i] != TARN_USAGE || !strstr(errors[i].text, "was forked from it")) return i + 1;
    return 0;
}

static void a_child_is_refused_the_session_of_its_parent(void **state)
{
    (void)state;
    if (SANITIZED) skip(); /* sanitizers do not follow a fork of several threads */
    struct tarn_session *session;
    struct tarn_error error;
    tarn_ticket ticket;
    atomic_bool goes_on = false;
    int status;
    require(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error), &error);
    tarn_session_bind_default(session, wait_for_the_parent, &goes_on);
    require(tarn_session_submit(session, 1, &ticket, &error), &error);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        _exit(use(session));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    goes_on = true;
    require(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
}

struct worker {
    bool (*work)(void);
    atomic_bool stop;
    atomic_uint done, wrong;
};

static bool plans_in_three_threads(void) { return plans(3); }

static void *work_on(void *user)
{
    struct worker *worker = user;
    while (!worker->stop) {
        worker->wrong += !worker->work();
        worker->done++;
    }
    return NULL;
}

static void a_child_does_everything_while_its_parent_does(void **state)
{
    (void)state;
    if (SANITIZED) skip(); /* sanitizers do not follow a fork of several threads */
    bool (*const works[])(void) = {plans_in_three_threads, loads_and_verifies, transforms, runs};
    for (size_t w = 0; w < sizeof works / sizeof *works; w++) {
        struct worker worker = {.work = works[w]};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, work_on, &worker), 0);
        while (worker.done == 0) sched_yield();
        for (uint32_t i = 0; i < FORKS; i++) {
            const struct timespec wait = {0, (long)i * 1300000}; /* into another part of the work */
            nanosleep(&wait, NULL);
            assert_int_equal(code_of_child(i % 2), 0);
        }
        worker.stop = true;
        pthread_join(thread, NULL);
        assert_int_equal(worker.wrong, 0);
    }
}

/* ---- From where it is forked ---- */

struct calls {
    atomic_uint made, wrong;
};

static void fork_in_search(void *user, const struct tarn_plan_progress *progress)
{
    struct calls *calls = user;
    (void)progress;
    calls->wrong += code_of_child(calls->made++ % 2) != 0;
}

static void a_search_goes_on_after_a_fork_in_its_callback(void **state)
{
    (void)state;
    if (SANITIZED) skip(); /* sanitizers do not follow a fork of several threads */
    struct calls calls = {0};
    struct tarn_plan *made;
    assert_int_equal(tarn_plan_create(graph,
                                      TARN_PLAN_OPTIONS(.threads = 3, .effort = EFFORT,
                                                        .progress = fork_in_search, .user = &calls),
                                      &made, NULL),
                     TARN_OK);
    assert_int_equal(footprint_of(made), footprint);
    assert_true(calls.made > 0);
    assert_int_equal(calls.wrong, 0);
    tarn_plan_destroy(made);
}

static int fork_in_kernel(void *user, const struct tarn_call *call)
{
    struct calls *calls = user;
    if (call->op % 64 == 0) calls->wrong += code_of_child(calls->made++ % 2) != 0;
    return 0;
}

static void a_session_goes_on_after_a_fork_in_a_kernel(void **state)
{
    (void)state;
    if (SANITIZED) skip(); /* sanitizers do not follow a fork of several threads */
    struct calls calls = {0};
    struct tarn_session *session;
    struct tarn_error error;
    require(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error), &error);
    tarn_session_bind_default(session, fork_in_kernel, &calls);
    run_iterations(session, 2);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    assert_true(calls.made > 0);
    assert_int_equal(calls.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_does_everything_after_its_parent_has),
        cmocka_unit_test(a_child_does_everything_beside_a_session_of_its_parent),
        cmocka_unit_test(a_child_is_refused_the_session_of_its_parent),
        cmocka_unit_test(a_child_does_everything_while_its_parent_does),
        cmocka_unit_test(a_search_goes_on_after_a_fork_in_its_callback),
        cmocka_unit_test(a_session_goes_on_after_a_fork_in_a_kernel),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
