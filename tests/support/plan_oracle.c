/* The rules: all pairs of touches over the closure of lists and waits. It shares nothing with the
 * verifier: no clocks, no interval map, no compiled program. Cost: quadratic in touches. */
#include "plan_oracle.h"

#include <stdlib.h>

#include "reach_oracle.h"

/* ---- Touches ---- */

bool oracle_reads(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    const struct tarn_graph_op *info = &graph->ops[op];
    for (uint32_t k = 0; k < info->inputs_count; k++) {
        if (graph->tensors[info->inputs[k]].storage == storage) return true;
    }
    return false;
}

bool oracle_writes(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    const struct tarn_graph_op *info = &graph->ops[op];
    for (uint32_t k = 0; k < info->outputs_count; k++) {
        if (graph->tensors[tarn_outputs(info)[k]].storage == storage) return true;
    }
    return tarn_extra(info)->workspace_storage == storage;
}

bool oracle_touches(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    return !graph->ops[op].view &&
           (oracle_reads(graph, op, storage) || oracle_writes(graph, op, storage));
}

uint64_t oracle_offset(const struct tarn_plan *plan, uint32_t storage)
{
    const struct tarn_storage *record = &plan->graph->storages[storage];
    const struct tarn_place *place =
        record->persistent ? tarn_place_find(plan->places_persistent, plan->places_persistent_count,
                                             record->tensor)
        : record->tensor == TARN_NONE
            ? tarn_place_find(plan->workspaces, plan->workspaces_count, record->producer)
            : tarn_place_find(plan->storages, plan->storages_count, record->tensor);
    return place->offset;
}

static uint64_t block_size(const struct tarn_graph *graph, uint32_t storage)
{
    const struct tarn_storage *record = &graph->storages[storage];
    if (record->group == TARN_NONE) return record->size;
    uint64_t block = 0; /* without the padding of members */
    for (uint32_t b = 0; b < graph->storages_count; b++)
        if (graph->storages[b].group == record->group) block += graph->storages[b].size;
    return block;
}

uint64_t oracle_reserved(const struct tarn_graph *graph, uint32_t storage, uint64_t alignment)
{
    const struct tarn_storage *record = &graph->storages[storage];
    if (graph->spaces_count > 0 && graph->spaces[record->space].alignment > 0)
        alignment = graph->spaces[record->space].alignment;
    if (record->group != TARN_NONE && graph->groups[record->group].padded)
        return (record->size + alignment - 1) / alignment * alignment;
    if (record->group != TARN_NONE) {
        const struct tarn_group *group = &graph->groups[record->group];
        if (group->storages[group->storages_count - 1] != storage) return record->size;
    }
    uint64_t block = block_size(graph, storage);
    return record->size + (alignment - block % alignment) % alignment;
}

static bool is_overlap(uint64_t x, uint64_t x_size, uint64_t y, uint64_t y_size)
{
    return x < y + y_size && y < x + x_size;
}

bool oracle_share_bytes(const struct tarn_plan *plan, uint32_t a, uint32_t b)
{
    const struct tarn_graph *graph = plan->graph;
    return graph->storages[a].persistent == graph->storages[b].persistent &&
           graph->storages[a].space == graph->storages[b].space &&
           is_overlap(oracle_offset(plan, a), oracle_reserved(graph, a, plan->alignment),
                      oracle_offset(plan, b), oracle_reserved(graph, b, plan->alignment));
}

/* ---- Storages that share bytes ---- */

bool oracle_is_workspace_before(const struct tarn_graph *graph, uint32_t a, uint32_t b)
{
    uint32_t op = graph->storages[a].producer;
    if (graph->storages[a].tensor != TARN_NONE || !graph->ops[op].workspace_first) return false;
    return a != b && graph->storages[b].producer == op && !graph->storages[b].persistent;
}

static bool is_pair_safe(const struct reach *reach, uint32_t a, uint32_t b)
{
    if (reach->plan->graph->storages[a].persistent) return false;
    return reach_may_share(reach, a, b) && reach_precedes(reach, a, 0, b, 1) &&
           reach_precedes(reach, b, 0, a, 1);
}

static bool are_pairs_safe(const struct reach *reach)
{
    const struct tarn_plan *plan = reach->plan;
    uint32_t count = plan->graph->storages_count;
    uint64_t *offset = malloc((count + 1) * sizeof *offset);
    uint64_t *size = malloc((count + 1) * sizeof *size);
    if (!offset || !size) abort();
    bool ok = true;
    for (uint32_t a = 0; a < count; a++) {
        offset[a] = oracle_offset(plan, a);
        size[a] = oracle_reserved(plan->graph, a, plan->alignment);
        for (uint32_t b = 0; ok && b < a; b++) {
            bool share = plan->graph->storages[a].persistent == plan->graph->storages[b].persistent;
            if (share && is_overlap(offset[a], size[a], offset[b], size[b]))
                ok = is_pair_safe(reach, a, b);
        }
    }
    free(offset);
    free(size);
    return ok;
}

/* ---- Touches of one storage ---- */

/* Two touches of one storage, u earlier in list order, of which one writes. */
static bool are_ordered(const struct reach *reach, uint32_t storage, uint32_t u, uint32_t v)
{
    const struct tarn_graph *graph = reach->plan->graph;
    if (!oracle_writes(graph, u, storage) && !oracle_writes(graph, v, storage)) return true;
    return reach_is_before(reach, u, 0, v, 0);
}

/* The previous iteration's touches and this one's: with a planned storage only the first write
 * matters, all else of this iteration comes after it. */
static bool is_boundary_kept(const struct reach *reach, uint32_t storage, uint32_t u, uint32_t v)
{
    const struct tarn_graph *graph = reach->plan->graph;
    bool matters = graph->storages[storage].persistent
                       ? oracle_writes(graph, u, storage) || oracle_writes(graph, v, storage)
                       : graph->storages[storage].producer == v;
    return !matters || reach_is_before(reach, u, 0, v, 1);
}

static bool is_storage_ordered(const struct reach *reach, uint32_t storage)
{
    const struct tarn_graph *graph = reach->plan->graph;
    uint32_t *users = malloc((graph->ops_count + 1) * sizeof *users), count = 0;
    if (!users) abort();
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        if (oracle_touches(graph, graph->order[i], storage)) users[count++] = graph->order[i];
    }
    bool ok = true;
    for (uint32_t i = 0; ok && i < count; i++) {
        for (uint32_t j = 0; ok && j < count; j++) {
            if (i < j) ok = are_ordered(reach, storage, users[i], users[j]);
            ok = ok && is_boundary_kept(reach, storage, users[i], users[j]);
        }
    }
    free(users);
    return ok;
}

/* ---- Control arcs ---- */

/* A walk forward from a launched op through views, which remembers whether an arc was a control
 * arc: [view][by_control]. */
struct walk {
    const struct reach *reach;
    uint32_t from;
    bool (*met)[2];
    bool kept;
};

static void follow(struct walk *walk, uint32_t op, bool by_control);

static void follow_arcs(struct walk *walk, uint32_t op, bool by_control)
{
    const struct tarn_graph *graph = walk->reach->plan->graph;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *later = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(later);
        for (uint32_t k = 0; k < later->inputs_count; k++) {
            if (graph->tensors[later->inputs[k]].producer == op) follow(walk, v, by_control);
        }
        for (uint32_t k = 0; k < extra->control_count; k++) {
            if (extra->control[k] == op) follow(walk, v, true);
        }
    }
}

static void follow(struct walk *walk, uint32_t op, bool by_control)
{
    if (!walk->reach->plan->graph->ops[op].view) {
        if (by_control && !reach_is_before(walk->reach, walk->from, 0, op, 0)) walk->kept = false;
    } else if (!walk->met[op][by_control]) {
        walk->met[op][by_control] = true;
        follow_arcs(walk, op, by_control);
    }
}

static bool are_control_arcs_kept(const struct reach *reach)
{
    const struct tarn_graph *graph = reach->plan->graph;
    struct walk walk = {.reach = reach, .kept = true};
    for (uint32_t u = 0; u < graph->ops_count && walk.kept; u++) {
        if (graph->ops[u].view) continue;
        walk.from = u;
        walk.met = calloc(graph->ops_count, sizeof *walk.met);
        if (!walk.met) abort();
        follow_arcs(&walk, u, false);
        free(walk.met);
    }
    return walk.kept;
}

/* ---- All of it ---- */

bool oracle_deadlocks(const struct tarn_plan *plan)
{
    struct reach *reach = reach_create(plan);
    bool deadlocks = reach_has_cycle(reach);
    reach_destroy(reach);
    return deadlocks;
}

bool oracle_accepts(const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    struct reach *reach = reach_create(plan);
    bool ok = !reach_has_cycle(reach) && are_control_arcs_kept(reach) && are_pairs_safe(reach);
    for (uint32_t a = 0; ok && a < graph->storages_count; a++) ok = is_storage_ordered(reach, a);
    reach_destroy(reach);
    return ok;
}
