/* Splits a convolution's backward op into two ops: the input gradient reads no activation, and no
 * earlier layer waits for the weight gradient. So the forward input can be freed after the weight
 * gradient, or the input gradient be handed on before the forward input is there (Shah et al.,
 * "Memory optimization for deep networks", section 5).
 *
 *     dy, x, w ──► dx, dw, db      ═      dy, w ──► dx   and   dy, x ──► dw, db
 *
 * Each takes half of the time; a part's workspace is in the ratio of its largest input and output
 * to those of the whole. The op is recognised by its kind, x and w by its forward op. An op that
 * yields no dx (of the first layer) is one part already. */
#include <math.h>
#include <string.h>

#include "additions.h"

#define KIND "convolution_backward"
#define INPUT_GRADIENT "input_gradient"
#define WEIGHT_GRADIENT "weight_gradient"

struct part {
    const char *name;
    struct tarn_list inputs, outputs;
    uint32_t share; /* of two: 1 rounds down, 2 up */
};

bool tarn_is_part_name(const char *name)
{
    return strncmp(name, INPUT_GRADIENT, strlen(INPUT_GRADIENT)) == 0 ||
           strncmp(name, WEIGHT_GRADIENT, strlen(WEIGHT_GRADIENT)) == 0;
}

static uint64_t largest(const struct tarn_graph *graph, const uint32_t *ids, size_t count)
{
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++)
        if (graph->tensors[ids[i]].size > size) size = graph->tensors[ids[i]].size;
    return size;
}

static uint64_t part_of_workspace(const struct tarn_graph *graph, const struct tarn_graph_op *op,
                                  const struct part *part, uint64_t workspace)
{
    double whole = (double)largest(graph, op->inputs, op->inputs_count) +
                   (double)largest(graph, tarn_outputs(op), op->outputs_count);
    double share = (double)largest(graph, part->inputs.ids, part->inputs.count) +
                   (double)largest(graph, part->outputs.ids, part->outputs.count);
    return (uint64_t)ceil((double)workspace * (share / whole));
}

/* whole: the implementation that is split; its name NULL: the op as written. */
static enum tarn_status add_part(struct tarn_additions *additions, uint32_t v,
                                 const struct part *part, const struct tarn_implementation *whole)
{
    const struct tarn_graph *graph = additions->graph;
    struct tarn_implementation implementation = {
        .name = part->name,
        .cost = whole->cost / 2 + (part->share == 2 ? whole->cost % 2 : 0),
        .workspace = part_of_workspace(graph, &graph->ops[v], part, whole->workspace),
        .inputs = part->inputs,
        .outputs = part->outputs,
    };
    if (whole->name) {
        size_t size = strlen(part->name) + strlen(whole->name) + 2;
        char *name = tarn_region_take(additions->region, size, 1);
        if (!name) return TARN_SYSTEM;
        strcat(strcat(strcpy(name, part->name), "."), whole->name);
        implementation.name = name;
    }
    return tarn_additions_append(additions, v, &implementation);
}

static enum tarn_status add_parts(struct tarn_additions *additions, uint32_t v,
                                  const struct part *part)
{
    const struct tarn_addition *addition = &additions->ops[v];
    uint32_t count = addition->count;
    struct tarn_implementation whole = {.cost = addition->cost, .workspace = addition->workspace};
    enum tarn_status status = add_part(additions, v, part, &whole);
    for (uint32_t i = 0; status == TARN_OK && i < count; i++) {
        whole = addition->list[i];
        if (whole.inputs.count == 0 && whole.outputs.count == 0)
            status = add_part(additions, v, part, &whole);
    }
    return status;
}

/* The op's inputs without those that show `left_out`. */
static struct tarn_list inputs_without(const struct tarn_additions *additions, uint32_t v,
                                       uint32_t left_out, uint32_t *ids)
{
    const struct tarn_graph_op *op = &additions->graph->ops[v];
    const uint32_t *value = additions->pairing.value;
    struct tarn_list list = {ids, 0};
    for (uint32_t k = 0; k < op->inputs_count; k++)
        if (value[op->inputs[k]] != value[left_out]) ids[list.count++] = op->inputs[k];
    return list;
}

static bool ends_in_kind(const char *kind)
{
    size_t length = strlen(kind);
    return length >= strlen(KIND) && strcmp(kind + length - strlen(KIND), KIND) == 0;
}

/* Is there one gradient for each input of the forward op, with the gradient of its first input
 * first? */
static bool can_be_split(const struct tarn_graph *graph, const struct tarn_graph_op *op,
                         const struct tarn_graph_op *forward)
{
    if (op->inputs_count != 3 || op->outputs_count < 2 || forward->inputs_count < 2) return false;
    return op->outputs_count == forward->inputs_count &&
           graph->tensors[tarn_outputs(op)[0]].size == graph->tensors[forward->inputs[0]].size;
}

enum tarn_status tarn_split_backward(struct tarn_additions *additions, uint32_t v)
{
    const struct tarn_graph *graph = additions->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    uint32_t partner = additions->pairing.forward[v];
    if (!ends_in_kind(op->kind) || partner == TARN_NONE) return TARN_OK;
    const struct tarn_graph_op *forward = &graph->ops[partner];
    if (!can_be_split(graph, op, forward)) return TARN_OK;
    uint32_t ids[6], before = additions->ops[v].count;
    struct part input = {
        .name = INPUT_GRADIENT,
        .inputs = inputs_without(additions, v, forward->inputs[0], ids),
        .outputs = {tarn_outputs(op), 1},
        .share = 2,
    };
    struct part weight = {
        .name = WEIGHT_GRADIENT,
        .inputs = inputs_without(additions, v, forward->inputs[1], ids + 3),
        .outputs = {tarn_outputs(op) + 1, op->outputs_count - 1},
        .share = 1,
    };
    if (input.inputs.count != 2 || weight.inputs.count != 2) return TARN_OK;
    enum tarn_status status = add_parts(additions, v, &input);
    if (status == TARN_OK) status = add_parts(additions, v, &weight);
    if (additions->ops[v].count > before) additions->report.split++;
    return status;
}
