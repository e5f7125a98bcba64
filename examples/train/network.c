/* Idea: the networks are what one reads in a paper. A step is, for each local shard: forward, loss,
 * backward, and the next batch's copy as soon as nobody reads this one.
 * Source: a small convolutional net; a transformer with the norms first, as GPT-2.
 * Cost: linear in the ops. */
#include "network.h"

#include <stdio.h>
#include <string.h>

#include "fail.h"

static struct value digits(struct tape *t, struct value x, int width)
{
    x = norm_relu(t, "norm1", conv(t, "conv1", x, width));
    x = norm_relu(t, "norm2", conv(t, "conv2", x, 2 * width));
    x = max_pool(t, "pool1", x);
    x = norm_relu(t, "norm3", conv(t, "conv3", x, 4 * width));
    x = max_pool(t, "pool2", x);
    return log_softmax(t, "classes", linear(t, "scores", flat(x), DIGITS));
}

enum { HEADS = 4, BLOCKS = 2 };

static struct value block(struct tape *t, const char *name, struct value x, int batch,
                          struct value mask)
{
    char n[6][NAME_SIZE];
    const char *parts[] = {"norm1", "attention", "sum1", "norm2", "up", "gelu"};
    for (int i = 0; i < 6; i++) snprintf(n[i], sizeof n[i], "%s.%s", name, parts[i]);
    const int width = (int)x.md.dims[1];
    x = add(t, n[2], x, attention(t, n[1], layer_norm(t, n[0], x), batch, HEADS, mask));
    struct value wide = gelu(t, n[5], linear(t, n[4], layer_norm(t, n[3], x), 4 * width));
    snprintf(n[4], sizeof n[4], "%s.down", name);
    snprintf(n[2], sizeof n[2], "%s.sum2", name);
    return add(t, n[2], x, linear(t, n[4], wide, width));
}

static struct value text(struct tape *t, tarn_tensor tokens, int batch, int width)
{
    struct value mask = {.md = tape_layout(4, (dnnl_dims_t){1, 1, LENGTH, LENGTH}, dnnl_abcd),
                         .place = NO_GRADIENT};
    if (t->mask == TARN_NONE) t->mask = tape_tensor(t, "mask", tape_bytes(mask), TARN_INPUT);
    mask.id = t->mask;
    const int sizes[] = {batch, LENGTH, VOCABULARY, width};
    struct value x = embedding(t, "embedding", tokens, sizes);
    for (int i = 0; i < BLOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "block%d", i + 1);
        x = block(t, name, x, batch, mask);
    }
    return log_softmax(t, "classes", linear(t, "scores", layer_norm(t, "norm", x), VOCABULARY));
}

struct value network(struct tape *t, const struct options *o, tarn_tensor input, int batch)
{
    if (!strcmp(o->network, "text")) return text(t, input, batch, o->width);
    const dnnl_dims_t sizes = {batch, 1, 8, 8};
    return digits(t, (struct value){input, tape_layout(4, sizes, dnnl_nhwc), NO_GRADIENT},
                  o->width);
}

int network_rows(const struct options *o) { return !strcmp(o->network, "text") ? LENGTH : 1; }

/* ---- The batch ---- */

void step_load(const struct step *step, uint32_t shard, uint64_t at, void *input, int32_t *wanted)
{
    const struct options *o = step->options;
    uint64_t shards = (uint64_t)o->shards, batch = (uint64_t)o->batch;
    uint64_t first = (at * shards + (uint64_t)rank * (shards / (uint64_t)ranks) + shard) * batch;
    for (uint64_t i = 0; i < batch; i++)
        data_copy(step->data, data_pick(step->data, first + i),
                  (char *)input + i * step->data->input_bytes,
                  wanted + i * step->data->wanted_count);
}

struct load {
    const struct step *step;
    uint32_t shard;
};

static int load_next(void *user, const struct tarn_call *call)
{
    const struct load *load = user;
    uint64_t next = load->step->first + call->iteration + 1;
    step_load(load->step, load->shard, next, call->outputs[0], call->outputs[1]);
    return 0;
}

/* The copy of the next batch goes over this one, on a stream of its own. */
static void add_load(struct tape *t, const struct step *step)
{
    const tarn_tensor *now = t->inputs[t->shard];
    tarn_tensor input = tarn_builder_alias(t->builder, now[0], "input.next");
    tarn_tensor wanted = tarn_builder_alias(t->builder, now[1], "wanted.next");
    struct load load = {step, t->shard};
    tarn_op op = tape_op(t,
                         (struct tarn_op_info){.name = "load",
                                               .kind = "copy_host_to_device",
                                               .stream = t->copy,
                                               .outputs = TARN_TENSORS(input, wanted)},
                         (struct kernel){load_next, tape_copy(t, &load, sizeof load)});
    if (!options_fault(step->options, "race", NULL)) /* without it the graph is refused */
        tarn_builder_after_readers(t->builder, op);
}

/* ---- The step ---- */

static void add_shard(struct tape *t, struct step *step)
{
    const struct options *o = step->options;
    const struct data *data = step->data;
    size_t batch = (size_t)o->batch;
    tarn_tensor *input = t->inputs[t->shard];
    input[0] = tape_tensor(t, "input", batch * data->input_bytes, TARN_INPUT);
    input[1] = tape_tensor(t, "wanted", batch * data->wanted_count * sizeof(int32_t), TARN_INPUT);
    struct report report = {step->curve + (size_t)t->shard * 2, (size_t)t->shards * 2,
                            (uint64_t)o->steps};
    struct value y = network(t, o, input[0], o->batch);
    cross_entropy(t, y, input[1], (float)(o->batch * o->shards * network_rows(o)), &report);
    tape_backward(t);
    add_load(t, step);
}

struct tarn_graph *step_build(struct tape *t, struct step *step, const struct cost *costs)
{
    struct tarn_builder *b = tarn_builder_create(step->options->network);
    struct bucket bucket = {.step = step};
    *t = (struct tape){.builder = b,
                       .copy = tarn_builder_stream(b, "copy"),
                       .compute = tarn_builder_stream(b, "compute"),
                       .communication = tarn_builder_stream(b, "communication"),
                       .update = tarn_builder_stream(b, "update"),
                       .training = true,
                       .shards = (uint32_t)(step->options->shards / ranks),
                       .costs = costs,
                       .mask = TARN_NONE,
                       .gradient_ready = bucket_add,
                       .user = &bucket};
    t->weights = step->options->second_stream ? tarn_builder_stream(b, "weights") : t->compute;
    for (t->shard = 0; t->shard < t->shards; t->shard++) add_shard(t, step);
    bucket_flush(t, &bucket);
    struct tarn_graph *graph;
    struct tarn_error error;
    TARN(tarn_builder_finish(b, &graph, &error));
    return graph;
}
