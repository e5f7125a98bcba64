/* Idea: is what was learnt right? Inference is another graph, of one stream and another number of
 * samples; its parameters are in the same memory as those of training, its tensors in the same
 * arena, turn by turn. And gradients are compared with differences of the loss: after a first step,
 * the first moment of a parameter is its gradient (Adam's is a tenth of it).
 * Cost: no bytes beside the larger one of the two arenas; three steps for each element. */
#include <math.h>
#include <stdio.h>

#include "train.h"

/* ---- Evaluation ---- */

enum { SAMPLES = 50, ROUNDS = 6 };

static tarn_tensor result;

void evaluation_plan(struct program *p)
{
    tape_begin(&p->tape, "evaluate");
    result = add_loss(&p->tape, SAMPLES);
    TARN(tarn_builder_finish(p->tape.builder, &p->graph, &error));
    TARN(tarn_plan_create(p->graph, NULL, &p->plan, &error));
    tarn_graph_destroy(p->graph);
}

void evaluation_run(struct program *p, struct tarn_arena *arena)
{
    const size_t rows = ROUNDS * SAMPLES * data.classes;
    char *input = p->tape.memory[p->tape.inputs[0].input];
    int32_t *wanted = p->tape.memory[p->tape.inputs[0].wanted];
    double sum = 0, right = 0;
    float sums[2];
    program_open(p, arena, tape_run, &p->tape);
    for (size_t k = 0; k < ROUNDS; k++) {
        for (size_t i = 0; i < SAMPLES; i++)
            data_copy(data.training +
                          (k * SAMPLES + i) * (data.samples - data.training) / (ROUNDS * SAMPLES),
                      input + i * data.input_bytes, wanted + i * data.classes);
        program_run(p, 1);
        TARN(tarn_session_read(p->session, result, sums, sizeof sums, &error));
        sum += (double)sums[0], right += (double)sums[1];
    }
    printf("evaluation: %.0f of %zu right, loss %.4f\n", right, rows, sum / (double)rows);
    tarn_session_destroy(p->session);
}

/* ---- Gradients ---- */

enum { ELEMENTS = 3 };

/* The loss after changing one element of a parameter; all else is as at the first step. */
static double loss_at(struct program *p, float *element, float change)
{
    double loss = 0;
    state_reset(&p->tape);
    *element += change;
    program_run(p, 1);
    for (int s = 0; s < options.shards; s++) loss += (double)curve[s][0];
    return loss / rows_of_step();
}

/* The element with the largest gradient among every ELEMENTS-th. */
static size_t pick(const float *gradient, size_t count, size_t first)
{
    size_t best = first;
    for (size_t i = first; i < count; i += ELEMENTS)
        if (fabsf(gradient[i]) > fabsf(gradient[best])) best = i;
    return best;
}

void gradient_check(struct program *p)
{
    const float change = 4e-3f, unit = options.is_text ? .1f : 1;
    double worst = 0;
    for (uint32_t k = 0; k < LAYERS_MAX; k++) {
        const struct parameter *parameter = &p->tape.parameters[k];
        if (!parameter->name) continue;
        const size_t count = md_bytes(&parameter->w.md) / sizeof(float);
        float *w = p->tape.memory[parameter->w.id];
        const float *gradient = p->tape.memory[parameter->moments[0]];
        for (size_t j = 0; j < ELEMENTS; j++) {
            loss_at(p, w, 0);
            const size_t i = pick(gradient, count, j);
            const double is = (double)(gradient[i] / unit);
            const double wanted =
                (loss_at(p, &w[i], change) - loss_at(p, &w[i], -change)) / (2 * (double)change);
            const double off = fabs(is - wanted) / (fabs(is) + fabs(wanted) + 1e-2);
            if (off > .05)
                printf("%s[%zu]: %g, by differences %g\n", parameter->name, i, is, wanted);
            worst = fmax(worst, off);
        }
    }
    printf("gradient: worst relative difference %.2g\n", worst);
    if (worst > .05) fail(TARN_CHECK_FAILED, "gradients are wrong");
}
