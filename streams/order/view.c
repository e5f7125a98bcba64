/* Makes copies of a graph's records in which some ops are split in two. Arcs that enter such an op
 * enter its first half, and arcs that leave it leave the second half, so both halves have the op's
 * order relative to all other ops. The second half uses all storages of the op but its workspace: a
 * storage is free for others when the op has ended, as before. Cost: linear in ops, arcs and uses
 * if any op has halves; else one pass over the ops. */
#include "view.h"

#include <assert.h>
#include <string.h>

#include "streams/base/region.h"

/* ---- Ops ---- */

static uint32_t count_halved(const struct tarn_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++) count += graph->ops[v].workspace_first;
    return count;
}

/* The half that makes an op's outputs, and ends it. */
static uint32_t end_of(const struct tarn_view *view, uint32_t v)
{
    return view->second_of[v] == TARN_NONE ? v : view->second_of[v];
}

/* No workspace, and no control arcs, which enter the first half; arms of conditionals stay. */
static struct tarn_op_extra *extra_of_second(struct tarn_region *region,
                                             const struct tarn_op_extra *given)
{
    struct tarn_op_extra extra = tarn_no_extra;
    if (given->branch_count == 0) return NULL;
    extra.branch = given->branch;
    extra.branch_count = given->branch_count;
    return tarn_region_copy(region, &extra, 1, sizeof extra);
}

static void split_ops(struct tarn_view *view, struct tarn_region *region,
                      const struct tarn_graph *graph, struct tarn_graph_op *ops)
{
    uint32_t next = graph->ops_count;
    memcpy(ops, graph->ops, graph->ops_count * sizeof *ops);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        view->second_of[v] = TARN_NONE;
        if (!ops[v].workspace_first) continue;
        ops[next] = ops[v];
        ops[next].extra = extra_of_second(region, tarn_extra(&ops[v]));
        ops[next].workspace_first = false;
        ops[v].outputs_count = 0;
        ops[v].workspace_first = false;
        view->second_of[v] = next++;
    }
}

static bool take_ops(struct tarn_view *view, struct tarn_region *region,
                     const struct tarn_graph *graph)
{
    size_t count = (size_t)graph->ops_count + view->halved_count;
    view->own.ops = tarn_region_take(region, count, sizeof *view->own.ops);
    view->own.tensors =
        tarn_region_copy(region, graph->tensors, graph->tensors_count, sizeof *view->own.tensors);
    view->second_of = tarn_region_take(region, graph->ops_count, sizeof *view->second_of);
    if (region->is_exhausted) return false;
    split_ops(view, region, graph, view->own.ops);
    if (region->is_exhausted) return false;
    view->own.ops_count = (uint32_t)count;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        struct tarn_graph_tensor *tensor = &view->own.tensors[t];
        if (tensor->producer != TARN_NONE) tensor->producer = end_of(view, tensor->producer);
    }
    return true;
}

/* ---- Order ---- */

/* Writes ops, each second half right after its first half; returns the number of ops. */
static uint32_t copy_ops(const struct tarn_view *view, const uint32_t *ops, uint32_t count,
                         uint32_t *to)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        to[next++] = ops[i];
        if (view->second_of[ops[i]] != TARN_NONE) to[next++] = view->second_of[ops[i]];
    }
    return next;
}

static bool take_order(struct tarn_view *view, struct tarn_region *region,
                       const struct tarn_graph *graph)
{
    size_t count = view->own.ops_count;
    uint32_t *order = tarn_region_take(region, count, sizeof *order);
    uint32_t *rank = tarn_region_take(region, count, sizeof *rank);
    uint32_t *listed = tarn_region_take(region, count, sizeof *listed);
    struct tarn_graph_stream *streams =
        tarn_region_copy(region, graph->streams, graph->streams_count, sizeof *streams);
    if (region->is_exhausted) return false;
    copy_ops(view, graph->order, graph->ops_count, order);
    for (uint32_t i = 0; i < count; i++) rank[order[i]] = i;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        streams[s].ops = listed;
        streams[s].ops_count =
            copy_ops(view, graph->streams[s].ops, graph->streams[s].ops_count, listed);
        for (uint32_t i = 0; i < streams[s].ops_count; i++) view->own.ops[listed[i]].position = i;
        listed += streams[s].ops_count;
    }
    view->own.order = order;
    view->own.rank = rank;
    view->own.streams = streams;
    return true;
}

/* Gives the neighbour lists of ops to their first (or second) halves; the other half has none. */
static bool take_arcs(struct tarn_view *view, struct tarn_region *region,
                      const struct tarn_arcs *given, bool successors, struct tarn_arcs *arcs)
{
    uint32_t given_count = view->own.ops_count - view->halved_count, at = 0;
    uint32_t *begin = tarn_region_take(region, (size_t)view->own.ops_count + 1, sizeof *begin);
    uint32_t *ops = tarn_region_take(region, given->begin[given_count], sizeof *ops);
    uint32_t *op_of = tarn_region_take(region, view->halved_count, sizeof *op_of);
    if (region->is_exhausted) return false;
    for (uint32_t v = 0; v < given_count; v++)
        if (view->second_of[v] != TARN_NONE) op_of[view->second_of[v] - given_count] = v;
    for (uint32_t v = 0; v < view->own.ops_count; v++) {
        bool is_second = v >= given_count;
        uint32_t op = is_second ? op_of[v - given_count] : v;
        bool has_list = successors ? end_of(view, op) == v : !is_second;
        begin[v] = at;
        for (uint32_t k = given->begin[op]; has_list && k < given->begin[op + 1]; k++)
            ops[at++] = successors ? given->ops[k] : end_of(view, given->ops[k]);
    }
    begin[view->own.ops_count] = at;
    *arcs = (struct tarn_arcs){begin, ops};
    return true;
}

/* ---- Storages ---- */

/* Users stay in topological order, since a second half comes right after the first half. */
static bool take_storages(struct tarn_view *view, struct tarn_region *region,
                          const struct tarn_graph *graph)
{
    size_t count = 0;
    for (uint32_t a = 0; a < graph->storages_count; a++) count += graph->storages[a].users_count;
    uint32_t *users = tarn_region_take(region, count, sizeof *users), begin = 0;
    struct tarn_storage *storages =
        tarn_region_copy(region, graph->storages, graph->storages_count, sizeof *storages);
    if (region->is_exhausted) return false;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        struct tarn_storage *storage = &storages[a];
        bool is_workspace = storage->tensor == TARN_NONE;
        const uint32_t *given = tarn_storage_users(graph, storage);
        for (uint32_t k = 0; k < storage->users_count; k++)
            users[begin + k] = is_workspace ? given[k] : end_of(view, given[k]);
        if (!is_workspace && storage->producer != TARN_NONE)
            storage->producer = end_of(view, storage->producer);
        storage->users_begin = begin;
        begin += storage->users_count;
    }
    view->own.users = users;
    view->own.storages = storages;
    return true;
}

/* ---- All of it ---- */

enum tarn_status tarn_view_init(struct tarn_view *view, struct tarn_region *region,
                                const struct tarn_graph *graph)
{
    *view = (struct tarn_view){.graph = graph, .halved_count = count_halved(graph)};
    if (view->halved_count == 0) return TARN_OK;
    view->graph = &view->own;
    view->own = tarn_graph_view(graph);
    bool ok = take_ops(view, region, graph) && take_order(view, region, graph) &&
              take_storages(view, region, graph) &&
              take_arcs(view, region, &graph->predecessors, false, &view->own.predecessors) &&
              take_arcs(view, region, &graph->successors, true, &view->own.successors);
    assert(!ok || tarn_graph_is_valid(view->graph));
    return ok ? TARN_OK : TARN_SYSTEM;
}

/* ---- One space ---- */

/* Numbers of storages and groups in the view; TARN_NONE: not there. */
struct renaming {
    uint32_t *storage, *group;
};

static bool take_space_storages(struct tarn_graph *view, struct tarn_region *region,
                                const struct tarn_graph *graph, tarn_space space, uint32_t *origin,
                                const struct renaming *renaming)
{
    struct tarn_storage *storages =
        tarn_region_take(region, graph->storages_count, sizeof *storages);
    if (!storages) return false;
    view->storages_count = view->planned_count = 0;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        bool is_here = graph->storages[a].space == space &&
                       (graph->storages[a].size > 0 || graph->storages[a].persistent);
        renaming->storage[a] = is_here ? view->storages_count : TARN_NONE;
        if (!is_here) continue;
        storages[view->storages_count] = graph->storages[a];
        origin[view->storages_count++] = a;
        if (a < graph->planned_count) view->planned_count++;
    }
    view->storages = storages;
    return true;
}

static bool take_space_groups(struct tarn_graph *view, struct tarn_region *region,
                              const struct tarn_graph *graph, const struct renaming *renaming)
{
    struct tarn_group *groups = tarn_region_take(region, graph->groups_count, sizeof *groups);
    if (!groups) return false;
    view->groups_count = 0;
    for (uint32_t g = 0; g < graph->groups_count; g++) {
        const struct tarn_group *group = &graph->groups[g];
        renaming->group[g] = TARN_NONE;
        if (group->storages_count == 0 || renaming->storage[group->storages[0]] == TARN_NONE)
            continue;
        uint32_t *members = tarn_region_take(region, group->storages_count, sizeof *members);
        if (!members) return false;
        for (uint32_t i = 0; i < group->storages_count; i++)
            members[i] = renaming->storage[group->storages[i]];
        groups[view->groups_count] = *group;
        groups[view->groups_count].storages = members;
        renaming->group[g] = view->groups_count++;
    }
    view->groups = groups;
    return true;
}

/* An op whose workspace is in another space has none here; a tensor of another space has no
 * storage. */
static bool take_space_records(struct tarn_graph *view, struct tarn_region *region,
                               const struct tarn_graph *graph, tarn_space space,
                               const struct renaming *renaming)
{
    view->ops = tarn_region_copy(region, graph->ops, graph->ops_count, sizeof *view->ops);
    view->tensors =
        tarn_region_copy(region, graph->tensors, graph->tensors_count, sizeof *view->tensors);
    if (region->is_exhausted) return false;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        struct tarn_graph_op *op = &view->ops[v];
        uint32_t workspace = tarn_extra(op)->workspace_storage;
        if (workspace == TARN_NONE) continue;
        op->extra = tarn_region_copy(region, op->extra, 1, sizeof *op->extra);
        if (!op->extra) return false;
        op->extra->workspace_storage = renaming->storage[workspace];
        if (op->extra->workspace_space == space) continue;
        op->extra->workspace = 0;
        op->workspace_first = false;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        view->tensors[t].storage = renaming->storage[graph->tensors[t].storage];
    return true;
}

enum tarn_status tarn_view_of_space(struct tarn_graph *view, struct tarn_region *region,
                                    const struct tarn_graph *graph, tarn_space space,
                                    uint32_t **origin)
{
    struct renaming renaming = {
        tarn_region_take(region, graph->storages_count, sizeof *renaming.storage),
        tarn_region_take(region, graph->groups_count, sizeof *renaming.group)};
    *view = tarn_graph_view(graph);
    *origin = tarn_region_take(region, graph->storages_count, sizeof **origin);
    if (region->is_exhausted ||
        !take_space_storages(view, region, graph, space, *origin, &renaming) ||
        !take_space_groups(view, region, graph, &renaming) ||
        !take_space_records(view, region, graph, space, &renaming))
        return TARN_SYSTEM;
    for (uint32_t a = 0; a < view->storages_count; a++) {
        uint32_t *group = &view->storages[a].group;
        if (*group != TARN_NONE) *group = renaming.group[*group];
    }
    assert(tarn_graph_is_valid(view));
    return TARN_OK;
}
