/* Memory spaces: each has its own arena, bound, certificate and capacity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streams/plan/plan.h"
#include "tarn.h"

/* x (device) ─► copy ─► y (pinned) ─► work with scratch ─► z (device); w is a parameter, pinned. */
static struct tarn_graph *make_graph(uint64_t scratch_capacity, uint64_t pinned_capacity)
{
    struct tarn_builder *b = tarn_builder_create("spaces");
    tarn_stream s = tarn_builder_stream(b, "s");
    struct tarn_graph *graph;
    struct tarn_error error;
    tarn_space device = tarn_builder_space(b, &(struct tarn_space_info){.name = "device"});
    tarn_space pinned =
        tarn_builder_space(b, &(struct tarn_space_info){.name = "host",
                                                        .kind = TARN_SPACE_PINNED,
                                                        .alignment = 4096,
                                                        .capacity = pinned_capacity});
    tarn_space scratch =
        tarn_builder_space(b, &(struct tarn_space_info){.name = "chip",
                                                        .kind = TARN_SPACE_SCRATCH,
                                                        .alignment = 16,
                                                        .capacity = scratch_capacity});
    tarn_tensor x =
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 1000, .space = device});
    tarn_tensor y =
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 1000, .space = pinned});
    tarn_tensor z = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 1000});
    tarn_tensor w = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.size = 10, .kind = TARN_PARAMETER, .space = pinned});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(x)});
    tarn_builder_op(b, &(struct tarn_op_info){
                           .stream = s, .inputs = TARN_TENSORS(x), .outputs = TARN_TENSORS(y)});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s,
                                              .inputs = TARN_TENSORS(y, w),
                                              .outputs = TARN_TENSORS(z),
                                              .workspace = 40,
                                              .workspace_space = scratch});
    if (tarn_builder_finish(b, &graph, &error)) fail_msg("%s", error.text);
    return graph;
}

static void assert_spaces(const struct tarn_plan *plan)
{
    static const uint64_t footprints[] = {1024, 4096, 48}, persistent[] = {0, 4096, 0};
    struct tarn_plan_space_summary space;
    for (tarn_space s = 0; s < 3; s++) {
        assert_true(tarn_plan_space(plan, s, &space));
        assert_int_equal(space.footprint, footprints[s]);
        assert_int_equal(space.persistent, persistent[s]);
        assert_int_equal(space.bound, footprints[s]);
        assert_true(space.optimal && space.certificate.launched && space.method);
    }
    for (tarn_tensor t = 0; t < 4; t++) assert_int_equal(tarn_plan_offset(plan, t), 0);
    assert_int_equal(tarn_plan_workspace_offset(plan, 2), 0);
}

static void every_space_has_its_own_arena_bound_and_certificate(void **state)
{
    (void)state;
    char path[] = "/tmp/tarn-spaces-test-XXXXXX", graph_path[] = "/tmp/tarn-spaces-graph-XXXXXX";
    struct tarn_graph *graph = make_graph(48, 8192), *loaded;
    struct tarn_plan *plan, *again;
    struct tarn_plan_summary summary;
    struct tarn_space_info info;
    struct tarn_error error;
    close(mkstemp(path));
    close(mkstemp(graph_path));
    if (tarn_plan_create(graph, NULL, &plan, &error)) fail_msg("%s", error.text);
    assert_spaces(plan);
    tarn_plan_summarize(plan, &summary);
    assert_int_equal(summary.footprint, 1024 + 4096 + 48);
    assert_true(summary.optimal);
    assert_int_equal(tarn_graph_save(graph, graph_path, NULL), TARN_OK);
    if (tarn_graph_load(graph_path, &loaded, &error)) fail_msg("%s", error.text);
    assert_memory_equal(&loaded->hash, &graph->hash, sizeof graph->hash);
    assert_true(tarn_graph_space(loaded, 1, &info));
    assert_string_equal(info.name, "host");
    assert_int_equal(info.kind, TARN_SPACE_PINNED);
    assert_int_equal(info.capacity, 8192);
    assert_int_equal(tarn_plan_save(plan, path, NULL), TARN_OK);
    if (tarn_plan_load(path, loaded, TARN_VERIFY, &again, &error)) fail_msg("%s", error.text);
    assert_spaces(again);
    unlink(path);
    unlink(graph_path);
    tarn_plan_destroy(plan);
    tarn_plan_destroy(again);
    tarn_graph_destroy(loaded);
    tarn_graph_destroy(graph);
}

static void a_capacity_that_is_too_small_is_refused_by_the_name_of_its_space(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph(32, 0);
    struct tarn_plan *plan;
    struct tarn_error error;
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, &error), TARN_DOES_NOT_FIT);
    assert_non_null(strstr(error.text, "memory space 2 \"chip\""));
    tarn_graph_destroy(graph);
    graph = make_graph(0, 4096 + 2048); /* arena and persistent part together */
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, &error), TARN_DOES_NOT_FIT);
    assert_non_null(strstr(error.text, "memory space 1 \"host\""));
    tarn_graph_destroy(graph);
}

static void refuses_a_space_with_a_false_bound_or_beyond_its_capacity(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph(64, 0);
    struct tarn_plan *plan;
    struct tarn_error error;
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, NULL), TARN_OK);
    plan->spaces[2].footprint += 16;
    plan->footprint += 16;
    assert_int_equal(tarn_plan_verify(plan, graph, NULL, &error), TARN_OK);
    plan->spaces[2].bound += 16;
    assert_int_equal(tarn_plan_verify(plan, graph, NULL, &error), TARN_REJECTED);
    assert_non_null(strstr(error.text, "its certificate proves 48"));
    plan->spaces[2].bound -= 16;
    plan->spaces[2].footprint += 16;
    plan->footprint += 16;
    assert_int_equal(tarn_plan_verify(plan, graph, NULL, &error), TARN_REJECTED);
    assert_non_null(strstr(error.text, "memory space 2 needs more than its capacity"));
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void sessions_say_that_they_have_one_space(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph(0, 0);
    struct tarn_plan *plan;
    struct tarn_session *session;
    struct tarn_error error;
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, NULL), TARN_OK);
    assert_int_equal(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error),
                     TARN_USAGE);
    assert_non_null(strstr(error.text, "3 memory spaces"));
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_space_has_its_own_arena_bound_and_certificate),
        cmocka_unit_test(a_capacity_that_is_too_small_is_refused_by_the_name_of_its_space),
        cmocka_unit_test(refuses_a_space_with_a_false_bound_or_beyond_its_capacity),
        cmocka_unit_test(sessions_say_that_they_have_one_space),
    };
    return cmocka_run_group_tests_name("spaces", tests, NULL, NULL);
}
