/* Whatever ends a search, and whenever: the plan is safe, and no worse than any that was reported
 * before. Every search minds the time: with none left, it begins nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/cut_graph.h"
#include "bench/dnn_graph.h"
#include "random_graph.h"
#include "tarn/plan.h"

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

/* A billionth of a second is over before the first rung. */
static void without_time_every_way_gives_the_plan_in_a_row(void **state)
{
    struct tarn_graph *graphs[] = {dnn_graph(&(struct dnn_graph_options){2000, 4}),
                                   dnn_graph(&(struct dnn_graph_options){20000, 4})};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (size_t m = 0; tarn_plan_method(m); m++) {
            char method[64] = {0};
            if (is_construction(tarn_plan_method(m))) continue;
            plan(graphs[i], TARN_PLAN_OPTIONS(.method = tarn_plan_method(m), .seconds = 1e-9),
                 method);
            assert_string_equal(method, "row");
        }
        tarn_graph_destroy(graphs[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_no_worse_than_any_reported),
        cmocka_unit_test(a_large_plan_is_no_worse_than_any_reported),
        cmocka_unit_test(without_time_every_way_gives_the_plan_in_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
