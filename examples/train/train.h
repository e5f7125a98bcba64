/* The trainer around the layers. One process trains one network: options, ranks and data are there
 * once. */
#ifndef TRAIN_H
#define TRAIN_H

#include "tape.h"

/* ---- The command line (options.c) ---- */

extern struct options {
    const char *network, *optimizer, *memory, *budget, *data;
    const char *plan, *graph, *save_plan, *save_graph, *trace, *checkpoint, *resume, *fault;
    int steps, batch, shards, width, bucket, wire, deadline;
    bool second_stream, reorder, couple, in_place, check_gradient, help;
} options;
/* Ends the program when an option is wrong. */
void options_parse(int argc, char **argv);
bool trains_text(void);
/* Is this fault to happen on this rank? "hang:1:5": at step 5 (at: where to leave it; or NULL). */
bool fault(const char *kind, int *at);

/* ---- The processes that train together (ranks.c) ---- */

extern int rank, ranks;
void ranks_begin(int *argc, char ***argv);
void ranks_end(void);
/* Rank 0's bytes for all. */
void ranks_send(void *data, size_t size);
/* What all ranks have, on rank 0: each element is 0 on all ranks but one. */
void ranks_gather(void *floats, size_t count);
/* Sums the ranks' buffers in place, on a communicator of its own; scratch: as large as the buffer.
 * Returns 0 or MPI's code. */
int ranks_sum(float *buffer, size_t count, float *scratch);

/* ---- What is learnt from (data.c) ---- */

enum { PIXELS = 64, DIGITS = 10, LENGTH = 32, VOCABULARY = 128 };
/* A sample is what a network reads, and the classes that it should say: for digits 64 floats and a
 * class, for text 32 characters and the 32 that follow them, one later. */
extern struct data {
    size_t input_bytes, classes; /* of a sample */
    size_t training, testing;    /* samples: the first ones are for training */
    float *pixels;               /* of digits; else NULL */
    int32_t *tokens;             /* of a text: one character each; of digits: classes */
} data;
void data_load(void);
/* Copies a sample: data.training + i for the i-th for testing. */
void data_copy(size_t sample, void *input, int32_t *wanted);
/* The batch of a step for a shard: every run has the same ones, whatever its ranks. */
void data_batch(uint64_t step, uint32_t shard, void *input, int32_t *wanted);
/* A whole file, decompressed, with zeros behind it; the caller frees it. */
char *read_whole(const char *path, size_t *size);

/* ---- The networks, and the graph of a training step (network.c) ---- */

/* Adds input, network and loss of a shard: the sum over rows, which are images, or positions of
 * texts, and how many are right. Returns the tensor of these two floats. */
tarn_tensor add_loss(struct tape *tape, int batch);
/* Such rows in a step, of all shards of all ranks. */
int rows_of_step(void);
struct tarn_graph *step_build(struct tape *tape);
/* The step that a session's iteration 0 is: not 0 after --resume. */
extern uint64_t first_step;
/* By step since first_step and shard of all ranks: the loss (a sum over rows), right answers. */
extern float (*curve)[2];

/* ---- What lasts belongs to the trainer, not to a plan (state.c) ---- */

struct state {
    char *memory; /* a header, what is learnt, and the next batches */
    size_t learnt, size;
    void **at; /* by tensor of the graph: where it lies; NULL: it does not last, or is an alias */
    uint32_t count;
};
void state_create(struct state *state, const struct tarn_graph *graph);
/* The initial values of parameters, and the batches of step first_step. */
void state_reset(const struct state *state, const struct tape *tape);
/* A number for the bits of all that is learnt. */
uint64_t state_digest(const struct state *state);
uint64_t digest(uint64_t so_far, const void *bytes, size_t size); /* begins with 0 */
/* Writes a file that is there whole or not at all. next: the step that comes next. */
void checkpoint_write(const struct state *state, uint64_t next);
/* Rank 0 reads, all get it; sets first_step. */
void checkpoint_read(const struct state *state, const struct tape *tape);

/* ---- Training and evaluating (train.c, evaluate.c) ---- */

struct training {
    struct tape tape;
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct state state;
    struct tarn_arena *arena;     /* of --memory arena; else NULL: shared with evaluation */
    struct tarn_session *session; /* on it */
    uint64_t bytes;               /* of a step's tensors at once, as measured or planned */
    double seconds;               /* of all steps */
};
/* Seconds since some time. */
double now(void);
/* This machine's cores, wherever the system puts the threads: ranks may share them. */
struct tarn_device cores(void);
/* Binds all kernels of a tape. */
void bind_kernels(struct tarn_session *session, const struct tape *tape);
/* Another graph of the same parameters, and its plan. */
struct tarn_plan *evaluation_plan(void);
/* Goes through the samples for testing, in training's arena. */
void evaluation_run(const struct training *training, struct tarn_plan *plan);

/* ---- From a graph to a plan that all ranks have (plan.c) ---- */

/* Ends the program, on all ranks, unless all of them have the same graph as rank 0. */
void agree_on_graph(const struct tarn_graph *graph);
/* Puts the graph in training's place that has costs: as rank 0 measures them, or reads them. */
void set_costs(struct training *training);
/* Rank 0 plans, or reads the plan from a file, and sends it; the others prove it against their own
 * graph and compare its identity. */
struct tarn_plan *agree_on_plan(struct tarn_graph *graph);

/* ---- Beside the trainer: what it is compared with (serial.c, gradient.c) ---- */

/* Runs steps of the plan, or of the graph while there is none, one op after another, with each
 * tensor from malloc; frees: at last use. */
struct serial *serial_begin(const struct training *training, bool frees);
/* Fastest times in nanoseconds, of an op as written and of its other implementation. */
struct cost {
    uint64_t written, other;
};
/* costs: by op of the graph; NULL: not wanted. */
void serial_run(struct serial *serial, uint64_t steps, struct cost *costs);
/* Returns the most bytes at once. */
uint64_t serial_end(struct serial *serial);
/* Compares gradients with differences of the loss; one rank, sgd. */
bool check_gradient(struct training *training);

#endif
