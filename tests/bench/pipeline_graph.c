/* One training iteration of a transformer, a few layers to a stage, microbatch by microbatch:
 *
 *     stage 0   F0 F1 F2 ·  B0 F3 B1 F4 B2 ···    1F1B: the first stage has as many microbatches
 *     stage 1      F0 F1 B0 F2 B1 F3 B2 F4 ···    in flight as there are stages, the last one one
 *
 * Every stage has a list of tasks; ops come in the order in which the stages would execute them,
 * a forward task taking one unit of time, a backward task two, one of them for weight gradients.
 * A layer keeps its activations from its forward to its backward task; with a zero bubble also the
 * gradients of its outputs, until its weight gradients are computed. Weight gradients are added up
 * in place in one buffer for each layer. Cost: linear. */
#include "pipeline_graph.h"

#include <stdio.h>
#include <stdlib.h>

/* Bytes of one activation of a layer's width, of row statistics, of the logits, of a layer's weight
 * gradients: hidden size 1024, 2048 tokens of a microbatch, two bytes each. */
enum { WIDTH = 4 << 20, STATISTICS = 8 << 10, LOGITS = 12 * WIDTH + 4096, WEIGHTS = 24 << 20 };
enum { CHUNKS_INTERLEAVED = 2 };

enum task_kind { FORWARD, BACKWARD, WEIGHT };

struct task {
    enum task_kind kind;
    uint32_t chunk, microbatch;
};

/* What the forward task of a layer keeps, and the gradients that its backward task makes. */
struct layer {
    tarn_tensor input, norm, qkv, attention, statistics, residual, hidden, active;
    tarn_tensor doutput, dactive, dhidden, dattention, dqkv;
};

struct pipeline {
    const struct pipeline_graph_options *options;
    struct tarn_builder *builder;
    uint32_t chunks;       /* of every stage */
    struct task **tasks;   /* by stage */
    uint32_t *tasks_count; /* by stage */
    struct layer *layers;  /* [chunk of the model][microbatch][layer] */
    tarn_tensor *output;   /* [chunk of the model][microbatch]: what its last task hands on */
    double *done[2];       /* the same: when the forward, backward task ends; negative: not yet */
    tarn_tensor *weights;  /* [chunk of the model][layer]: gradients so far, or TARN_NONE */
};

const char *pipeline_schedule_name(enum pipeline_schedule schedule)
{
    static const char *const names[] = {"1F1B", "interleaved", "zero-bubble"};
    return names[schedule];
}

static void *allocate(size_t count, size_t size)
{
    void *array = calloc(count + 1, size);
    if (!array) abort();
    return array;
}

/* ---- Schedules ---- */

/* The n-th task of its kind in a stage: chunks take turns after one microbatch for each stage. */
static struct task nth_task(const struct pipeline *pipeline, enum task_kind kind, uint32_t n)
{
    uint32_t stages = pipeline->options->stages, chunks = pipeline->chunks;
    uint32_t chunk = n / stages % chunks;
    if (kind != FORWARD) chunk = chunks - 1 - chunk;
    return (struct task){kind, chunk, n / (stages * chunks) * stages + n % stages};
}

/* With a number of microbatches that is no multiple of the stages the last round is not full. */
static void add_task(struct pipeline *pipeline, uint32_t stage, enum task_kind kind, uint32_t n)
{
    struct task task = nth_task(pipeline, kind, n);
    if (task.microbatch >= pipeline->options->microbatches) return;
    pipeline->tasks[stage][pipeline->tasks_count[stage]++] = task;
}

/* Warm-up, one forward and one backward task in turn, cool-down. Weight gradients are late by as
 * many microbatches as there are stages behind, so that they fill the gaps of the cool-down. */
static void fill_tasks(struct pipeline *pipeline, uint32_t stage)
{
    const struct pipeline_graph_options *options = pipeline->options;
    uint32_t behind = options->stages - 1 - stage, chunks = pipeline->chunks;
    uint32_t rounds = (options->microbatches + options->stages - 1) / options->stages;
    uint32_t count = rounds * options->stages * chunks;
    uint32_t warm = chunks > 1 ? 2 * behind + (chunks - 1) * options->stages : behind;
    if (warm > count) warm = count;
    pipeline->tasks[stage] = allocate(3 * (size_t)count, sizeof **pipeline->tasks);
    for (uint32_t n = 0; n < warm; n++) add_task(pipeline, stage, FORWARD, n);
    for (uint32_t n = 0; n < count; n++) {
        if (n + warm < count) add_task(pipeline, stage, FORWARD, n + warm);
        add_task(pipeline, stage, BACKWARD, n);
        if (options->schedule == PIPELINE_ZERO_BUBBLE && n >= behind)
            add_task(pipeline, stage, WEIGHT, n - behind);
    }
    for (uint32_t n = count > behind ? count - behind : 0;
         options->schedule == PIPELINE_ZERO_BUBBLE && n < count; n++)
        add_task(pipeline, stage, WEIGHT, n);
}

/* ---- Ops ---- */

static tarn_tensor tensor(struct pipeline *pipeline, uint64_t size)
{
    return tarn_builder_tensor(pipeline->builder,
                               &(struct tarn_tensor_info){.size = size, .kind = TARN_INTERMEDIATE});
}

static void op(struct pipeline *pipeline, tarn_stream stream, const char *name,
               struct tarn_list inputs, struct tarn_list outputs)
{
    tarn_builder_op(pipeline->builder, &(struct tarn_op_info){.name = name,
                                                              .kind = name,
                                                              .stream = stream,
                                                              .inputs = inputs,
                                                              .outputs = outputs,
                                                              .cost = 10000});
}

/* An op with one new tensor. */
static tarn_tensor compute(struct pipeline *pipeline, tarn_stream stream, const char *name,
                           uint64_t size, struct tarn_list inputs)
{
    tarn_tensor output = tensor(pipeline, size);
    op(pipeline, stream, name, inputs, TARN_TENSORS(output));
    return output;
}

static tarn_tensor forward(struct pipeline *pipeline, tarn_stream stream, struct layer *layer,
                           tarn_tensor input)
{
    struct pipeline *p = pipeline;
    layer->input = input;
    struct tarn_list none = {0};
    layer->norm =
        compute(p, stream, "norm", WIDTH, input == TARN_NONE ? none : TARN_TENSORS(input));
    layer->qkv = compute(p, stream, "qkv", 3 * WIDTH, TARN_TENSORS(layer->norm));
    layer->attention = tensor(p, WIDTH);
    layer->statistics = tensor(p, STATISTICS);
    op(p, stream, "attention", TARN_TENSORS(layer->qkv),
       TARN_TENSORS(layer->attention, layer->statistics));
    layer->residual =
        compute(p, stream, "project", WIDTH, TARN_TENSORS(layer->attention, layer->norm));
    layer->hidden = compute(p, stream, "expand", 4 * WIDTH, TARN_TENSORS(layer->residual));
    layer->active = compute(p, stream, "gelu", 4 * WIDTH, TARN_TENSORS(layer->hidden));
    return compute(p, stream, "contract", WIDTH, TARN_TENSORS(layer->active, layer->residual));
}

/* Gradients of the activations, from that of the output. */
static tarn_tensor backward(struct pipeline *pipeline, tarn_stream stream, struct layer *layer,
                            tarn_tensor doutput)
{
    struct pipeline *p = pipeline;
    layer->doutput = doutput;
    layer->dactive = compute(p, stream, "contract_back", 4 * WIDTH, TARN_TENSORS(doutput));
    layer->dhidden =
        compute(p, stream, "gelu_back", 4 * WIDTH, TARN_TENSORS(layer->dactive, layer->hidden));
    layer->dattention =
        compute(p, stream, "expand_back", WIDTH, TARN_TENSORS(layer->dhidden, layer->residual));
    layer->dqkv =
        compute(p, stream, "attention_back", 3 * WIDTH,
                TARN_TENSORS(layer->dattention, layer->qkv, layer->attention, layer->statistics));
    return compute(p, stream, "qkv_back", WIDTH,
                   TARN_TENSORS(layer->dqkv, layer->dattention, layer->norm));
}

/* Adds up the gradients of the layer's weights. */
static void add_weights(struct pipeline *pipeline, tarn_stream stream, const struct layer *layer,
                        tarn_tensor *weights)
{
    tarn_tensor before = *weights;
    *weights = before == TARN_NONE
                   ? tarn_builder_tensor(
                         pipeline->builder,
                         &(struct tarn_tensor_info){.size = WEIGHTS, .kind = TARN_GRADIENT})
                   : tarn_builder_alias(pipeline->builder, before, NULL);
    tarn_tensor inputs[] = {layer->doutput, layer->active, layer->dhidden, layer->residual,
                            layer->dqkv,    layer->norm,   before};
    op(pipeline, stream, "weights_back",
       (struct tarn_list){inputs, sizeof inputs / sizeof *inputs - (before == TARN_NONE)},
       TARN_TENSORS(*weights));
}

/* ---- Tasks ---- */

/* The chunk of the model that a stage's chunk is, and with a microbatch where it is noted. */
static uint32_t model_chunk(const struct pipeline *pipeline, uint32_t stage, struct task task)
{
    return task.chunk * pipeline->options->stages + stage;
}

static size_t at(const struct pipeline *pipeline, uint32_t chunk, uint32_t microbatch)
{
    return (size_t)chunk * pipeline->options->microbatches + microbatch;
}

static uint32_t last_chunk(const struct pipeline *pipeline)
{
    return pipeline->options->stages * pipeline->chunks - 1;
}

/* When what the task reads is there; negative: not yet. */
static double ready_at(const struct pipeline *pipeline, uint32_t stage, struct task task)
{
    uint32_t chunk = model_chunk(pipeline, stage, task);
    size_t own = at(pipeline, chunk, task.microbatch);
    if (task.kind == WEIGHT) return pipeline->done[BACKWARD][own];
    if (task.kind == FORWARD)
        return chunk == 0 ? 0 : pipeline->done[FORWARD][at(pipeline, chunk - 1, task.microbatch)];
    if (chunk == last_chunk(pipeline)) return pipeline->done[FORWARD][own];
    return pipeline->done[BACKWARD][at(pipeline, chunk + 1, task.microbatch)];
}

static struct layer *layers_of(const struct pipeline *pipeline, size_t own)
{
    return pipeline->layers + own * pipeline->options->layers;
}

static void run_forward(struct pipeline *pipeline, tarn_stream stage, uint32_t chunk, size_t own)
{
    tarn_tensor x = chunk > 0 ? pipeline->output[own - pipeline->options->microbatches] : TARN_NONE;
    for (uint32_t i = 0; i < pipeline->options->layers; i++)
        x = forward(pipeline, stage, &layers_of(pipeline, own)[i], x);
    if (chunk == last_chunk(pipeline)) {
        tarn_tensor logits = compute(pipeline, stage, "logits", LOGITS, TARN_TENSORS(x));
        x = compute(pipeline, stage, "loss", LOGITS, TARN_TENSORS(logits));
    }
    pipeline->output[own] = x;
}

static void run_weights(struct pipeline *pipeline, tarn_stream stage, uint32_t chunk, size_t own)
{
    uint32_t layers = pipeline->options->layers;
    for (uint32_t i = layers; i-- > 0;)
        add_weights(pipeline, stage, &layers_of(pipeline, own)[i],
                    &pipeline->weights[(size_t)chunk * layers + i]);
}

static void run_backward(struct pipeline *pipeline, tarn_stream stage, uint32_t chunk, size_t own)
{
    size_t next = own + pipeline->options->microbatches;
    bool last = chunk == last_chunk(pipeline);
    tarn_tensor x =
        last ? compute(pipeline, stage, "logits_back", WIDTH, TARN_TENSORS(pipeline->output[own]))
             : pipeline->output[next];
    for (uint32_t i = pipeline->options->layers; i-- > 0;)
        x = backward(pipeline, stage, &layers_of(pipeline, own)[i], x);
    pipeline->output[own] = x; /* from now on the gradient of the input */
    if (pipeline->options->schedule != PIPELINE_ZERO_BUBBLE)
        run_weights(pipeline, stage, chunk, own);
}

static double run_task(struct pipeline *pipeline, uint32_t stage, struct task task, double begin)
{
    uint32_t chunk = model_chunk(pipeline, stage, task);
    size_t own = at(pipeline, chunk, task.microbatch);
    bool split = pipeline->options->schedule == PIPELINE_ZERO_BUBBLE;
    double end = begin + (task.kind == BACKWARD && !split ? 2 : 1);
    if (task.kind == FORWARD)
        run_forward(pipeline, stage, chunk, own);
    else if (task.kind == BACKWARD)
        run_backward(pipeline, stage, chunk, own);
    else
        run_weights(pipeline, stage, chunk, own);
    if (task.kind != WEIGHT) pipeline->done[task.kind][own] = end;
    return end;
}

/* Again and again the task that can begin first; of equal ones that of the first stage. */
static void run_tasks(struct pipeline *pipeline)
{
    uint32_t stages = pipeline->options->stages;
    uint32_t *next = allocate(stages, sizeof *next);
    double *idle = allocate(stages, sizeof *idle);
    for (;;) {
        uint32_t chosen = stages;
        double first = 0;
        for (uint32_t s = 0; s < stages; s++) {
            if (next[s] == pipeline->tasks_count[s]) continue;
            double ready = ready_at(pipeline, s, pipeline->tasks[s][next[s]]);
            double begin = ready > idle[s] ? ready : idle[s];
            if (ready < 0 || (chosen < stages && begin >= first)) continue;
            chosen = s;
            first = begin;
        }
        if (chosen == stages) break; /* all done: no schedule above waits for itself */
        idle[chosen] = run_task(pipeline, chosen, pipeline->tasks[chosen][next[chosen]], first);
        next[chosen]++;
    }
    free(next);
    free(idle);
}

/* ---- The whole ---- */

static void allocate_all(struct pipeline *pipeline)
{
    const struct pipeline_graph_options *options = pipeline->options;
    size_t chunks = (size_t)options->stages * pipeline->chunks;
    size_t tasks = chunks * options->microbatches;
    pipeline->tasks = allocate(options->stages, sizeof *pipeline->tasks);
    pipeline->tasks_count = allocate(options->stages, sizeof *pipeline->tasks_count);
    pipeline->layers = allocate(tasks * options->layers, sizeof *pipeline->layers);
    pipeline->output = allocate(tasks, sizeof *pipeline->output);
    pipeline->weights = allocate(chunks * options->layers, sizeof *pipeline->weights);
    for (size_t i = 0; i < chunks * options->layers; i++) pipeline->weights[i] = TARN_NONE;
    for (int kind = 0; kind < 2; kind++) {
        pipeline->done[kind] = allocate(tasks, sizeof *pipeline->done[kind]);
        for (size_t i = 0; i < tasks; i++) pipeline->done[kind][i] = -1;
    }
}

static void free_all(struct pipeline *pipeline)
{
    for (uint32_t s = 0; s < pipeline->options->stages; s++) free(pipeline->tasks[s]);
    free(pipeline->tasks);
    free(pipeline->tasks_count);
    free(pipeline->layers);
    free(pipeline->output);
    free(pipeline->weights);
    free(pipeline->done[0]);
    free(pipeline->done[1]);
}

struct tarn_graph *pipeline_graph(const struct pipeline_graph_options *options)
{
    struct pipeline pipeline = {
        .options = options,
        .builder = tarn_builder_create(pipeline_schedule_name(options->schedule)),
        .chunks = options->schedule == PIPELINE_INTERLEAVED ? CHUNKS_INTERLEAVED : 1};
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    allocate_all(&pipeline);
    for (uint32_t s = 0; s < options->stages; s++) {
        tarn_builder_stream(pipeline.builder, NULL);
        fill_tasks(&pipeline, s);
    }
    run_tasks(&pipeline);
    free_all(&pipeline);
    if (tarn_builder_finish(pipeline.builder, &graph, &error) != TARN_OK) {
        fprintf(stderr, "pipeline graph: %s\n", error.text);
        abort();
    }
    return graph;
}
