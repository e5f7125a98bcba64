/* Which write each read sees, when the ops of a graph run one after another in a given order. */
#ifndef TARN_STREAMS_GRAPH_VERSIONS_H
#define TARN_STREAMS_GRAPH_VERSIONS_H

#include "graph.h"

/* A version of a storage is called by the tensor through which it was written, the first one where
 * an op has several outputs in the storage; TARN_NONE: what was there before the iteration. An op
 * has a slot for each input, then for each output; a slot tells which version its storage had just
 * before the op. */
struct tarn_versions {
    uint32_t *begin; /* op -> its first slot; ops_count + 1 */
    uint32_t *found; /* slot -> version */
    uint32_t *left;  /* tensor -> version of its storage just after its producer (a view: before) */
    uint32_t *last;  /* storage -> version at the end of the iteration */
};

/* Runs ops[0..count) of the graph; views look but write nothing. All arrays from the region.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_versions_init(struct tarn_versions *versions, struct tarn_region *region,
                                    const struct tarn_graph *graph, const uint32_t *ops,
                                    uint32_t count);

/* The op that wrote a version, or TARN_NONE. */
static inline uint32_t tarn_version_writer(const struct tarn_graph *graph, uint32_t version)
{
    return version == TARN_NONE ? TARN_NONE : graph->tensors[version].producer;
}

/* What a version is called in the source graph. `tensor`: any of its storage, for the content from
 * before the iteration, which goes by the root. */
static inline uint32_t tarn_version_name(const struct tarn_graph *graph, uint32_t tensor,
                                         uint32_t version)
{
    return graph->tensors[version == TARN_NONE ? graph->tensors[tensor].root : version].origin;
}

/* The storage of an op's slot. */
static inline uint32_t tarn_slot_storage(const struct tarn_graph *graph,
                                         const struct tarn_graph_op *op, uint32_t slot)
{
    uint32_t tensor =
        slot < op->inputs_count ? op->inputs[slot] : tarn_outputs(op)[slot - op->inputs_count];
    return graph->tensors[tensor].storage;
}

static inline uint32_t tarn_slots_count(const struct tarn_graph_op *op)
{
    return op->inputs_count + op->outputs_count;
}

#endif
