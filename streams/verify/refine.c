/* Refinement: the program does what the source graph says. Every op of the final graph runs an op
 * of the source graph, its origin, as written or as one of its implementations, and
 *     every tensor of the source graph is made once, by a primary run of its producer: the op, or
 *         partial implementations that make up the op
 *     other runs make copies: tensors that name the one that they hold again; only ops that may
 *         be repeated have them
 *     every input is the version that the source graph's list order gives there, or a copy of it
 *     an op writes where nothing was, over a version that it reads, or where it wrote in the source
 *     what persists and what is pinned ends as it did
 *     control arcs hold between primary runs
 * Cost: linear in both graphs, and clocks for the control arcs. */
#include "refine.h"

#include <stdlib.h>

struct tarn_list tarn_refine_inputs(const struct tarn_comparison *all, uint32_t v)
{
    const struct tarn_graph_op *origin = &all->source->ops[tarn_plan_op_origin(all->plan, v)];
    uint32_t implementation = tarn_plan_op_implementation(all->plan, v);
    if (implementation != TARN_NONE && origin->implementations[implementation].inputs.count > 0)
        return origin->implementations[implementation].inputs;
    return (struct tarn_list){origin->inputs, origin->inputs_count};
}

struct tarn_list tarn_refine_outputs(const struct tarn_comparison *all, uint32_t v)
{
    const struct tarn_graph_op *origin = &all->source->ops[tarn_plan_op_origin(all->plan, v)];
    uint32_t implementation = tarn_plan_op_implementation(all->plan, v);
    if (implementation != TARN_NONE && origin->implementations[implementation].outputs.count > 0)
        return origin->implementations[implementation].outputs;
    return (struct tarn_list){origin->outputs, origin->outputs_count};
}

enum tarn_status tarn_verify_refinement(const struct tarn_plan *plan,
                                        const struct tarn_graph *source,
                                        const struct tarn_program *program,
                                        struct tarn_verdict *verdict)
{
    struct tarn_comparison all = {
        .plan = plan,
        .source = source,
        .final = plan->graph,
        .program = program,
        .verdict = verdict,
        .first_primary = malloc(((size_t)source->ops_count + 1) * sizeof *all.first_primary),
        .next_primary = malloc(((size_t)plan->graph->ops_count + 1) * sizeof *all.next_primary),
    };
    enum tarn_status status = TARN_SYSTEM;
    if (all.first_primary && all.next_primary) {
        bool comparable = tarn_refine_shape(&all);
        status = verdict->no_memory ? TARN_SYSTEM : TARN_OK;
        if (comparable) status = tarn_refine_versions(&all);
        if (comparable && !status) status = tarn_refine_control(&all);
    }
    free(all.first_primary);
    free(all.next_primary);
    return status;
}
