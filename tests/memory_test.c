/* Every allocation of the process that fails once, in turn: this program's malloc is also that of
 * the C library and of every library that is loaded. What is asked for then is done all the same,
 * or ends in TARN_SYSTEM; never in another answer, never in a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random_graph.h"
#include "tarn.h"

/* ---- The process's memory ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_llong asked, denied = -1; /* allocations so far; the number of the one that fails */

static bool is_denied(void) { return asked++ == denied; }

void *malloc(size_t size) { return is_denied() ? NULL : __libc_malloc(size); }

void *calloc(size_t count, size_t size) { return is_denied() ? NULL : __libc_calloc(count, size); }

void *realloc(void *block, size_t size) { return is_denied() ? NULL : __libc_realloc(block, size); }

void *aligned_alloc(size_t alignment, size_t size)
{
    return is_denied() ? NULL : __libc_memalign(alignment, size);
}

/* ---- What is asked for ---- */

static char folder[] = "/tmp/tarn-memory-test-XXXXXX";
static char graph_path[sizeof folder + 16], plan_path[sizeof folder + 16],
    saved_path[sizeof folder + 16];
static struct tarn_graph *graph;
static struct tarn_plan *plan;
static uint64_t footprint;

static uint64_t footprint_of(const struct tarn_plan *of)
{
    struct tarn_plan_summary summary;
    tarn_plan_summarize(of, &summary);
    return summary.footprint;
}

static void set_paths(const char *extension)
{
    snprintf(graph_path, sizeof graph_path, "%s/g.json%s", folder, extension);
    snprintf(plan_path, sizeof plan_path, "%s/p.json%s", folder, extension);
    snprintf(saved_path, sizeof saved_path, "%s/s.json%s", folder, extension);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    graph = random_graph(&(struct random_graph_options){.seed = 3,
                                                        .ops = 12,
                                                        .streams = 3,
                                                        .parameters = 2,
                                                        .view_share = 10,
                                                        .inplace_share = 20,
                                                        .workspace_share = 30,
                                                        .group_share = 30});
    if (tarn_plan_create(graph, NULL, &plan, NULL)) return -1;
    footprint = footprint_of(plan);
    for (int i = 0; i < 2; i++) {
        set_paths(i == 0 ? ".gz" : "");
        if (tarn_graph_save(graph, graph_path, NULL) || tarn_plan_save(plan, plan_path, NULL))
            return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        set_paths(i == 0 ? ".gz" : "");
        unlink(graph_path);
        unlink(plan_path);
        unlink(saved_path);
    }
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return rmdir(folder);
}

/* Each answers TARN_REJECTED where the result is not what it should be. */

static enum tarn_status load_graph(struct tarn_error *error)
{
    struct tarn_graph *loaded = NULL;
    struct tarn_plan *made = NULL;
    enum tarn_status status = tarn_graph_load(graph_path, &loaded, error);
    /* the plan names its graph by a hash of all that the file says */
    long long now = atomic_exchange(&denied, -1);
    if (!status) status = tarn_plan_load(plan_path, loaded, TARN_TRUST, &made, error);
    denied = now;
    tarn_plan_destroy(made);
    tarn_graph_destroy(loaded);
    return status;
}

static enum tarn_status load_plan(struct tarn_error *error)
{
    struct tarn_plan *loaded = NULL;
    enum tarn_status status = tarn_plan_load(plan_path, graph, TARN_VERIFY, &loaded, error);
    if (!status && footprint_of(loaded) != footprint) status = TARN_REJECTED;
    tarn_plan_destroy(loaded);
    return status;
}

static enum tarn_status save_graph(struct tarn_error *error)
{
    return tarn_graph_save(graph, saved_path, error);
}

static enum tarn_status save_plan(struct tarn_error *error)
{
    return tarn_plan_save(plan, saved_path, error);
}

static enum tarn_status make_plan(struct tarn_error *error)
{
    struct tarn_plan *made = NULL;
    enum tarn_status status =
        tarn_plan_create(graph, TARN_PLAN_OPTIONS(.threads = 1), &made, error);
    if (!status && footprint_of(made) != footprint) status = TARN_REJECTED;
    tarn_plan_destroy(made);
    return status;
}

static enum tarn_status transform(struct tarn_error *error)
{
    struct tarn_plan *made = NULL;
    enum tarn_status status = tarn_plan_create(
        graph,
        TARN_PLAN_OPTIONS(.threads = 1, .effort = 20,
                          .assign = TARN_ASSIGN_OPTIONS(.mode = TARN_ASSIGN_SCHEDULE),
                          .reorder = TARN_REORDER_OPTIONS(.effort = 2),
                          .couple = TARN_COUPLE_OPTIONS(.wait_ns = 1),
                          .in_place = TARN_IN_PLACE_OPTIONS(.kinds = NULL)),
        &made, error);
    tarn_plan_destroy(made);
    return status;
}

static enum tarn_status verify(struct tarn_error *error)
{
    struct tarn_verdict *verdict = NULL;
    enum tarn_status status = tarn_plan_verify(plan, graph, &verdict, error);
    if (!status && tarn_verdict_count(verdict) > 0) status = TARN_REJECTED;
    tarn_verdict_destroy(verdict);
    return status;
}

static enum tarn_status run_session(struct tarn_error *error)
{
    struct tarn_session *session = NULL;
    enum tarn_status status =
        tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, error);
    if (!status) status = tarn_session_check(session, NULL, NULL, error);
    tarn_session_destroy(session);
    return status;
}

/* ---- The rule ---- */

enum { TRIES_MAX = 500 };

/* Of many allocations some, at equal distances. */
static void fail_each_in_turn(enum tarn_status (*act)(struct tarn_error *), long long least)
{
    struct tarn_error error;
    asked = 0;
    memset(&error, 0, sizeof error);
    if (act(&error)) fail_msg("%s", error.text);
    assert_true(asked >= least); /* else this malloc is not the one that is called */
    long long step = asked / TRIES_MAX + 1;
    for (long long n = 0, more = 1; more; n += step) {
        memset(&error, 0, sizeof error);
        asked = 0;
        denied = n;
        enum tarn_status status = act(&error);
        denied = -1;
        more = asked > n;
        if (status != TARN_OK && status != TARN_SYSTEM)
            fail_msg("allocation %lld: %s: %s", n, tarn_status_text(status), error.text);
        if (status == TARN_SYSTEM && error.text[0] == '\0') fail_msg("allocation %lld", n);
    }
}

static void graphs_are_loaded_or_refused_for_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        set_paths(i == 0 ? ".gz" : "");
        fail_each_in_turn(load_graph, 10);
    }
}

static void plans_are_loaded_or_refused_for_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        set_paths(i == 0 ? ".gz" : "");
        fail_each_in_turn(load_plan, 10);
    }
}

static void files_are_written_or_refused_for_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        set_paths(i == 0 ? ".gz" : "");
        fail_each_in_turn(save_graph, 2);
        fail_each_in_turn(save_plan, 2);
    }
}

static void planning_is_done_or_refused_for_memory(void **state)
{
    (void)state;
    fail_each_in_turn(make_plan, 100);
    fail_each_in_turn(verify, 10);
    fail_each_in_turn(transform, 100);
}

/* What only the other graph needs: exact search on several streams, groups, alignments. */
static void planning_another_graph_is_done_or_refused_for_memory(void **state)
{
    (void)state;
    struct tarn_graph *small = graph;
    uint64_t before = footprint;
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 25);
        struct tarn_plan *made;
        graph = random_graph(&options);
        assert_int_equal(tarn_plan_create(graph, NULL, &made, NULL), TARN_OK);
        footprint = footprint_of(made);
        tarn_plan_destroy(made);
        fail_each_in_turn(make_plan, 10);
        tarn_graph_destroy(graph);
    }
    graph = small;
    footprint = before;
}

static void sessions_run_or_are_refused_for_memory(void **state)
{
    (void)state;
    fail_each_in_turn(run_session, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_loaded_or_refused_for_memory),
        cmocka_unit_test(plans_are_loaded_or_refused_for_memory),
        cmocka_unit_test(files_are_written_or_refused_for_memory),
        cmocka_unit_test(planning_is_done_or_refused_for_memory),
        cmocka_unit_test(planning_another_graph_is_done_or_refused_for_memory),
        cmocka_unit_test(sessions_run_or_are_refused_for_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
