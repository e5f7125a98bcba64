/* Builds the list model of a graph. A view that waits for at most one node is no node itself: ops
 * that wait for the view wait for that node, and its own time does not matter. Every other op is a
 * node. Running a node keeps, for every storage, how many users are left and the exclusive or of
 * their ids: when one user is left, that is its id. Cost: linear; running a node costs its storages
 * and arcs. */
#include "list_model.h"

#include <assert.h>

#include "constraints.h"

/* ---- Nodes ---- */

struct nodes {
    struct tarn_reorder_model *model;
    const struct tarn_constraints *constraints;
    struct tarn_region *region; /* of the model */
    uint32_t *mark;             /* node -> 1 + the op that has named it last, or 0 */
};

/* Lists the distinct nodes that op v waits for. */
static uint32_t list_predecessors(const struct nodes *nodes, uint32_t v, uint32_t *list)
{
    const struct tarn_arcs *arcs = &nodes->constraints->predecessors;
    uint32_t count = 0;
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
        uint32_t u = nodes->model->node_of[arcs->ops[i]];
        if (u == TARN_NONE || nodes->mark[u] == v + 1) continue;
        nodes->mark[u] = v + 1;
        list[count++] = u;
    }
    return count;
}

/* Room: a node waits for no more nodes than its op has arcs. */
static void name_nodes(const struct nodes *nodes, uint32_t *begin, uint32_t *list)
{
    struct tarn_reorder_model *model = nodes->model;
    const struct tarn_graph *graph = model->graph;
    begin[0] = 0;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i], node = model->nodes_count;
        uint32_t *own = list + begin[node];
        uint32_t count = list_predecessors(nodes, v, own);
        if (graph->ops[v].view && count <= 1) {
            nodes->model->node_of[v] = count == 1 ? own[0] : TARN_NONE;
            continue;
        }
        nodes->model->node_of[v] = node;
        model->op[node] = v;
        begin[node + 1] = begin[node] + count;
        model->nodes_count++;
    }
}

static enum tarn_status fill_nodes(struct nodes *nodes)
{
    struct tarn_reorder_model *model = nodes->model;
    size_t ops = model->graph->ops_count;
    struct tarn_region *region = nodes->region;
    uint32_t *begin = tarn_region_take(region, ops + 1, sizeof *begin);
    uint32_t *list = tarn_region_take(region, nodes->constraints->arcs_count, sizeof *list);
    model->predecessors = (struct tarn_arcs){begin, list};
    model->op = tarn_region_take(region, ops, sizeof *model->op);
    if (region->is_exhausted) return TARN_SYSTEM;
    name_nodes(nodes, begin, list);
    return tarn_arcs_reverse(&model->successors, region, &model->predecessors, model->nodes_count,
                             model->nodes_count);
}

/* ---- Storages ---- */

static enum tarn_status fill_users(struct tarn_reorder_model *model, struct tarn_region *region)
{
    const struct tarn_graph *graph = model->graph;
    size_t touches = 0;
    for (uint32_t a = 0; a < model->storages_count; a++) touches += graph->storages[a].users_count;
    uint32_t *begin = tarn_region_take(region, (size_t)model->storages_count + 1, sizeof *begin);
    uint32_t *list = tarn_region_take(region, touches, sizeof *list);
    model->users = (struct tarn_arcs){begin, list};
    if (!begin || !list) return TARN_SYSTEM;
    for (uint32_t a = 0; a < model->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        begin[a + 1] = begin[a] + storage->users_count;
        for (uint32_t k = 0; k < storage->users_count; k++)
            list[begin[a] + k] = model->node_of[tarn_storage_users(graph, storage)[k]];
    }
    return tarn_arcs_reverse(&model->touched, region, &model->users, model->storages_count,
                             model->nodes_count);
}

static enum tarn_status fill_storages(struct tarn_reorder_model *model, struct tarn_region *region,
                                      const uint64_t *reserved)
{
    const struct tarn_graph *graph = model->graph;
    size_t count = model->storages_count = graph->planned_count;
    model->size = tarn_region_take(region, count, sizeof *model->size);
    model->producer = tarn_region_take(region, count, sizeof *model->producer);
    model->pinned = tarn_region_take(region, count, sizeof *model->pinned);
    model->made = tarn_region_take(region, model->nodes_count, sizeof *model->made);
    if (region->is_exhausted) return TARN_SYSTEM;
    for (uint32_t a = 0; a < count; a++) {
        model->size[a] = reserved[a];
        model->producer[a] = model->node_of[graph->storages[a].producer];
        model->pinned[a] = graph->storages[a].pinned;
        model->made[model->producer[a]] += reserved[a];
    }
    return fill_users(model, region);
}

/* ---- The model ---- */

enum tarn_status tarn_reorder_model_init(struct tarn_reorder_model *model,
                                         struct tarn_region *region, const struct tarn_graph *graph,
                                         const uint64_t *reserved)
{
    struct tarn_region scratch = {.chunks = NULL};
    struct tarn_constraints constraints;
    *model = (struct tarn_reorder_model){.graph = graph};
    model->node_of = tarn_region_take(region, graph->ops_count, sizeof *model->node_of);
    struct nodes nodes = {
        .model = model,
        .constraints = &constraints,
        .region = region,
        .mark = tarn_region_take(&scratch, graph->ops_count, sizeof *nodes.mark),
    };
    enum tarn_status status = TARN_SYSTEM;
    if (model->node_of && nodes.mark) status = tarn_constraints_init(&constraints, &scratch, graph);
    if (status == TARN_OK) status = fill_nodes(&nodes);
    tarn_region_finish(&scratch);
    if (status == TARN_OK) status = fill_storages(model, region, reserved);
    assert(status != TARN_OK || tarn_reorder_model_is_valid(model));
    return status;
}

bool tarn_reorder_model_is_valid(const struct tarn_reorder_model *model)
{
    const struct tarn_arcs *before = &model->predecessors, *users = &model->users;
    for (uint32_t v = 0; v < model->nodes_count; v++) {
        if (model->node_of[model->op[v]] != v) return false;
        for (uint32_t i = before->begin[v]; i < before->begin[v + 1]; i++)
            if (before->ops[i] >= v) return false;
    }
    for (uint32_t a = 0; a < model->storages_count; a++) {
        if (users->begin[a] == users->begin[a + 1]) return false;
        if (users->ops[users->begin[a]] != model->producer[a]) return false;
    }
    return true;
}

/* ---- Running nodes ---- */

enum tarn_status tarn_reorder_state_init(struct tarn_reorder_state *state,
                                         struct tarn_region *region,
                                         const struct tarn_reorder_model *model)
{
    *state = (struct tarn_reorder_state){
        .model = model,
        .left = tarn_region_take(region, model->storages_count, sizeof *state->left),
        .last = tarn_region_take(region, model->storages_count, sizeof *state->last),
        .freed = tarn_region_take(region, model->nodes_count, sizeof *state->freed),
        .pending = tarn_region_take(region, model->nodes_count, sizeof *state->pending),
    };
    if (region->is_exhausted) return TARN_SYSTEM;
    tarn_reorder_state_reset(state);
    return TARN_OK;
}

void tarn_reorder_state_reset(struct tarn_reorder_state *state)
{
    const struct tarn_reorder_model *model = state->model;
    const struct tarn_arcs *users = &model->users, *predecessors = &model->predecessors;
    state->alive = 0;
    for (uint32_t v = 0; v < model->nodes_count; v++) {
        state->freed[v] = 0;
        state->pending[v] = predecessors->begin[v + 1] - predecessors->begin[v];
    }
    for (uint32_t a = 0; a < model->storages_count; a++) {
        state->left[a] = users->begin[a + 1] - users->begin[a];
        state->last[a] = 0;
        for (uint32_t i = users->begin[a]; i < users->begin[a + 1]; i++)
            state->last[a] ^= users->ops[i];
        if (state->left[a] == 1 && !model->pinned[a])
            state->freed[state->last[a]] += model->size[a];
    }
}

uint64_t tarn_reorder_run(struct tarn_reorder_state *state, uint32_t v)
{
    const struct tarn_reorder_model *model = state->model;
    uint64_t step = state->alive += model->made[v];
    state->alive -= state->freed[v];
    for (uint32_t i = model->touched.begin[v]; i < model->touched.begin[v + 1]; i++) {
        uint32_t a = model->touched.ops[i];
        state->last[a] ^= v;
        if (--state->left[a] == 1 && !model->pinned[a])
            state->freed[state->last[a]] += model->size[a];
    }
    for (uint32_t i = model->successors.begin[v]; i < model->successors.begin[v + 1]; i++)
        state->pending[model->successors.ops[i]]--;
    return step;
}

void tarn_reorder_undo(struct tarn_reorder_state *state, uint32_t v)
{
    const struct tarn_reorder_model *model = state->model;
    for (uint32_t i = model->touched.begin[v]; i < model->touched.begin[v + 1]; i++) {
        uint32_t a = model->touched.ops[i];
        if (state->left[a]++ == 1 && !model->pinned[a])
            state->freed[state->last[a]] -= model->size[a];
        state->last[a] ^= v;
    }
    for (uint32_t i = model->successors.begin[v]; i < model->successors.begin[v + 1]; i++)
        state->pending[model->successors.ops[i]]++;
    state->alive += state->freed[v];
    state->alive -= model->made[v];
}

uint64_t tarn_reorder_peak(struct tarn_reorder_state *state, const uint32_t *order, uint64_t *step)
{
    uint64_t peak = 0;
    tarn_reorder_state_reset(state);
    for (uint32_t i = 0; i < state->model->nodes_count; i++) {
        uint64_t now = tarn_reorder_run(state, order[i]);
        if (step) step[i] = now;
        if (now > peak) peak = now;
    }
    return peak;
}

enum tarn_status tarn_reorder_list(const struct tarn_reorder_model *model, const uint32_t *order,
                                   uint32_t *list)
{
    const struct tarn_graph *graph = model->graph;
    struct tarn_region scratch = {.chunks = NULL};
    uint32_t *begin = tarn_region_take(&scratch, (size_t)model->nodes_count + 2, sizeof *begin);
    uint32_t *place = tarn_region_take(&scratch, model->nodes_count, sizeof *place);
    bool is_there = !scratch.is_exhausted;
    for (uint32_t i = 0; is_there && i < model->nodes_count; i++) place[order[i]] = i + 1;
    for (uint32_t v = 0; is_there && v < graph->ops_count; v++) {
        uint32_t node = model->node_of[v];
        begin[node == TARN_NONE ? 1 : place[node] + 1]++;
    }
    for (uint32_t i = 0; is_there && i < model->nodes_count; i++) begin[i + 1] += begin[i];
    for (uint32_t i = 0; is_there && i < graph->ops_count; i++) {
        uint32_t v = graph->order[i], node = model->node_of[v];
        list[begin[node == TARN_NONE ? 0 : place[node]]++] = v;
    }
    tarn_region_finish(&scratch);
    return is_there ? TARN_OK : TARN_SYSTEM;
}
