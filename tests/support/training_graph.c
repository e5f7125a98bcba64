/* Ops are added in the order of a real trace; every in-place write of relu_ comes with the control
 * arc that the tracer gives it where somebody else has read what it overwrites: here nobody has. */
#include "training_graph.h"

#include <stdio.h>
#include <stdlib.h>

struct building {
    struct tarn_builder *builder;
    tarn_stream stream;
};

static tarn_tensor tensor(const struct building *building, const char *name, unsigned layer,
                          uint64_t size, enum tarn_tensor_kind kind)
{
    char text[32];
    snprintf(text, sizeof text, "%s_%u", name, layer);
    return tarn_builder_tensor(
        building->builder, &(struct tarn_tensor_info){.name = text, .size = size, .kind = kind});
}

static tarn_op op(const struct building *building, const char *kind, unsigned layer,
                  struct tarn_list inputs, struct tarn_list outputs)
{
    char name[64], full[64];
    snprintf(name, sizeof name, "%s_%u", kind, layer);
    snprintf(full, sizeof full, "aten.%s", kind);
    return tarn_builder_op(building->builder, &(struct tarn_op_info){.name = name,
                                                                     .kind = full,
                                                                     .stream = building->stream,
                                                                     .inputs = inputs,
                                                                     .outputs = outputs,
                                                                     .cost = TRAINING_COST});
}

static void forward(const struct building *building, struct training_layer *layer, unsigned i,
                    tarn_tensor x)
{
    uint64_t size = TRAINING_BYTES >> i;
    layer->x = x;
    layer->weight = tensor(building, "weight", i, 36, TARN_PARAMETER);
    layer->running = tensor(building, "running", i, 8, TARN_PARAMETER);
    layer->raw = tensor(building, "raw", i, size, TARN_INTERMEDIATE);
    layer->convolution =
        op(building, "convolution", i, TARN_TENSORS(x, layer->weight), TARN_TENSORS(layer->raw));
    layer->normal = tensor(building, "normal", i, size, TARN_INTERMEDIATE);
    layer->mean = tensor(building, "mean", i, 8, TARN_INTERMEDIATE);
    layer->invstd = tensor(building, "invstd", i, 8, TARN_INTERMEDIATE);
    tarn_tensor updated = tarn_builder_alias(building->builder, layer->running, "updated");
    layer->norm = op(building, "native_batch_norm", i,
                     TARN_TENSORS(layer->raw, layer->weight, layer->weight, layer->running),
                     TARN_TENSORS(layer->normal, layer->mean, layer->invstd, updated));
    layer->running = updated;
    layer->active = tarn_builder_alias(building->builder, layer->normal, "active");
    layer->relu =
        op(building, "relu_", i, TARN_TENSORS(layer->normal), TARN_TENSORS(layer->active));
    layer->pooled = tensor(building, "pooled", i, size / 2, TARN_INTERMEDIATE);
    layer->indices = tensor(building, "indices", i, size, TARN_INTERMEDIATE);
    layer->pool = op(building, "max_pool2d_with_indices", i, TARN_TENSORS(layer->active),
                     TARN_TENSORS(layer->pooled, layer->indices));
}

static void backward(const struct building *building, struct training_layer *layer, unsigned i,
                     tarn_tensor gradient)
{
    uint64_t size = TRAINING_BYTES >> i;
    layer->dpooled = gradient;
    layer->dactive = tensor(building, "dactive", i, size, TARN_INTERMEDIATE);
    layer->pool_backward =
        op(building, "max_pool2d_with_indices_backward", i,
           TARN_TENSORS(gradient, layer->active, layer->indices), TARN_TENSORS(layer->dactive));
    layer->dnormal = tensor(building, "dnormal", i, size, TARN_INTERMEDIATE);
    layer->relu_backward =
        op(building, "threshold_backward", i, TARN_TENSORS(layer->dactive, layer->active),
           TARN_TENSORS(layer->dnormal));
    layer->draw = tensor(building, "draw", i, size, TARN_INTERMEDIATE);
    layer->norm_backward = op(building, "native_batch_norm_backward", i,
                              TARN_TENSORS(layer->dnormal, layer->raw, layer->weight,
                                           layer->running, layer->mean, layer->invstd),
                              TARN_TENSORS(layer->draw));
    layer->dweight = tensor(building, "dweight", i, 36, TARN_GRADIENT);
    struct tarn_list inputs = TARN_TENSORS(layer->draw, layer->x, layer->weight);
    if (i == 0) { /* nobody wants the gradient of the data */
        layer->dx = TARN_NONE;
        layer->convolution_backward =
            op(building, "convolution_backward", i, inputs, TARN_TENSORS(layer->dweight));
        return;
    }
    layer->dx = tensor(building, "dx", i, size, TARN_INTERMEDIATE);
    layer->convolution_backward =
        op(building, "convolution_backward", i, inputs, TARN_TENSORS(layer->dx, layer->dweight));
}

struct training_graph training_graph(unsigned layers)
{
    struct training_graph result = {.layers_count = layers};
    struct tarn_error error;
    struct building building = {.builder = tarn_builder_create("training")};
    building.stream = tarn_builder_stream(building.builder, "compute");
    tarn_tensor at = tensor(&building, "data", 0, 512, TARN_INPUT);
    for (unsigned i = 0; i < layers; i++) {
        forward(&building, &result.layers[i], i, at);
        at = result.layers[i].pooled;
    }
    tarn_tensor gradient =
        tensor(&building, "gradient", 0, TRAINING_BYTES >> layers, TARN_INTERMEDIATE);
    op(&building, "loss", 0, TARN_TENSORS(at), TARN_TENSORS(gradient));
    for (unsigned i = layers; i-- > 0; gradient = result.layers[i].dx)
        backward(&building, &result.layers[i], i, gradient);
    if (tarn_builder_finish(building.builder, &result.graph, &error) != TARN_OK) {
        fprintf(stderr, "training_graph: %s\n", error.text);
        abort();
    }
    return result;
}
