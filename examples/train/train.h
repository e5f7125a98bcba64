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
    struct tarn_session *session; /* of --memory arena; else NULL */
    void *arena;                  /* which evaluation shares */
    uint64_t arena_size;
    uint64_t bytes; /* of an iteration's tensors at once, as measured or planned */
    double seconds; /* of all steps, checkpoints left out */
};

/* Takes the arena, with room for at least `room` bytes, and binds what lasts and all kernels. */
void training_begin(struct training *training, uint64_t room);
/* Runs all steps, with checkpoints. */
void training_run(struct training *training);
void training_end(struct training *training);

/* Compares gradients with differences of the loss (gradient.c); one rank, sgd. */
bool check_gradient(struct training *training);

/* ---- Evaluation: another graph of the same parameters, in the same arena (evaluate.c) ---- */
struct evaluation;
struct evaluation *evaluation_create(const struct training *training);
void evaluation_destroy(struct evaluation *evaluation);
/* Bytes of arena that it needs. */
uint64_t evaluation_room(const struct evaluation *evaluation);
/* Goes through the samples for testing while the training session rests. */
void evaluation_run(struct evaluation *evaluation, const struct training *training);

#endif
