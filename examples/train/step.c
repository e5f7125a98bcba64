/* Idea: a step is, for each local shard: forward, loss, backward, and the next batch's copy as soon
 * as nobody reads this one. With a heap in the place of the arena all of it is one stream.
 * Cost: linear in the ops. */
#include <math.h>
#include <string.h>

#include "train.h"

float (*curve)[2];

/* ---- Loss: softmax and cross entropy, a mean over the rows of the step ---- */

int rows_of_step(void) { return options.batch * options.shards * (int)data.classes; }

static int lose(void *user, const struct tarn_call *call)
{
    const struct shard *shard = user;
    const size_t rows = call->input_sizes[1] / sizeof(int32_t);
    const size_t classes = call->input_sizes[0] / sizeof(float) / rows;
    const float *row = call->inputs[0], share = 1 / (float)rows_of_step();
    const int32_t *wanted = call->inputs[1];
    float *gradient = call->outputs[0], *loss = call->outputs[1];
    loss[0] = loss[1] = 0;
    for (size_t i = 0; i < rows; i++, row += classes, gradient += classes) {
        size_t best = 0;
        float sum = 0;
        for (size_t j = 0; j < classes; j++)
            if (row[j] > row[best]) best = j;
        for (size_t j = 0; j < classes; j++) sum += gradient[j] = expf(row[j] - row[best]);
        for (size_t j = 0; j < classes; j++)
            gradient[j] = share * (gradient[j] / sum - (float)((int32_t)j == wanted[i]));
        loss[0] += logf(sum) + row[best] - row[wanted[i]];
        loss[1] += (float)((int32_t)best == wanted[i]);
    }
    if (!shard) return 0;
    const uint64_t step = call->iteration % (uint64_t)options.steps;
    memcpy(curve[step * (uint64_t)options.shards + shard->number], loss, sizeof *curve);
    return 0;
}

tarn_tensor add_loss(struct tape *t, int batch)
{
    struct shard *shard = &t->inputs[t->shard];
    const size_t samples = (size_t)batch, wanted = samples * data.classes * sizeof(int32_t);
    shard->number = (uint32_t)rank * t->shards + t->shard;
    shard->input = tape_tensor(t, "input", samples * data.input_bytes, TARN_INPUT);
    shard->wanted = tape_tensor(t, "wanted", wanted, TARN_INPUT);
    struct value scores = network(t, shard->input, batch);
    tarn_tensor loss = tape_tensor(t, "loss", 2 * sizeof(float), TARN_OUTPUT);
    tarn_tensor gradient = tape_tensor(t, "loss.gradient", md_bytes(&scores.md), TARN_INTERMEDIATE);
    tape_op(t,
            OP(named("loss/%u", t->shard), "cross_entropy", t->compute,
               .inputs = TARN_TENSORS(scores.id, shard->wanted),
               .outputs = TARN_TENSORS(gradient, loss), .recomputable = TARN_NOT_RECOMPUTABLE),
            lose, t->training ? shard : NULL);
    tape_collect(t, &scores, gradient);
    return loss;
}

/* ---- The batch: the copy of the next one goes over this one, on a stream of its own ---- */

static int load_next(void *user, const struct tarn_call *call)
{
    const struct shard *shard = user;
    data_batch(first_step + call->iteration + 1, shard->number, call->outputs[0], call->outputs[1]);
    return 0;
}

static void add_load(struct tape *t)
{
    struct shard *shard = &t->inputs[t->shard];
    tarn_tensor input = tarn_builder_alias(t->builder, shard->input, "input.next");
    tarn_tensor wanted = tarn_builder_alias(t->builder, shard->wanted, "wanted.next");
    tarn_op op = tape_op(t,
                         OP(named("load/%u", t->shard), "copy_host_to_device", t->copy,
                            .outputs = TARN_TENSORS(input, wanted)),
                         load_next, shard);
    if (!fault("race")) /* without it the graph is refused */
        tarn_builder_after_readers(t->builder, op);
}

/* ---- The step ---- */

static tarn_stream stream(const struct tape *t, const char *name, bool is_own)
{
    return options.has_arena && is_own ? tarn_builder_stream(t->builder, name) : t->compute;
}

struct tarn_graph *step_build(struct tape *t)
{
    struct tarn_graph *graph;
    tape_begin(t, options.network);
    t->training = true;
    t->copy = stream(t, "copy", true);
    t->communication = stream(t, "communication", true);
    t->update = stream(t, "update", true);
    t->weights = stream(t, "weights", options.second_stream);
    t->shards = (uint32_t)(options.shards / ranks);
    for (t->shard = 0; t->shard < t->shards; t->shard++) {
        add_loss(t, options.batch);
        tape_backward(t);
        add_load(t);
    }
    bucket_flush(t);
    TARN(tarn_builder_finish(t->builder, &graph, &error));
    return graph;
}
