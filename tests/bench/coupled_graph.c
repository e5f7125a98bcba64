/* The four kinds of graphs; sizes and choices are drawn from a counter. In a layer of `layers`:
 *
 *     stream 0         x ─┬─► two ops ─┬─► join ─► next x         backward: the same in reverse,
 *     stream 1 .. b       └─► two ops ─┘                          with a gradient in every branch
 *     communication           eight gradients ─► reduced ones
 *     update                  reduced ─► a temporary ─► the end
 *
 * Cost: linear. */
#include "coupled_graph.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKET = 8, OPS_IN_BRANCH = 2, INPUTS_MAX = 64, STREAMS_MAX = 62, KEPT_MAX = 64 };

struct coupled {
    struct tarn_builder *builder;
    const struct coupled_graph_options *options;
    uint64_t draws;
    tarn_tensor *bucket; /* gradients that are not reduced yet, with their sizes */
    uint64_t *bucket_size;
    uint32_t bucket_count;
};

static uint64_t draw(struct coupled *coupled)
{
    uint64_t z = (coupled->options->seed + ++coupled->draws) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t draw_size(struct coupled *coupled)
{
    static const uint64_t units[] = {1, 2, 2, 4, 4, 8, 16};
    uint64_t unit = units[draw(coupled) % (sizeof units / sizeof *units)] << 16;
    return unit * (800 + draw(coupled) % 450) / 1000;
}

static tarn_tensor tensor(struct coupled *coupled, uint64_t size)
{
    return tarn_builder_tensor(coupled->builder,
                               &(struct tarn_tensor_info){.size = size, .kind = TARN_INTERMEDIATE});
}

static tarn_op op(struct coupled *coupled, tarn_stream stream, struct tarn_list inputs,
                  struct tarn_list outputs)
{
    return tarn_builder_op(coupled->builder, &(struct tarn_op_info){.stream = stream,
                                                                    .inputs = inputs,
                                                                    .outputs = outputs,
                                                                    .cost = 10000});
}

static tarn_tensor compute(struct coupled *coupled, tarn_stream stream, struct tarn_list inputs)
{
    tarn_tensor output = tensor(coupled, draw_size(coupled));
    op(coupled, stream, inputs, TARN_TENSORS(output));
    return output;
}

/* ---- Layers ---- */

struct branch {
    tarn_tensor in[OPS_IN_BRANCH], out[OPS_IN_BRANCH];
};

static void reduce(struct coupled *coupled)
{
    uint32_t streams = coupled->options->streams, count = coupled->bucket_count;
    tarn_stream communication = streams >= 3 ? streams - 2 : streams - 1, update = streams - 1;
    tarn_tensor reduced[BUCKET];
    if (count == 0) return;
    for (uint32_t i = 0; i < count; i++) reduced[i] = tensor(coupled, coupled->bucket_size[i]);
    op(coupled, communication, (struct tarn_list){coupled->bucket, count},
       (struct tarn_list){reduced, count});
    for (uint32_t i = 0; i < count; i++) {
        tarn_tensor step = tensor(coupled, coupled->bucket_size[i]);
        op(coupled, update, TARN_TENSORS(reduced[i]), TARN_TENSORS(step));
        op(coupled, update, TARN_TENSORS(step, reduced[i]), (struct tarn_list){0});
    }
    coupled->bucket_count = 0;
}

static tarn_tensor forward(struct coupled *coupled, uint32_t branches, struct branch *layer,
                           tarn_tensor x)
{
    tarn_tensor ends[STREAMS_MAX];
    for (uint32_t b = 0; b < branches; b++) {
        tarn_tensor h = x;
        for (uint32_t k = 0; k < OPS_IN_BRANCH; k++) {
            layer[b].in[k] = h;
            h = layer[b].out[k] = compute(coupled, b, TARN_TENSORS(h));
        }
        ends[b] = h;
    }
    return compute(coupled, 0, (struct tarn_list){ends, branches});
}

static tarn_tensor backward_branch(struct coupled *coupled, uint32_t b, const struct branch *branch,
                                   tarn_tensor upstream)
{
    static const uint64_t weights[] = {1, 4, 4, 16};
    for (uint32_t k = OPS_IN_BRANCH; k-- > 0;) {
        tarn_tensor down = tensor(coupled, draw_size(coupled));
        tarn_tensor outputs[] = {down, TARN_NONE};
        if (k > 0) {
            uint64_t size = weights[draw(coupled) % 4] << 16;
            outputs[1] = tensor(coupled, size);
            coupled->bucket_size[coupled->bucket_count] = size;
            coupled->bucket[coupled->bucket_count++] = outputs[1];
        }
        op(coupled, b, TARN_TENSORS(upstream, branch->in[k], branch->out[k]),
           (struct tarn_list){outputs, k > 0 ? 2 : 1});
        if (coupled->bucket_count == BUCKET) reduce(coupled);
        upstream = down;
    }
    return upstream;
}

static void build_layers(struct coupled *coupled)
{
    uint32_t branches = coupled->options->streams > 3 ? coupled->options->streams - 2 : 1;
    uint32_t count = coupled->options->storages / (branches * 7 + 2) + 1;
    struct branch *layers = calloc((size_t)count * branches, sizeof *layers);
    tarn_tensor bucket[BUCKET], ends[STREAMS_MAX];
    uint64_t bucket_size[BUCKET];
    if (!layers) abort();
    assert(branches <= STREAMS_MAX);
    coupled->bucket = bucket;
    coupled->bucket_size = bucket_size;
    tarn_tensor x = compute(coupled, 0, (struct tarn_list){0});
    for (uint32_t i = 0; i < count; i++)
        x = forward(coupled, branches, layers + (size_t)i * branches, x);
    x = compute(coupled, 0, TARN_TENSORS(x));
    for (uint32_t i = count; i-- > 0;) {
        for (uint32_t b = 0; b < branches; b++)
            ends[b] = backward_branch(coupled, b, &layers[(size_t)i * branches + b], x);
        x = compute(coupled, 0, (struct tarn_list){ends, branches});
    }
    reduce(coupled);
    free(layers);
}

/* ---- Never ---- */

static void build_never(struct coupled *coupled)
{
    uint32_t half = coupled->options->storages / coupled->options->streams / 2;
    tarn_tensor *saved = calloc((size_t)half + 1, sizeof *saved);
    if (!saved) abort();
    for (tarn_stream s = 0; s < coupled->options->streams; s++) {
        tarn_tensor x = compute(coupled, s, (struct tarn_list){0});
        for (uint32_t i = 0; i < half; i++) {
            saved[i] = x;
            x = compute(coupled, s, TARN_TENSORS(x));
        }
        for (uint32_t i = half; i-- > 0;) x = compute(coupled, s, TARN_TENSORS(x, saved[i]));
    }
    free(saved);
}

/* ---- Every so many ops ---- */

/* The outputs that a stream keeps, as a ring. */
struct kept {
    tarn_tensor list[KEPT_MAX];
    uint32_t begin, count;
    tarn_op last;
};

static void add_to_chain(struct coupled *coupled, tarn_stream s, struct kept *kept, tarn_op wait)
{
    tarn_tensor inputs[2], output = tensor(coupled, draw_size(coupled));
    uint32_t count = 0;
    if (kept->count > 0) inputs[count++] = kept->list[(kept->begin + kept->count - 1) % KEPT_MAX];
    if (kept->count > 2 + draw(coupled) % 39) {
        inputs[count++] = kept->list[kept->begin++ % KEPT_MAX];
        kept->count--;
    }
    kept->last = tarn_builder_op(coupled->builder,
                                 &(struct tarn_op_info){.stream = s,
                                                        .inputs = {inputs, count},
                                                        .outputs = TARN_TENSORS(output),
                                                        .control = {&wait, wait != TARN_NONE},
                                                        .cost = 10000});
    kept->list[(kept->begin + kept->count++) % KEPT_MAX] = output;
}

static void build_every(struct coupled *coupled)
{
    uint32_t streams = coupled->options->streams, every = coupled->options->every;
    struct kept *kept = calloc(streams, sizeof *kept);
    if (!kept || every == 0) abort();
    for (uint32_t k = 0; k < coupled->options->storages / streams; k++)
        for (tarn_stream s = 0; s < streams; s++) {
            bool waits = s > 0 && k % every == every - 1;
            add_to_chain(coupled, s, &kept[s], waits ? kept[s - 1].last : TARN_NONE);
        }
    free(kept);
}

/* ---- Randomly ---- */

/* Up to so far back in the list, each power of two as likely as the next one. */
static uint32_t draw_distance(struct coupled *coupled, uint32_t most)
{
    uint64_t distance = UINT64_C(1) << draw(coupled) % 17;
    distance += draw(coupled) % distance;
    return (uint32_t)(distance < most ? distance : most);
}

static void build_randomly(struct coupled *coupled)
{
    uint32_t count = coupled->options->storages;
    tarn_tensor *list = calloc((size_t)count + 1, sizeof *list);
    if (!list) abort();
    for (uint32_t i = 0; i < count; i++) {
        tarn_tensor inputs[3];
        uint32_t inputs_count = 0, most = i < 3 ? i : (uint32_t)(1 + draw(coupled) % 3);
        for (uint32_t k = 0; k < most; k++) {
            tarn_tensor input = list[i - draw_distance(coupled, i)];
            bool twice = false;
            for (uint32_t n = 0; n < inputs_count; n++) twice = twice || inputs[n] == input;
            if (!twice) inputs[inputs_count++] = input;
        }
        list[i] = compute(coupled, (tarn_stream)(draw(coupled) % coupled->options->streams),
                          (struct tarn_list){inputs, inputs_count});
    }
    free(list);
}

/* ---- The whole ---- */

struct tarn_graph *coupled_graph(const struct coupled_graph_options *options)
{
    struct coupled coupled = {.builder = tarn_builder_create("coupled"), .options = options};
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    for (uint32_t s = 0; s < options->streams; s++) tarn_builder_stream(coupled.builder, NULL);
    switch (options->kind) {
    case COUPLED_LAYERS: build_layers(&coupled); break;
    case COUPLED_NEVER: build_never(&coupled); break;
    case COUPLED_EVERY: build_every(&coupled); break;
    case COUPLED_RANDOMLY: build_randomly(&coupled); break;
    }
    if (tarn_builder_finish(coupled.builder, &graph, &error) != TARN_OK) {
        fprintf(stderr, "coupled graph: %s\n", error.text);
        abort();
    }
    return graph;
}
