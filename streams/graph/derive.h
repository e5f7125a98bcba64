/* Derives data from the records of a graph. Each step fills its part of struct tarn_graph,
 * allocates results from the graph's region, and returns TARN_SYSTEM if memory runs out. */
#ifndef TARN_STREAMS_GRAPH_DERIVE_H
#define TARN_STREAMS_GRAPH_DERIVE_H

#include <assert.h>

#include "report.h"

/* A control arc given outside of an op's record. */
struct tarn_control_arc {
    tarn_op later, earlier;
};

/* Appends arcs to the control lists of their later ops, in the order in which they come. */
enum tarn_status tarn_derive_control(struct tarn_graph *graph, const struct tarn_control_arc *arcs,
                                     uint32_t count);
/* The ops of every stream, and every op's position. */
enum tarn_status tarn_derive_streams(struct tarn_graph *graph);
/* Cross-stream predecessors and successors. */
enum tarn_status tarn_derive_arcs(struct tarn_graph *graph);
/* Topological order and rank. TARN_BAD_INPUT if there is none; the message shows a cycle. */
enum tarn_status tarn_derive_order(struct tarn_graph *graph, const struct tarn_report *report);
/* Storages with their parts and users. */
enum tarn_status tarn_derive_storages(struct tarn_graph *graph, const struct tarn_report *report);
/* Contiguous groups, as given (`groups`: roots, offsets, padding) and joined if they share members.
 * Needs storages; TARN_BAD_INPUT: they contradict each other. */
enum tarn_status tarn_derive_layout(struct tarn_graph *graph, const struct tarn_group *groups,
                                    const struct tarn_report *report);

/* Appends implementations that follow from an op's kind, unless it has one of that name: a
 * batch-norm in training gets `from_saved`. Needs validated records; a second call changes
 * nothing. */
enum tarn_status tarn_derive_implementations(struct tarn_graph *graph);

/* The inputs that an op reads in every implementation, if one of them reads other inputs than the
 * op. In checked execution the outputs of every run depend only on them, see
 * runtime/check/expected.h. Given lists stay. Needs storages.
 */
enum tarn_status tarn_derive_common(struct tarn_graph *graph);

/* The arcs into an op as its record gives them: the producers of its inputs, then its control arcs.
 * TARN_NONE for an input without a producer. */
static inline uint32_t tarn_op_arcs_count(const struct tarn_graph_op *op)
{
    return op->inputs_count + tarn_extra(op)->control_count;
}

static inline uint32_t tarn_op_arc(const struct tarn_graph *graph, const struct tarn_graph_op *op,
                                   uint32_t k)
{
    assert(k < tarn_op_arcs_count(op));
    if (k < op->inputs_count) return graph->tensors[op->inputs[k]].producer;
    return op->extra->control[k - op->inputs_count];
}

#endif
