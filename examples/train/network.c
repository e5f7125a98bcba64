/* Idea: the networks are what one reads in a paper. A step is, for each local shard: forward, loss,
 * backward, and the next batch's copy as soon as nobody reads this one.
 * Source: a small convolutional net; a transformer with the norms first, as GPT-2.
 * Cost: linear in the ops. */
#include "train.h"

uint64_t first_step;
float (*curve)[2];

static struct value digits(struct tape *t, struct value x)
{
    const int width = options.width;
    x = norm_relu(t, "norm1", conv(t, "conv1", x, width));
    x = norm_relu(t, "norm2", conv(t, "conv2", x, 2 * width));
    x = max_pool(t, "pool1", x);
    x = norm_relu(t, "norm3", conv(t, "conv3", x, 4 * width));
    x = max_pool(t, "pool2", x);
    return softmax(t, "classes", linear(t, "scores", flat(x), DIGITS), dnnl_softmax_log);
}

enum { HEADS = 4, BLOCKS = 2 };

static struct value block(struct tape *t, const char *name, struct value x, int batch)
{
    struct value y = layer_norm(t, named("%s.norm1", name), x);
    x = add(t, named("%s.sum1", name), x,
            attention(t, named("%s.attention", name), y, batch, HEADS));
    y = layer_norm(t, named("%s.norm2", name), x);
    y = gelu(t, named("%s.gelu", name), linear(t, named("%s.up", name), y, 4 * options.width));
    return add(t, named("%s.sum2", name), x, linear(t, named("%s.down", name), y, options.width));
}

static struct value text(struct tape *t, tarn_tensor tokens, int batch)
{
    const int sizes[] = {batch, LENGTH, VOCABULARY, options.width};
    struct value x = embedding(t, "embedding", tokens, sizes);
    for (int i = 0; i < BLOCKS; i++) x = block(t, named("block%d", i + 1), x, batch);
    x = linear(t, "scores", layer_norm(t, "norm", x), VOCABULARY);
    return softmax(t, "classes", x, dnnl_softmax_log);
}

/* Logarithms of what is how likely: a row for each image, or for each position of each text. */
static struct value network(struct tape *t, tarn_tensor input, int batch)
{
    if (trains_text()) return text(t, input, batch);
    return digits(t, (struct value){input, LAYOUT(dnnl_nhwc, batch, 1, 8, 8), .fixed = true});
}

int rows_of_step(void) { return options.batch * options.shards * (trains_text() ? LENGTH : 1); }

/* ---- Loss: cross entropy, a mean over the rows of the step ---- */

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
        for (size_t j = 0; j < classes; j++) {
            gradient[j] = (int32_t)j == wanted[i] ? -share : 0;
            if (row[j] > row[best]) best = j;
        }
        loss[0] -= row[wanted[i]];
        loss[1] += (float)((int32_t)best == wanted[i]);
    }
    if (!shard || call->iteration >= (uint64_t)options.steps) return 0;
    float *point = curve[call->iteration * (uint64_t)options.shards + shard->number];
    point[0] = loss[0], point[1] = loss[1];
    return 0;
}

tarn_tensor add_loss(struct tape *t, int batch)
{
    struct shard *shard = &t->inputs[t->shard];
    const size_t samples = (size_t)batch, wanted = samples * data.classes * sizeof(int32_t);
    shard->number = (uint32_t)rank * t->shards + t->shard;
    shard->input = tape_tensor(t, "input", samples * data.input_bytes, TARN_INPUT);
    shard->wanted = tape_tensor(t, "wanted", wanted, TARN_INPUT);
    struct value logarithms = network(t, shard->input, batch);
    struct value gradient = tape_value(t, "loss.gradient", logarithms.md);
    tarn_tensor loss = tape_tensor(t, "loss", 2 * sizeof(float), TARN_OUTPUT);
    tape_op(t,
            OP("loss", "cross_entropy", t->compute,
               .inputs = TARN_TENSORS(logarithms.id, shard->wanted),
               .outputs = TARN_TENSORS(gradient.id, loss), .recomputable = TARN_NOT_RECOMPUTABLE),
            lose, t->training ? shard : NULL);
    tape_collect(t, logarithms, gradient.id);
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
    tarn_op op = tape_op(
        t, OP("load", "copy_host_to_device", t->copy, .outputs = TARN_TENSORS(input, wanted)),
        load_next, shard);
    if (!fault("race", NULL)) /* without it the graph is refused */
        tarn_builder_after_readers(t->builder, op);
}

/* ---- The step ---- */

struct tarn_graph *step_build(struct tape *t)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    tape_begin(t, options.network);
    t->training = true;
    t->copy = tarn_builder_stream(t->builder, "copy");
    t->compute = tarn_builder_stream(t->builder, "compute");
    t->communication = tarn_builder_stream(t->builder, "communication");
    t->update = tarn_builder_stream(t->builder, "update");
    t->weights = options.second_stream ? tarn_builder_stream(t->builder, "weights") : t->compute;
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
