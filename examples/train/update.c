/* Idea: gradients that are ready one after another form a bucket: a contiguous group, which one op
 * reduces over all ranks where it lies, while the backward pass goes on. Then the optimizer's ops
 * update each member, once all who read the old parameter have done so.
 * Source: buckets as in PyTorch's DDP (Li et al., 2020), here without a copy; SGD with momentum;
 * D. Kingma and J. Ba, "Adam", 2015.
 * Cost: each update is one pass over a parameter. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fail.h"
#include "network.h"

/* ---- Reducing ---- */

struct reduction {
    const struct step *step;
    size_t count;
    int hang; /* the step at which this rank stops answering; -1: never */
};

static int reduce(void *user, const struct tarn_call *call)
{
    const struct reduction *r = user;
    const int wire = r->step->options->wire;
    if (r->hang >= 0 && r->step->first + call->iteration == (uint64_t)r->hang)
        for (;;) pause();
    if (wire) nanosleep(&(struct timespec){wire / 1000000, wire % 1000000 * 1000L}, NULL);
    return channel_sum(r->step->channel, call->outputs[0], r->count, call->workspace);
}

/* ---- Updating ---- */

struct update {
    const struct step *step;
    size_t count;
};

static int update_sgd(void *user, const struct tarn_call *call)
{
    const struct update *u = user;
    float *w = call->outputs[0], *speed = call->outputs[1];
    const float *gradient = call->inputs[0];
    for (size_t i = 0; i < u->count; i++) {
        speed[i] = .9f * speed[i] + gradient[i];
        w[i] -= .05f * speed[i];
    }
    return 0;
}

static int update_adam(void *user, const struct tarn_call *call)
{
    const struct update *u = user;
    const double t = (double)(u->step->first + call->iteration + 1);
    const float rate = (float)(.002 * sqrt(1 - pow(.999, t)) / (1 - pow(.9, t)));
    float *w = call->outputs[0], *mean = call->outputs[1], *square = call->outputs[2];
    const float *g = call->inputs[0];
    for (size_t i = 0; i < u->count; i++) {
        mean[i] = .9f * mean[i] + .1f * g[i];
        square[i] = .999f * square[i] + .001f * g[i] * g[i];
        w[i] -= rate * mean[i] / (sqrtf(square[i]) + 1e-8f);
    }
    return 0;
}

uint32_t optimizer_moments(const struct options *o) { return strcmp(o->optimizer, "adam") ? 1 : 2; }

static void add_update(struct tape *t, const struct step *step, struct parameter *p,
                       tarn_tensor gradient)
{
    uint32_t moments = optimizer_moments(step->options), in[4], out[3];
    char name[FULL_NAME_SIZE];
    in[0] = gradient, in[1] = p->w.id;
    for (uint32_t i = 0; i < moments; i++) {
        snprintf(name, sizeof name, "%s.moment%u", p->name, i + 1);
        in[i + 2] = p->moments[i] =
            tape_tensor(t, name, p->count * sizeof(float), TARN_OPTIMIZER_STATE);
    }
    for (uint32_t i = 0; i <= moments; i++)
        out[i] = tarn_builder_alias(t->builder, in[i + 1], "new");
    snprintf(name, sizeof name, "%s.update", p->name);
    struct update update = {step, p->count};
    tarn_op op = tape_op(t,
                         (struct tarn_op_info){.name = name,
                                               .kind = step->options->optimizer,
                                               .stream = t->update,
                                               .inputs = {in, moments + 2},
                                               .outputs = {out, moments + 1}},
                         (struct kernel){moments == 1 ? update_sgd : update_adam,
                                         tape_copy(t, &update, sizeof update)});
    tarn_builder_after_readers(t->builder, op);
}

/* ---- Buckets ---- */

void bucket_flush(struct tape *t, struct bucket *b)
{
    uint32_t roots[PARAMETERS_MAX], in[PARAMETERS_MAX], out[PARAMETERS_MAX];
    if (!b->count) return;
    for (uint32_t i = 0; i < b->count; i++) {
        roots[i] = b->members[i]->gradient;
        in[i] = b->members[i]->gradients[0];
        out[i] = tarn_builder_alias(t->builder, in[i], "reduced");
    }
    tarn_builder_group(t->builder, (struct tarn_list){roots, b->count});
    struct reduction reduction = {b->step, b->bytes / sizeof(float), -1};
    int hang;
    if (b->number == 0 && options_fault(b->step->options, "hang", &hang)) reduction.hang = hang;
    char name[32];
    snprintf(name, sizeof name, "all_reduce.%u", b->number++);
    tape_op(t,
            (struct tarn_op_info){.name = name,
                                  .kind = "all_reduce",
                                  .stream = t->communication,
                                  .inputs = {in, b->count},
                                  .outputs = {out, b->count},
                                  .workspace = channel_scratch(reduction.count)},
            (struct kernel){reduce, tape_copy(t, &reduction, sizeof reduction)});
    for (uint32_t i = 0; i < b->count; i++) add_update(t, b->step, b->members[i], out[i]);
    b->count = 0, b->bytes = 0;
}

void bucket_add(struct tape *t, struct parameter *p)
{
    struct bucket *b = t->user;
    b->members[b->count++] = p;
    b->bytes += tape_bytes(p->w);
    if (b->bytes >= (size_t)b->step->options->bucket) bucket_flush(t, b);
}
