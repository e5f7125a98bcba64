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
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "planner/transform/recipe.h"
#include "streams/base/error.h"
#include "streams/graph/builder.h"

struct building {
    const struct tarn_recompute_model *model;
    const struct tarn_graph *graph;
    const struct tarn_schedule *schedule;
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

static size_t longest_lists(const struct building *all)
{
    const struct tarn_graph *graph = all->graph;
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

static bool make_room(struct building *all)
{
    const struct tarn_schedule *schedule = all->schedule;
    size_t copies = (size_t)schedule->copies_count + 1, executions = (size_t)schedule->count + 1;
    all->builder = tarn_builder_create(all->graph->name);
    all->copy_tensor = malloc(copies * sizeof *all->copy_tensor);
    all->primary_copy =
        malloc(((size_t)all->model->versions_count + 1) * sizeof *all->primary_copy);
    all->new_op = malloc(executions * sizeof *all->new_op);
    all->ops = calloc((size_t)all->graph->ops_count + 1, sizeof *all->ops);
    all->ids = malloc((longest_lists(all) + 1) * sizeof *all->ids);
    return all->builder && all->copy_tensor && all->primary_copy && all->new_op && all->ops &&
           all->ids;
}

static void finish(struct building *all)
{
    free(all->copy_tensor);
    free(all->primary_copy);
    free(all->new_op);
    free(all->ops);
    free(all->ids);
    free((void *)(uintptr_t)all->readers.begin);
    free((void *)(uintptr_t)all->readers.ops);
}

/* ---- Who reads a copy ---- */

static uint32_t reads_count(const struct building *all, const struct tarn_execution *execution)
{
    const struct tarn_form *form = &all->model->forms[execution->form];
    return form->reads.end - form->reads.begin;
}

static enum tarn_status list_readers(struct building *all)
{
    const struct tarn_schedule *schedule = all->schedule;
    uint32_t copies = schedule->copies_count;
    uint32_t *begin = calloc((size_t)copies + 2, sizeof *begin), total = 0;
    for (uint32_t e = 0; e < schedule->count; e++)
        total += reads_count(all, &schedule->executions[e]);
    uint32_t *ops = malloc(((size_t)total + 1) * sizeof *ops);
    all->readers = (struct tarn_arcs){begin, ops};
    if (!begin || !ops) return TARN_SYSTEM;
    for (uint32_t i = 0; i < total; i++) begin[schedule->reads[i] + 2]++;
    for (uint32_t c = 0; c < copies; c++) begin[c + 2] += begin[c + 1];
    for (uint32_t e = 0; e < schedule->count; e++) {
        const struct tarn_execution *execution = &schedule->executions[e];
        for (uint32_t k = 0; k < reads_count(all, execution); k++)
            ops[begin[schedule->reads[execution->reads + k] + 1]++] = e;
    }
    return TARN_OK;
}

/* ---- Tensors ---- */

static const struct tarn_version *version_of(const struct building *all, uint32_t copy)
{
    return &all->model->versions[all->schedule->copies[copy].version];
}

/* Numbers the copies' tensors, as they will be added. */
static void name_copies(struct building *all)
{
    uint32_t next = all->graph->tensors_count;
    for (uint32_t c = 0; c < all->schedule->copies_count; c++) {
        const struct tarn_copy *copy = &all->schedule->copies[c];
        if (copy->recomputed) {
            all->copy_tensor[c] = next++;
        } else {
            all->copy_tensor[c] = version_of(all, c)->tensor;
            all->primary_copy[copy->version] = c;
        }
    }
}

/* The tensor that owns the storage of a copy: that of the first copy that it was written over. */
static uint32_t root_of_copy(const struct building *all, uint32_t copy)
{
    while (tarn_copy_is_over(all->model, all->schedule, copy))
        copy = all->schedule->copies[copy].over;
    return all->copy_tensor[copy];
}

static uint32_t root_of_tensor(const struct building *all, uint32_t tensor)
{
    uint32_t version = all->model->tensor_version[tensor];
    if (version == TARN_NONE) return all->graph->tensors[tensor].root;
    return root_of_copy(all, all->primary_copy[version]);
}

/* All that share a storage are of one kind; a storage that only copies share is an intermediate. */
static enum tarn_tensor_kind kind_of(const struct building *all, uint32_t root)
{
    const struct tarn_graph *graph = all->graph;
    if (root >= graph->tensors_count) return TARN_INTERMEDIATE;
    return graph->tensors[graph->tensors[root].root].kind;
}

static void add_tensor(struct building *all, uint32_t tensor, uint32_t id, uint32_t root)
{
    struct tarn_tensor_info info, owner;
    tarn_graph_tensor(all->graph, tensor, &info);
    tarn_graph_tensor(all->graph, all->graph->tensors[tensor].root, &owner);
    info.kind = kind_of(all, root);
    info.alignment = root == id ? owner.alignment : 0;
    tarn_builder_alias_of(all->builder, &info, root == id ? TARN_NONE : root);
    tarn_builder_tensor_origin(all->builder, tensor);
}

static void add_tensors(struct building *all)
{
    for (uint32_t t = 0; t < all->graph->tensors_count; t++)
        add_tensor(all, t, t, root_of_tensor(all, t));
    for (uint32_t c = 0; c < all->schedule->copies_count; c++) {
        if (all->schedule->copies[c].recomputed)
            add_tensor(all, version_of(all, c)->tensor, all->copy_tensor[c], root_of_copy(all, c));
    }
}

/* ---- Lists of an op ---- */

/* The copy of its storage that the execution reads, or TARN_NONE. */
static uint32_t copy_read(const struct building *all, const struct tarn_execution *execution,
                          uint32_t tensor, bool own)
{
    const struct tarn_recompute_model *model = all->model;
    const struct tarn_form *form = &model->forms[execution->form];
    for (uint32_t k = form->reads.begin; k < form->reads.end; k++) {
        const struct tarn_version *version = &model->versions[model->reads[k]];
        bool same = own ? version->storage == all->graph->tensors[tensor].storage
                        : model->reads[k] == model->tensor_version[tensor];
        if (same) return all->schedule->reads[execution->reads + (k - form->reads.begin)];
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
static uint32_t input_of(const struct building *all, const struct tarn_execution *execution,
                         struct tarn_list own, uint32_t tensor)
{
    if (all->model->tensor_version[tensor] == TARN_NONE) return tensor;
    uint32_t copy = copy_read(all, execution, tensor, has_tensor(own, tensor));
    const struct tarn_copy *read = &all->schedule->copies[copy];
    if (!read->recomputed && read->version == all->model->tensor_version[tensor]) return tensor;
    return all->copy_tensor[copy];
}

/* The name of what it yields. */
static uint32_t output_of(const struct building *all, const struct tarn_execution *execution,
                          uint32_t tensor)
{
    const struct tarn_form *form = &all->model->forms[execution->form];
    uint32_t version = all->model->tensor_version[tensor];
    if (!execution->recomputed || version == TARN_NONE) return tensor;
    uint32_t k = form->writes.begin;
    while (all->model->writes[k] != version) k++;
    return all->copy_tensor[execution->copies + (k - form->writes.begin)];
}

static struct tarn_list add_list(struct building *all, const struct tarn_execution *execution,
                                 struct tarn_list given, const struct tarn_list *own_inputs)
{
    struct tarn_list list = {all->ids + all->ids_count, given.count};
    for (size_t k = 0; k < given.count; k++) {
        all->ids[all->ids_count++] = own_inputs
                                         ? input_of(all, execution, *own_inputs, given.ids[k])
                                         : output_of(all, execution, given.ids[k]);
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

static void add_execution(struct building *all, uint32_t e)
{
    const struct tarn_execution *execution = &all->schedule->executions[e];
    uint32_t v = all->model->forms[execution->form].op;
    struct tarn_op_info info;
    tarn_graph_op(all->graph, v, &info);
    struct tarn_list own = info.inputs;
    take_implementation(&info, execution->implementation);
    all->ids_count = 0;
    info.inputs = add_list(all, execution, info.inputs, &own);
    info.outputs = add_list(all, execution, info.outputs, NULL);
    info.stream = execution->stream;
    info.control = (struct tarn_list){NULL, 0};
    info.inplace_count = 0; /* the pairs name tensors that it may not have any more */
    if (execution->implementation != TARN_NONE || execution->recomputed)
        info.implementations_count = 0; /* it has been chosen */
    all->new_op[e] = tarn_builder_op(all->builder, &info);
    tarn_builder_origin(all->builder, v, execution->implementation);
}

/* A view names the version that its storage has then, by whatever name it was given. */
static void add_view(struct building *all, uint32_t v)
{
    struct tarn_op_info info;
    tarn_graph_op(all->graph, v, &info);
    info.control = (struct tarn_list){NULL, 0};
    all->ids_count = 0;
    uint32_t version =
        info.outputs.count > 0 ? all->model->tensor_version[info.outputs.ids[0]] : TARN_NONE;
    for (size_t k = 0; k < info.inputs.count; k++) {
        uint32_t t = info.inputs.ids[k], named = all->model->tensor_version[t];
        bool newer = named != version && named != TARN_NONE && version != TARN_NONE &&
                     all->model->versions[named].storage == all->model->versions[version].storage;
        all->ids[all->ids_count++] = newer ? all->model->versions[version].tensor : t;
    }
    info.inputs.ids = all->ids;
    uint32_t op = tarn_builder_op(all->builder, &info);
    all->ops[v] = (struct tarn_range){op, op + 1};
    tarn_builder_origin(all->builder, v, TARN_NONE);
}

static void add_ops(struct building *all)
{
    const struct tarn_schedule *schedule = all->schedule;
    uint32_t e = 0, place = 0;
    for (uint32_t i = 0; i < all->graph->ops_count; i++) {
        uint32_t v = all->graph->order[i];
        if (all->graph->ops[v].view) {
            add_view(all, v);
            continue;
        }
        for (; e < schedule->count && schedule->executions[e].place == place; e++) {
            if (!schedule->executions[e].recomputed && all->ops[v].end == 0) all->ops[v].begin = e;
            if (!schedule->executions[e].recomputed) all->ops[v].end = e + 1;
            add_execution(all, e);
        }
        place++;
    }
}

/* ---- Arcs ---- */

static void add_arc(struct building *all, uint32_t later, uint32_t earlier)
{
    const struct tarn_execution *executions = all->schedule->executions;
    if (later != earlier && executions[later].stream != executions[earlier].stream)
        tarn_builder_control(all->builder, all->new_op[later], all->new_op[earlier]);
}

/* Before a copy is written over another, that one has been read. */
static void order_overwriting(struct building *all)
{
    const struct tarn_schedule *schedule = all->schedule;
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        const struct tarn_copy *copy = &schedule->copies[c];
        if (!tarn_copy_is_over(all->model, schedule, c)) continue;
        add_arc(all, copy->birth, schedule->copies[copy->over].birth);
        for (uint32_t i = all->readers.begin[copy->over]; i < all->readers.begin[copy->over + 1];
             i++)
            add_arc(all, copy->birth, all->readers.ops[i]);
    }
}

/* The op that is the n-th to update a persistent storage comes behind the recomputations that read
 * what it was before, and before those that read what it is then. `last`: storage -> the execution
 * that updated it. */
static void order_updates(struct building *all, uint32_t *last)
{
    const struct tarn_recompute_model *model = all->model;
    const struct tarn_graph *graph = all->graph;
    for (uint32_t e = 0; e < all->schedule->count; e++) {
        const struct tarn_execution *execution = &all->schedule->executions[e];
        const struct tarn_form *form = &model->forms[execution->form];
        const struct tarn_graph_op *op = &graph->ops[form->op];
        for (uint32_t k = form->states.begin; k < form->states.end && execution->recomputed; k++) {
            uint32_t updater = last[model->states[k].storage];
            if (updater != TARN_NONE) add_arc(all, e, updater);
        }
        for (uint32_t k = 0; k < op->outputs_count && !execution->recomputed; k++) {
            uint32_t storage = graph->tensors[op->outputs[k]].storage;
            if (graph->storages[storage].persistent) last[storage] = e;
        }
    }
}

static enum tarn_status order_states(struct building *all)
{
    const struct tarn_recompute_model *model = all->model;
    uint32_t count = all->graph->storages_count;
    uint32_t *last = malloc(((size_t)count + 1) * sizeof *last);
    if (!last) return TARN_SYSTEM;
    for (uint32_t s = 0; s < count; s++) last[s] = TARN_NONE;
    order_updates(all, last);
    for (uint32_t e = 0; e < all->schedule->count; e++) {
        const struct tarn_execution *execution = &all->schedule->executions[e];
        const struct tarn_form *form = &model->forms[execution->form];
        for (uint32_t k = form->states.begin; k < form->states.end && execution->recomputed; k++) {
            uint32_t updater = last[model->states[k].storage];
            if (updater != TARN_NONE && updater > e) add_arc(all, updater, e);
        }
    }
    free(last);
    return TARN_OK;
}

/* A view carries control arcs to whoever reads its outputs. An op that reads a copy instead comes
 * after the view all the same. `carries`: by view, found in the graph's order. */
static enum tarn_status keep_carried(struct building *all)
{
    const struct tarn_graph *graph = all->graph;
    bool *carries = calloc((size_t)graph->ops_count + 1, sizeof *carries);
    if (!carries) return TARN_SYSTEM;
    for (uint32_t p = 0; p < graph->ops_count; p++) {
        uint32_t v = graph->order[p];
        const struct tarn_graph_op *op = &graph->ops[v];
        carries[v] = op->view && op->control_count > 0;
        for (uint32_t k = 0; k < op->inputs_count; k++) {
            uint32_t view = graph->tensors[op->inputs[k]].producer;
            if (view == TARN_NONE || !carries[view]) continue;
            carries[v] = op->view;
            for (uint32_t i = all->ops[v].begin; i < all->ops[v].end && !op->view; i++)
                tarn_builder_control(all->builder, all->new_op[i], all->ops[view].begin);
        }
    }
    free(carries);
    return TARN_OK;
}

/* The source's control arcs, between whatever stands for their ends. */
static void keep_control(struct building *all)
{
    const struct tarn_graph *graph = all->graph;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < op->control_count; k++) {
            uint32_t u = op->control[k];
            for (uint32_t i = all->ops[v].begin; i < all->ops[v].end; i++) {
                for (uint32_t j = all->ops[u].begin; j < all->ops[u].end; j++)
                    tarn_builder_control(all->builder, op->view ? i : all->new_op[i],
                                         graph->ops[u].view ? j : all->new_op[j]);
            }
        }
    }
}

/* ---- The graph ---- */

static enum tarn_status build(struct building *all)
{
    if (!make_room(all) || list_readers(all) != TARN_OK) return TARN_SYSTEM;
    name_copies(all);
    tarn_builder_meta(all->builder, all->graph->meta);
    tarn_transform_add_streams(all->builder, all->graph);
    add_tensors(all);
    add_ops(all);
    tarn_transform_add_groups(all->builder, all->graph);
    keep_control(all);
    order_overwriting(all);
    enum tarn_status status = keep_carried(all);
    return status == TARN_OK ? order_states(all) : status;
}

enum tarn_status tarn_recompute_build(const struct tarn_recompute_model *model,
                                      const struct tarn_schedule *schedule,
                                      struct tarn_graph **result, struct tarn_error *error)
{
    struct building all = {.model = model, .graph = model->graph, .schedule = schedule};
    *result = NULL;
    enum tarn_status status = build(&all);
    if (status == TARN_OK) {
        status = tarn_builder_finish(all.builder, result, error);
    } else {
        tarn_builder_destroy(all.builder);
        tarn_error_no_memory(error);
    }
    finish(&all);
    return status;
}
