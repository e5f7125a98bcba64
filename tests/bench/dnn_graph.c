/* A network of L layers as one training step of data-parallel training:
 *
 *     compute   forward 0 .. L-1, loss, backward L-1 .. 0         (saved activations live long)
 *     branch    every fourth layer has a side path, there and back (further streams, in turn)
 *     comm      all-reduce in place of a contiguous bucket of gradients as soon as it is full
 *     update    three ops per weight once its gradient is reduced; the weight is written in place
 *
 * Arcs between streams are what such a step has: per bucket one in and one out, per side path two
 * there and two back. Cost: linear. */
#include "dnn_graph.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { BRANCH_EVERY = 4, WORKSPACE_EVERY = 2, COMPUTE = 0, COMM = 1, UPDATE = 2 };

/* Tensors that a layer's backward half needs again. */
struct layer {
    tarn_tensor weight, input, linear, norm, statistics;
    tarn_tensor branch_weight, branch; /* TARN_NONE without a side path */
};

struct network {
    struct tarn_builder *builder;
    const struct dnn_graph_options *options;
    struct layer *layers;
    uint32_t layers_count;
    tarn_tensor *gradients, *reduced, *weights; /* of the open bucket; room for bucket_max */
    uint32_t bucket_count, bucket_max;
    uint32_t sizes_drawn;
};

static bool has_branch(uint32_t layer) { return layer % BRANCH_EVERY == BRANCH_EVERY - 1; }

/* Planned storages that a layer adds, there and back. */
static uint32_t layer_storages(uint32_t layer)
{
    return 10u + (has_branch(layer) ? 9 : 0) + (layer % WORKSPACE_EVERY == 0);
}

static tarn_stream branch_stream(const struct network *network, uint32_t layer)
{
    uint32_t branches = network->options->streams - (UPDATE + 1);
    return branches ? UPDATE + 1 + layer / BRANCH_EVERY % branches : COMPUTE;
}

static tarn_tensor tensor(struct network *network, enum tarn_tensor_kind kind)
{
    uint64_t draw = ++network->sizes_drawn * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    uint64_t size = 512 + (draw % 4096) * 1024;
    return tarn_builder_tensor(network->builder,
                               &(struct tarn_tensor_info){.size = size, .kind = kind});
}

static void op(struct network *network, tarn_stream stream, const char *name,
               struct tarn_list inputs, struct tarn_list outputs)
{
    tarn_builder_op(network->builder, &(struct tarn_op_info){.name = name,
                                                             .kind = name,
                                                             .stream = stream,
                                                             .inputs = inputs,
                                                             .outputs = outputs,
                                                             .cost = 10000});
}

/* An op with one new tensor. */
static tarn_tensor compute(struct network *network, tarn_stream stream, const char *name,
                           struct tarn_list inputs)
{
    tarn_tensor output = tensor(network, TARN_INTERMEDIATE);
    op(network, stream, name, inputs, TARN_TENSORS(output));
    return output;
}

/* ---- Forward ---- */

static tarn_tensor forward_branch(struct network *network, uint32_t index, tarn_tensor trunk)
{
    struct layer *layer = &network->layers[index];
    tarn_stream stream = branch_stream(network, index);
    layer->branch_weight = tensor(network, TARN_PARAMETER);
    layer->branch =
        compute(network, stream, "branch_linear", TARN_TENSORS(layer->input, layer->branch_weight));
    tarn_tensor side = compute(network, stream, "branch_act", TARN_TENSORS(layer->branch));
    return compute(network, COMPUTE, "add", TARN_TENSORS(trunk, side));
}

static tarn_tensor forward(struct network *network, uint32_t index, tarn_tensor input)
{
    struct layer *layer = &network->layers[index];
    layer->input = input;
    layer->branch_weight = layer->branch = TARN_NONE;
    layer->weight = tensor(network, TARN_PARAMETER);
    layer->linear = tensor(network, TARN_INTERMEDIATE);
    bool workspace = index % WORKSPACE_EVERY == 0;
    tarn_builder_op(network->builder,
                    &(struct tarn_op_info){.name = "linear",
                                           .kind = "linear",
                                           .stream = COMPUTE,
                                           .inputs = TARN_TENSORS(input, layer->weight),
                                           .outputs = TARN_TENSORS(layer->linear),
                                           .workspace = workspace ? 65536 : 0,
                                           .cost = 20000});
    layer->norm = tensor(network, TARN_INTERMEDIATE);
    layer->statistics = tensor(network, TARN_INTERMEDIATE);
    op(network, COMPUTE, "norm", TARN_TENSORS(layer->linear),
       TARN_TENSORS(layer->norm, layer->statistics));
    tarn_tensor act = compute(network, COMPUTE, "act", TARN_TENSORS(layer->norm));
    return has_branch(index) ? forward_branch(network, index, act) : act;
}

/* ---- Backward ---- */

static void update_weight(struct network *network, tarn_tensor gradient, tarn_tensor weight)
{
    tarn_tensor moment = compute(network, UPDATE, "moment", TARN_TENSORS(gradient));
    tarn_tensor step = compute(network, UPDATE, "step", TARN_TENSORS(moment, gradient));
    tarn_tensor updated = tarn_builder_alias(network->builder, weight, NULL);
    op(network, UPDATE, "update", TARN_TENSORS(step, weight), TARN_TENSORS(updated));
}

/* Reduces the open bucket and updates its weights. */
static void close_bucket(struct network *network)
{
    uint32_t count = network->bucket_count;
    if (count == 0) return;
    struct tarn_list gradients = {network->gradients, count};
    for (uint32_t i = 0; i < count; i++)
        network->reduced[i] = tarn_builder_alias(network->builder, network->gradients[i], NULL);
    op(network, COMM, "all_reduce", gradients, (struct tarn_list){network->reduced, count});
    if (count > 1) tarn_builder_group(network->builder, gradients);
    for (uint32_t i = 0; i < count; i++)
        update_weight(network, network->reduced[i], network->weights[i]);
    network->bucket_count = 0;
}

static void weight_gradient(struct network *network, tarn_stream stream, tarn_tensor upstream,
                            tarn_tensor input, tarn_tensor weight)
{
    tarn_tensor gradient = tensor(network, TARN_GRADIENT);
    op(network, stream, "weight_gradient", TARN_TENSORS(upstream, input), TARN_TENSORS(gradient));
    network->gradients[network->bucket_count] = gradient;
    network->weights[network->bucket_count++] = weight;
}

/* The input's gradient through the side path. */
static tarn_tensor backward_branch(struct network *network, uint32_t index, tarn_tensor upstream)
{
    const struct layer *layer = &network->layers[index];
    tarn_stream stream = branch_stream(network, index);
    tarn_tensor act =
        compute(network, stream, "branch_act_back", TARN_TENSORS(upstream, layer->branch));
    tarn_tensor through =
        compute(network, stream, "branch_back", TARN_TENSORS(act, layer->branch_weight));
    weight_gradient(network, stream, act, layer->input, layer->branch_weight);
    return through;
}

static tarn_tensor backward(struct network *network, uint32_t index, tarn_tensor upstream)
{
    const struct layer *layer = &network->layers[index];
    tarn_tensor side = TARN_NONE;
    if (has_branch(index)) side = backward_branch(network, index, upstream);
    tarn_tensor act = compute(network, COMPUTE, "act_back", TARN_TENSORS(upstream, layer->norm));
    tarn_tensor norm =
        compute(network, COMPUTE, "norm_back", TARN_TENSORS(act, layer->linear, layer->statistics));
    tarn_tensor through =
        compute(network, COMPUTE, "linear_back", TARN_TENSORS(norm, layer->weight));
    weight_gradient(network, COMPUTE, norm, layer->input, layer->weight);
    if (side != TARN_NONE)
        through = compute(network, COMPUTE, "add_back", TARN_TENSORS(through, side));
    if (network->bucket_count + 2 > network->bucket_max) close_bucket(network);
    return through;
}

/* ---- The whole ---- */

/* As many layers as fit; what is left over becomes ops that prepare the input. */
static uint32_t fit_layers(struct network *network)
{
    uint32_t left = network->options->storages - 2; /* loss and its gradient */
    while (layer_storages(network->layers_count) <= left)
        left -= layer_storages(network->layers_count++);
    return left;
}

static void build(struct network *network, uint32_t prepare_count)
{
    tarn_tensor x = tensor(network, TARN_INPUT);
    for (uint32_t i = 0; i < prepare_count; i++)
        x = compute(network, COMPUTE, "prepare", TARN_TENSORS(x));
    for (uint32_t i = 0; i < network->layers_count; i++) x = forward(network, i, x);
    tarn_tensor loss = tensor(network, TARN_OUTPUT);
    op(network, COMPUTE, "loss", TARN_TENSORS(x), TARN_TENSORS(loss));
    tarn_tensor gradient = compute(network, COMPUTE, "loss_back", TARN_TENSORS(x));
    for (uint32_t i = network->layers_count; i-- > 0;) gradient = backward(network, i, gradient);
    close_bucket(network);
}

static tarn_tensor *tensors_of(uint32_t count)
{
    tarn_tensor *tensors = calloc(count, sizeof *tensors);
    if (!tensors) abort();
    return tensors;
}

struct tarn_graph *dnn_graph_in_buckets(const struct dnn_graph_options *options, uint32_t bucket)
{
    assert(options->storages >= 64 && options->streams > UPDATE && bucket >= 2);
    struct network network = {.builder = tarn_builder_create("dnn"),
                              .options = options,
                              .gradients = tensors_of(bucket),
                              .reduced = tensors_of(bucket),
                              .weights = tensors_of(bucket),
                              .bucket_max = bucket};
    uint32_t prepare_count = fit_layers(&network);
    network.layers = calloc(network.layers_count, sizeof *network.layers);
    if (!network.layers) abort();
    for (uint32_t s = 0; s < options->streams; s++) tarn_builder_stream(network.builder, NULL);
    build(&network, prepare_count);
    free(network.layers);
    free(network.gradients);
    free(network.reduced);
    free(network.weights);
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_builder_finish(network.builder, &graph, &error) != TARN_OK) {
        fprintf(stderr, "dnn graph: %s\n", error.text);
        abort();
    }
    return graph;
}

struct tarn_graph *dnn_graph(const struct dnn_graph_options *options)
{
    return dnn_graph_in_buckets(options, 8);
}
