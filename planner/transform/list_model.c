/* The model of a graph: a view that waits for at most one node is no node itself (whoever waits for
 * it waits for that node; when it runs itself does not matter), every other op is one. Running a
 * node keeps, for every storage, how many touchers are left and the exclusive or of their names, so
 * that the last one is known as soon as it is the last. Cost: linear; running a node costs its
 * touches and arcs. */
#include "list_model.h"

#include <stdlib.h>
#include <string.h>

#include "constraints.h"

/* ---- Nodes ---- */

struct nodes {
    struct tarn_reorder_model *model;
    const struct tarn_constraints *constraints;
    uint32_t *mark; /* node -> op + 1 that has named it */
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
    uint32_t *begin = calloc(ops + 1, sizeof *begin);
    uint32_t *list = malloc(((size_t)nodes->constraints->arcs_count + 1) * sizeof *list);
    model->predecessors = (struct tarn_arcs){begin, list};
    model->op = malloc((ops + 1) * sizeof *model->op);
    if (!begin || !list || !model->op) return TARN_SYSTEM;
    name_nodes(nodes, begin, list);
    return tarn_arcs_turn_round(&model->successors, &model->predecessors, model->nodes_count,
                                model->nodes_count);
}

/* ---- Storages ---- */

static enum tarn_status fill_touchers(struct tarn_reorder_model *model)
{
    const struct tarn_graph *graph = model->graph;
    size_t touches = 0;
    for (uint32_t a = 0; a < model->storages_count; a++)
        touches += graph->storages[a].touchers_count;
    uint32_t *begin = calloc((size_t)model->storages_count + 1, sizeof *begin);
    uint32_t *list = malloc((touches + 1) * sizeof *list);
    model->touchers = (struct tarn_arcs){begin, list};
    if (!begin || !list) return TARN_SYSTEM;
    for (uint32_t a = 0; a < model->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        begin[a + 1] = begin[a] + storage->touchers_count;
        for (uint32_t k = 0; k < storage->touchers_count; k++)
            list[begin[a] + k] = model->node_of[storage->touchers[k]];
    }
    return tarn_arcs_turn_round(&model->touched, &model->touchers, model->storages_count,
                                model->nodes_count);
}

static enum tarn_status fill_storages(struct tarn_reorder_model *model, const uint64_t *reserved)
{
    const struct tarn_graph *graph = model->graph;
    size_t count = model->storages_count = graph->planned_count;
    model->size = malloc((count + 1) * sizeof *model->size);
    model->producer = malloc((count + 1) * sizeof *model->producer);
    model->pinned = malloc((count + 1) * sizeof *model->pinned);
    model->made = calloc((size_t)model->nodes_count + 1, sizeof *model->made);
    if (!model->size || !model->producer || !model->pinned || !model->made) return TARN_SYSTEM;
    for (uint32_t a = 0; a < count; a++) {
        model->size[a] = reserved[a];
        model->producer[a] = model->node_of[graph->storages[a].producer];
        model->pinned[a] = graph->storages[a].pinned;
        model->made[model->producer[a]] += reserved[a];
    }
    return fill_touchers(model);
}

/* ---- The model ---- */

enum tarn_status tarn_reorder_model_init(struct tarn_reorder_model *model,
                                         const struct tarn_graph *graph, const uint64_t *reserved)
{
    struct tarn_constraints constraints = {0};
    *model = (struct tarn_reorder_model){.graph = graph};
    model->node_of = malloc(((size_t)graph->ops_count + 1) * sizeof *model->node_of);
    struct nodes nodes = {
        .model = model,
        .constraints = &constraints,
        .mark = calloc((size_t)graph->ops_count + 1, sizeof *nodes.mark),
    };
    enum tarn_status status = TARN_SYSTEM;
    if (model->node_of && nodes.mark) status = tarn_constraints_init(&constraints, graph);
    if (status == TARN_OK) status = fill_nodes(&nodes);
    if (status == TARN_OK) status = fill_storages(model, reserved);
    tarn_constraints_finish(&constraints);
    free(nodes.mark);
    if (status != TARN_OK) tarn_reorder_model_finish(model);
    return status;
}

static void free_arcs(struct tarn_arcs *arcs)
{
    free((void *)arcs->begin);
    free((void *)arcs->ops);
}

void tarn_reorder_model_finish(struct tarn_reorder_model *model)
{
    free_arcs(&model->predecessors);
    free_arcs(&model->successors);
    free_arcs(&model->touchers);
    free_arcs(&model->touched);
    free(model->op);
    free(model->node_of);
    free(model->size);
    free(model->producer);
    free(model->pinned);
    free(model->made);
    memset(model, 0, sizeof *model);
}

/* ---- Running nodes ---- */

enum tarn_status tarn_reorder_state_init(struct tarn_reorder_state *state,
                                         const struct tarn_reorder_model *model)
{
    *state = (struct tarn_reorder_state){
        .model = model,
        .left = malloc(((size_t)model->storages_count + 1) * sizeof *state->left),
        .last = malloc(((size_t)model->storages_count + 1) * sizeof *state->last),
        .freed = malloc(((size_t)model->nodes_count + 1) * sizeof *state->freed),
        .pending = malloc(((size_t)model->nodes_count + 1) * sizeof *state->pending),
    };
    if (state->left && state->last && state->freed && state->pending) {
        tarn_reorder_state_reset(state);
        return TARN_OK;
    }
    tarn_reorder_state_finish(state);
    return TARN_SYSTEM;
}

void tarn_reorder_state_finish(struct tarn_reorder_state *state)
{
    free(state->left);
    free(state->last);
    free(state->freed);
    free(state->pending);
    memset(state, 0, sizeof *state);
}

void tarn_reorder_state_reset(struct tarn_reorder_state *state)
{
    const struct tarn_reorder_model *model = state->model;
    const struct tarn_arcs *touchers = &model->touchers, *predecessors = &model->predecessors;
    state->alive = 0;
    for (uint32_t v = 0; v < model->nodes_count; v++) {
        state->freed[v] = 0;
        state->pending[v] = predecessors->begin[v + 1] - predecessors->begin[v];
    }
    for (uint32_t a = 0; a < model->storages_count; a++) {
        state->left[a] = touchers->begin[a + 1] - touchers->begin[a];
        state->last[a] = 0;
        for (uint32_t i = touchers->begin[a]; i < touchers->begin[a + 1]; i++)
            state->last[a] ^= touchers->ops[i];
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
    uint32_t *begin = calloc((size_t)model->nodes_count + 2, sizeof *begin);
    uint32_t *place = malloc(((size_t)model->nodes_count + 1) * sizeof *place);
    if (begin && place) {
        for (uint32_t i = 0; i < model->nodes_count; i++) place[order[i]] = i + 1;
        for (uint32_t v = 0; v < graph->ops_count; v++) {
            uint32_t node = model->node_of[v];
            begin[node == TARN_NONE ? 1 : place[node] + 1]++;
        }
        for (uint32_t i = 0; i < model->nodes_count; i++) begin[i + 1] += begin[i];
        for (uint32_t i = 0; i < graph->ops_count; i++) {
            uint32_t v = graph->order[i], node = model->node_of[v];
            list[begin[node == TARN_NONE ? 0 : place[node]]++] = v;
        }
    }
    free(begin);
    free(place);
    return begin && place ? TARN_OK : TARN_SYSTEM;
}
