/* Decides which ops may run twice. An op's field `recomputable` says whether it gives the same
 * result again; without the field, its class decides. In both cases a repetition must not change
 * storages that outlive the iteration, and must be able to write to its own storages: if it
 * overwrites a storage, it must read the old content.
 *
 * Batch-norm as written breaks the rule, since it updates the running statistics. It gets an
 * implementation that does not update them: x, weight, bias, saved mean, saved invstd -> y
 * Cost: linear in the op's inputs and outputs.
 */
#include "recomputable_kinds.h"

#include <string.h>

#include "derive.h"
#include "streams/base/region.h"

/* ---- By class ---- */

static bool is_repeatable_class(enum tarn_op_class op_class)
{
    return op_class == TARN_CLASS_PURE || op_class == TARN_CLASS_UNKNOWN;
}

bool tarn_op_is_known(const struct tarn_graph *graph, uint32_t op)
{
    return graph->ops[op].recomputable != TARN_RECOMPUTABLE_BY_RULE ||
           tarn_graph_op_class(graph, op) != TARN_CLASS_UNKNOWN;
}

/* ---- By inputs and outputs ---- */

static bool has_storage(const struct tarn_graph *graph, struct tarn_list tensors, uint32_t storage)
{
    for (size_t k = 0; k < tensors.count; k++) {
        if (graph->tensors[tensors.ids[k]].storage == storage) return true;
    }
    return false;
}

static bool can_write_elsewhere(const struct tarn_graph *graph, uint32_t op,
                                struct tarn_list inputs, struct tarn_list outputs)
{
    for (size_t k = 0; k < outputs.count; k++) {
        uint32_t a = graph->tensors[outputs.ids[k]].storage;
        const struct tarn_storage *storage = &graph->storages[a];
        if (storage->persistent) return false;
        if (storage->producer != op && !has_storage(graph, inputs, a)) return false;
    }
    return true;
}

/* A slice may be overwritten while the rest of its storage stays, and a group member may be
 * overwritten when an overlapping member is produced. So an op that reads or writes such a storage
 * runs once. */
static bool has_slices(const struct tarn_graph *graph, struct tarn_list tensors)
{
    for (size_t k = 0; k < tensors.count; k++) {
        const struct tarn_storage *storage =
            &graph->storages[graph->tensors[tensors.ids[k]].storage];
        bool is_layered = storage->group != TARN_NONE && graph->groups[storage->group].within;
        if (storage->parts_count > 1 || is_layered) return true;
    }
    return false;
}

bool tarn_op_repeats(const struct tarn_graph *graph, uint32_t op, uint32_t implementation)
{
    const struct tarn_graph_op *record = &graph->ops[op];
    if (record->view || record->recomputable == TARN_NOT_RECOMPUTABLE) return false;
    if (record->recomputable == TARN_RECOMPUTABLE_BY_RULE &&
        !is_repeatable_class(tarn_graph_op_class(graph, op)))
        return false;
    if (tarn_extra(record)->branch_count > 0)
        return false; /* its readers may be outside of the
                       * arm */
    struct tarn_list inputs = {record->inputs, record->inputs_count};
    struct tarn_list outputs = {tarn_outputs(record), record->outputs_count};
    if (implementation != TARN_NONE) {
        const struct tarn_implementation *other =
            &tarn_extra(record)->implementations[implementation];
        if (other->inputs.count > 0) inputs = other->inputs;
        if (other->outputs.count > 0) outputs = other->outputs;
    }
    if (has_slices(graph, inputs) || has_slices(graph, outputs)) return false;
    return can_write_elsewhere(graph, op, inputs, outputs);
}

/* ---- Batch-norm ---- */

#define FROM_SAVED "from_saved"

static bool is_fresh_output(const struct tarn_graph *graph, uint32_t t)
{
    return graph->tensors[t].root == t && !tarn_kind_is_persistent(graph->tensors[t].kind);
}

static bool is_written(const struct tarn_graph *graph, const struct tarn_graph_op *op, uint32_t t)
{
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        if (graph->tensors[tarn_outputs(op)[k]].root == graph->tensors[t].root) return true;
    }
    return false;
}

/* Does the op update statistics while it makes y and saved values? */
static bool is_training_batch_norm(const struct tarn_graph *graph, const struct tarn_graph_op *op)
{
    uint32_t fresh = 0, persistent = 0;
    if (!strcasestr(op->kind, "batch_norm") || strcasestr(op->kind, "backward")) return false;
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        fresh += is_fresh_output(graph, tarn_outputs(op)[k]);
        persistent += tarn_kind_is_persistent(graph->tensors[tarn_outputs(op)[k]].kind);
    }
    return fresh >= 2 && persistent > 0;
}

static bool wants_from_saved(const struct tarn_graph *graph, const struct tarn_graph_op *op)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    if (extra->implementation != TARN_NONE || !is_training_batch_norm(graph, op)) return false;
    for (uint32_t i = 0; i < extra->implementations_count; i++) {
        if (strcmp(extra->implementations[i].name, FROM_SAVED) == 0) return false;
    }
    return true;
}

/* Reads the op's inputs without the running statistics, and the saved values; makes y, the op's
 * first fresh output. NULL ids: no memory. */
static struct tarn_implementation from_saved(struct tarn_graph *graph,
                                             const struct tarn_graph_op *op)
{
    uint32_t *ids =
        tarn_region_take(&graph->region, (size_t)op->inputs_count + op->outputs_count, sizeof *ids);
    uint32_t first = 0, count = 1;
    if (!ids) return (struct tarn_implementation){0};
    while (!is_fresh_output(graph, tarn_outputs(op)[first])) first++;
    ids[0] = tarn_outputs(op)[first];
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        if (!is_written(graph, op, op->inputs[k])) ids[count++] = op->inputs[k];
    }
    for (uint32_t k = first + 1; k < op->outputs_count; k++) {
        if (is_fresh_output(graph, tarn_outputs(op)[k])) ids[count++] = tarn_outputs(op)[k];
    }
    return (struct tarn_implementation){
        .name = FROM_SAVED, .cost = op->cost, .inputs = {ids + 1, count - 1}, .outputs = {ids, 1}};
}

enum tarn_status tarn_derive_implementations(struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        if (!wants_from_saved(graph, op)) continue;
        struct tarn_op_extra *extra = tarn_graph_own_extra(graph, v);
        if (!extra) return TARN_SYSTEM;
        uint32_t count = extra->implementations_count;
        struct tarn_implementation *longer =
            tarn_region_take(&graph->region, (size_t)count + 1, sizeof *longer);
        if (!longer) return TARN_SYSTEM;
        if (count > 0) memcpy(longer, extra->implementations, count * sizeof *longer);
        longer[count] = from_saved(graph, op);
        if (!longer[count].inputs.ids) return TARN_SYSTEM;
        extra->implementations = longer;
        extra->implementations_count = count + 1;
    }
    return TARN_OK;
}
