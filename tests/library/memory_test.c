/* The main functions of the library, with one allocation that fails, in turn each. What is asked
 * for then is done all the same, or ends in TARN_SYSTEM; never in another answer, never in a crash,
 * never in a leak. Without sanitizers these are all allocations of the process, those of the C
 * library and of every library that is loaded included; under the address sanitizer the library's
 * own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/failing_memory.h"
#include "support/footprint.h"
#include "support/random_graph.h"
#include "support/random_training.h"
#include "support/session_calls.h"
#include "support/training_graph.h"
#include "tarn.h"

/* ---- What is asked for ---- */

enum { LONG_TEXT = 20000 };

static char folder[] = "/tmp/tarn-memory-test-XXXXXX";
static char graph_path[sizeof folder + 16], plan_path[sizeof folder + 16],
    saved_path[sizeof folder + 16], texts_path[sizeof folder + 16];
static struct tarn_graph *graph;
static struct tarn_plan *plan;
static uint64_t footprint;

static void set_paths(const char *extension)
{
    snprintf(graph_path, sizeof graph_path, "%s/g%s", folder, extension);
    snprintf(plan_path, sizeof plan_path, "%s/p%s", folder, extension);
    snprintf(saved_path, sizeof saved_path, "%s/s%s", folder, extension);
    snprintf(texts_path, sizeof texts_path, "%s/t%s", folder, extension);
}

/* Does the file saved have the bytes of this one? Allocates nothing. */
static bool is_saved_as(const char *path)
{
    static char texts[2][1 << 16];
    const char *paths[2] = {saved_path, path};
    ssize_t sizes[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        int file = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (file >= 0) sizes[i] = read(file, texts[i], sizeof texts[i]);
        if (file >= 0) close(file);
    }
    assert_in_range(sizes[1], 1, sizeof texts[1] - 1);
    return sizes[0] == sizes[1] && memcmp(texts[0], texts[1], (size_t)sizes[1]) == 0;
}

/* Loads a graph and saves it. */
static enum tarn_status copy_graph(const char *from, const char *to, struct tarn_error *error)
{
    struct tarn_graph *loaded = NULL;
    enum tarn_status status = tarn_graph_load(from, NULL, &loaded, error);
    if (!status) status = tarn_graph_save(loaded, to, error);
    tarn_graph_destroy(loaded);
    return status;
}

/* Texts so long that each of them needs allocations of its own. */
static enum tarn_status save_long_texts(const char *path)
{
    static char word[LONG_TEXT];
    FILE *file = fopen(path, "w");
    if (!file) return TARN_SYSTEM;
    memset(word, 'w', sizeof word - 1);
    fprintf(file,
            "{\"format\":\"tarn.graph\",\"version\":1,\"name\":\"%s\",\"meta\":{\"%s\":\"%s\"},"
            "\"streams\":[],\"ops\":[],\"tensors\":[]}",
            word, word, word);
    return fclose(file) == 0 ? copy_graph(path, path, NULL) : TARN_SYSTEM;
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
        set_paths(i == 0 ? ".json.gz" : ".json");
        if (tarn_graph_save(graph, graph_path, NULL) || tarn_plan_save(plan, plan_path, NULL) ||
            save_long_texts(texts_path))
            return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        set_paths(i == 0 ? ".json.gz" : ".json");
        unlink(graph_path);
        unlink(plan_path);
        unlink(saved_path);
        unlink(texts_path);
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
    enum tarn_status status = tarn_graph_load(graph_path, NULL, &loaded, error);
    /* the plan names its graph by a hash of all that the file says */
    if (!status) status = tarn_plan_load(plan_path, loaded, TARN_TRUST, NULL, &made, error);
    tarn_plan_destroy(made);
    tarn_graph_destroy(loaded);
    return status;
}

static enum tarn_status load_plan(struct tarn_error *error)
{
    struct tarn_plan *loaded = NULL;
    enum tarn_status status = tarn_plan_load(plan_path, graph, TARN_VERIFY, NULL, &loaded, error);
    if (!status) status = tarn_plan_save(loaded, saved_path, error);
    if (!status && !is_saved_as(plan_path)) status = TARN_REJECTED;
    tarn_plan_destroy(loaded);
    return status;
}

/* What was loaded is saved again, so that nothing of it can have been lost. */
static enum tarn_status load_and_save_long_texts(struct tarn_error *error)
{
    enum tarn_status status = copy_graph(texts_path, saved_path, error);
    return status || is_saved_as(texts_path) ? status : TARN_REJECTED;
}

static enum tarn_status save_graph(struct tarn_error *error)
{
    enum tarn_status status = tarn_graph_save(graph, saved_path, error);
    return status || is_saved_as(graph_path) ? status : TARN_REJECTED;
}

static enum tarn_status save_plan(struct tarn_error *error)
{
    enum tarn_status status = tarn_plan_save(plan, saved_path, error);
    return status || is_saved_as(plan_path) ? status : TARN_REJECTED;
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

/* What is dropped and computed again: by exact search, or, where that is left out by effort, by
 * annealing; for one stream and for two. */
static struct tarn_graph *training;
static uint64_t training_budget, training_effort;

static enum tarn_status keep_to_budget(struct tarn_error *error)
{
    struct tarn_plan *made = NULL;
    const struct tarn_budget_options *budget =
        TARN_BUDGET_OPTIONS(.budget = training_budget, .effort = training_effort);
    enum tarn_status status = tarn_plan_create(
        training, TARN_PLAN_OPTIONS(.threads = 1, .alignment = 16, .budget = budget), &made, error);
    if (!status && footprint_of(made) > training_budget) status = TARN_REJECTED;
    tarn_plan_destroy(made);
    return status;
}

static enum tarn_status verify(struct tarn_error *error)
{
    struct tarn_verdict *verdict = NULL;
    enum tarn_status status = tarn_plan_verify(plan, graph, NULL, &verdict, error);
    if (!status && tarn_verdict_count(verdict) > 0) status = TARN_REJECTED;
    tarn_verdict_destroy(verdict);
    return status;
}

static enum tarn_status verify_file(struct tarn_error *error)
{
    struct tarn_verdict *verdict = NULL;
    enum tarn_status status = tarn_plan_verify_file(plan_path, graph, NULL, &verdict, error);
    tarn_verdict_destroy(verdict);
    return status;
}

static enum tarn_status save_and_load_order(struct tarn_error *error)
{
    const struct tarn_step steps[] = {{0, 0}, {1, 0}, {2, 0}};
    struct tarn_step *loaded = NULL;
    size_t count = 3;
    enum tarn_status status = tarn_order_save(steps, count, saved_path, error);
    if (!status) status = tarn_order_load(saved_path, &loaded, &count, error);
    if (!status && count != 3) status = TARN_REJECTED;
    free(loaded);
    return status;
}

static enum tarn_status save_intervals(struct tarn_error *error)
{
    struct tarn_graph *instance = NULL;
    struct tarn_plan *packed = NULL;
    enum tarn_status status =
        tarn_graph_load(TARN_SOURCE_DIR "/examples/graphs/twelve.csv", NULL, &instance, error);
    if (!status)
        status = tarn_plan_create(instance, TARN_PLAN_OPTIONS(.threads = 1), &packed, error);
    if (!status) status = tarn_plan_save_intervals(packed, saved_path, error);
    tarn_plan_destroy(packed);
    tarn_graph_destroy(instance);
    return status;
}

static enum tarn_status draw_curve(struct tarn_error *error)
{
    struct tarn_budget_report rows[3];
    enum tarn_status status =
        tarn_graph_budget_curve(graph, TARN_BUDGET_OPTIONS(.effort = 20), rows, 3, error);
    if (!status) status = tarn_budget_curve_save(graph, rows, 3, saved_path, error);
    return status;
}

/* ---- Sessions ---- */

static enum tarn_status check_session(struct tarn_error *error)
{
    struct tarn_session *session = NULL;
    enum tarn_status status =
        tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, error);
    if (!status) status = tarn_session_check(session, NULL, NULL, error);
    tarn_session_destroy(session);
    return status;
}

static enum tarn_status run_session(struct tarn_error *error)
{
    tarn_ticket ticket;
    struct tarn_session *session = NULL;
    enum tarn_status status =
        tarn_session_create(plan, tarn_device_host(NULL),
                            TARN_SESSION_OPTIONS(.flight = 8, .depth = 2), &session, error);
    if (!status) status = tarn_session_bind_default(session, do_nothing, NULL);
    if (!status) status = tarn_session_submit(session, 3, &ticket, error);
    if (!status) status = tarn_session_wait(session, ticket, TARN_FOREVER, error);
    if (!status) status = tarn_session_save_dump(session, NULL, saved_path, error);
    if (!status) status = tarn_session_save_trace(session, saved_path, error);
    tarn_session_destroy(session);
    return status;
}

/* ---- The rule ---- */

static void graphs_are_loaded_or_refused_for_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        set_paths(i == 0 ? ".json.gz" : ".json");
        fail_single_allocations(load_graph, 10);
        fail_single_allocations(load_and_save_long_texts, 10);
    }
}

static void plans_are_loaded_or_refused_for_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        set_paths(i == 0 ? ".json.gz" : ".json");
        fail_single_allocations(load_plan, 10);
    }
}

static void files_are_written_or_refused_for_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        set_paths(i == 0 ? ".json.gz" : ".json");
        fail_single_allocations(save_graph, 1);
        fail_single_allocations(save_plan, 1);
        fail_single_allocations(save_and_load_order, 1);
    }
    set_paths(".csv");
    fail_single_allocations(save_intervals, 10);
    unlink(saved_path);
    set_paths(".json");
}

static void planning_is_done_or_refused_for_memory(void **state)
{
    (void)state;
    fail_single_allocations(make_plan, 50);
    fail_single_allocations(verify, 5);
    fail_single_allocations(verify_file, 5);
    fail_single_allocations(transform, 100);
}

static void budgets_are_kept_or_refused_for_memory(void **state)
{
    (void)state;
    for (uint32_t streams = 1; streams <= 2; streams++) {
        training = random_training(&(struct random_training_options){.seed = 5,
                                                                     .ops = 8,
                                                                     .branch_share = 30,
                                                                     .weight_share = 50,
                                                                     .streams = streams,
                                                                     .scatter_share = 30});
        struct tarn_plan *made;
        assert_int_equal(
            tarn_plan_create(training, TARN_PLAN_OPTIONS(.alignment = 16), &made, NULL), TARN_OK);
        training_budget = footprint_of(made) * 9 / 10;
        tarn_plan_destroy(made);
        for (training_effort = 20; training_effort <= 20000; training_effort *= 1000)
            fail_single_allocations(keep_to_budget, 50);
        tarn_graph_destroy(training);
    }
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
        fail_single_allocations(make_plan, 10);
        tarn_graph_destroy(graph);
    }
    graph = small;
    footprint = before;
}

static void curves_are_drawn_or_refused_for_memory(void **state)
{
    (void)state;
    struct tarn_graph *small = graph;
    graph = training_graph(2).graph;
    fail_single_allocations(draw_curve, 100);
    tarn_graph_destroy(graph);
    graph = small;
}

static void sessions_run_or_are_refused_for_memory(void **state)
{
    (void)state;
    fail_single_allocations(check_session, 10);
    fail_single_allocations(run_session, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_loaded_or_refused_for_memory),
        cmocka_unit_test(plans_are_loaded_or_refused_for_memory),
        cmocka_unit_test(files_are_written_or_refused_for_memory),
        cmocka_unit_test(planning_is_done_or_refused_for_memory),
        cmocka_unit_test(planning_another_graph_is_done_or_refused_for_memory),
        cmocka_unit_test(curves_are_drawn_or_refused_for_memory),
        cmocka_unit_test(budgets_are_kept_or_refused_for_memory),
        cmocka_unit_test(sessions_run_or_are_refused_for_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
