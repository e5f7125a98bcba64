/* Makes the forms of an op, and the choices of each form. Implementations with the same reads and
 * results are of one form; an implementation is left out if a faster one of the same form needs no
 * more workspace. Cost: linear in inputs and outputs, quadratic in the implementations of one
 * op. */
#include "forms.h"

#include <stdlib.h>
#include <string.h>

#include "planner/transform/in_place.h"
#include "streams/base/checked.h"
#include "streams/graph/recomputable_kinds.h"

/* ---- Reads and writes of a form ---- */

uint64_t tarn_reading_reserve(struct tarn_reading *reading, uint64_t size)
{
    uint64_t bytes;
    if (tarn_size_round_up(size, reading->model->alignment, &bytes)) return bytes;
    reading->overflow = true;
    return 0;
}

void tarn_form_read(struct tarn_reading *reading, struct tarn_form *form, uint32_t version)
{
    uint32_t *reads = reading->model->reads;
    for (uint32_t i = form->reads.begin; i < reading->reads_count; i++) {
        if (reads[i] == version) return;
    }
    reads[reading->reads_count++] = version;
}

void tarn_form_state(struct tarn_reading *reading, uint32_t storage, uint32_t updates)
{
    if (reading->updated[storage])
        reading->model->states[reading->states_count++] = (struct tarn_state){storage, updates};
}

void tarn_form_begin(struct tarn_reading *reading, struct tarn_form *form, uint32_t v)
{
    *form = (struct tarn_form){.op = v,
                               .whole = true,
                               .communicates =
                                   tarn_graph_op_class(reading->graph, v) == TARN_CLASS_COLLECTIVE};
    form->reads.begin = reading->reads_count;
    form->writes.begin = reading->writes_count;
    form->states.begin = reading->states_count;
    form->choices.begin = reading->choices_count;
}

void tarn_form_end(struct tarn_reading *reading, struct tarn_form *form)
{
    const struct tarn_recompute_model *model = reading->model;
    form->reads.end = reading->reads_count;
    form->writes.end = reading->writes_count;
    form->states.end = reading->states_count;
    for (uint32_t i = form->writes.begin; i < form->writes.end; i++)
        if (model->stays[model->versions[model->writes[i]].storage]) form->repeats = false;
}

bool tarn_form_repeats(const struct tarn_reading *reading, uint32_t v, uint32_t implementation)
{
    return tarn_op_repeats(reading->graph, v, implementation) &&
           (!(reading->model->rules & TARN_REPEAT_KNOWN) || tarn_op_is_known(reading->graph, v));
}

/* ---- Forms of implementations ---- */

static bool same_list(struct tarn_list a, struct tarn_list b)
{
    return a.count == b.count && (a.count == 0 || !memcmp(a.ids, b.ids, a.count * sizeof *a.ids));
}

static struct tarn_list own_inputs(const struct tarn_graph_op *op)
{
    return (struct tarn_list){op->inputs, op->inputs_count};
}

static struct tarn_list inputs_of(const struct tarn_graph_op *op, uint32_t i)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    return extra->implementations[i].inputs.count > 0 ? extra->implementations[i].inputs
                                                      : own_inputs(op);
}

static struct tarn_list outputs_of(const struct tarn_graph_op *op, uint32_t i)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    struct tarn_list own = {tarn_outputs(op), op->outputs_count};
    return extra->implementations[i].outputs.count > 0 ? extra->implementations[i].outputs : own;
}

static bool has_storage(const struct tarn_graph *graph, struct tarn_list list, uint32_t storage)
{
    for (size_t k = 0; k < list.count; k++) {
        if (graph->tensors[list.ids[k]].storage == storage) return true;
    }
    return false;
}

/* Where outputs lie on inputs, does the implementation read these inputs? */
static bool may_choose(const struct tarn_graph *graph, uint32_t v, uint32_t i)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    return tarn_in_place_may_run(graph, op, inputs_of(op, i), outputs_of(op, i));
}

bool tarn_op_always_reads(const struct tarn_graph *graph, uint32_t v, uint32_t storage,
                          uint32_t tensor)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t i = 0; i < tarn_extra(op)->implementations_count; i++)
        if (may_choose(graph, v, i) && has_storage(graph, outputs_of(op, i), storage) &&
            !tarn_list_has(inputs_of(op, i), tensor))
            return false;
    return tarn_list_has(own_inputs(op), tensor);
}

/* The first implementation of the same form as i: TARN_NONE for the form as written. */
static uint32_t first_of_form(const struct tarn_graph_op *op, uint32_t i)
{
    struct tarn_list inputs = inputs_of(op, i), outputs = outputs_of(op, i);
    if (same_list(inputs, own_inputs(op)) &&
        same_list(outputs, (struct tarn_list){tarn_outputs(op), op->outputs_count}))
        return TARN_NONE;
    for (uint32_t j = 0; j < i; j++) {
        if (same_list(inputs, inputs_of(op, j)) && same_list(outputs, outputs_of(op, j))) return j;
    }
    return i;
}

uint32_t tarn_version_read(const struct tarn_recompute_model *model, uint32_t v, uint32_t tensor)
{
    const struct tarn_graph *graph = model->graph;
    const struct tarn_form *own = &model->forms[model->op_forms[v].begin];
    uint32_t storage = graph->tensors[tensor].storage;
    if (!tarn_list_has(own_inputs(&graph->ops[v]), tensor) || tarn_storage_is_empty(graph, storage))
        return model->tensor_version[tensor];
    for (uint32_t i = own->reads.begin; i < own->reads.end; i++)
        if (model->versions[model->reads[i]].storage == storage) return model->reads[i];
    return TARN_NONE;
}

static void add_input(struct tarn_reading *reading, const struct tarn_form *own,
                      struct tarn_form *form, uint32_t tensor)
{
    const struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph *graph = reading->graph;
    uint32_t storage = graph->tensors[tensor].storage;
    if (graph->storages[storage].persistent) {
        uint32_t updates = reading->updates[storage];
        for (uint32_t i = own->states.begin; i < own->states.end; i++) {
            if (model->states[i].storage == storage) updates = model->states[i].updates;
        }
        tarn_form_state(reading, storage, updates);
        return;
    }
    tarn_form_read(reading, form, tarn_version_read(model, own->op, tensor));
}

/* Does a persistent tensor still hold what its producer left? */
static bool is_as_left(const struct tarn_reading *reading, uint32_t tensor)
{
    const struct tarn_graph_tensor *record = &reading->graph->tensors[tensor];
    if (reading->named[tensor] == TARN_NONE) return false;
    for (uint32_t k = 0; k < record->parts_count; k++)
        if (reading->written[record->part + k] > reading->named[tensor]) return false;
    return true;
}

/* Is `version` overwritten on the way to `later`, by ops some of which cannot write elsewhere? */
static bool is_lost(const struct tarn_recompute_model *model, uint32_t version, uint32_t later)
{
    bool forced = false;
    while (later != TARN_NONE && later != version) {
        forced |= model->versions[later].forced;
        later = model->versions[later].previous;
    }
    return forced && later == version;
}

/* Is no input lost when another one is made? Both would have to be made again. */
static bool has_all_at_once(const struct tarn_reading *reading, uint32_t v, struct tarn_list inputs)
{
    const struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph_tensor *tensors = reading->graph->tensors;
    for (size_t a = 0; a < inputs.count; a++) {
        for (size_t b = 0; b < inputs.count; b++) {
            if (tensors[inputs.ids[a]].storage != tensors[inputs.ids[b]].storage) continue;
            uint32_t version = tarn_version_read(model, v, inputs.ids[a]);
            uint32_t other = tarn_version_read(model, v, inputs.ids[b]);
            if (version != TARN_NONE && is_lost(model, version, other)) return false;
        }
    }
    return true;
}

/* Are all inputs of the implementation there when the op runs? An op that comes later in the list
 * may make one, or an earlier one may have written over it where it persists: then the
 * implementation cannot be chosen in this order. */
static bool has_inputs(const struct tarn_reading *reading, uint32_t v, uint32_t i)
{
    const struct tarn_graph *graph = reading->graph;
    struct tarn_list inputs = inputs_of(&graph->ops[v], i), own = own_inputs(&graph->ops[v]);
    for (size_t k = 0; k < inputs.count; k++) {
        uint32_t t = inputs.ids[k];
        bool is_there = graph->storages[graph->tensors[t].storage].persistent
                            ? tarn_list_has(own, t) || is_as_left(reading, t)
                            : reading->model->tensor_version[t] != TARN_NONE;
        if (!is_there) return false;
    }
    return has_all_at_once(reading, v, inputs);
}

static void add_form(struct tarn_reading *reading, uint32_t v, uint32_t i)
{
    struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph_op *op = &reading->graph->ops[v];
    const struct tarn_form *own = &model->forms[model->op_forms[v].begin];
    struct tarn_form *form = &model->forms[model->forms_count++];
    struct tarn_list inputs = inputs_of(op, i), outputs = outputs_of(op, i);
    tarn_form_begin(reading, form, v);
    form->whole = tarn_extra(op)->implementations[i].outputs.count == 0;
    form->repeats = tarn_form_repeats(reading, v, i);
    for (size_t k = 0; k < inputs.count; k++) add_input(reading, own, form, inputs.ids[k]);
    for (size_t k = 0; k < outputs.count; k++) {
        uint32_t version = model->tensor_version[outputs.ids[k]];
        if (version == TARN_NONE) continue; /* persistent */
        model->writes[reading->writes_count++] = version;
        if (model->versions[version].previous != TARN_NONE)
            tarn_form_read(reading, form, model->versions[version].previous);
    }
    tarn_form_end(reading, form);
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
static void sort_choices(struct tarn_reading *reading, struct tarn_form *form)
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

uint64_t tarn_form_workspace(const struct tarn_recompute_model *model, const struct tarn_form *form,
                             uint64_t workspace, bool workspace_first)
{
    uint64_t bytes;
    if (tarn_extra(&model->graph->ops[form->op])->workspace_space != 0) return 0; /* not budgeted */
    if (!tarn_size_round_up(workspace, model->alignment, &bytes)) return UINT64_MAX;
    for (uint32_t i = form->writes.begin; workspace_first && i < form->writes.end; i++) {
        const struct tarn_version *made = &model->versions[model->writes[i]];
        uint64_t size = made->size > made->copy_size ? made->size : made->copy_size;
        if (made->previous == TARN_NONE) bytes = bytes > size ? bytes - size : 0;
    }
    return bytes;
}

static uint64_t beside_outputs(struct tarn_reading *reading, const struct tarn_form *form,
                               uint64_t workspace, bool workspace_first)
{
    uint64_t bytes = tarn_form_workspace(reading->model, form, workspace, workspace_first);
    if (bytes == UINT64_MAX) reading->overflow = true;
    return bytes;
}

static void add_choices(struct tarn_reading *reading, struct tarn_form *form, uint32_t first)
{
    struct tarn_choice *choices = reading->model->choices;
    const struct tarn_graph_op *op = &reading->graph->ops[form->op];
    const struct tarn_op_extra *extra = tarn_extra(op);
    form->choices.begin = reading->choices_count;
    if (first == TARN_NONE)
        choices[reading->choices_count++] = (struct tarn_choice){
            TARN_NONE, op->cost,
            beside_outputs(reading, form, extra->workspace, op->workspace_first)};
    for (uint32_t i = 0; i < extra->implementations_count; i++) {
        if (first_of_form(op, i) != first) continue;
        const struct tarn_implementation *implementation = &extra->implementations[i];
        choices[reading->choices_count++] =
            (struct tarn_choice){i, implementation->cost,
                                 beside_outputs(reading, form, implementation->workspace,
                                                implementation->workspace_first)};
    }
    sort_choices(reading, form);
}

static bool updates_state(const struct tarn_graph *graph, uint32_t v)
{
    for (uint32_t k = 0; k < graph->ops[v].outputs_count; k++) {
        uint32_t storage = graph->tensors[tarn_outputs(&graph->ops[v])[k]].storage;
        if (graph->storages[storage].persistent) return true;
    }
    return false;
}

/* Do the parts among an op's forms make up the whole? */
static void mark_splits(struct tarn_reading *reading, struct tarn_range range)
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

/* ---- All of an op ---- */

void tarn_reading_forms(struct tarn_reading *reading, uint32_t v)
{
    struct tarn_recompute_model *model = reading->model;
    const struct tarn_graph_op *op = &reading->graph->ops[v];
    uint32_t begin = model->op_forms[v].begin;
    add_choices(reading, &model->forms[begin], TARN_NONE);
    for (uint32_t i = 0; i < tarn_extra(op)->implementations_count; i++) {
        if (first_of_form(op, i) != i || !has_inputs(reading, v, i) ||
            !may_choose(reading->graph, v, i))
            continue;
        add_form(reading, v, i);
        add_choices(reading, &model->forms[model->forms_count - 1], i);
    }
    mark_splits(reading, (struct tarn_range){begin, model->forms_count});
}
