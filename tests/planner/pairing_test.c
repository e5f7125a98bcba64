/* Pairing of forward and backward ops: on traced steps against what only the right forward op can
 * have written or read, kind by kind, and on small graphs for what decides between several. More
 * traced steps: TARN_GRAPHS names a folder of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/transform/implementations/pairing.h"
#include "support/graph_files.h"
#include "support/training_graph.h"
#include "tarn.h"

static struct tarn_pairing pair(struct tarn_region *region, const struct tarn_graph *graph)
{
    struct tarn_pairing pairing;
    assert_int_equal(tarn_pairing_init(&pairing, region, graph), TARN_OK);
    assert_true(tarn_pairing_is_valid(&pairing, graph));
    return pairing;
}

/* ---- Traced steps ---- */

/* What a tensor shows, found by walking back from it. */
static uint32_t behind_views(const struct tarn_graph *graph, uint32_t t)
{
    for (;;) {
        uint32_t producer = graph->tensors[t].producer;
        if (producer == TARN_NONE) return t;
        const struct tarn_graph_op *op = &graph->ops[producer];
        if (!op->view && strcmp(op->kind, "aten.clone") != 0) return t;
        t = op->inputs[0];
    }
}

/* The only op of that kind whose first inputs show `first` and, unless TARN_NONE, `second`. */
static uint32_t only_reader(const struct tarn_graph *graph, const char *kind, uint32_t first,
                            uint32_t second)
{
    uint32_t found = TARN_NONE;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        if (strcmp(op->kind, kind) != 0) continue;
        if (behind_views(graph, op->inputs[0]) != behind_views(graph, first)) continue;
        if (second != TARN_NONE &&
            behind_views(graph, op->inputs[1]) != behind_views(graph, second))
            continue;
        assert_int_equal(found, TARN_NONE);
        found = v;
    }
    assert_int_not_equal(found, TARN_NONE);
    return found;
}

/* Which of the inputs of a kind of backward op only its forward op, of that other kind, writes. */
static const struct {
    const char *kind, *forward;
    uint32_t input;
} written[] = {
    {"aten.native_batch_norm_backward", "aten.native_batch_norm", 5}, /* the saved mean */
    {"aten.native_layer_norm_backward", "aten.native_layer_norm", 2},
    {"aten.threshold_backward", "aten.relu_", 1},
    {"aten.threshold_backward", "aten.relu", 1},
    {"aten.max_pool2d_with_indices_backward", "aten.max_pool2d_with_indices", 2},
    {"aten.native_dropout_backward", "aten.native_dropout", 1},
    {"aten._softmax_backward_data", "aten._softmax", 1},
    {"aten._log_softmax_backward_data", "aten._log_softmax", 1},
    {"aten.tanh_backward", "aten.tanh", 1},
    {"aten.nll_loss_backward", "aten.nll_loss_forward", 3}, /* the total weight */
    {"aten.nll_loss2d_backward", "aten.nll_loss2d_forward", 3},
};

/* The same for those that share only what the forward op has read. */
static const struct {
    const char *kind, *forward;
    uint32_t first, second; /* inputs of the backward op */
} read[] = {
    {"aten.convolution_backward", "aten.convolution", 1, 2},
    {"aten.gelu_backward", "aten.gelu", 1, TARN_NONE},
    {"aten.hardtanh_backward", "aten.hardtanh_", 1, TARN_NONE},
    {"aten._adaptive_avg_pool2d_backward", "aten._adaptive_avg_pool2d", 1, TARN_NONE},
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* The forward op by those tables; TARN_NONE: they do not know. */
static uint32_t expected_forward(const struct tarn_graph *graph, const struct tarn_graph_op *op)
{
    for (size_t i = 0; i < COUNT_OF(written); i++) {
        if (strcmp(op->kind, written[i].kind) != 0) continue;
        uint32_t t = behind_views(graph, op->inputs[written[i].input]);
        uint32_t producer = graph->tensors[t].producer;
        if (producer != TARN_NONE && strcmp(graph->ops[producer].kind, written[i].forward) == 0)
            return producer;
    }
    for (size_t i = 0; i < COUNT_OF(read); i++) {
        if (strcmp(op->kind, read[i].kind) != 0) continue;
        uint32_t second = read[i].second == TARN_NONE ? TARN_NONE : op->inputs[read[i].second];
        return only_reader(graph, read[i].forward, op->inputs[read[i].first], second);
    }
    return TARN_NONE;
}

/* Those two read nothing but the gradient. */
static bool reads_gradient_only(const struct tarn_graph_op *op)
{
    return strcmp(op->kind, "aten.select_backward") == 0 ||
           strcmp(op->kind, "aten.slice_backward") == 0;
}

static unsigned check_graph(const struct tarn_graph *graph)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_pairing pairing = pair(&region, graph);
    unsigned checked = 0;
    bool *taken = calloc(graph->ops_count, sizeof *taken);
    assert_non_null(taken);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        uint32_t found = pairing.forward[v];
        if (!strstr(op->kind, "backward") || reads_gradient_only(op)) {
            assert_int_equal(found, TARN_NONE);
            continue;
        }
        assert_int_not_equal(found, TARN_NONE);
        assert_false(taken[found]);
        taken[found] = true;
        if (strcmp(op->kind, "aten.embedding_dense_backward") == 0) {
            assert_string_equal(graph->ops[found].kind, "aten.embedding");
        } else {
            assert_int_equal(found, expected_forward(graph, op));
        }
        checked++;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        assert_int_equal(pairing.value[t], behind_views(graph, t));
    free(taken);
    tarn_region_finish(&region);
    return checked;
}

static uint64_t check_file(const char *path)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    if (tarn_graph_load(path, NULL, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    unsigned checked = check_graph(graph);
    tarn_graph_destroy(graph);
    return checked;
}

static void traced_backward_ops_find_their_forward_ops(void **state)
{
    static const struct {
        const char *path;
        unsigned pairs;
    } files[] = {
        {"alexnet_b1_adam.ddp.json", 20},
        {"bert_base_b1_adam.ddp.json.gz", 96},
        {"googlenet_b1_adam.ddp_branch4.json.gz", 203},
        {"resnet50_b1_adam.ddp.json.gz", 158},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/examples/graphs/%s", TARN_SOURCE_DIR, files[i].path);
        assert_int_equal(check_file(path), files[i].pairs);
    }
}

static void the_same_holds_in_a_folder_of_graphs(void **state)
{
    (void)state;
    for_given_graph_files(check_file);
}

/* ---- Small graphs ---- */

static void layers_are_not_mixed_up(void **state)
{
    (void)state;
    struct training_graph made = training_graph(TRAINING_LAYERS_MAX);
    struct tarn_region region = {.chunks = NULL};
    struct tarn_pairing pairing = pair(&region, made.graph);
    for (unsigned i = 0; i < made.layers_count; i++) {
        const struct training_layer *layer = &made.layers[i];
        assert_int_equal(pairing.forward[layer->convolution_backward], layer->convolution);
        assert_int_equal(pairing.forward[layer->norm_backward], layer->norm);
        assert_int_equal(pairing.forward[layer->relu_backward], layer->relu);
        assert_int_equal(pairing.forward[layer->pool_backward], layer->pool);
        assert_int_equal(pairing.forward[layer->convolution], TARN_NONE);
    }
    tarn_region_finish(&region);
    tarn_graph_destroy(made.graph);
}

/* A chain of ops of these kinds, then `backward`, which reads a new gradient and the outputs that
 * `reads` has the bits of (bit 0: the first op's input). The op that it is paired with. */
static uint32_t forward_in_chain(const char *const *kinds, unsigned count, const char *backward,
                                 unsigned reads)
{
    struct tarn_builder *builder = tarn_builder_create("chain");
    tarn_stream stream = tarn_builder_stream(builder, "compute");
    struct tarn_tensor_info info = {.name = "t", .size = 8, .kind = TARN_INPUT};
    tarn_tensor at = tarn_builder_tensor(builder, &info), gradient;
    uint32_t inputs[8], inputs_count = 1;
    info.kind = TARN_INTERMEDIATE;
    gradient = inputs[0] = tarn_builder_tensor(builder, &info);
    for (unsigned i = 0; i <= count; i++) {
        if (reads >> i & 1) inputs[inputs_count++] = at;
        tarn_tensor next = i < count ? tarn_builder_tensor(builder, &info) : gradient;
        struct tarn_list list = {&at, 1}, outputs = {&next, 1};
        tarn_builder_op(builder,
                        &(struct tarn_op_info){.name = "op",
                                               .kind = i < count ? kinds[i] : "net.loss_backward",
                                               .stream = stream,
                                               .inputs = list,
                                               .outputs = outputs});
        at = next;
    }
    tarn_tensor dx = tarn_builder_tensor(builder, &info);
    tarn_op op = tarn_builder_op(builder, &(struct tarn_op_info){.name = "backward",
                                                                 .kind = backward,
                                                                 .stream = stream,
                                                                 .inputs = {inputs, inputs_count},
                                                                 .outputs = {&dx, 1}});
    struct tarn_graph *graph;
    assert_int_equal(tarn_builder_finish(builder, &graph, NULL), TARN_OK);
    struct tarn_region region = {.chunks = NULL};
    struct tarn_pairing pairing = pair(&region, graph);
    uint32_t forward = pairing.forward[op];
    tarn_region_finish(&region);
    tarn_graph_destroy(graph);
    return forward;
}

static void most_shared_then_words_then_writer(void **state)
{
    (void)state;
    const char *const kinds[] = {"net.gelu", "net.relu", "net.pool_max"};
    /* reads what gelu read and what relu wrote: gelu and relu share one, loss and pool one */
    assert_int_equal(forward_in_chain(kinds, 3, "net.gelu_backward", 1u << 1), 0);
    assert_int_equal(forward_in_chain(kinds, 3, "net.relu_backward", 1u << 1), 1);
    assert_int_equal(forward_in_chain(kinds, 3, "net.pool_max_backward", 1u << 2), 2);
    assert_int_equal(forward_in_chain(kinds, 3, "net.threshold_backward", 1u << 1), 0);
    assert_int_equal(forward_in_chain(kinds, 3, "net.threshold_backward", 1u << 2), 1);
    assert_int_equal(forward_in_chain(kinds, 3, "net.pool_max_backward", 1u << 0 | 1u << 1), 0);
    assert_int_equal(forward_in_chain(kinds, 3, "net.slice_backward", 0), TARN_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traced_backward_ops_find_their_forward_ops),
        cmocka_unit_test(the_same_holds_in_a_folder_of_graphs),
        cmocka_unit_test(layers_are_not_mixed_up),
        cmocka_unit_test(most_shared_then_words_then_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
