/* In-place: output `o` of op v becomes an alias of its input i where that is allowed (the op's
 * `inplace` pairs, or its kind), both are storages of their own of one size, and every other op
 * that touches i's storage happens before v. Chains follow: what was merged is found through its
 * root. Two ops cannot take the same input: each would have to come after the other.
 * Cost: linear in ops, allowed pairs and the users of inputs that are considered. */
#include "in_place.h"

#include <assert.h>
#include <string.h>

#include "recipe.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/base/region.h"
#include "streams/graph/clocks.h"

struct merging {
    const struct tarn_graph *graph;
    const struct tarn_in_place_options *options;
    struct tarn_clocks clocks;
    bool chooses;   /* may the op be carried out by another implementation? */
    uint32_t *root; /* tensor -> the root whose storage it gets */
    bool *taken;    /* storage -> does an output lie there already? */
    struct tarn_in_place_report report;
};

/* Does every other op that touches the storage happen before v? */
static bool is_last_user(const struct merging *merging, uint32_t v,
                         const struct tarn_storage *storage)
{
    for (uint32_t k = 0; k < storage->users_count; k++) {
        uint32_t u = tarn_storage_users(merging->graph, storage)[k];
        if (u != v && !tarn_clocks_before(&merging->clocks, merging->graph, u, v)) return false;
    }
    return true;
}

/* Does the tensor name all of its storage? */
static bool is_whole(const struct tarn_graph *graph, uint32_t t)
{
    const struct tarn_storage *storage = &graph->storages[graph->tensors[t].storage];
    return graph->tensors[t].offset == 0 && graph->tensors[t].size == storage->size;
}

/* Does op v meet the storage through this tensor alone? A view of it may lie differently. */
static bool has_one_name(const struct tarn_graph *graph, const struct tarn_graph_op *op,
                         uint32_t input)
{
    uint32_t storage = graph->tensors[input].storage;
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        if (op->inputs[k] != input && graph->tensors[op->inputs[k]].storage == storage)
            return false;
    }
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        if (graph->tensors[tarn_outputs(op)[k]].storage == storage) return false;
    }
    return true;
}

static bool has_input(struct tarn_list inputs, uint32_t input)
{
    for (size_t k = 0; k < inputs.count; k++)
        if (inputs.ids[k] == input) return true;
    return false;
}

/* Does every implementation of the op read the input? */
static bool is_always_read(const struct tarn_graph_op *op, uint32_t input)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t i = 0; i < extra->implementations_count; i++) {
        struct tarn_list inputs = extra->implementations[i].inputs;
        if (inputs.count > 0 && !has_input(inputs, input)) return false;
    }
    return true;
}

static void try_pair(struct merging *merging, uint32_t v, uint32_t input, uint32_t output)
{
    const struct tarn_graph *graph = merging->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_storage *from = &graph->storages[graph->tensors[input].storage];
    const struct tarn_storage *to = &graph->storages[graph->tensors[output].storage];
    if (to->tensor != output || merging->root[output] != output) return; /* written in place */
    if (from->space != to->space || (merging->chooses && !is_always_read(op, input))) return;
    if (from->size != to->size || from->group != TARN_NONE || to->group != TARN_NONE) return;
    if (from->persistent || from->pinned || merging->taken[from - graph->storages]) return;
    if (!is_whole(graph, input) || !has_one_name(graph, op, input) ||
        !is_last_user(merging, v, from))
        return;
    assert(merging->root[merging->root[from->tensor]] == merging->root[from->tensor]);
    merging->root[output] = merging->root[from->tensor];
    merging->taken[from - graph->storages] = true;
    merging->report.merged++;
    merging->report.bytes += to->size;
}

static bool is_allowed_kind(const struct tarn_in_place_options *options, const char *kind)
{
    for (size_t i = 0; i < options->kinds_count; i++) {
        if (strcmp(options->kinds[i], kind) == 0) return true;
    }
    return false;
}

static void try_op(struct merging *merging, uint32_t v)
{
    const struct tarn_graph_op *op = &merging->graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t k = 0; k < extra->inplace_count; k++)
        try_pair(merging, v, extra->inplace[k][0], extra->inplace[k][1]);
    if (op->view || !is_allowed_kind(merging->options, op->kind)) return;
    for (uint32_t i = 0; i < op->inputs_count; i++) {
        for (uint32_t o = 0; o < op->outputs_count; o++)
            try_pair(merging, v, op->inputs[i], tarn_outputs(op)[o]);
    }
}

static enum tarn_status merge(struct merging *merging, struct tarn_region *region)
{
    const struct tarn_graph *graph = merging->graph;
    merging->root = tarn_region_take(region, graph->tensors_count, sizeof *merging->root);
    merging->taken = tarn_region_take(region, graph->storages_count, sizeof *merging->taken);
    if (region->is_exhausted) return TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    enum tarn_status status = tarn_clocks_init(&merging->clocks, region, graph);
    for (uint32_t t = 0; t < graph->tensors_count; t++) merging->root[t] = t;
    for (uint32_t i = 0; status == TARN_OK && i < graph->ops_count; i++)
        try_op(merging, graph->order[i]);
    tarn_region_release(region, mark);
    return status;
}

enum tarn_status tarn_in_place_run(struct tarn_graph *graph,
                                   const struct tarn_in_place_options *given, bool chooses,
                                   struct tarn_graph **result, struct tarn_error *error)
{
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    struct tarn_in_place_options options = {0};
    tarn_error_clear(error);
    enum tarn_status status =
        tarn_options_take(&options, sizeof options, given, "in-place options", error);
    if (status == TARN_OK)
        status = tarn_options_words(options.kinds, options.kinds_count, "kinds", error);
    if (status != TARN_OK) return status;
    struct merging merging = {.graph = graph, .options = &options, .chooses = chooses};
    struct tarn_region region = {.chunks = NULL};
    if (merge(&merging, &region) == TARN_OK)
        status = tarn_recipe_build(&(struct tarn_recipe){.graph = graph, .root = merging.root},
                                   result, error);
    else
        status = tarn_error_no_memory(error);
    tarn_region_finish(&region);
    if (status == TARN_OK)
        tarn_report_give(options.report, options.report_size, &merging.report,
                         sizeof merging.report);
    return status;
}

enum tarn_status tarn_graph_in_place(struct tarn_graph *graph,
                                     const struct tarn_in_place_options *options,
                                     struct tarn_graph **result, struct tarn_error *error)
{
    return tarn_in_place_run(graph, options, false, result, error);
}
