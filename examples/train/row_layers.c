/* Idea: what works on rows of features, whatever a row is. Gradients of rows have their layout.
 * Source: oneDNN's developer guide; the mnemonic cross entropy is -log p of the wanted class.
 * Cost: nothing while the graph runs but the loss, which is one pass over its input. */
#include <math.h>

#include "fail.h"
#include "layer.h"

/* ---- x w' + b ---- */

static void linear_back(struct tape *t, const struct layer *l, struct value dy)
{
    dnnl_inner_product_desc_t desc;
    DNN(dnnl_inner_product_backward_data_desc_init(&desc, &l->x.md, &l->w->w.md, &dy.md));
    back(t, l, "linear_backward_data", &desc,
         ARGUMENTS({DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, l->w->w}), nothing, 0);
    DNN(dnnl_inner_product_backward_weights_desc_init(&desc, &l->x.md, &l->w->w.md, &l->b->w.md,
                                                      &dy.md));
    struct value dw = tape_parameter_gradient(t, l->w), db = tape_parameter_gradient(t, l->b);
    tape_primitive(t,
                   PRIMITIVE(joined(l->name, ".backward_weights").text, "linear_backward_weights",
                             t->weights, tape_describe(t, &desc, l->forward, 1),
                             ARGUMENTS({DNNL_ARG_SRC, l->x}, {DNNL_ARG_DIFF_DST, dy}),
                             ARGUMENTS({DNNL_ARG_DIFF_WEIGHTS, dw}, {DNNL_ARG_DIFF_BIAS, db}),
                             .in_place = 0));
    tape_complete(t, l->b);
    tape_complete(t, l->w);
}

struct value linear(struct tape *t, const char *name, struct value x, int features)
{
    const dnnl_dims_t weights = {features, x.md.dims[1]}, out = {x.md.dims[0], features};
    dnnl_memory_desc_t w = tape_layout(2, weights, dnnl_ab), y = tape_layout(2, out, dnnl_ab);
    dnnl_memory_desc_t b = tape_layout(1, (dnnl_dims_t){features}, dnnl_a);
    dnnl_inner_product_desc_t desc;
    DNN(dnnl_inner_product_forward_desc_init(&desc, direction(t), &x.md, &w, &b, &y));
    struct layer *l = begin(t, name, linear_back, &desc, x);
    l->w = tape_parameter(t, name, ".w", w, 2 / sqrtf((float)x.md.dims[1]), 0);
    l->b = tape_parameter(t, name, ".b", b, 0, 0);
    return forward(
        t, l, "linear", y,
        ARGUMENTS({DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, l->w->w}, {DNNL_ARG_BIAS, l->b->w}),
        nothing, 0);
}

/* ---- Normalization of each row ---- */

static const unsigned norm_flags = dnnl_use_scale | dnnl_use_shift;

static void layer_norm_back(struct tape *t, const struct layer *l, struct value dy)
{
    dnnl_layer_normalization_desc_t desc;
    DNN(dnnl_layer_normalization_backward_desc_init(&desc, dnnl_backward, &dy.md, &l->x.md,
                                                    &l->saved[0].md, EPSILON, norm_flags));
    struct value dw = tape_parameter_gradient(t, l->w), db = tape_parameter_gradient(t, l->b);
    back(t, l, "layer_norm_backward", &desc,
         ARGUMENTS({DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_SRC, l->x}, {DNNL_ARG_MEAN, l->saved[0]},
                   {DNNL_ARG_VARIANCE, l->saved[1]}, {DNNL_ARG_SCALE, l->w->w},
                   {DNNL_ARG_SHIFT, l->b->w}),
         ARGUMENTS({DNNL_ARG_DIFF_SCALE, dw}, {DNNL_ARG_DIFF_SHIFT, db}), 1);
    tape_complete(t, l->b);
    tape_complete(t, l->w);
}

struct value layer_norm(struct tape *t, const char *name, struct value x)
{
    dnnl_memory_desc_t by_row = tape_layout(1, (dnnl_dims_t){x.md.dims[0]}, dnnl_a);
    dnnl_memory_desc_t by_feature = tape_layout(1, (dnnl_dims_t){x.md.dims[1]}, dnnl_a);
    dnnl_layer_normalization_desc_t desc, given;
    DNN(dnnl_layer_normalization_forward_desc_init(&desc, direction(t), &x.md, &by_row, EPSILON,
                                                   norm_flags));
    DNN(dnnl_layer_normalization_forward_desc_init(&given, direction(t), &x.md, &by_row, EPSILON,
                                                   norm_flags | dnnl_use_global_stats));
    struct layer *l = begin(t, name, layer_norm_back, &desc, x);
    l->w = tape_parameter(t, name, ".scale", by_feature, 0, 1);
    l->b = tape_parameter(t, name, ".shift", by_feature, 0, 0);
    const struct argument *in =
        ARGUMENTS({DNNL_ARG_SRC, x}, {DNNL_ARG_SCALE, l->w->w}, {DNNL_ARG_SHIFT, l->b->w});
    if (!t->training) return forward(t, l, "layer_norm", x.md, in, nothing, 0);
    struct value mean = l->saved[0] = tape_value(t, name, ".mean", by_row, false);
    struct value variance = l->saved[1] = tape_value(t, name, ".variance", by_row, false);
    l->y = tape_value(t, name, "", x.md, true);
    struct primitive from_statistics = {
        .name = "from statistics",
        .pd = tape_describe(t, &given, NULL, 1),
        .in = ARGUMENTS({DNNL_ARG_SRC, x}, {DNNL_ARG_SCALE, l->w->w}, {DNNL_ARG_SHIFT, l->b->w},
                        {DNNL_ARG_MEAN, mean}, {DNNL_ARG_VARIANCE, variance}),
        .out = ARGUMENTS({DNNL_ARG_DST, l->y})};
    tape_primitive(t, PRIMITIVE(name, "layer_norm", t->compute, l->forward, in,
                                ARGUMENTS({DNNL_ARG_DST, l->y}, {DNNL_ARG_MEAN, mean},
                                          {DNNL_ARG_VARIANCE, variance}),
                                .other = &from_statistics));
    return l->y;
}

/* ---- Element by element ---- */

static void gelu_back(struct tape *t, const struct layer *l, struct value dy)
{
    dnnl_eltwise_desc_t desc;
    DNN(dnnl_eltwise_backward_desc_init(&desc, dnnl_eltwise_gelu_erf, &dy.md, &l->x.md, 0, 0));
    back(t, l, "gelu_backward", &desc, ARGUMENTS({DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_SRC, l->x}),
         nothing, 1);
}

struct value gelu(struct tape *t, const char *name, struct value x)
{
    dnnl_eltwise_desc_t desc;
    DNN(dnnl_eltwise_forward_desc_init(&desc, direction(t), dnnl_eltwise_gelu_erf, &x.md, 0, 0));
    struct layer *l = begin(t, name, gelu_back, &desc, x);
    return forward(t, l, "gelu", x.md, ARGUMENTS({DNNL_ARG_SRC, x}), nothing, 1);
}

static void add_back(struct tape *t, const struct layer *l, struct value dy)
{
    tape_collect(t, l->x, dy.id);
    tape_collect(t, l->z, dy.id);
}

struct value add(struct tape *t, const char *name, struct value x, struct value z)
{
    dnnl_binary_desc_t desc;
    DNN(dnnl_binary_desc_init(&desc, dnnl_binary_add, &x.md, &z.md, &x.md));
    struct layer *l = begin(t, name, add_back, &desc, x);
    l->z = z;
    return forward(t, l, "add", x.md, ARGUMENTS({DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, z}), nothing,
                   1);
}

/* ---- Softmax over the last dimension, and its logarithm ---- */

static void softmax_back(struct tape *t, const struct layer *l, struct value dy)
{
    dnnl_softmax_desc_t desc;
    DNN(dnnl_softmax_backward_desc_init(&desc, &dy.md, &l->y.md, l->y.md.ndims - 1));
    back(t, l, "softmax_backward", &desc, ARGUMENTS({DNNL_ARG_DST, l->y}, {DNNL_ARG_DIFF_DST, dy}),
         nothing, 2);
}

struct value softmax(struct tape *t, const char *name, struct value x)
{
    dnnl_softmax_desc_t desc;
    DNN(dnnl_softmax_forward_desc_init(&desc, direction(t), &x.md, x.md.ndims - 1));
    struct layer *l = begin(t, name, softmax_back, &desc, x);
    return forward(t, l, "softmax", x.md, ARGUMENTS({DNNL_ARG_SRC, x}), nothing, 1);
}

static void log_softmax_back(struct tape *t, const struct layer *l, struct value dy)
{
    dnnl_logsoftmax_desc_t desc;
    DNN(dnnl_logsoftmax_backward_desc_init(&desc, &dy.md, &l->y.md, 1));
    back(t, l, "log_softmax_backward", &desc,
         ARGUMENTS({DNNL_ARG_DST, l->y}, {DNNL_ARG_DIFF_DST, dy}), nothing, 2);
}

struct value log_softmax(struct tape *t, const char *name, struct value x)
{
    dnnl_logsoftmax_desc_t desc;
    DNN(dnnl_logsoftmax_forward_desc_init(&desc, direction(t), &x.md, 1));
    struct layer *l = begin(t, name, log_softmax_back, &desc, x);
    return forward(t, l, "log_softmax", x.md, ARGUMENTS({DNNL_ARG_SRC, x}), nothing, 1);
}

/* ---- The loss ---- */

struct loss {
    struct report report;
    float share; /* of a row in the loss */
    size_t rows, classes;
};

static int lose(void *user, const struct tarn_call *call)
{
    const struct loss *loss = user;
    const float *row = call->inputs[0];
    const int32_t *wanted = call->inputs[1];
    float *gradient = call->outputs[0], *result = call->outputs[1];
    result[0] = result[1] = 0;
    for (size_t i = 0; i < loss->rows; i++, row += loss->classes, gradient += loss->classes) {
        size_t best = 0;
        for (size_t j = 0; j < loss->classes; j++) {
            gradient[j] = (int32_t)j == wanted[i] ? -loss->share : 0;
            if (row[j] > row[best]) best = j;
        }
        result[0] -= row[wanted[i]];
        result[1] += (float)((int32_t)best == wanted[i]);
    }
    if (call->iteration < loss->report.count) {
        float *place = loss->report.place + call->iteration * loss->report.stride;
        place[0] = result[0], place[1] = result[1];
    }
    return 0;
}

void cross_entropy(struct tape *t, struct value logarithms, tarn_tensor wanted, float rows,
                   const struct report *report)
{
    const dnnl_dim_t *d = logarithms.md.dims;
    struct loss loss = {*report, 1 / rows, (size_t)d[0], (size_t)d[1]};
    struct value dy = tape_value(t, "loss", ".gradient", logarithms.md, false);
    tarn_tensor result = tape_tensor(t, "loss", 2 * sizeof(float), TARN_OUTPUT);
    tape_op(t,
            (struct tarn_op_info){.name = "loss",
                                  .kind = "cross_entropy",
                                  .stream = t->compute,
                                  .inputs = TARN_TENSORS(logarithms.id, wanted),
                                  .outputs = TARN_TENSORS(dy.id, result),
                                  .recomputable = TARN_NOT_RECOMPUTABLE},
            (struct kernel){lose, tape_copy(t, &loss, sizeof loss)});
    tape_collect(t, logarithms, dy.id);
}
