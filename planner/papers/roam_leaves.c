/* Makes leaves from cuts. The turning cut is the cut across which the most bytes live that some
 * other node of the core still reads, which leaves out gradients of weights. The forward pass is
 * before it, the backward pass after it. Segments are counted outwards from there. A row of forward
 * segments and a row of backward segments are independent if both have exactly the same
 * activations; leaves end at such rows while they stay within the limit. A larger independent part
 * is split: its backward part ends at the segment in which the first activation from farther out
 * dies. An activation, or a block freed in the forward pass, belongs to the leaf in which it is
 * freed. A block born in the backward pass belongs to the leaf in which it is born. Source: H. Shu
 * et al., "ROAM", sections IV-B and IV-C, Algorithm 1. Cost: linear, plus once more the segments of
 * leaves that are not independent. */
#include "roam_leaves.h"

#include <assert.h>

#include "subgraph_tree.h"

/* Segments outwards from the turning cut, with their activations. */
struct halves {
    const struct tarn_subgraph_tree *tree;
    const struct tarn_problem *problem;
    struct tarn_roam_leaves *leaves;
    uint32_t turning;                   /* the turning cut */
    uint32_t forward, backward;         /* segments */
    uint32_t *last_death, *first_death; /* forward segment -> backward segment, plus one; the latter
                                           of it and those farther out */
    uint32_t *nodes_forward, *nodes_backward; /* number of segments -> nodes in the first of them */
    uint32_t *leaf_forward, *leaf_backward;   /* segment -> leaf */
};

/* ---- Blocks ---- */

static void measure_block(const struct tarn_reorder_model *model, struct tarn_block block,
                          struct tarn_roam_block *known)
{
    *known = (struct tarn_roam_block){.birth = model->nodes_count};
    for (uint32_t i = 0; i < block.members_count; i++) {
        uint32_t a = block.members[i], death = model->users.ops[model->users.begin[a + 1] - 1];
        if (model->pinned[a]) death = model->nodes_count;
        if (model->producer[a] < known->birth) known->birth = model->producer[a];
        if (death > known->death) known->death = death;
    }
}

/* Does a core node read it that does not make it? */
static bool is_read_by_core(const struct tarn_subgraph_tree *tree, struct tarn_block block)
{
    const struct tarn_reorder_model *model = tree->model;
    for (uint32_t i = 0; i < block.members_count; i++) {
        uint32_t a = block.members[i];
        for (uint32_t k = model->users.begin[a]; k < model->users.begin[a + 1]; k++) {
            uint32_t v = model->users.ops[k];
            if (v != model->producer[a] && tree->role[v] == TARN_SUBGRAPH_CORE) return true;
        }
    }
    return false;
}

/* Cuts strictly before a time. */
static uint32_t cuts_before(const struct tarn_subgraph_tree *tree, uint32_t time)
{
    if (time == tree->model->nodes_count) return tree->cuts_count;
    uint32_t cuts = tree->segment[time];
    return cuts > 0 && tree->cuts[cuts - 1] == time ? cuts - 1 : cuts;
}

/* crossing: room for bytes by cut. */
static void find_turning_cut(struct halves *halves, uint64_t *crossing)
{
    const struct tarn_subgraph_tree *tree = halves->tree;
    const struct tarn_blocks *blocks = &halves->problem->blocks;
    uint64_t alive = 0, most = 0;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_roam_block *known = &halves->leaves->blocks[b];
        uint32_t begin = cuts_before(tree, known->birth), end = cuts_before(tree, known->death);
        if (begin >= end || !is_read_by_core(tree, tarn_block_at(blocks, b))) continue;
        crossing[begin] += tarn_block_at(blocks, b).size;
        crossing[end] -= tarn_block_at(blocks, b).size;
    }
    for (uint32_t c = 0; c < tree->cuts_count; c++) {
        alive += crossing[c];
        if (alive <= most) continue;
        most = alive;
        halves->turning = c;
    }
}

/* ---- Segments ---- */

/* The forward segment, counted from the turning cut, in which something at that time happens. */
static uint32_t forward_at(const struct halves *halves, uint32_t time)
{
    uint32_t segment = halves->tree->segment[time];
    return segment > halves->turning ? 0 : halves->turning - segment;
}

static uint32_t backward_at(const struct halves *halves, uint32_t segment)
{
    return segment > halves->turning ? segment - halves->turning - 1 : 0;
}

static void find_activations(struct halves *halves)
{
    const struct tarn_subgraph_tree *tree = halves->tree;
    uint32_t cut = tree->cuts[halves->turning], least = TARN_NONE;
    for (uint32_t k = 0; k < halves->forward; k++) halves->first_death[k] = TARN_NONE;
    for (uint32_t b = 0; b < halves->problem->blocks.count; b++) {
        struct tarn_roam_block *known = &halves->leaves->blocks[b];
        known->activation = known->birth <= cut && known->death > cut;
        if (!known->activation) continue;
        uint32_t k = forward_at(halves, known->birth);
        uint32_t death = backward_at(halves, cuts_before(tree, known->death)) + 1;
        if (death > halves->last_death[k]) halves->last_death[k] = death;
        if (death < halves->first_death[k]) halves->first_death[k] = death;
    }
    for (uint32_t k = halves->forward; k-- > 0;) {
        if (halves->first_death[k] < least) least = halves->first_death[k];
        halves->first_death[k] = least;
    }
}

static void count_nodes(struct halves *halves)
{
    const struct tarn_subgraph_tree *tree = halves->tree;
    for (uint32_t v = 0; v < tree->model->nodes_count; v++) {
        if (tree->segment[v] <= halves->turning)
            halves->nodes_forward[forward_at(halves, v) + 1]++;
        else
            halves->nodes_backward[backward_at(halves, tree->segment[v]) + 1]++;
    }
    for (uint32_t k = 0; k < halves->forward; k++)
        halves->nodes_forward[k + 1] += halves->nodes_forward[k];
    for (uint32_t j = 0; j < halves->backward; j++)
        halves->nodes_backward[j + 1] += halves->nodes_backward[j];
}

/* ---- Leaves ---- */

/* How far a leaf reaches in either direction. */
struct border {
    uint32_t forward, backward; /* segments, outwards from the turning cut */
};

/* A leaf that ends with forward segment k; *independent: nothing crosses its border. */
static struct border border_behind(const struct halves *halves, uint32_t k, struct border from,
                                   uint32_t last_death, bool *independent)
{
    struct border border = {k + 1, halves->backward};
    *independent = true;
    if (k + 1 == halves->forward) return border;
    uint32_t next = halves->first_death[k + 1];
    *independent = next > last_death;
    border.backward = *independent ? last_death : next - 1;
    if (border.backward < from.backward) border.backward = from.backward;
    return border;
}

static uint32_t nodes_between(const struct halves *halves, struct border from, struct border to)
{
    return halves->nodes_forward[to.forward] - halves->nodes_forward[from.forward] +
           halves->nodes_backward[to.backward] - halves->nodes_backward[from.backward];
}

static void close_leaf(struct halves *halves, struct border from, struct border to)
{
    struct tarn_roam_leaves *leaves = halves->leaves;
    for (uint32_t k = from.forward; k < to.forward; k++) halves->leaf_forward[k] = leaves->count;
    for (uint32_t j = from.backward; j < to.backward; j++) halves->leaf_backward[j] = leaves->count;
    assert(from.forward < to.forward && from.backward <= to.backward);
    leaves->count++;
}

/* The next leaf from a border on: the last independent border within the limit, else the last one
 * within it, else the first one. */
static struct border next_leaf(struct halves *halves, struct border from, uint32_t node_limit)
{
    struct border best = from;
    bool best_independent = false;
    uint32_t last_death = 0;
    for (uint32_t k = from.forward; k < halves->forward; k++) {
        bool independent;
        if (halves->last_death[k] > last_death) last_death = halves->last_death[k];
        struct border border = border_behind(halves, k, from, last_death, &independent);
        bool fits = nodes_between(halves, from, border) <= node_limit;
        if (k > from.forward &&
            nodes_between(halves, from, (struct border){k + 1, from.backward}) > node_limit)
            break;
        if (k > from.forward && (!fits || (best_independent && !independent))) continue;
        best = border;
        best_independent = independent;
    }
    close_leaf(halves, from, best);
    return best;
}

static void find_leaves(struct halves *halves, uint32_t node_limit)
{
    struct border border = {0, 0};
    while (border.forward < halves->forward) border = next_leaf(halves, border, node_limit);
}

/* CIFO, COFI and COFO: the leaf that decides about each block. */
static void assign_blocks(struct halves *halves)
{
    const struct tarn_subgraph_tree *tree = halves->tree;
    uint32_t cut = tree->cuts[halves->turning];
    for (uint32_t b = 0; b < halves->problem->blocks.count; b++) {
        struct tarn_roam_block *known = &halves->leaves->blocks[b];
        if (known->death <= cut) {
            known->leaf = halves->leaf_forward[forward_at(halves, known->death)];
        } else {
            uint32_t segment =
                known->activation ? cuts_before(tree, known->death) : tree->segment[known->birth];
            known->leaf = halves->leaf_backward[backward_at(halves, segment)];
        }
    }
}

/* ---- All together ---- */

static bool run(struct halves *halves, struct tarn_region *work, uint32_t node_limit)
{
    size_t count = (size_t)halves->tree->cuts_count + 2;
    uint64_t *crossing = tarn_region_take(work, count, sizeof *crossing);
    halves->last_death = tarn_region_take(work, count, sizeof *halves->last_death);
    halves->first_death = tarn_region_take(work, count, sizeof *halves->first_death);
    halves->nodes_forward = tarn_region_take(work, count, sizeof *halves->nodes_forward);
    halves->nodes_backward = tarn_region_take(work, count, sizeof *halves->nodes_backward);
    halves->leaf_forward = tarn_region_take(work, count, sizeof *halves->leaf_forward);
    halves->leaf_backward = tarn_region_take(work, count, sizeof *halves->leaf_backward);
    if (work->is_exhausted) return false;
    find_turning_cut(halves, crossing);
    halves->forward = halves->turning + 1;
    halves->backward = halves->tree->cuts_count - halves->turning;
    find_activations(halves);
    count_nodes(halves);
    find_leaves(halves, node_limit);
    assign_blocks(halves);
    return true;
}

enum tarn_status tarn_roam_leaves_init(struct tarn_roam_leaves *leaves, struct tarn_region *region,
                                       const struct tarn_problem *problem, uint32_t node_limit)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    struct tarn_reorder_model model;
    struct tarn_subgraph_tree tree;
    struct tarn_region work = {.chunks = NULL};
    struct halves halves = {.tree = &tree, .problem = problem, .leaves = leaves};
    *leaves = (struct tarn_roam_leaves){
        .blocks = tarn_region_take(region, blocks->count, sizeof *leaves->blocks)};
    enum tarn_status status =
        leaves->blocks ? tarn_reorder_model_init(&model, &work, problem->graph, blocks->reserved)
                       : TARN_SYSTEM;
    if (status == TARN_OK) status = tarn_subgraph_tree_init(&tree, &work, &model);
    for (uint32_t b = 0; status == TARN_OK && b < blocks->count; b++)
        measure_block(&model, tarn_block_at(blocks, b), &leaves->blocks[b]);
    if (status == TARN_OK && tree.cuts_count == 0)
        leaves->count = 1; /* the whole graph is the one leaf, no block is an activation */
    else if (status == TARN_OK && !run(&halves, &work, node_limit))
        status = TARN_SYSTEM;
    tarn_region_finish(&work);
    return status;
}
