/* Planning asks its caller, again and again, whether to go on: on the caller's own thread, also
 * when nothing improves; and the search ends when the caller says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "bench/cut_graph.h"
#include "support/random_graph.h"
#include "tarn/transform.h"

struct listener {
    pthread_t thread;
    uint32_t heartbeats, reports, last; /* the search ends with the last heartbeat; 0: by itself */
    uint32_t strange;                   /* calls on another thread */
    uint64_t best;
    bool *stop; /* NULL, or set by the last heartbeat instead */
};

static bool listen(void *user, const struct tarn_plan_progress *progress)
{
    struct listener *listener = user;
    if (!pthread_equal(listener->thread, pthread_self())) listener->strange++;
    if (progress->footprint != listener->best) listener->strange++;
    if (++listener->heartbeats != listener->last) return false;
    if (!listener->stop) return true;
    atomic_store((atomic_bool *)listener->stop, true);
    return false;
}

static void note(void *user, const struct tarn_plan_progress *progress)
{
    struct listener *listener = user;
    if (!pthread_equal(listener->thread, pthread_self())) listener->strange++;
    listener->reports++;
    listener->best = progress->footprint;
}

/* A search of which no test sees the end. */
static struct tarn_graph *make_endless(void)
{
    return cut_graph(&(struct cut_graph_options){CUT_CHAIN, 3000, 55});
}

static enum tarn_stop plan(struct tarn_graph *graph, struct tarn_plan_options *options,
                           struct listener *listener, struct tarn_plan_identity *identity)
{
    struct tarn_plan *plan;
    struct tarn_plan_summary summary;
    struct tarn_error error;
    listener->thread = pthread_self();
    options->heartbeat = listen;
    options->progress = note;
    options->user = listener;
    if (tarn_plan_create(graph, options, &plan, &error) != TARN_OK) fail_msg("%s", error.text);
    tarn_plan_summarize(plan, &summary);
    if (identity) *identity = tarn_plan_identify(plan);
    tarn_plan_destroy(plan);
    assert_int_equal(listener->strange, 0);
    return summary.stopped;
}

static void a_heartbeat_ends_a_search_in_which_nothing_improves(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_endless();
    struct listener listener = {.last = 3};
    assert_int_equal(plan(graph, TARN_PLAN_OPTIONS(.effort = UINT64_C(1) << 60), &listener, NULL),
                     TARN_STOP_REQUEST);
    assert_true(listener.heartbeats >= 3);
    assert_true(listener.reports > 0);
    tarn_graph_destroy(graph);
}

static void the_callers_stop_ends_a_search_with_a_heartbeat(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_endless();
    bool stop = false;
    struct listener listener = {.last = 2, .stop = &stop};
    assert_int_equal(
        plan(graph, TARN_PLAN_OPTIONS(.effort = UINT64_C(1) << 60, .stop = &stop), &listener, NULL),
        TARN_STOP_REQUEST);
    tarn_graph_destroy(graph);
}

static void heartbeats_change_no_plan(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(64); seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 60);
        struct tarn_graph *graph = random_graph(&knobs);
        struct listener listener = {.last = 0};
        struct tarn_plan_identity identity;
        struct tarn_plan *alone;
        struct tarn_error error;
        struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.effort = 10,
                              .reorder = seed % 2 ? TARN_REORDER_OPTIONS(.effort = 2) : NULL);
        assert_int_equal(tarn_plan_create(graph, options, &alone, NULL), TARN_OK);
        plan(graph, options, &listener, &identity);
        assert_true(listener.heartbeats > 0);
        if (tarn_plan_expect(alone, &identity, &error) != TARN_OK) fail_msg("%s", error.text);
        tarn_plan_destroy(alone);
        tarn_graph_destroy(graph);
    }
}

static void transforms_have_a_heartbeat(void **state)
{
    (void)state;
    struct random_graph_options knobs = random_graph_knobs(5, 60);
    struct tarn_graph *graph = random_graph(&knobs), *result;
    struct listener listener = {.thread = pthread_self()};
    assert_int_equal(tarn_graph_transform(graph,
                                          TARN_PLAN_OPTIONS(.reorder = TARN_REORDER_OPTIONS(0),
                                                            .heartbeat = listen, .user = &listener),
                                          &result, NULL),
                     TARN_OK);
    assert_true(listener.heartbeats > 0);
    assert_int_equal(listener.strange, 0);
    tarn_graph_destroy(result);
    tarn_graph_destroy(graph);
}

/* ---- Transforms that are called by themselves ---- */

struct transform_listener {
    pthread_t thread;
    uint32_t heartbeats, last, steps, strange;
};

static bool listen_to_transform(void *user, const struct tarn_transform_progress *progress)
{
    struct transform_listener *listener = user;
    if (!pthread_equal(listener->thread, pthread_self()) || !progress->transform)
        listener->strange++;
    return ++listener->heartbeats == listener->last;
}

static void note_step(void *user, const struct tarn_transform_progress *progress)
{
    struct transform_listener *listener = user;
    if (!pthread_equal(listener->thread, pthread_self()) || progress->step <= listener->steps)
        listener->strange++;
    listener->steps = (uint32_t)progress->step;
}

enum { SEARCHES = 4, ROWS = 3 };

static enum tarn_status search(int which, struct tarn_graph *graph,
                               const struct tarn_transform_control *control,
                               struct tarn_graph **result)
{
    struct tarn_budget_report rows[ROWS];
    *result = NULL;
    switch (which) {
    case 0:
        return tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.control = control), result, NULL);
    case 1: return tarn_graph_couple(graph, TARN_COUPLE_OPTIONS(.control = control), result, NULL);
    case 2: return tarn_graph_budget(graph, TARN_BUDGET_OPTIONS(.control = control), result, NULL);
    default:
        return tarn_graph_budget_curve(graph, TARN_BUDGET_OPTIONS(.control = control), rows, ROWS,
                                       NULL);
    }
}

static void every_transform_that_searches_has_a_heartbeat_and_finds_the_same(void **state)
{
    (void)state;
    for (int which = 0; which < SEARCHES; which++) {
        struct random_graph_options knobs = random_graph_knobs(5, 60);
        struct tarn_graph *graph = random_graph(&knobs), *alone, *result;
        struct transform_listener listener = {.thread = pthread_self()};
        assert_int_equal(search(which, graph, NULL, &alone), TARN_OK);
        assert_int_equal(search(which, graph,
                                TARN_TRANSFORM_CONTROL(.heartbeat = listen_to_transform,
                                                       .progress = note_step, .user = &listener),
                                &result),
                         TARN_OK);
        assert_true(listener.heartbeats > 0 && (listener.steps > 0 || which == 3));
        assert_int_equal(which == 3 ? 0 : listener.strange, 0); /* a curve counts anew */
        struct tarn_hash expected = tarn_graph_hash(alone), found = tarn_graph_hash(result);
        assert_memory_equal(&found, &expected, sizeof found);
        tarn_graph_destroy(result);
        tarn_graph_destroy(alone);
        tarn_graph_destroy(graph);
    }
}

static void a_curve_has_a_heartbeat_and_may_be_ended(void **state)
{
    (void)state;
    struct random_graph_options knobs = random_graph_knobs(5, 60);
    struct tarn_graph *graph = random_graph(&knobs), *result;
    struct transform_listener listener = {.thread = pthread_self(), .last = 1};
    enum tarn_status status = search(
        3, graph, TARN_TRANSFORM_CONTROL(.heartbeat = listen_to_transform, .user = &listener),
        &result);
    assert_true(status == TARN_OK || status == TARN_INTERRUPTED);
    assert_true(listener.heartbeats > 0);
    tarn_graph_destroy(graph);
}

/* ---- Ended within a step ---- */

struct ender {
    bool stop;
    uint64_t at;
};

static void end_at_step(void *user, const struct tarn_transform_progress *progress)
{
    struct ender *ender = user;
    if (progress->step == ender->at) atomic_store((atomic_bool *)&ender->stop, true);
}

/* At the first step: after that no order is tried but in windows, which take no time. */
static void reordering_that_is_ended_leaves_its_step(void **state)
{
    (void)state;
    uint32_t tried = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 60);
        struct tarn_graph *graph = random_graph(&knobs), *result;
        struct tarn_reorder_report whole, ended;
        struct ender ender = {.at = 1};
        tarn_graph_reorder(graph,
                           TARN_REORDER_OPTIONS(.report = &whole, .report_size = sizeof whole),
                           &result, NULL);
        tarn_graph_destroy(result);
        assert_int_equal(
            tarn_graph_reorder(
                graph,
                TARN_REORDER_OPTIONS(.report = &ended, .report_size = sizeof ended,
                                     .control = TARN_TRANSFORM_CONTROL(.stop = &ender.stop,
                                                                       .progress = end_at_step,
                                                                       .user = &ender)),
                &result, NULL),
            TARN_OK);
        tarn_graph_destroy(result);
        tarn_graph_destroy(graph);
        tried += whole.gains[TARN_REORDER_GREEDY].tries + whole.gains[TARN_REORDER_CUTS].tries;
        assert_int_equal(ended.gains[TARN_REORDER_GREEDY].tries, 0);
        assert_int_equal(ended.gains[TARN_REORDER_CUTS].tries, 0);
        assert_int_equal(ended.gains[TARN_REORDER_CASES].tries, 0);
        assert_true(ended.peak_after <= ended.peak_before);
    }
    assert_true(tried > 0);
}

/* At step 5: four arcs at most, of which none is taken away; no bound is looked for but those of
 * the first and the last row. */
static void coupling_that_is_ended_leaves_its_step(void **state)
{
    (void)state;
    uint32_t longer = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 60);
        struct tarn_graph *graph = random_graph(&knobs), *result;
        struct tarn_couple_report whole, ended;
        struct ender ender = {.at = 5};
        tarn_graph_couple(graph, TARN_COUPLE_OPTIONS(.report = &whole), &result, NULL);
        tarn_graph_destroy(result);
        assert_int_equal(
            tarn_graph_couple(
                graph,
                TARN_COUPLE_OPTIONS(.report = &ended,
                                    .control = TARN_TRANSFORM_CONTROL(.stop = &ender.stop,
                                                                      .progress = end_at_step,
                                                                      .user = &ender)),
                &result, NULL),
            TARN_OK);
        tarn_graph_destroy(result);
        tarn_graph_destroy(graph);
        longer += ender.stop && ended.arcs > 1;
        if (ender.stop) assert_true(ended.arcs <= 4 && ended.rows_count <= 2);
        assert_int_equal(ended.rows[ended.rows_count - 1].bound, ended.bound);
        tarn_couple_report_finish(&whole);
        tarn_couple_report_finish(&ended);
    }
    assert_true(longer > 0);
}

static void errors_come_through_heartbeats(void **state)
{
    (void)state;
    struct random_graph_options knobs = random_graph_knobs(6, 60);
    struct tarn_graph *graph = random_graph(&knobs);
    struct listener listener = {.thread = pthread_self()};
    struct tarn_plan *plan;
    struct tarn_error error;
    assert_int_equal(
        tarn_plan_create(graph,
                         TARN_PLAN_OPTIONS(.capacity = 1, .heartbeat = listen, .user = &listener),
                         &plan, &error),
        TARN_DOES_NOT_FIT);
    assert_int_equal(error.status, TARN_DOES_NOT_FIT);
    assert_null(plan);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heartbeat_ends_a_search_in_which_nothing_improves),
        cmocka_unit_test(the_callers_stop_ends_a_search_with_a_heartbeat),
        cmocka_unit_test(heartbeats_change_no_plan),
        cmocka_unit_test(transforms_have_a_heartbeat),
        cmocka_unit_test(every_transform_that_searches_has_a_heartbeat_and_finds_the_same),
        cmocka_unit_test(a_curve_has_a_heartbeat_and_may_be_ended),
        cmocka_unit_test(reordering_that_is_ended_leaves_its_step),
        cmocka_unit_test(coupling_that_is_ended_leaves_its_step),
        cmocka_unit_test(errors_come_through_heartbeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
