/* Idea: a value has a place on the tape where its gradient is collected; a layer that reads the
 * value in its forward pass adds to it in its backward pass.
 * Source: reverse-mode differentiation, as any framework does it.
 * Cost: linear in the layers. Nothing of the tape is touched while the graph runs. */
#include "tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "onednn.h"

/* ---- Memory of the tape ---- */

struct kept {
    struct kept *next;
    max_align_t bytes[];
};

void *tape_keep(struct tape *tape, size_t size)
{
    struct kept *kept = calloc(1, sizeof *kept + size);
    if (!kept) fail(TARN_SYSTEM, "no memory");
    kept->next = tape->kept;
    tape->kept = kept;
    return kept->bytes;
}

void *tape_copy(struct tape *tape, const void *data, size_t size)
{
    return memcpy(tape_keep(tape, size), data, size);
}

void tape_finish(struct tape *tape)
{
    onednn_release(tape);
    while (tape->kept) {
        struct kept *next = tape->kept->next;
        free(tape->kept);
        tape->kept = next;
    }
    free(tape->kernels);
    free(tape->gradients);
    *tape = (struct tape){0};
}

/* ---- Tensors ---- */

size_t tape_bytes(struct value v) { return dnnl_memory_desc_get_size(&v.md); }

/* What lives for one iteration is there once for each shard; the rest is there once. */
static void full_name(const struct tape *tape, const char *name, bool by_shard, char *full)
{
    if (by_shard)
        snprintf(full, FULL_NAME_SIZE, "%.80s/%u", name, tape->shard);
    else
        snprintf(full, FULL_NAME_SIZE, "%.90s", name);
}

tarn_tensor tape_tensor(struct tape *tape, const char *name, size_t size,
                        enum tarn_tensor_kind kind)
{
    char full[FULL_NAME_SIZE];
    full_name(tape, name, kind != TARN_PARAMETER && kind != TARN_OPTIMIZER_STATE, full);
    return tarn_builder_tensor(
        tape->builder, &(struct tarn_tensor_info){.name = full, .size = size, .kind = kind});
}

/* Makes room for one element more; the room doubles whenever `count` is a power of two. */
static void *grown(void *array, uint32_t count, size_t size)
{
    if (count & (count - 1)) return array;
    array = realloc(array, (count ? 2 * (size_t)count : 1) * size);
    if (!array) fail(TARN_SYSTEM, "no memory");
    return array;
}

static uint32_t new_place(struct tape *tape)
{
    tape->gradients = grown(tape->gradients, tape->places_count, sizeof *tape->gradients);
    tape->gradients[tape->places_count] = TARN_NONE;
    return tape->places_count++;
}

struct value tape_value(struct tape *tape, const char *name, const char *suffix,
                        dnnl_memory_desc_t md, bool has_gradient)
{
    char full[FULL_NAME_SIZE];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    struct value v = {.md = md, .place = has_gradient ? new_place(tape) : NO_GRADIENT};
    v.id = tape_tensor(tape, full, tape_bytes(v), TARN_INTERMEDIATE);
    return v;
}

struct value tape_view(struct value v, dnnl_memory_desc_t md)
{
    return (struct value){v.id, md, v.place};
}

/* ---- Ops ---- */

tarn_op tape_op(struct tape *tape, struct tarn_op_info info, struct kernel kernel)
{
    uint32_t op = tape->ops_count;
    tape->kernels = grown(tape->kernels, op, sizeof *tape->kernels);
    tape->kernels[op] = kernel;
    char full[FULL_NAME_SIZE];
    bool once = info.stream == tape->update || info.stream == tape->communication;
    full_name(tape, info.name, !once, full);
    info.name = full;
    if (tape->costs) info.cost = tape->costs[op].written;
    tape->ops_count++;
    return tarn_builder_op(tape->builder, &info);
}

/* ---- Parameters and gradients ---- */

struct parameter *tape_parameter(struct tape *tape, const char *name, const char *suffix,
                                 dnnl_memory_desc_t md, float spread, float center)
{
    uint32_t i = tape->parameters_used++;
    if (i == PARAMETERS_MAX) fail(TARN_USAGE, "a network has too many parameters");
    struct parameter *p = &tape->parameters[i];
    if (i < tape->parameters_count) return p;
    tape->parameters_count++;
    *p = (struct parameter){.w = {.md = md, .place = NO_GRADIENT},
                            .spread = spread,
                            .center = center,
                            .moments = {TARN_NONE, TARN_NONE}};
    snprintf(p->name, sizeof p->name, "%s%s", name, suffix);
    p->w.id = tape_tensor(tape, p->name, tape_bytes(p->w), TARN_PARAMETER);
    p->count = tape_bytes(p->w) / sizeof(float);
    return p;
}

struct statistics *tape_statistics(struct tape *tape, const char *name, size_t size)
{
    uint32_t i = tape->statistics_used++;
    if (i == STATISTICS_MAX) fail(TARN_USAGE, "a network has too many normalizations");
    struct statistics *s = &tape->statistics[i];
    if (i < tape->statistics_count) return s;
    tape->statistics_count++;
    char full[FULL_NAME_SIZE];
    s->size = size;
    snprintf(full, sizeof full, "%s.mean", name);
    s->mean = tape_tensor(tape, full, size, TARN_OPTIMIZER_STATE);
    snprintf(full, sizeof full, "%s.variance", name);
    s->variance = tape_tensor(tape, full, size, TARN_OPTIMIZER_STATE);
    return s;
}

struct layer *tape_layer(struct tape *tape, const char *name, backward_pass backward,
                         dnnl_primitive_desc_t forward)
{
    if (tape->layers_count == LAYERS_MAX) fail(TARN_USAGE, "a network has too many layers");
    struct layer *layer = &tape->layers[tape->layers_count++];
    *layer = (struct layer){.backward = backward, .forward = forward};
    snprintf(layer->name, sizeof layer->name, "%s", name);
    return layer;
}

void tape_collect(struct tape *tape, struct value of, tarn_tensor gradient)
{
    if (of.place == NO_GRADIENT) return;
    tarn_tensor *sum = &tape->gradients[of.place];
    struct value more = {gradient, of.md, NO_GRADIENT};
    *sum = *sum == TARN_NONE ? gradient : onednn_sum(tape, *sum, more);
}

struct value tape_parameter_gradient(struct tape *tape, struct parameter *p)
{
    char full[FULL_NAME_SIZE];
    snprintf(full, sizeof full, "%s.gradient", p->name);
    struct value g = {.md = p->w.md, .place = NO_GRADIENT};
    g.id = tape_tensor(tape, full, tape_bytes(g), TARN_GRADIENT);
    p->gradients[tape->shard] = g.id;
    if (tape->shard == 0) p->gradient = g.id;
    return g;
}

static int add_shard(void *user, const struct tarn_call *call)
{
    (void)user;
    float *sum = call->outputs[0];
    const float *more = call->inputs[1];
    for (size_t i = 0; i < call->output_sizes[0] / sizeof *sum; i++) sum[i] += more[i];
    return 0;
}

/* Shards are summed as a tree, ((0 + 1) + (2 + 3)), each pair as soon as it is there. */
void tape_complete(struct tape *tape, struct parameter *p)
{
    uint32_t s = tape->shard;
    for (uint32_t distance = 1; (s + 1) % (2 * distance) == 0; distance *= 2) {
        uint32_t to = s + 1 - 2 * distance, from = s + 1 - distance;
        char full[FULL_NAME_SIZE];
        snprintf(full, sizeof full, "%s.sum.%u", p->name, distance);
        tarn_tensor sum = tarn_builder_alias(tape->builder, p->gradients[to], full);
        tape_op(tape,
                (struct tarn_op_info){.name = full,
                                      .kind = "add",
                                      .stream = tape->weights,
                                      .inputs = TARN_TENSORS(p->gradients[to], p->gradients[from]),
                                      .outputs = TARN_TENSORS(sum)},
                (struct kernel){add_shard, NULL});
        p->gradients[to] = sum;
    }
    if (s + 1 == tape->shards) tape->gradient_ready(tape, p);
}

void tape_backward(struct tape *tape)
{
    while (tape->layers_count) {
        const struct layer *layer = &tape->layers[--tape->layers_count];
        struct value dy = {.md = layer->y.md, .place = NO_GRADIENT};
        dy.id = tape->gradients[layer->y.place];
        if (dy.id != TARN_NONE) layer->backward(tape, layer, dy);
    }
    tape->parameters_used = tape->statistics_used = 0;
}
