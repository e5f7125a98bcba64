/* Which write each read sees, when the ops of a graph run one after another in a given order. */
#ifndef TARN_STREAMS_PLAN_VERSIONS_H
#define TARN_STREAMS_PLAN_VERSIONS_H

#include "../graph/graph.h"

/* An op has a slot for each input, then for each output. A slot tells who wrote its storage last
 * before the op ran; TARN_NONE: nobody in this iteration. A version of a storage is the op that
 * wrote it. */
struct tarn_versions {
    uint32_t *begin;  /* op -> its first slot; ops_count + 1 */
    uint32_t *writer; /* slot -> op */
    uint32_t *last;   /* storage -> the op that wrote it last in the whole iteration */
};

/* Runs ops[0..count) of the graph; views are passed over. TARN_SYSTEM: no memory. */
enum tarn_status tarn_versions_init(struct tarn_versions *versions, const struct tarn_graph *graph,
                                    const uint32_t *ops, uint32_t count);
void tarn_versions_finish(struct tarn_versions *versions);

/* The storage of an op's slot. */
static inline uint32_t tarn_slot_storage(const struct tarn_graph *graph,
                                         const struct tarn_graph_op *op, uint32_t slot)
{
    uint32_t tensor =
        slot < op->inputs_count ? op->inputs[slot] : op->outputs[slot - op->inputs_count];
    return graph->tensors[tensor].storage;
}

static inline uint32_t tarn_slots_count(const struct tarn_graph_op *op)
{
    return op->inputs_count + op->outputs_count;
}

#endif
