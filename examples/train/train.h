/* The trainer: a tape on which layers are written, the graph of Tarn that follows from it, and what
 * is around both. One process trains one network. */
#ifndef TRAIN_H
#define TRAIN_H

#include <dnnl.h>
#include <stdbool.h>
#include <tarn.h>

/* ---- Errors, and the processes that train together (ranks.c) ---- */

/* Prints "train: rank 1: ..." and ends all ranks with this exit code. */
_Noreturn void fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern struct tarn_error error; /* of the main thread's last call of Tarn */
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
/* Memory of zeros; a new string, as printf would print it. */
void *zeros(size_t count, size_t size);
const char *named(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern int rank, ranks;
void ranks_begin(int *argc, char ***argv);
void ranks_end(void);
/* Rank 0's bytes for all. */
void ranks_send(void *data, size_t size);
/* What all ranks have, on rank 0: each element is 0 on all ranks but one. */
void ranks_gather(void *floats, size_t count);
/* Sums the ranks' buffers in place; scratch: as large as the buffer. Returns 0 or MPI's code. */
int ranks_sum(float *buffer, size_t count, float *scratch);

/* ---- The command line (options.c) ---- */

extern struct options {
    const char *network, *memory, *budget, *plan, *graph, *save_graph, *trace;
    const char *checkpoint, *resume, *fault;
    int steps, batch, shards, width, bucket, wire, deadline, offload;
    bool second_stream, reorder, couple, in_place, check_gradient, help;
    bool is_text, has_arena, frees; /* follow from network and memory */
} options;
void options_parse(int argc, char **argv);
/* Is this fault to happen on this rank? */
bool fault(const char *kind);

/* ---- What is learnt from (data.c) ---- */

enum { PIXELS = 64, DIGITS = 10, LENGTH = 32, VOCABULARY = 128 };
/* A sample is what a network reads, and the classes that it should say: for digits 64 floats and a
 * class, for text 32 characters (int32_t) and the 32 that follow them, one later. */
extern struct data {
    size_t samples, input_bytes, stride, classes; /* stride: bytes from one input to the next */
    const void *inputs;
    const int32_t *wanted; /* one later for each sample */
    size_t training;       /* samples, the first ones; the others are for testing */
} data;
void data_load(void);
/* Copies a sample: data.training + i for the i-th for testing. */
void data_copy(size_t sample, void *input, int32_t *wanted);
/* The batch of a step for a shard: every run has the same ones, whatever its ranks. */
void data_batch(uint64_t step, uint32_t shard, void *input, int32_t *wanted);
/* A whole file, decompressed, with zeros behind it; the caller frees it. */
char *read_whole(const char *path, size_t *size);

/* ---- The tape: layers add ops to a graph, and remember how to go backward (tape.c) ---- */

enum { SHARDS_MAX = 8, LAYERS_MAX = 64, OPS_MAX = 4096, TENSORS_MAX = 16384 };

/* A tensor of Tarn, and how a layer sees its bytes: sizes and strides. */
struct value {
    tarn_tensor id;
    dnnl_memory_desc_t md;
    struct parameter *parameter; /* that it is, or NULL */
    bool fixed;                  /* no gradient flows into it */
};

struct parameter {
    const char *name;
    struct value w;
    float spread;                 /* initial values: uniform in 0 -+ spread / 2 */
    tarn_tensor sums[SHARDS_MAX]; /* of gradients, by the first local shard of each */
    tarn_tensor gradient;         /* the root tensor in which the sum of all shards will be */
    tarn_tensor moments[2];       /* of the optimizer */
};

/* What an op reads and writes, in the words of its layer. D(X) is the gradient of X. */
enum role { NONE, X, Z, W, MEAN, VARIANCE, Y, ROLES };
#define D(role) (ROLES + (role))

/* What a layer does: the table in tape.c has the ops of each. */
enum form { CONV, LINEAR, MIX, NORM, GELU, SOFTMAX, ADD, EMBED };

struct layer {
    enum form form;
    const char *name;
    struct value values[2 * ROLES];
    float scale;                      /* of a product; 0: 1 */
    const_dnnl_primitive_desc_t hint; /* of the forward primitive, for those of the backward pass */
};

struct tape {
    struct tarn_builder *builder;
    tarn_stream copy, compute, weights, communication, update;
    bool training;
    uint32_t shard, shards; /* the local shard that is being written, and how many there are */
    struct shard {
        uint32_t number; /* among those of all ranks */
        tarn_tensor input, wanted;
    } inputs[SHARDS_MAX]; /* by local shard */
    struct {
        tarn_kernel run;
        void *user;
    } kernels[OPS_MAX];                      /* by op */
    struct parameter parameters[LAYERS_MAX]; /* by layer; no name: it has none */
    struct layer layers[LAYERS_MAX];         /* of this shard */
    uint32_t ops_count, layers_count;
    tarn_tensor gradients[TENSORS_MAX];   /* by tensor: the gradient so far, or TARN_NONE */
    void *memory[TENSORS_MAX];            /* by tensor: of what lasts; else NULL */
    struct parameter *bucket[LAYERS_MAX]; /* gradients that are complete and not reduced yet */
    uint32_t bucket_count, buckets;
    size_t bucket_bytes, learnt_bytes; /* learnt: of tensors that last, but for inputs */
};

/* tape: all zeros. */
void tape_begin(struct tape *tape, const char *graph_name);
/* Tensors that last have memory of the trainer's own. */
tarn_tensor tape_tensor(struct tape *tape, const char *name, size_t size,
                        enum tarn_tensor_kind kind);
/* The parameter of the next layer: the first shard makes it, the others find it. */
struct value tape_parameter(struct tape *tape, dnnl_memory_desc_t md, float spread);
tarn_op tape_op(struct tape *tape, const struct tarn_op_info *info, tarn_kernel run, void *user);
/* OP(name, kind, stream, .inputs = TARN_TENSORS(a, b), ...): what Tarn is told of an op. */
#define OP(name_, kind_, stream_, ...) \
    (&(struct tarn_op_info){.name = name_, .kind = kind_, .stream = stream_, __VA_ARGS__})
/* Adds a layer, for example LAYER(GELU, [X] = x, [Y].md = x.md); returns Y. */
struct value tape_layer(struct tape *tape, struct layer layer);
#define LAYER(form_, ...) ((struct layer){.form = form_, .values = {__VA_ARGS__}})
/* Adds to the gradient of a value, or gives a parameter its own. */
void tape_collect(struct tape *tape, const struct value *of, tarn_tensor gradient);
/* Adds the backward passes of all layers. */
void tape_backward(struct tape *tape);
/* The kernel of all ops of a tape, which is `user`. */
int tape_run(void *user, const struct tarn_call *call);

/* Before the first tape: one thread for each primitive. */
void primitives_begin(void);
size_t md_bytes(const dnnl_memory_desc_t *md);
/* For example LAYOUT(dnnl_ab, rows, features). */
#define LAYOUT(tag, ...)                                                  \
    layout(tag, sizeof((dnnl_dim_t[]){__VA_ARGS__}) / sizeof(dnnl_dim_t), \
           (dnnl_dims_t){__VA_ARGS__})
dnnl_memory_desc_t layout(dnnl_format_tag_t tag, int count, const dnnl_dims_t sizes);

/* ---- The graph of a step (networks.c, step.c, update.c) ---- */

/* Scores of classes: a row for each image, or for each position of each text. */
struct value network(struct tape *tape, tarn_tensor input, int batch);
/* Adds input, network and loss of a shard. Returns the tensor of two floats: the loss, a sum over
 * rows, and how many rows are right. */
tarn_tensor add_loss(struct tape *tape, int batch);
struct tarn_graph *step_build(struct tape *tape);
extern float (*curve)[2]; /* by step and shard of all ranks: these two floats */
int rows_of_step(void);   /* of all shards of all ranks */
/* This shard's gradient of a parameter is there. */
void gradient_complete(struct tape *tape, struct parameter *parameter, tarn_tensor gradient);
/* Reduces the last gradients. */
void bucket_flush(struct tape *tape);

/* ---- What lasts belongs to the trainer, not to a plan (state.c) ---- */

extern uint64_t first_step; /* that a session's iteration 0 is: not 0 after --resume */
/* Memory for the next tensor of a tape that lasts. */
void *lasting(struct tape *tape, size_t size, enum tarn_tensor_kind kind);
/* The initial values of parameters, and the batches of step first_step. */
void state_reset(const struct tape *tape);
/* Numbers for the bits of all that is learnt, and of any bytes. */
uint64_t state_digest(const struct tape *tape);
uint64_t digest(const void *bytes, size_t size);
/* A file that is there whole or not at all, which rank 0 reads; next: the step that comes next. */
void checkpoint_write(const struct tape *tape, uint64_t next);
void checkpoint_read(const struct tape *tape);

/* ---- A graph, its plan, and the plan at work (plan.c, train.c) ---- */

struct program {
    struct tape tape;
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_session *session;
};
/* Ends the program, on all ranks, unless all of them have the same graph as rank 0. */
void agree_on_graph(const struct tarn_graph *graph);
/* Puts the graph in its place that has costs: as rank 0 measures them, or reads them. */
void set_costs(struct program *program);
/* Rank 0 plans, or reads the plan from a file, and sends it; the others prove it against their own
 * graph and compare its identity. */
void agree_on_plan(struct program *program);
/* Opens its session. arena: that sessions share, or NULL; run, user: the kernel of all ops. */
void program_open(struct program *program, struct tarn_arena *arena, tarn_kernel run, void *user);
/* Runs so many steps to their end. */
void program_run(struct program *program, uint64_t steps);

/* ---- Beside the trainer (check.c, heap.c) ---- */

/* Another graph of the same parameters, and its plan; then a run through the samples for testing.
 */
void evaluation_plan(struct program *program);
void evaluation_run(struct program *program, struct tarn_arena *arena);
/* Compares gradients with differences of the loss; ends the program when they are wrong. */
void gradient_check(struct program *program);
/* Keeps every tensor in memory from malloc; frees: at its last use. */
struct heap *heap_create(const struct program *program, bool frees);
/* Calls an op's kernel with memory of the heap, which is `user`. */
int heap_run(void *user, const struct tarn_call *call);
/* Returns the most bytes at once. */
uint64_t heap_destroy(struct heap *heap);

#endif
