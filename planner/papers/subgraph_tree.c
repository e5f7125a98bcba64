/* Builds the subgraph tree. Flexible nodes are set aside first, by structure alone. From the ends:
 * a node all of whose paths lead to one end (a node that no node waits for) belongs to that end's
 * branch. So the gradient of a weight and its update are a branch, while the chain of gradients,
 * which leads to many ends, is core. Optimizers that do not work in place have several ends for a
 * parameter: ends count as one if their branches use the same persistent storage, and no storage
 * that they use is larger. The ends of the gradients of one contiguous group, which are reduced
 * together, count as one, too. From the starts: a node that needs core nodes as little as a mask or
 * a copied input does, and feeds only nodes at which a longer chain arrives, is a supply.
 *
 * The remaining core is closed: no path leads from a core node through other nodes to a core node.
 * So a core node is comparable with all other core nodes under two conditions: each earlier node
 * has a core successor up to it, and each later node a core predecessor at it or later. One pass
 * forward and one backward find the cuts. Source: H. Shu et al., "ROAM", sections IV-A and IV-C.
 * Cost: linear, but for the joined ends. */
#include "subgraph_tree.h"

#include <assert.h>
#include <string.h>

#define MANY (TARN_NONE - 1)

struct search {
    struct tarn_subgraph_tree *tree;
    const struct tarn_reorder_model *model;
    uint32_t *end;     /* node -> the end that it leads to, or MANY */
    uint32_t *joined;  /* end -> end that it counts as, itself for a representative */
    uint64_t *largest; /* end -> bytes of the largest persistent storage of its branch */
    uint32_t *depth;   /* node -> nodes of the longest chain before it */
    uint32_t *core;    /* place among core nodes -> node */
    uint32_t *place;   /* core node -> place */
    uint32_t *reach;   /* place -> a place: see find_cuts */
    uint32_t core_count;
};

/* ---- Branches ---- */

static uint32_t find(uint32_t *joined, uint32_t end)
{
    assert(end != MANY);
    while (joined[end] != end) end = joined[end] = joined[joined[end]];
    return end;
}

static void find_ends(struct search *search)
{
    const struct tarn_arcs *successors = &search->model->successors;
    for (uint32_t v = search->model->nodes_count; v-- > 0;) {
        uint32_t begin = successors->begin[v], past = successors->begin[v + 1];
        uint32_t end = find(search->joined, v);
        for (uint32_t i = begin; i < past; i++) {
            uint32_t other = search->end[successors->ops[i]];
            if (other != MANY) other = find(search->joined, other);
            end = i == begin || end == other ? other : MANY;
        }
        search->end[v] = end;
    }
}

/* Calls visit for every branch node that touches a persistent storage. */
static void visit_persistent(struct search *search,
                             void (*visit)(struct search *search,
                                           const struct tarn_storage *storage, uint32_t end,
                                           uint32_t *first))
{
    const struct tarn_graph *graph = search->model->graph;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++) {
        uint32_t first = TARN_NONE;
        for (uint32_t k = 0; k < graph->storages[a].users_count; k++) {
            uint32_t v = search->model->node_of[tarn_storage_users(graph, &graph->storages[a])[k]];
            if (v != TARN_NONE && search->end[v] != MANY)
                visit(search, &graph->storages[a], search->end[v], &first);
        }
    }
}

static void note_largest(struct search *search, const struct tarn_storage *storage, uint32_t end,
                         uint32_t *first)
{
    (void)first;
    if (storage->size > search->largest[end]) search->largest[end] = storage->size;
}

static void join_ends(struct search *search, const struct tarn_storage *storage, uint32_t end,
                      uint32_t *first)
{
    if (storage->size < search->largest[end]) return;
    if (*first == TARN_NONE) *first = end;
    search->joined[find(search->joined, end)] = find(search->joined, *first);
}

static void join_groups(struct search *search)
{
    const struct tarn_graph *graph = search->model->graph;
    for (uint32_t g = 0; g < graph->groups_count; g++) {
        uint32_t first = TARN_NONE;
        if (graph->groups[g].persistent) continue;
        for (uint32_t i = 0; i < graph->groups[g].storages_count; i++) {
            const struct tarn_storage *storage = &graph->storages[graph->groups[g].storages[i]];
            for (uint32_t k = 0; k < storage->users_count; k++) {
                uint32_t end =
                    search->end[search->model->node_of[tarn_storage_users(graph, storage)[k]]];
                if (end != MANY) join_ends(search, storage, end, &first);
            }
        }
    }
}

/* Numbers the branches. With a single end nothing is core, and nothing is flexible either. */
static void find_branches(struct search *search)
{
    struct tarn_subgraph_tree *tree = search->tree;
    uint32_t count = search->model->nodes_count, *number = search->depth, core = 0;
    for (uint32_t v = 0; v < count; v++) search->joined[v] = v;
    find_ends(search);
    visit_persistent(search, note_largest);
    visit_persistent(search, join_ends);
    memset(search->largest, 0, count * sizeof *search->largest); /* sizes in groups do not matter */
    join_groups(search);
    find_ends(search);
    for (uint32_t v = 0; v < count; v++) {
        core += search->end[v] == MANY;
        number[v] = TARN_NONE;
    }
    for (uint32_t v = 0; v < count; v++) {
        uint32_t end = search->end[v];
        tree->role[v] = core > 0 && end != MANY ? TARN_SUBGRAPH_BRANCH : TARN_SUBGRAPH_CORE;
        tree->branch[v] = TARN_NONE;
        if (tree->role[v] == TARN_SUBGRAPH_CORE) continue;
        if (number[end] == TARN_NONE) number[end] = tree->branches_count++;
        tree->branch[v] = number[end];
    }
}

/* ---- Supplies ---- */

static void find_depths(struct search *search)
{
    const struct tarn_arcs *predecessors = &search->model->predecessors;
    for (uint32_t v = 0; v < search->model->nodes_count; v++) {
        search->depth[v] = 0;
        for (uint32_t i = predecessors->begin[v]; i < predecessors->begin[v + 1]; i++) {
            uint32_t u = predecessors->ops[i];
            if (search->depth[u] >= search->depth[v]) search->depth[v] = search->depth[u] + 1;
        }
    }
}

/* Does every core op that waits for v wait for a longer chain as well, and is v not only for
 * branches? */
static bool has_time(const struct search *search, uint32_t v)
{
    const struct tarn_arcs *successors = &search->model->successors;
    bool feeds = false;
    for (uint32_t i = successors->begin[v]; i < successors->begin[v + 1]; i++) {
        uint32_t w = successors->ops[i];
        uint8_t role = search->tree->role[w];
        if (role == TARN_SUBGRAPH_CORE && search->depth[w] <= search->depth[v] + 1) return false;
        feeds |= role != TARN_SUBGRAPH_BRANCH;
    }
    return feeds;
}

static bool is_supplied(const struct search *search, uint32_t v)
{
    const struct tarn_arcs *predecessors = &search->model->predecessors;
    for (uint32_t i = predecessors->begin[v]; i < predecessors->begin[v + 1]; i++)
        if (search->tree->role[predecessors->ops[i]] != TARN_SUBGRAPH_SUPPLY) return false;
    return true;
}

static void find_supplies(struct search *search)
{
    uint32_t count = search->model->nodes_count;
    uint8_t *role = search->tree->role;
    find_depths(search);
    for (uint32_t v = count; v-- > 0;)
        if (role[v] == TARN_SUBGRAPH_CORE && has_time(search, v)) role[v] = TARN_SUBGRAPH_SUPPLY;
    for (uint32_t v = 0; v < count; v++)
        if (role[v] == TARN_SUBGRAPH_SUPPLY && !is_supplied(search, v))
            role[v] = TARN_SUBGRAPH_CORE;
}

/* ---- Cuts ---- */

static void list_core(struct search *search)
{
    for (uint32_t v = 0; v < search->model->nodes_count; v++) {
        if (search->tree->role[v] != TARN_SUBGRAPH_CORE) continue;
        search->place[v] = search->core_count;
        search->core[search->core_count++] = v;
    }
}

/* The place of the first core successor; the number of core nodes if there is none. */
static uint32_t first_successor(const struct search *search, uint32_t v)
{
    const struct tarn_arcs *arcs = &search->model->successors;
    uint32_t first = search->core_count;
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
        uint32_t w = arcs->ops[i];
        if (search->tree->role[w] == TARN_SUBGRAPH_CORE && search->place[w] < first)
            first = search->place[w];
    }
    return first;
}

/* One more than the place of the last core predecessor; 0 if there is none. */
static uint32_t last_predecessor(const struct search *search, uint32_t v)
{
    const struct tarn_arcs *arcs = &search->model->predecessors;
    uint32_t last = 0;
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
        uint32_t u = arcs->ops[i];
        if (search->tree->role[u] == TARN_SUBGRAPH_CORE && search->place[u] >= last)
            last = search->place[u] + 1;
    }
    return last;
}

/* reach[i]: the lowest last predecessor, plus one, of the core nodes after place i. */
static void find_cuts(struct search *search)
{
    struct tarn_subgraph_tree *tree = search->tree;
    uint32_t count = search->core_count, farthest = 0, least = TARN_NONE;
    for (uint32_t i = count; i-- > 0;) {
        search->reach[i] = least;
        uint32_t last = last_predecessor(search, search->core[i]);
        if (last < least) least = last;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (farthest <= i && search->reach[i] > i) tree->cuts[tree->cuts_count++] = search->core[i];
        uint32_t first = first_successor(search, search->core[i]);
        if (first > farthest) farthest = first;
    }
    for (uint32_t v = 0, c = 0; v < search->model->nodes_count; v++) {
        while (c < tree->cuts_count && tree->cuts[c] <= v) c++;
        tree->segment[v] = c;
    }
}

/* ---- The tree ---- */

static bool take_memory(struct search *search, struct tarn_region *region, struct tarn_region *work)
{
    struct tarn_subgraph_tree *tree = search->tree;
    size_t count = search->model->nodes_count;
    tree->role = tarn_region_take(region, count, sizeof *tree->role);
    tree->branch = tarn_region_take(region, count, sizeof *tree->branch);
    tree->cuts = tarn_region_take(region, count, sizeof *tree->cuts);
    tree->segment = tarn_region_take(region, count, sizeof *tree->segment);
    search->end = tarn_region_take(work, count, sizeof *search->end);
    search->joined = tarn_region_take(work, count, sizeof *search->joined);
    search->largest = tarn_region_take(work, count, sizeof *search->largest);
    search->depth = tarn_region_take(work, count, sizeof *search->depth);
    search->core = tarn_region_take(work, count, sizeof *search->core);
    search->place = tarn_region_take(work, count, sizeof *search->place);
    search->reach = tarn_region_take(work, count, sizeof *search->reach);
    return !region->is_exhausted && !work->is_exhausted;
}

enum tarn_status tarn_subgraph_tree_init(struct tarn_subgraph_tree *tree,
                                         struct tarn_region *region,
                                         const struct tarn_reorder_model *model)
{
    *tree = (struct tarn_subgraph_tree){.model = model};
    struct search search = {.tree = tree, .model = model};
    struct tarn_region work = {.chunks = NULL};
    bool ok = take_memory(&search, region, &work);
    if (ok) {
        find_branches(&search);
        find_supplies(&search);
        list_core(&search);
        find_cuts(&search);
    }
    tarn_region_finish(&work);
    return ok ? TARN_OK : TARN_SYSTEM;
}
