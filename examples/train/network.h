/* The two networks, and the graph of a training step. */
#ifndef NETWORK_H
#define NETWORK_H

#include "data.h"
#include "layers.h"
#include "options.h"
#include "ranks.h"

/* Logarithms of what is how likely: a row for each image, or for each position of each text. The
 * first calls on a tape make the parameters. */
struct value network(struct tape *tape, const struct options *options, tarn_tensor input,
                     int batch);
/* Rows of logarithms for each sample. */
int network_rows(const struct options *options);

/* What the kernels of a step work with; it stays where it is as long as the graph runs. */
struct step {
    const struct options *options;
    const struct data *data;
    struct channel *channel;
    uint64_t first; /* the step that is iteration 0 */
    float *curve;   /* by iteration and local shard: loss, right answers */
};

/* Fills the tape, which is empty, and makes the graph. costs: by op; or NULL. */
struct tarn_graph *step_build(struct tape *tape, struct step *step, const struct cost *costs);
/* Copies the samples of a step. */
void step_load(const struct step *step, uint32_t shard, uint64_t at, void *input, int32_t *wanted);

/* ---- Gradients on their way into parameters (update.c) ---- */
struct bucket {
    const struct step *step;
    struct parameter *members[PARAMETERS_MAX];
    uint32_t count, number;
    size_t bytes;
};
/* Adds a parameter whose gradient is complete; a bucket that is full is reduced as one op, and its
 * members are updated. */
void bucket_add(struct tape *tape, struct parameter *parameter);
void bucket_flush(struct tape *tape, struct bucket *bucket);
/* The tensors that an optimizer needs: its moments, of all parameters. */
uint32_t optimizer_moments(const struct options *options);

#endif
