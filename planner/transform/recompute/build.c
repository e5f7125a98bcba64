/* Builds the graph that a schedule stands for, through the builder, so that it obeys every rule
 * that a loaded graph does.
 *
 * Tensors: the source's tensors keep their ids; each recomputed copy gets a later id. Copies that
 * are written over each other share the storage of the first of them; every other copy has a
 * storage of its own, so an op in place may then write elsewhere. Ops: the executions in their
 * order, views where they were. Arcs: a control arc of the source ties every execution that stands
 * for its ends, even if a view between them carries it. If a copy is written over another, or a
 * persistent storage is updated, readers in other streams come first. Cost: linear in the graph and
 * the schedule. */
#include "build.h"

#include <assert.h>
#include <string.h>

#include "planner/transform/recipe.h"
#include "streams/base/error.h"

/* ---- Room ---- */

static size_t longest_lists(const struct tarn_building *building)
{
    const struct tarn_graph *graph = building->graph;
    size_t longest = tarn_transform_longest_list(graph);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        size_t count = (size_t)op->inputs_count + op->outputs_count;
        for (uint32_t i = 0; i < extra->implementations_count; i++)
            count +=
                extra->implementations[i].inputs.count + extra->implementations[i].outputs.count;
        if (count > longest) longest = count;
    }
    return longest;
}

static bool make_room(struct tarn_building *building)
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

/* ---- The readers of a copy ---- */

static uint32_t reads_count(const struct tarn_building *building,
                            const struct tarn_execution *execution)
{
    const struct tarn_form *form = &building->model->forms[execution->form];
    return form->reads.end - form->reads.begin;
}

static enum tarn_status list_readers(struct tarn_building *building)
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

static const struct tarn_version *version_of(const struct tarn_building *building, uint32_t copy)
{
    return &building->model->versions[building->schedule->copies[copy].version];
}

/* Numbers the copies' tensors, as they will be added. */
static void name_copies(struct tarn_building *building)
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

/* The tensor that owns the storage of a copy: the tensor of the first copy that it was written
 * over. */
static uint32_t root_of_copy(const struct tarn_building *building, uint32_t copy)
{
    while (tarn_copy_is_over(building->model, building->schedule, copy))
        copy = building->schedule->copies[copy].over;
    return building->copy_tensor[copy];
}

static uint32_t root_of_tensor(const struct tarn_building *building, uint32_t tensor)
{
    uint32_t version = building->model->tensor_version[tensor];
    if (version == TARN_NONE) return building->graph->tensors[tensor].root;
    return root_of_copy(building, building->primary_copy[version]);
}

/* All tensors that share a storage are of one kind; a storage that only copies share is an
 * intermediate. */
static enum tarn_tensor_kind kind_of(const struct tarn_building *building, uint32_t root)
{
    const struct tarn_graph *graph = building->graph;
    if (root >= graph->tensors_count) return TARN_INTERMEDIATE;
    return graph->tensors[graph->tensors[root].root].kind;
}

static void add_tensor(struct tarn_building *building, uint32_t tensor, uint32_t id, uint32_t root)
{
    struct tarn_tensor_info info, owner;
    tarn_graph_tensor(building->graph, tensor, &info);
    tarn_graph_tensor(building->graph, building->graph->tensors[tensor].root, &owner);
    info.kind = kind_of(building, root);
    info.alignment = root == id ? owner.alignment : 0;
    if (root == id) info.offset = 0;
    if (root != id || id != tensor) { /* a copy lies anywhere */
        info.offset_rule = TARN_OFFSET_FREE;
        info.wanted_offset = 0;
    }
    tarn_builder_alias_of(building->builder, &info, root == id ? TARN_NONE : root);
    tarn_builder_tensor_origin(building->builder, tensor);
}

static void add_tensors(struct tarn_building *building)
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

/* Is the version read by the name that the source graph has, whatever copies there are? A view of
 * an empty storage is: no copy stands for it, and none has other bytes. */
static bool keeps_name(const struct tarn_recompute_model *model, uint32_t version, uint32_t tensor)
{
    const struct tarn_version *read = &model->versions[version];
    return model->stays[read->storage] ||
           (tarn_storage_is_empty(model->graph, read->storage) && read->tensor != tensor);
}

/* The tensor in the new graph that an execution reads through a source tensor. */
static uint32_t input_of(const struct tarn_building *building,
                         const struct tarn_execution *execution, uint32_t tensor)
{
    const struct tarn_recompute_model *model = building->model;
    const struct tarn_form *form = &model->forms[execution->form];
    uint32_t version = tarn_version_read(model, form->op, tensor), k = form->reads.begin;
    if (version == TARN_NONE || keeps_name(model, version, tensor)) return tensor;
    while (k < form->reads.end && model->reads[k] != version) k++;
    assert(k < form->reads.end);
    uint32_t copy = building->schedule->reads[execution->reads + (k - form->reads.begin)];
    if (!building->schedule->copies[copy].recomputed && version == model->tensor_version[tensor])
        return tensor;
    return building->copy_tensor[copy];
}

/* The tensor in the new graph that it yields. */
static uint32_t output_of(const struct tarn_building *building,
                          const struct tarn_execution *execution, uint32_t tensor)
{
    const struct tarn_form *form = &building->model->forms[execution->form];
    uint32_t version = building->model->tensor_version[tensor];
    if (!execution->recomputed || version == TARN_NONE) return tensor;
    uint32_t k = form->writes.begin;
    while (building->model->writes[k] != version) k++;
    return building->copy_tensor[execution->copies + (k - form->writes.begin)];
}

static struct tarn_list add_list(struct tarn_building *building,
                                 const struct tarn_execution *execution, struct tarn_list given,
                                 bool are_inputs)
{
    struct tarn_list list = {building->ids + building->ids_count, given.count};
    for (size_t k = 0; k < given.count; k++) {
        building->ids[building->ids_count++] = are_inputs
                                                   ? input_of(building, execution, given.ids[k])
                                                   : output_of(building, execution, given.ids[k]);
    }
    return list;
}

/* ---- Ops ---- */

/* Fills the op's record by the chosen implementation, with lists in ids of the source. */
static void take_implementation(struct tarn_op_info *info, uint32_t implementation)
{
    if (implementation == TARN_NONE) return;
    const struct tarn_implementation *chosen = &info->implementations[implementation];
    info->cost = chosen->cost;
    info->workspace = chosen->workspace;
    info->workspace_first = chosen->workspace_first;
    if (chosen->inputs.count > 0) info->inputs = chosen->inputs;
    if (chosen->outputs.count > 0) info->outputs = chosen->outputs;
}

static void add_execution(struct tarn_building *building, uint32_t e)
{
    const struct tarn_execution *execution = &building->schedule->executions[e];
    uint32_t v = building->model->forms[execution->form].op;
    struct tarn_op_info info;
    tarn_graph_op(building->graph, v, &info);
    take_implementation(&info, execution->implementation);
    building->ids_count = 0;
    info.inputs = add_list(building, execution, info.inputs, true);
    info.outputs = add_list(building, execution, info.outputs, false);
    info.stream = execution->stream;
    info.control = (struct tarn_list){NULL, 0};
    info.inplace_count = 0; /* the pairs name tensors that it may not have any more */
    if (execution->implementation != TARN_NONE || execution->recomputed)
        info.implementations_count = 0; /* it has been chosen */
    building->new_op[e] = tarn_builder_op(building->builder, &info);
    tarn_builder_origin(building->builder, v, execution->implementation);
}

/* A view names the version that its storage has then, by whatever name it was given. */
static void add_view(struct tarn_building *building, uint32_t v)
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
            named != version && !building->model->stays[building->graph->tensors[t].storage] &&
            named != TARN_NONE && version != TARN_NONE &&
            building->model->versions[named].storage == building->model->versions[version].storage;
        building->ids[building->ids_count++] =
            newer ? building->model->versions[version].tensor : t;
    }
    info.inputs.ids = building->ids;
    uint32_t op = tarn_builder_op(building->builder, &info);
    building->ops[v] = (struct tarn_range){op, op + 1};
    tarn_builder_origin(building->builder, v, TARN_NONE);
}

static void add_ops(struct tarn_building *building)
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

/* ---- The graph ---- */

static enum tarn_status build(struct tarn_building *building)
{
    if (!make_room(building) || list_readers(building) != TARN_OK) return TARN_SYSTEM;
    name_copies(building);
    tarn_builder_meta(building->builder, building->graph->meta);
    tarn_transform_add_streams(building->builder, building->graph);
    add_tensors(building);
    add_ops(building);
    tarn_transform_add_groups(building->builder, building->graph, TARN_GROUPS_AS_GIVEN);
    return tarn_building_arcs(building);
}

enum tarn_status tarn_recompute_build(const struct tarn_recompute_model *model,
                                      const struct tarn_schedule *schedule,
                                      struct tarn_graph **result, struct tarn_error *error)
{
    struct tarn_building building = {.model = model, .graph = model->graph, .schedule = schedule};
    *result = NULL;
    assert(tarn_schedule_is_valid(schedule, model));
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
