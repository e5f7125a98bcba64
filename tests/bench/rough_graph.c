/* Cost of making: linear. Sizes are multiples of 64 bytes, up to some MB. */
#include "rough_graph.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/random_graph.h"

enum { GROUP_MEMBERS = 300, ALIGNMENT_SHIFT_MIN = 10, ALIGNMENT_SHIFTS = 10 };

struct rough {
    const struct rough_graph_options *options;
    struct tarn_builder *builder;
    struct random_source random;
    tarn_tensor *tensors; /* in the order of their producers */
    uint32_t count;
};

const char *rough_kind_name(enum rough_kind kind)
{
    static const char *const names[] = {"mesh",      "groups", "aligned", "unsafe",
                                        "intervals", "loose",  "wide"};
    return names[kind];
}

static uint32_t below(struct rough *rough, uint32_t limit)
{
    return random_below(&rough->random, limit);
}

static tarn_tensor tensor(struct rough *rough, bool aligned, enum tarn_tensor_kind kind)
{
    uint64_t alignment = 0;
    if (aligned) alignment = UINT64_C(1) << (ALIGNMENT_SHIFT_MIN + below(rough, ALIGNMENT_SHIFTS));
    return rough->tensors[rough->count++] = tarn_builder_tensor(
               rough->builder, &(struct tarn_tensor_info){.size = (1 + below(rough, 50000)) * 64ull,
                                                          .kind = kind,
                                                          .alignment = alignment});
}

static void op(struct rough *rough, tarn_stream stream, struct tarn_list inputs, tarn_tensor output,
               uint64_t workspace)
{
    tarn_builder_op(rough->builder, &(struct tarn_op_info){.stream = stream,
                                                           .inputs = inputs,
                                                           .outputs = TARN_TENSORS(output),
                                                           .workspace = workspace,
                                                           .cost = 1000});
}

/* ---- Mesh ---- */

/* Up to three different ones of the last tensors. */
static uint32_t draw_inputs(struct rough *rough, tarn_tensor inputs[3])
{
    static const uint32_t reach[3] = {4, 60, 600};
    uint32_t count = 0;
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t back = 1 + below(rough, reach[k]);
        bool there = back > rough->count;
        for (uint32_t i = 0; i < count && !there; i++)
            there = inputs[i] == rough->tensors[rough->count - back];
        if (!there) inputs[count++] = rough->tensors[rough->count - back];
    }
    return count;
}

static void group_tensors(struct rough *rough)
{
    uint32_t size = rough->count / 8 < GROUP_MEMBERS ? rough->count / 8 : GROUP_MEMBERS;
    for (uint32_t i = 0; size >= 2 && i + 3 * size <= rough->count; i += 3 * size) {
        tarn_tensor members[GROUP_MEMBERS];
        for (uint32_t k = 0; k < size; k++) members[k] = rough->tensors[i + 3 * k];
        tarn_builder_group(rough->builder, (struct tarn_list){members, size});
    }
}

static void build_mesh(struct rough *rough)
{
    const struct rough_graph_options *options = rough->options;
    for (uint32_t i = 0; i < options->storages * 5 / 6; i++) {
        tarn_tensor inputs[3];
        uint32_t count = draw_inputs(rough, inputs);
        bool aligned = options->kind == ROUGH_ALIGNED && i % 3 == 0;
        tarn_tensor output = tensor(rough, aligned, TARN_INTERMEDIATE);
        tarn_stream stream = i % 5 == 0 ? below(rough, options->streams) : 0;
        op(rough, stream, (struct tarn_list){inputs, count}, output,
           i % 5 == 0 ? 4096ull * (1 + below(rough, 500)) : 0);
    }
    if (options->kind == ROUGH_GROUPS) group_tensors(rough);
}

/* ---- The others ---- */

static void build_unsafe(struct rough *rough)
{
    for (uint32_t i = 0; i < rough->options->storages; i++)
        op(rough, i % rough->options->streams, (struct tarn_list){0},
           tensor(rough, i % 3 == 0, TARN_OUTPUT), 0);
}

/* Each tensor is read once, soon or late. */
static void build_intervals(struct rough *rough)
{
    uint32_t count = rough->options->storages;
    uint32_t *next = calloc((size_t)count * 2, sizeof *next), *head = next ? next + count : NULL;
    tarn_tensor *inputs = calloc(count, sizeof *inputs);
    if (!next || !inputs) abort();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t inputs_count = 0;
        for (uint32_t k = head[i]; k != 0; k = next[k - 1])
            inputs[inputs_count++] = rough->tensors[k - 1];
        op(rough, 0, (struct tarn_list){inputs, inputs_count},
           tensor(rough, false, TARN_INTERMEDIATE), 0);
        uint32_t last = i + 1 + below(rough, 1u << below(rough, 14));
        if (last >= count) continue;
        next[i] = head[last];
        head[last] = i + 1;
    }
    free(next);
    free(inputs);
}

/* A chain in every stream with a skip connection, and an arc from another one now and then. */
static void build_loose(struct rough *rough)
{
    uint32_t streams = rough->options->streams;
    for (uint32_t i = 0; i < rough->options->storages; i++) {
        tarn_tensor inputs[3];
        uint32_t count = 0, skip = streams * (2 + below(rough, 100));
        if (i >= streams) inputs[count++] = rough->tensors[i - streams];
        if (i >= skip) inputs[count++] = rough->tensors[i - skip];
        if (i > streams && i % 500 < 2) inputs[count++] = rough->tensors[i - 1];
        op(rough, i % streams, (struct tarn_list){inputs, count},
           tensor(rough, false, TARN_INTERMEDIATE), 0);
    }
}

/* A layer is one tensor for each stream, which reads that of its stream and of the next one; the
 * way back reads what the layer made. */
static void build_wide(struct rough *rough)
{
    uint32_t streams = rough->options->streams;
    uint32_t layers = rough->options->storages / (2 * streams) + 1;
    for (uint32_t i = 0; i < 2 * layers; i++) {
        for (uint32_t s = 0; s < streams; s++) {
            tarn_tensor inputs[3];
            uint32_t count = 0, here = i * streams;
            if (i > 0) inputs[count++] = rough->tensors[here - streams + s];
            if (i > 0 && streams > 1)
                inputs[count++] = rough->tensors[here - streams + (s + 1) % streams];
            if (i > layers) inputs[count++] = rough->tensors[(2 * layers - 1 - i) * streams + s];
            op(rough, s, (struct tarn_list){inputs, count}, tensor(rough, false, TARN_INTERMEDIATE),
               0);
        }
    }
}

struct tarn_graph *rough_graph(const struct rough_graph_options *options)
{
    struct rough rough = {
        .options = options,
        .builder = tarn_builder_create(rough_kind_name(options->kind)),
        .random = {options->seed},
        .tensors = calloc((size_t)options->storages + 4 * options->streams, sizeof *rough.tensors)};
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (!rough.tensors) abort();
    for (uint32_t s = 0; s < options->streams; s++) tarn_builder_stream(rough.builder, NULL);
    switch (options->kind) {
    case ROUGH_UNSAFE: build_unsafe(&rough); break;
    case ROUGH_INTERVALS: build_intervals(&rough); break;
    case ROUGH_LOOSE: build_loose(&rough); break;
    case ROUGH_WIDE: build_wide(&rough); break;
    default: build_mesh(&rough);
    }
    free(rough.tensors);
    if (tarn_builder_finish(rough.builder, &graph, &error) != TARN_OK) {
        fprintf(stderr, "rough graph: %s\n", error.text);
        abort();
    }
    return graph;
}
