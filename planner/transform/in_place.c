/* Lets ops write in place: output `o` of op v becomes an alias of its input i under three
 * conditions. The pair is allowed (by the op's `inplace` pairs, or by its kind), both are storages
 * of their own of one size, and every other user of i's storage happens before v. Chains follow:
 * merged storages are found through their root. Two ops cannot take the same input: each would have
 * to come after the other.
 *
 * An output that is smaller than its input becomes a slice of it, which only pairs allow. It saves
 * the output's bytes while v runs, and holds the whole input for as long as the output lives, so it
 * is not always a gain. After all other pairs, such pairs are taken one by one if they lower the
 * peak of list order and no other place reaches that peak. If the bound of the graph does not fall
 * by this, none of them is taken. Cost: linear in ops, allowed pairs and the users of inputs that
 * are considered; for smaller outputs, O(V) for each that is taken, and two bounds. */
#include "in_place.h"

#include <assert.h>
#include <string.h>

#include "recipe.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/base/region.h"
#include "streams/graph/clocks.h"

struct smaller {
    uint32_t op, input, output;
};

struct merging {
    struct tarn_region *region; /* of the arrays */
    const struct tarn_graph *graph;
    const struct tarn_in_place_options *options;
    struct tarn_clocks clocks;
    enum tarn_in_place_inputs inputs;
    uint32_t *root;          /* tensor -> the root whose storage it gets */
    bool *taken;             /* storage -> does an output lie there already? */
    struct smaller *smaller; /* pairs whose output is smaller than the input, otherwise allowed */
    size_t smaller_count, smaller_room;
    bool no_memory;
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
    return tarn_tensor_begin(&graph->tensors[t]) == 0 && graph->tensors[t].size == storage->size;
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

/* Is the tensor among the inputs, and no other name of its storage? */
static bool is_read(const struct tarn_graph *graph, struct tarn_list inputs, uint32_t tensor)
{
    for (size_t k = 0; k < inputs.count; k++)
        if (inputs.ids[k] != tensor &&
            graph->tensors[inputs.ids[k]].storage == graph->tensors[tensor].storage)
            return false;
    return tarn_list_has(inputs, tensor);
}

bool tarn_in_place_may_run(const struct tarn_graph *graph, const struct tarn_graph_op *op,
                           struct tarn_list inputs, struct tarn_list outputs)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t k = 0; k < extra->inplace_count; k++) {
        uint32_t input = extra->inplace[k][0], output = extra->inplace[k][1];
        if (graph->tensors[input].storage == graph->tensors[output].storage &&
            tarn_list_has(outputs, output) && !is_read(graph, inputs, input))
            return false;
    }
    return true;
}

/* Does every implementation of the op read the input? */
static bool is_always_read(const struct tarn_graph *graph, const struct tarn_graph_op *op,
                           uint32_t input)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t i = 0; i < extra->implementations_count; i++)
        if (extra->implementations[i].inputs.count > 0 &&
            !is_read(graph, extra->implementations[i].inputs, input))
            return false;
    return true;
}

/* May an op write over the input, whatever implementations may be chosen later? */
static bool may_lose(const struct merging *merging, const struct tarn_graph_op *op, uint32_t input,
                     bool is_pair)
{
    return merging->inputs == TARN_OVER_ANY || (merging->inputs == TARN_OVER_PAIRED && is_pair) ||
           is_always_read(merging->graph, op, input);
}

/* Has the storage a fixed offset, and another one too where the two would share bytes? The longer
 * the first lives, the less it keeps clear of the other. */
static bool shares_fixed_bytes(const struct tarn_graph *graph, uint32_t storage)
{
    const struct tarn_storage *own = &graph->storages[storage];
    if (!tarn_storage_is_fixed(graph, storage)) return false;
    uint64_t begin = tarn_tensor_wanted(&graph->tensors[own->tensor]);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *other = &graph->storages[a];
        if (a == storage || other->space != own->space || !tarn_storage_is_fixed(graph, a))
            continue;
        uint64_t at = tarn_tensor_wanted(&graph->tensors[other->tensor]);
        if (at < begin ? begin - at < other->size : at - begin < own->size) return true;
    }
    return false;
}

static void merge_pair(struct merging *merging, const struct tarn_storage *from, uint32_t output)
{
    assert(merging->root[merging->root[from->tensor]] == merging->root[from->tensor]);
    merging->root[output] = merging->root[from->tensor];
    merging->taken[from - merging->graph->storages] = true;
    merging->report.merged++;
    merging->report.bytes += merging->graph->tensors[output].size;
}

static void note_smaller(struct merging *merging, struct smaller pair)
{
    struct smaller *list =
        tarn_region_grow(merging->region, merging->smaller, &merging->smaller_room,
                         merging->smaller_count + 1, sizeof *list);
    merging->no_memory |= !list;
    if (!list) return;
    merging->smaller = list;
    list[merging->smaller_count++] = pair;
}

static void try_pair(struct merging *merging, uint32_t v, uint32_t input, uint32_t output,
                     bool is_pair)
{
    const struct tarn_graph *graph = merging->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_storage *from = &graph->storages[graph->tensors[input].storage];
    const struct tarn_storage *to = &graph->storages[graph->tensors[output].storage];
    if (to->tensor != output || merging->root[output] != output) return; /* written in place */
    if (from->space != to->space || !may_lose(merging, op, input, is_pair)) return;
    if (from->size < to->size || to->size == 0 || from->group != TARN_NONE ||
        to->group != TARN_NONE)
        return;
    if (graph->tensors[output].offset_rule == TARN_OFFSET_FIXED) return;
    if (!tarn_op_is_inside(graph, v, from->producer == TARN_NONE ? v : from->producer) ||
        !tarn_op_is_inside(graph, from->producer == TARN_NONE ? v : from->producer, v))
        return; /* one is there without the other */
    if (from->persistent || from->pinned || merging->taken[from - graph->storages]) return;
    if (!is_whole(graph, input) || !has_one_name(graph, op, input) ||
        !is_last_user(merging, v, from) ||
        shares_fixed_bytes(graph, graph->tensors[merging->root[from->tensor]].storage))
        return;
    if (from->size == to->size)
        merge_pair(merging, from, output);
    else if (is_pair)
        note_smaller(merging, (struct smaller){v, input, output});
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
        try_pair(merging, v, extra->inplace[k][0], extra->inplace[k][1], true);
    if (op->view || !is_allowed_kind(merging->options, op->kind)) return;
    for (uint32_t i = 0; i < op->inputs_count; i++) {
        for (uint32_t o = 0; o < op->outputs_count; o++)
            try_pair(merging, v, op->inputs[i], tarn_outputs(op)[o], false);
    }
}

static enum tarn_status merge(struct merging *merging)
{
    const struct tarn_graph *graph = merging->graph;
    struct tarn_region *region = merging->region, clocks = {.chunks = NULL};
    merging->root = tarn_region_take(region, graph->tensors_count, sizeof *merging->root);
    merging->taken = tarn_region_take(region, graph->storages_count, sizeof *merging->taken);
    if (region->is_exhausted) return TARN_SYSTEM;
    enum tarn_status status = tarn_clocks_init(&merging->clocks, &clocks, graph);
    for (uint32_t t = 0; t < graph->tensors_count; t++) merging->root[t] = t;
    for (uint32_t i = 0; status == TARN_OK && i < graph->ops_count; i++)
        try_op(merging, graph->order[i]);
    tarn_region_finish(&clocks);
    return merging->no_memory ? TARN_SYSTEM : status;
}

/* ---- Smaller outputs ---- */

enum { SMALLER_ROUNDS = 4096 };

/* The bytes alive in list order, by the root that storages were merged into. */
struct profile {
    uint32_t *begin, *end; /* root -> its first op's rank, and its last one's */
    uint64_t *size;        /* root -> the bytes that it takes */
    uint64_t *alive;       /* rank -> bytes */
};

static void add_alive(const struct profile *profile, uint32_t begin, uint32_t end, uint64_t bytes)
{
    for (uint32_t i = begin; i <= end; i++) profile->alive[i] += bytes; /* modulo 2^64 */
}

static bool profile_init(struct profile *profile, const struct merging *merging)
{
    const struct tarn_graph *graph = merging->graph;
    struct tarn_region *region = merging->region;
    *profile =
        (struct profile){tarn_region_take(region, graph->tensors_count, sizeof *profile->begin),
                         tarn_region_take(region, graph->tensors_count, sizeof *profile->end),
                         tarn_region_take(region, graph->tensors_count, sizeof *profile->size),
                         tarn_region_take(region, graph->ops_count, sizeof *profile->alive)};
    if (region->is_exhausted) return false;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        const uint32_t *users = tarn_storage_users(graph, storage);
        uint32_t first = graph->rank[storage->producer], last = first;
        for (uint32_t k = 0; k < storage->users_count; k++)
            if (graph->rank[users[k]] > last) last = graph->rank[users[k]];
        if (storage->pinned) last = graph->ops_count - 1;
        if (storage->tensor == TARN_NONE) {
            add_alive(profile, first, last, storage->size);
            continue;
        }
        uint32_t root = merging->root[storage->tensor];
        bool is_new = profile->size[root] == 0;
        if (is_new || first < profile->begin[root]) profile->begin[root] = first;
        if (is_new || last > profile->end[root]) profile->end[root] = last;
        if (storage->size > profile->size[root]) profile->size[root] = storage->size;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        if (profile->size[t] > 0)
            add_alive(profile, profile->begin[t], profile->end[t], profile->size[t]);
    return true;
}

/* Would it lower the bytes of op v, at which `peak` bytes are alive, and stay below that? */
static bool helps(const struct merging *merging, const struct profile *profile,
                  const struct smaller *pair, uint64_t peak)
{
    const struct tarn_graph *graph = merging->graph;
    uint32_t at = graph->rank[pair->op], from = merging->root[pair->input];
    if (merging->root[pair->output] != pair->output ||
        merging->taken[graph->tensors[pair->input].storage] || profile->alive[at] != peak)
        return false;
    uint64_t more = profile->size[from] - profile->size[pair->output];
    for (uint32_t i = profile->end[from] + 1; i <= profile->end[pair->output]; i++)
        if (profile->alive[i] + more >= peak) return false;
    return true;
}

static void take(struct merging *merging, const struct profile *profile, const struct smaller *pair)
{
    const struct tarn_graph *graph = merging->graph;
    uint32_t from = merging->root[pair->input], to = pair->output;
    add_alive(profile, profile->begin[to], profile->end[to], -profile->size[to]);
    if (profile->end[to] > profile->end[from]) {
        add_alive(profile, profile->end[from] + 1, profile->end[to], profile->size[from]);
        profile->end[from] = profile->end[to];
    }
    merge_pair(merging, &graph->storages[graph->tensors[pair->input].storage], to);
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        if (merging->root[t] == to) merging->root[t] = from;
}

/* False: no memory. */
static bool take_smaller(struct merging *merging)
{
    struct profile profile;
    if (!profile_init(&profile, merging)) return false;
    for (uint32_t round = 0; round < SMALLER_ROUNDS; round++) {
        uint64_t peak = 0;
        size_t i = 0;
        for (uint32_t v = 0; v < merging->graph->ops_count; v++)
            if (profile.alive[v] > peak) peak = profile.alive[v];
        while (i < merging->smaller_count && !helps(merging, &profile, &merging->smaller[i], peak))
            i++;
        if (i == merging->smaller_count) return true;
        take(merging, &profile, &merging->smaller[i]);
    }
    return true;
}

/* *graph: with smaller outputs in place, instead of without, if its bound is lower. */
static enum tarn_status try_smaller(struct merging *merging, struct tarn_graph *source,
                                    struct tarn_graph **graph, struct tarn_error *error)
{
    struct tarn_in_place_report before = merging->report;
    struct tarn_graph *other = NULL;
    uint64_t bound, lower = 0;
    if (merging->smaller_count == 0) return TARN_OK;
    if (!take_smaller(merging)) return tarn_error_no_memory(error);
    if (merging->report.merged == before.merged) return TARN_OK;
    enum tarn_status status = tarn_recipe_build(
        &(struct tarn_recipe){.graph = source, .root = merging->root}, &other, error);
    if (status == TARN_OK) status = tarn_graph_bound(*graph, &bound, error);
    if (status == TARN_OK) status = tarn_graph_bound(other, &lower, error);
    if (status == TARN_OK && lower < bound) {
        struct tarn_graph *larger = *graph;
        *graph = other;
        other = larger;
    } else {
        merging->report = before;
    }
    tarn_graph_destroy(other);
    return status;
}

enum tarn_status tarn_in_place_run(struct tarn_graph *graph,
                                   const struct tarn_in_place_options *given,
                                   enum tarn_in_place_inputs inputs, struct tarn_graph **result,
                                   struct tarn_error *error)
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
    struct tarn_region region = {.chunks = NULL};
    struct merging merging = {
        .region = &region, .graph = graph, .options = &options, .inputs = inputs};
    if (merge(&merging) == TARN_OK)
        status = tarn_recipe_build(&(struct tarn_recipe){.graph = graph, .root = merging.root},
                                   result, error);
    else
        status = tarn_error_no_memory(error);
    if (status == TARN_OK) status = try_smaller(&merging, graph, result, error);
    if (status != TARN_OK) {
        tarn_graph_destroy(*result);
        *result = NULL;
    }
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
    return tarn_in_place_run(graph, options, TARN_OVER_ANY, result, error);
}

bool tarn_in_place_is_choice(const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < tarn_extra(op)->inplace_count; k++)
            if (!is_always_read(graph, op, tarn_extra(op)->inplace[k][0])) return true;
    }
    return false;
}
