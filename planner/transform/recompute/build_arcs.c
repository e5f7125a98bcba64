/* Adds the control arcs of the graph that a schedule stands for. The source's arcs tie every
 * execution that stands for their ends, even if a view between them carries the arc. Before a copy
 * is written over another, or a persistent storage is updated, readers in other streams come first.
 * Cost: linear in the graph and the schedule, and for an arc of the source in the pairs of
 * executions that stand for its ends. */
#include "build.h"

static void add_arc(struct tarn_building *building, uint32_t later, uint32_t earlier)
{
    const struct tarn_execution *executions = building->schedule->executions;
    if (later != earlier && executions[later].stream != executions[earlier].stream)
        tarn_builder_control(building->builder, building->new_op[later], building->new_op[earlier]);
}

/* An op that reads a storage by another name than its last writer's comes after that op. */
static void order_staying(struct tarn_building *building)
{
    const struct tarn_schedule *schedule = building->schedule;
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        const struct tarn_copy *copy = &schedule->copies[c];
        if (!building->model->stays[building->model->versions[copy->version].storage]) continue;
        for (uint32_t i = building->readers.begin[c]; i < building->readers.begin[c + 1]; i++)
            add_arc(building, building->readers.ops[i], copy->birth);
    }
}

/* Before a copy is written over another, that one has been read. */
static void order_overwriting(struct tarn_building *building)
{
    const struct tarn_schedule *schedule = building->schedule;
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        const struct tarn_copy *copy = &schedule->copies[c];
        if (!tarn_copy_is_over(building->model, schedule, c)) continue;
        add_arc(building, copy->birth, schedule->copies[copy->over].birth);
        for (uint32_t i = building->readers.begin[copy->over];
             i < building->readers.begin[copy->over + 1]; i++)
            add_arc(building, copy->birth, building->readers.ops[i]);
    }
}

/* The n-th op that updates a persistent storage comes after the recomputations that read the old
 * content, and before the recomputations that read the new content. `last`: storage -> the
 * execution that updated it. */
static void order_updates(struct tarn_building *building, uint32_t *last)
{
    const struct tarn_recompute_model *model = building->model;
    const struct tarn_graph *graph = building->graph;
    for (uint32_t e = 0; e < building->schedule->count; e++) {
        const struct tarn_execution *execution = &building->schedule->executions[e];
        const struct tarn_form *form = &model->forms[execution->form];
        const struct tarn_graph_op *op = &graph->ops[form->op];
        for (uint32_t k = form->states.begin; k < form->states.end && execution->recomputed; k++) {
            uint32_t updater = last[model->states[k].storage];
            if (updater != TARN_NONE) add_arc(building, e, updater);
        }
        for (uint32_t k = 0; k < op->outputs_count && !execution->recomputed; k++) {
            uint32_t storage = graph->tensors[tarn_outputs(op)[k]].storage;
            if (graph->storages[storage].persistent) last[storage] = e;
        }
    }
}

static enum tarn_status order_states(struct tarn_building *building)
{
    const struct tarn_recompute_model *model = building->model;
    uint32_t count = building->graph->storages_count;
    uint32_t *last = tarn_region_take(&building->region, count, sizeof *last);
    if (!last) return TARN_SYSTEM;
    for (uint32_t s = 0; s < count; s++) last[s] = TARN_NONE;
    order_updates(building, last);
    for (uint32_t e = 0; e < building->schedule->count; e++) {
        const struct tarn_execution *execution = &building->schedule->executions[e];
        const struct tarn_form *form = &model->forms[execution->form];
        for (uint32_t k = form->states.begin; k < form->states.end && execution->recomputed; k++) {
            uint32_t updater = last[model->states[k].storage];
            if (updater != TARN_NONE && updater > e) add_arc(building, updater, e);
        }
    }
    return TARN_OK;
}

/* A view carries control arcs to the readers of its outputs. An op that reads a copy instead comes
 * after the view nevertheless. `carries`: by view, found in the graph's order. */
static enum tarn_status keep_carried(struct tarn_building *building)
{
    const struct tarn_graph *graph = building->graph;
    bool *carries = tarn_region_take(&building->region, graph->ops_count, sizeof *carries);
    if (!carries) return TARN_SYSTEM;
    for (uint32_t p = 0; p < graph->ops_count; p++) {
        uint32_t v = graph->order[p];
        const struct tarn_graph_op *op = &graph->ops[v];
        carries[v] = op->view && tarn_extra(op)->control_count > 0;
        for (uint32_t k = 0; k < op->inputs_count; k++) {
            uint32_t view = graph->tensors[op->inputs[k]].producer;
            if (view == TARN_NONE || !carries[view]) continue;
            carries[v] = op->view;
            for (uint32_t i = building->ops[v].begin; i < building->ops[v].end && !op->view; i++)
                tarn_builder_control(building->builder, building->new_op[i],
                                     building->ops[view].begin);
        }
    }
    return TARN_OK;
}

/* The source's control arcs, between whatever stands for their ends. */
static void keep_control(struct tarn_building *building)
{
    const struct tarn_graph *graph = building->graph;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        for (uint32_t k = 0; k < extra->control_count; k++) {
            uint32_t u = extra->control[k];
            for (uint32_t i = building->ops[v].begin; i < building->ops[v].end; i++) {
                for (uint32_t j = building->ops[u].begin; j < building->ops[u].end; j++)
                    tarn_builder_control(building->builder, op->view ? i : building->new_op[i],
                                         graph->ops[u].view ? j : building->new_op[j]);
            }
        }
    }
}

enum tarn_status tarn_building_arcs(struct tarn_building *building)
{
    keep_control(building);
    order_staying(building);
    order_overwriting(building);
    enum tarn_status status = keep_carried(building);
    return status == TARN_OK ? order_states(building) : status;
}
