/* Implementations from the table in examples/costs.csv: on a small training step one by one, on
 * traced steps by what must hold of every one of them; measurements; what is the same whichever way
 * it was come by. More traced steps: TARN_GRAPHS names a folder of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "planner/transform/implementations/pairing.h"
#include "support/graph_files.h"
#include "support/training_graph.h"
#include "tarn.h"

#define COSTS TARN_SOURCE_DIR "/examples/costs.csv"
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { LAYERS = 4 };

static struct tarn_cost_table *table_at(const char *path)
{
    struct tarn_cost_table *table;
    struct tarn_error error;
    if (tarn_cost_table_load(path, &table, &error) != TARN_OK) fail_msg("%s", error.text);
    return table;
}

static struct tarn_cost_table *table_of(const char *text)
{
    char path[] = "/tmp/tarn_costs_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    struct tarn_cost_table *table = table_at(path);
    unlink(path);
    return table;
}

/* costs and report may be NULL. The caller destroys the graph. */
static struct tarn_graph *implemented(struct tarn_graph *graph, const struct tarn_cost_table *costs,
                                      bool split, struct tarn_implementations_report *report)
{
    struct tarn_graph *result;
    struct tarn_error error;
    if (tarn_graph_implementations(
            graph,
            TARN_IMPLEMENTATIONS_OPTIONS(.costs = costs, .split_backward = split, .report = report),
            &result, &error) != TARN_OK)
        fail_msg("%s", error.text);
    return result;
}

/* ---- One by one ---- */

static const struct tarn_implementation *find(const struct tarn_graph *graph, uint32_t v,
                                              const char *name)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t i = 0; i < extra->implementations_count; i++)
        if (strcmp(extra->implementations[i].name, name) == 0) return &extra->implementations[i];
    return NULL;
}

static void assert_list(struct tarn_list found, struct tarn_list expected)
{
    assert_int_equal(found.count, expected.count);
    if (expected.count > 0)
        assert_memory_equal(found.ids, expected.ids, expected.count * sizeof *expected.ids);
}

static void expect(const struct tarn_graph *graph, uint32_t v, const char *name, uint64_t cost,
                   uint64_t workspace, struct tarn_list inputs, struct tarn_list outputs)
{
    const struct tarn_implementation *found = find(graph, v, name);
    if (!found) fail_msg("%s has no %s", graph->ops[v].name, name);
    assert_int_equal(found->cost, cost);
    assert_int_equal(found->workspace, workspace);
    assert_list(found->inputs, inputs);
    assert_list(found->outputs, outputs);
}

#define SAME ((struct tarn_list){0})

static uint64_t size_of(const struct tarn_graph *graph, uint32_t t)
{
    return graph->tensors[t].size;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* In hundredths, rounded up. */
static uint64_t hundredths(uint64_t n, uint64_t of) { return (n * of + 99) / 100; }

static void check_forward(const struct tarn_graph *graph, const struct training_layer *layer)
{
    uint64_t bytes = size_of(graph, layer->x) + size_of(graph, layer->raw);
    if (size_of(graph, layer->weight) > size_of(graph, layer->x))
        bytes = size_of(graph, layer->weight) + size_of(graph, layer->raw);
    assert_int_equal(tarn_extra(&graph->ops[layer->convolution])->workspace, hundredths(60, bytes));
    assert_int_equal(tarn_extra(&graph->ops[layer->convolution])->implementations_count, 3);
    expect(graph, layer->convolution, "precomputed", 1151, hundredths(15, bytes), SAME, SAME);
    expect(graph, layer->convolution, "implicit", 1351, 0, SAME, SAME);
    expect(graph, layer->convolution, "transform", 951, hundredths(120, bytes), SAME, SAME);
    assert_int_equal(tarn_extra(&graph->ops[layer->relu])->implementations_count, 0);
    assert_int_equal(tarn_extra(&graph->ops[layer->pool])->implementations_count, 0);
}

/* The tensor that was added to the forward op, which is its last output. */
static uint32_t kept_by(const struct tarn_graph *graph, uint32_t forward, uint32_t outputs,
                        const char *name, uint64_t size)
{
    const struct tarn_graph_op *op = &graph->ops[forward];
    assert_int_equal(op->outputs_count, outputs);
    const struct tarn_graph_tensor *tensor = &graph->tensors[tarn_outputs(op)[outputs - 1]];
    assert_string_equal(tensor->name, name);
    assert_int_equal(tensor->size, size);
    assert_int_equal(tensor->kind, TARN_INTERMEDIATE);
    return tarn_outputs(op)[outputs - 1];
}

static void check_elementwise(const struct tarn_graph *graph, const struct training_layer *layer,
                              unsigned i)
{
    char name[64];
    snprintf(name, sizeof name, "relu__%u.from_mask", i);
    uint32_t mask = kept_by(graph, layer->relu, 2, name, size_of(graph, layer->active) / 32);
    assert_int_equal(tarn_extra(&graph->ops[layer->relu_backward])->implementations_count, 2);
    expect(graph, layer->relu_backward, "from_input", 1001, 0,
           TARN_TENSORS(layer->dactive, layer->normal), SAME);
    expect(graph, layer->relu_backward, "from_mask", 1101, 0, TARN_TENSORS(layer->dactive, mask),
           SAME);
    snprintf(name, sizeof name, "max_pool2d_with_indices_%u.from_indices8", i);
    uint32_t small = kept_by(graph, layer->pool, 3, name, size_of(graph, layer->indices) / 8);
    assert_int_equal(tarn_extra(&graph->ops[layer->pool_backward])->implementations_count, 2);
    expect(graph, layer->pool_backward, "from_indices64", 1001, 0,
           TARN_TENSORS(layer->dpooled, layer->indices), SAME);
    expect(graph, layer->pool_backward, "from_indices8", 1051, 0,
           TARN_TENSORS(layer->dpooled, small), SAME);
    assert_int_equal(tarn_extra(&graph->ops[layer->norm_backward])->implementations_count, 1);
    expect(graph, layer->norm_backward, "from_output", 1051, 0,
           TARN_TENSORS(layer->dnormal, layer->normal, layer->weight, layer->running, layer->mean,
                        layer->invstd),
           SAME);
}

static void check_convolution_backward(const struct tarn_graph *graph,
                                       const struct training_layer *layer)
{
    uint32_t v = layer->convolution_backward;
    uint64_t dy = size_of(graph, layer->draw), x = size_of(graph, layer->x);
    uint64_t w = size_of(graph, layer->weight);
    bool has_dx = layer->dx != TARN_NONE;
    uint64_t bytes = larger(dy, x) + (has_dx ? x : w);
    expect(graph, v, "precomputed", 1151, hundredths(15, bytes), SAME, SAME);
    expect(graph, v, "implicit", 1351, 0, SAME, SAME);
    assert_int_equal(tarn_extra(&graph->ops[v])->implementations_count, has_dx ? 8 : 2);
    if (!has_dx) return;
    struct tarn_list dy_w = TARN_TENSORS(layer->draw, layer->weight);
    struct tarn_list dy_x = TARN_TENSORS(layer->draw, layer->x);
    struct tarn_list dx = TARN_TENSORS(layer->dx), dw = TARN_TENSORS(layer->dweight);
    uint64_t whole = hundredths(60, bytes), less = hundredths(15, bytes);
    uint64_t part = larger(dy, x) + w; /* of bytes */
    expect(graph, v, "input_gradient", 501, whole, dy_w, dx);
    expect(graph, v, "input_gradient.precomputed", 576, less, dy_w, dx);
    expect(graph, v, "input_gradient.implicit", 676, 0, dy_w, dx);
    expect(graph, v, "weight_gradient", 500, (whole * part + bytes - 1) / bytes, dy_x, dw);
    expect(graph, v, "weight_gradient.precomputed", 575, (less * part + bytes - 1) / bytes, dy_x,
           dw);
    expect(graph, v, "weight_gradient.implicit", 675, 0, dy_x, dw);
}

static void each_op_gets_what_the_table_says(void **state)
{
    struct training_graph made = training_graph(LAYERS);
    struct tarn_cost_table *costs = table_at(COSTS);
    struct tarn_implementations_report report;
    struct tarn_graph *graph = implemented(made.graph, costs, true, &report);
    (void)state;
    for (unsigned i = 0; i < LAYERS; i++) {
        check_forward(graph, &made.layers[i]);
        check_elementwise(graph, &made.layers[i], i);
        check_convolution_backward(graph, &made.layers[i]);
    }
    assert_int_equal(report.ops, 5 * LAYERS);
    assert_int_equal(report.implementations, (3 + 2 + 2 + 1) * LAYERS + 2 + 8 * (LAYERS - 1));
    assert_int_equal(report.workspaces, 2 * LAYERS);
    assert_int_equal(report.tensors, 2 * LAYERS);
    assert_int_equal(report.split, LAYERS - 1);
    assert_int_equal(report.unpaired, 0);
    assert_int_equal(report.measured, 0);
    assert_int_equal(graph->tensors_count, made.graph->tensors_count + 2 * LAYERS);
    tarn_cost_table_destroy(costs);
    tarn_graph_destroy(made.graph);
    tarn_graph_destroy(graph);
}

static void what_needs_a_forward_op_is_passed_over_without_one(void **state)
{
    struct tarn_builder *builder = tarn_builder_create("alone");
    struct tarn_tensor_info info = {.name = "t", .size = 8, .kind = TARN_INPUT};
    tarn_stream stream = tarn_builder_stream(builder, "compute");
    tarn_tensor in = tarn_builder_tensor(builder, &info);
    info.kind = TARN_OUTPUT;
    tarn_tensor out = tarn_builder_tensor(builder, &info);
    (void)state;
    tarn_builder_op(builder, &(struct tarn_op_info){.name = "b",
                                                    .kind = "aten.threshold_backward",
                                                    .stream = stream,
                                                    .inputs = TARN_TENSORS(in),
                                                    .outputs = TARN_TENSORS(out)});
    struct tarn_graph *graph, *result;
    struct tarn_cost_table *costs = table_at(COSTS);
    struct tarn_implementations_report report;
    assert_int_equal(tarn_builder_finish(builder, &graph, NULL), TARN_OK);
    result = implemented(graph, costs, true, &report);
    assert_ptr_equal(result, graph);
    assert_int_equal(report.unpaired, 1);
    assert_int_equal(report.ops, 0);
    tarn_cost_table_destroy(costs);
    tarn_graph_destroy(graph);
    tarn_graph_destroy(result);
}

/* x ─clone► copy, x ─hardtanh_► y (in place), y ─dropout► z, flags; backward: dz, flags ► dy;
 * dy, copy ► dx; once more dy, copy ► again. The sizes: 64, flags 16. */
struct elementwise {
    struct tarn_graph *graph;
    tarn_tensor x, copy, y, z, flags, dz, dy, dx, again;
    tarn_op clone, hardtanh, dropout, dropout_backward, hardtanh_backward, second;
};

static tarn_op add(struct tarn_builder *builder, const char *kind, struct tarn_list inputs,
                   struct tarn_list outputs)
{
    return tarn_builder_op(
        builder,
        &(struct tarn_op_info){
            .name = kind, .kind = kind, .inputs = inputs, .outputs = outputs, .cost = 100});
}

static tarn_tensor sized(struct tarn_builder *builder, uint64_t size)
{
    return tarn_builder_tensor(builder, &(struct tarn_tensor_info){.name = "t", .size = size});
}

static struct elementwise elementwise(void)
{
    struct elementwise made;
    struct tarn_builder *builder = tarn_builder_create("elementwise");
    tarn_builder_stream(builder, "compute");
    made.x = sized(builder, 64);
    add(builder, "load", (struct tarn_list){0}, TARN_TENSORS(made.x));
    made.copy = sized(builder, 64);
    made.clone = add(builder, "clone", TARN_TENSORS(made.x), TARN_TENSORS(made.copy));
    made.y = tarn_builder_alias(builder, made.x, "y");
    made.hardtanh = add(builder, "hardtanh_", TARN_TENSORS(made.x), TARN_TENSORS(made.y));
    tarn_builder_control(builder, made.hardtanh, made.clone);
    made.z = sized(builder, 64);
    made.flags = sized(builder, 16);
    made.dropout = add(builder, "dropout", TARN_TENSORS(made.y), TARN_TENSORS(made.z, made.flags));
    made.dz = sized(builder, 64);
    add(builder, "loss_backward", TARN_TENSORS(made.z), TARN_TENSORS(made.dz));
    made.dy = sized(builder, 64);
    made.dropout_backward =
        add(builder, "dropout_backward", TARN_TENSORS(made.dz, made.flags), TARN_TENSORS(made.dy));
    made.dx = sized(builder, 64);
    made.again = sized(builder, 64);
    made.hardtanh_backward =
        add(builder, "hardtanh_backward", TARN_TENSORS(made.dy, made.copy), TARN_TENSORS(made.dx));
    made.second = add(builder, "hardtanh_backward", TARN_TENSORS(made.dy, made.copy),
                      TARN_TENSORS(made.again));
    assert_int_equal(tarn_builder_finish(builder, &made.graph, NULL), TARN_OK);
    return made;
}

static void tables_are_read_as_spreadsheets_write_them(void **state)
{
    static const char *const texts[] = {
        "op,implementation,ns,workspace\nloss_backward,,7,0\nloss_backward,fast,3,64\n",
        ("\xef\xbb\xbf\"Op\";\"Implementation\";\"NS\";\"Workspace\"\r\n\"loss_backward\";;\"7\";"
         "0\r\nloss_backward;"
         "\"fast\";3;64\r\n"),
        ("OP\tIMPLEMENTATION\tNS\tWORKSPACE\nloss_backward\t\t7\t0\nloss_"
         "backward\tfast\t\"3\"\t64\n")};
    struct elementwise made = elementwise();
    struct tarn_hash hash = {0};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct tarn_cost_table *costs = table_of(texts[i]);
        struct tarn_graph *graph = implemented(made.graph, costs, false, NULL);
        if (i == 0) hash = graph->hash;
        assert_true(tarn_hash_equal(hash, graph->hash));
        assert_false(tarn_hash_equal(hash, made.graph->hash));
        tarn_graph_destroy(graph);
        tarn_cost_table_destroy(costs);
    }
    tarn_graph_destroy(made.graph);
}

static void what_is_left_out_and_what_is_kept_instead(void **state)
{
    struct elementwise made = elementwise();
    struct tarn_cost_table *costs =
        table_of("kind,implementation,time_factor,workspace_factor,needs_input,needs_output,"
                 "keeps_factor\n"
                 "hardtanh_backward,as_traced,1,0,1,0,0\n"
                 "hardtanh_backward,from_output,1,0,0,1,\n"
                 "hardtanh_backward,from_bits,1.5,0.25,0,0,0.03\n"
                 "hardtanh_backward,both,2,0,1,1,\n"
                 "dropout_backward,from_bits,1,0,,,0.125\n"
                 "dropout_backward,from_flags,2,0,,,1\n"
                 "dropout_backward,from_nothing,3,0,1,0,0\n");
    struct tarn_graph *graph = implemented(made.graph, costs, false, NULL);
    const struct tarn_graph_op *hardtanh = &graph->ops[made.hardtanh];
    const struct tarn_graph_op *dropout = &graph->ops[made.dropout];
    (void)state;
    assert_int_equal(graph->tensors_count, made.graph->tensors_count + 2);
    assert_int_equal(hardtanh->outputs_count, 2); /* one for both backward ops */
    assert_int_equal(size_of(graph, tarn_outputs(hardtanh)[1]), 2);
    assert_int_equal(dropout->outputs_count, 3);
    assert_int_equal(size_of(graph, tarn_outputs(dropout)[2]), 2);
    tarn_op backward[] = {made.hardtanh_backward, made.second};
    for (size_t i = 0; i < COUNT_OF(backward); i++) {
        assert_int_equal(tarn_extra(&graph->ops[backward[i]])->implementations_count, 3);
        expect(graph, backward[i], "from_output", 100, 0, TARN_TENSORS(made.dy, made.y), SAME);
        expect(graph, backward[i], "from_bits", 150, 32,
               TARN_TENSORS(made.dy, tarn_outputs(hardtanh)[1]), SAME);
        expect(graph, backward[i], "both", 200, 0, TARN_TENSORS(made.dy, made.copy, made.y), SAME);
    }
    assert_int_equal(tarn_extra(&graph->ops[made.dropout_backward])->implementations_count, 3);
    expect(graph, made.dropout_backward, "from_bits", 100, 0,
           TARN_TENSORS(made.dz, tarn_outputs(dropout)[2]), SAME);
    expect(graph, made.dropout_backward, "from_flags", 200, 0, SAME, SAME);
    expect(graph, made.dropout_backward, "from_nothing", 300, 0, TARN_TENSORS(made.dz, made.y),
           SAME);
    tarn_cost_table_destroy(costs);
    tarn_graph_destroy(graph);
    tarn_graph_destroy(made.graph);
}

/* ---- Measurements ---- */

static void measurements_replace_the_model(void **state)
{
    struct training_graph made = training_graph(2);
    struct tarn_cost_table *costs =
        table_of("kind,implementation,time_factor,workspace_factor,needs_input,needs_output,"
                 "keeps_factor\n"
                 "aten.convolution,gemm,1,1,,,\naten.convolution,slow,2,0,,,\n"
                 "aten.convolution_backward,gemm,1,1,,,\n"
                 "op,implementation,ns,workspace\n"
                 "convolution_0,,70,9\nconvolution_0,other,80,10\nconvolution_1,slow,90,11\n"
                 "convolution_backward_1,,100,12\n"
                 "convolution_backward_1,weight_gradient,60,13\n"
                 "convolution_backward_0,weight_gradient,60,13\n");
    struct tarn_implementations_report report;
    struct tarn_graph *graph = implemented(made.graph, costs, true, &report);
    const struct training_layer *first = &made.layers[0], *second = &made.layers[1];
    (void)state;
    assert_int_equal(graph->ops[first->convolution].cost, 70);
    assert_int_equal(tarn_extra(&graph->ops[first->convolution])->workspace, 9);
    expect(graph, first->convolution, "slow", 140, 0, SAME, SAME);
    expect(graph, first->convolution, "other", 80, 10, SAME, SAME);
    expect(graph, second->convolution, "slow", 90, 11, SAME, SAME);
    assert_int_equal(graph->ops[second->convolution_backward].cost, 100);
    assert_int_equal(find(graph, second->convolution_backward, "input_gradient")->cost, 50);
    const struct tarn_implementation *part =
        find(graph, second->convolution_backward, "weight_gradient");
    assert_int_equal(part->cost, 60);
    assert_int_equal(part->workspace, 13);
    assert_int_equal(part->outputs.count, 1);
    assert_null(find(graph, first->convolution_backward, "weight_gradient"));
    tarn_graph_destroy(graph);
    tarn_cost_table_destroy(costs);
    costs = table_of("op,implementation,ns,workspace\nrelu__1,x,1,1\n\nrelu_7,x,1,1\n");
    struct tarn_error error;
    assert_int_equal(tarn_graph_implementations(
                         made.graph, TARN_IMPLEMENTATIONS_OPTIONS(.costs = costs), &graph, &error),
                     TARN_BAD_INPUT);
    assert_null(graph);
    assert_int_equal(error.line, 4);
    assert_non_null(strstr(error.text, "\"relu_7\""));
    tarn_cost_table_destroy(costs);
    tarn_graph_destroy(made.graph);
}

/* ---- Traced steps ---- */

static bool contains(struct tarn_list list, uint32_t id)
{
    for (size_t i = 0; i < list.count; i++)
        if (list.ids[i] == id) return true;
    return false;
}

/* The parts of each backward op yield every output once, in half of the time each. */
static void check_parts(const struct tarn_graph *graph, uint32_t v, uint32_t forward)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    const struct tarn_implementation *input = find(graph, v, "input_gradient");
    const struct tarn_implementation *weight = find(graph, v, "weight_gradient");
    bool has_all = op->outputs_count == graph->ops[forward].inputs_count;
    assert_int_equal(input != NULL, has_all);
    assert_int_equal(weight != NULL, has_all);
    if (!has_all) return;
    assert_int_equal(input->cost + weight->cost, op->cost);
    assert_int_equal(input->outputs.count + weight->outputs.count, op->outputs_count);
    for (uint32_t k = 0; k < op->outputs_count; k++)
        assert_int_not_equal(contains(input->outputs, tarn_outputs(op)[k]),
                             contains(weight->outputs, tarn_outputs(op)[k]));
    assert_int_equal(size_of(graph, input->outputs.ids[0]),
                     size_of(graph, graph->ops[forward].inputs[0]));
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        bool in = contains(input->inputs, op->inputs[k]);
        bool weighs = contains(weight->inputs, op->inputs[k]);
        assert_true(in || weighs);
        assert_int_equal(in && weighs, k == 0); /* the gradient that comes in */
    }
    assert_true(input->workspace <= extra->workspace && weight->workspace <= extra->workspace);
}

/* What the table says about the inputs of a kind's implementation. */
static const struct {
    const char *kind, *name;
    bool reads_input, reads_output, reads_further;
    unsigned percent;
} rules[] = {
    {"aten.threshold_backward", "from_input", true, false, false, 100},
    {"aten.threshold_backward", "from_mask", false, false, true, 110},
    {"aten.max_pool2d_with_indices_backward", "from_indices64", false, false, true, 100},
    {"aten.max_pool2d_with_indices_backward", "from_indices8", false, false, true, 105},
    {"aten.native_batch_norm_backward", "from_output", false, true, true, 105},
    {"aten.convolution_backward", "precomputed", true, false, false, 115},
    {"aten.convolution_backward", "implicit", true, false, false, 135},
};

static void check_rule(const struct tarn_graph *graph, uint32_t v, uint32_t forward, size_t rule)
{
    const struct tarn_graph_op *op = &graph->ops[v], *partner = &graph->ops[forward];
    const struct tarn_implementation *found = find(graph, v, rules[rule].name);
    if (!found) fail_msg("%s has no %s", op->name, rules[rule].name);
    struct tarn_list inputs = found->inputs;
    if (inputs.count == 0) inputs = (struct tarn_list){op->inputs, op->inputs_count};
    bool reads_further = false;
    for (uint32_t k = 1; k < partner->outputs_count; k++)
        reads_further = reads_further || contains(inputs, tarn_outputs(partner)[k]);
    assert_int_equal(contains(inputs, partner->inputs[0]), rules[rule].reads_input);
    assert_int_equal(contains(inputs, tarn_outputs(partner)[0]), rules[rule].reads_output);
    assert_int_equal(reads_further, rules[rule].reads_further);
    assert_int_equal(inputs.ids[0], op->inputs[0]);
    assert_int_equal(found->cost, (op->cost * rules[rule].percent + 50) / 100);
}

static void check_graph(const struct tarn_graph *graph, const struct tarn_graph *before)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_pairing pairing;
    assert_int_equal(tarn_pairing_init(&pairing, &region, before), TARN_OK);
    assert_int_equal(graph->ops_count, before->ops_count);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const char *kind = graph->ops[v].kind;
        assert_int_equal(graph->ops[v].origin, v);
        for (size_t rule = 0; rule < COUNT_OF(rules); rule++)
            if (strcmp(kind, rules[rule].kind) == 0) check_rule(graph, v, pairing.forward[v], rule);
        if (strcmp(kind, "aten.convolution_backward") == 0)
            check_parts(graph, v, pairing.forward[v]);
    }
    for (uint32_t t = before->tensors_count; t < graph->tensors_count; t++)
        assert_int_equal(graph->tensors[t].kind, TARN_INTERMEDIATE);
    tarn_region_finish(&region);
}

/* The same graph: added twice, added in two steps, saved and read again. */
static void check_sameness(struct tarn_graph *before, struct tarn_graph *graph,
                           const struct tarn_cost_table *costs)
{
    struct tarn_graph *again = implemented(graph, costs, true, NULL), *reloaded;
    assert_ptr_equal(again, graph);
    tarn_graph_destroy(again);
    struct tarn_graph *half = implemented(before, costs, false, NULL);
    again = implemented(half, NULL, true, NULL);
    assert_true(tarn_hash_equal(again->hash, graph->hash));
    tarn_graph_destroy(half);
    tarn_graph_destroy(again);
    char path[] = "/tmp/tarn_graph_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(tarn_graph_save(graph, path, NULL), TARN_OK);
    assert_int_equal(tarn_graph_load(path, NULL, &reloaded, NULL), TARN_OK);
    assert_true(tarn_hash_equal(reloaded->hash, graph->hash));
    tarn_graph_destroy(reloaded);
    unlink(path);
}

static uint64_t check_file(const char *path)
{
    struct tarn_graph *before, *graph;
    struct tarn_error error;
    struct tarn_implementations_report report;
    struct tarn_cost_table *costs = table_at(COSTS);
    if (tarn_graph_load(path, NULL, &before, &error) != TARN_OK) fail_msg("%s", error.text);
    graph = implemented(before, costs, true, &report);
    assert_int_equal(report.unpaired, 0);
    check_graph(graph, before);
    check_sameness(before, graph, costs);
    tarn_graph_destroy(graph);
    tarn_graph_destroy(before);
    tarn_cost_table_destroy(costs);
    return report.implementations;
}

static void traced_steps_get_them_by_the_same_rules(void **state)
{
    static const char *const files[] = {
        "alexnet_b1_adam.ddp.json",
        "bert_base_b1_adam.ddp.json.gz",
        "googlenet_b1_adam.ddp_branch4.json.gz",
        "resnet50_b1_adam.ddp.json.gz",
    };
    /* alexnet: 5 convolutions, 5 backward (4 split), 7 relus, 3 pools; no batch-norm */
    static const uint32_t added[] = {5 * 3 + 5 * 2 + 4 * 6 + 7 * 2 + 3 * 2, 0,
                                     59 * 3 + 59 * 2 + 58 * 6 + 61 * 2 + 13 * 2 + 59,
                                     53 * 3 + 53 * 2 + 52 * 6 + 49 * 2 + 1 * 2 + 53};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/examples/graphs/%s", TARN_SOURCE_DIR, files[i]);
        assert_int_equal(check_file(path), added[i]);
    }
}

static void the_same_holds_in_a_folder_of_graphs(void **state)
{
    (void)state;
    for_given_graph_files(check_file);
}

/* ---- From a program ---- */

/* f, with an implementation "slow" or without, then g. */
static struct tarn_graph *two_ops(uint64_t cost, uint64_t workspace,
                                  const struct tarn_implementation *implementations, size_t count)
{
    struct tarn_builder *b = tarn_builder_create("two ops");
    tarn_stream stream = tarn_builder_stream(b, "s");
    tarn_tensor x = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "x", .size = 64, .kind = TARN_INPUT});
    tarn_tensor y = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "y", .size = 64});
    tarn_tensor z = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = "z", .size = 64, .kind = TARN_OUTPUT});
    tarn_builder_op(b, &(struct tarn_op_info){.name = "f",
                                              .stream = stream,
                                              .inputs = TARN_TENSORS(x),
                                              .outputs = TARN_TENSORS(y),
                                              .cost = cost,
                                              .workspace = workspace,
                                              .implementations = implementations,
                                              .implementations_count = count});
    tarn_builder_op(b, &(struct tarn_op_info){.name = "g",
                                              .stream = stream,
                                              .inputs = TARN_TENSORS(y),
                                              .outputs = TARN_TENSORS(z),
                                              .cost = 5});
    struct tarn_graph *graph;
    assert_int_equal(tarn_builder_finish(b, &graph, NULL), TARN_OK);
    return graph;
}

static void assert_same(struct tarn_graph *found, struct tarn_graph *expected)
{
    struct tarn_hash a = tarn_graph_hash(found), b = tarn_graph_hash(expected);
    assert_memory_equal(&a, &b, sizeof a);
    tarn_graph_destroy(found);
    tarn_graph_destroy(expected);
}

static void costs_set_by_a_program_are_those_of_a_graph_built_with_them(void **state)
{
    (void)state;
    const struct tarn_implementation slow = {.name = "slow", .cost = 30, .workspace = 8},
                                     slower = {.name = "slow", .cost = 90},
                                     fast = {.name = "fast", .cost = 3, .workspace = 4096};
    struct tarn_graph *graph = two_ops(10, 256, &slow, 1), *result;
    const struct tarn_op_costs costs[] = {
        {.op = 0, .cost = 7, .workspace = TARN_AS_IT_IS},
        {.op = 0,
         .cost = TARN_AS_IT_IS,
         .workspace = 512,
         .implementations = (const struct tarn_implementation[]){fast, slower},
         .implementations_count = 2}};
    assert_int_equal(tarn_graph_with_costs(graph, costs, 1, &result, NULL), TARN_OK);
    assert_same(result, two_ops(7, 256, &slow, 1));
    assert_int_equal(tarn_graph_with_costs(graph, costs, 2, &result, NULL), TARN_OK);
    assert_same(result, two_ops(7, 512, (const struct tarn_implementation[]){slower, fast}, 2));
    assert_int_equal(tarn_graph_with_costs(graph, NULL, 0, &result, NULL), TARN_OK);
    assert_same(result, graph);
}

static void costs_of_what_is_not_there_are_refused(void **state)
{
    (void)state;
    struct tarn_graph *graph = two_ops(10, 0, NULL, 0), *result;
    struct tarn_error error;
    assert_int_equal(
        tarn_graph_with_costs(graph, &(struct tarn_op_costs){.op = 2}, 1, &result, &error),
        TARN_USAGE);
    assert_int_equal(error.op, 2);
    assert_null(result);
    assert_int_equal(
        tarn_graph_with_costs(graph, &(struct tarn_op_costs){.op = 1, .implementations_count = 1},
                              1, &result, &error),
        TARN_USAGE);
    const struct tarn_implementation stranger = {.name = "reads what it must not",
                                                 .inputs = TARN_TENSORS(99)};
    assert_int_equal(tarn_graph_with_costs(graph,
                                           &(struct tarn_op_costs){.op = 1,
                                                                   .cost = TARN_AS_IT_IS,
                                                                   .workspace = TARN_AS_IT_IS,
                                                                   .implementations = &stranger,
                                                                   .implementations_count = 1},
                                           1, &result, &error),
                     TARN_BAD_INPUT);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_set_by_a_program_are_those_of_a_graph_built_with_them),
        cmocka_unit_test(costs_of_what_is_not_there_are_refused),
        cmocka_unit_test(tables_are_read_as_spreadsheets_write_them),
        cmocka_unit_test(each_op_gets_what_the_table_says),
        cmocka_unit_test(what_needs_a_forward_op_is_passed_over_without_one),
        cmocka_unit_test(what_is_left_out_and_what_is_kept_instead),
        cmocka_unit_test(measurements_replace_the_model),
        cmocka_unit_test(traced_steps_get_them_by_the_same_rules),
        cmocka_unit_test(the_same_holds_in_a_folder_of_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
