/* Idea: a layer is the primitives of its forward and backward pass, named one after another. A
 * parameter lies plain in memory; a convolution that wants it blocked gets a copy by an op.
 * Saved statistics and masks are tensors like any other, and a normalization can be repeated from
 * its statistics, which a budget may choose.
 * Source: oneDNN's developer guide says what each primitive reads and writes.
 * Cost: nothing while the graph runs. */
#include <math.h>

#include "fail.h"
#include "layer.h"

static const dnnl_dims_t none = {0, 0}, one = {1, 1}, two = {2, 2};

/* ---- Convolution ---- */

static dnnl_memory_desc_t any_layout(dnnl_memory_desc_t md)
{
    return tape_layout(md.ndims, md.dims, dnnl_format_tag_any);
}

static void conv_back_weights(struct tape *t, const struct layer *l, struct value dy)
{
    dnnl_convolution_desc_t desc;
    dnnl_memory_desc_t any = any_layout(l->w->w.md);
    DNN(dnnl_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, &l->x.md, &any,
                                                    NULL, &dy.md, one, one, one));
    dnnl_primitive_desc_t pd = tape_describe(t, &desc, l->forward, 1);
    struct value dw =
        tape_value(t, l->name, ".dw", tape_wants(pd, dnnl_query_diff_weights_md), false);
    tape_primitive(t, PRIMITIVE(joined(l->name, ".backward_weights").text,
                                "convolution_backward_weights", t->weights, pd,
                                ARGUMENTS({DNNL_ARG_SRC, l->x}, {DNNL_ARG_DIFF_DST, dy}),
                                ARGUMENTS({DNNL_ARG_DIFF_WEIGHTS, dw}), .in_place = 0));
    tape_reorder(t, joined(l->name, ".dw.plain").text, t->weights, dw,
                 tape_parameter_gradient(t, l->w));
    tape_complete(t, l->w);
}

static void conv_back(struct tape *t, const struct layer *l, struct value dy)
{
    dnnl_convolution_desc_t desc;
    dnnl_memory_desc_t any = any_layout(l->w->w.md);
    DNN(dnnl_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, &l->x.md, &any,
                                                 &dy.md, one, one, one));
    if (l->x.place != NO_GRADIENT) {
        dnnl_primitive_desc_t pd = tape_describe(t, &desc, l->forward, 1);
        struct value w = tape_in_layout(t, joined(l->name, ".w.backward").text, l->w->w,
                                        tape_wants(pd, dnnl_query_weights_md));
        back(t, l, "convolution_backward_data", &desc,
             ARGUMENTS({DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, w}), nothing, 0);
    }
    conv_back_weights(t, l, dy);
}

struct value conv(struct tape *t, const char *name, struct value x, int channels)
{
    const dnnl_dim_t *d = x.md.dims;
    const dnnl_dims_t weights = {channels, d[1], 3, 3}, out = {d[0], channels, d[2], d[3]};
    dnnl_memory_desc_t any = tape_layout(4, weights, dnnl_format_tag_any);
    dnnl_memory_desc_t y = tape_layout(4, out, dnnl_nhwc);
    dnnl_convolution_desc_t desc;
    DNN(dnnl_convolution_forward_desc_init(&desc, direction(t), dnnl_convolution_direct, &x.md,
                                           &any, NULL, &y, one, one, one));
    struct layer *l = begin(t, name, conv_back, &desc, x);
    l->w = tape_parameter(t, name, ".w", tape_layout(4, weights, dnnl_oihw),
                          2.4f / sqrtf(9 * (float)d[1]), 0);
    struct value w = tape_in_layout(t, joined(name, ".w.forward").text, l->w->w,
                                    tape_wants(l->forward, dnnl_query_weights_md));
    return forward(t, l, "convolution", y, ARGUMENTS({DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}),
                   nothing, 0);
}

/* ---- Normalization over the batch, and max(0, x), in one primitive ---- */

static const unsigned norm_flags = dnnl_use_scale | dnnl_use_shift | dnnl_fuse_norm_relu;

static void norm_relu_back(struct tape *t, const struct layer *l, struct value dy)
{
    dnnl_batch_normalization_desc_t desc;
    DNN(dnnl_batch_normalization_backward_desc_init(&desc, dnnl_backward, &dy.md, &l->x.md, EPSILON,
                                                    norm_flags));
    struct value dw = tape_parameter_gradient(t, l->w), db = tape_parameter_gradient(t, l->b);
    back(t, l, "batch_norm_backward", &desc,
         ARGUMENTS({DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_SRC, l->x}, {DNNL_ARG_MEAN, l->saved[0]},
                   {DNNL_ARG_VARIANCE, l->saved[1]}, {DNNL_ARG_SCALE, l->w->w},
                   {DNNL_ARG_SHIFT, l->b->w}, {DNNL_ARG_WORKSPACE, l->saved[2]}),
         ARGUMENTS({DNNL_ARG_DIFF_SCALE, dw}, {DNNL_ARG_DIFF_SHIFT, db}), 1);
    tape_complete(t, l->b);
    tape_complete(t, l->w);
}

/* Statistics for inference follow those of the first shard slowly. */
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

static void add_follow(struct tape *t, const struct layer *l, const struct statistics *s)
{
    if (t->shard > 0) return;
    tarn_tensor mean = tarn_builder_alias(t->builder, s->mean, joined(l->name, ".mean.new").text);
    tarn_tensor variance =
        tarn_builder_alias(t->builder, s->variance, joined(l->name, ".variance.new").text);
    tape_op(t,
            (struct tarn_op_info){
                .name = joined(l->name, ".follow").text,
                .kind = "update_statistics",
                .stream = t->update,
                .inputs = TARN_TENSORS(l->saved[0].id, l->saved[1].id, s->mean, s->variance),
                .outputs = TARN_TENSORS(mean, variance)},
            (struct kernel){follow, NULL});
}

static struct value norm_relu_training(struct tape *t, struct layer *l, dnnl_primitive_desc_t given)
{
    dnnl_memory_desc_t statistics = l->w->w.md;
    struct value y = l->y = tape_value(t, l->name, "", l->x.md, true);
    struct value mean = l->saved[0] = tape_value(t, l->name, ".mean", statistics, false);
    struct value variance = l->saved[1] = tape_value(t, l->name, ".variance", statistics, false);
    struct value mask = l->saved[2] =
        tape_value(t, l->name, ".mask", tape_wants(l->forward, dnnl_query_workspace_md), false);
    struct primitive from_statistics = {
        .name = "from statistics",
        .pd = given,
        .in = ARGUMENTS({DNNL_ARG_SRC, l->x}, {DNNL_ARG_SCALE, l->w->w}, {DNNL_ARG_SHIFT, l->b->w},
                        {DNNL_ARG_MEAN, mean}, {DNNL_ARG_VARIANCE, variance}),
        .out = ARGUMENTS({DNNL_ARG_DST, y}, {DNNL_ARG_WORKSPACE, mask})};
    tape_primitive(t,
                   PRIMITIVE(l->name, "batch_norm", t->compute, l->forward,
                             ARGUMENTS({DNNL_ARG_SRC, l->x}, {DNNL_ARG_SCALE, l->w->w},
                                       {DNNL_ARG_SHIFT, l->b->w}),
                             ARGUMENTS({DNNL_ARG_DST, y}, {DNNL_ARG_MEAN, mean},
                                       {DNNL_ARG_VARIANCE, variance}, {DNNL_ARG_WORKSPACE, mask}),
                             .other = &from_statistics));
    return y;
}

struct value norm_relu(struct tape *t, const char *name, struct value x)
{
    dnnl_memory_desc_t by_channel = tape_layout(1, (dnnl_dims_t){x.md.dims[1]}, dnnl_a);
    dnnl_batch_normalization_desc_t desc, given;
    DNN(dnnl_batch_normalization_forward_desc_init(&desc, direction(t), &x.md, EPSILON,
                                                   norm_flags));
    DNN(dnnl_batch_normalization_forward_desc_init(&given, direction(t), &x.md, EPSILON,
                                                   norm_flags | dnnl_use_global_stats));
    struct layer *l = begin(t, name, norm_relu_back, t->training ? &desc : &given, x);
    l->w = tape_parameter(t, name, ".scale", by_channel, 0, 1);
    l->b = tape_parameter(t, name, ".shift", by_channel, 0, 0);
    const struct statistics *s = tape_statistics(t, name, (size_t)x.md.dims[1] * sizeof(float));
    if (t->training) {
        norm_relu_training(t, l, tape_describe(t, &given, NULL, 1));
        add_follow(t, l, s);
        return l->y;
    }
    return forward(t, l, "batch_norm", x.md,
                   ARGUMENTS({DNNL_ARG_SRC, x}, {DNNL_ARG_SCALE, l->w->w},
                             {DNNL_ARG_SHIFT, l->b->w},
                             {DNNL_ARG_MEAN, {s->mean, by_channel, NO_GRADIENT}},
                             {DNNL_ARG_VARIANCE, {s->variance, by_channel, NO_GRADIENT}}),
                   nothing, 1);
}

/* ---- Maximum of 2 x 2 ---- */

static void max_pool_back(struct tape *t, const struct layer *l, struct value dy)
{
    dnnl_pooling_v2_desc_t desc;
    DNN(dnnl_pooling_v2_backward_desc_init(&desc, dnnl_pooling_max, &l->x.md, &dy.md, two, two,
                                           none, none, none));
    back(t, l, "pool_backward", &desc,
         ARGUMENTS({DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WORKSPACE, l->saved[0]}), nothing, 0);
}

struct value max_pool(struct tape *t, const char *name, struct value x)
{
    const dnnl_dim_t *d = x.md.dims;
    const dnnl_dims_t out = {d[0], d[1], d[2] / 2, d[3] / 2};
    dnnl_memory_desc_t y = tape_layout(4, out, dnnl_nhwc);
    dnnl_pooling_v2_desc_t desc;
    DNN(dnnl_pooling_v2_forward_desc_init(&desc, direction(t), dnnl_pooling_max, &x.md, &y, two,
                                          two, none, none, none));
    struct layer *l = begin(t, name, max_pool_back, &desc, x);
    if (!t->training) return forward(t, l, "pool", y, ARGUMENTS({DNNL_ARG_SRC, x}), nothing, 0);
    l->saved[0] =
        tape_value(t, name, ".where", tape_wants(l->forward, dnnl_query_workspace_md), false);
    return forward(t, l, "pool", y, ARGUMENTS({DNNL_ARG_SRC, x}),
                   ARGUMENTS({DNNL_ARG_WORKSPACE, l->saved[0]}), 0);
}

struct value flat(struct value x)
{
    const dnnl_dim_t *d = x.md.dims;
    return tape_view(x, tape_layout(2, (dnnl_dims_t){d[0], d[1] * d[2] * d[3]}, dnnl_ab));
}
