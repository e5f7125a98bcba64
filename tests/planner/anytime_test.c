/* Whatever ends a search, and whenever: the plan is safe, says what ended it, and is no worse than
 * any that was reported before, nor than one pass of lowest-offset-first. Every search minds the
 * time: with none left, it begins nothing but that. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/cut_graph.h"
#include "bench/dnn_graph.h"
#include "bench/rough_graph.h"
#include "support/random_graph.h"
#include "tarn/plan.h"
#include "tarn/transform.h"

/* Ends the search with the n-th report. */
struct watch {
    uint32_t reports, last;
    uint64_t least; /* footprint */
    bool stop;
};

static void watch_progress(void *user, const struct tarn_plan_progress *progress)
{
    struct watch *watch = user;
    assert_true(progress->footprint >= progress->bound);
    if (progress->footprint < watch->least) watch->least = progress->footprint;
    if (++watch->reports == watch->last) atomic_store((atomic_bool *)&watch->stop, true);
}

static struct tarn_plan_summary plan(struct tarn_graph *graph,
                                     const struct tarn_plan_options *options, char method[64])
{
    struct tarn_plan *plan;
    struct tarn_plan_summary summary;
    struct tarn_error error;
    if (tarn_plan_create(graph, options, &plan, &error) != TARN_OK) fail_msg("%s", error.text);
    tarn_plan_summarize(plan, &summary);
    strncpy(method, summary.method, 63);
    tarn_plan_destroy(plan);
    return summary;
}

/* How many reports came when the search was ended with the `last`-th. */
static uint32_t check_watched(struct tarn_graph *graph, uint32_t last)
{
    struct watch watch = {.last = last, .least = UINT64_MAX};
    char method[64] = {0};
    const struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.effort = 4, .threads = 1, .progress = watch_progress, .user = &watch,
                          .stop = &watch.stop);
    uint64_t footprint = plan(graph, options, method).footprint;
    assert_true(footprint <= watch.least);
    return watch.reports;
}

static void a_plan_is_no_worse_than_any_reported(void **state)
{
    uint32_t most = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 40 && most < 6; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 60);
        struct tarn_graph *graph = random_graph(&knobs);
        for (uint32_t last = 1; check_watched(graph, last) >= last; last++)
            if (last > most) most = last;
        tarn_graph_destroy(graph);
    }
    assert_true(most > 2);
}

static void a_large_plan_is_no_worse_than_any_reported(void **state)
{
    struct tarn_graph *graphs[] = {
        dnn_graph_in_buckets(&(struct dnn_graph_options){1500, 4}, 200),
        dnn_graph(&(struct dnn_graph_options){20000, 6}),
        cut_graph(&(struct cut_graph_options){CUT_UNCOUPLED, 20000, 4}),
    };
    (void)state;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        assert_true(check_watched(graphs[i], 1) >= 1);
        tarn_graph_destroy(graphs[i]);
    }
}

/* Layouts of other people's, asked for by name, are made in one go. */
static bool is_construction(const char *method)
{
    return strcmp(method, "roam-tree") == 0 || strcmp(method, "llfb") == 0;
}

/* ---- Ended at once ---- */

enum { PASS_PERCENT = 125, ROW_PERCENT = 200 };

/* The plan of one pass is near the best of all keys, and far from one storage behind the other. */
static void check_pass(struct tarn_graph *graph, const struct tarn_plan_options *options,
                       enum tarn_stop stopped)
{
    struct tarn_graph_summary given;
    struct tarn_error error;
    char method[64] = {0};
    uint64_t best =
        plan(graph, TARN_PLAN_OPTIONS(.method = "lowest", .effort = TARN_NO_EFFORT), method)
            .footprint;
    assert_int_equal(tarn_graph_summarize(graph, &given, &error), TARN_OK);
    assert_true(given.sum >= best * ROW_PERCENT / 100);
    struct tarn_plan_summary summary = plan(graph, options, method);
    assert_int_equal(summary.stopped, stopped);
    assert_string_equal(method, "lowest:pass");
    assert_true(summary.footprint <= best * PASS_PERCENT / 100);
}

/* A billionth of a second is over before the first rung. */
static void without_time_every_way_gives_the_plan_of_one_pass(void **state)
{
    struct tarn_graph *graphs[] = {
        dnn_graph(&(struct dnn_graph_options){2000, 4}),
        dnn_graph_in_buckets(&(struct dnn_graph_options){3000, 4}, 100),
        dnn_graph(&(struct dnn_graph_options){20000, 4}),
        cut_graph(&(struct cut_graph_options){CUT_UNCOUPLED, 20000, 4}),
    };
    (void)state;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        for (size_t m = 0; tarn_plan_method(m); m++) {
            if (is_construction(tarn_plan_method(m)) || (i > 0 && m > 5)) continue;
            check_pass(graphs[i], TARN_PLAN_OPTIONS(.method = tarn_plan_method(m), .seconds = 1e-9),
                       TARN_STOP_DEADLINE);
        }
        tarn_graph_destroy(graphs[i]);
    }
}

static void a_stop_before_the_call_gives_the_plan_of_one_pass(void **state)
{
    struct tarn_graph *graph = dnn_graph(&(struct dnn_graph_options){2000, 4});
    const bool stop = true;
    (void)state;
    check_pass(graph, TARN_PLAN_OPTIONS(.stop = &stop), TARN_STOP_REQUEST);
    tarn_graph_destroy(graph);
}

/* More storages than can be decoded at once. */
static void a_pass_over_many_storages_goes_window_by_window(void **state)
{
    struct tarn_graph *graph = cut_graph(&(struct cut_graph_options){CUT_CHAIN, 200000, 4});
    const bool stop = true;
    char method[64] = {0};
    (void)state;
    struct tarn_plan_summary summary = plan(graph, TARN_PLAN_OPTIONS(.stop = &stop), method);
    assert_string_equal(method, "lowest:pass");
    assert_true(summary.footprint <= summary.bound * ROW_PERCENT / 100);
    tarn_graph_destroy(graph);
}

/* ---- Ended on the way ---- */

/* A graph whose search does not come to an end by itself. */
static struct tarn_graph *make_endless(void)
{
    for (uint64_t seed = 1;; seed++) {
        char method[64] = {0};
        struct random_graph_options knobs = random_graph_knobs(seed, 60);
        struct tarn_graph *graph = random_graph(&knobs);
        struct tarn_plan_summary summary = plan(graph, TARN_PLAN_OPTIONS(.effort = 4), method);
        if (!summary.optimal) return graph;
        tarn_graph_destroy(graph);
    }
}

static bool signalled;

static void note_signal(int signal_number)
{
    (void)signal_number;
    __atomic_store_n(&signalled, true, __ATOMIC_RELAXED);
}

static void a_signal_ends_a_search_and_the_plan_says_so(void **state)
{
    struct tarn_graph *graph = make_endless();
    struct sigaction action = {.sa_handler = note_signal}, before;
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    char method[64] = {0};
    (void)state;
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &soon, NULL);
    struct tarn_plan_summary summary =
        plan(graph, TARN_PLAN_OPTIONS(.effort = UINT64_C(1) << 60, .stop = &signalled), method);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(summary.stopped, TARN_STOP_REQUEST);
    tarn_graph_destroy(graph);
}

static void a_deadline_ends_a_search_and_the_plan_says_so(void **state)
{
    struct tarn_graph *graph = make_endless();
    char method[64] = {0};
    (void)state;
    assert_int_equal(plan(graph, TARN_PLAN_OPTIONS(.seconds = 1e-3), method).stopped,
                     TARN_STOP_DEADLINE);
    assert_int_equal(plan(graph, TARN_PLAN_OPTIONS(.effort = 4), method).stopped, TARN_STOP_NONE);
    tarn_graph_destroy(graph);
}

/* Nobody asks for an end, and there is one all the same: the usual steps have their limit of work.
 */
static void the_usual_steps_end_where_their_work_is_spent(void **state)
{
    struct tarn_graph *graph = rough_graph(&(struct rough_graph_options){ROUGH_MESH, 3000, 4, 1});
    char method[64] = {0};
    (void)state;
    assert_int_equal(plan(graph, TARN_PLAN_OPTIONS(.effort = 1000), method).stopped,
                     TARN_STOP_WORK);
    tarn_graph_destroy(graph);
}

/* ---- The clock ---- */

/* Seconds that all clocks of the process are ahead of the machine's. */
static _Atomic long ahead;

/* Stands in for the C library's, in the library under test, too. */
int clock_gettime(clockid_t id, struct timespec *now)
{
    long status = syscall(SYS_clock_gettime, id, now);
    now->tv_sec += atomic_load(&ahead);
    return (int)status;
}

/* The machine stands still for so many seconds with each report, and a last time after the first
 * one. */
struct pause {
    long each, once;
    uint32_t reports;
};

static void pause_machine(void *user, const struct tarn_plan_progress *progress)
{
    struct pause *pause = user;
    (void)progress;
    ahead += pause->each + (pause->reports++ == 0 ? pause->once : 0);
}

struct outcome {
    enum tarn_stop stopped;
    struct tarn_plan_identity identity;
};

static void plan_paused(struct tarn_graph *graph, const struct tarn_plan_options *given,
                        struct pause pause, struct outcome *outcome)
{
    struct tarn_plan_options options = *given;
    struct tarn_plan *plan;
    struct tarn_error error;
    options.progress = pause_machine;
    options.user = &pause;
    if (tarn_plan_create(graph, &options, &plan, &error) != TARN_OK) fail_msg("%s", error.text);
    if (pause.each + pause.once > 0) assert_true(pause.reports > 0);
    struct tarn_plan_summary summary;
    tarn_plan_summarize(plan, &summary);
    outcome->stopped = summary.stopped;
    outcome->identity = tarn_plan_identify(plan);
    tarn_plan_destroy(plan);
}

static void requires_the_same_plan(struct tarn_graph *graph, const struct tarn_plan_options *given)
{
    struct outcome once, paused;
    struct tarn_plan_options options = *given;
    options.threads = 1;
    plan_paused(graph, &options, (struct pause){0}, &once);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        options.threads = threads;
        plan_paused(graph, &options, (struct pause){.each = 7, .once = 60 * threads}, &paused);
        assert_memory_equal(&paused.identity, &once.identity, sizeof once.identity);
        assert_int_equal(paused.stopped, once.stopped);
    }
}

/* Chains of equal steps in four streams, dealt out: they are placed at their bound late. */
static struct tarn_graph *equal_chains(uint32_t chains, uint32_t length)
{
    struct tarn_builder *b = tarn_builder_create("chains");
    struct tarn_graph *graph;
    struct tarn_error error;
    tarn_tensor last[16];
    for (uint32_t s = 0; s < 4; s++) tarn_builder_stream(b, NULL);
    const struct tarn_tensor_info info = {.size = 8000000};
    tarn_tensor input =
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 8000000, .kind = TARN_INPUT});
    for (uint32_t c = 0; c < chains; c++) last[c] = input;
    for (uint32_t i = 0; i < chains * length; i++) {
        tarn_tensor next = tarn_builder_tensor(b, &info);
        tarn_builder_op(b, &(struct tarn_op_info){.kind = "sqrt",
                                                  .stream = i % 4,
                                                  .inputs = TARN_TENSORS(last[i % chains]),
                                                  .outputs = TARN_TENSORS(next),
                                                  .cost = 2000000});
        last[i % chains] = next;
    }
    if (tarn_builder_finish(b, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

/* A machine that stands still, for seconds or for minutes, or has other cores, makes no other plan:
 * not of a graph alone, nor with another order, waits, or a budget. */
static void no_plan_depends_on_the_hour(void **state)
{
    (void)state;
    const struct tarn_reorder_options *reorder = TARN_REORDER_OPTIONS(.effort = 4);
    const struct tarn_couple_options *couple = TARN_COUPLE_OPTIONS(.keep = 0.2);
    struct tarn_graph *graphs[] = {equal_chains(10, 8), make_endless(),
                                   dnn_graph_in_buckets(&(struct dnn_graph_options){400, 4}, 20)};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        char method[64] = {0};
        uint64_t most = plan(graphs[i], TARN_PLAN_OPTIONS(.effort = 1), method).footprint;
        requires_the_same_plan(graphs[i], TARN_PLAN_OPTIONS(.seed = 0));
        requires_the_same_plan(graphs[i], TARN_PLAN_OPTIONS(.reorder = reorder, .couple = couple));
        requires_the_same_plan(graphs[i],
                               TARN_PLAN_OPTIONS(.budget = TARN_BUDGET_OPTIONS(.budget = most)));
        tarn_graph_destroy(graphs[i]);
    }
}

/* Only seconds that are asked for are an end by the clock; and a machine that stands still for
 * longer than anybody waits, of which the plan tells. */
static void a_clock_that_ends_a_plan_is_told(void **state)
{
    struct tarn_graph *graph = make_endless();
    struct outcome outcome;
    (void)state;
    plan_paused(graph, TARN_PLAN_OPTIONS(.seconds = 1e3), (struct pause){.once = 2000}, &outcome);
    assert_int_equal(outcome.stopped, TARN_STOP_DEADLINE);
    plan_paused(graph, TARN_PLAN_OPTIONS(.seed = 0), (struct pause){.once = 100000}, &outcome);
    assert_int_equal(outcome.stopped, TARN_STOP_DEADLINE);
    plan_paused(graph, TARN_PLAN_OPTIONS(.effort = 20), (struct pause){.once = 100000}, &outcome);
    assert_int_not_equal(outcome.stopped, TARN_STOP_DEADLINE);
    tarn_graph_destroy(graph);
}

/* What ended a search is told in every case; where it was for want of effort, more finds better. */
static void what_ended_a_search_is_told_in_every_case(void **state)
{
    struct tarn_graph *graph = make_endless(),
                      *easy = dnn_graph(&(struct dnn_graph_options){2000, 4});
    char method[64] = {0};
    bool stop = true;
    (void)state;
    struct tarn_plan_summary best = plan(easy, NULL, method);
    const struct {
        struct tarn_graph *graph;
        const struct tarn_plan_options *options;
        enum tarn_end ended;
    } cases[] = {
        {easy, NULL, TARN_END_BOUND},
        {easy, TARN_PLAN_OPTIONS(.capacity = best.footprint), TARN_END_BOUND},
        {easy, TARN_PLAN_OPTIONS(.capacity = 4 * best.footprint), TARN_END_BOUND},
        {easy, TARN_PLAN_OPTIONS(.capacity = 4 * best.footprint, .method = "exact"),
         TARN_END_CAPACITY},
        {graph, TARN_PLAN_OPTIONS(.effort = 4), TARN_END_EFFORT},
        {graph, TARN_PLAN_OPTIONS(.effort = TARN_NO_EFFORT), TARN_END_EFFORT},
        {graph, TARN_PLAN_OPTIONS(.effort = 4, .method = "lowest"), TARN_END_EFFORT},
        {graph, TARN_PLAN_OPTIONS(.effort = TARN_NO_EFFORT, .method = "lowest"), TARN_END_EFFORT},
        {graph, TARN_PLAN_OPTIONS(.method = "many-objects:size:first-fit"), TARN_END_METHOD},
        {graph, TARN_PLAN_OPTIONS(.seconds = 1e-3), TARN_END_STOPPED},
        {graph, TARN_PLAN_OPTIONS(.stop = &stop), TARN_END_STOPPED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_plan_summary made = plan(cases[i].graph, cases[i].options, method);
        if (made.ended != cases[i].ended)
            fail_msg("case %zu: %d, not %d", i, made.ended, cases[i].ended);
        assert_int_equal(made.optimal, made.ended == TARN_END_BOUND);
        assert_int_equal(made.stopped != TARN_STOP_NONE, made.ended == TARN_END_STOPPED);
    }
    assert_true(plan(graph, TARN_PLAN_OPTIONS(.effort = 100), method).footprint <
                plan(graph, TARN_PLAN_OPTIONS(.effort = TARN_NO_EFFORT), method).footprint);
    tarn_graph_destroy(easy);
    tarn_graph_destroy(graph);
}

/* What has met its aim has nothing left to be ended. */
static void a_plan_at_its_aim_was_not_stopped(void **state)
{
    struct tarn_graph *graph = dnn_graph(&(struct dnn_graph_options){2000, 4});
    char method[64] = {0};
    (void)state;
    struct tarn_plan_summary summary = plan(graph, NULL, method);
    assert_true(summary.optimal);
    assert_int_equal(summary.stopped, TARN_STOP_NONE);
    summary = plan(graph, TARN_PLAN_OPTIONS(.capacity = 2 * summary.bound, .seconds = 60), method);
    assert_int_equal(summary.stopped, TARN_STOP_NONE);
    tarn_graph_destroy(graph);
}

static void seconds_below_zero_are_refused(void **state)
{
    (void)state;
    const double refused[] = {-1, -1e-9, 0.0 / 0.0};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct tarn_graph *graph = make_endless(), *result;
        struct tarn_plan *made;
        struct tarn_error error;
        const struct tarn_transform_control *control =
            TARN_TRANSFORM_CONTROL(.seconds = refused[i]);
        assert_int_equal(
            tarn_plan_create(graph, TARN_PLAN_OPTIONS(.seconds = refused[i]), &made, &error),
            TARN_USAGE);
        assert_string_equal(error.text, "the seconds of a search must be 0 or more");
        assert_null(made);
        assert_int_equal(
            tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.control = control), &result, &error),
            TARN_USAGE);
        assert_int_equal(
            tarn_graph_budget(graph, TARN_BUDGET_OPTIONS(.control = control), &result, &error),
            TARN_USAGE);
        assert_string_equal(error.text, "the seconds of a search must be 0 or more");
        tarn_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_no_worse_than_any_reported),
        cmocka_unit_test(a_large_plan_is_no_worse_than_any_reported),
        cmocka_unit_test(without_time_every_way_gives_the_plan_of_one_pass),
        cmocka_unit_test(a_stop_before_the_call_gives_the_plan_of_one_pass),
        cmocka_unit_test(a_pass_over_many_storages_goes_window_by_window),
        cmocka_unit_test(a_signal_ends_a_search_and_the_plan_says_so),
        cmocka_unit_test(a_deadline_ends_a_search_and_the_plan_says_so),
        cmocka_unit_test(the_usual_steps_end_where_their_work_is_spent),
        cmocka_unit_test(what_ended_a_search_is_told_in_every_case),
        cmocka_unit_test(no_plan_depends_on_the_hour),
        cmocka_unit_test(a_clock_that_ends_a_plan_is_told),
        cmocka_unit_test(a_plan_at_its_aim_was_not_stopped),
        cmocka_unit_test(seconds_below_zero_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
