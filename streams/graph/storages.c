/* Derives the storages. Their numbers are: planned roots, then workspaces, then persistent roots.
 * Each has its parts and the distinct ops that use it in topological order (one pass over the order
 * counts, a second pass stores). Cost: linear in ops and list entries.
 */

#include "derive.h"

#include <assert.h>
#include <stdlib.h>

#include "streams/base/bisect.h"
#include "streams/base/checked.h"
#include "streams/base/region.h"

/* ---- Numbering ---- */

static void count_storages(struct tarn_graph *graph)
{
    uint32_t persistent = 0;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        if (graph->tensors[t].root != t) continue;
        if (tarn_kind_is_persistent(graph->tensors[t].kind))
            persistent++;
        else
            graph->planned_count++;
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (tarn_extra(&graph->ops[v])->workspace > 0) graph->planned_count++;
    }
    graph->storages_count = graph->planned_count + persistent;
}

static struct tarn_storage storage_of_root(const struct tarn_graph_tensor *tensor, uint32_t root)
{
    return (struct tarn_storage){.tensor = root,
                                 .producer = tensor->producer,
                                 .size = tensor->size,
                                 .space = tensor->space,
                                 .group = TARN_NONE,
                                 .pinned = tensor->kind == TARN_OUTPUT,
                                 .persistent = tarn_kind_is_persistent(tensor->kind)};
}

static uint32_t number_roots(struct tarn_graph *graph, uint32_t next, bool persistent)
{
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        struct tarn_graph_tensor *tensor = &graph->tensors[t];
        if (tensor->root != t || tarn_kind_is_persistent(tensor->kind) != persistent) continue;
        tensor->storage = next;
        graph->storages[next++] = storage_of_root(tensor, t);
    }
    return next;
}

static uint32_t number_workspaces(struct tarn_graph *graph, uint32_t next)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        struct tarn_op_extra *extra = graph->ops[v].extra;
        if (!extra || extra->workspace == 0) continue;
        extra->workspace_storage = next;
        graph->storages[next++] = (struct tarn_storage){.tensor = TARN_NONE,
                                                        .producer = v,
                                                        .size = extra->workspace,
                                                        .group = TARN_NONE,
                                                        .space = extra->workspace_space};
    }
    return next;
}

static void number_storages(struct tarn_graph *graph)
{
    uint32_t next = number_roots(graph, 0, false);
    next = number_workspaces(graph, next);
    assert(next == graph->planned_count);
    next = number_roots(graph, next, true);
    assert(next == graph->storages_count);
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        graph->tensors[t].storage = graph->tensors[graph->tensors[t].root].storage;
}

/* ---- Parts ---- */

/* The start or end of a slice inside its storage. */
struct cut {
    uint32_t storage;
    uint64_t offset;
};

static int compare_cuts(const void *left, const void *right)
{
    const struct cut *a = left, *b = right;
    if (a->storage != b->storage) return a->storage < b->storage ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static uint32_t collect_cuts(const struct tarn_graph *graph, struct cut *cuts)
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[t];
        uint64_t begin = tarn_tensor_begin(tensor), ends[2] = {begin, begin + tensor->size};
        for (int i = 0; i < 2 && tensor->root != t && tensor->size > 0; i++) {
            if (ends[i] == 0 || ends[i] == graph->tensors[tensor->root].size) continue;
            if (cuts) cuts[count] = (struct cut){tensor->storage, ends[i]};
            count++;
        }
    }
    return count;
}

/* cuts: ascending, not distinct. */
static void cut_storages(struct tarn_graph *graph, struct tarn_graph_part *parts,
                         const struct cut *cuts, uint32_t cuts_count)
{
    uint32_t next = 0;
    graph->parts_count = 0;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        struct tarn_storage *storage = &graph->storages[a];
        storage->part = graph->parts_count;
        uint64_t begin = 0;
        for (; next < cuts_count && cuts[next].storage == a; next++) {
            if (cuts[next].offset == begin) continue;
            parts[graph->parts_count++] =
                (struct tarn_graph_part){begin, cuts[next].offset - begin, a};
            begin = cuts[next].offset;
        }
        if (storage->size > 0)
            parts[graph->parts_count++] = (struct tarn_graph_part){begin, storage->size - begin, a};
        storage->parts_count = graph->parts_count - storage->part;
    }
}

/* The first part of a storage that begins at or after a byte. */
static uint32_t find_part(const struct tarn_graph *graph, const struct tarn_storage *storage,
                          uint64_t offset)
{
    uint32_t low = storage->part, high = storage->part + storage->parts_count;
    TARN_BISECT(low, high, middle, tarn_part(graph, middle).offset < offset);
    return low;
}

/* Limit on parts named by all lists of ops and all tensors together: steps that are linear without
 * slices could be quadratic with them. */
#define NAMED_PARTS_MIN (UINT64_C(1) << 20)
#define NAMED_PARTS_A_NAME 64u

static enum tarn_status check_cuts(const struct tarn_graph *graph, const struct tarn_report *report)
{
    uint64_t names = 0, named = 0;
    for (uint32_t t = 0; t < graph->tensors_count; t++) named += graph->tensors[t].parts_count;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        uint32_t count = op->inputs_count + op->outputs_count; /* they are consecutive */
        for (uint32_t k = 0; k < count; k++) named += graph->tensors[op->inputs[k]].parts_count;
        names += count;
    }
    if (named <= NAMED_PARTS_MIN || named <= NAMED_PARTS_A_NAME * (names + graph->tensors_count))
        return TARN_OK;
    return tarn_report_bad(report, tarn_location_at(TARN_NONE, TARN_NONE, "/tensors"),
                           "slices cut storages so finely that ops name %llu parts of them; use "
                           "fewer slices, or let fewer ops name the whole",
                           (unsigned long long)named);
}

/* Without slices and empty storages nothing is kept. */
static bool has_lone_parts(struct tarn_graph *graph, uint32_t cuts_count)
{
    if (cuts_count > 0) return false;
    for (uint32_t a = 0; a < graph->storages_count; a++)
        if (graph->storages[a].size == 0) return false;
    graph->parts_count = graph->storages_count;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        graph->storages[a].part = a;
        graph->storages[a].parts_count = 1;
    }
    return true;
}

static enum tarn_status fill_parts(struct tarn_graph *graph, struct tarn_region *scratch,
                                   const struct tarn_report *report)
{
    uint32_t cuts_count = collect_cuts(graph, NULL);
    graph->part_storages = graph->storages;
    if (!has_lone_parts(graph, cuts_count)) {
        struct cut *cuts = tarn_region_take(scratch, cuts_count, sizeof *cuts);
        struct tarn_graph_part *parts = tarn_region_take(
            &graph->region, (size_t)graph->storages_count + cuts_count, sizeof *parts);
        if (!cuts || !parts) return TARN_SYSTEM;
        collect_cuts(graph, cuts);
        if (cuts_count > 0) qsort(cuts, cuts_count, sizeof *cuts, compare_cuts);
        cut_storages(graph, parts, cuts, cuts_count);
        graph->parts = parts;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        struct tarn_graph_tensor *tensor = &graph->tensors[t];
        const struct tarn_storage *storage = &graph->storages[tensor->storage];
        uint64_t begin = tarn_tensor_begin(tensor);
        tensor->part = storage->part;
        tensor->parts_count = tensor->size > 0 ? storage->parts_count : 0;
        if (storage->parts_count < 2 || tensor->size == 0) continue;
        tensor->part = find_part(graph, storage, begin);
        tensor->parts_count = find_part(graph, storage, begin + tensor->size) - tensor->part;
    }
    return cuts_count > 0 ? check_cuts(graph, report) : TARN_OK;
}

/* ---- Users ---- */

struct touch_pass {
    uint32_t *mark;  /* storage -> op + 1 that used it last */
    uint32_t *users; /* NULL: only count */
    uint32_t *next;  /* storage -> position of its next user */
};

static void touch(struct tarn_graph *graph, const struct touch_pass *pass, uint32_t storage,
                  uint32_t op)
{
    if (pass->mark[storage] == op + 1) return;
    pass->mark[storage] = op + 1;
    if (pass->users)
        pass->users[pass->next[storage]++] = op;
    else
        graph->storages[storage].users_count++;
}

static void touch_all(struct tarn_graph *graph, const struct touch_pass *pass)
{
    for (uint32_t a = 0; a < graph->storages_count; a++) pass->mark[a] = 0;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i];
        const struct tarn_graph_op *op = &graph->ops[v];
        if (op->view) continue;
        for (uint32_t k = 0; k < op->inputs_count; k++)
            touch(graph, pass, graph->tensors[op->inputs[k]].storage, v);
        for (uint32_t k = 0; k < op->outputs_count; k++)
            touch(graph, pass, graph->tensors[tarn_outputs(op)[k]].storage, v);
        uint32_t workspace = tarn_extra(op)->workspace_storage;
        if (workspace != TARN_NONE) touch(graph, pass, workspace, v);
    }
}

static enum tarn_status fill_users(struct tarn_graph *graph, struct tarn_region *scratch)
{
    uint32_t count = graph->storages_count;
    struct touch_pass pass = {.mark = tarn_region_take(scratch, count, sizeof *pass.mark),
                              .next = tarn_region_take(scratch, count, sizeof *pass.next)};
    if (scratch->is_exhausted) return TARN_SYSTEM;
    touch_all(graph, &pass);
    uint32_t total = 0;
    for (uint32_t a = 0; a < count; a++) {
        pass.next[a] = graph->storages[a].users_begin = total;
        total += graph->storages[a].users_count;
    }
    pass.users = tarn_region_take(&graph->region, total, sizeof *pass.users);
    if (!pass.users) return TARN_SYSTEM;
    graph->users = pass.users;
    touch_all(graph, &pass);
    assert(count == 0 || pass.next[count - 1] == total);
    return TARN_OK;
}

/* ---- Reserved bytes ---- */

/* The sizes of all storages of a graph fit in 64 bits together. */
uint64_t tarn_storage_reserved(const struct tarn_graph *graph, uint32_t storage, uint64_t alignment)
{
    const struct tarn_storage *record = &graph->storages[storage];
    uint64_t before = 0, end;
    alignment = tarn_storage_alignment(graph, storage, alignment);
    if (record->group != TARN_NONE && !graph->groups[record->group].padded) {
        const struct tarn_group *group = &graph->groups[record->group];
        uint32_t last = group->storages_count - 1, i = last;
        while (group->within && group->storages[i] != storage) i--;
        if (!group->within && group->storages[last] != storage) return record->size;
        if (group->within && group->within[i] + record->size < tarn_group_end(graph, group))
            return record->size;
        for (uint32_t k = 0; !group->within && k < last; k++)
            before += graph->storages[group->storages[k]].size;
        if (group->within) before = group->within[i];
    }
    bool fits = tarn_size_round_up(before + record->size, alignment, &end);
    return fits ? end - before : UINT64_MAX;
}

/* ---- All of it ---- */

enum tarn_status tarn_derive_storages(struct tarn_graph *graph, const struct tarn_report *report)
{
    count_storages(graph);
    graph->storages =
        tarn_region_take(&graph->region, graph->storages_count, sizeof *graph->storages);
    if (!graph->storages) return TARN_SYSTEM;
    number_storages(graph);
    struct tarn_region scratch = {.chunks = NULL};
    enum tarn_status status = fill_parts(graph, &scratch, report);
    if (status == TARN_OK) status = fill_users(graph, &scratch);
    tarn_region_finish(&scratch);
    return status;
}
