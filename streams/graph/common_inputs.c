/* Finds the inputs that an op reads in every implementation. The digest of an op's outputs must not
 * depend on inputs that only some runs read; otherwise a recomputation that saves an input could
 * not be checked for equal outputs. Versions are compared by name, since inputs of an
 * implementation are named as their producers left them, and the op may read them by another name.
 * Cost: linear in inputs and in the lists of implementations.
 */

#include "derive.h"
#include "streams/base/region.h"
#include "versions.h"

struct names {
    struct tarn_graph *graph;
    struct tarn_versions versions;
    uint32_t *own;   /* tensor -> input of the current op, or a value for none */
    uint32_t *round; /* name -> in how many lists it has been, counted on from `before` */
    uint32_t before;
};

static bool wants_common(const struct tarn_graph_op *op)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    if (extra->common_is_given) return false;
    for (uint32_t i = 0; i < extra->implementations_count; i++) {
        if (extra->implementations[i].inputs.count > 0) return true;
    }
    return false;
}

static uint32_t name_of_input(const struct names *names, uint32_t v, uint32_t k)
{
    uint32_t tensor = names->graph->ops[v].inputs[k];
    const uint32_t *found = tarn_versions_found(&names->versions, names->graph, v, k);
    return tarn_version_name(names->graph, tensor,
                             tarn_versions_first(names->graph, tensor, found));
}

/* The name of a tensor that an implementation of op v reads. */
static uint32_t name_of_reading(const struct names *names, uint32_t v, uint32_t tensor)
{
    const struct tarn_graph_op *op = &names->graph->ops[v];
    uint32_t k = names->own[tensor];
    if (k < op->inputs_count && op->inputs[k] == tensor) return name_of_input(names, v, k);
    return tarn_version_name(
        names->graph, tensor,
        tarn_versions_first(names->graph, tensor, tarn_versions_left(&names->versions, tensor)));
}

/* The number of lists: the op's inputs and the inputs of implementations. */
static uint32_t count_rounds(struct names *names, uint32_t v)
{
    const struct tarn_graph_op *op = &names->graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    uint32_t round = names->before + 1;
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        names->own[op->inputs[k]] = k;
        names->round[name_of_input(names, v, k)] = round;
    }
    for (uint32_t i = 0; i < extra->implementations_count; i++) {
        const struct tarn_list *inputs = &extra->implementations[i].inputs;
        if (inputs->count == 0) continue;
        for (size_t k = 0; k < inputs->count; k++) {
            uint32_t *seen = &names->round[name_of_reading(names, v, inputs->ids[k])];
            if (*seen == round) *seen = round + 1;
        }
        round++;
    }
    return round;
}

static enum tarn_status find_common(struct names *names, uint32_t v)
{
    const struct tarn_graph_op *op = &names->graph->ops[v];
    struct tarn_op_extra *extra = op->extra; /* it has implementations */
    uint32_t *common = tarn_region_take(&names->graph->region, op->inputs_count, sizeof *common);
    if (!common) return TARN_SYSTEM;
    uint32_t last = count_rounds(names, v);
    extra->common = common;
    extra->common_count = 0;
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        uint32_t name = name_of_input(names, v, k);
        if (names->round[name] != last) continue;
        names->round[name] = 0; /* once */
        common[extra->common_count++] = name;
    }
    names->before = last;
    return TARN_OK;
}

static enum tarn_status find_all(struct names *names)
{
    const struct tarn_graph *graph = names->graph;
    struct tarn_region scratch = {.chunks = NULL};
    enum tarn_status status =
        tarn_versions_init(&names->versions, &scratch, graph, graph->order, graph->ops_count);
    names->own = tarn_region_take(&scratch, graph->tensors_count, sizeof *names->own);
    names->round = tarn_region_take(&scratch, graph->tensors_count, sizeof *names->round);
    if (scratch.is_exhausted) status = TARN_SYSTEM;
    for (uint32_t v = 0; v < graph->ops_count && status == TARN_OK; v++) {
        if (wants_common(&graph->ops[v])) status = find_common(names, v);
    }
    tarn_region_finish(&scratch);
    return status;
}

enum tarn_status tarn_derive_common(struct tarn_graph *graph)
{
    struct names names = {.graph = graph};
    uint32_t v = 0;
    while (v < graph->ops_count && !wants_common(&graph->ops[v])) v++;
    return v < graph->ops_count ? find_all(&names) : TARN_OK;
}
