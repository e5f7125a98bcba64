/* Workspaces that end before the outputs of their op begin: what may share bytes then, and what
 * still may not. */
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

/* x (100 bytes) ─► op, workspace 300 ─► y (200) ─► end; the op writes x in place where asked. */
struct chain {
    struct tarn_graph *graph;
    tarn_tensor x, y;
    tarn_op op;
};

static struct chain make_chain(bool workspace_first, bool in_place)
{
    struct chain chain;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("chain");
    tarn_stream s = tarn_builder_stream(b, "s");
    chain.x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "x", .size = 100});
    chain.y = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "y", .size = 200});
    tarn_tensor again = in_place ? tarn_builder_alias(b, chain.x, "x again") : chain.y;
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(chain.x)});
    uint32_t outputs[] = {chain.y, again};
    chain.op = tarn_builder_op(b, &(struct tarn_op_info){.stream = s,
                                                         .inputs = TARN_TENSORS(chain.x),
                                                         .outputs = {outputs, 1u + in_place},
                                                         .workspace = 300,
                                                         .workspace_first = workspace_first});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .inputs = TARN_TENSORS(chain.y)});
    if (tarn_builder_finish(b, &chain.graph, &error)) fail_msg("%s", error.text);
    return chain;
}

static struct tarn_plan *plan_of(struct tarn_graph *graph)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 1), &plan, &error))
        fail_msg("%s", error.text);
    return plan;
}

static void an_op_takes_the_larger_of_workspace_and_outputs_where_it_says_so(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct chain chain = make_chain(first, false);
        struct tarn_plan *plan = plan_of(chain.graph);
        struct tarn_plan_summary summary;
        struct tarn_graph_summary counts;
        struct tarn_simulation *simulation;
        uint64_t expected = first ? 100 + 300 : 100 + 300 + 200, bound;
        tarn_plan_summarize(plan, &summary);
        assert_int_equal(summary.footprint, expected);
        assert_true(summary.optimal);
        assert_int_equal(tarn_graph_summarize(chain.graph, &counts, NULL), TARN_OK);
        assert_int_equal(counts.serial_peak, expected);
        assert_int_equal(tarn_graph_bound(chain.graph, &bound, NULL), TARN_OK);
        assert_int_equal(bound, expected);
        assert_int_equal(tarn_graph_simulate(chain.graph, 1, 0, &simulation, NULL), TARN_OK);
        assert_int_equal(simulation->peak, expected);
        assert_int_equal(simulation->worst, expected);
        assert_int_equal(simulation->worst_bound, expected);
        tarn_simulation_destroy(simulation);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(chain.graph);
    }
}

static void the_cut_of_a_certificate_may_go_through_such_an_op(void **state)
{
    (void)state;
    struct chain chain = make_chain(true, false);
    struct tarn_plan *plan = plan_of(chain.graph);
    struct tarn_certificate certificate;
    assert_true(tarn_plan_certificate(plan, &certificate));
    assert_int_equal(certificate.inside.count, 1);
    assert_int_equal(certificate.inside.ids[0], 0);
    assert_int_equal(certificate.launched[0], chain.op);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(chain.graph);
}

/* At one place with another storage. */
static enum tarn_status verdict_with_workspace_on(struct chain chain, tarn_tensor tensor,
                                                  enum tarn_violation_kind *kind)
{
    struct tarn_plan *plan = plan_of(chain.graph);
    struct tarn_verdict *verdict;
    plan->footprint += 1000;
    plan->claim.bound = 0;
    plan->workspaces[0].offset = plan->footprint - 300;
    assert_int_equal(tarn_plan_verify(plan, chain.graph, NULL, NULL, NULL), TARN_OK);
    for (uint32_t i = 0; i < plan->storages_count; i++)
        if (plan->storages[i].id == tensor) plan->workspaces[0].offset = plan->storages[i].offset;
    enum tarn_status status = tarn_plan_verify(plan, chain.graph, NULL, &verdict, NULL);
    if (status != TARN_OK) *kind = tarn_verdict_get(verdict, 0)->kind;
    tarn_verdict_destroy(verdict);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(chain.graph);
    return status;
}

static void refuses_a_workspace_over_all_that_the_op_reads_or_writes_in_place(void **state)
{
    (void)state;
    enum tarn_violation_kind kind;
    struct chain chain = make_chain(false, false);
    assert_int_equal(verdict_with_workspace_on(chain, chain.y, &kind), TARN_REJECTED);
    assert_int_equal(kind, TARN_UNORDERED_OVERLAP);
    chain = make_chain(true, false);
    assert_int_equal(verdict_with_workspace_on(chain, chain.x, &kind), TARN_REJECTED);
    assert_int_equal(kind, TARN_UNORDERED_OVERLAP);
    chain = make_chain(true, true);
    assert_int_equal(verdict_with_workspace_on(chain, chain.x, &kind), TARN_REJECTED);
    assert_int_equal(kind, TARN_UNORDERED_OVERLAP);
}

static void refuses_a_plan_that_says_it_of_an_op_of_which_the_source_does_not(void **state)
{
    (void)state;
    struct chain source = make_chain(false, false), other = make_chain(true, false);
    struct tarn_plan *plan = plan_of(other.graph);
    struct tarn_error error;
    plan->source_hash = source.graph->hash;
    plan->transformed = true;
    assert_int_equal(tarn_plan_verify(plan, source.graph, NULL, NULL, &error), TARN_REJECTED);
    assert_non_null(strstr(error.text, "has not the workspace of its origin"));
    tarn_plan_destroy(plan);
    tarn_graph_destroy(source.graph);
    tarn_graph_destroy(other.graph);
}

static void files_keep_it_and_graphs_without_it_keep_their_hash(void **state)
{
    (void)state;
    struct chain plain = make_chain(false, false), chain = make_chain(true, false);
    char graph_path[] = "/tmp/tarn-workspace-test-XXXXXX",
         plan_path[] = "/tmp/tarn-workspace-XXXXXX";
    close(mkstemp(graph_path));
    close(mkstemp(plan_path));
    struct tarn_graph *loaded;
    struct tarn_plan *plan = plan_of(chain.graph), *again;
    struct tarn_op_info info;
    struct tarn_certificate certificate;
    assert_int_equal(tarn_graph_save(chain.graph, graph_path, NULL), TARN_OK);
    assert_int_equal(tarn_graph_load(graph_path, NULL, &loaded, NULL), TARN_OK);
    assert_memory_equal(&loaded->hash, &chain.graph->hash, sizeof loaded->hash);
    assert_memory_not_equal(&plain.graph->hash, &chain.graph->hash, sizeof loaded->hash);
    assert_true(tarn_graph_op(loaded, chain.op, &info) && info.workspace_first);
    assert_int_equal(tarn_plan_save(plan, plan_path, NULL), TARN_OK);
    assert_int_equal(tarn_plan_load(plan_path, loaded, TARN_VERIFY, NULL, &again, NULL), TARN_OK);
    assert_true(tarn_plan_certificate(again, &certificate));
    assert_int_equal(certificate.inside.count, 1);
    unlink(graph_path);
    unlink(plan_path);
    tarn_plan_destroy(plan);
    tarn_plan_destroy(again);
    tarn_graph_destroy(loaded);
    tarn_graph_destroy(plain.graph);
    tarn_graph_destroy(chain.graph);
}

static void an_op_without_a_workspace_is_the_same_op_with_it(void **state)
{
    (void)state;
    struct tarn_hash hashes[2];
    for (int first = 0; first < 2; first++) {
        struct tarn_graph *graph;
        struct tarn_builder *b = tarn_builder_create("none");
        tarn_builder_op(b, &(struct tarn_op_info){.stream = tarn_builder_stream(b, NULL),
                                                  .workspace_first = first});
        assert_int_equal(tarn_builder_finish(b, &graph, NULL), TARN_OK);
        hashes[first] = graph->hash;
        tarn_graph_destroy(graph);
    }
    assert_memory_equal(&hashes[0], &hashes[1], sizeof hashes[0]);
}

#if WITH_PAPERS
static void all_methods_give_one_set_of_unsafe_pairs(void **state)
{
    (void)state;
    static const char *const methods[] = {"clocks", "ancestors", "ancestors-opt", "stream-graph"};
    for (int first = 0; first < 2; first++) {
        struct chain chain = make_chain(first, false);
        for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
            struct tarn_pairs pairs;
            assert_int_equal(tarn_graph_pairs(chain.graph, methods[i], &pairs, NULL), TARN_OK);
            assert_int_equal(pairs.unsafe, first ? 2 : 3);
        }
        tarn_graph_destroy(chain.graph);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_op_takes_the_larger_of_workspace_and_outputs_where_it_says_so),
        cmocka_unit_test(the_cut_of_a_certificate_may_go_through_such_an_op),
        cmocka_unit_test(refuses_a_workspace_over_all_that_the_op_reads_or_writes_in_place),
        cmocka_unit_test(refuses_a_plan_that_says_it_of_an_op_of_which_the_source_does_not),
        cmocka_unit_test(files_keep_it_and_graphs_without_it_keep_their_hash),
        cmocka_unit_test(an_op_without_a_workspace_is_the_same_op_with_it),
#if WITH_PAPERS
        cmocka_unit_test(all_methods_give_one_set_of_unsafe_pairs),
#endif
    };
    return cmocka_run_group_tests_name("workspace", tests, NULL, NULL);
}
