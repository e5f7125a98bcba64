/* Idea: heads are views. q, k and v are rows [batch * length, features]; as [batch, head, position,
 * d] with the right strides they are what a product of matrices reads and writes, without a copy.
 * Source: A. Vaswani et al., "Attention is all you need", 2017; Radford et al., 2019 (norms first).
 * Cost: a product is one primitive; an embedding is one pass over its rows. */
#include <math.h>
#include <string.h>

#include "fail.h"
#include "layer.h"

/* ---- Embedding ---- */

struct embedding {
    size_t rows, length, features, vocabulary;
};

static int embed(void *user, const struct tarn_call *call)
{
    const struct embedding *e = user;
    const int32_t *tokens = call->inputs[0];
    const float *by_token = call->inputs[1], *by_position = call->inputs[2];
    float *y = call->outputs[0];
    for (size_t i = 0; i < e->rows; i++)
        for (size_t j = 0; j < e->features; j++)
            *y++ = by_token[(size_t)tokens[i] * e->features + j] +
                   by_position[i % e->length * e->features + j];
    return 0;
}

static int embed_back(void *user, const struct tarn_call *call)
{
    const struct embedding *e = user;
    const int32_t *tokens = call->inputs[0];
    const float *dy = call->inputs[1];
    float *by_token = call->outputs[0], *by_position = call->outputs[1];
    memset(by_token, 0, e->vocabulary * e->features * sizeof *by_token);
    memset(by_position, 0, e->length * e->features * sizeof *by_position);
    for (size_t i = 0; i < e->rows; i++)
        for (size_t j = 0; j < e->features; j++, dy++) {
            by_token[(size_t)tokens[i] * e->features + j] += *dy;
            by_position[i % e->length * e->features + j] += *dy;
        }
    return 0;
}

static void embedding_back(struct tape *t, const struct layer *l, struct value dy)
{
    struct value dw = tape_parameter_gradient(t, l->w), db = tape_parameter_gradient(t, l->b);
    struct embedding e = {(size_t)dy.md.dims[0], (size_t)l->b->w.md.dims[0], (size_t)dy.md.dims[1],
                          (size_t)l->w->w.md.dims[0]};
    tape_op(t,
            (struct tarn_op_info){.name = joined(l->name, ".backward").text,
                                  .kind = "embedding_backward",
                                  .stream = t->weights,
                                  .inputs = TARN_TENSORS(l->x.id, dy.id),
                                  .outputs = TARN_TENSORS(dw.id, db.id)},
            (struct kernel){embed_back, tape_copy(t, &e, sizeof e)});
    tape_complete(t, l->b);
    tape_complete(t, l->w);
}

struct value embedding(struct tape *t, const char *name, tarn_tensor tokens,
                       const int sizes[static 4])
{
    const int batch = sizes[0], length = sizes[1], vocabulary = sizes[2], features = sizes[3];
    struct layer *l = tape_layer(t, name, embedding_back, NULL);
    l->x = (struct value){.id = tokens, .place = NO_GRADIENT};
    l->w = tape_parameter(t, name, ".tokens",
                          tape_layout(2, (dnnl_dims_t){vocabulary, features}, dnnl_ab), .1f, 0);
    l->b = tape_parameter(t, name, ".positions",
                          tape_layout(2, (dnnl_dims_t){length, features}, dnnl_ab), .1f, 0);
    l->y = tape_value(t, name, "", tape_layout(2, (dnnl_dims_t){batch * length, features}, dnnl_ab),
                      true);
    struct embedding e = {(size_t)(batch * length), (size_t)length, (size_t)features,
                          (size_t)vocabulary};
    tape_op(t,
            (struct tarn_op_info){.name = name,
                                  .kind = "embedding",
                                  .stream = t->compute,
                                  .inputs = TARN_TENSORS(tokens, l->w->w.id, l->b->w.id),
                                  .outputs = TARN_TENSORS(l->y.id)},
            (struct kernel){embed, tape_copy(t, &e, sizeof e)});
    return l->y;
}

/* ---- Products of matrices, one for each text and head ---- */

/* A matrix by rows, or seen transposed. */
static struct value transposed(struct value v)
{
    const dnnl_dim_t *d = v.md.dims, *s = v.md.format_desc.blocking.strides;
    dnnl_memory_desc_t md;
    DNN(dnnl_memory_desc_init_by_strides(&md, 4, (dnnl_dims_t){d[0], d[1], d[3], d[2]}, dnnl_f32,
                                         (dnnl_dims_t){s[0], s[1], s[3], s[2]}));
    return tape_view(v, md);
}

/* y = scale a b */
static void multiply(struct tape *t, const char *name, struct value a, struct value b,
                     struct value y, float scale)
{
    dnnl_matmul_desc_t desc;
    DNN(dnnl_matmul_desc_init(&desc, &a.md, &b.md, NULL, &y.md));
    tape_primitive(t, PRIMITIVE(name, "matmul", t->compute, tape_describe(t, &desc, NULL, scale),
                                ARGUMENTS({DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}),
                                ARGUMENTS({DNNL_ARG_DST, y}), .in_place = 0));
}

/* The gradient of x or z of a product. */
static void product_back(struct tape *t, const struct layer *l, struct value of, const char *suffix,
                         struct value a, struct value b)
{
    struct value d = tape_value(t, l->name, suffix, of.md, false);
    multiply(t, joined(l->name, suffix).text, a, b, d, l->scale);
    tape_collect(t, of, d.id);
}

/* y = scale x z', of which dx = scale dy z and dz = scale dy' x */
static void scores_back(struct tape *t, const struct layer *l, struct value dy)
{
    product_back(t, l, l->x, ".dx", dy, l->z);
    product_back(t, l, l->z, ".dz", transposed(dy), l->x);
}

/* y = x z, of which dx = dy z' and dz = x' dy */
static void mix_back(struct tape *t, const struct layer *l, struct value dy)
{
    product_back(t, l, l->x, ".dx", dy, transposed(l->z));
    product_back(t, l, l->z, ".dz", transposed(l->x), dy);
}

static struct value product(struct tape *t, const char *name, backward_pass backward,
                            struct value x, struct value z, dnnl_memory_desc_t y, float scale)
{
    struct layer *l = tape_layer(t, name, backward, NULL);
    l->x = x, l->z = z, l->scale = scale;
    l->y = tape_value(t, name, "", y, true);
    multiply(t, name, x, backward == scores_back ? transposed(z) : z, l->y, scale);
    return l->y;
}

struct value attention(struct tape *t, const char *name, struct value x, int batch, int heads,
                       struct value mask)
{
    const dnnl_dim_t features = x.md.dims[1], length = x.md.dims[0] / batch, d = features / heads;
    dnnl_memory_desc_t by_head;
    DNN(dnnl_memory_desc_init_by_strides(&by_head, 4, (dnnl_dims_t){batch, heads, length, d},
                                         dnnl_f32,
                                         (dnnl_dims_t){length * features, d, features, 1}));
    struct value q = linear(t, joined(name, ".q").text, x, (int)features);
    struct value k = linear(t, joined(name, ".k").text, x, (int)features);
    struct value v = linear(t, joined(name, ".v").text, x, (int)features);
    dnnl_memory_desc_t square =
        tape_layout(4, (dnnl_dims_t){batch, heads, length, length}, dnnl_abcd);
    struct value scores =
        product(t, joined(name, ".scores").text, scores_back, tape_view(q, by_head),
                tape_view(k, by_head), square, 1 / sqrtf((float)d));
    struct value masked = add(t, joined(name, ".masked").text, scores, mask);
    struct value shares = softmax(t, joined(name, ".shares").text, masked);
    struct value mixed = product(t, joined(name, ".mixed").text, mix_back, shares,
                                 tape_view(v, by_head), by_head, 1);
    return linear(t, joined(name, ".out").text, tape_view(mixed, x.md), (int)features);
}
