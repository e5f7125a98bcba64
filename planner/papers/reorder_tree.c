/* Makes ROAM's order. Core nodes run in their segments, which depend on the graph alone; supplies
 * run in the segment of the first node that they feed. A branch consists of the gradient, which
 * runs as soon as it can, and the update: nodes that write a parameter or an output, or read the
 * optimizer's state, and all later nodes. An update runs as a whole, in the first possible segment
 * in which activations and the update's own bytes fit. The limit is the bytes of all activations,
 * the paper's estimate of the peak. It runs at once if the delay does not pay (the paper's radius:
 * the gradient's size relative to the average). Its bytes are found by running it, instead of by
 * the paper's coefficient for each optimizer.
 *
 * Then the leaves are solved one after the other: the bytes alive before a leaf depend on the
 * earlier leaves, not on their orders, so the leaves could also be solved in parallel. Source: H.
 * Shu et al., "ROAM", section IV-A, equations 1 to 6. Cost: linear, branches times segments, and a
 * search for each leaf. */
#include "reorder_tree.h"

#include <assert.h>
#include <string.h>

enum { VISITS = 400000 };

/* ---- The bytes of each update ---- */

/* Does it write something that outlives the iteration, or read the optimizer's state? */
static bool is_update(const struct tarn_graph *graph, const struct tarn_graph_op *op)
{
    for (uint32_t k = 0; k < op->outputs_count; k++)
        if (graph->tensors[tarn_outputs(op)[k]].kind >= TARN_OUTPUT) return true;
    for (uint32_t k = 0; k < op->inputs_count; k++)
        if (graph->tensors[op->inputs[k]].kind == TARN_OPTIMIZER_STATE) return true;
    return false;
}

static void find_updates(struct tarn_reorder_tree *tree)
{
    const struct tarn_arcs *predecessors = &tree->model->predecessors;
    const struct tarn_graph *graph = tree->model->graph;
    for (uint32_t v = 0; v < tree->model->nodes_count; v++) {
        if (tree->tree.role[v] != TARN_SUBGRAPH_BRANCH) continue;
        tree->updates[v] = is_update(graph, &graph->ops[tree->model->op[v]]);
        for (uint32_t i = predecessors->begin[v]; i < predecessors->begin[v + 1]; i++)
            tree->updates[v] |= tree->updates[predecessors->ops[i]];
    }
}

/* Measures the maximum of bytes alive that each branch's update makes when run by itself, and the
 * bytes made elsewhere that it reads last. */
static void measure_updates(struct tarn_reorder_tree *tree, uint64_t *now)
{
    const struct tarn_reorder_model *model = tree->model;
    for (uint32_t v = 0; v < model->nodes_count; v++) {
        uint32_t b = tree->tree.branch[v];
        if (!tree->updates[v]) continue;
        now[b] += model->made[v];
        if (now[b] > tree->need[b]) tree->need[b] = now[b];
        for (uint32_t i = model->touched.begin[v]; i < model->touched.begin[v + 1]; i++) {
            uint32_t a = model->touched.ops[i], past = model->users.begin[a + 1];
            bool last = model->users.ops[past - 1] == v && !model->pinned[a];
            if (last && tree->updates[model->producer[a]]) now[b] -= model->size[a];
            if (last && !tree->updates[model->producer[a]]) tree->gradient[b] += model->size[a];
        }
    }
    for (uint32_t b = 0; b < tree->tree.branches_count; b++) tree->need[b] += tree->gradient[b];
}

/* ---- Segments ---- */

static uint32_t latest_predecessor(const struct tarn_reorder_tree *tree, uint32_t v)
{
    const struct tarn_arcs *predecessors = &tree->model->predecessors;
    uint32_t latest = 0;
    for (uint32_t i = predecessors->begin[v]; i < predecessors->begin[v + 1]; i++) {
        uint32_t segment = tree->segment[predecessors->ops[i]];
        if (segment > latest) latest = segment;
    }
    return latest;
}

static uint32_t earliest_successor(const struct tarn_reorder_tree *tree, uint32_t v)
{
    const struct tarn_arcs *successors = &tree->model->successors;
    uint32_t earliest = tree->tree.cuts_count;
    for (uint32_t i = successors->begin[v]; i < successors->begin[v + 1]; i++) {
        uint32_t w = successors->ops[i];
        if (tree->tree.role[w] != TARN_SUBGRAPH_BRANCH && tree->segment[w] < earliest)
            earliest = tree->segment[w];
    }
    return earliest;
}

/* Everything but updates has its segment; of updates the first one is known. */
static void find_segments(struct tarn_reorder_tree *tree)
{
    uint32_t count = tree->model->nodes_count;
    memcpy(tree->segment, tree->tree.segment, count * sizeof *tree->segment);
    for (uint32_t v = count; v-- > 0;)
        if (tree->tree.role[v] == TARN_SUBGRAPH_SUPPLY)
            tree->segment[v] = earliest_successor(tree, v);
    for (uint32_t v = 0; v < count; v++) {
        uint32_t b = tree->tree.branch[v];
        if (b == TARN_NONE) continue;
        tree->segment[v] = latest_predecessor(tree, v);
        if (tree->updates[v] && tree->segment[v] > tree->first[b])
            tree->first[b] = tree->segment[v];
    }
}

/* Computes the bytes of activations by segment: results of core nodes that nodes other than updates
 * still read in later segments. Returns the bytes of all activations. */
static uint64_t weigh_activations(struct tarn_reorder_tree *tree)
{
    const struct tarn_reorder_model *model = tree->model;
    uint64_t sum = 0;
    for (uint32_t a = 0; a < model->storages_count; a++) {
        uint32_t producer = model->producer[a], begin = tree->segment[producer], end = begin;
        if (tree->tree.role[producer] == TARN_SUBGRAPH_BRANCH) continue;
        for (uint32_t i = model->users.begin[a]; i < model->users.begin[a + 1]; i++) {
            uint32_t v = model->users.ops[i];
            if (!tree->updates[v] && tree->segment[v] > end) end = tree->segment[v];
        }
        if (end == begin) continue;
        tree->alive[begin] += model->size[a];
        tree->alive[end + 1] -= model->size[a];
        sum += model->size[a];
    }
    for (uint32_t s = 0; s < tree->tree.cuts_count; s++) tree->alive[s + 1] += tree->alive[s];
    return sum;
}

/* ---- Delay ---- */

static uint32_t segment_for(const struct tarn_reorder_tree *tree, uint32_t b,
                            enum tarn_reorder_delay delay, uint64_t average)
{
    uint32_t last = tree->tree.cuts_count;
    if (delay == TARN_REORDER_DELAY_NONE) return tree->first[b];
    if (delay == TARN_REORDER_DELAY_LARGE && tree->gradient[b] <= average) return tree->first[b];
    for (uint32_t s = tree->first[b]; s < last; s++)
        if (tree->alive[s] + tree->need[b] <= tree->estimate) return s;
    return last;
}

static void put_updates(struct tarn_reorder_tree *tree, enum tarn_reorder_delay delay)
{
    const struct tarn_reorder_model *model = tree->model;
    uint64_t sum = 0;
    for (uint32_t a = 0; a < model->storages_count; a++) sum += model->size[a];
    uint64_t average = model->storages_count > 0 ? sum / model->storages_count : 0;
    for (uint32_t v = 0; v < model->nodes_count; v++) {
        if (tree->updates[v])
            tree->segment[v] = segment_for(tree, tree->tree.branch[v], delay, average);
    }
}

/* ---- The order ---- */

/* Segment by segment, each in the guide's order. */
static void group(struct tarn_reorder_tree *tree, const uint32_t *guide, uint32_t *order)
{
    uint32_t count = tree->model->nodes_count, segments = tree->tree.cuts_count + 1;
    uint32_t *begin = tree->begin;
    memset(begin, 0, ((size_t)segments + 2) * sizeof *begin);
    for (uint32_t v = 0; v < count; v++) begin[tree->segment[v] + 2]++;
    for (uint32_t s = 0; s < segments; s++) begin[s + 2] += begin[s + 1];
    for (uint32_t i = 0; i < count; i++) order[begin[tree->segment[guide[i]] + 1]++] = guide[i];
}

/* Runs a leaf; *enough: the peak so far, beyond which its order matters. */
static void solve(struct tarn_reorder_tree *tree, struct tarn_reorder_exact *exact, uint32_t *nodes,
                  uint32_t count, uint64_t *enough)
{
    uint32_t order[TARN_REORDER_EXACT_MAX];
    uint64_t peak = 0, best;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t step = tarn_reorder_run(exact->state, nodes[i]);
        if (step > peak) peak = step;
    }
    if (peak <= *enough) return;
    if (tree->visits < exact->visits_max) {
        *enough = peak;
        return;
    }
    for (uint32_t i = count; i-- > 0;) tarn_reorder_undo(exact->state, nodes[i]);
    enum tarn_reorder_verdict verdict =
        tarn_reorder_exact_run(exact, nodes, count, peak, *enough, order, &best);
    tree->visits -= exact->visits;
    if (verdict == TARN_REORDER_BEST || verdict == TARN_REORDER_SOME) {
        memcpy(nodes, order, count * sizeof *nodes);
        peak = best;
    }
    for (uint32_t i = 0; i < count; i++) tarn_reorder_run(exact->state, nodes[i]);
    if (peak > *enough) *enough = peak;
}

void tarn_reorder_tree_run(struct tarn_reorder_tree *tree, const uint32_t *guide,
                           enum tarn_reorder_delay delay, uint32_t node_limit, uint64_t enough,
                           struct tarn_reorder_exact *exact, uint32_t *order)
{
    assert(node_limit > 0);
    put_updates(tree, delay);
    group(tree, guide, order);
    if (node_limit > TARN_REORDER_EXACT_MAX) node_limit = TARN_REORDER_EXACT_MAX;
    tree->visits = VISITS;
    tarn_reorder_state_reset(exact->state);
    for (uint32_t s = 0; s <= tree->tree.cuts_count; s++) {
        for (uint32_t i = tree->begin[s]; i < tree->begin[s + 1]; i += node_limit) {
            uint32_t left = tree->begin[s + 1] - i;
            solve(tree, exact, order + i, left < node_limit ? left : node_limit, &enough);
        }
    }
}

/* ---- Init ---- */

static bool take_memory(struct tarn_reorder_tree *tree, struct tarn_region *region)
{
    size_t nodes = tree->model->nodes_count, segments = tree->tree.cuts_count;
    size_t branches = tree->tree.branches_count;
    tree->segment = tarn_region_take(region, nodes, sizeof *tree->segment);
    tree->updates = tarn_region_take(region, nodes, sizeof *tree->updates);
    tree->first = tarn_region_take(region, branches, sizeof *tree->first);
    tree->need = tarn_region_take(region, branches, sizeof *tree->need);
    tree->gradient = tarn_region_take(region, branches, sizeof *tree->gradient);
    tree->alive = tarn_region_take(region, segments + 3, sizeof *tree->alive);
    tree->begin = tarn_region_take(region, segments + 3, sizeof *tree->begin);
    return !region->is_exhausted;
}

enum tarn_status tarn_reorder_tree_init(struct tarn_reorder_tree *tree, struct tarn_region *region,
                                        const struct tarn_reorder_model *model)
{
    *tree = (struct tarn_reorder_tree){.model = model};
    if (tarn_subgraph_tree_init(&tree->tree, region, model) != TARN_OK) return TARN_SYSTEM;
    if (!take_memory(tree, region)) return TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint64_t *now = tarn_region_take(region, tree->tree.branches_count, sizeof *now);
    if (!now) return TARN_SYSTEM;
    find_updates(tree);
    measure_updates(tree, now);
    find_segments(tree);
    tree->estimate = weigh_activations(tree);
    tarn_region_release(region, mark);
    return TARN_OK;
}
