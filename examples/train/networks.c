/* Idea: a layer says which parameters it has and in which layout it writes; a network is what one
 * reads in a paper. Heads of an attention are views: q, k and v are rows [batch * length,
 * features]; as [batch, head, position, d] with the right strides they are what a product of
 * matrices reads and writes, without a copy.
 * Source: Z. Liu et al., "A ConvNet for the 2020s", 2022 (norm and gelu, strides in the place of
 * pools); A. Vaswani et al., "Attention is all you need", 2017; Radford et al., 2019 (norms first).
 * Press et al., "Train short, test long", 2022 (distances in the place of positions).
 * Cost: an embedding is one pass over its rows; the rest is oneDNN's. */
#include <math.h>

#include "train.h"

static dnnl_dim_t elements(const dnnl_memory_desc_t *md)
{
    return (dnnl_dim_t)(md_bytes(md) / sizeof(float));
}

/* ---- Layers: images are [batch, channels, height, width], all else is rows [rows, features] ----
 */

/* 3 x 3; a stride of 2 halves height and width. */
static struct value conv(struct tape *t, struct value x, int channels, int stride)
{
    const dnnl_dim_t *d = x.md.dims;
    dnnl_memory_desc_t table = LAYOUT(dnnl_hwio, channels, d[1], 3, 3);
    struct value w = tape_parameter(t, table, 2.4f / sqrtf(9 * (float)d[1]));
    dnnl_memory_desc_t y = LAYOUT(dnnl_nhwc, d[0], channels, d[2] / stride, d[3] / stride);
    return tape_layer(t, LAYER(CONV, [X] = x, [W] = w, [Y].md = y));
}

/* An image is a row, too. */
static struct value linear(struct tape *t, struct value x, dnnl_dim_t features)
{
    const dnnl_dim_t rows = x.md.dims[0], width = elements(&x.md) / rows;
    struct value w = tape_parameter(t, LAYOUT(dnnl_ab, features, width), 2 / sqrtf((float)width));
    x.md = LAYOUT(dnnl_ab, rows, width);
    return tape_layer(t, LAYER(LINEAR, [X] = x, [W] = w, [Y].md = LAYOUT(dnnl_ab, rows, features)));
}

/* Of each row, or of the channels of each pixel. */
static struct value norm(struct tape *t, struct value x)
{
    const dnnl_memory_desc_t md = x.md;
    const dnnl_dim_t width = md.dims[1], rows = elements(&md) / width;
    dnnl_memory_desc_t each = LAYOUT(dnnl_a, rows);
    x.md = LAYOUT(dnnl_ab, rows, width);
    x = tape_layer(t, LAYER(NORM, [X] = x, [MEAN].md = each, [VARIANCE].md = each, [Y].md = x.md));
    x.md = md;
    return x;
}

static struct value gelu(struct tape *t, struct value x)
{
    return tape_layer(t, LAYER(GELU, [X] = x, [Y].md = x.md));
}

static struct value softmax(struct tape *t, struct value x)
{
    return tape_layer(t, LAYER(SOFTMAX, [X] = x, [Y].md = x.md));
}

static struct value add(struct tape *t, struct value x, struct value z)
{
    return tape_layer(t, LAYER(ADD, [X] = x, [Z] = z, [Y].md = x.md));
}

/* A learnt row for each token. */
static struct value embedding(struct tape *t, struct value x, int features)
{
    struct value w = tape_parameter(t, LAYOUT(dnnl_ab, VOCABULARY, features), .1f);
    dnnl_memory_desc_t y = LAYOUT(dnnl_ab, x.md.dims[0], features);
    return tape_layer(t, LAYER(EMBED, [X] = x, [W] = w, [Y].md = y));
}

/* ---- Attention: softmax(q k' / sqrt(d) + bias) v for each text and head ---- */

/* Every position looks at itself and those before it, the less the further they are. */
static struct value looking_back(struct tape *t)
{
    dnnl_memory_desc_t md = LAYOUT(dnnl_abcd, 1, 1, LENGTH, LENGTH);
    struct value v = {tape_tensor(t, "bias", md_bytes(&md), TARN_INPUT), md, NULL, true};
    float *element = t->memory[v.id];
    for (int i = 0; i < LENGTH; i++)
        for (int j = 0; j < LENGTH; j++) *element++ = j > i ? -1e9f : .2f * (float)(j - i);
    return v;
}

static struct value attention(struct tape *t, struct value x, struct value bias)
{
    enum { HEADS = 4 };
    const dnnl_dim_t features = x.md.dims[1], batch = x.md.dims[0] / LENGTH, d = features / HEADS;
    const dnnl_dims_t sizes = {batch, HEADS, LENGTH, d};
    const dnnl_dims_t strides = {LENGTH * features, d, features, 1};
    dnnl_memory_desc_t square = LAYOUT(dnnl_abcd, batch, HEADS, LENGTH, LENGTH);
    struct value q = linear(t, x, features), k = linear(t, x, features);
    struct value v = linear(t, x, features);
    DNN(dnnl_memory_desc_init_by_strides(&v.md, 4, sizes, dnnl_f32, strides));
    q.md = k.md = v.md;
    struct layer scores = LAYER(LINEAR, [X] = q, [W] = k, [Y].md = square);
    scores.scale = 1 / sqrtf((float)d);
    struct value shares = softmax(t, add(t, tape_layer(t, scores), bias));
    struct value y = tape_layer(t, LAYER(MIX, [X] = shares, [W] = v, [Y].md = v.md));
    y.md = x.md;
    return linear(t, y, features);
}

/* ---- The networks ---- */

static struct value digits(struct tape *t, struct value x, int width)
{
    x = gelu(t, norm(t, conv(t, x, width, 1)));
    x = gelu(t, norm(t, conv(t, x, 2 * width, 2)));
    x = gelu(t, norm(t, conv(t, x, 4 * width, 2)));
    return linear(t, x, DIGITS);
}

enum { BLOCKS = 2 };

static struct value text(struct tape *t, struct value x, int width)
{
    struct value bias = looking_back(t);
    x = embedding(t, x, width);
    for (int i = 0; i < BLOCKS; i++) {
        x = add(t, x, attention(t, norm(t, x), bias));
        x = add(t, x, linear(t, gelu(t, linear(t, norm(t, x), 4 * width)), width));
    }
    return linear(t, norm(t, x), VOCABULARY);
}

struct value network(struct tape *t, tarn_tensor input, int batch)
{
    struct value x = {.id = input, .fixed = true};
    x.md = options.is_text ? LAYOUT(dnnl_a, batch * LENGTH) : LAYOUT(dnnl_nhwc, batch, 1, 8, 8);
    return options.is_text ? text(t, x, options.width) : digits(t, x, options.width);
}
