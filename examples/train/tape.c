/* Idea: a value's gradient is collected under the value's tensor; a layer that reads the value in
 * its forward pass adds to it in its backward pass.
 * Source: reverse-mode differentiation, as any framework does it.
 * Cost: linear in the layers. Nothing of the tape is touched while the graph runs. */
#include "tape.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *zeros(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) fail(TARN_SYSTEM, "no memory");
    return memory;
}

const char *named(const char *format, ...)
{
    enum { LENGTH_MAX = 96 };
    char *name = zeros(LENGTH_MAX, 1);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, LENGTH_MAX, format, arguments);
    va_end(arguments);
    return name;
}

dnnl_memory_desc_t layout(dnnl_format_tag_t tag, int count, const dnnl_dims_t sizes)
{
    dnnl_memory_desc_t md;
    DNN(dnnl_memory_desc_init_by_tag(&md, count, sizes, dnnl_f32, tag));
    return md;
}

size_t value_bytes(struct value v) { return dnnl_memory_desc_get_size(&v.md); }

tarn_tensor tape_tensor(struct tape *t, const char *name, size_t size, enum tarn_tensor_kind kind)
{
    bool lasts = kind == TARN_PARAMETER || kind == TARN_OPTIMIZER_STATE;
    struct tarn_tensor_info info = {.name = name, .size = size, .kind = kind};
    if (!lasts) info.name = named("%s/%u", name, t->shard); /* there once for each shard */
    tarn_tensor id = tarn_builder_tensor(t->builder, &info);
    if (id >= TENSORS_MAX) fail(TARN_USAGE, "no room for tensor %s", name);
    return id;
}

struct value tape_value(struct tape *t, const char *name, dnnl_memory_desc_t md)
{
    size_t size = dnnl_memory_desc_get_size(&md);
    return (struct value){tape_tensor(t, name, size, TARN_INTERMEDIATE), md, false};
}

struct parameter *tape_parameter(struct tape *t, const char *name, dnnl_memory_desc_t md,
                                 float spread, float center)
{
    struct parameter *p = t->parameters;
    for (; p < t->parameters + t->parameters_count; p++)
        if (!strcmp(p->name, name)) return p;
    if (t->parameters_count++ == PARAMETERS_MAX) fail(TARN_USAGE, "too many parameters");
    tarn_tensor id = tape_tensor(t, name, dnnl_memory_desc_get_size(&md), TARN_PARAMETER);
    *p = (struct parameter){.name = name, .w = {id, md, true}, .spread = spread, .center = center};
    p->moments[0] = p->moments[1] = TARN_NONE;
    return p;
}

struct value tape_gradient(struct tape *t, struct parameter *p)
{
    struct value g = p->w;
    g.id = tape_tensor(t, named("%s.gradient", p->name), value_bytes(g), TARN_GRADIENT);
    p->gradients[t->shard] = g.id;
    if (t->shard == 0) p->gradient = g.id;
    return g;
}

/* ---- Ops ---- */

tarn_op tape_op(struct tape *t, const struct tarn_op_info *info, tarn_kernel run, void *user)
{
    if (t->ops_count == OPS_MAX) fail(TARN_USAGE, "too many ops");
    t->kernels[t->ops_count++] = (struct kernel){run, user};
    struct tarn_op_info op = *info;
    if (op.stream != t->update && op.stream != t->communication)
        op.name = named("%s/%u", op.name, t->shard);
    return tarn_builder_op(t->builder, &op);
}

/* ---- Going backward ---- */

struct layer layer_new(const char *name, struct value x, dnnl_memory_desc_t y)
{
    struct layer l = {.name = name};
    for (int i = 0; i < 2 * ROLES; i++) l.values[i].id = TARN_NONE;
    l.values[X] = x, l.values[Y].md = y;
    return l;
}

struct layer *tape_layer(struct tape *t, const char *name, struct value x, dnnl_memory_desc_t y)
{
    if (t->layers_count == LAYERS_MAX) fail(TARN_USAGE, "too many layers");
    for (uint32_t i = 0; i < t->layers_count; i++)
        if (!strcmp(t->layers[i].name, name)) fail(TARN_USAGE, "two layers are called %s", name);
    struct layer *l = &t->layers[t->layers_count++];
    *l = layer_new(name, x, y);
    return l;
}

void tape_collect(struct tape *t, struct value of, tarn_tensor gradient)
{
    if (of.fixed) return;
    tarn_tensor *sum = &t->gradients[of.id];
    if (*sum == TARN_NONE) {
        *sum = gradient;
        return;
    }
    dnnl_memory_desc_t row = LAYOUT(dnnl_a, (dnnl_dim_t)(value_bytes(of) / sizeof(float)));
    struct layer l = layer_new(named("sum.%u", t->ops_count), (struct value){*sum, row, true}, row);
    l.values[Z] = (struct value){gradient, row, true};
    *sum = tape_primitive(t, &l, ADD).id;
}

void tape_backward(struct tape *t)
{
    while (t->layers_count) {
        struct layer *l = &t->layers[--t->layers_count];
        l->values[D(Y)] = (struct value){t->gradients[l->values[Y].id], l->values[Y].md, true};
        if (l->values[D(Y)].id == TARN_NONE) continue;
        if (l->backward)
            l->backward(t, l);
        else
            tape_primitive_backward(t, l);
    }
}

void tape_begin(struct tape *t, const char *graph_name)
{
    t->builder = tarn_builder_create(graph_name);
    t->copy = t->communication = t->update = TARN_NONE;
    for (uint32_t i = 0; i < TENSORS_MAX; i++) t->gradients[i] = TARN_NONE;
}
