/* Training and evaluating: sessions of plans. */
#ifndef TRAIN_H
#define TRAIN_H

#include "state.h"

struct training {
    struct step step;
    struct tape tape;
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct state state;
    struct tarn_arena *arena;     /* of --memory arena; else NULL: shared with evaluation */
    struct tarn_session *session; /* on it */
    uint64_t bytes;               /* of an iteration's tensors at once, as measured or planned */
    double seconds;               /* of all steps, checkpoints left out */
};

/* Takes the arena, for this plan and another one, and binds what lasts and all kernels. */
void training_begin(struct training *training, struct tarn_plan *other);
/* Runs all steps, with checkpoints. */
void training_run(struct training *training);
void training_end(struct training *training);

/* Compares gradients with differences of the loss (gradient.c); one rank, sgd. */
bool check_gradient(struct training *training);

/* ---- Evaluation: another graph of the same parameters, in the same arena (evaluate.c) ---- */
struct evaluation;
struct evaluation *evaluation_create(const struct training *training);
void evaluation_destroy(struct evaluation *evaluation);
struct tarn_plan *evaluation_plan(const struct evaluation *evaluation);
/* Goes through the samples for testing, on rank 0. */
void evaluation_run(struct evaluation *evaluation, const struct training *training);
/* This machine's cores, wherever the system puts the threads: ranks may share them. */
struct tarn_device cores(void);

#endif
