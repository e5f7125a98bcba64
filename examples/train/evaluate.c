/* Idea: inference is another graph, of one stream and another number of samples. Its parameters are
 * the trainer's own memory, and its tensors lie in the same arena as those of training, turn by
 * turn. Cost: no bytes beside the larger one of the two arenas. */
#include <stdio.h>

#include "train.h"

enum { SAMPLES = 50, ROUNDS = 6 };

static struct tape tape;
static tarn_tensor loss;
static _Alignas(512) char input[SAMPLES * PIXELS * sizeof(float)]; /* as the plan aligns tensors */
static _Alignas(512) int32_t wanted[SAMPLES * LENGTH];

struct tarn_plan *evaluation_plan(void)
{
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_error error;
    tape_begin(&tape, "evaluate");
    tape.compute = tarn_builder_stream(tape.builder, "compute");
    loss = add_loss(&tape, SAMPLES);
    TARN(tarn_builder_finish(tape.builder, &graph, &error));
    TARN(tarn_plan_create(graph, NULL, &plan, &error));
    tarn_graph_destroy(graph);
    return plan;
}

/* A kernel for each op, and for each persistent tensor the memory of the one of the same name. */
static struct tarn_session *open_session(const struct training *t, struct tarn_plan *plan)
{
    struct tarn_session *session;
    struct tarn_error error;
    TARN(tarn_session_create(plan, cores(), TARN_SESSION_OPTIONS(.arena = t->arena), &session,
                             &error));
    bind_kernels(session, &tape);
    TARN(tarn_session_bind_memory(session, tape.inputs[0].input, input, &error));
    TARN(tarn_session_bind_memory(session, tape.inputs[0].wanted, wanted, &error));
    for (uint32_t i = 0; i < tape.parameters_count; i++) {
        const struct parameter *p = &tape.parameters[i];
        tarn_tensor there = tarn_graph_find_tensor(t->graph, p->name);
        TARN(tarn_session_bind_memory(session, p->w.id, t->state.at[there], &error));
    }
    return session;
}

void evaluation_run(const struct training *t, struct tarn_plan *plan)
{
    struct tarn_session *session = open_session(t, plan);
    const size_t rows = ROUNDS * SAMPLES * data.classes;
    double sum = 0, right = 0;
    struct tarn_error error;
    tarn_ticket ticket;
    for (size_t k = 0; k < ROUNDS; k++) {
        float result[2];
        for (size_t i = 0; i < SAMPLES; i++)
            data_copy(data.training + (k * SAMPLES + i) * data.testing / (ROUNDS * SAMPLES),
                      input + i * data.input_bytes, wanted + i * data.classes);
        TARN(tarn_session_submit(session, 1, &ticket, &error));
        TARN(tarn_session_wait(session, ticket, TARN_FOREVER, &error));
        TARN(tarn_session_read(session, loss, result, sizeof result, &error));
        sum += (double)result[0], right += (double)result[1];
    }
    printf("evaluation: %.0f of %zu right, loss %.4f\n", right, rows, sum / (double)rows);
    tarn_session_destroy(session);
}
