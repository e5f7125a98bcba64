/* A tape: layers add ops to a graph of Tarn, and remember how to go backward.
 *
 * `y = gelu(t, "gelu", linear(t, "up", x, 256))` adds the ops of two layers. tape_backward then
 * walks over the layers in reverse order and adds the ops of the backward pass. One oneDNN
 * primitive is one op of Tarn, and its scratchpad is the op's workspace. */
#ifndef TAPE_H
#define TAPE_H

#include <dnnl.h>
#include <stdbool.h>
#include <tarn.h>

/* ---- Errors end the program, on all ranks, with a line that names the rank ---- */

/* Prints "train: rank 1: ..." and ends all ranks with this exit code. */
_Noreturn void fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A call of Tarn, which fills the variable `error` of the function around it. */
#define TARN(call)                                                                        \
    do {                                                                                  \
        enum tarn_status status_ = (call);                                                \
        if (status_) fail((int)status_, "%s: %s", tarn_status_text(status_), error.text); \
    } while (0)
#define DNN(call)                                                                 \
    do {                                                                          \
        dnnl_status_t status_ = (call);                                           \
        if (status_) fail(TARN_DEVICE, "oneDNN: error %d in %s", status_, #call); \
    } while (0)

/* calloc that ends the program where there is no memory. */
void *zeros(size_t count, size_t size);
/* A new string, as printf would print it. */
const char *named(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- Values and parameters ---- */

enum { SHARDS_MAX = 8, PARAMETERS_MAX = 64, LAYERS_MAX = 64, OPS_MAX = 4096, TENSORS_MAX = 16384 };

/* A tensor of Tarn, and how a layer sees its bytes: sizes and strides. */
struct value {
    tarn_tensor id;
    dnnl_memory_desc_t md;
    bool fixed; /* no gradient flows into it */
};
size_t value_bytes(struct value v);
dnnl_memory_desc_t layout(dnnl_format_tag_t tag, int count, const dnnl_dims_t sizes);
/* For example LAYOUT(dnnl_ab, rows, features). */
#define LAYOUT(tag, ...)                                                  \
    layout(tag, sizeof((dnnl_dim_t[]){__VA_ARGS__}) / sizeof(dnnl_dim_t), \
           (dnnl_dims_t){__VA_ARGS__})

/* What lasts from step to step: what is learnt, and what PyTorch calls buffers, which have no
 * gradient. It lies in memory in its plain layout, whatever primitives want. */
struct parameter {
    const char *name;
    struct value w;
    float spread, center;              /* initial values: uniform in center -+ spread / 2 */
    tarn_tensor gradients[SHARDS_MAX]; /* by local shard; of sums: at their first shard */
    tarn_tensor gradient;              /* the root tensor in which the sum of all shards will be */
    tarn_tensor moments[2];            /* of the optimizer; TARN_NONE: not there */
};

/* ---- Layers ---- */

/* What primitives read and write, in the words of a layer. D(X) is the gradient of X. */
enum role { NONE, X, Z, W, B, SCALE, SHIFT, MEAN, VARIANCE, MASK, Y, ROLES };
#define D(role) (ROLES + (role))

/* oneDNN's primitives: the table in primitives.c says what they read and write. */
enum primitive {
    NOTHING,
    CONV,
    CONV_DATA,
    CONV_WEIGHTS, /* convolution, and its two backward passes */
    POOL,
    POOL_BACK,
    LINEAR,
    LINEAR_DATA,
    LINEAR_WEIGHTS,
    BATCH,
    BATCH_AGAIN,
    BATCH_BACK, /* norm over the batch; again: from its statistics */
    ROWS,
    ROWS_AGAIN,
    ROWS_BACK, /* norm of each row */
    GELU,
    GELU_BACK,
    SOFTMAX,
    SOFTMAX_BACK,
    ADD,
    MATMUL
};

struct tape;
struct layer {
    const char *name;
    struct value values[2 * ROLES]; /* id TARN_NONE: not there yet */
    struct parameter *parameters[ROLES];
    enum primitive primitive; /* of the forward pass */
    /* Adds the ops of the backward pass; NULL: those that oneDNN has for the primitive. */
    void (*backward)(struct tape *tape, struct layer *layer);
    const_dnnl_primitive_desc_t forward; /* oneDNN's hint for the primitives of the backward pass */
    dnnl_alg_kind_t algorithm;           /* where a primitive has several */
    float scale;                         /* of what a primitive computes; 0: 1 */
};

struct kernel {
    tarn_kernel run;
    void *user;
};

struct tape {
    struct tarn_builder *builder;
    tarn_stream copy, compute, weights, communication, update;
    bool training;
    uint32_t shard, shards; /* the local shard that is being written, and how many there are */
    struct shard {
        uint32_t number; /* among those of all ranks */
        tarn_tensor input, wanted;
    } inputs[SHARDS_MAX];           /* by local shard */
    struct kernel kernels[OPS_MAX]; /* by op */
    uint32_t ops_count;
    struct parameter parameters[PARAMETERS_MAX];
    uint32_t parameters_count;
    struct layer layers[LAYERS_MAX]; /* of this shard */
    uint32_t layers_count;
    tarn_tensor gradients[TENSORS_MAX];       /* by tensor: the gradient so far, or TARN_NONE */
    struct parameter *bucket[PARAMETERS_MAX]; /* gradients that are complete and not reduced yet */
    uint32_t bucket_count, buckets;
};

/* ---- Writing a tape (tape.c) ---- */

/* tape: all zeros. It lives as long as the program: nothing of it is freed. */
void tape_begin(struct tape *tape, const char *graph_name);
tarn_tensor tape_tensor(struct tape *tape, const char *name, size_t size,
                        enum tarn_tensor_kind kind);
/* A value that an op makes. */
struct value tape_value(struct tape *tape, const char *name, dnnl_memory_desc_t md);
/* The parameter of that name: the first shard makes it, the others find it. */
struct parameter *tape_parameter(struct tape *tape, const char *name, dnnl_memory_desc_t md,
                                 float spread, float center);
/* This shard's gradient of it, which some op is to write. */
struct value tape_gradient(struct tape *tape, struct parameter *parameter);

/* Adds an op whose kernel is C code. */
tarn_op tape_op(struct tape *tape, const struct tarn_op_info *info, tarn_kernel run, void *user);
/* OP(name, kind, stream, .inputs = TARN_TENSORS(a, b), ...): what Tarn is told of an op. */
#define OP(name_, kind_, stream_, ...) \
    (&(struct tarn_op_info){.name = name_, .kind = kind_, .stream = stream_, __VA_ARGS__})

/* A layer that reads x and writes a value in the layout y; the second one is on the tape. */
struct layer layer_new(const char *name, struct value x, dnnl_memory_desc_t y);
struct layer *tape_layer(struct tape *tape, const char *name, struct value x, dnnl_memory_desc_t y);
/* Adds an op that is one oneDNN primitive, and makes the values that it writes; returns the layer's
 * Y (primitives.c). */
struct value tape_primitive(struct tape *tape, struct layer *layer, enum primitive primitive);
void tape_primitive_backward(struct tape *tape, struct layer *layer);
/* Before the first tape: one thread for each primitive. */
void primitives_begin(void);
/* Adds to the gradient of a value. */
void tape_collect(struct tape *tape, struct value of, tarn_tensor gradient);
/* Adds the backward passes of all layers. */
void tape_backward(struct tape *tape);

/* ---- From a gradient to a parameter (update.c) ---- */

/* The op that writes this shard's gradient of a parameter is there. */
void gradient_complete(struct tape *tape, struct parameter *parameter);
/* Reduces the last gradients. */
void bucket_flush(struct tape *tape);

/* ---- The layers (layers.c) ---- */

/* Images: [batch, channels, height, width], channels innermost in memory. */
struct value conv(struct tape *tape, const char *name, struct value x, int channels); /* 3 x 3 */
struct value norm_relu(struct tape *tape, const char *name, struct value x); /* over the batch */
struct value max_pool(struct tape *tape, const char *name, struct value x);  /* 2 x 2 */
struct value flat(struct value x);                                           /* each image a row */
/* Rows: [rows, features]. */
struct value linear(struct tape *tape, const char *name, struct value x, int features);
struct value layer_norm(struct tape *tape, const char *name, struct value x);
struct value gelu(struct tape *tape, const char *name, struct value x);
struct value add(struct tape *tape, const char *name, struct value x, struct value z);
/* Over the last dimension; dnnl_softmax_log: its logarithm. */
struct value softmax(struct tape *tape, const char *name, struct value x,
                     dnnl_alg_kind_t algorithm);
/* Text: [batch * length, features]. The sum of two learnt rows, by token (int32) and position. */
struct value embedding(struct tape *tape, const char *name, tarn_tensor tokens,
                       const int sizes[static 4]); /* batch, length, vocabulary, features */
/* Every position looks at those before it: softmax(q k' / sqrt(d) + mask) v for each head. */
struct value attention(struct tape *tape, const char *name, struct value x, int batch, int heads);

#endif
