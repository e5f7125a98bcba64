/* Partitions are restricted growth strings: label[i] is at most one above all before it, so that
 * every partition has one string. All-zero is the first. */
#include "small_graph.h"

#include <assert.h>
#include <string.h>

/* ---- All graphs ---- */

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

/* ---- Numberings ---- */

enum { NO_LABEL = SMALL_OPS };

/* Ops that have got new numbers, from 0, and new labels of their streams. */
struct numbering {
    const struct small_graph *graph;
    struct small_symmetries *symmetries;
    uint8_t order[SMALL_OPS];
    uint8_t label[SMALL_OPS]; /* stream -> label or NO_LABEL */
    uint8_t labels_count;
    unsigned placed; /* set of ops */
};

static bool is_ready(const struct numbering *numbering, unsigned op)
{
    const struct small_graph *graph = numbering->graph;
    if (numbering->placed >> op & 1) return false;
    for (unsigned before = 0; before < op; before++) {
        bool is_earlier =
            graph->successors[before] >> op & 1 || graph->stream[before] == graph->stream[op];
        if (is_earlier && !(numbering->placed >> before & 1)) return false;
    }
    return true;
}

/* Arcs into the op that becomes number `next`, and its stream: below, at or above 0 as they come
 * before, equal or come after those of the op that has that number now. */
static int compare_numbers(const struct numbering *numbering, unsigned next, unsigned op,
                           uint8_t label)
{
    const struct small_graph *graph = numbering->graph;
    int arcs = 0, arcs_now = 0;
    for (unsigned i = 0; i < next; i++) {
        arcs |= (graph->successors[numbering->order[i]] >> op & 1) << i;
        arcs_now |= (graph->successors[i] >> next & 1) << i;
    }
    return arcs != arcs_now ? arcs - arcs_now : label - graph->stream[next];
}

/* False: there is an earlier numbering. */
static bool number_rest(struct numbering *numbering, unsigned next)
{
    const struct small_graph *graph = numbering->graph;
    struct small_symmetries *symmetries = numbering->symmetries;
    if (next == graph->ops) {
        memcpy(symmetries->order[symmetries->count++], numbering->order, sizeof numbering->order);
        return true;
    }
    bool is_first = true;
    for (unsigned op = 0; op < graph->ops && is_first; op++) {
        if (!is_ready(numbering, op)) continue;
        struct numbering with = *numbering;
        uint8_t *label = &with.label[graph->stream[op]];
        if (*label == NO_LABEL) *label = with.labels_count++;
        int compared = compare_numbers(numbering, next, op, *label);
        with.order[next] = (uint8_t)op;
        with.placed |= 1u << op;
        if (compared < 0) is_first = false;
        if (compared == 0) is_first = number_rest(&with, next + 1);
    }
    return is_first;
}

bool small_graph_is_first_numbering(const struct small_graph *graph,
                                    struct small_symmetries *symmetries)
{
    struct numbering numbering = {.graph = graph, .symmetries = symmetries};
    memset(numbering.label, NO_LABEL, sizeof numbering.label);
    symmetries->count = 0;
    return number_rest(&numbering, 0);
}

static unsigned count_below(unsigned set, unsigned limit)
{
    return (unsigned)__builtin_popcount(set & ((1u << limit) - 1));
}

/* The grouping of the arcs of op `next`, as a symmetry has it, against that of now. */
static int compare_arcs(const struct small_graph *graph, const uint8_t *order, unsigned next)
{
    uint8_t label[SMALL_OPS], labels_count = 0;
    unsigned op = order[next], arc = 0;
    int compared = 0;
    memset(label, NO_LABEL, sizeof label);
    for (unsigned to = next + 1; to < graph->ops && compared == 0; to++) {
        if (!(graph->successors[next] >> to & 1)) continue;
        unsigned tensor = graph->tensor_of[op][count_below(graph->successors[op], order[to])];
        if (label[tensor] == NO_LABEL) label[tensor] = labels_count++;
        compared = label[tensor] - graph->tensor_of[next][arc++];
    }
    return compared;
}

bool small_graph_is_first_grouping(const struct small_graph *graph,
                                   const struct small_symmetries *symmetries)
{
    for (unsigned i = 0; i < symmetries->count; i++) {
        int compared = 0;
        for (unsigned v = 0; v < graph->ops && compared == 0; v++)
            compared = compare_arcs(graph, symmetries->order[i], v);
        if (compared < 0) return false;
    }
    return true;
}

/* ---- Building ---- */

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
