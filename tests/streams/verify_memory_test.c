/* Every allocation that fails while a plan is read or judged, in turn, ends in TARN_SYSTEM and
 * leaks nothing (a sanitizer sees to the second); in no verdict, and in no other error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/transform/implementations/cost_table.h"
#include "streams/base/region.h"
#include "streams/plan/switch.h"
#include "streams/verify/verdict.h"
#include "streams/verify/verify.h"
#include "support/failing_memory.h"
#include "support/random_graph.h"
#include "tarn.h"

#define EMPTY_GRAPH                                                                     \
    "{\"format\":\"tarn.graph\",\"version\":1,\"name\":\"\",\"streams\":[],\"ops\":[]," \
    "\"tensors\":[]}"
#define DATA TARN_SOURCE_DIR "/tests/data/invalid_plans"

static struct tarn_graph *graph;
static struct tarn_plan *plan;
static const char trace_path[] = "verify_memory_test.trace.json";
static const char plan_path[] = "verify_memory_test.plan.json";
static const char spaces_path[] = TARN_SOURCE_DIR "/tests/data/valid/spaces.json";
static bool is_foreign; /* the plan says that its graph comes from this one */

static void load(const char *path)
{
    struct tarn_error error;
    if (tarn_graph_load(DATA "/graph.json", NULL, &graph, &error) ||
        tarn_plan_load(path, graph, TARN_TRUST, NULL, &plan, &error))
        fail_msg("%s", error.text);
}

static void finish(void)
{
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* What is expected instead of TARN_OK counts as that. */
static enum tarn_status instead(enum tarn_status status, enum tarn_status expected)
{
    return status == expected ? TARN_OK : status == TARN_OK ? TARN_REJECTED : status;
}

static enum tarn_status accept(struct tarn_error *error)
{
    struct tarn_verdict *verdict;
    enum tarn_status status = tarn_plan_verify(plan, graph, NULL, &verdict, error);
    assert_int_equal(verdict == NULL, status == TARN_SYSTEM);
    tarn_verdict_destroy(verdict);
    return status;
}

static enum tarn_status reject(struct tarn_error *error)
{
    struct tarn_verdict *verdict;
    enum tarn_status status = tarn_plan_verify(plan, graph, NULL, &verdict, error);
    assert_int_equal(verdict == NULL, status == TARN_SYSTEM);
    if (verdict) assert_int_equal(!tarn_verdict_get(verdict, 0)->witness, is_foreign);
    tarn_verdict_destroy(verdict);
    return instead(status, TARN_REJECTED);
}

/* A certificate with gaps, or of a cut through ops, is checked in memory of its own. */
static void plan_with(bool gaps)
{
    for (uint64_t seed = 0;; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 12);
        options.group_share = gaps ? 100 : 0;
        options.early_share = gaps ? 0 : 100;
        options.workspace_share = gaps ? options.workspace_share : 60;
        graph = random_graph(&options);
        const struct tarn_plan_options *with = TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1);
        assert_int_equal(tarn_plan_create(graph, with, &plan, NULL), TARN_OK);
        if ((gaps ? plan->claim.gaps_count : plan->claim.inside_count) > 0) return;
        finish();
    }
}

/* Each space has a certificate, and texts of its own. */
static void plan_with_spaces(void)
{
    const struct tarn_plan_options *with = TARN_PLAN_OPTIONS(.threads = 1);
    assert_int_equal(tarn_graph_load(spaces_path, NULL, &graph, NULL), TARN_OK);
    assert_int_equal(tarn_plan_create(graph, with, &plan, NULL), TARN_OK);
}

static enum tarn_status reload_spaces(struct tarn_error *error)
{
    struct tarn_graph *loaded;
    struct tarn_plan *again = NULL;
    enum tarn_status status = tarn_graph_load(spaces_path, NULL, &loaded, error);
    if (!status) status = tarn_plan_load(plan_path, loaded, TARN_TRUST, NULL, &again, error);
    assert_int_equal(again == NULL, status != TARN_OK);
    tarn_plan_destroy(again);
    tarn_graph_destroy(loaded);
    return status;
}

/* Sound, but of a graph that has nothing of the source. */
static void foreign_plan(void)
{
    struct tarn_graph *other;
    load(DATA "/sound.json");
    tarn_plan_destroy(plan);
    assert_int_equal(
        tarn_graph_load(TARN_SOURCE_DIR "/examples/graphs/twelve.csv", NULL, &other, NULL),
        TARN_OK);
    assert_int_equal(tarn_plan_create(other, TARN_PLAN_OPTIONS(.threads = 1), &plan, NULL),
                     TARN_OK);
    plan->transformed = is_foreign = true;
    plan->source_hash = graph->hash;
    tarn_graph_destroy(other);
}

static void a_verdict_is_whole_or_refused_for_memory(void **state)
{
    (void)state;
    for (int gaps = 0; gaps < 2; gaps++) {
        plan_with(gaps);
        fail_each_allocation(accept, 5);
        finish();
    }
    plan_with_spaces();
    fail_each_allocation(accept, 5);
    finish();
    load(DATA "/sound_with_bound.json");
    fail_each_allocation(accept, 5);
    finish();
    load(DATA "/place_overlaps.json");
    fail_each_allocation(reject, 5);
    finish();
    foreign_plan();
    fail_each_allocation(reject, 5);
    finish();
}

/* Trusted or not, as far as a session or a verdict needs it. */
static enum tarn_status refuse_file(const char *path, struct tarn_error *error)
{
    struct tarn_plan *none;
    struct tarn_verdict *verdict = NULL;
    enum tarn_status status = tarn_plan_load(path, graph, TARN_TRUST, NULL, &none, error);
    assert_null(none);
    status = instead(status, TARN_BAD_INPUT);
    if (!status)
        status = instead(tarn_plan_verify_file(path, graph, NULL, &verdict, error), TARN_REJECTED);
    tarn_verdict_destroy(verdict);
    return status;
}

static enum tarn_status refuse_incomplete(struct tarn_error *error)
{
    struct tarn_plan *misaligned;
    enum tarn_status status = refuse_file(DATA "/place_missing.json", error);
    if (!status) status = refuse_file(DATA "/streams_op_absent.json", error);
    if (status) return status;
    status =
        tarn_plan_load(DATA "/place_misaligned.json", graph, TARN_TRUST, NULL, &misaligned, error);
    assert_int_equal(misaligned == NULL, status != TARN_OK);
    tarn_plan_destroy(misaligned);
    return status;
}

static void an_incomplete_plan_is_that_or_refused_for_memory(void **state)
{
    (void)state;
    load(DATA "/sound.json");
    fail_each_allocation(refuse_incomplete, 10);
    finish();
}

static void save_text(const char *path, const char *text)
{
    assert_int_equal(tarn_file_save(path, text, strlen(text), NULL), TARN_OK);
}

static enum tarn_status outline_spaces(struct tarn_error *error)
{
    struct tarn_plan_outline *outline;
    enum tarn_status status = tarn_plan_outline_load(plan_path, &outline, error);
    if (status == TARN_OK) assert_true(outline->spaces_count > 1);
    tarn_plan_outline_destroy(outline);
    return status;
}

static void spaces_are_read_or_refused_for_memory(void **state)
{
    (void)state;
    plan_with_spaces();
    assert_int_equal(tarn_plan_save(plan, plan_path, NULL), TARN_OK);
    fail_each_allocation(reload_spaces, 10);
    fail_each_allocation(outline_spaces, 2);
    unlink(plan_path);
    finish();
}

/* An instance and an answer to it, an order, and a table of costs. */
static enum tarn_status read_the_rest(struct tarn_error *error)
{
    static const struct tarn_step steps[] = {{0, 0}, {1, 0}, {2, 1}};
    static const char order_path[] = "/tmp/tarn-verify-memory-test.json";
    struct tarn_step *loaded = NULL;
    struct tarn_cost_table *table = NULL;
    size_t count;
    struct tarn_graph *instance = NULL;
    enum tarn_status status =
        tarn_graph_load(TARN_SOURCE_DIR "/examples/graphs/twelve.csv", NULL, &instance, error);
    tarn_graph_destroy(instance);
    if (!status) status = tarn_order_save(steps, 3, order_path, error);
    if (!status) status = tarn_order_load(order_path, &loaded, &count, error);
    if (!status) status = tarn_plan_save_intervals(plan, "/dev/null", error);
    if (!status)
        status = tarn_cost_table_load(TARN_SOURCE_DIR "/examples/costs.csv", &table, error);
    tarn_cost_table_destroy(table);
    free(loaded);
    return status;
}

/* Plans of which nobody has the programs yet; nothing waits, which is refused. */
static enum tarn_status refuse_a_switch(struct tarn_error *error)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_plan *from = NULL, *to = NULL;
    uint32_t *same = NULL;
    enum tarn_status status =
        tarn_plan_load(DATA "/sound.json", graph, TARN_TRUST, NULL, &from, error);
    if (!status) status = tarn_plan_load(DATA "/sound.json", graph, TARN_TRUST, NULL, &to, error);
    if (!status) status = tarn_switch_match(from, to, &region, &same, error);
    struct tarn_switch pair = {from, to, same};
    if (!status) status = instead(tarn_switch_verify(&pair, NULL, 0, error), TARN_REJECTED);
    tarn_plan_destroy(from);
    tarn_plan_destroy(to);
    tarn_region_finish(&region);
    return status;
}

static void a_switch_is_judged_or_refused_for_memory(void **state)
{
    (void)state;
    load(DATA "/sound.json");
    fail_each_allocation(refuse_a_switch, 10);
    finish();
}

static ptrdiff_t read_once(void *user, void *to, size_t room)
{
    struct tarn_reader *text = user;
    size_t size = text->size < room ? text->size : room;
    memcpy(to, text->bytes, size);
    text->bytes = (const char *)text->bytes + size;
    text->size -= size;
    return (ptrdiff_t)size;
}

/* An outline and a trace; a graph out of memory and out of a function. */
static enum tarn_status read_by_other_ways(struct tarn_error *error)
{
    struct tarn_plan_outline *outline = NULL;
    struct tarn_trace_entry *entries = NULL;
    struct tarn_graph *copies[2] = {NULL};
    struct tarn_reader text = *TARN_READER(.bytes = EMPTY_GRAPH, .size = sizeof EMPTY_GRAPH - 1);
    size_t count;
    enum tarn_status status = tarn_plan_outline_load(DATA "/sound.json", &outline, error);
    if (!status) status = tarn_trace_load(trace_path, &entries, &count, error);
    if (!status) status = tarn_graph_read(&text, NULL, &copies[0], error);
    if (!status)
        status =
            tarn_graph_read(TARN_READER(.read = read_once, .user = &text), NULL, &copies[1], error);
    tarn_plan_outline_destroy(outline);
    free(entries);
    for (int i = 0; i < 2; i++) tarn_graph_destroy(copies[i]);
    return status;
}

static void other_files_are_read_or_refused_for_memory(void **state)
{
    (void)state;
    struct tarn_error error;
    if (tarn_graph_load(TARN_SOURCE_DIR "/examples/graphs/twelve.csv", NULL, &graph, &error) ||
        tarn_plan_create(graph, TARN_PLAN_OPTIONS(.threads = 1), &plan, &error))
        fail_msg("%s", error.text);
    save_text(trace_path,
              "[{\"ph\":\"X\",\"ts\":0,\"dur\":1,\"args\":{\"op\":0,\"iteration\":0}}]");
    fail_each_allocation(read_the_rest, 10);
    fail_each_allocation(read_by_other_ways, 10);
    unlink(trace_path);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verdict_is_whole_or_refused_for_memory),
        cmocka_unit_test(an_incomplete_plan_is_that_or_refused_for_memory),
        cmocka_unit_test(a_switch_is_judged_or_refused_for_memory),
        cmocka_unit_test(spaces_are_read_or_refused_for_memory),
        cmocka_unit_test(other_files_are_read_or_refused_for_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
