/* Teams of threads, how many they are, and planning where the process may not have threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "planner/parallel/parallel.h"
#include "streams/base/cpu_quota.h"
#include "support/failing_calls.h"
#include "support/footprint.h"
#include "support/random_graph.h"
#include "tarn/session.h"
#include "tarn/transform.h"

enum { ITEMS = 300, EFFORT = 80 };

/* Without OpenMP the calling thread is alone: there is nothing to see of other threads. */
static void need_openmp(void)
{
#ifndef _OPENMP
    skip();
#endif
}

struct thread_call {
    void (*function)(void);
};

static void *make_call(void *user)
{
    ((const struct thread_call *)user)->function();
    return NULL;
}

/* OpenMP keeps threads for each thread that calls: a new one has none yet. */
static void on_new_thread(void (*function)(void))
{
    pthread_t thread;
    struct thread_call call = {function};
    allow_calls(FAILING_THREADS);
    assert_int_equal(pthread_create(&thread, NULL, make_call, &call), 0);
    pthread_join(thread, NULL);
    allow_calls(FAILING_THREADS);
}

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
    need_openmp();
    struct tarn_team team;
    struct tally *tally = calloc(1, sizeof *tally);
    assert_non_null(tally);
    tally->threads = 2;
    tally->wait_for_helper = true;
    tarn_team_init(&team, 2, true);
    tarn_team_run(&team, ITEMS, count_item, tally);
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
    need_openmp();
    struct tarn_team team;
    sigset_t masks[2], before;
    sigfillset(&masks[1]);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    allow_calls(FAILING_THREADS);
    tarn_team_init(&team, 2, true);
    for (uint32_t i = 0; i < 10; i++) tarn_team_run(&team, 8, note_mask, masks);
    assert_int_equal(sigismember(&masks[1], SIGINT), 1);
    assert_int_equal(sigismember(&masks[1], SIGALRM), 1);
    assert_int_equal(sigismember(&masks[1], SIGSEGV), 0);
    for (int i = 1; i < NSIG; i++)
        assert_int_equal(sigismember(&masks[0], i), sigismember(&before, i));
}

/* Set by a test, and what its thread found. */
static uint32_t allowed_threads, asked_threads;
static struct tally *found;

static void run_with_refusals(void)
{
    fail_calls(FAILING_THREADS, allowed_threads, UINT64_MAX);
    found = run_team(8, true, ITEMS, 2);
    asked_threads = (uint32_t)calls_made(FAILING_THREADS);
}

static void refused_threads_are_done_without(void **state)
{
    (void)state;
    need_openmp();
    for (allowed_threads = 0; allowed_threads < 8; allowed_threads++) {
        on_new_thread(run_with_refusals);
        assert_int_equal(asked_threads, allowed_threads + 1 < 7 ? allowed_threads + 1 : 7);
        free(found);
    }
}

/* Each thread that is new in a pool is tried first, once: none where the pool is large enough. */
static void run_teams_of_many_sizes(void)
{
    static const uint32_t threads[] = {3, 3, 2, 3, 5}, tried[] = {2, 0, 0, 1, 2};
    for (uint32_t i = 0; i < 5; i++) {
        allow_calls(FAILING_THREADS);
        free(run_team(threads[i], true, ITEMS, 2));
        if (calls_made(FAILING_THREADS) != tried[i]) asked_threads++;
    }
}

static void every_new_thread_is_tried_once(void **state)
{
    (void)state;
    need_openmp();
    asked_threads = 0;
    on_new_thread(run_teams_of_many_sizes);
    assert_int_equal(asked_threads, 0);
}

static void a_forked_child_works_alone(void **state)
{
    (void)state;
    int end;
    free(run_team(3, true, ITEMS, 2));
    pid_t child = fork();
    if (child == 0) {
        allow_calls(FAILING_THREADS);
        struct tally *tally = run_team(3, true, ITEMS, 2);
        _exit(tally->helped == 0 && calls_made(FAILING_THREADS) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_true(WIFEXITED(end) && WEXITSTATUS(end) == 0);
    free(run_team(3, true, ITEMS, 2));
}

static void a_parallel_region_of_the_caller_has_no_other_in_it(void **state)
{
    (void)state;
    need_openmp();
    atomic_uint helped = 0;
#ifdef _OPENMP
#pragma omp parallel num_threads(3)
#endif
    {
        struct tally *tally = run_team(4, true, ITEMS, 2);
        helped += tally->helped;
        free(tally);
    }
    assert_int_equal(helped, 0);
}

/* ---- How many threads ---- */

static const char *self;

/* The threads of a team in a program that was started with OMP_NUM_THREADS. */
static int threads_of_program(const char *setting)
{
    int end;
    pid_t child = fork();
    if (child == 0) {
        setenv("OMP_NUM_THREADS", setting, 1);
        execl(self, self, "--threads", NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    return WIFEXITED(end) ? WEXITSTATUS(end) : -1;
}

static int count_threads(void)
{
    struct tarn_team team;
    tarn_team_init(&team, 0, true);
    return (int)team.threads;
}

static void the_environment_says_how_many(void **state)
{
    (void)state;
    need_openmp();
    assert_int_equal(threads_of_program("1"), 1);
    assert_int_equal(threads_of_program("3"), 3);
    assert_int_equal(threads_of_program("7"), 7);
}

static void a_thread_bound_to_one_processor_works_alone(void **state)
{
    (void)state;
    cpu_set_t before, one;
    if (getenv("OMP_NUM_THREADS")) skip();
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &before)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int threads = count_threads();
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(threads, 1);
}

static char tree[] = "/tmp/tarn-quota-test-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_folder(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static uint32_t quota_of(const char *membership)
{
    char path[256];
    write_file("cgroup", membership);
    snprintf(path, sizeof path, "%s/cgroup", tree);
    return tarn_cpu_quota_of(path, tree);
}

static void a_control_group_limits_what_is_inside_it(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(tree));
    assert_int_equal(quota_of("0::/\n"), UINT32_MAX);
    make_folder("a");
    make_folder("a/b");
    write_file("a/b/cpu.max", "max 100000\n");
    assert_int_equal(quota_of("0::/a/b\n"), UINT32_MAX);
    write_file("a/b/cpu.max", "250000 100000\n");
    assert_int_equal(quota_of("12:cpuset:/x\n0::/a/b\n"), 3);
    assert_int_equal(quota_of("0::/a\n"), UINT32_MAX);
    write_file("a/cpu.max", "50000 100000\n");
    assert_int_equal(quota_of("0::/a/b\n"), 1);
    write_file("cpu.max", "200000 100000\n");
    assert_int_equal(quota_of("0::/\n"), 2);
    assert_int_equal(quota_of("0::/not/there\n"), 2);
    assert_int_equal(quota_of(""), 2);
    write_file("cpu.max", "nonsense\n");
    assert_int_equal(quota_of("0::/a/b\n"), 1);
    static const char *const files[] = {"cgroup", "cpu.max", "a/cpu.max", "a/b/cpu.max"};
    char path[256];
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", tree, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    snprintf(path, sizeof path, "%s/a/b", tree);
    assert_int_equal(rmdir(path), 0);
    snprintf(path, sizeof path, "%s/a", tree);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(tree), 0);
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

static struct tarn_graph *planned_graph;
static uint64_t found_footprint;

static void plan_with_refusals(void)
{
    fail_calls(FAILING_THREADS, allowed_threads, UINT64_MAX);
    found_footprint = footprint_with(planned_graph, 4);
    asked_threads = (uint32_t)calls_made(FAILING_THREADS);
}

static void plans_the_same_with_every_thread_refused_in_turn(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 3; n++) {
        planned_graph = graph_of(n);
        allowed_threads = UINT32_MAX;
        on_new_thread(plan_with_refusals);
        uint64_t footprint = found_footprint;
        uint32_t asked = asked_threads;
        for (allowed_threads = 0; allowed_threads <= asked; allowed_threads++) {
            on_new_thread(plan_with_refusals);
            assert_int_equal(found_footprint, footprint);
        }
        tarn_graph_destroy(planned_graph);
    }
}

static bool count_heartbeat(void *user, const struct tarn_plan_progress *progress)
{
    (void)progress;
    (*(uint32_t *)user)++;
    return false;
}

static void a_call_with_a_heartbeat_plans_without_its_thread(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(0);
    struct tarn_plan *plan;
    uint32_t heartbeats = 0;
    fail_calls(FAILING_THREADS, 0, UINT64_MAX);
    assert_int_equal(
        tarn_plan_create(
            graph,
            TARN_PLAN_OPTIONS(.effort = EFFORT, .heartbeat = count_heartbeat, .user = &heartbeats),
            &plan, NULL),
        TARN_OK);
    allow_calls(FAILING_THREADS);
    assert_int_equal(heartbeats, 0);
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

int main(int count, char **words)
{
    self = words[0];
    if (count > 1) return count_threads(); /* started by the_environment_says_how_many */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_every_item_once),
        cmocka_unit_test(helpers_take_part),
        cmocka_unit_test(starts_no_thread_for_little_work),
        cmocka_unit_test(helpers_leave_signals_to_the_host),
        cmocka_unit_test(refused_threads_are_done_without),
        cmocka_unit_test(every_new_thread_is_tried_once),
        cmocka_unit_test(a_forked_child_works_alone),
        cmocka_unit_test(a_parallel_region_of_the_caller_has_no_other_in_it),
        cmocka_unit_test(the_environment_says_how_many),
        cmocka_unit_test(a_thread_bound_to_one_processor_works_alone),
        cmocka_unit_test(a_control_group_limits_what_is_inside_it),
        cmocka_unit_test(plans_the_same_with_every_thread_refused_in_turn),
        cmocka_unit_test(a_call_with_a_heartbeat_plans_without_its_thread),
        cmocka_unit_test(a_session_whose_threads_are_refused_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
