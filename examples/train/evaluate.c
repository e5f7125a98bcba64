/* Idea: inference is another graph, of one stream and another number of samples. Its parameters are
 * the trainer's own memory, and its tensors lie in the same arena as those of training, turn by
 * turn. Cost: no bytes beside the larger one of the two arenas. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "train.h"

enum { SAMPLES = 50, ROUNDS = 6 };

struct evaluation {
    struct tape tape;
    struct tarn_plan *plan;
    struct value result;
    void *input;
    int32_t *wanted;
};

struct evaluation *evaluation_create(const struct training *training)
{
    const struct step *step = &training->step;
    struct evaluation *e = calloc(1, sizeof *e);
    if (!e) fail(TARN_SYSTEM, "no memory");
    struct tarn_builder *b = tarn_builder_create("evaluate");
    struct tape *t = &e->tape;
    *t = (struct tape){.builder = b,
                       .copy = TARN_NONE,
                       .weights = TARN_NONE,
                       .communication = TARN_NONE,
                       .update = TARN_NONE,
                       .mask = TARN_NONE};
    t->compute = tarn_builder_stream(b, "compute");
    size_t size = (SAMPLES * step->data->input_bytes + 4095) / 4096 * 4096;
    e->input = aligned_alloc(4096, size);
    e->wanted = malloc(SAMPLES * step->data->wanted_count * sizeof *e->wanted);
    if (!e->input || !e->wanted) fail(TARN_SYSTEM, "no memory");
    t->inputs[0][0] = tape_tensor(t, "samples", SAMPLES * step->data->input_bytes, TARN_INPUT);
    e->result = network(t, step->options, t->inputs[0][0], SAMPLES);
    struct tarn_graph *graph;
    struct tarn_error error;
    TARN(tarn_builder_finish(b, &graph, &error));
    TARN(tarn_plan_create(graph, NULL, &e->plan, &error));
    tarn_graph_destroy(graph);
    return e;
}

void evaluation_destroy(struct evaluation *e)
{
    tarn_plan_destroy(e->plan);
    tape_finish(&e->tape);
    free(e->input);
    free(e->wanted);
    free(e);
}

struct tarn_plan *evaluation_plan(const struct evaluation *e) { return e->plan; }

/* A kernel for each op, and for each persistent tensor the memory of the one of the same name. */
static struct tarn_session *open_session(const struct evaluation *e,
                                         const struct training *training)
{
    const struct tarn_graph *graph = tarn_plan_graph(e->plan);
    struct tarn_session *session;
    struct tarn_error error;
    TARN(tarn_session_create(e->plan, cores(), TARN_SESSION_OPTIONS(.arena = training->arena),
                             &session, &error));
    for (tarn_op op = 0; op < e->tape.ops_count; op++)
        TARN(tarn_session_bind(session, op, e->tape.kernels[op].run, e->tape.kernels[op].user));
    TARN(tarn_session_bind_memory(session, e->tape.inputs[0][0], e->input, &error));
    for (tarn_tensor id = 0; id < tarn_graph_tensors_count(graph); id++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(graph, id, &info);
        tarn_tensor there = tarn_graph_find_tensor(training->graph, info.name);
        if (there != TARN_NONE && training->state.at[there])
            TARN(tarn_session_bind_memory(session, id, training->state.at[there], &error));
    }
    return session;
}

struct score {
    double loss;
    uint64_t right, rows;
};

static void add_scores(const struct evaluation *e, const float *row, struct score *score)
{
    const size_t rows = (size_t)e->result.md.dims[0], classes = (size_t)e->result.md.dims[1];
    for (size_t i = 0; i < rows; i++, row += classes) {
        size_t best = 0;
        for (size_t j = 1; j < classes; j++)
            if (row[j] > row[best]) best = j;
        score->loss -= (double)row[e->wanted[i]];
        score->right += (int32_t)best == e->wanted[i];
    }
    score->rows += rows;
}

void evaluation_run(struct evaluation *e, const struct training *training)
{
    const struct data *data = training->step.data;
    struct tarn_session *session = open_session(e, training);
    struct score score = {0};
    struct tarn_error error;
    tarn_ticket ticket;
    for (size_t k = 0; k < ROUNDS; k++) {
        for (size_t i = 0; i < SAMPLES; i++)
            data_copy(data, data->training + (k * SAMPLES + i) * data->testing / (ROUNDS * SAMPLES),
                      (char *)e->input + i * data->input_bytes, e->wanted + i * data->wanted_count);
        TARN(tarn_session_submit(session, 1, &ticket, &error));
        TARN(tarn_session_wait(session, ticket, TARN_FOREVER, &error));
        add_scores(e, tarn_session_address(session, e->result.id), &score);
    }
    tarn_session_destroy(session);
    printf("evaluation: %llu of %llu right, loss %.4f\n", (unsigned long long)score.right,
           (unsigned long long)score.rows, score.loss / (double)score.rows);
}
