/* Which write each read sees, if the ops of a graph run one after another in a given order. */
#ifndef TARN_STREAMS_GRAPH_VERSIONS_H
#define TARN_STREAMS_GRAPH_VERSIONS_H

#include "graph.h"

/* The name of a version of a part of a storage is the tensor through which it was written (the
 * first one, if several outputs of an op have this part); TARN_NONE: the content before the
 * iteration. An op has a slot for each input, then for each output. A slot holds, for each part of
 * its tensor, the version just before the op. */
struct tarn_versions {
    uint32_t *begin;      /* op -> start of its first slot in `found`; ops_count + 1 */
    uint32_t *found;      /* slot by slot, part by part -> version */
    uint32_t *left_begin; /* tensor -> its start in `left` */
    uint32_t *left;       /* by part of the tensor, the version just after its producer (a view:
                           * before) */
    uint32_t *last;       /* part -> version at the end of the iteration */
};

/* Runs ops[0..count) of the graph; views read but write nothing. All arrays from the region.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_versions_init(struct tarn_versions *versions, struct tarn_region *region,
                                    const struct tarn_graph *graph, const uint32_t *ops,
                                    uint32_t count);

/* The op that wrote a version, or TARN_NONE. */
static inline uint32_t tarn_version_writer(const struct tarn_graph *graph, uint32_t version)
{
    return version == TARN_NONE ? TARN_NONE : graph->tensors[version].producer;
}

/* The name of a version in the source graph. `tensor`: any tensor of its storage, for the content
 * before the iteration, whose name is the root. */
static inline uint32_t tarn_version_name(const struct tarn_graph *graph, uint32_t tensor,
                                         uint32_t version)
{
    return graph->tensors[version == TARN_NONE ? graph->tensors[tensor].root : version].origin;
}

static inline uint32_t tarn_slots_count(const struct tarn_graph_op *op)
{
    return op->inputs_count + op->outputs_count;
}

/* The tensor of an op's slot. */
static inline uint32_t tarn_slot_tensor(const struct tarn_graph_op *op, uint32_t slot)
{
    return slot < op->inputs_count ? op->inputs[slot] : tarn_outputs(op)[slot - op->inputs_count];
}

/* The storage of an op's slot. */
static inline uint32_t tarn_slot_storage(const struct tarn_graph *graph,
                                         const struct tarn_graph_op *op, uint32_t slot)
{
    return graph->tensors[tarn_slot_tensor(op, slot)].storage;
}

/* The versions that an op's slot found, by part of its tensor; linear in the slots before it. */
static inline const uint32_t *tarn_versions_found(const struct tarn_versions *versions,
                                                  const struct tarn_graph *graph, uint32_t v,
                                                  uint32_t slot)
{
    const uint32_t *found = versions->found + versions->begin[v];
    for (uint32_t k = 0; k < slot; k++)
        found += graph->tensors[tarn_slot_tensor(&graph->ops[v], k)].parts_count;
    return found;
}

/* The versions that a tensor's producer left, by part of the tensor. */
static inline const uint32_t *tarn_versions_left(const struct tarn_versions *versions,
                                                 uint32_t tensor)
{
    return versions->left + versions->left_begin[tensor];
}

/* The version of a whole tensor if one name must suffice: the version of its first part. */
static inline uint32_t tarn_versions_first(const struct tarn_graph *graph, uint32_t tensor,
                                           const uint32_t *versions)
{
    return graph->tensors[tensor].parts_count > 0 ? versions[0] : TARN_NONE;
}

#endif
