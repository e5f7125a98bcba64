/* Versions and forms of a graph, in one pass over its ops in list order: each input means the
 * version that its storage has then, each output makes the next one. An input of an implementation
 * means the version that its tensor names, wherever it has gone since.
 *
 * An op in place can write elsewhere when it reads the old version through the very tensor that its
 * producer wrote (a view may be a part of it), and its storage is neither pinned nor in a group.
 * Cost: linear in tensors, inputs, outputs and implementations. */
#include "recompute_model.h"

#include <stdlib.h>
#include <string.h>

#include "../../streams/graph/recompute.h"
#include "../../streams/graph/size.h"

struct reading {
    struct tarn_recompute_model *model;
    const struct tarn_graph *graph;
    uint32_t *current; /* storage -> version, or TARN_NONE */
    uint32_t *updates; /* persistent storage -> how often it has been written */
    bool *updated;     /* storage: persistent and written by some op */
    uint32_t reads_count, writes_count, states_count, choices_count;
    uint64_t total;
    bool overflow;
};

/* ---- Room ---- */

struct amounts {
    size_t versions, forms, reads, writes, states;
};

static struct amounts count_all(const struct tarn_graph *graph)
{
    struct amounts most = {0};
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        size_t forms = (size_t)op->implementations_count + 1;
        size_t reads = (size_t)op->inputs_count + op->outputs_count;
        for (uint32_t i = 0; i < op->implementations_count; i++) {
            size_t own = op->implementations[i].inputs.count;
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

static enum tarn_status make_room(struct reading *reading)
{
    struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph *graph = reading->graph;
    struct amounts most = count_all(graph);
    uint32_t *order = malloc(((size_t)graph->ops_count + 1) * sizeof *order);
    model->order = order;
    model->versions = malloc((most.versions + 1) * sizeof *model->versions);
    model->forms = malloc((most.forms + 1) * sizeof *model->forms);
    model->op_forms = calloc((size_t)graph->ops_count + 1, sizeof *model->op_forms);
    model->choices = malloc((most.forms + 1) * sizeof *model->choices);
    model->reads = malloc((most.reads + 1) * sizeof *model->reads);
    model->writes = malloc((most.writes + 1) * sizeof *model->writes);
    model->states = malloc((most.states + 1) * sizeof *model->states);
    model->tensor_version =
        malloc(((size_t)graph->tensors_count + 1) * sizeof *model->tensor_version);
    reading->current = malloc(((size_t)graph->storages_count + 1) * sizeof *reading->current);
    reading->updates = calloc((size_t)graph->storages_count + 1, sizeof *reading->updates);
    reading->updated = calloc((size_t)graph->storages_count + 1, sizeof *reading->updated);
    if (!order || !model->versions || !model->forms || !model->op_forms || !model->choices ||
        !model->reads || !model->writes || !model->states || !model->tensor_version ||
        !reading->current || !reading->updates || !reading->updated)
        return TARN_SYSTEM;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        if (!graph->ops[graph->order[i]].view) order[model->ops_count++] = graph->order[i];
    }
    for (uint32_t s = 0; s < graph->storages_count; s++) reading->current[s] = TARN_NONE;
    for (uint32_t t = 0; t < graph->tensors_count; t++) model->tensor_version[t] = TARN_NONE;
    return TARN_OK;
}

/* ---- The turn ---- */

static uint32_t find_turn(const struct tarn_recompute_model *model)
{
    for (uint32_t i = 0; i < model->ops_count; i++) {
        if (strstr(model->graph->ops[model->order[i]].kind, "backward")) return i;
    }
    return model->ops_count;
}

static void mark_updated(struct reading *reading)
{
    const struct tarn_graph *graph = reading->graph;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < op->outputs_count && !op->view; k++) {
            uint32_t storage = graph->tensors[op->outputs[k]].storage;
            reading->updated[storage] = graph->storages[storage].persistent;
        }
    }
}

/* ---- Reads and writes of a form ---- */

static uint64_t reserve(struct reading *reading, uint64_t size)
{
    uint64_t bytes;
    if (tarn_size_round_up(size, reading->model->alignment, &bytes)) return bytes;
    reading->overflow = true;
    return 0;
}

static void add_read(struct reading *reading, struct tarn_form *form, uint32_t version)
{
    uint32_t *reads = reading->model->reads;
    for (uint32_t i = form->reads.begin; i < reading->reads_count; i++) {
        if (reads[i] == version) return;
    }
    reads[reading->reads_count++] = version;
}

static void add_state(struct reading *reading, uint32_t storage, uint32_t updates)
{
    if (reading->updated[storage])
        reading->model->states[reading->states_count++] = (struct tarn_state){storage, updates};
}

static void begin_form(struct reading *reading, struct tarn_form *form, uint32_t v)
{
    *form = (struct tarn_form){.op = v, .whole = true};
    form->reads.begin = reading->reads_count;
    form->writes.begin = reading->writes_count;
    form->states.begin = reading->states_count;
    form->choices.begin = reading->choices_count;
}

static void end_form(struct reading *reading, struct tarn_form *form)
{
    form->reads.end = reading->reads_count;
    form->writes.end = reading->writes_count;
    form->states.end = reading->states_count;
}

/* ---- The form as written ---- */

static bool reads_tensor(const struct tarn_graph_op *op, uint32_t tensor)
{
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        if (op->inputs[k] == tensor) return true;
    }
    return false;
}

static bool is_forced(const struct reading *reading, uint32_t v, uint32_t storage,
                      uint32_t previous)
{
    const struct tarn_storage *place = &reading->graph->storages[storage];
    if (place->pinned || place->group != TARN_NONE) return true;
    return !reads_tensor(&reading->graph->ops[v], reading->model->versions[previous].tensor);
}

static void add_version(struct reading *reading, struct tarn_form *form, uint32_t v,
                        uint32_t tensor)
{
    struct tarn_recompute_model *model = reading->model;
    uint32_t storage = reading->graph->tensors[tensor].storage;
    uint32_t previous = reading->current[storage];
    for (uint32_t i = form->writes.begin; i < reading->writes_count; i++) {
        if (model->versions[model->writes[i]].storage == storage) {
            model->tensor_version[tensor] = model->writes[i];
            return; /* two names of one storage */
        }
    }
    struct tarn_version *version = &model->versions[model->versions_count];
    *version =
        (struct tarn_version){.storage = storage,
                              .producer = v,
                              .tensor = tensor,
                              .previous = previous,
                              .size = reserve(reading, reading->graph->storages[storage].size),
                              .late_first = TARN_NONE};
    if (previous != TARN_NONE) {
        version->forced = is_forced(reading, v, storage, previous);
        add_read(reading, form, previous);
    }
    if (!tarn_size_add(reading->total, version->size, &reading->total)) reading->overflow = true;
    model->tensor_version[tensor] = model->versions_count;
    model->writes[reading->writes_count++] = model->versions_count++;
}

static void add_own_form(struct reading *reading, uint32_t v)
{
    struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph *graph = reading->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    struct tarn_form *form = &model->forms[model->forms_count++];
    begin_form(reading, form, v);
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        uint32_t storage = graph->tensors[op->inputs[k]].storage;
        if (graph->storages[storage].persistent) {
            add_state(reading, storage, reading->updates[storage]);
        } else {
            add_read(reading, form, reading->current[storage]);
        }
    }
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t storage = graph->tensors[op->outputs[k]].storage;
        if (!graph->storages[storage].persistent) add_version(reading, form, v, op->outputs[k]);
    }
    form->repeats = tarn_op_repeats(graph, v, TARN_NONE);
    end_form(reading, form);
}

/* The new versions are the current ones from here on. */
static void commit_writes(struct reading *reading, uint32_t v)
{
    const struct tarn_graph *graph = reading->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t storage = graph->tensors[op->outputs[k]].storage;
        reading->updates[storage] += graph->storages[storage].persistent;
        if (!graph->storages[storage].persistent)
            reading->current[storage] = reading->model->tensor_version[op->outputs[k]];
    }
}

/* ---- Forms of implementations ---- */

static bool same_list(struct tarn_list a, struct tarn_list b)
{
    return a.count == b.count && (a.count == 0 || !memcmp(a.ids, b.ids, a.count * sizeof *a.ids));
}

static struct tarn_list inputs_of(const struct tarn_graph_op *op, uint32_t i)
{
    struct tarn_list own = {op->inputs, op->inputs_count};
    return op->implementations[i].inputs.count > 0 ? op->implementations[i].inputs : own;
}

static struct tarn_list outputs_of(const struct tarn_graph_op *op, uint32_t i)
{
    struct tarn_list own = {op->outputs, op->outputs_count};
    return op->implementations[i].outputs.count > 0 ? op->implementations[i].outputs : own;
}

/* The first implementation of the same form as i: TARN_NONE for the form as written. */
static uint32_t first_of_form(const struct tarn_graph_op *op, uint32_t i)
{
    struct tarn_list inputs = inputs_of(op, i), outputs = outputs_of(op, i);
    if (same_list(inputs, (struct tarn_list){op->inputs, op->inputs_count}) &&
        same_list(outputs, (struct tarn_list){op->outputs, op->outputs_count}))
        return TARN_NONE;
    for (uint32_t j = 0; j < i; j++) {
        if (same_list(inputs, inputs_of(op, j)) && same_list(outputs, outputs_of(op, j))) return j;
    }
    return i;
}

/* What the op as written reads of the storage; the current version of others. */
static void add_input(struct reading *reading, const struct tarn_form *own, struct tarn_form *form,
                      uint32_t tensor)
{
    const struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph *graph = reading->graph;
    uint32_t storage = graph->tensors[tensor].storage;
    if (graph->storages[storage].persistent) {
        uint32_t updates = reading->updates[storage];
        for (uint32_t i = own->states.begin; i < own->states.end; i++) {
            if (model->states[i].storage == storage) updates = model->states[i].updates;
        }
        add_state(reading, storage, updates);
        return;
    }
    uint32_t version = model->tensor_version[tensor];
    if (reads_tensor(&graph->ops[own->op], tensor)) {
        for (uint32_t i = own->reads.begin; i < own->reads.end; i++) {
            if (model->versions[model->reads[i]].storage == storage) version = model->reads[i];
        }
    }
    add_read(reading, form, version);
}

static void add_form(struct reading *reading, uint32_t v, uint32_t i)
{
    struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph_op *op = &reading->graph->ops[v];
    const struct tarn_form *own = &model->forms[model->op_forms[v].begin];
    struct tarn_form *form = &model->forms[model->forms_count++];
    struct tarn_list inputs = inputs_of(op, i), outputs = outputs_of(op, i);
    begin_form(reading, form, v);
    form->whole = op->implementations[i].outputs.count == 0;
    form->repeats = tarn_op_repeats(reading->graph, v, i);
    for (size_t k = 0; k < inputs.count; k++) add_input(reading, own, form, inputs.ids[k]);
    for (size_t k = 0; k < outputs.count; k++) {
        uint32_t version = model->tensor_version[outputs.ids[k]];
        if (version == TARN_NONE) continue; /* persistent */
        model->writes[reading->writes_count++] = version;
        if (model->versions[version].previous != TARN_NONE)
            add_read(reading, form, model->versions[version].previous);
    }
    end_form(reading, form);
}

/* ---- Choices ---- */

static int by_time(const void *a, const void *b)
{
    const struct tarn_choice *x = a, *y = b;
    if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? -1 : 1;
    if (x->workspace != y->workspace) return x->workspace < y->workspace ? -1 : 1;
    return x->implementation < y->implementation ? -1 : x->implementation > y->implementation;
}

/* Fastest first, without those that a faster one is no worse than in workspace. */
static void sort_choices(struct reading *reading, struct tarn_form *form)
{
    struct tarn_choice *choices = reading->model->choices;
    uint32_t begin = form->choices.begin, kept = begin;
    qsort(choices + begin, reading->choices_count - begin, sizeof *choices, by_time);
    for (uint32_t i = begin; i < reading->choices_count; i++) {
        if (kept == begin || choices[i].workspace < choices[kept - 1].workspace)
            choices[kept++] = choices[i];
    }
    reading->choices_count = form->choices.end = kept;
}

static void add_choices(struct reading *reading, struct tarn_form *form, uint32_t first)
{
    struct tarn_choice *choices = reading->model->choices;
    const struct tarn_graph_op *op = &reading->graph->ops[form->op];
    form->choices.begin = reading->choices_count;
    if (first == TARN_NONE)
        choices[reading->choices_count++] =
            (struct tarn_choice){TARN_NONE, op->cost, reserve(reading, op->workspace)};
    for (uint32_t i = 0; i < op->implementations_count; i++) {
        if (first_of_form(op, i) != first) continue;
        choices[reading->choices_count++] = (struct tarn_choice){
            i, op->implementations[i].cost, reserve(reading, op->implementations[i].workspace)};
    }
    sort_choices(reading, form);
}

static bool updates_state(const struct tarn_graph *graph, uint32_t v)
{
    for (uint32_t k = 0; k < graph->ops[v].outputs_count; k++) {
        uint32_t storage = graph->tensors[graph->ops[v].outputs[k]].storage;
        if (graph->storages[storage].persistent) return true;
    }
    return false;
}

/* Do the parts among an op's forms make up the whole? */
static void mark_splits(struct reading *reading, struct tarn_range range)
{
    struct tarn_form *forms = reading->model->forms;
    const uint32_t *writes = reading->model->writes;
    const struct tarn_form *own = &forms[range.begin];
    uint32_t parts = 0;
    if (updates_state(reading->graph, own->op)) return;
    for (uint32_t k = own->writes.begin; k < own->writes.end; k++) {
        uint32_t times = 0;
        for (uint32_t f = range.begin; f < range.end; f++) {
            for (uint32_t i = forms[f].writes.begin; i < forms[f].writes.end && !forms[f].whole;
                 i++)
                times += writes[i] == writes[k];
        }
        if (times != 1) return;
        parts++;
    }
    for (uint32_t f = range.begin; f < range.end && parts > 0; f++)
        forms[f].splits = !forms[f].whole;
}

static void read_op(struct reading *reading, uint32_t v)
{
    struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph_op *op = &reading->graph->ops[v];
    model->op_forms[v].begin = model->forms_count;
    add_own_form(reading, v);
    add_choices(reading, &model->forms[model->op_forms[v].begin], TARN_NONE);
    for (uint32_t i = 0; i < op->implementations_count; i++) {
        if (first_of_form(op, i) != i) continue;
        add_form(reading, v, i);
        add_choices(reading, &model->forms[model->forms_count - 1], i);
    }
    model->op_forms[v].end = model->forms_count;
    mark_splits(reading, model->op_forms[v]);
    commit_writes(reading, v);
}

/* A view names the version that its storage has then. */
static void read_view(struct reading *reading, const struct tarn_graph_op *op)
{
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t storage = reading->graph->tensors[op->outputs[k]].storage;
        reading->model->tensor_version[op->outputs[k]] = reading->current[storage];
    }
}

/* ---- Uses ---- */

static void note_reads(struct tarn_recompute_model *model, uint32_t place)
{
    struct tarn_range forms = model->op_forms[model->order[place]];
    for (uint32_t f = forms.begin; f < forms.end; f++) {
        const struct tarn_form *form = &model->forms[f];
        for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
            struct tarn_version *version = &model->versions[model->reads[i]];
            if (place < model->turn) {
                version->early_last = place;
            } else if (version->late_first == TARN_NONE) {
                version->late_first = place;
            }
        }
    }
}

static void note_uses(struct tarn_recompute_model *model)
{
    for (uint32_t place = 0; place < model->ops_count; place++) {
        struct tarn_range forms = model->op_forms[model->order[place]];
        for (uint32_t f = forms.begin; f < forms.end; f++) {
            const struct tarn_form *form = &model->forms[f];
            for (uint32_t i = form->writes.begin; i < form->writes.end; i++) {
                struct tarn_version *version = &model->versions[model->writes[i]];
                const struct tarn_storage *storage = &model->graph->storages[version->storage];
                if (f == forms.begin) version->early_last = place;
                if (place < model->turn && form->repeats && !storage->pinned &&
                    storage->group == TARN_NONE && !version->forced)
                    version->droppable = true;
            }
        }
        note_reads(model, place);
    }
}

/* ---- The model ---- */

static void read_ops(struct reading *reading)
{
    const struct tarn_graph *graph = reading->graph;
    mark_updated(reading);
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i];
        if (graph->ops[v].view) {
            read_view(reading, &graph->ops[v]);
        } else {
            read_op(reading, v);
        }
    }
}

enum tarn_status tarn_recompute_model_init(struct tarn_recompute_model *model,
                                           struct tarn_graph *graph, uint64_t alignment)
{
    *model = (struct tarn_recompute_model){.graph = graph, .alignment = alignment};
    struct reading reading = {.model = model, .graph = graph};
    enum tarn_status status = make_room(&reading);
    if (status == TARN_OK) {
        read_ops(&reading);
        model->turn = find_turn(model);
        note_uses(model);
        if (reading.overflow) status = TARN_SYSTEM;
    }
    free(reading.current);
    free(reading.updates);
    free(reading.updated);
    if (status != TARN_OK) tarn_recompute_model_finish(model);
    return status;
}

void tarn_recompute_model_finish(struct tarn_recompute_model *model)
{
    free((void *)(uintptr_t)model->order);
    free(model->versions);
    free(model->forms);
    free(model->op_forms);
    free(model->choices);
    free(model->reads);
    free(model->writes);
    free(model->states);
    free(model->tensor_version);
    *model = (struct tarn_recompute_model){0};
}

/* ---- Policies ---- */

enum tarn_status tarn_policy_init(struct tarn_policy *policy,
                                  const struct tarn_recompute_model *model)
{
    size_t versions = (size_t)model->versions_count + 1;
    size_t ops = (size_t)model->graph->ops_count + 1;
    *policy = (struct tarn_policy){.keep = malloc(versions),
                                   .retain = malloc(versions),
                                   .form = malloc(ops * sizeof *policy->form)};
    if (!policy->keep || !policy->retain || !policy->form) {
        tarn_policy_finish(policy);
        return TARN_SYSTEM;
    }
    memset(policy->keep, 1, versions);
    memset(policy->retain, 1, versions);
    for (size_t v = 0; v < ops; v++) policy->form[v] = TARN_NONE;
    return TARN_OK;
}

void tarn_policy_finish(struct tarn_policy *policy)
{
    free(policy->keep);
    free(policy->retain);
    free(policy->form);
    *policy = (struct tarn_policy){0};
}
