/* A tape: layers add ops to a graph and remember how to go backward.
 *
 * `y = norm_relu(t, "norm1", conv(t, "conv1", x, 16))` adds the ops of two layers. tape_backward
 * then walks over the layers in reverse order and adds those of the backward pass. One oneDNN
 * primitive is one op of Tarn; what it wants as scratchpad is the op's workspace.
 */
#ifndef TAPE_H
#define TAPE_H

#include <dnnl.h>
#include <stdbool.h>
#include <tarn.h>

enum {
    NAME_SIZE = 48,
    FULL_NAME_SIZE = 96, /* with what is added to a name */
    SHARDS_MAX = 8,
    PARAMETERS_MAX = 64,
    STATISTICS_MAX = 8,
    LAYERS_MAX = 64,
    BUCKETS_MAX = 64,
    ARGUMENTS_MAX = 8
};

#define NO_GRADIENT UINT32_MAX

/* A tensor as its layers see it. Values of other shapes or strides may name the same tensor. */
struct value {
    tarn_tensor id;
    dnnl_memory_desc_t md;
    uint32_t place; /* of its gradient on the tape, or NO_GRADIENT */
};

/* What is learnt. It lies in memory in its plain layout, whatever primitives want. */
struct parameter {
    char name[NAME_SIZE];
    struct value w;
    size_t count;                      /* floats */
    float spread, center;              /* initial values: uniform in center -+ spread / 2 */
    tarn_tensor moments[2];            /* of the optimizer; TARN_NONE: not there */
    tarn_tensor gradients[SHARDS_MAX]; /* by local shard; of sums: at their first shard */
    tarn_tensor gradient;              /* the storage in which the sum of all shards will be */
};

/* Mean and variance of a normalization for inference, which training keeps. */
struct statistics {
    tarn_tensor mean, variance;
    size_t size; /* bytes of each */
};

struct tape;
struct layer;
typedef void (*backward_pass)(struct tape *tape, const struct layer *layer, struct value dy);

struct layer {
    char name[NAME_SIZE];
    backward_pass backward;
    dnnl_primitive_desc_t forward;
    struct value x, z, y, saved[3];
    struct parameter *w, *b;
    float scale; /* of a product */
};

struct kernel {
    tarn_kernel run;
    void *user;
};

/* Measured times of an op as written, and of its other implementation; nanoseconds. */
struct cost {
    uint64_t written, other;
};

struct tape {
    struct tarn_builder *builder;
    tarn_stream copy, compute, weights, communication, update;
    bool training;
    uint32_t shard, shards;   /* the local shard that is being written, and how many there are */
    const struct cost *costs; /* by op; NULL: not known */
    struct kernel *kernels;   /* by op */
    uint32_t ops_count;
    struct parameter parameters[PARAMETERS_MAX];
    uint32_t parameters_count, parameters_used; /* used: by this shard */
    struct statistics statistics[STATISTICS_MAX];
    uint32_t statistics_count, statistics_used;
    tarn_tensor inputs[SHARDS_MAX][2]; /* by local shard: what is read, and what is wanted */
    tarn_tensor mask;                  /* of the attention; TARN_NONE: there is none */
    struct layer layers[LAYERS_MAX];
    uint32_t layers_count;
    tarn_tensor *gradients; /* by place: the tensor that holds the gradient so far */
    uint32_t places_count;
    /* Called when the gradient of a parameter is complete for all local shards. */
    void (*gradient_ready)(struct tape *tape, struct parameter *parameter);
    void *user;        /* of gradient_ready */
    struct kept *kept; /* freed with the tape */
    struct executable *executables;
    struct descriptor *descriptors;
};

void tape_finish(struct tape *tape);
/* Memory that is freed with the tape. */
void *tape_keep(struct tape *tape, size_t size);
void *tape_copy(struct tape *tape, const void *data, size_t size);

/* ---- Tensors ---- */
dnnl_memory_desc_t tape_layout(int count, const dnnl_dims_t sizes, dnnl_format_tag_t tag);
size_t tape_bytes(struct value v);
tarn_tensor tape_tensor(struct tape *tape, const char *name, size_t size,
                        enum tarn_tensor_kind kind);
/* A value that an op makes; has_gradient: the loss depends on parameters through it. */
struct value tape_value(struct tape *tape, const char *name, const char *suffix,
                        dnnl_memory_desc_t md, bool has_gradient);
/* The same tensor, seen with other sizes and strides. */
struct value tape_view(struct value v, dnnl_memory_desc_t md);

/* ---- Ops ---- */
/* Adds an op whose kernel is C code. */
tarn_op tape_op(struct tape *tape, struct tarn_op_info info, struct kernel kernel);

struct argument {
    int role; /* DNNL_ARG_... */
    struct value value;
};
#define ARGUMENTS(...) ((const struct argument[]){__VA_ARGS__, {0}})
struct primitive {
    const char *name, *kind;
    tarn_stream stream;
    dnnl_primitive_desc_t pd;
    const struct argument *in, *out; /* each ends with role 0 */
    int in_place; /* the first output may be written over in[in_place - 1]; 0: no */
    const struct primitive *other; /* another implementation */
};
/* Written in place: the fields to `out` in order, then others by name. */
#define PRIMITIVE(name_, kind_, stream_, pd_, in_, out_, ...) \
    (&(struct primitive){.name = name_,                       \
                         .kind = kind_,                       \
                         .stream = stream_,                   \
                         .pd = pd_,                           \
                         .in = in_,                           \
                         .out = out_,                         \
                         __VA_ARGS__})
/* Adds an op that is one oneDNN primitive. */
tarn_op tape_primitive(struct tape *tape, const struct primitive *primitive);
/* Makes a primitive descriptor, which lives as long as the tape. desc: any of oneDNN's. */
dnnl_primitive_desc_t tape_describe(struct tape *tape, const void *desc, dnnl_primitive_desc_t hint,
                                    float scale);
dnnl_memory_desc_t tape_wants(dnnl_primitive_desc_t pd, dnnl_query_t what);
/* Adds an op that copies from one layout to another. */
void tape_reorder(struct tape *tape, const char *name, tarn_stream on, struct value from,
                  struct value to);
/* The same values in the layout that a primitive wants: one more op if it is another one. */
struct value tape_in_layout(struct tape *tape, const char *name, struct value v,
                            dnnl_memory_desc_t md);

/* ---- Parameters and gradients ---- */
/* Made by the first shard, found again by the others, in the order of the calls. */
struct parameter *tape_parameter(struct tape *tape, const char *name, const char *suffix,
                                 dnnl_memory_desc_t md, float spread, float center);
struct statistics *tape_statistics(struct tape *tape, const char *name, size_t size);
struct layer *tape_layer(struct tape *tape, const char *name, backward_pass backward,
                         dnnl_primitive_desc_t forward);
/* Adds to what has been collected of a value's gradient. */
void tape_collect(struct tape *tape, struct value of, tarn_tensor gradient);
/* This shard's gradient of a parameter; complete: the op that makes it is there. */
struct value tape_parameter_gradient(struct tape *tape, struct parameter *parameter);
void tape_complete(struct tape *tape, struct parameter *parameter);
/* Adds the backward passes of all layers. */
void tape_backward(struct tape *tape);

#endif
