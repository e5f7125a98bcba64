/* Finds the hazards of a graph. One pass over the ops in the graph's order remembers, for every
 * storage, its last writer and the ops that have read it since. A read comes after the last write,
 * a write after the last write and after the reads since then (the three hazards, also for
 * persistent storages). A view reads and writes no bytes; it carries order by its arcs alone. For
 * storages that have slices this is done slice by slice. An empty storage has no parts; there
 * every write after the first comes after the first, as a graph must have it. There are two
 * passes: the first one counts. Cost: linear in ops, list entries and hazards (each read is named
 * by at most one write). */
#include "constraints.h"

#include <assert.h>
#include <string.h>

#include "streams/graph/derive.h"

/* Readers of a part since its last write: a list through `reads`, newest first. */
struct read {
    uint32_t op, next;
};

struct pass {
    const struct tarn_graph *graph;
    uint32_t *writer; /* part -> op */
    uint32_t *reader; /* part -> index into reads */
    struct read *reads;
    uint32_t reads_count;
    uint32_t *mark; /* op -> 1 + the op that has named it as its predecessor last, or 0 */
    uint32_t count; /* arcs so far */
    uint32_t *ops;  /* the predecessors of all ops; NULL: they are only counted */
};

static void name(struct pass *pass, uint32_t v, uint32_t u)
{
    if (u == TARN_NONE || u == v || pass->mark[u] == v + 1) return;
    pass->mark[u] = v + 1;
    if (pass->ops) pass->ops[pass->count] = u;
    pass->count++;
}

static void read_part(struct pass *pass, uint32_t v, uint32_t a)
{
    name(pass, v, pass->writer[a]);
    pass->reads[pass->reads_count] = (struct read){v, pass->reader[a]};
    pass->reader[a] = pass->reads_count++;
}

static void write_part(struct pass *pass, uint32_t v, uint32_t a)
{
    name(pass, v, pass->writer[a]);
    for (uint32_t r = pass->reader[a]; r != TARN_NONE; r = pass->reads[r].next)
        name(pass, v, pass->reads[r].op);
    pass->writer[a] = v;
    pass->reader[a] = TARN_NONE;
}

/* In a view of one memory space the storages of all others are TARN_NONE. */
static void visit(struct pass *pass, uint32_t v)
{
    const struct tarn_graph_op *op = &pass->graph->ops[v];
    for (uint32_t k = 0; k < tarn_op_arcs_count(op); k++)
        name(pass, v, tarn_op_arc(pass->graph, op, k));
    if (op->view) return;
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        const struct tarn_graph_tensor *tensor = &pass->graph->tensors[op->inputs[k]];
        for (uint32_t i = 0; tensor->storage != TARN_NONE && i < tensor->parts_count; i++)
            read_part(pass, v, tensor->part + i);
    }
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        const struct tarn_graph_tensor *tensor = &pass->graph->tensors[tarn_outputs(op)[k]];
        for (uint32_t i = 0; tensor->storage != TARN_NONE && i < tensor->parts_count; i++)
            write_part(pass, v, tensor->part + i);
        if (tensor->storage != TARN_NONE && tensor->parts_count == 0)
            name(pass, v, pass->graph->storages[tensor->storage].producer);
    }
}

/* Of two overlapping members of a contiguous group, all uses of one come before the other is
 * made. */
static void name_layers(struct pass *pass, uint32_t v)
{
    const struct tarn_graph *graph = pass->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t k = 0; !op->view && k < op->outputs_count; k++) {
        uint32_t a = graph->tensors[tarn_outputs(op)[k]].storage;
        if (a == TARN_NONE || graph->storages[a].group == TARN_NONE) continue;
        const struct tarn_group *group = &graph->groups[graph->storages[a].group];
        if (!group->within || graph->storages[a].producer != v) continue;
        uint32_t i = 0;
        while (group->storages[i] != a) i++;
        uint64_t end = group->within[i] + graph->storages[a].size;
        for (uint32_t j = 0; j < group->storages_count; j++) {
            const struct tarn_storage *other = &graph->storages[group->storages[j]];
            bool meets =
                group->within[j] < end && group->within[i] < group->within[j] + other->size;
            if (j == i || !meets || graph->rank[other->producer] > graph->rank[v]) continue;
            for (uint32_t u = 0; u < other->users_count; u++)
                name(pass, v, tarn_storage_users(graph, other)[u]);
        }
    }
}

/* begin: the start of each op's predecessors, filled by the counting pass. */
static void visit_ops(struct pass *pass, uint32_t *begin)
{
    const struct tarn_graph *graph = pass->graph;
    pass->reads_count = 0;
    memset(pass->mark, 0, graph->ops_count * sizeof *pass->mark);
    for (uint32_t p = 0; p < graph->parts_count; p++) pass->writer[p] = pass->reader[p] = TARN_NONE;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i], before = pass->count = pass->ops ? begin[v] : 0;
        visit(pass, v);
        name_layers(pass, v);
        if (!pass->ops) begin[v + 1] = pass->count - before;
    }
}

static enum tarn_status find_predecessors(struct pass *pass, struct tarn_region *region,
                                          struct tarn_arcs *predecessors)
{
    uint32_t count = pass->graph->ops_count;
    uint32_t *begin = tarn_region_take(region, (size_t)count + 1, sizeof *begin);
    if (!begin) return TARN_SYSTEM;
    visit_ops(pass, begin);
    for (uint32_t v = 0; v < count; v++) begin[v + 1] += begin[v];
    pass->ops = tarn_region_take(region, begin[count], sizeof *pass->ops);
    if (!pass->ops) return TARN_SYSTEM;
    visit_ops(pass, begin);
    *predecessors = (struct tarn_arcs){begin, pass->ops};
    return TARN_OK;
}

enum tarn_status tarn_arcs_reverse(struct tarn_arcs *to, struct tarn_region *region,
                                   const struct tarn_arcs *from, uint32_t count, uint32_t names)
{
    uint32_t arcs = from->begin[count];
    uint32_t *begin = tarn_region_take(region, (size_t)names + 2, sizeof *begin);
    uint32_t *list = tarn_region_take(region, arcs, sizeof *list);
    *to = (struct tarn_arcs){begin, list};
    if (!begin || !list) return TARN_SYSTEM;
    for (uint32_t i = 0; i < arcs; i++) begin[from->ops[i] + 2]++;
    for (uint32_t n = 0; n < names; n++) begin[n + 2] += begin[n + 1];
    for (uint32_t v = 0; v < count; v++) {
        for (uint32_t i = from->begin[v]; i < from->begin[v + 1]; i++)
            list[begin[from->ops[i] + 1]++] = v;
    }
    assert(begin[names] == arcs);
    return TARN_OK;
}

enum tarn_status tarn_constraints_init(struct tarn_constraints *constraints,
                                       struct tarn_region *region, const struct tarn_graph *graph)
{
    struct tarn_region scratch = {.chunks = NULL};
    size_t reads = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++)
        for (uint32_t k = 0; k < graph->ops[v].inputs_count; k++)
            reads += graph->tensors[graph->ops[v].inputs[k]].parts_count;
    struct pass pass = {
        .graph = graph,
        .writer = tarn_region_take(&scratch, graph->parts_count, sizeof *pass.writer),
        .reader = tarn_region_take(&scratch, graph->parts_count, sizeof *pass.reader),
        .reads = tarn_region_take(&scratch, reads, sizeof *pass.reads),
        .mark = tarn_region_take(&scratch, graph->ops_count, sizeof *pass.mark),
    };
    enum tarn_status status = scratch.is_exhausted
                                  ? TARN_SYSTEM
                                  : find_predecessors(&pass, region, &constraints->predecessors);
    tarn_region_finish(&scratch);
    if (status != TARN_OK) return status;
    constraints->ops_count = graph->ops_count;
    constraints->arcs_count = constraints->predecessors.begin[graph->ops_count];
    status = tarn_arcs_reverse(&constraints->successors, region, &constraints->predecessors,
                               graph->ops_count, graph->ops_count);
    assert(status != TARN_OK || tarn_constraints_is_valid(constraints, graph));
    return status;
}

bool tarn_constraints_is_valid(const struct tarn_constraints *constraints,
                               const struct tarn_graph *graph)
{
    const struct tarn_arcs *before = &constraints->predecessors, *after = &constraints->successors;
    uint32_t count = constraints->ops_count;
    if (count != graph->ops_count || before->begin[count] != constraints->arcs_count ||
        after->begin[count] != constraints->arcs_count)
        return false;
    for (uint32_t v = 0; v < count; v++) {
        if (before->begin[v] > before->begin[v + 1] || after->begin[v] > after->begin[v + 1])
            return false;
        for (uint32_t i = before->begin[v]; i < before->begin[v + 1]; i++)
            if (graph->rank[before->ops[i]] >= graph->rank[v]) return false;
        for (uint32_t i = after->begin[v]; i < after->begin[v + 1]; i++) {
            bool is_ascending = i == after->begin[v] || after->ops[i - 1] < after->ops[i];
            if (!is_ascending || graph->rank[after->ops[i]] <= graph->rank[v]) return false;
        }
    }
    return true;
}
