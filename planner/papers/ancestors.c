/* Unsafe pairs by ancestors in the graph: the SOMAS paper's Algorithm 1 and its optimised form,
 * section 3.1. A tensor t precedes every tensor whose producer has all of DestNodes[t] among its
 * ancestors; 1-opt checks MaxNodes[t] only, t's last consumer in each stream.
 *
 * Differences to the paper: a tensor without consumers is consumed by its producer (else it would
 * be safe with everything), an output by a node after all others, and MaxNodes ranges over
 * DestNodes of the stream, not over all its nodes.
 * Cost: V (V + E) / 64 for the ancestors' bit rows, T^2 times the consumers for the pairs. */
#include <assert.h>
#include <string.h>

#include "pairs.h"
#include "streams/base/region.h"

/* ---- AncNodes ---- */

/* Bit n' of row n: there is a path from n' to n. One column more than there are ops: the end of the
 * iteration, an ancestor of no op. */
struct ancestor_rows {
    uint32_t words;
    uint64_t *bits;
};

static bool is_ancestor(const struct ancestor_rows *ancestors, uint32_t n, uint32_t op)
{
    return tarn_set_has(ancestors->bits + (size_t)op * ancestors->words, n);
}

static void inherit(struct ancestor_rows *ancestors, uint32_t op, uint32_t predecessor)
{
    uint64_t *row = ancestors->bits + (size_t)op * ancestors->words;
    const uint64_t *other = ancestors->bits + (size_t)predecessor * ancestors->words;
    for (uint32_t w = 0; w < ancestors->words; w++) row[w] |= other[w];
    tarn_set_add(row, predecessor);
}

static enum tarn_status ancestor_rows_init(struct ancestor_rows *ancestors,
                                           struct tarn_region *region,
                                           const struct tarn_graph *graph)
{
    ancestors->words = graph->ops_count / 64 + 1;
    ancestors->bits =
        tarn_region_take(region, (size_t)graph->ops_count * ancestors->words, sizeof(uint64_t));
    if (!ancestors->bits) return TARN_SYSTEM;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t op = graph->order[i];
        const struct tarn_graph_op *v = &graph->ops[op];
        if (v->position > 0) inherit(ancestors, op, graph->streams[v->stream].ops[v->position - 1]);
        for (uint32_t k = graph->predecessors.begin[op]; k < graph->predecessors.begin[op + 1]; k++)
            inherit(ancestors, op, graph->predecessors.ops[k]);
    }
    return TARN_OK;
}

/* ---- DestNodes and MaxNodes ---- */

/* The nodes of storage a are nodes[begin[a]..begin[a + 1]), in topological order. */
struct node_lists {
    uint32_t *begin;
    uint32_t *nodes;
};

static uint32_t dest_nodes(const struct tarn_graph *graph, const struct tarn_storage *storage,
                           uint32_t *nodes)
{
    if (storage->pinned) {
        nodes[0] = graph->ops_count; /* the end of the iteration */
        return 1;
    }
    uint32_t skipped = storage->users_count > 1; /* the producer, unless it is alone */
    uint32_t count = storage->users_count - skipped;
    memcpy(nodes, tarn_storage_users(graph, storage) + skipped, count * sizeof *nodes);
    return count;
}

/* Keeps the last node of each stream, in place; last_seen[s] is scratch. */
static uint32_t max_nodes(const struct tarn_graph *graph, uint32_t *nodes, uint32_t count,
                          uint32_t *last_seen)
{
    if (nodes[0] == graph->ops_count) return count;
    for (uint32_t i = 0; i < count; i++) last_seen[graph->ops[nodes[i]].stream] = i;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (last_seen[graph->ops[nodes[i]].stream] == i) nodes[kept++] = nodes[i];
    }
    return kept;
}

static enum tarn_status node_lists_init(struct node_lists *lists, struct tarn_region *region,
                                        const struct tarn_graph *graph, bool max_only)
{
    size_t room = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) room += graph->storages[a].users_count;
    lists->begin = tarn_region_take(region, (size_t)graph->planned_count + 1, sizeof *lists->begin);
    lists->nodes = tarn_region_take(region, room, sizeof *lists->nodes);
    uint32_t *last_seen = tarn_region_take(region, graph->streams_count, sizeof *last_seen);
    if (region->is_exhausted) return TARN_SYSTEM;
    uint32_t end = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        lists->begin[a] = end;
        uint32_t count = dest_nodes(graph, &graph->storages[a], lists->nodes + end);
        end += max_only ? max_nodes(graph, lists->nodes + end, count, last_seen) : count;
    }
    assert(end <= room);
    lists->begin[graph->planned_count] = end;
    return TARN_OK;
}

/* ---- Algorithm 1 ---- */

/* t1 in AncTensors[t2], t2 produced at op: DestNodes[t1] (or MaxNodes[t1]) within AncNodes[op]. The
 * last consumer is the likeliest to be missing, so it is asked first. */
static bool is_ancestor_tensor(const struct ancestor_rows *ancestors,
                               const struct node_lists *lists, uint32_t t1, uint32_t op)
{
    for (uint32_t k = lists->begin[t1 + 1]; k-- > lists->begin[t1];) {
        if (!is_ancestor(ancestors, lists->nodes[k], op)) return false;
    }
    return true;
}

static void clear_safe_pairs(const struct tarn_graph *graph, const struct ancestor_rows *ancestors,
                             const struct node_lists *lists, struct tarn_pair_matrix *matrix)
{
    for (uint32_t t1 = 0; t1 < graph->planned_count; t1++) {
        uint32_t op1 = graph->storages[t1].producer;
        for (uint32_t t2 = t1 + 1; t2 < graph->planned_count; t2++) {
            uint32_t op2 = graph->storages[t2].producer;
            if (is_ancestor_tensor(ancestors, lists, t1, op2) ||
                is_ancestor_tensor(ancestors, lists, t2, op1))
                tarn_pair_matrix_clear(matrix, t1, t2);
        }
    }
}

static enum tarn_status pairs_by_ancestors(const struct tarn_graph *graph, bool max_only,
                                           struct tarn_pair_matrix *matrix)
{
    struct ancestor_rows ancestors;
    struct node_lists lists;
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status = tarn_pair_matrix_init(matrix, graph->planned_count);
    if (status != TARN_OK) return status;
    status = ancestor_rows_init(&ancestors, &region, graph);
    if (status == TARN_OK) status = node_lists_init(&lists, &region, graph, max_only);
    if (status == TARN_OK) clear_safe_pairs(graph, &ancestors, &lists, matrix);
    tarn_region_finish(&region);
    if (status != TARN_OK) tarn_pair_matrix_finish(matrix);
    return status;
}

enum tarn_status tarn_pairs_ancestors(const struct tarn_graph *graph,
                                      struct tarn_pair_matrix *matrix)
{
    return pairs_by_ancestors(graph, false, matrix);
}

enum tarn_status tarn_pairs_ancestors_opt(const struct tarn_graph *graph,
                                          struct tarn_pair_matrix *matrix)
{
    return pairs_by_ancestors(graph, true, matrix);
}
