/* Idea: a layer says which parameters it has, in which layout it writes, and which primitive does
 * it. Heads of an attention are views: q, k and v are rows [batch * length, features]; as [batch,
 * head, position, d] with the right strides they are what a product of matrices reads and writes,
 * without a copy.
 * Source: A. Vaswani et al., "Attention is all you need", 2017; Radford et al., 2019 (norms first).
 * Cost: an embedding is one pass over its rows; the rest is oneDNN's. */
#include <math.h>
#include <string.h>

#include "tape.h"

/* A parameter of the layer, which its op reads in this role. */
static void learn(struct tape *t, struct layer *l, enum role role, const char *suffix,
                  dnnl_memory_desc_t md, float spread, float center)
{
    l->parameters[role] = tape_parameter(t, named("%s%s", l->name, suffix), md, spread, center);
    l->values[role] = l->parameters[role]->w;
}

struct value conv(struct tape *t, const char *name, struct value x, int channels)
{
    const dnnl_dim_t *d = x.md.dims;
    struct layer *l = tape_layer(t, name, x, LAYOUT(dnnl_nhwc, d[0], channels, d[2], d[3]));
    dnnl_memory_desc_t w = LAYOUT(dnnl_oihw, channels, d[1], 3, 3);
    learn(t, l, W, ".w", w, 2.4f / sqrtf(9 * (float)d[1]), 0);
    return tape_primitive(t, l, CONV);
}

struct value max_pool(struct tape *t, const char *name, struct value x)
{
    const dnnl_dim_t *d = x.md.dims;
    dnnl_memory_desc_t y = LAYOUT(dnnl_nhwc, d[0], d[1], d[2] / 2, d[3] / 2);
    return tape_primitive(t, tape_layer(t, name, x, y), POOL);
}

struct value flat(struct value x)
{
    const dnnl_dim_t *d = x.md.dims;
    return (struct value){x.id, LAYOUT(dnnl_ab, d[0], d[1] * d[2] * d[3]), x.fixed};
}

struct value linear(struct tape *t, const char *name, struct value x, int features)
{
    const dnnl_dim_t rows = x.md.dims[0], width = x.md.dims[1];
    struct layer *l = tape_layer(t, name, x, LAYOUT(dnnl_ab, rows, features));
    learn(t, l, W, ".w", LAYOUT(dnnl_ab, features, width), 2 / sqrtf((float)width), 0);
    learn(t, l, B, ".b", LAYOUT(dnnl_a, features), 0, 0);
    return tape_primitive(t, l, LINEAR);
}

/* ---- Normalization ---- */

static struct layer *norm(struct tape *t, const char *name, struct value x)
{
    struct layer *l = tape_layer(t, name, x, x.md);
    learn(t, l, SCALE, ".scale", LAYOUT(dnnl_a, x.md.dims[1]), 0, 1);
    learn(t, l, SHIFT, ".shift", LAYOUT(dnnl_a, x.md.dims[1]), 0, 0);
    return l;
}

struct value layer_norm(struct tape *t, const char *name, struct value x)
{
    struct layer *l = norm(t, name, x);
    l->values[MEAN].md = LAYOUT(dnnl_a, x.md.dims[0]);
    return tape_primitive(t, l, ROWS);
}

/* Statistics for evaluation follow those of the first shard slowly. */
static int follow(void *user, const struct tarn_call *call)
{
    (void)user;
    for (int k = 0; k < 2; k++) {
        const float *now = call->inputs[k];
        float *slow = call->outputs[k];
        for (size_t i = 0; i < call->output_sizes[k] / sizeof *slow; i++)
            slow[i] = .9f * slow[i] + .1f * now[i];
    }
    return 0;
}

struct value norm_relu(struct tape *t, const char *name, struct value x)
{
    dnnl_memory_desc_t md = LAYOUT(dnnl_a, x.md.dims[1]);
    struct layer *l = norm(t, name, x);
    struct value *mean = &l->values[MEAN], *variance = &l->values[VARIANCE];
    struct value slow_mean = tape_parameter(t, named("%s.mean", name), md, 0, 0)->w;
    struct value slow_variance = tape_parameter(t, named("%s.variance", name), md, 0, 0)->w;
    if (!t->training) {
        *mean = slow_mean, *variance = slow_variance;
        return tape_primitive(t, l, BATCH_AGAIN);
    }
    struct value y = tape_primitive(t, l, BATCH);
    if (t->shard > 0) return y;
    tarn_tensor next_mean = tarn_builder_alias(t->builder, slow_mean.id, "mean.new");
    tarn_tensor next_variance = tarn_builder_alias(t->builder, slow_variance.id, "variance.new");
    tape_op(t,
            OP(named("%s.follow", name), "update_statistics", t->update,
               .inputs = TARN_TENSORS(mean->id, variance->id, slow_mean.id, slow_variance.id),
               .outputs = TARN_TENSORS(next_mean, next_variance)),
            follow, NULL);
    return y;
}

/* ---- Element by element, and softmax ---- */

struct value gelu(struct tape *t, const char *name, struct value x)
{
    return tape_primitive(t, tape_layer(t, name, x, x.md), GELU);
}

static void add_back(struct tape *t, struct layer *l)
{
    tape_collect(t, l->values[X], l->values[D(Y)].id);
    tape_collect(t, l->values[Z], l->values[D(Y)].id);
}

struct value add(struct tape *t, const char *name, struct value x, struct value z)
{
    struct layer *l = tape_layer(t, name, x, x.md);
    l->values[Z] = z, l->backward = add_back;
    return tape_primitive(t, l, ADD);
}

struct value softmax(struct tape *t, const char *name, struct value x, dnnl_alg_kind_t algorithm)
{
    struct layer *l = tape_layer(t, name, x, x.md);
    l->algorithm = algorithm;
    return tape_primitive(t, l, SOFTMAX);
}

/* ---- Embedding: rows of two tables, by token and by position ---- */

static int embed(void *user, const struct tarn_call *call)
{
    (void)user;
    const size_t rows = call->input_sizes[0] / sizeof(int32_t);
    const size_t features = call->output_sizes[0] / sizeof(float) / rows;
    const size_t length = call->input_sizes[2] / sizeof(float) / features;
    const int32_t *tokens = call->inputs[0];
    const float *by_token = call->inputs[1], *by_position = call->inputs[2];
    float *y = call->outputs[0];
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < features; j++)
            *y++ =
                by_token[(size_t)tokens[i] * features + j] + by_position[i % length * features + j];
    return 0;
}

static int embed_back(void *user, const struct tarn_call *call)
{
    (void)user;
    const size_t rows = call->input_sizes[0] / sizeof(int32_t);
    const size_t features = call->input_sizes[1] / sizeof(float) / rows;
    const size_t length = call->output_sizes[1] / sizeof(float) / features;
    const int32_t *tokens = call->inputs[0];
    const float *dy = call->inputs[1];
    float *by_token = call->outputs[0], *by_position = call->outputs[1];
    memset(by_token, 0, call->output_sizes[0]);
    memset(by_position, 0, call->output_sizes[1]);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < features; j++, dy++) {
            by_token[(size_t)tokens[i] * features + j] += *dy;
            by_position[i % length * features + j] += *dy;
        }
    return 0;
}

static void embedding_back(struct tape *t, struct layer *l)
{
    struct value dw = tape_gradient(t, l->parameters[W]), db = tape_gradient(t, l->parameters[B]);
    tape_op(t,
            OP(named("%s.backward", l->name), "embedding_backward", t->weights,
               .inputs = TARN_TENSORS(l->values[X].id, l->values[D(Y)].id),
               .outputs = TARN_TENSORS(dw.id, db.id)),
            embed_back, NULL);
    gradient_complete(t, l->parameters[B]);
    gradient_complete(t, l->parameters[W]);
}

struct value embedding(struct tape *t, const char *name, tarn_tensor tokens,
                       const int sizes[static 4])
{
    const int batch = sizes[0], length = sizes[1], vocabulary = sizes[2], features = sizes[3];
    dnnl_memory_desc_t md = LAYOUT(dnnl_ab, batch * length, features);
    struct layer *l = tape_layer(t, name, (struct value){.id = tokens}, md);
    l->backward = embedding_back;
    learn(t, l, W, ".tokens", LAYOUT(dnnl_ab, vocabulary, features), .1f, 0);
    learn(t, l, B, ".positions", LAYOUT(dnnl_ab, length, features), .1f, 0);
    struct value y = l->values[Y] = tape_value(t, name, md);
    tape_op(t,
            OP(name, "embedding", t->compute,
               .inputs = TARN_TENSORS(tokens, l->values[W].id, l->values[B].id),
               .outputs = TARN_TENSORS(y.id)),
            embed, NULL);
    return y;
}

/* ---- Attention: products of matrices, one for each text and head ---- */

/* A matrix by rows, or seen transposed. */
static struct value transposed(struct value v)
{
    const dnnl_dim_t *d = v.md.dims, *s = v.md.format_desc.blocking.strides;
    const dnnl_dims_t sizes = {d[0], d[1], d[3], d[2]}, strides = {s[0], s[1], s[3], s[2]};
    struct value turned = v;
    DNN(dnnl_memory_desc_init_by_strides(&turned.md, 4, sizes, dnnl_f32, strides));
    return turned;
}

/* y = scale a b */
static struct value product(struct tape *t, struct layer *l, struct value b, float scale)
{
    l->values[W] = b, l->scale = scale;
    return tape_primitive(t, l, MATMUL);
}

/* Adds scale a b to the gradient of a factor. */
static void product_back(struct tape *t, const struct layer *l, const char *suffix, struct value of,
                         struct value a, struct value b)
{
    struct layer back = layer_new(named("%s%s", l->name, suffix), a, of.md);
    tape_collect(t, of, product(t, &back, b, l->scale).id);
}

/* y = scale x z', of which dx = scale dy z and dz = scale dy' x */
static void scores_back(struct tape *t, struct layer *l)
{
    struct value x = l->values[X], z = transposed(l->values[W]), dy = l->values[D(Y)];
    product_back(t, l, ".dx", x, dy, z);
    product_back(t, l, ".dz", z, transposed(dy), x);
}

/* y = x z, of which dx = dy z' and dz = x' dy */
static void mix_back(struct tape *t, struct layer *l)
{
    struct value x = l->values[X], z = l->values[W], dy = l->values[D(Y)];
    product_back(t, l, ".dx", x, dy, transposed(z));
    product_back(t, l, ".dz", z, transposed(x), dy);
}

struct value attention(struct tape *t, const char *name, struct value x, int batch, int heads)
{
    const dnnl_dim_t features = x.md.dims[1], length = x.md.dims[0] / batch, d = features / heads;
    const dnnl_dims_t sizes = {batch, heads, length, d};
    const dnnl_dims_t strides = {length * features, d, features, 1};
    dnnl_memory_desc_t by_head;
    DNN(dnnl_memory_desc_init_by_strides(&by_head, 4, sizes, dnnl_f32, strides));
    dnnl_memory_desc_t square = LAYOUT(dnnl_abcd, batch, heads, length, length);
    dnnl_memory_desc_t one_square = LAYOUT(dnnl_abcd, 1, 1, length, length);
    struct value mask = tape_parameter(t, "mask", one_square, 0, 0)->w;

    struct value q = linear(t, named("%s.q", name), x, (int)features);
    struct value k = linear(t, named("%s.k", name), x, (int)features);
    struct value v = linear(t, named("%s.v", name), x, (int)features);
    q.md = k.md = v.md = by_head;
    struct layer *scores = tape_layer(t, named("%s.scores", name), q, square);
    scores->backward = scores_back;
    struct value y = product(t, scores, transposed(k), 1 / sqrtf((float)d));
    y = add(t, named("%s.masked", name), y, mask);
    y = softmax(t, named("%s.shares", name), y, dnnl_softmax_accurate);
    struct layer *mixed = tape_layer(t, named("%s.mixed", name), y, by_head);
    mixed->backward = mix_back;
    y = product(t, mixed, v, 1);
    y.md = x.md;
    return linear(t, named("%s.out", name), y, (int)features);
}
