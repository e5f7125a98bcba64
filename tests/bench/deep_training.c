/* A tape of forward ops, played back: each op knows what it read, and its backward op reads the
 * gradient of its result and, of the forward part, what the derivative takes: a layer its input, an
 * activation its result, a sum nothing. Two gradients of one tensor are added in place. */
#include "deep_training.h"

#include <stdio.h>
#include <stdlib.h>

enum { TAPE_MAX = 16, BYTES = 1 << 16 };

enum step_kind { LAYER, NORM, ACTIVATION, SUM, PRODUCT };

struct step {
    enum step_kind kind;
    uint32_t inputs[2]; /* values */
    uint32_t inputs_count;
    uint32_t weight; /* tensor, or TARN_NONE */
    uint32_t size;   /* of the result, in units of BYTES / 16 */
};

/* A forward result and, later, its gradient. */
struct value {
    tarn_tensor tensor, gradient;
    uint32_t size;
};

struct tape {
    struct tarn_builder *b;
    struct step *steps;
    struct value *values; /* value i + 1 is that of step i; value 0 is the input */
    tarn_tensor *weight_gradients;
    uint32_t count;
};

static const struct {
    const char *forward, *backward;
    uint64_t cost;
    bool weighs;
} kinds[] = {
    [LAYER] = {"aten.convolution", "aten.convolution_backward", 9000, true},
    [NORM] = {"aten.native_batch_norm", "aten.native_batch_norm_backward", 700, true},
    [ACTIVATION] = {"aten.gelu", "aten.gelu_backward", 500, false},
    [SUM] = {"aten.add", "aten.add_backward", 600, false},
    [PRODUCT] = {"aten.bmm", "aten.bmm_backward", 3000, false},
};

static tarn_tensor add_tensor(struct tape *tape, enum tarn_tensor_kind kind, uint32_t size)
{
    return tarn_builder_tensor(
        tape->b, &(struct tarn_tensor_info){.size = (uint64_t)size * (BYTES / 16), .kind = kind});
}

static tarn_op add_op(struct tape *tape, const char *kind, uint64_t cost, struct tarn_list inputs,
                      struct tarn_list outputs)
{
    char name[32];
    snprintf(name, sizeof name, "%u.%u", tape->count, inputs.ids[0]);
    return tarn_builder_op(
        tape->b,
        &(struct tarn_op_info){
            .name = name, .kind = kind, .cost = cost, .inputs = inputs, .outputs = outputs});
}

/* ---- Forward ---- */

/* other: a second value that is read, or TARN_NONE. Returns the value. */
static uint32_t forward(struct tape *tape, enum step_kind kind, uint32_t value, uint32_t other,
                        uint32_t size)
{
    struct step *step = &tape->steps[tape->count];
    uint32_t ids[3], count = 0;
    *step = (struct step){kind, {value, other}, other == TARN_NONE ? 1 : 2, TARN_NONE, size};
    for (uint32_t k = 0; k < step->inputs_count; k++)
        ids[count++] = tape->values[step->inputs[k]].tensor;
    if (kinds[kind].weighs) ids[count++] = step->weight = add_tensor(tape, TARN_PARAMETER, 1);
    tarn_tensor result = add_tensor(tape, TARN_INTERMEDIATE, size);
    tape->values[tape->count + 1] = (struct value){result, TARN_NONE, size};
    add_op(tape, kinds[kind].forward, kinds[kind].cost * size / 16, (struct tarn_list){ids, count},
           TARN_TENSORS(result));
    return ++tape->count;
}

static uint32_t add_plain(struct tape *tape, uint32_t x)
{
    return forward(tape, ACTIVATION, forward(tape, LAYER, x, TARN_NONE, 16), TARN_NONE, 16);
}

static uint32_t add_residual(struct tape *tape, uint32_t x)
{
    static const uint32_t sizes[] = {4, 4, 16};
    uint32_t value = x;
    for (int i = 0; i < 3; i++) {
        value = forward(tape, LAYER, value, TARN_NONE, sizes[i]);
        value = forward(tape, NORM, value, TARN_NONE, sizes[i]);
        if (i < 2) value = forward(tape, ACTIVATION, value, TARN_NONE, sizes[i]);
    }
    return forward(tape, ACTIVATION, forward(tape, SUM, value, x, 16), TARN_NONE, 16);
}

static uint32_t add_transformer(struct tape *tape, uint32_t x)
{
    uint32_t normal = forward(tape, NORM, x, TARN_NONE, 16);
    uint32_t query = forward(tape, LAYER, normal, TARN_NONE, 16);
    uint32_t key = forward(tape, LAYER, normal, TARN_NONE, 16);
    uint32_t sought = forward(tape, LAYER, normal, TARN_NONE, 16);
    uint32_t scores = forward(tape, PRODUCT, query, key, 32);
    uint32_t shares = forward(tape, ACTIVATION, scores, TARN_NONE, 32);
    uint32_t mixed = forward(tape, PRODUCT, shares, sought, 16);
    uint32_t sum = forward(tape, SUM, forward(tape, LAYER, mixed, TARN_NONE, 16), x, 16);
    uint32_t dense = forward(tape, NORM, sum, TARN_NONE, 16);
    dense = forward(tape, ACTIVATION, forward(tape, LAYER, dense, TARN_NONE, 64), TARN_NONE, 64);
    return forward(tape, SUM, forward(tape, LAYER, dense, TARN_NONE, 16), sum, 16);
}

/* ---- Backward ---- */

/* The gradient of a value gets one more part. */
static void add_gradient(struct tape *tape, struct value *value, tarn_tensor part)
{
    if (value->gradient == TARN_NONE) {
        value->gradient = part;
        return;
    }
    tarn_tensor sum = tarn_builder_alias(tape->b, value->gradient, NULL);
    uint32_t reads[] = {value->gradient, part};
    add_op(tape, "aten.add_", 400, (struct tarn_list){reads, 2}, TARN_TENSORS(sum));
    value->gradient = sum;
}

static uint32_t list_reads(const struct tape *tape, uint32_t i, uint32_t *ids)
{
    const struct step *step = &tape->steps[i];
    uint32_t count = 0;
    ids[count++] = tape->values[i + 1].gradient;
    if (step->kind == ACTIVATION) ids[count++] = tape->values[i + 1].tensor;
    bool reads_inputs = step->kind != ACTIVATION && step->kind != SUM;
    for (uint32_t k = 0; k < step->inputs_count && reads_inputs; k++)
        ids[count++] = tape->values[step->inputs[k]].tensor;
    return count;
}

/* The loss of the last value, and that value's gradient. */
static void end_forward(struct tape *tape, struct value *value)
{
    tarn_tensor loss = add_tensor(tape, TARN_OUTPUT, 1);
    value->gradient = add_tensor(tape, TARN_GRADIENT, value->size);
    add_op(tape, "aten.mse_loss", 500, TARN_TENSORS(value->tensor), TARN_TENSORS(loss));
    uint32_t reads[] = {loss, value->tensor};
    add_op(tape, "aten.mse_loss_backward", 500, (struct tarn_list){reads, 2},
           TARN_TENSORS(value->gradient));
}

static void backward(struct tape *tape, uint32_t i)
{
    const struct step *step = &tape->steps[i];
    uint32_t reads[5], parts[2], count = list_reads(tape, i, reads);
    uint64_t cost = kinds[step->kind].cost * step->size / 16;
    if (step->weight != TARN_NONE) {
        tape->weight_gradients[i] = add_tensor(tape, TARN_GRADIENT, 1);
        add_op(tape, kinds[step->kind].backward, cost, (struct tarn_list){reads, count},
               TARN_TENSORS(tape->weight_gradients[i]));
        reads[count++] = step->weight;
    }
    for (uint32_t k = 0; k < step->inputs_count; k++)
        parts[k] = add_tensor(tape, TARN_GRADIENT, tape->values[step->inputs[k]].size);
    add_op(tape, kinds[step->kind].backward, cost, (struct tarn_list){reads, count},
           (struct tarn_list){parts, step->inputs_count});
    for (uint32_t k = 0; k < step->inputs_count; k++)
        add_gradient(tape, &tape->values[step->inputs[k]], parts[k]);
}

static void update(struct tape *tape, uint32_t i)
{
    if (tape->steps[i].weight == TARN_NONE) return;
    tarn_tensor after = tarn_builder_alias(tape->b, tape->steps[i].weight, NULL);
    uint32_t reads[] = {tape->steps[i].weight, tape->weight_gradients[i]};
    add_op(tape, "aten.add_", 200, (struct tarn_list){reads, 2}, TARN_TENSORS(after));
}

/* ---- The graph ---- */

struct tarn_graph *deep_training(enum deep_family family, uint32_t blocks)
{
    static uint32_t (*const add[])(struct tape *, uint32_t) = {
        [DEEP_PLAIN] = add_plain,
        [DEEP_RESIDUAL] = add_residual,
        [DEEP_TRANSFORMER] = add_transformer,
    };
    size_t most = (size_t)blocks * TAPE_MAX + 1;
    struct tape tape = {.b = tarn_builder_create("deep"),
                        .steps = calloc(most, sizeof *tape.steps),
                        .values = calloc(most + 1, sizeof *tape.values),
                        .weight_gradients = calloc(most, sizeof *tape.weight_gradients)};
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (!tape.b || !tape.steps || !tape.values || !tape.weight_gradients) abort();
    tarn_builder_stream(tape.b, "compute");
    tape.values[0] = (struct value){add_tensor(&tape, TARN_INPUT, 16), TARN_NONE, 16};
    uint32_t value = 0;
    for (uint32_t i = 0; i < blocks; i++) value = add[family](&tape, value);
    end_forward(&tape, &tape.values[value]);
    for (uint32_t i = tape.count; i-- > 0;) backward(&tape, i);
    for (uint32_t i = 0; i < tape.count; i++) update(&tape, i);
    if (tarn_builder_finish(tape.b, &graph, &error) != TARN_OK) {
        fprintf(stderr, "deep_training: %s\n", error.text);
        abort();
    }
    free(tape.steps);
    free(tape.values);
    free(tape.weight_gradients);
    return graph;
}
