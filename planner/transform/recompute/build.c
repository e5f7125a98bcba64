/* The graph that a schedule stands for, through the builder, so that it obeys every rule that a
 * loaded one does.
 *
 * Tensors: the source's keep their ids; each recomputed copy gets one behind them. Copies that are
 * written over each other share the storage of the first of them, all others have one of their own,
 * so an op in place may come to write elsewhere. Ops: the executions in their order, views where
 * they were. Arcs: a control arc of the source ties every execution that stands for its ends, also
 * where a view between them carries it; where a copy is written over another, or a persistent
 * storage is updated, readers in other streams come first. Cost: linear in the graph and the
 * schedule. */
#include <string.h>

#include "planner/transform/recipe.h"
#include "recompute.h"
#include "streams/base/error.h"
#include "streams/graph/builder.h"

struct building {
    const struct tarn_recompute_model *model;
    const struct tarn_graph *graph;
    const struct tarn_schedule *schedule;
    struct tarn_region region; /* of the lists */
    struct tarn_builder *builder;
    uint32_t *copy_tensor;  /* copy -> its tensor in the new graph */
    uint32_t *primary_copy; /* version -> copy by the primary op */
    uint32_t *new_op;       /* execution -> op */
    struct tarn_range
        *ops; /* source op -> executions that stand for it: [begin, end); views: ops */
    struct tarn_arcs readers; /* copy -> executions that read it */
    uint32_t *ids;            /* room for the lists of one op */
    uint32_t ids_count;
    enum tarn_status status;
};

/* ---- Room ---- */

static size_t longest_lists(const struct building *building)
{
    const struct tarn_graph *graph = building->graph;
    size_t longest = tarn_transform_longest_list(graph);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        size_t count = (size_t)op->inputs_count + op->outputs_count;
        for (uint32_t i = 0; i < op->implementations_count; i++)
            count += op->implementations[i].inputs.count + op->implementations[i].outputs.count;
        if (count > longest) longest = count;
    }
    return longest;
}

static bool make_room(struct building *building)
{
    const struct tarn_schedule *schedule = building->schedule;
    struct tarn_region *region = &building->region;
    size_t ops = building->graph->ops_count, versions = building->model->versions_count;
    building->builder = tarn_builder_create(building->graph->name);
    building->copy_tensor =
        tarn_region_take(region, schedule->copies_count, sizeof *building->copy_tensor);
    building->primary_copy = tarn_region_take(region, versions, sizeof *building->primary_copy);
    building->new_op = tarn_region_take(region, schedule->count, sizeof *building->new_op);
    building->ops = tarn_region_take(region, ops, sizeof *building->ops);
    building->ids = tarn_region_take(region, longest_lists(building), sizeof *building->ids);
    return building->builder && !region->is_exhausted;
}

/* ---- Who reads a copy ---- */

static uint32_t reads_count(const struct building *building, const struct tarn_execution *execution)
{
    const struct tarn_form *form = &building->model->forms[execution->form];
    return form->reads.end - form->reads.begin;
}

static enum tarn_status list_readers(struct building *building)
{
    const struct tarn_schedule *schedule = building->schedule;
    uint32_t copies = schedule->copies_count;
    uint32_t total = 0,
             *begin = tarn_region_take(&building->region, (size_t)copies + 2, sizeof *begin);
    for (uint32_t e = 0; e < schedule->count; e++)
        total += reads_count(building, &schedule->executions[e]);
    uint32_t *ops = tarn_region_take(&building->region, total, sizeof *ops);
    building->readers = (struct tarn_arcs){begin, ops};
    if (!begin || !ops) return TARN_SYSTEM;
    for (uint32_t i = 0; i < total; i++) begin[schedule->reads[i] + 2]++;
    for (uint32_t c = 0; c < copies; c++) begin[c + 2] += begin[c + 1];
    for (uint32_t e = 0; e < schedule->count; e++) {
        const struct tarn_execution *execution = &schedule->executions[e];
        for (uint32_t k = 0; k < reads_count(building, execution); k++)
            ops[begin[schedule->reads[execution->reads + k] + 1]++] = e;
    }
    return TARN_OK;
}

/* ---- Tensors ---- */

static const struct tarn_version *version_of(const struct building *building, uint32_t copy)
{
    return &building->model->versions[building->schedule->copies[copy].version];
}

/* Numbers the copies' tensors, as they will be added. */
static void name_copies(struct building *building)
{
    uint32_t next = building->graph->tensors_count;
    for (uint32_t c = 0; c < building->schedule->copies_count; c++) {
        const struct tarn_copy *copy = &building->schedule->copies[c];
        if (copy->recomputed) {
            building->copy_tensor[c] = next++;
        } else {
            building->copy_tensor[c] = version_of(building, c)->tensor;
            building->primary_copy[copy->version] = c;
        }
    }
}

/* The tensor that owns the storage of a copy: that of the first copy that it was written over. */
static uint32_t root_of_copy(const struct building *building, uint32_t copy)
{
    while (tarn_copy_is_over(building->model, building->schedule, copy))
        copy = building->schedule->copies[copy].over;
    return building->copy_tensor[copy];
}

static uint32_t root_of_tensor(const struct building *building, uint32_t tensor)
{
    uint32_t version = building->model->tensor_version[tensor];
    if (version == TARN_NONE) return building->graph->tensors[tensor].root;
    return root_of_copy(building, building->primary_copy[version]);
}

/* All that share a storage are of one kind; a storage that only copies share is an intermediate. */
static enum tarn_tensor_kind kind_of(const struct building *building, uint32_t root)
{
    const struct tarn_graph *graph = building->graph;
    if (root >= graph->tensors_count) return TARN_INTERMEDIATE;
    return graph->tensors[graph->tensors[root].root].kind;
}

static void add_tensor(struct building *building, uint32_t tensor, uint32_t id, uint32_t root)
{
    struct tarn_tensor_info info, owner;
    tarn_graph_tensor(building->graph, tensor, &info);
    tarn_graph_tensor(building->graph, building->graph->tensors[tensor].root, &owner);
    info.kind = kind_of(building, root);
    info.alignment = root == id ? owner.alignment : 0;
    tarn_builder_alias_of(building->builder, &info, root == id ? TARN_NONE : root);
    tarn_builder_tensor_origin(building->builder, tensor);
}

static void add_tensors(struct building *building)
{
    for (uint32_t t = 0; t < building->graph->tensors_count; t++)
        add_tensor(building, t, t, root_of_tensor(building, t));
    for (uint32_t c = 0; c < building->schedule->copies_count; c++) {
        if (building->schedule->copies[c].recomputed)
            add_tensor(building, version_of(building, c)->tensor, building->copy_tensor[c],
                       root_of_copy(building, c));
    }
}

/* ---- Lists of an op ---- */

/* The copy of its storage that the execution reads, or TARN_NONE. */
static uint32_t copy_read(const struct building *building, const struct tarn_execution *execution,
                          uint32_t tensor, bool own)
{
    const struct tarn_recompute_model *model = building->model;
    const struct tarn_form *form = &model->forms[execution->form];
    for (uint32_t k = form->reads.begin; k < form->reads.end; k++) {
        const struct tarn_version *version = &model->versions[model->reads[k]];
        bool same = own ? version->storage == building->graph->tensors[tensor].storage
                        : model->reads[k] == model->tensor_version[tensor];
        if (same) return building->schedule->reads[execution->reads + (k - form->reads.begin)];
    }
    return TARN_NONE;
}

static bool has_tensor(struct tarn_list list, uint32_t tensor)
{
    for (size_t k = 0; k < list.count; k++) {
        if (list.ids[k] == tensor) return true;
    }
    return false;
}

/* The name in the new graph of what an execution reads through a source tensor. */
static uint32_t input_of(const struct building *building, const struct tarn_execution *execution,
                         struct tarn_list own, uint32_t tensor)
{
    if (building->model->tensor_version[tensor] == TARN_NONE) return tensor;
    uint32_t copy = copy_read(building, execution, tensor, has_tensor(own, tensor));
    const struct tarn_copy *read = &building->schedule->copies[copy];
    if (!read->recomputed && read->version == building->model->tensor_version[tensor])
        return tensor;
    return building->copy_tensor[copy];
}

/* The name of what it yields. */
static uint32_t output_of(const struct building *building, const struct tarn_execution *execution,
                          uint32_t tensor)
{
    const struct tarn_form *form = &building->model->forms[execution->form];
    uint32_t version = building->model->tensor_version[tensor];
    if (!execution->recomputed || version == TARN_NONE) return tensor;
    uint32_t k = form->writes.begin;
    while (building->model->writes[k] != version) k++;
    return building->copy_tensor[execution->copies + (k - form->writes.begin)];
}

static struct tarn_list add_list(struct building *building, const struct tarn_execution *execution,
                                 struct tarn_list given, const struct tarn_list *own_inputs)
{
    struct tarn_list list = {building->ids + building->ids_count, given.count};
    for (size_t k = 0; k < given.count; k++) {
        building->ids[building->ids_count++] =
            own_inputs ? input_of(building, execution, *own_inputs, given.ids[k])
                       : output_of(building, execution, given.ids[k]);
    }
    return list;
}

/* ---- Ops ---- */

/* What the op does as the chosen implementation; lists in ids of the source. */
static void take_implementation(struct tarn_op_info *info, uint32_t implementation)
{
    if (implementation == TARN_NONE) return;
    const struct tarn_implementation *chosen = &info->implementations[implementation];
    info->cost = chosen->cost;
    info->workspace = chosen->workspace;
    if (chosen->inputs.count > 0) info->inputs = chosen->inputs;
    if (chosen->outputs.count > 0) info->outputs = chosen->outputs;
}

static void add_execution(struct building *building, uint32_t e)
{
    const struct tarn_execution *execution = &building->schedule->executions[e];
    uint32_t v = building->model->forms[execution->form].op;
    struct tarn_op_info info;
    tarn_graph_op(building->graph, v, &info);
    struct tarn_list own = info.inputs;
    take_implementation(&info, execution->implementation);
    building->ids_count = 0;
    info.inputs = add_list(building, execution, info.inputs, &own);
    info.outputs = add_list(building, execution, info.outputs, NULL);
    info.stream = execution->stream;
    info.control = (struct tarn_list){NULL, 0};
    info.inplace_count = 0; /* the pairs name tensors that it may not have any more */
    if (execution->implementation != TARN_NONE || execution->recomputed)
        info.implementations_count = 0; /* it has been chosen */
    building->new_op[e] = tarn_builder_op(building->builder, &info);
    tarn_builder_origin(building->builder, v, execution->implementation);
}

/* A view names the version that its storage has then, by whatever name it was given. */
static void add_view(struct building *building, uint32_t v)
{
    struct tarn_op_info info;
    tarn_graph_op(building->graph, v, &info);
    info.control = (struct tarn_list){NULL, 0};
    building->ids_count = 0;
    uint32_t version =
        info.outputs.count > 0 ? building->model->tensor_version[info.outputs.ids[0]] : TARN_NONE;
    for (size_t k = 0; k < info.inputs.count; k++) {
        uint32_t t = info.inputs.ids[k], named = building->model->tensor_version[t];
        bool newer =
            named != version && named != TARN_NONE && version != TARN_NONE &&
            building->model->versions[named].storage == building->model->versions[version].storage;
        building->ids[building->ids_count++] =
            newer ? building->model->versions[version].tensor : t;
    }
    info.inputs.ids = building->ids;
    uint32_t op = tarn_builder_op(building->builder, &info);
    building->ops[v] = (struct tarn_range){op, op + 1};
    tarn_builder_origin(building->builder, v, TARN_NONE);
}

static void add_ops(struct building *building)
{
    const struct tarn_schedule *schedule = building->schedule;
    uint32_t e = 0, place = 0;
    for (uint32_t i = 0; i < building->graph->ops_count; i++) {
        uint32_t v = building->graph->order[i];
        if (building->graph->ops[v].view) {
            add_view(building, v);
            continue;
        }
        for (; e < schedule->count && schedule->executions[e].place == place; e++) {
            if (!schedule->executions[e].recomputed && building->ops[v].end == 0)
                building->ops[v].begin = e;
            if (!schedule->executions[e].recomputed) building->ops[v].end = e + 1;
            add_execution(building, e);
        }
        place++;
    }
}

/* ---- Arcs ---- */

static void add_arc(struct building *building, uint32_t later, uint32_t earlier)
{
    const struct tarn_execution *executions = building->schedule->executions;
    if (later != earlier && executions[later].stream != executions[earlier].stream)
        tarn_builder_control(building->builder, building->new_op[later], building->new_op[earlier]);
}

/* Before a copy is written over another, that one has been read. */
static void order_overwriting(struct building *building)
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

/* The op that is the n-th to update a persistent storage comes behind the recomputations that read
 * what it was before, and before those that read what it is then. `last`: storage -> the execution
 * that updated it. */
static void order_updates(struct building *building, uint32_t *last)
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
            uint32_t storage = graph->tensors[op->outputs[k]].storage;
            if (graph->storages[storage].persistent) last[storage] = e;
        }
    }
}

static enum tarn_status order_states(struct building *building)
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

/* A view carries control arcs to whoever reads its outputs. An op that reads a copy instead comes
 * after the view all the same. `carries`: by view, found in the graph's order. */
static enum tarn_status keep_carried(struct building *building)
{
    const struct tarn_graph *graph = building->graph;
    bool *carries = tarn_region_take(&building->region, graph->ops_count, sizeof *carries);
    if (!carries) return TARN_SYSTEM;
    for (uint32_t p = 0; p < graph->ops_count; p++) {
        uint32_t v = graph->order[p];
        const struct tarn_graph_op *op = &graph->ops[v];
        carries[v] = op->view && op->control_count > 0;
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
static void keep_control(struct building *building)
{
    const struct tarn_graph *graph = building->graph;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < op->control_count; k++) {
            uint32_t u = op->control[k];
            for (uint32_t i = building->ops[v].begin; i < building->ops[v].end; i++) {
                for (uint32_t j = building->ops[u].begin; j < building->ops[u].end; j++)
                    tarn_builder_control(building->builder, op->view ? i : building->new_op[i],
                                         graph->ops[u].view ? j : building->new_op[j]);
            }
        }
    }
}

/* ---- The graph ---- */

static enum tarn_status build(struct building *building)
{
    if (!make_room(building) || list_readers(building) != TARN_OK) return TARN_SYSTEM;
    name_copies(building);
    tarn_builder_meta(building->builder, building->graph->meta);
    tarn_transform_add_streams(building->builder, building->graph);
    add_tensors(building);
    add_ops(building);
    tarn_transform_add_groups(building->builder, building->graph);
    keep_control(building);
    order_overwriting(building);
    enum tarn_status status = keep_carried(building);
    return status == TARN_OK ? order_states(building) : status;
}

enum tarn_status tarn_recompute_build(const struct tarn_recompute_model *model,
                                      const struct tarn_schedule *schedule,
                                      struct tarn_graph **result, struct tarn_error *error)
{
    struct building building = {.model = model, .graph = model->graph, .schedule = schedule};
    *result = NULL;
    enum tarn_status status = build(&building);
    if (status == TARN_OK) {
        status = tarn_builder_finish(building.builder, result, error);
    } else {
        tarn_builder_destroy(building.builder);
        tarn_error_no_memory(error);
    }
    tarn_region_finish(&building.region);
    return status;
}
