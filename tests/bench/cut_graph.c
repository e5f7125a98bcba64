/* Training steps of L layers, one behind the other, each layer in the stream that the cut says:
 *
 *     x ─► layer 0 ─► layer 1 ─► ... ─► loss ─► back L-1 ─► ... ─► back 0 ─► x of the next step
 *           │ saved                                ▲ reads saved       │ gradients, an update each
 *
 * Sizes are drawn from a counter. Cost: linear. */
#include "cut_graph.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 48, RUN = 4, LAYER_STORAGES = 6, STEP_STORAGES = LAYER_STORAGES * LAYERS };

struct cut {
    struct tarn_builder *builder;
    uint32_t sizes_drawn;
};

static tarn_tensor compute(struct cut *cut, tarn_stream stream, struct tarn_list inputs)
{
    uint64_t draw = ++cut->sizes_drawn * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    tarn_tensor output = tarn_builder_tensor(
        cut->builder,
        &(struct tarn_tensor_info){.size = 512 + draw % 1024 * 4096, .kind = TARN_INTERMEDIATE});
    tarn_builder_op(cut->builder, &(struct tarn_op_info){.stream = stream,
                                                         .inputs = inputs,
                                                         .outputs = TARN_TENSORS(output),
                                                         .cost = 10000});
    return output;
}

static tarn_stream stream_of_layer(const struct cut_graph_options *options, tarn_stream own,
                                   uint32_t layer)
{
    return options->kind == CUT_CHAIN ? layer / RUN % options->streams : own;
}

/* One step; `own` is the stream of an uncoupled network. */
static tarn_tensor step(struct cut *cut, const struct cut_graph_options *options, tarn_stream own,
                        uint32_t first_layer, tarn_tensor x)
{
    tarn_tensor saved[LAYERS], inner[LAYERS];
    for (uint32_t i = 0; i < LAYERS; i++) {
        tarn_stream stream = stream_of_layer(options, own, first_layer + i);
        inner[i] = compute(cut, stream, TARN_TENSORS(x));
        x = saved[i] = compute(cut, stream, TARN_TENSORS(inner[i], x));
    }
    for (uint32_t i = LAYERS; i-- > 0;) {
        tarn_stream stream = stream_of_layer(options, own, first_layer + i);
        tarn_tensor back = compute(cut, stream, TARN_TENSORS(x, saved[i]));
        x = compute(cut, stream, TARN_TENSORS(back, inner[i]));
        tarn_tensor gradient = compute(cut, stream, TARN_TENSORS(back, saved[i]));
        compute(cut, stream, TARN_TENSORS(gradient));
    }
    return x;
}

struct tarn_graph *cut_graph(const struct cut_graph_options *options)
{
    uint32_t streams = options->streams, steps = options->storages / STEP_STORAGES;
    struct cut cut = {.builder = tarn_builder_create("cut")};
    tarn_tensor *x = calloc((size_t)streams + 1, sizeof *x);
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (!x) abort();
    for (uint32_t s = 0; s < streams; s++) tarn_builder_stream(cut.builder, NULL);
    uint32_t networks = options->kind == CUT_CHAIN ? 1 : streams;
    for (uint32_t s = 0; s < networks; s++)
        x[s] =
            s == 0 ? compute(&cut, s, (struct tarn_list){0}) : compute(&cut, s, TARN_TENSORS(x[0]));
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t s = i % networks;
        /* Every eighth step reads what stream 0 has. */
        if (s > 0 && i / networks % 8 == 7) x[s] = compute(&cut, s, TARN_TENSORS(x[s], x[0]));
        x[s] = step(&cut, options, s, i * LAYERS, x[s]);
    }
    free(x);
    if (tarn_builder_finish(cut.builder, &graph, &error) != TARN_OK) {
        fprintf(stderr, "cut graph: %s\n", error.text);
        abort();
    }
    return graph;
}
