/* Idea: a primitive is created when the graph is built, with memory objects that have no memory; an
 * op's call sets their addresses and executes it.
 * Traps: setting an address writes zeros to the padding of blocked layouts, so it is done only when
 * the address is another one. The number of OpenMP threads belongs to the thread that calls; with
 * one, the bits do not depend on the machine's load.
 * Cost: in an arena, where addresses stay, a call costs what dnnl_primitive_execute costs. */
#include "onednn.h"

#include <omp.h>
#include <stdio.h>

#include "fail.h"

/* One engine and one stream serve all threads: those of a CPU have no state. */
static dnnl_engine_t engine;
static dnnl_stream_t stream;

void onednn_begin(void)
{
    omp_set_num_threads(1);
    DNN(dnnl_engine_create(&engine, dnnl_cpu, 0));
    DNN(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
}

void onednn_end(void)
{
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
}

/* ---- A primitive as a kernel ---- */

enum source { INPUT, OUTPUT, WORKSPACE };

struct executable {
    dnnl_primitive_t primitive;
    int count;
    dnnl_exec_arg_t arguments[2 * ARGUMENTS_MAX + 1];
    enum source sources[2 * ARGUMENTS_MAX + 1];
    uint32_t indices[2 * ARGUMENTS_MAX + 1]; /* among the op's inputs or outputs */
    struct executable *other;                /* the other implementation */
    struct executable *next;                 /* on the tape */
};

static int execute(void *user, const struct tarn_call *call)
{
    const struct executable *e = user;
    if (call->implementation != TARN_NONE) e = e->other;
    for (int i = 0; i < e->count; i++) {
        void *is, *wanted = e->sources[i] == INPUT    ? call->inputs[e->indices[i]]
                            : e->sources[i] == OUTPUT ? call->outputs[e->indices[i]]
                                                      : call->workspace;
        dnnl_memory_get_data_handle(e->arguments[i].memory, &is);
        if (is != wanted) dnnl_memory_set_data_handle(e->arguments[i].memory, wanted);
    }
    omp_set_num_threads(1);
    return dnnl_primitive_execute(e->primitive, stream, e->count, e->arguments);
}

static void add_argument(struct executable *e, const struct argument *argument, enum source source,
                         uint32_t index)
{
    int i = e->count++;
    e->sources[i] = source;
    e->indices[i] = index;
    e->arguments[i].arg = argument->role;
    DNN(dnnl_memory_create(&e->arguments[i].memory, &argument->value.md, engine, DNNL_MEMORY_NONE));
}

/* What a primitive is to Tarn. */
struct described {
    struct executable *executable;
    uint32_t inputs[ARGUMENTS_MAX], outputs[ARGUMENTS_MAX];
    size_t inputs_count, outputs_count;
    uint64_t workspace;
};

static struct described prepare(struct tape *tape, const struct primitive *p)
{
    struct described d = {.executable = tape_keep(tape, sizeof *d.executable)};
    struct executable *e = d.executable;
    e->next = tape->executables;
    tape->executables = e;
    DNN(dnnl_primitive_create(&e->primitive, p->pd));
    for (const struct argument *a = p->in; a->role; a++) {
        add_argument(e, a, INPUT, (uint32_t)d.inputs_count);
        d.inputs[d.inputs_count++] = a->value.id;
    }
    for (const struct argument *a = p->out; a->role; a++) {
        add_argument(e, a, OUTPUT, (uint32_t)d.outputs_count);
        d.outputs[d.outputs_count++] = a->value.id;
    }
    struct value scratchpad = {.md = tape_wants(p->pd, dnnl_query_scratchpad_md)};
    d.workspace = tape_bytes(scratchpad);
    if (d.workspace)
        add_argument(e, &(struct argument){DNNL_ARG_SCRATCHPAD, scratchpad}, WORKSPACE, 0);
    return d;
}

tarn_op tape_primitive(struct tape *tape, const struct primitive *p)
{
    struct described d = prepare(tape, p), other;
    struct tarn_op_info info = {.name = p->name,
                                .kind = p->kind,
                                .stream = p->stream,
                                .inputs = {d.inputs, d.inputs_count},
                                .outputs = {d.outputs, d.outputs_count},
                                .workspace = d.workspace};
    struct tarn_implementation implementation;
    if (p->other) {
        other = prepare(tape, p->other);
        d.executable->other = other.executable;
        implementation = (struct tarn_implementation){
            .name = p->other->name,
            .cost = tape->costs ? tape->costs[tape->ops_count].other : 0,
            .workspace = other.workspace,
            .inputs = {other.inputs, other.inputs_count},
            .outputs = {other.outputs, other.outputs_count}};
        info.implementations = &implementation;
        info.implementations_count = 1;
    }
    const uint32_t pair[1][2] = {{d.inputs[p->in_place ? p->in_place - 1 : 0], d.outputs[0]}};
    if (p->in_place) info.inplace = pair, info.inplace_count = 1;
    return tape_op(tape, info, (struct kernel){execute, d.executable});
}

/* ---- Descriptors ---- */

struct descriptor {
    dnnl_primitive_desc_t pd;
    struct descriptor *next;
};

static dnnl_primitive_desc_t keep(struct tape *tape, dnnl_primitive_desc_t pd)
{
    struct descriptor *descriptor = tape_keep(tape, sizeof *descriptor);
    *descriptor = (struct descriptor){pd, tape->descriptors};
    tape->descriptors = descriptor;
    return pd;
}

dnnl_primitive_desc_t tape_describe(struct tape *tape, const void *desc, dnnl_primitive_desc_t hint,
                                    float scale)
{
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t pd;
    DNN(dnnl_primitive_attr_create(&attributes));
    DNN(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    if (scale != 1) DNN(dnnl_primitive_attr_set_output_scales(attributes, 1, 0, &scale));
    DNN(dnnl_primitive_desc_create(&pd, desc, attributes, engine, hint));
    dnnl_primitive_attr_destroy(attributes);
    return keep(tape, pd);
}

dnnl_memory_desc_t tape_wants(dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return *dnnl_primitive_desc_query_md(pd, what, 0);
}

dnnl_memory_desc_t tape_layout(int count, const dnnl_dims_t sizes, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md;
    DNN(dnnl_memory_desc_init_by_tag(&md, count, sizes, dnnl_f32, tag));
    return md;
}

void onednn_release(struct tape *tape)
{
    for (struct executable *e = tape->executables; e; e = e->next) {
        for (int i = 0; i < e->count; i++) dnnl_memory_destroy(e->arguments[i].memory);
        dnnl_primitive_destroy(e->primitive);
    }
    for (struct descriptor *d = tape->descriptors; d; d = d->next)
        dnnl_primitive_desc_destroy(d->pd);
}

/* ---- Two primitives that any layer may need ---- */

void tape_reorder(struct tape *tape, const char *name, tarn_stream on, struct value from,
                  struct value to)
{
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t pd;
    DNN(dnnl_primitive_attr_create(&attributes));
    DNN(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    DNN(dnnl_reorder_primitive_desc_create(&pd, &from.md, engine, &to.md, engine, attributes));
    dnnl_primitive_attr_destroy(attributes);
    tape_primitive(tape,
                   PRIMITIVE(name, "reorder", on, keep(tape, pd), ARGUMENTS({DNNL_ARG_FROM, from}),
                             ARGUMENTS({DNNL_ARG_TO, to}), .in_place = 0));
}

struct value tape_in_layout(struct tape *tape, const char *name, struct value v,
                            dnnl_memory_desc_t md)
{
    if (dnnl_memory_desc_equal(&v.md, &md)) return v;
    struct value w = tape_value(tape, name, "", md, false);
    tape_reorder(tape, name, tape->compute, v, w);
    return w;
}

tarn_tensor onednn_sum(struct tape *tape, tarn_tensor a, struct value b)
{
    const dnnl_dims_t sizes = {(dnnl_dim_t)(tape_bytes(b) / sizeof(float))};
    dnnl_memory_desc_t flat = tape_layout(1, sizes, dnnl_a);
    dnnl_binary_desc_t desc;
    DNN(dnnl_binary_desc_init(&desc, dnnl_binary_add, &flat, &flat, &flat));
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "sum.%u", tape->ops_count);
    struct value sum = tape_value(tape, name, "", flat, false);
    struct value x = {a, flat, NO_GRADIENT}, z = {b.id, flat, NO_GRADIENT};
    tape_primitive(tape, PRIMITIVE(name, "add", tape->compute, tape_describe(tape, &desc, NULL, 1),
                                   ARGUMENTS({DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, z}),
                                   ARGUMENTS({DNNL_ARG_DST, sum}), .in_place = 1));
    return sum.id;
}
