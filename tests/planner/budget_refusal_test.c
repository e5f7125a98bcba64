/* No budget is refused that something simpler keeps: another method of the program, or an op or two
 * that run again, wherever they are. The second is tried by hand: on graphs of any shape, without
 * passes, each graph in which an op runs again before each later place, and pairs of these, is
 * planned as it stands. What is told of a refusal is the least of all, larger budgets are kept,
 * too, and cost no more than a little in time. TARN_CAMPAIGN=M: for M minutes on ever new graphs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/budget_plan.h"
#include "support/campaign.h"
#include "support/random_graph.h"
#include "support/random_training.h"
#include "tarn/transform.h"

enum { OPS_MAX = 12, INPUTS_MAX = 3 };

static void require(enum tarn_status status, const struct tarn_error *error)
{
    if (status != TARN_OK) fail_msg("%s", error->text);
}

/* ---- Graphs without passes ---- */

/* Op i makes value i of what earlier ones have made. */
struct value {
    uint32_t inputs[INPUTS_MAX], inputs_count, stream;
    uint64_t size, workspace, cost;
    bool is_output;
};

struct net {
    struct value values[OPS_MAX];
    uint32_t count, streams;
};

/* The last op reads the first value again, so something is idle. */
static struct net draw_net(uint64_t seed)
{
    struct random_source source = {seed * 77 + 5};
    struct net net = {.count = 5 + random_below(&source, OPS_MAX - 5),
                      .streams = 1 + (uint32_t)(seed % 3 == 2)};
    for (uint32_t i = 0; i < net.count; i++) {
        struct value *value = &net.values[i];
        value->size = 16 * (1 + random_below(&source, 40));
        value->workspace = random_percent(&source, 30) ? 16 * random_below(&source, 20) : 0;
        value->cost = 100 + random_below(&source, 1000);
        value->stream = random_below(&source, net.streams);
        for (uint32_t k = 0; k < INPUTS_MAX && i > 0; k++) {
            uint32_t read = k == 0 ? i - 1 : random_below(&source, i);
            bool known = k > 0 && (read == value->inputs[0] || !random_percent(&source, 45));
            if (k == 2 && value->inputs_count == 2) known = known || read == value->inputs[1];
            if (!known) value->inputs[value->inputs_count++] = read;
        }
    }
    net.values[net.count - 1].is_output = true;
    return net;
}

/* An op that runs again just before the op of a place; who reads its value from there on reads the
 * copy. */
struct again {
    uint32_t op, before;
};

/* An op runs as written, or again. */
static void add_op(struct tarn_builder *b, const struct net *net, uint32_t i, tarn_tensor input,
                   tarn_tensor *named, tarn_tensor tensor)
{
    const struct value *value = &net->values[i];
    tarn_tensor reads[INPUTS_MAX];
    for (uint32_t k = 0; k < value->inputs_count; k++) reads[k] = named[value->inputs[k]];
    if (value->inputs_count == 0) reads[0] = input;
    named[i] = tensor;
    tarn_builder_op(
        b, &(struct tarn_op_info){.kind = "work",
                                  .stream = value->stream,
                                  .inputs = {reads, value->inputs_count ? value->inputs_count : 1},
                                  .outputs = TARN_TENSORS(tensor),
                                  .workspace = value->workspace,
                                  .cost = value->cost});
}

static struct tarn_graph *build(const struct net *net, const struct again *again, uint32_t count)
{
    struct tarn_builder *b = tarn_builder_create("net");
    struct tarn_graph *graph;
    struct tarn_error error;
    tarn_tensor named[OPS_MAX];
    for (uint32_t s = 0; s < net->streams; s++) tarn_builder_stream(b, NULL);
    tarn_tensor input =
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 64, .kind = TARN_INPUT});
    for (uint32_t i = 0; i < net->count; i++) {
        for (uint32_t k = 0; k < count; k++) {
            uint32_t v = again[k].op;
            if (again[k].before != i) continue;
            add_op(b, net, v, input, named,
                   tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = net->values[v].size}));
        }
        const struct value *value = &net->values[i];
        const struct tarn_tensor_info info = {
            .size = value->size, .kind = value->is_output ? TARN_OUTPUT : TARN_INTERMEDIATE};
        add_op(b, net, i, input, named, tarn_builder_tensor(b, &info));
    }
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

/* The least footprint of all graphs in which up to two ops run again. */
static uint64_t least_by_hand(const struct net *net, uint32_t pairs_of)
{
    struct again list[OPS_MAX * OPS_MAX];
    uint32_t count = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t v = 0; v + 2 < net->count; v++)
        for (uint32_t p = v + 2; p < net->count; p++) list[count++] = (struct again){v, p};
    for (uint32_t i = 0; i <= count; i++) {
        for (uint32_t j = i; j <= (i < pairs_of ? count : i); j++) {
            struct again both[2] = {list[i < count ? i : 0], list[j < count ? j : 0]};
            uint32_t ops = i == count ? 0 : j == i || j == count ? 1 : 2;
            struct tarn_graph *graph = build(net, both, ops);
            uint64_t footprint = budget_footprint_of(graph);
            if (footprint < least) least = footprint;
            tarn_graph_destroy(graph);
        }
    }
    return least;
}

static enum tarn_status plan_within(struct tarn_graph *graph, uint64_t budget,
                                    enum tarn_budget_method method, bool reorder,
                                    struct tarn_budget_report *report)
{
    struct tarn_plan *plan = NULL;
    struct tarn_error error;
    const struct tarn_reorder_options *order = TARN_REORDER_OPTIONS(.effort = 4);
    enum tarn_status status = tarn_plan_create(
        graph,
        TARN_PLAN_OPTIONS(.alignment = BUDGET_ALIGNMENT, .threads = 1,
                          .reorder = reorder ? order : NULL,
                          .budget = TARN_BUDGET_OPTIONS(.budget = budget, .method = method,
                                                        .effort = 1000, .report = report)),
        &plan, &error);
    if (status != TARN_OK && status != TARN_DOES_NOT_FIT) fail_msg("%s", error.text);
    tarn_plan_destroy(plan);
    return status;
}

static void what_is_kept_by_running_an_op_again_is_kept(void **state)
{
    struct campaign campaign = campaign_begin("budgets kept by hand", DRAWS(40), 1);
    uint32_t saved = 0;
    (void)state;
    for (; campaign_goes_on(&campaign); campaign.next++, campaign.runs++) {
        struct net net = draw_net(campaign.next);
        struct tarn_graph *graph = build(&net, NULL, 0);
        struct tarn_budget_report report;
        uint64_t least = least_by_hand(&net, campaign.next % 4 == 0 ? 6 : 0);
        saved += least < budget_footprint_of(graph);
        if (plan_within(graph, least, TARN_BUDGET_SEARCH, campaign.next % 5 == 1, &report))
            fail_msg("seed %llu: %llu bytes are kept by hand, the least is told to be %llu",
                     (unsigned long long)campaign.next, (unsigned long long)least,
                     (unsigned long long)report.footprint);
        tarn_graph_destroy(graph);
    }
    assert_true(saved > campaign.runs / 4);
}

/* ---- Other methods ---- */

static struct tarn_graph *draw_training(uint64_t seed)
{
    return random_training(
        &(struct random_training_options){.seed = seed,
                                          .ops = 5 + (uint32_t)(seed % 9),
                                          .branch_share = 30,
                                          .inplace_share = seed % 7 == 0 ? 30 : 0,
                                          .weight_share = 60,
                                          .early_share = seed % 3 == 1 ? 30 : 0,
                                          .implementation_share = seed % 2 == 1 ? 40 : 0,
                                          .streams = 1 + (uint32_t)(seed % 3),
                                          .view_share = 20,
                                          .random_share = 20,
                                          .control_share = 20,
                                          .capacity = seed % 8 == 3 ? 1 << 20 : 0,
                                          .bucket = seed % 5 == 4});
}

static void what_a_simpler_method_keeps_is_kept(void **state)
{
    struct campaign campaign = campaign_begin("budgets of other methods", DRAWS(24), 7);
    (void)state;
    for (; campaign_goes_on(&campaign); campaign.next++, campaign.runs++) {
        struct tarn_graph *graph = draw_training(campaign.next);
        struct tarn_budget_report report, told;
        uint64_t least = UINT64_MAX;
        for (int method = TARN_BUDGET_KEEP; method <= TARN_BUDGET_GIST; method++) {
            if (plan_within(graph, 1, (enum tarn_budget_method)method, false, &report) == TARN_OK)
                least = 1;
            else if (report.footprint < least)
                least = report.footprint;
        }
        if (plan_within(graph, least, TARN_BUDGET_SEARCH, false, &told))
            fail_msg("seed %llu: a simpler method keeps %llu bytes, the least is told to be %llu",
                     (unsigned long long)campaign.next, (unsigned long long)least,
                     (unsigned long long)told.footprint);
        tarn_graph_destroy(graph);
    }
}

/* A list that has the updates of another stream behind everything: they run beside the rest, and
 * so less is there at once than the list says. */
static void streams_that_end_lives_are_not_taken_for_late(void **state)
{
    struct tarn_builder *b = tarn_builder_create("updates");
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_budget_report report;
    tarn_tensor gradients[16], weights[16];
    (void)state;
    tarn_builder_stream(b, "compute");
    tarn_builder_stream(b, "update");
    for (uint32_t i = 0; i < 16; i++) {
        weights[i] =
            tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 64, .kind = TARN_PARAMETER});
        gradients[i] =
            tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 4096, .kind = TARN_GRADIENT});
        tarn_builder_op(b, &(struct tarn_op_info){.kind = "linear_backward",
                                                  .inputs = TARN_TENSORS(weights[i]),
                                                  .outputs = TARN_TENSORS(gradients[i]),
                                                  .recomputable = TARN_NOT_RECOMPUTABLE,
                                                  .cost = 100000});
    }
    for (uint32_t i = 0; i < 16; i++) {
        tarn_tensor next = tarn_builder_alias(b, weights[i], NULL);
        tarn_builder_op(b, &(struct tarn_op_info){.kind = "sgd",
                                                  .stream = 1,
                                                  .inputs = TARN_TENSORS(weights[i], gradients[i]),
                                                  .outputs = TARN_TENSORS(next),
                                                  .cost = 50000});
    }
    require(tarn_builder_finish(b, &graph, &error), &error);
    assert_true(budget_footprint_of(graph) == 16 * 4096);
    assert_int_equal(plan_within(graph, 4 * 4096, TARN_BUDGET_SEARCH, false, &report), TARN_OK);
    assert_true(report.time_ns <= report.time_before_ns + report.time_before_ns / 10);
    tarn_graph_destroy(graph);
}

/* ---- Larger budgets ---- */

/* What is kept is kept with more, and what fits as it is stays as it is. */
static void a_larger_budget_is_kept_as_well(void **state)
{
    (void)state;
    for (uint64_t seed = 3; seed < 3 + DRAWS(12); seed++) {
        struct net net = draw_net(seed);
        struct tarn_graph *graph = seed % 2 ? draw_training(seed) : build(&net, NULL, 0);
        struct tarn_budget_report report;
        uint64_t whole = budget_footprint_of(graph), least;
        if (plan_within(graph, 1, TARN_BUDGET_SEARCH, false, &report) == TARN_OK) whole = 0;
        least = report.footprint;
        for (uint64_t part = 0; whole > least && part <= 8; part++) {
            uint64_t budget = least + (whole - least) / 8 * part;
            if (plan_within(graph, budget, TARN_BUDGET_SEARCH, false, &report))
                fail_msg(
                    "seed %llu: %llu bytes are refused, the least is told to be %llu, then %llu",
                    (unsigned long long)seed, (unsigned long long)budget, (unsigned long long)least,
                    (unsigned long long)report.footprint);
        }
        if (whole > 0) {
            assert_int_equal(plan_within(graph, whole, TARN_BUDGET_SEARCH, false, &report),
                             TARN_OK);
            if (seed % 2 == 0) assert_int_equal(report.recomputed, 0);
            assert_true(report.time_ns <= report.time_before_ns);
        }
        tarn_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_by_running_an_op_again_is_kept),
        cmocka_unit_test(what_a_simpler_method_keeps_is_kept),
        cmocka_unit_test(streams_that_end_lives_are_not_taken_for_late),
        cmocka_unit_test(a_larger_budget_is_kept_as_well),
    };
    return cmocka_run_group_tests_name("budget_refusal", tests, NULL, NULL);
}
