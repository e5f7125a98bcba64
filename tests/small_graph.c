/* Partitions are restricted growth strings: label[i] is at most one above all before it, so that
 * every partition has one string. All-zero is the first. */
#include "small_graph.h"

#include <assert.h>
#include <string.h>

static bool next_partition(uint8_t *label, unsigned count)
{
    for (unsigned i = count; i-- > 1;) {
        uint8_t highest = 0;
        for (unsigned k = 0; k < i; k++) {
            if (label[k] > highest) highest = label[k];
        }
        if (label[i] <= highest) {
            label[i]++;
            memset(label + i + 1, 0, count - i - 1);
            return true;
        }
    }
    return false;
}

void small_graph_set_arcs(struct small_graph *graph, unsigned mask)
{
    memset(graph->successors, 0, sizeof graph->successors);
    for (unsigned j = 1; j < graph->ops; j++) {
        for (unsigned i = 0; i < j; i++, mask >>= 1)
            graph->successors[i] = (uint8_t)(graph->successors[i] | (mask & 1) << j);
    }
}

bool small_graph_next_streams(struct small_graph *graph)
{
    return next_partition(graph->stream, graph->ops);
}

bool small_graph_next_grouping(struct small_graph *graph)
{
    for (unsigned i = 0; i < graph->ops; i++) {
        unsigned arcs_count = (unsigned)__builtin_popcount(graph->successors[i]);
        if (next_partition(graph->tensor_of[i], arcs_count)) return true;
        memset(graph->tensor_of[i], 0, sizeof graph->tensor_of[i]);
    }
    return false;
}

unsigned small_graph_tensors(const struct small_graph *graph, struct small_tensor *tensors)
{
    unsigned count = 0;
    for (unsigned i = 0; i < graph->ops; i++) {
        unsigned first = count;
        tensors[count++] = (struct small_tensor){.producer = (uint8_t)i};
        for (unsigned j = i + 1, k = 0; j < graph->ops; j++) {
            if (!(graph->successors[i] >> j & 1)) continue;
            unsigned t = first + graph->tensor_of[i][k++];
            if (t == count) tensors[count++] = (struct small_tensor){.producer = (uint8_t)i};
            tensors[t].consumers |= (uint8_t)(1u << j);
        }
    }
    return count;
}

static void add_op(struct tarn_builder *builder, const struct small_graph *small, unsigned op,
                   const struct small_tensor *tensors, unsigned count)
{
    uint32_t inputs[SMALL_TENSORS], outputs[SMALL_TENSORS];
    size_t inputs_count = 0, outputs_count = 0;
    for (unsigned t = 0; t < count; t++) {
        if (tensors[t].producer == op) outputs[outputs_count++] = t;
        if (tensors[t].consumers >> op & 1) inputs[inputs_count++] = t;
    }
    tarn_builder_op(builder, &(struct tarn_op_info){.stream = small->stream[op],
                                                    .inputs = {inputs, inputs_count},
                                                    .outputs = {outputs, outputs_count}});
}

struct tarn_graph *small_graph_build(const struct small_graph *small, unsigned large)
{
    struct small_tensor tensors[SMALL_TENSORS];
    unsigned count = small_graph_tensors(small, tensors), streams = 0;
    struct tarn_builder *builder = tarn_builder_create("small");
    for (unsigned i = 0; i < small->ops; i++) {
        if (small->stream[i] < streams) continue;
        tarn_builder_stream(builder, NULL);
        streams++;
    }
    for (unsigned t = 0; t < count; t++)
        tarn_builder_tensor(builder, &(struct tarn_tensor_info){.size = 1 + (large >> t & 1)});
    for (unsigned i = 0; i < small->ops; i++) add_op(builder, small, i, tensors, count);
    struct tarn_graph *graph = NULL;
    enum tarn_status status = tarn_builder_finish(builder, &graph, NULL);
    assert(status == TARN_OK);
    (void)status;
    return graph;
}
