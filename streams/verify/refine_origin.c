/* What an op of the final graph stands for: the inputs and outputs of its origin, or those of the
 * implementation that was chosen where it names its own. Cost: constant, or linear in outputs. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static bool has_word(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) return true;
    }
    return false;
}

bool tarn_refine_allows_kind(const struct tarn_comparison *comparison, const char *kind)
{
    const struct tarn_plan *plan = comparison->plan;
    const struct tarn_verify_options *allowed = comparison->allowed;
    return has_word(plan->in_place_kinds, plan->in_place_kinds_count, kind) ||
           has_word(allowed->in_place_kinds, allowed->in_place_kinds_count, kind);
}

void tarn_refine_add(struct tarn_comparison *comparison, struct tarn_violation violation,
                     const char *format, ...)
{
    char text[sizeof violation.text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    comparison->is_other = true;
    tarn_verdict_add(comparison->verdict, violation, TARN_NO_SUSPECTS, "%s", text);
}
