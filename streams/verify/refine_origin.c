/* What an op of the final graph stands for: the inputs and outputs of its origin, or those of the
 * implementation that was chosen where it names its own. Cost: constant, or linear in outputs. */
#include <assert.h>

#include "refine.h"

const struct tarn_graph_op *tarn_refine_origin(const struct tarn_comparison *comparison, uint32_t v)
{
    uint32_t origin = tarn_plan_op_origin(comparison->plan, v);
    assert(origin < comparison->source->ops_count); /* the shape is checked first */
    return &comparison->source->ops[origin];
}

const struct tarn_implementation *
tarn_refine_implementation(const struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *origin = tarn_refine_origin(comparison, v);
    uint32_t chosen = tarn_plan_op_implementation(comparison->plan, v);
    assert(chosen == TARN_NONE || chosen < tarn_extra(origin)->implementations_count);
    return chosen == TARN_NONE ? NULL : &tarn_extra(origin)->implementations[chosen];
}

struct tarn_list tarn_refine_inputs(const struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *origin = tarn_refine_origin(comparison, v);
    const struct tarn_implementation *chosen = tarn_refine_implementation(comparison, v);
    if (chosen && chosen->inputs.count > 0) return chosen->inputs;
    return (struct tarn_list){origin->inputs, origin->inputs_count};
}

struct tarn_list tarn_refine_outputs(const struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *origin = tarn_refine_origin(comparison, v);
    const struct tarn_implementation *chosen = tarn_refine_implementation(comparison, v);
    if (chosen && chosen->outputs.count > 0) return chosen->outputs;
    return (struct tarn_list){tarn_outputs(origin), origin->outputs_count};
}

bool tarn_refine_is_primary(const struct tarn_comparison *comparison, uint32_t v)
{
    struct tarn_list outputs = tarn_refine_outputs(comparison, v);
    for (uint32_t k = 0; k < comparison->final->ops[v].outputs_count; k++) {
        if (tarn_outputs(&comparison->final->ops[v])[k] != outputs.ids[k]) return false;
    }
    return true;
}
