/* What `tarn info` says about a graph, counted by hand and by a naive count on random graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "streams/base/region.h"
#include "streams/order/antichain.h"
#include "support/random_graph.h"

static struct tarn_graph_summary summary_of(const struct tarn_graph *graph)
{
    struct tarn_graph_summary summary;
    struct tarn_error error;
    if (tarn_graph_summarize(graph, &summary, &error) != TARN_OK) fail_msg("%s", error.text);
    return summary;
}

/* Two streams: load (a) · view · all_reduce in place on another stream · use, with a workspace. */
static struct tarn_graph *hand_made_graph(void)
{
    struct tarn_builder *b = tarn_builder_create("hand made");
    tarn_stream compute = tarn_builder_stream(b, "compute"), comm = tarn_builder_stream(b, "comm");
    tarn_tensor w = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "w", .size = 1000, .kind = TARN_PARAMETER});
    tarn_tensor x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = 30});
    tarn_tensor y = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "y", .size = 5});
    tarn_tensor loss = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "loss", .size = 4, .kind = TARN_OUTPUT});
    tarn_tensor flat = tarn_builder_alias(b, x, "flat"), sum = tarn_builder_alias(b, x, "sum");
    tarn_builder_op(b, &(struct tarn_op_info){.stream = compute,
                                              .inputs = TARN_TENSORS(w),
                                              .outputs = TARN_TENSORS(x, y),
                                              .cost = 7});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = compute,
                                              .inputs = TARN_TENSORS(x),
                                              .outputs = TARN_TENSORS(flat),
                                              .view = true});
    tarn_op reduce = tarn_builder_op(b, &(struct tarn_op_info){.stream = comm,
                                                               .inputs = TARN_TENSORS(flat),
                                                               .outputs = TARN_TENSORS(sum),
                                                               .cost = 20});
    tarn_op use = tarn_builder_op(b, &(struct tarn_op_info){.stream = compute,
                                                            .inputs = TARN_TENSORS(sum),
                                                            .outputs = TARN_TENSORS(loss),
                                                            .workspace = 11,
                                                            .cost = 3});
    tarn_builder_control(b, use, reduce); /* said twice, counted once */
    tarn_builder_group(b, TARN_TENSORS(x, y));
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_builder_finish(b, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

static void counts_what_a_hand_made_graph_has(void **state)
{
    (void)state;
    struct tarn_graph *graph = hand_made_graph();
    struct tarn_graph_summary summary = summary_of(graph);
    assert_int_equal(summary.streams, 2);
    assert_int_equal(summary.ops, 4);
    assert_int_equal(summary.views, 1);
    assert_int_equal(summary.tensors, 6);
    assert_int_equal(summary.storages, 4); /* x, y, loss, workspace */
    assert_int_equal(summary.workspaces, 1);
    assert_int_equal(summary.groups, 1);
    assert_int_equal(summary.arcs, 2);
    assert_int_equal(summary.arcs_kept, 2);
    assert_int_equal(summary.sum, 30 + 5 + 4 + 11);
    assert_int_equal(summary.persistent, 1000);
    assert_int_equal(summary.serial_peak, 30 + 4 + 11); /* y is gone when `use` runs */
    assert_int_equal(summary.cost, 30);
    tarn_graph_destroy(graph);
}

static void a_space_is_told_of_alone_and_clears_the_error(void **state)
{
    (void)state;
    struct tarn_graph *graph = hand_made_graph();
    struct tarn_graph_summary whole = summary_of(graph);
    struct tarn_graph_space_summary space;
    struct tarn_error error;
    assert_int_equal(tarn_graph_summarize_space(graph, 1, &space, &error), TARN_USAGE);
    assert_true(error.text[0] != '\0');
    assert_int_equal(tarn_graph_summarize_space(graph, 0, &space, &error), TARN_OK);
    assert_int_equal(error.text[0], '\0');
    assert_int_equal(space.storages, whole.storages);
    assert_int_equal(space.sum, whole.sum);
    assert_int_equal(space.persistent, whole.persistent);
    tarn_graph_destroy(graph);
}

static void arcs_that_others_imply_are_not_kept(void **state)
{
    (void)state;
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_graph_load(TARN_SOURCE_DIR "/examples/graphs/figure2.json", NULL, &graph, &error) !=
        TARN_OK)
        fail_msg("%s", error.text);
    struct tarn_graph_summary summary = summary_of(graph);
    assert_int_equal(summary.arcs, 6);      /* 1-2, 1-7, 3-6, 3-7, 5-8, 6-8 */
    assert_int_equal(summary.arcs_kept, 4); /* without 1-7, 5-8 */
    tarn_graph_destroy(graph);
}

/* Every count that the public API lets one redo. */
static void assert_counts(const struct tarn_graph *graph)
{
    struct tarn_graph_summary summary = summary_of(graph);
    struct tarn_op_info op;
    struct tarn_tensor_info tensor;
    struct tarn_graph_summary naive = {0};
    for (uint32_t t = 0; tarn_graph_tensor(graph, t, &tensor); t++) {
        bool root = tarn_graph_root(graph, t) == t;
        bool persistent = tensor.kind >= TARN_PARAMETER;
        naive.tensors++;
        naive.storages += root && !persistent;
        naive.sum += root && !persistent ? tensor.size : 0;
        naive.persistent += root && persistent ? tensor.size : 0;
    }
    for (uint32_t v = 0; tarn_graph_op(graph, v, &op); v++) {
        naive.ops++;
        naive.views += op.view;
        naive.workspaces += op.workspace > 0;
        naive.storages += op.workspace > 0;
        naive.sum += op.workspace;
        naive.cost += op.cost;
    }
    assert_int_equal(summary.ops, naive.ops);
    assert_int_equal(summary.views, naive.views);
    assert_int_equal(summary.tensors, naive.tensors);
    assert_int_equal(summary.storages, naive.storages);
    assert_int_equal(summary.workspaces, naive.workspaces);
    assert_int_equal(summary.sum, naive.sum);
    assert_int_equal(summary.persistent, naive.persistent);
    assert_int_equal(summary.cost, naive.cost);
    assert_true(summary.arcs_kept <= summary.arcs);
    assert_true(summary.serial_peak <= summary.sum);
}

static void counts_what_random_graphs_have(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 60);
        options.early_share = seed % 2 * 60;
        struct tarn_graph *graph = random_graph(&options);
        assert_counts(graph);
        tarn_graph_destroy(graph);
    }
}

/* ---- The bound at alignment 1 ---- */

static uint64_t bound_of(const struct tarn_graph *graph)
{
    uint64_t bound = UINT64_MAX;
    struct tarn_error error;
    if (tarn_graph_bound(graph, &bound, &error) != TARN_OK) fail_msg("%s", error.text);
    return bound;
}

static uint64_t antichain_of(const struct tarn_graph *graph)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_clocks clocks;
    struct tarn_reuse reuse;
    struct tarn_antichain antichain;
    uint64_t *size = calloc((size_t)graph->planned_count + 1, sizeof *size);
    for (uint32_t a = 0; a < graph->planned_count; a++) size[a] = graph->storages[a].size;
    assert_int_equal(tarn_clocks_init(&clocks, &region, graph), TARN_OK);
    assert_int_equal(tarn_reuse_init(&reuse, &region, &clocks, graph), TARN_OK);
    assert_int_equal(tarn_antichain_init(&antichain, &region, &reuse, graph, size), TARN_OK);
    uint64_t bound = antichain.bound;
    tarn_region_finish(&region);
    free(size);
    return bound;
}

static void the_bound_is_the_heaviest_antichain_or_more_with_groups(void **state)
{
    (void)state;
    struct tarn_graph *graph = hand_made_graph();
    assert_int_equal(bound_of(graph), 30 + 4 + 11);
    tarn_graph_destroy(graph);
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 60);
        graph = random_graph(&options);
        uint64_t bound = bound_of(graph), antichain = antichain_of(graph);
        assert_true(graph->groups_count > 0 ? bound >= antichain : bound == antichain);
        tarn_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_a_hand_made_graph_has),
        cmocka_unit_test(a_space_is_told_of_alone_and_clears_the_error),
        cmocka_unit_test(arcs_that_others_imply_are_not_kept),
        cmocka_unit_test(counts_what_random_graphs_have),
        cmocka_unit_test(the_bound_is_the_heaviest_antichain_or_more_with_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
