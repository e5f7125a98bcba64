/* Idea: gradients that are ready one after another form a bucket: a contiguous group, which one op
 * reduces over all ranks where it lies, while the backward pass goes on. Then the optimizer's ops
 * update each member, once all who read the old parameter have done so.
 * Source: buckets as in PyTorch's DDP (Li et al., 2020), here without a copy; SGD with momentum;
 * D. Kingma and J. Ba, "Adam", 2015.
 * Cost: each update is one pass over a parameter. */
#include <math.h>
#include <unistd.h>

#include "train.h"

/* ---- Kernels ---- */

static int add_shard(void *user, const struct tarn_call *call)
{
    (void)user;
    float *sum = call->outputs[0];
    const float *more = call->inputs[1];
    for (size_t i = 0; i < call->output_sizes[0] / sizeof *sum; i++) sum[i] += more[i];
    return 0;
}

/* The outputs are one buffer, as they are a contiguous group. */
static int reduce(void *user, const struct tarn_call *call)
{
    (void)user;
    size_t bytes = 0;
    for (size_t i = 0; i < call->outputs_count; i++) bytes += call->output_sizes[i];
    while (fault("hang") && call->iteration == 3) pause();
    usleep((useconds_t)options.wire);
    return ranks_sum(call->outputs[0], bytes / sizeof(float), call->workspace);
}

static int update_sgd(void *user, const struct tarn_call *call)
{
    (void)user;
    float *w = call->outputs[0], *speed = call->outputs[1];
    const float *gradient = call->inputs[0];
    for (size_t i = 0; i < call->output_sizes[0] / sizeof *w; i++) {
        speed[i] = .9f * speed[i] + gradient[i];
        w[i] -= .05f * speed[i];
    }
    return 0;
}

static int update_adam(void *user, const struct tarn_call *call)
{
    (void)user;
    const double t = (double)(first_step + call->iteration + 1);
    const float rate = (float)(.002 * sqrt(1 - pow(.999, t)) / (1 - pow(.9, t)));
    float *w = call->outputs[0], *mean = call->outputs[1], *square = call->outputs[2];
    const float *g = call->inputs[0];
    for (size_t i = 0; i < call->output_sizes[0] / sizeof *w; i++) {
        mean[i] = .9f * mean[i] + .1f * g[i];
        square[i] = .999f * square[i] + .001f * g[i] * g[i];
        w[i] -= rate * mean[i] / (sqrtf(square[i]) + 1e-8f);
    }
    return 0;
}

/* ---- Ops ---- */

/* Adam for text, momentum for digits. Inputs: gradient, parameter, moments; outputs: all but the
 * first, over the old ones. */
static void add_update(struct tape *t, struct parameter *p, tarn_tensor gradient)
{
    const uint32_t count = options.is_text ? 3 : 2;
    uint32_t in[4] = {gradient, p->w.id}, out[3];
    for (uint32_t i = 0; i + 1 < count; i++)
        in[i + 2] = p->moments[i] = tape_tensor(t, named("%s.moment%u", p->name, i + 1),
                                                md_bytes(&p->w.md), TARN_OPTIMIZER_STATE);
    for (uint32_t i = 0; i < count; i++) out[i] = tarn_builder_alias(t->builder, in[i + 1], "new");
    tarn_op op = tape_op(t,
                         OP(named("%s.update", p->name), options.is_text ? "adam" : "sgd",
                            t->update, .inputs = {in, count + 1}, .outputs = {out, count}),
                         options.is_text ? update_adam : update_sgd, NULL);
    tarn_builder_after_readers(t->builder, op);
}

void bucket_flush(struct tape *t)
{
    uint32_t roots[LAYERS_MAX], in[LAYERS_MAX], out[LAYERS_MAX];
    const uint32_t count = t->bucket_count;
    if (!count) return;
    for (uint32_t i = 0; i < count; i++) {
        roots[i] = t->bucket[i]->gradient;
        in[i] = t->bucket[i]->sums[0];
        out[i] = tarn_builder_alias(t->builder, in[i], "reduced");
    }
    tarn_builder_group(t->builder, (struct tarn_list){roots, count});
    tape_op(t,
            OP(named("all_reduce.%u", t->buckets++), "all_reduce", t->communication,
               .inputs = {in, count}, .outputs = {out, count},
               .workspace = ranks > 1 ? t->bucket_bytes : 0),
            reduce, NULL);
    for (uint32_t i = 0; i < count; i++) add_update(t, t->bucket[i], out[i]);
    t->bucket_count = 0, t->bucket_bytes = 0;
}

/* Shards are summed as a tree, ((0 + 1) + (2 + 3)), each pair as soon as it is there. */
void gradient_complete(struct tape *t, struct parameter *p, tarn_tensor gradient)
{
    const uint32_t next = t->shard + 1;
    p->sums[t->shard] = gradient;
    if (t->shard == 0) p->gradient = gradient;
    for (uint32_t distance = 1; next % (2 * distance) == 0; distance *= 2) {
        tarn_tensor *to = &p->sums[next - 2 * distance], from = p->sums[next - distance];
        const char *name = named("%s.sum.%u", p->name, distance);
        tarn_tensor sum = tarn_builder_alias(t->builder, *to, name);
        tape_op(t,
                OP(named("%s/%u", name, t->shard), "add", t->weights,
                   .inputs = TARN_TENSORS(*to, from), .outputs = TARN_TENSORS(sum)),
                add_shard, NULL);
        *to = sum;
    }
    if (next < t->shards) return;
    t->bucket[t->bucket_count++] = p;
    t->bucket_bytes += md_bytes(&p->w.md);
    if (t->bucket_bytes >= (size_t)options.bucket) bucket_flush(t);
}
