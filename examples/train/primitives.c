/* Idea: a oneDNN primitive is an op of Tarn. The table says what it reads and writes, `describe`
 * with which descriptor it is made. It is created when the graph is built, with memory objects that
 * have no memory; the op's call sets their addresses and executes it.
 * Source: oneDNN's developer guide (version 2, C API).
 * Traps: setting an address writes zeros to the padding of blocked layouts, so it is done only when
 * the address is another one. The number of OpenMP threads belongs to the thread that calls; with
 * one, the bits do not depend on the machine's load.
 * Cost: in an arena, where addresses stay, a call costs what dnnl_primitive_execute costs. */
#include <omp.h>
#include <string.h>

#include "tape.h"

static const struct use {
    const char *kind;
    enum role reads[8], writes[5];
    enum role over;             /* what it reads here, its first output may be written over */
    enum primitive other;       /* another implementation, which a budget may choose */
    enum primitive backward[2]; /* the ops of the backward pass */
} uses[] = {
    [CONV] = {"convolution", {X, W}, {Y}, .backward = {CONV_DATA, CONV_WEIGHTS}},
    [CONV_DATA] = {"convolution_backward_data", {D(Y), W}, {D(X)}},
    [CONV_WEIGHTS] = {"convolution_backward_weights", {X, D(Y)}, {D(W)}},
    [POOL] = {"pool", {X}, {Y, MASK}, .backward = {POOL_BACK}},
    [POOL_BACK] = {"pool_backward", {D(Y), MASK}, {D(X)}},
    [LINEAR] = {"linear", {X, W, B}, {Y}, .backward = {LINEAR_DATA, LINEAR_WEIGHTS}},
    [LINEAR_DATA] = {"linear_backward_data", {D(Y), W}, {D(X)}},
    [LINEAR_WEIGHTS] = {"linear_backward_weights", {X, D(Y)}, {D(W), D(B)}},
    [BATCH] = {"batch_norm",
               {X, SCALE, SHIFT},
               {Y, MEAN, VARIANCE, MASK},
               .other = BATCH_AGAIN,
               .backward = {BATCH_BACK}},
    [BATCH_AGAIN] = {"batch_norm", {X, SCALE, SHIFT, MEAN, VARIANCE}, {Y, MASK}},
    [BATCH_BACK] = {"batch_norm_backward",
                    {D(Y), X, MEAN, VARIANCE, SCALE, SHIFT, MASK},
                    {D(X), D(SCALE), D(SHIFT)},
                    .over = D(Y)},
    [ROWS] = {"layer_norm",
              {X, SCALE, SHIFT},
              {Y, MEAN, VARIANCE},
              .other = ROWS_AGAIN,
              .backward = {ROWS_BACK}},
    [ROWS_AGAIN] = {"layer_norm", {X, SCALE, SHIFT, MEAN, VARIANCE}, {Y}},
    [ROWS_BACK] = {"layer_norm_backward",
                   {D(Y), X, MEAN, VARIANCE, SCALE, SHIFT},
                   {D(X), D(SCALE), D(SHIFT)},
                   .over = D(Y)},
    [GELU] = {"gelu", {X}, {Y}, .over = X, .backward = {GELU_BACK}},
    [GELU_BACK] = {"gelu_backward", {D(Y), X}, {D(X)}, .over = D(Y)},
    [SOFTMAX] = {"softmax", {X}, {Y}, .over = X, .backward = {SOFTMAX_BACK}},
    [SOFTMAX_BACK] = {"softmax_backward", {Y, D(Y)}, {D(X)}, .over = D(Y)},
    [ADD] = {"add", {X, Z}, {Y}, .over = X},
    [MATMUL] = {"matmul", {X, W}, {Y}},
};

/* oneDNN's words for what a layer reads and writes. */
static const struct {
    int value, gradient;
    const char *name; /* of tensors; a gradient's begins with a d */
} roles[ROLES] = {
    [X] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_SRC, "x"},
    [Z] = {DNNL_ARG_SRC_1, 0, "z"},
    [W] = {DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_WEIGHTS, "w"},
    [B] = {DNNL_ARG_BIAS, DNNL_ARG_DIFF_BIAS, "b"},
    [SCALE] = {DNNL_ARG_SCALE, DNNL_ARG_DIFF_SCALE, "scale"},
    [SHIFT] = {DNNL_ARG_SHIFT, DNNL_ARG_DIFF_SHIFT, "shift"},
    [MEAN] = {DNNL_ARG_MEAN, 0, "mean"},
    [VARIANCE] = {DNNL_ARG_VARIANCE, 0, "variance"},
    [MASK] = {DNNL_ARG_WORKSPACE, 0, "mask"},
    [Y] = {DNNL_ARG_DST, DNNL_ARG_DIFF_DST, "y"},
};

static int argument_of(enum role role)
{
    return role < ROLES ? roles[role].value : roles[role - ROLES].gradient;
}

/* Writes oneDNN's descriptor of what a layer does. */
static dnnl_status_t describe(const struct layer *l, enum primitive primitive, void *d)
{
    static const dnnl_dims_t none = {0, 0}, one = {1, 1}, two = {2, 2};
    static const dnnl_alg_kind_t direct = dnnl_convolution_direct, gelu = dnnl_eltwise_gelu_erf,
                                 maximum = dnnl_pooling_max;
    const dnnl_prop_kind_t training = dnnl_forward_training, back = dnnl_backward;
    unsigned rows = dnnl_use_scale | dnnl_use_shift, batch = rows | dnnl_fuse_norm_relu;
    const dnnl_memory_desc_t *x = &l->values[X].md, *z = &l->values[Z].md, *w = &l->values[W].md,
                             *b = &l->values[B].md, *mean = &l->values[MEAN].md,
                             *y = &l->values[Y].md, *dy = &l->values[D(Y)].md;
    const dnnl_memory_desc_t any = w->ndims == 4 ? layout(dnnl_format_tag_any, 4, w->dims) : *w;
    const int axis = y->ndims - 1;
    const float epsilon = 1e-5f;
    switch (primitive) {
    case CONV:
        return dnnl_convolution_forward_desc_init(d, training, direct, x, &any, NULL, y, one, one,
                                                  one);
    case CONV_DATA:
        return dnnl_convolution_backward_data_desc_init(d, direct, x, &any, dy, one, one, one);
    case CONV_WEIGHTS:
        return dnnl_convolution_backward_weights_desc_init(d, direct, x, &any, NULL, dy, one, one,
                                                           one);
    case POOL:
        return dnnl_pooling_v2_forward_desc_init(d, training, maximum, x, y, two, two, none, none,
                                                 none);
    case POOL_BACK:
        return dnnl_pooling_v2_backward_desc_init(d, maximum, x, dy, two, two, none, none, none);
    case LINEAR: return dnnl_inner_product_forward_desc_init(d, training, x, w, b, y);
    case LINEAR_DATA: return dnnl_inner_product_backward_data_desc_init(d, x, w, dy);
    case LINEAR_WEIGHTS: return dnnl_inner_product_backward_weights_desc_init(d, x, w, b, dy);
    case BATCH_AGAIN: batch |= dnnl_use_global_stats; /* falls through */
    case BATCH: return dnnl_batch_normalization_forward_desc_init(d, training, x, epsilon, batch);
    case BATCH_BACK:
        return dnnl_batch_normalization_backward_desc_init(d, back, dy, x, epsilon, batch);
    case ROWS_AGAIN: rows |= dnnl_use_global_stats; /* falls through */
    case ROWS:
        return dnnl_layer_normalization_forward_desc_init(d, training, x, mean, epsilon, rows);
    case ROWS_BACK:
        return dnnl_layer_normalization_backward_desc_init(d, back, dy, x, mean, epsilon, rows);
    case GELU: return dnnl_eltwise_forward_desc_init(d, training, gelu, x, 0, 0);
    case GELU_BACK: return dnnl_eltwise_backward_desc_init(d, gelu, dy, x, 0, 0);
    case SOFTMAX: return dnnl_softmax_v2_forward_desc_init(d, training, l->algorithm, x, y, axis);
    case SOFTMAX_BACK: return dnnl_softmax_v2_backward_desc_init(d, l->algorithm, dy, dy, y, axis);
    case ADD: return dnnl_binary_desc_init(d, dnnl_binary_add, x, z, y);
    case MATMUL: return dnnl_matmul_desc_init(d, x, w, NULL, y);
    default: return dnnl_invalid_arguments;
    }
}

/* ---- A primitive as a kernel ---- */

/* One engine and one stream serve all threads: those of a CPU have no state. */
static dnnl_engine_t engine;
static dnnl_stream_t stream;

/* A primitive, and its arguments in the order of an op's inputs, outputs and workspace. */
enum { ARGUMENTS_MAX = 16 };
struct executable {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[ARGUMENTS_MAX];
    uint32_t ids[ARGUMENTS_MAX]; /* their tensors */
    size_t count;
    struct executable *other; /* implementation */
};

static int execute(void *user, const struct tarn_call *call)
{
    const struct executable *e = user;
    if (call->implementation != TARN_NONE) e = e->other;
    for (size_t i = 0; i < e->count; i++) {
        size_t j = i - call->inputs_count;
        void *is, *wanted = i < call->inputs_count    ? call->inputs[i]
                            : j < call->outputs_count ? call->outputs[j]
                                                      : call->workspace;
        dnnl_memory_get_data_handle(e->arguments[i].memory, &is);
        if (is != wanted) dnnl_memory_set_data_handle(e->arguments[i].memory, wanted);
    }
    omp_set_num_threads(1);
    return dnnl_primitive_execute(e->primitive, stream, (int)e->count, e->arguments);
}

void primitives_begin(void)
{
    omp_set_num_threads(1);
    DNN(dnnl_engine_create(&engine, dnnl_cpu, 0));
    DNN(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
}

static void add_argument(struct executable *e, int argument, struct value v)
{
    e->arguments[e->count].arg = argument;
    e->ids[e->count] = v.id;
    DNN(dnnl_memory_create(&e->arguments[e->count++].memory, &v.md, engine, DNNL_MEMORY_NONE));
}

static dnnl_primitive_attr_t attributes(float scale)
{
    dnnl_primitive_attr_t attributes;
    DNN(dnnl_primitive_attr_create(&attributes));
    DNN(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    if (scale > 0) DNN(dnnl_primitive_attr_set_output_scales(attributes, 1, 0, &scale));
    return attributes;
}

static dnnl_memory_desc_t query(const_dnnl_primitive_desc_t pd, int argument)
{
    return *dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, argument);
}

/* Adds an op that copies from one layout to another. */
static void add_reorder(struct tape *t, const char *name, tarn_stream on, struct value from,
                        struct value to)
{
    struct executable *e = zeros(1, sizeof *e);
    dnnl_primitive_desc_t pd;
    DNN(dnnl_reorder_primitive_desc_create(&pd, &from.md, engine, &to.md, engine, attributes(0)));
    DNN(dnnl_primitive_create(&e->primitive, pd));
    add_argument(e, DNNL_ARG_FROM, from);
    add_argument(e, DNNL_ARG_TO, to);
    tape_op(
        t, OP(name, "reorder", on, .inputs = TARN_TENSORS(from.id), .outputs = TARN_TENSORS(to.id)),
        execute, e);
}

/* ---- Ops of a layer ---- */

/* A layer's value for a primitive to read; a parameter is copied by an op of its own, if the
 * primitive wants another layout. */
static struct value input(struct tape *t, const struct layer *l, const char *op, enum role role,
                          dnnl_memory_desc_t wanted)
{
    struct value v = l->values[role];
    if (!l->parameters[role % ROLES] || dnnl_memory_desc_equal(&v.md, &wanted)) return v;
    struct value copy = tape_value(t, named("%s.w", op), wanted);
    add_reorder(t, named("%s.w", op), t->compute, v, copy);
    return copy;
}

/* Makes what a primitive is to write: a parameter's gradient, unless the primitive wants another
 * layout, or a new value. */
static struct value output(struct tape *t, struct layer *l, enum role role,
                           dnnl_memory_desc_t wanted)
{
    struct parameter *p = role > ROLES ? l->parameters[role - ROLES] : NULL;
    struct value *v = &l->values[role];
    if (v->id != TARN_NONE) return *v; /* this is another implementation */
    if (p) *v = tape_gradient(t, p);
    if (p && dnnl_memory_desc_equal(&v->md, &wanted)) return *v;
    const char *name = named("%s.%s%s", l->name, role > ROLES ? "d" : "", roles[role % ROLES].name);
    return *v = tape_value(t, role == Y ? l->name : name, wanted);
}

/* What was written goes where it belongs: gradients to X's producer, or to their parameters. */
static void send(struct tape *t, struct layer *l, enum role role)
{
    struct value *v = &l->values[role];
    if (role == D(X)) tape_collect(t, l->values[X], v->id);
    if (role < ROLES || !l->parameters[role - ROLES]) return;
    struct parameter *p = l->parameters[role - ROLES];
    struct value plain = {p->gradients[t->shard], p->w.md, true};
    if (v->id != plain.id) add_reorder(t, named("%s.plain", l->name), t->weights, *v, plain);
    gradient_complete(t, p);
}

/* Creates a primitive; as: what it is to Tarn. */
static struct executable *prepare(struct tape *t, struct layer *l, const char *op,
                                  enum primitive primitive, struct tarn_implementation *as)
{
    const struct use *use = &uses[primitive];
    struct executable *e = zeros(1, sizeof *e);
    _Alignas(dnnl_rnn_desc_t) char descriptor[sizeof(dnnl_rnn_desc_t)]; /* the largest one */
    dnnl_primitive_desc_t pd;
    dnnl_status_t status = describe(l, primitive, descriptor);
    if (status) fail(TARN_DEVICE, "oneDNN: error %d: the sizes of layer %s do not fit", status, op);
    DNN(dnnl_primitive_desc_create(&pd, descriptor, attributes(l->scale), engine, l->forward));
    DNN(dnnl_primitive_create(&e->primitive, pd));
    for (const enum role *r = use->reads; *r; r++) {
        int argument = argument_of(*r);
        add_argument(e, argument, input(t, l, op, *r, query(pd, argument)));
    }
    as->inputs = (struct tarn_list){e->ids, e->count};
    for (const enum role *r = use->writes; *r; r++) {
        int argument = argument_of(*r);
        add_argument(e, argument, output(t, l, *r, query(pd, argument)));
    }
    as->outputs = (struct tarn_list){e->ids + as->inputs.count, e->count - as->inputs.count};
    struct value scratchpad = {.md = query(pd, DNNL_ARG_SCRATCHPAD)};
    as->workspace = value_bytes(scratchpad);
    if (as->workspace) add_argument(e, DNNL_ARG_SCRATCHPAD, scratchpad);
    return e;
}

struct value tape_primitive(struct tape *t, struct layer *l, enum primitive primitive)
{
    const struct use *use = &uses[primitive];
    const char *back = strstr(use->kind, "_backward");
    const char *op = back ? named("%s.%s", l->name, back + 1) : l->name;
    struct tarn_implementation written = {0}, other = {.name = "from statistics"};
    struct executable *e = prepare(t, l, op, primitive, &written);
    if (use->other) e->other = prepare(t, l, op, use->other, &other);
    const uint32_t over[1][2] = {{l->values[use->over].id, written.outputs.ids[0]}};
    /* What computes gradients of parameters alone is on a stream of its own, if there is one. */
    bool weights = use->writes[0] > ROLES && use->writes[0] != D(X);
    tape_op(t,
            OP(op, use->kind, weights ? t->weights : t->compute, .inputs = written.inputs,
               .outputs = written.outputs, .workspace = written.workspace, .inplace = over,
               .inplace_count = use->over ? 1 : 0, .implementations = &other,
               .implementations_count = use->other ? 1 : 0),
            execute, e);
    if (!l->forward) DNN(dnnl_primitive_get_primitive_desc(e->primitive, &l->forward));
    size_t count = written.outputs.count;
    while (count--) send(t, l, use->writes[count]);
    l->primitive = primitive;
    return l->values[Y];
}

void tape_primitive_backward(struct tape *t, struct layer *l)
{
    const enum primitive *backward = uses[l->primitive].backward;
    for (int i = 0; i < 2 && backward[i]; i++)
        if (uses[backward[i]].writes[0] != D(X) || !l->values[X].fixed)
            tape_primitive(t, l, backward[i]);
}
