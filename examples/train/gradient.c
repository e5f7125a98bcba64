/* Idea: with momentum and a first step, the moment of a parameter is its gradient; it is compared
 * with the difference of two losses, at a few elements of every parameter.
 * Cost: three steps for each element. */
#include <math.h>
#include <stdio.h>

#include "train.h"

enum { ELEMENTS = 3 };

/* The loss after changing one parameter by so much; all else is as at the first step. */
static double loss_at(struct training *t, const struct parameter *p, size_t i, float change)
{
    state_reset(&t->state, &t->tape);
    float *w = t->state.at[p->w.id];
    w[i] += change;
    tarn_ticket ticket;
    struct tarn_error error;
    TARN(tarn_session_submit(t->session, 1, &ticket, &error));
    TARN(tarn_session_wait(t->session, ticket, TARN_FOREVER, &error));
    double loss = 0;
    for (uint32_t s = 0; s < t->tape.shards; s++) {
        char name[32];
        float result[2];
        snprintf(name, sizeof name, "loss/%u", s);
        TARN(tarn_session_read(t->session, tarn_graph_find_tensor(t->graph, name), result,
                               sizeof result, &error));
        loss += (double)result[0];
    }
    return loss / rows_of_step();
}

/* The element with the largest gradient among some. */
static size_t pick(const float *gradient, size_t count, size_t k)
{
    size_t best = k;
    for (size_t i = k; i < count; i += ELEMENTS)
        if (fabsf(gradient[i]) > fabsf(gradient[best])) best = i;
    return best;
}

bool check_gradient(struct training *t)
{
    const float change = 4e-3f;
    double worst = 0;
    int count = 0;
    for (uint32_t k = 0; k < t->tape.parameters_count; k++) {
        const struct parameter *p = &t->tape.parameters[k];
        const size_t floats = value_bytes(p->w) / sizeof(float);
        if (p->moments[0] == TARN_NONE) continue; /* a buffer */
        for (size_t j = 0; j < ELEMENTS && j < floats; j++, count++) {
            loss_at(t, p, 0, 0);
            const float *gradient = t->state.at[p->moments[0]];
            size_t i = pick(gradient, floats, j);
            double is = (double)gradient[i];
            double wanted =
                (loss_at(t, p, i, change) - loss_at(t, p, i, -change)) / (2 * (double)change);
            double off = fabs(is - wanted) / (fabs(is) + fabs(wanted) + 1e-2);
            if (off > .05) printf("%s[%zu]: %g, by differences %g\n", p->name, i, is, wanted);
            if (off > worst) worst = off;
        }
    }
    printf("gradient: %d elements, worst relative difference %.2g\n", count, worst);
    return worst < .05;
}
