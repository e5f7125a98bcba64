/* Idea: a layer adds ops to a graph of Tarn, and is remembered: its backward pass adds to the
 * gradients of the values that it read. One oneDNN primitive is one op. The table has the ops of
 * each form of layer, and what they read and write; `describe` is oneDNN's descriptor of them. The
 * primitive is created when the graph is built, with memory objects that have no memory; the op's
 * call sets their addresses and executes it. Its scratchpad is the op's workspace.
 * Source: reverse-mode differentiation, as any framework does it; oneDNN's developer guide (version
 * 2, C API).
 * Trap: the number of OpenMP threads belongs to the thread that calls; with one, the bits do not
 * depend on the machine's load.
 * Cost: in an arena, where addresses stay, a call costs what dnnl_primitive_execute costs. */
#include <omp.h>
#include <string.h>

#include "train.h"

/* ---- Tensors, parameters, ops ---- */

void tape_begin(struct tape *t, const char *graph_name)
{
    t->builder = tarn_builder_create(graph_name);
    if (options.offload) { /* training and evaluation share an arena, so both have both memories */
        tarn_builder_space(t->builder, &(struct tarn_space_info){.name = "cores"});
        tarn_builder_space(t->builder,
                           &(struct tarn_space_info){.name = "second", .kind = TARN_SPACE_PINNED});
    }
    t->compute = tarn_builder_stream(t->builder, "compute");
    for (uint32_t i = 0; i < TENSORS_MAX; i++) t->gradients[i] = TARN_NONE;
}

tarn_tensor tape_tensor(struct tape *t, const char *name, size_t size, enum tarn_tensor_kind kind)
{
    struct tarn_tensor_info info = {.name = name, .size = size, .kind = kind};
    if (kind != TARN_PARAMETER && kind != TARN_OPTIMIZER_STATE)
        info.name = named("%s/%u", name, t->shard); /* there once for each shard */
    tarn_tensor id = tarn_builder_tensor(t->builder, &info);
    if (id >= TENSORS_MAX) fail(TARN_USAGE, "no room for tensor %s", name);
    if (kind >= TARN_PARAMETER) t->memory[id] = lasting(t, size, kind);
    return id;
}

struct value tape_parameter(struct tape *t, dnnl_memory_desc_t md, float spread)
{
    struct parameter *p = &t->parameters[t->layers_count];
    if (p->name) return p->w;
    p->name = named("w.%u", t->layers_count), p->spread = spread;
    p->w = (struct value){tape_tensor(t, p->name, md_bytes(&md), TARN_PARAMETER), md, p, false};
    return p->w;
}

tarn_op tape_op(struct tape *t, const struct tarn_op_info *info, tarn_kernel run, void *user)
{
    if (t->ops_count == OPS_MAX) fail(TARN_USAGE, "too many ops");
    t->kernels[t->ops_count].run = run;
    t->kernels[t->ops_count++].user = user;
    return tarn_builder_op(t->builder, info);
}

int tape_run(void *user, const struct tarn_call *call)
{
    const struct tape *t = user;
    return t->kernels[call->origin].run(t->kernels[call->origin].user, call);
}

/* ---- Kernels in C: a learnt row for each token ---- */

static int embed(void *user, const struct tarn_call *call)
{
    (void)user;
    const size_t rows = call->input_sizes[0] / sizeof(int32_t);
    const size_t row = call->output_sizes[0] / rows; /* bytes */
    const int32_t *tokens = call->inputs[0];
    const char *table = call->inputs[1];
    for (size_t i = 0; i < rows; i++)
        memcpy((char *)call->outputs[0] + i * row, table + (size_t)tokens[i] * row, row);
    return 0;
}

static int embed_back(void *user, const struct tarn_call *call)
{
    (void)user;
    const size_t rows = call->input_sizes[0] / sizeof(int32_t);
    const size_t features = call->input_sizes[1] / sizeof(float) / rows;
    const int32_t *tokens = call->inputs[0];
    const float *dy = call->inputs[1];
    float *table = memset(call->outputs[0], 0, call->output_sizes[0]);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < features; j++) table[(size_t)tokens[i] * features + j] += *dy++;
    return 0;
}

/* ---- What layers do ---- */

/* An op: what it is called, reads and writes. `over`: what it reads there, its first output may be
 * written over. `turned`: the matrices that it reads there are transposed. */
struct op {
    const char *kind;
    enum role reads[8], writes[4], over, turned;
    tarn_kernel run; /* NULL: a primitive */
};
static const struct {
    struct op forward, backward[2];
    struct op again; /* another implementation of the forward op, which a budget may choose */
} forms[] = {
    [CONV] = {{"convolution", {X, W}, {Y}},
              {{"convolution_backward_data", {D(Y), W}, {D(X)}},
               {"convolution_backward_weights", {X, D(Y)}, {D(W)}}}},
    /* y = x w' */
    [LINEAR] = {{"matmul", {X, W}, {Y}, .turned = W},
                {{"matmul_backward", {D(Y), W}, {D(X)}},
                 {"matmul_backward", {D(Y), X}, {D(W)}, .turned = D(Y)}}},
    /* y = x w */
    [MIX] = {{"matmul", {X, W}, {Y}},
             {{"matmul_backward", {D(Y), W}, {D(X)}, .turned = W},
              {"matmul_backward", {X, D(Y)}, {D(W)}, .turned = X}}},
    [NORM] = {{"layer_norm", {X}, {Y, MEAN, VARIANCE}},
              {{"layer_norm_backward", {D(Y), X, MEAN, VARIANCE}, {D(X)}, .over = D(Y)}},
              {"layer_norm", {X, MEAN, VARIANCE}, {Y}}},
    [GELU] = {{"gelu", {X}, {Y}, .over = X}, {{"gelu_backward", {D(Y), X}, {D(X)}, .over = D(Y)}}},
    [SOFTMAX] = {{"softmax", {X}, {Y}, .over = X},
                 {{"softmax_backward", {D(Y), Y}, {D(X)}, .over = D(Y)}}},
    [ADD] = {{"add", {X, Z}, {Y}, .over = X}}, /* both gradients are D(Y) */
    [EMBED] = {{"embedding", {X, W}, {Y}, .run = embed},
               {{"embedding_backward", {X, D(Y)}, {D(W)}, .run = embed_back}}},
};

/* oneDNN's words for roles, and their names. */
static const int arguments[2 * ROLES] = {
    [X] = DNNL_ARG_SRC,         [Z] = DNNL_ARG_SRC_1,           [W] = DNNL_ARG_WEIGHTS,
    [MEAN] = DNNL_ARG_MEAN,     [VARIANCE] = DNNL_ARG_VARIANCE, [Y] = DNNL_ARG_DST,
    [D(X)] = DNNL_ARG_DIFF_SRC, [D(W)] = DNNL_ARG_DIFF_WEIGHTS, [D(Y)] = DNNL_ARG_DIFF_DST};
static const char *const names[2 * ROLES] = {
    [MEAN] = "mean", [VARIANCE] = "variance", [Y] = "y", [D(X)] = "dx", [D(W)] = "dw"};

size_t md_bytes(const dnnl_memory_desc_t *md) { return dnnl_memory_desc_get_size(md); }

dnnl_memory_desc_t layout(dnnl_format_tag_t tag, int count, const dnnl_dims_t sizes)
{
    dnnl_memory_desc_t md;
    DNN(dnnl_memory_desc_init_by_tag(&md, count, sizes, dnnl_f32, tag));
    return md;
}

/* A value as an op sees it. */
static dnnl_memory_desc_t seen(const struct layer *l, const struct op *op, enum role role)
{
    dnnl_memory_desc_t md = l->values[role % ROLES].md; /* a gradient is laid out as its value */
    if (role != op->turned) return md;
    dnnl_dims_t sizes, strides;
    for (int i = 0, n = md.ndims; i < n; i++) {
        const int from = i < n - 2 ? i : 2 * n - 3 - i; /* the last two change places */
        sizes[i] = md.dims[from], strides[i] = md.format_desc.blocking.strides[from];
    }
    DNN(dnnl_memory_desc_init_by_strides(&md, md.ndims, sizes, dnnl_f32, strides));
    return md;
}

/* Writes oneDNN's descriptor of an op. */
static dnnl_status_t describe(const struct layer *l, const struct op *op, void *d)
{
    const dnnl_memory_desc_t *x = &l->values[X].md, *w = &l->values[W].md, *y = &l->values[Y].md;
    const dnnl_prop_kind_t training = dnnl_forward_training, back = dnnl_backward;
    const enum role to = op->writes[0];
    const float epsilon = 1e-5f;
    switch (l->form) {
    case CONV: {
        const dnnl_alg_kind_t how = dnnl_convolution_direct;
        const dnnl_dim_t stride = x->dims[2] / y->dims[2];
        const dnnl_dims_t by = {stride, stride}, left = {1, 1}, right = {2 - stride, 2 - stride};
        if (to == Y)
            return dnnl_convolution_forward_desc_init(d, training, how, x, w, NULL, y, by, left,
                                                      right);
        if (to == D(X))
            return dnnl_convolution_backward_data_desc_init(d, how, x, w, y, by, left, right);
        return dnnl_convolution_backward_weights_desc_init(d, how, x, w, NULL, y, by, left, right);
    }
    case LINEAR:
    case MIX: {
        const dnnl_memory_desc_t a = seen(l, op, op->reads[0]), b = seen(l, op, op->reads[1]);
        return dnnl_matmul_desc_init(d, &a, &b, NULL, &l->values[to % ROLES].md);
    }
    case NORM: {
        const dnnl_memory_desc_t *mean = &l->values[MEAN].md;
        const unsigned flags = op->reads[1] == MEAN ? dnnl_use_global_stats : 0;
        if (to == D(X))
            return dnnl_layer_normalization_backward_desc_init(d, back, y, x, mean, epsilon, 0);
        return dnnl_layer_normalization_forward_desc_init(d, training, x, mean, epsilon, flags);
    }
    case GELU:
        if (to == Y)
            return dnnl_eltwise_forward_desc_init(d, training, dnnl_eltwise_gelu_erf, x, 0, 0);
        return dnnl_eltwise_backward_desc_init(d, dnnl_eltwise_gelu_erf, y, x, 0, 0);
    case SOFTMAX:
        if (to == Y) return dnnl_softmax_forward_desc_init(d, training, x, x->ndims - 1);
        return dnnl_softmax_backward_desc_init(d, y, y, y->ndims - 1);
    case ADD: return dnnl_binary_desc_init(d, dnnl_binary_add, x, &l->values[Z].md, y);
    default: return dnnl_invalid_arguments;
    }
}

/* ---- A primitive as a kernel ---- */

/* One engine and one stream serve all threads: those of a CPU have no state. */
static dnnl_engine_t engine;
static dnnl_stream_t stream;

void primitives_begin(void)
{
    omp_set_num_threads(1);
    DNN(dnnl_engine_create(&engine, dnnl_cpu, 0));
    DNN(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
}

/* A primitive, and its arguments in the order of an op's inputs, outputs and workspace. */
enum { ARGUMENTS_MAX = 8 };
struct executable {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[ARGUMENTS_MAX];
    uint32_t ids[ARGUMENTS_MAX]; /* their tensors */
    size_t count;
    struct executable *again; /* the other implementation */
};

static int execute(void *user, const struct tarn_call *call)
{
    const struct executable *e = user;
    if (call->implementation != TARN_NONE) e = e->again;
    for (size_t i = 0; i < e->count; i++) {
        const size_t j = i - call->inputs_count;
        void *at = i < call->inputs_count    ? call->inputs[i]
                   : j < call->outputs_count ? call->outputs[j]
                                             : call->workspace;
        dnnl_memory_set_data_handle(e->arguments[i].memory, at);
    }
    omp_set_num_threads(1);
    return (int)dnnl_primitive_execute(e->primitive, stream, (int)e->count, e->arguments);
}

static void add_argument(struct executable *e, const struct layer *l, const struct op *op,
                         enum role role)
{
    /* Products take their arguments in order, whatever they are to the layer. */
    static const int factors[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    const bool is_product = l->form == LINEAR || l->form == MIX;
    const dnnl_memory_desc_t md = seen(l, op, role);
    dnnl_exec_arg_t *a = &e->arguments[e->count];
    a->arg = is_product ? factors[e->count] : arguments[role];
    e->ids[e->count++] = l->values[role].id;
    DNN(dnnl_memory_create(&a->memory, &md, engine, DNNL_MEMORY_NONE));
}

/* ---- Ops ---- */

/* Makes what an op needs at its call, and says of it what Tarn is told: as. */
static struct executable *prepare(struct layer *l, const struct op *op,
                                  struct tarn_implementation *as)
{
    _Alignas(dnnl_rnn_desc_t) char descriptor[sizeof(dnnl_rnn_desc_t)]; /* the largest one */
    struct executable *e = zeros(1, sizeof *e);
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t pd;
    for (const enum role *r = op->reads; *r; r++) add_argument(e, l, op, *r);
    as->inputs = (struct tarn_list){e->ids, e->count};
    for (const enum role *r = op->writes; *r; r++) add_argument(e, l, op, *r);
    as->outputs = (struct tarn_list){e->ids + as->inputs.count, e->count - as->inputs.count};
    if (op->run) return e;
    DNN(dnnl_primitive_attr_create(&attributes));
    DNN(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    if (l->scale > 0) DNN(dnnl_primitive_attr_set_output_scales(attributes, 1, 0, &l->scale));
    DNN(describe(l, op, descriptor));
    DNN(dnnl_primitive_desc_create(&pd, descriptor, attributes, engine, l->hint));
    DNN(dnnl_primitive_create(&e->primitive, pd));
    if (!l->hint) l->hint = pd;
    const dnnl_memory_desc_t *pad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    as->workspace = md_bytes(pad);
    if (as->workspace) e->arguments[e->count].arg = DNNL_ARG_SCRATCHPAD;
    if (as->workspace)
        DNN(dnnl_memory_create(&e->arguments[e->count++].memory, pad, engine, DNNL_MEMORY_NONE));
    return e;
}

/* Adds an op, and the values that it writes. */
static void add_op(struct tape *t, struct layer *l, const struct op *op)
{
    const struct op *again = &forms[l->form].again;
    const enum role first = op->writes[0];
    const char *name = first == Y ? l->name : named("%s.%s", l->name, names[first]);
    struct tarn_implementation written = {0}, other = {.name = "from statistics"};
    for (const enum role *r = op->writes; *r; r++) {
        const struct value *v = &l->values[*r % ROLES];
        const enum tarn_tensor_kind kind =
            *r > ROLES && v->parameter ? TARN_GRADIENT : TARN_INTERMEDIATE;
        const char *written_name = named("%s.%s", l->name, names[*r]);
        l->values[*r].id = tape_tensor(t, written_name, md_bytes(&v->md), kind);
    }
    struct executable *e = prepare(l, op, &written);
    const bool has_other = again->kind && op == &forms[l->form].forward;
    if (has_other) e->again = prepare(l, again, &other);
    if (other.workspace > written.workspace)
        written.workspace = other.workspace; /* for measuring */
    const uint32_t over[1][2] = {{l->values[op->over].id, written.outputs.ids[0]}};
    /* What computes gradients of parameters alone is on a stream of its own, if there is one. */
    const bool learns = first > ROLES && l->values[first - ROLES].parameter;
    tape_op(t,
            OP(named("%s/%u", name, t->shard), op->kind, learns ? t->weights : t->compute,
               .inputs = written.inputs, .outputs = written.outputs, .workspace = written.workspace,
               .inplace = over, .inplace_count = op->over ? 1 : 0, .implementations = &other,
               .implementations_count = has_other ? 1 : 0),
            op->run ? op->run : execute, e);
}

/* ---- Layers ---- */

struct value tape_layer(struct tape *t, struct layer layer)
{
    struct layer *l = &t->layers[t->layers_count];
    *l = layer;
    l->name = named("%s.%u", forms[l->form].forward.kind, t->layers_count++);
    if (t->layers_count == LAYERS_MAX) fail(TARN_USAGE, "too many layers");
    add_op(t, l, &forms[l->form].forward);
    return l->values[Y];
}

void tape_collect(struct tape *t, const struct value *of, tarn_tensor gradient)
{
    tarn_tensor *sum = &t->gradients[of->id];
    if (of->fixed) return;
    if (of->parameter) {
        gradient_complete(t, of->parameter, gradient);
    } else if (*sum == TARN_NONE) {
        *sum = gradient;
    } else {
        struct layer l = LAYER(ADD, [X] = *of, [Z] = *of, [Y].md = of->md);
        l.name = named("sum.%u", t->ops_count);
        l.values[X].id = *sum, l.values[Z].id = gradient;
        add_op(t, &l, &forms[ADD].forward);
        *sum = l.values[Y].id;
    }
}

static void add_backward(struct tape *t, struct layer *l)
{
    const struct op *op = forms[l->form].backward;
    for (enum role r = X; l->form == ADD && r <= Z; r++)
        tape_collect(t, &l->values[r], l->values[D(Y)].id);
    for (int i = 0; i < 2 && op[i].kind; i++) {
        if (l->values[op[i].writes[0] - ROLES].fixed) continue;
        add_op(t, l, &op[i]);
        for (const enum role *r = op[i].writes; *r; r++)
            tape_collect(t, &l->values[*r - ROLES], l->values[*r].id);
    }
}

void tape_backward(struct tape *t)
{
    while (t->layers_count) {
        struct layer *l = &t->layers[--t->layers_count];
        l->values[D(Y)].id = t->gradients[l->values[Y].id];
        if (l->values[D(Y)].id != TARN_NONE) add_backward(t, l);
    }
}
