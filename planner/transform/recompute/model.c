/* Reads the versions and forms of a graph, in one pass over its ops in list order: each input means
 * the version that its storage has then, and each output makes the next version. An input of an
 * implementation means the version that its tensor names, even if the storage has a later version
 * by then.
 *
 * An op in place can write elsewhere under three conditions. By each implementation it reads the
 * old version through the very tensor that its producer wrote (a view may be a part of it), its
 * storage is neither pinned nor in a group, and no op from then on names bytes of it outside of
 * what is written, which begins where the storage does.
 *
 * A storage that exists outside of an arm too, and is written in place inside, holds another
 * version afterwards if that arm is not taken. An op of another arm reads it then, although the
 * list has that write before it. So no version of such a storage is written elsewhere or again, and
 * an op reads and writes it by the names of the source graph. The same holds for a storage that
 * some op reads by the name of more or other bytes than were written last, in place. Cost: linear
 * in tensors, inputs, outputs and implementations. */
#include "forms.h"

#include <assert.h>
#include <string.h>

#include "streams/base/checked.h"

/* ---- Room ---- */

struct amounts {
    size_t versions, forms, reads, writes, states;
};

static struct amounts count_all(const struct tarn_graph *graph)
{
    struct amounts most = {0};
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        size_t forms = (size_t)extra->implementations_count + 1;
        size_t reads = (size_t)op->inputs_count + op->outputs_count;
        for (uint32_t i = 0; i < extra->implementations_count; i++) {
            size_t own = extra->implementations[i].inputs.count;
            reads += own > 0 ? own : (size_t)op->inputs_count + op->outputs_count;
        }
        most.versions += op->outputs_count;
        most.forms += forms;
        most.reads += reads;
        most.states += reads;
        most.writes += forms * op->outputs_count;
    }
    return most;
}

static enum tarn_status make_room(struct tarn_reading *reading, struct tarn_region *region)
{
    struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph *graph = reading->graph;
    struct amounts most = count_all(graph);
    uint32_t *order = tarn_region_take(region, graph->ops_count, sizeof *order);
    model->order = order;
    model->versions = tarn_region_take(region, most.versions, sizeof *model->versions);
    model->forms = tarn_region_take(region, most.forms, sizeof *model->forms);
    model->op_forms = tarn_region_take(region, graph->ops_count, sizeof *model->op_forms);
    model->choices = tarn_region_take(region, most.forms, sizeof *model->choices);
    model->reads = tarn_region_take(region, most.reads, sizeof *model->reads);
    model->writes = tarn_region_take(region, most.writes, sizeof *model->writes);
    model->states = tarn_region_take(region, most.states, sizeof *model->states);
    model->is_forward = tarn_region_take(region, graph->ops_count, sizeof *model->is_forward);
    model->drops = tarn_region_take(region, most.versions, sizeof *model->drops);
    model->tensor_version =
        tarn_region_take(region, graph->tensors_count, sizeof *model->tensor_version);
    model->stays = tarn_region_take(region, graph->storages_count, sizeof *model->stays);
    if (region->is_exhausted) return TARN_SYSTEM;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        if (!graph->ops[graph->order[i]].view) order[model->ops_count++] = graph->order[i];
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++) model->tensor_version[t] = TARN_NONE;
    return TARN_OK;
}

/* Allocates the memory that is needed while the graph is read. */
static enum tarn_status make_temporary_room(struct tarn_reading *reading,
                                            struct tarn_region *region)
{
    uint32_t storages = reading->graph->storages_count;
    reading->current = tarn_region_take(region, storages, sizeof *reading->current);
    reading->updates = tarn_region_take(region, storages, sizeof *reading->updates);
    reading->updated = tarn_region_take(region, storages, sizeof *reading->updated);
    reading->is_read =
        tarn_region_take(region, reading->graph->tensors_count, sizeof *reading->is_read);
    reading->lacks =
        tarn_region_take(region, reading->graph->tensors_count, sizeof *reading->lacks);
    reading->last = tarn_region_take(region, storages, sizeof *reading->last);
    reading->held = tarn_region_take(region, reading->graph->tensors_count, sizeof *reading->held);
    reading->ends = tarn_region_take(region, storages, sizeof *reading->ends);
    reading->written =
        tarn_region_take(region, reading->graph->parts_count, sizeof *reading->written);
    reading->named =
        tarn_region_take(region, reading->graph->tensors_count, sizeof *reading->named);
    if (region->is_exhausted) return TARN_SYSTEM;
    for (uint32_t t = 0; t < reading->graph->tensors_count; t++)
        if (reading->graph->tensors[t].producer != TARN_NONE) reading->named[t] = TARN_NONE;
    for (uint32_t s = 0; s < storages; s++) reading->current[s] = TARN_NONE;
    return TARN_OK;
}

/* ---- The form as written ---- */

static void mark_updated(struct tarn_reading *reading)
{
    const struct tarn_graph *graph = reading->graph;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < op->outputs_count && !op->view; k++) {
            uint32_t storage = graph->tensors[tarn_outputs(op)[k]].storage;
            reading->updated[storage] = graph->storages[storage].persistent;
        }
    }
}

static void mark_read(struct tarn_reading *reading)
{
    for (uint32_t v = 0; v < reading->graph->ops_count; v++) {
        const struct tarn_graph_op *op = &reading->graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        for (uint32_t k = 0; k < op->inputs_count && !op->view; k++)
            reading->is_read[op->inputs[k]] = true;
        for (uint32_t i = 0; i < extra->implementations_count; i++)
            for (size_t k = 0; k < extra->implementations[i].inputs.count; k++)
                reading->is_read[extra->implementations[i].inputs.ids[k]] = true;
    }
}

static void mark_staying(struct tarn_reading *reading)
{
    const struct tarn_graph *graph = reading->graph;
    for (uint32_t v = 0; v < graph->ops_count && graph->conditionals_count > 0; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < op->outputs_count && !op->view; k++) {
            uint32_t s = graph->tensors[tarn_outputs(op)[k]].storage;
            if (!graph->storages[s].persistent && !tarn_storage_is_empty(graph, s) &&
                !tarn_op_is_inside(graph, graph->storages[s].producer, v))
                reading->model->stays[s] = true;
        }
    }
}

static void name_bytes(const struct tarn_graph *graph, struct tarn_list tensors, uint64_t *ends)
{
    for (size_t k = 0; k < tensors.count; k++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[tensors.ids[k]];
        uint64_t end = tarn_tensor_begin(tensor) + tensor->size;
        if (end > ends[tensor->storage]) ends[tensor->storage] = end;
    }
}

static void mark_lacking(struct tarn_reading *reading)
{
    const struct tarn_graph *graph = reading->graph;
    uint64_t *ends = reading->ends;
    for (uint32_t i = graph->ops_count; i-- > 0;) {
        const struct tarn_graph_op *op = &graph->ops[graph->order[i]];
        struct tarn_list outputs = {tarn_outputs(op), op->outputs_count};
        name_bytes(graph, outputs, ends);
        for (size_t k = 0; k < outputs.count; k++) {
            const struct tarn_graph_tensor *tensor = &graph->tensors[outputs.ids[k]];
            reading->lacks[outputs.ids[k]] =
                tarn_tensor_begin(tensor) > 0 || ends[tensor->storage] > tensor->size;
        }
        name_bytes(graph, (struct tarn_list){op->inputs, op->inputs_count}, ends);
    }
}

/* Do two tensors of one storage name the same bytes? */
static bool is_same_range(const struct tarn_graph *graph, uint32_t a, uint32_t b)
{
    const struct tarn_graph_tensor *x = &graph->tensors[a], *y = &graph->tensors[b];
    return tarn_tensor_begin(x) == tarn_tensor_begin(y) && x->size == y->size;
}

/* Where an op reads other bytes than were written last, it cannot be given a copy of what was. */
static void mark_parted(struct tarn_reading *reading)
{
    const struct tarn_graph *graph = reading->graph;
    uint32_t *last = reading->last, *held = reading->held;
    for (uint32_t s = 0; s < graph->storages_count; s++) last[s] = TARN_NONE;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i];
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < op->inputs_count && !op->view; k++) {
            uint32_t t = op->inputs[k], s = graph->tensors[t].storage;
            if (last[s] != TARN_NONE && held[t] != last[s] && !is_same_range(graph, t, last[s]) &&
                !graph->storages[s].persistent)
                reading->model->stays[s] = true;
        }
        for (uint32_t k = 0; k < op->outputs_count; k++) {
            uint32_t t = tarn_outputs(op)[k], s = graph->tensors[t].storage;
            bool is_first = last[s] == TARN_NONE || graph->tensors[last[s]].producer != v;
            if (!op->view && is_first) last[s] = t;
            held[t] = last[s];
        }
    }
}

static bool is_forced(const struct tarn_reading *reading, uint32_t v, uint32_t tensor,
                      uint32_t previous)
{
    uint32_t storage = reading->graph->tensors[tensor].storage;
    const struct tarn_storage *place = &reading->graph->storages[storage];
    if (place->pinned || place->group != TARN_NONE || reading->model->stays[storage] ||
        reading->lacks[tensor])
        return true;
    return !tarn_op_always_reads(reading->graph, v, storage,
                                 reading->model->versions[previous].tensor);
}

static void add_version(struct tarn_reading *reading, struct tarn_form *form, uint32_t v,
                        uint32_t tensor)
{
    struct tarn_recompute_model *model = reading->model;
    uint32_t storage = reading->graph->tensors[tensor].storage;
    bool is_empty = tarn_storage_is_empty(reading->graph, storage);
    uint32_t previous = is_empty ? TARN_NONE : reading->current[storage];
    for (uint32_t i = form->writes.begin; i < reading->writes_count && !is_empty; i++) {
        if (model->versions[model->writes[i]].storage == storage) {
            model->tensor_version[tensor] = model->writes[i];
            return; /* two names of one storage */
        }
    }
    struct tarn_version *version = &model->versions[model->versions_count];
    bool is_first = reading->graph->storages[storage].space == 0; /* the budget is its */
    *version = (struct tarn_version){
        .storage = storage,
        .producer = v,
        .tensor = tensor,
        .previous = previous,
        .size = is_first ? tarn_storage_reserved(reading->graph, storage, model->alignment) : 0,
        .copy_size =
            is_first ? tarn_reading_reserve(reading, reading->graph->storages[storage].size) : 0,
        .dropped_at = TARN_NONE};
    if (previous != TARN_NONE) {
        version->forced = is_forced(reading, v, tensor, previous);
        tarn_form_read(reading, form, previous);
    }
    if (!tarn_size_add(reading->total, version->size, &reading->total)) reading->overflow = true;
    model->tensor_version[tensor] = model->versions_count;
    model->writes[reading->writes_count++] = model->versions_count++;
}

static void add_own_form(struct tarn_reading *reading, uint32_t v)
{
    struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph *graph = reading->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    struct tarn_form *form = &model->forms[model->forms_count++];
    tarn_form_begin(reading, form, v);
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        uint32_t storage = graph->tensors[op->inputs[k]].storage;
        if (graph->storages[storage].persistent) {
            tarn_form_state(reading, storage, reading->updates[storage]);
        } else if (tarn_storage_is_empty(graph, storage)) {
            tarn_form_read(reading, form, model->tensor_version[op->inputs[k]]);
        } else {
            tarn_form_read(reading, form, reading->current[storage]);
        }
    }
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t storage = graph->tensors[tarn_outputs(op)[k]].storage;
        if (!graph->storages[storage].persistent)
            add_version(reading, form, v, tarn_outputs(op)[k]);
    }
    form->repeats = tarn_form_repeats(reading, v, TARN_NONE);
    tarn_form_end(reading, form);
}

/* Makes the new versions the current ones. */
static void commit_writes(struct tarn_reading *reading, uint32_t v)
{
    const struct tarn_graph *graph = reading->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t t = tarn_outputs(op)[k], storage = graph->tensors[t].storage;
        reading->updates[storage] += graph->storages[storage].persistent;
        if (!graph->storages[storage].persistent)
            reading->current[storage] = reading->model->tensor_version[t];
        reading->named[t] = reading->now;
        for (uint32_t i = 0; i < graph->tensors[t].parts_count; i++)
            reading->written[graph->tensors[t].part + i] = reading->now;
    }
}

static void read_op(struct tarn_reading *reading, uint32_t v)
{
    struct tarn_recompute_model *model = reading->model;
    model->op_forms[v].begin = model->forms_count;
    add_own_form(reading, v);
    tarn_reading_forms(reading, v);
    model->op_forms[v].end = model->forms_count;
    commit_writes(reading, v);
}

static bool is_any_read(const struct tarn_reading *reading, const struct tarn_graph_op *op)
{
    for (uint32_t k = 0; k < op->outputs_count; k++)
        if (reading->is_read[tarn_outputs(op)[k]]) return true;
    return false;
}

/* A view names the version that its storage has then. Of an empty one it names the version that its
 * input names, and so does a view that nobody reads: what has been written since may have become
 * an output in place, which another storage may get. */
static void read_view(struct tarn_reading *reading, const struct tarn_graph_op *op)
{
    const struct tarn_graph *graph = reading->graph;
    uint32_t *version_of = reading->model->tensor_version;
    bool is_live = is_any_read(reading, op);
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t t = tarn_outputs(op)[k], storage = graph->tensors[t].storage;
        version_of[t] = reading->current[storage];
        reading->named[t] = reading->now;
        bool by_input = !is_live || tarn_storage_is_empty(graph, storage);
        for (uint32_t i = 0; i < op->inputs_count && by_input; i++)
            if (graph->tensors[op->inputs[i]].storage == storage)
                version_of[t] = version_of[op->inputs[i]];
    }
}

/* ---- The model ---- */

static void read_ops(struct tarn_reading *reading)
{
    const struct tarn_graph *graph = reading->graph;
    mark_updated(reading);
    mark_read(reading);
    mark_lacking(reading);
    mark_parted(reading);
    mark_staying(reading);
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i];
        reading->now = i + 1;
        if (graph->ops[v].view) {
            read_view(reading, &graph->ops[v]);
        } else {
            read_op(reading, v);
        }
    }
}

enum tarn_status tarn_recompute_model_init(struct tarn_recompute_model *model,
                                           struct tarn_region *region, struct tarn_graph *graph,
                                           uint64_t alignment, unsigned rules)
{
    assert(tarn_is_power_of_two(alignment));
    alignment = tarn_space_alignment(graph, 0, alignment); /* only present storages count */
    *model = (struct tarn_recompute_model){.graph = graph, .alignment = alignment, .rules = rules};
    struct tarn_reading reading = {.model = model, .graph = graph};
    enum tarn_status status = make_room(&reading, region);
    struct tarn_region_mark mark = tarn_region_mark(region);
    if (status == TARN_OK) status = make_temporary_room(&reading, region);
    if (status == TARN_OK) {
        read_ops(&reading);
        if (reading.overflow) status = TARN_BAD_INPUT;
    }
    tarn_region_release(region, mark);
    if (status == TARN_OK) status = tarn_model_find_passes(model, region);
    if (status == TARN_OK) status = tarn_model_list_launches(model, region);
    assert(status != TARN_OK || tarn_recompute_model_is_valid(model));
    return status;
}

/* ---- Policies ---- */

enum tarn_status tarn_policy_init(struct tarn_policy *policy, struct tarn_region *region,
                                  const struct tarn_recompute_model *model)
{
    *policy = (struct tarn_policy){
        .keep = tarn_region_take(region, model->versions_count, sizeof *policy->keep),
        .retain = tarn_region_take(region, model->versions_count, sizeof *policy->retain),
        .ahead = tarn_region_take(region, model->versions_count, sizeof *policy->ahead),
        .form = tarn_region_take(region, model->graph->ops_count, sizeof *policy->form)};
    if (region->is_exhausted) return TARN_SYSTEM;
    tarn_policy_reset(policy, model);
    return TARN_OK;
}

void tarn_policy_reset(struct tarn_policy *policy, const struct tarn_recompute_model *model)
{
    policy->cuts = NULL;
    policy->cuts_count = 0;
    memset(policy->keep, 1, model->versions_count);
    memset(policy->retain, 1, model->versions_count);
    memset(policy->ahead, 0, model->versions_count);
    for (uint32_t v = 0; v < model->graph->ops_count; v++) policy->form[v] = TARN_NONE;
}
