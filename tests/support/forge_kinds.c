/* Every field of every record of a graph, damaged. */
#include <stdlib.h>
#include <string.h>

#include "forge.h"

/* ---- Drawing ---- */

static void *copy_of(struct forgery *f, const void *from, size_t count, size_t size)
{
    void *to = tarn_region_take(&f->region, count + 1, size);
    if (!to) abort();
    if (count > 0) memcpy(to, from, count * size);
    return to;
}

/* A list that can be changed, with room for one more. */
static uint32_t *own(struct forgery *f, struct tarn_list *list)
{
    uint32_t *ids = copy_of(f, list->ids, list->count, sizeof *ids);
    list->ids = ids;
    return ids;
}

static struct tarn_op_info *draw_op(struct forgery *f, struct random_source *source)
{
    if (f->ops_count == 0) return NULL;
    f->touched = random_below(source, f->ops_count);
    return &f->ops[f->touched];
}

static bool has_any(const struct tarn_op_info *op) { return op != NULL; }
static bool has_control(const struct tarn_op_info *op) { return op->control.count > 0; }
static bool has_inputs(const struct tarn_op_info *op) { return op->inputs.count > 0; }
static bool has_outputs(const struct tarn_op_info *op) { return op->outputs.count > 1; }
static bool has_workspace(const struct tarn_op_info *op) { return op->workspace > 0; }
static bool has_inplace(const struct tarn_op_info *op) { return op->inplace_count > 0; }
static bool has_common(const struct tarn_op_info *op) { return op->common.count > 0; }
static bool has_choice(const struct tarn_op_info *op) { return op->implementations_count > 0; }

/* The first one from a random op on that has it; NULL: none. */
static struct tarn_op_info *find_op(struct forgery *f, struct random_source *source,
                                    bool (*has)(const struct tarn_op_info *op))
{
    struct tarn_op_info *drawn = draw_op(f, source);
    for (uint32_t i = 0; drawn && i < f->ops_count; i++) {
        uint32_t v = (f->touched + i) % f->ops_count;
        if (!has(&f->ops[v])) continue;
        f->touched = v;
        return &f->ops[v];
    }
    return NULL;
}

static struct tarn_tensor_info *draw_tensor(struct forgery *f, struct random_source *source)
{
    if (f->tensors_count == 0) return NULL;
    f->touched = random_below(source, f->tensors_count);
    return &f->tensors[f->touched];
}

/* ---- Ops ---- */

static bool op_name(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_any);
    if (!op) return false;
    uint32_t other = random_below(source, f->ops_count);
    op->name = strcmp(op->name, f->ops[other].name) != 0 ? f->ops[other].name : "another";
    return true;
}

static bool op_kind(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_any);
    if (op) op->kind = strcmp(op->kind, "dropout") == 0 ? "relu" : "dropout";
    return op;
}

static bool op_class(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_any);
    if (op) op->op_class = (op->op_class + 1 + random_below(source, 5)) % 6;
    return op;
}

static bool op_stream(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_any);
    if (!op || f->streams_count < 2) return false;
    op->stream = (op->stream + 1 + random_below(source, f->streams_count - 1)) % f->streams_count;
    return true;
}

/* Where ops may have been assigned, and copies. */
static bool may_move(const struct forgery *f, const struct tarn_graph *final)
{
    bool is_assigned =
        f->streams_count > 0 &&
        (strcmp(f->streams[0], "compute0") == 0 || strcmp(f->streams[0], "chain0") == 0 ||
         strcmp(f->streams[0], "communication") == 0 || strcmp(f->streams[0], "copy") == 0);
    const struct tarn_list *outputs = &f->ops[f->touched].outputs;
    (void) final;
    return is_assigned || (outputs->count > 0 && outputs->ids[0] >= f->source->tensors_count);
}

static bool op_input(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_inputs);
    if (!op) return false;
    uint32_t k = random_below(source, (uint32_t)op->inputs.count);
    uint32_t *ids = own(f, &op->inputs), first = random_below(source, f->tensors_count);
    for (uint32_t i = 0; i < f->tensors_count; i++) {
        uint32_t t = (first + i) % f->tensors_count;
        if (t == ids[k] || f->tensors[t].space != f->tensors[ids[k]].space) continue;
        ids[k] = t;
        return true;
    }
    return false;
}

/* Another name of the same bytes. */
static bool op_input_name(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_inputs);
    if (!op) return false;
    uint32_t k = random_below(source, (uint32_t)op->inputs.count);
    uint32_t *ids = own(f, &op->inputs), first = random_below(source, f->tensors_count);
    for (uint32_t i = 0; i < f->tensors_count; i++) {
        uint32_t t = (first + i) % f->tensors_count;
        if (t == ids[k] || f->root[t] != f->root[ids[k]]) continue;
        ids[k] = t;
        return true;
    }
    return false;
}

/* A tensor by which the content was written is a name as good as that of the source graph. */
static bool is_name_of_content(const struct forgery *f, const struct tarn_graph *final)
{
    const struct tarn_op_info *op = &f->ops[f->touched];
    for (size_t k = 0; k < op->inputs.count; k++) {
        uint32_t t = op->inputs.ids[k];
        if (t == final->ops[f->touched].inputs[k]) continue;
        uint32_t producer = final->tensors[t].producer;
        if (producer == TARN_NONE || final->ops[producer].view) return false;
    }
    return true;
}

static bool op_outputs(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_outputs);
    if (!op) return false;
    uint32_t *ids = own(f, &op->outputs), first = ids[0];
    memmove(ids, ids + 1, (op->outputs.count - 1) * sizeof *ids);
    ids[op->outputs.count - 1] = first;
    return true;
}

static bool op_fewer_inputs(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_inputs);
    if (op) op->inputs.count--;
    return op;
}

static bool op_control_dropped(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_control);
    if (!op) return false;
    uint32_t *ids = own(f, &op->control);
    uint32_t k = random_below(source, (uint32_t)op->control.count);
    memmove(ids + k, ids + k + 1, (op->control.count - k - 1) * sizeof *ids);
    op->control.count--;
    return true;
}

static bool has_id(struct tarn_list list, uint32_t id)
{
    for (size_t k = 0; k < list.count; k++)
        if (list.ids[k] == id) return true;
    return false;
}

/* What a transform has added may go, as long as the program is safe; what the source graph has must
 * stay, unless it is there twice. */
static bool is_added_arc(const struct forgery *f, const struct tarn_graph *final)
{
    const struct tarn_op_info *op = &f->ops[f->touched];
    const struct tarn_graph_op *was = &final->ops[f->touched];
    const struct tarn_op_extra *extra = tarn_extra(was);
    uint32_t origin = f->op_origin[f->touched];
    bool is_copy = was->outputs_count > 0 && tarn_outputs(was)[0] >= f->source->tensors_count;
    for (uint32_t k = 0; k < extra->control_count && !is_copy; k++) {
        uint32_t u = extra->control[k];
        bool is_primary = final->ops[u].outputs_count == 0 ||
                          tarn_outputs(&final->ops[u])[0] < f->source->tensors_count;
        const struct tarn_op_extra *demand = tarn_extra(&f->source->ops[origin]);
        struct tarn_list demanded = {demand->control, demand->control_count};
        if (!has_id(op->control, u) && is_primary && has_id(demanded, final->ops[u].origin))
            return false;
    }
    return true;
}

static bool op_control_added(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_any);
    if (!op) return false;
    uint32_t u = random_below(source, f->ops_count);
    if (u == f->touched) return false;
    own(f, &op->control)[op->control.count++] = u;
    return true;
}

/* The program keeps it, or the verifier would have refused: running says so. */
static bool is_kept(const struct forgery *f, const struct tarn_graph *final)
{
    (void)f;
    (void) final;
    return true;
}

static bool op_workspace(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, random_below(source, 2) ? has_workspace : has_any);
    if (!op || op->view) return false;
    op->workspace =
        op->workspace > 1 && random_below(source, 2) ? op->workspace - 1 : op->workspace + 1;
    return true;
}

static bool op_workspace_first(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_workspace);
    if (op) op->workspace_first = !op->workspace_first;
    return op;
}

static bool op_workspace_space(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_workspace);
    if (!op || f->spaces_count < 2) return false;
    op->workspace_space = (op->workspace_space + 1) % f->spaces_count;
    return true;
}

static bool op_cost(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_any);
    if (op) op->cost += 1 + random_below(source, 1000);
    return op;
}

static bool op_flops(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_any);
    if (op) op->flops += 1;
    return op;
}

static bool op_view(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_any);
    if (op) op->view = !op->view;
    return op;
}

static bool op_inplace_dropped(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_inplace);
    if (op) op->inplace_count = 0;
    return op;
}

static bool op_inplace_added(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_inputs);
    if (!op || op->view || op->outputs.count == 0) return false;
    uint32_t(*pairs)[2] = copy_of(f, op->inplace, op->inplace_count, sizeof *pairs);
    uint32_t *pair = pairs[op->inplace_count++];
    pair[0] = op->inputs.ids[random_below(source, (uint32_t)op->inputs.count)];
    pair[1] = op->outputs.ids[random_below(source, (uint32_t)op->outputs.count)];
    op->inplace = (const uint32_t(*)[2])pairs;
    return true;
}

/* Recomputing has left them out; they may be back. */
static bool is_source_pair(const struct forgery *f, const struct tarn_graph *final)
{
    const struct tarn_op_info *op = &f->ops[f->touched];
    const struct tarn_op_extra *extra = tarn_extra(&f->source->ops[f->op_origin[f->touched]]);
    (void) final;
    return op->inplace_count == extra->inplace_count &&
           memcmp(op->inplace, extra->inplace, op->inplace_count * sizeof *op->inplace) == 0;
}

static bool op_recomputable(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_any);
    if (op) op->recomputable = (op->recomputable + 1 + random_below(source, 2)) % 3;
    return op;
}

static bool op_origin(struct forgery *f, struct random_source *source)
{
    if (!draw_op(f, source) || f->source->ops_count < 2) return false;
    uint32_t *origin = &f->op_origin[f->touched];
    *origin = (*origin + 1 + random_below(source, f->source->ops_count - 1)) % f->source->ops_count;
    return true;
}

static bool op_implementation(struct forgery *f, struct random_source *source)
{
    if (!draw_op(f, source)) return false;
    uint32_t *implementation = &f->implementation[f->touched];
    *implementation = *implementation == TARN_NONE ? random_below(source, 2) : TARN_NONE;
    return true;
}

static bool op_common(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_common);
    if (!op) return false;
    uint32_t *ids = own(f, &op->common);
    uint32_t k = random_below(source, (uint32_t)op->common.count), was = ids[k];
    ids[k] = random_below(source, f->source->tensors_count);
    if (random_below(source, 2)) op->common.count--;
    return ids[k] != was;
}

/* Ids behind it move along. */
static bool op_order(struct forgery *f, struct random_source *source)
{
    if (f->ops_count < 2) return false;
    uint32_t v = random_below(source, f->ops_count - 1);
    struct tarn_op_info op = f->ops[v];
    uint32_t origin = f->op_origin[v], implementation = f->implementation[v];
    f->touched = v;
    f->ops[v] = f->ops[v + 1];
    f->op_origin[v] = f->op_origin[v + 1];
    f->implementation[v] = f->implementation[v + 1];
    f->ops[v + 1] = op;
    f->op_origin[v + 1] = origin;
    f->implementation[v + 1] = implementation;
    for (uint32_t u = 0; u < f->ops_count; u++) {
        uint32_t *ids = own(f, &f->ops[u].control);
        for (size_t k = 0; k < f->ops[u].control.count; k++)
            ids[k] = ids[k] == v ? v + 1 : ids[k] == v + 1 ? v : ids[k];
    }
    return true;
}

/* ---- Implementations of an op ---- */

static struct tarn_implementation *draw_choice(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_choice);
    if (!op) return NULL;
    struct tarn_implementation *copy =
        copy_of(f, op->implementations, op->implementations_count, sizeof *copy);
    op->implementations = copy;
    return &copy[random_below(source, (uint32_t)op->implementations_count)];
}

static bool choice_dropped(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_choice);
    if (op) op->implementations_count--;
    return op;
}

static bool choice_name(struct forgery *f, struct random_source *source)
{
    struct tarn_implementation *choice = draw_choice(f, source);
    if (choice) choice->name = "another";
    return choice;
}

static bool choice_cost(struct forgery *f, struct random_source *source)
{
    struct tarn_implementation *choice = draw_choice(f, source);
    if (choice) choice->cost++;
    return choice;
}

static bool choice_workspace(struct forgery *f, struct random_source *source)
{
    struct tarn_implementation *choice = draw_choice(f, source);
    if (choice) choice->workspace++;
    return choice;
}

static bool choice_workspace_first(struct forgery *f, struct random_source *source)
{
    struct tarn_implementation *choice = draw_choice(f, source);
    if (!choice || choice->workspace == 0) return false;
    choice->workspace_first = !choice->workspace_first;
    return true;
}

static bool choice_inputs(struct forgery *f, struct random_source *source)
{
    struct tarn_implementation *choice = draw_choice(f, source);
    if (!choice) return false;
    const struct tarn_op_info *op = &f->ops[f->touched];
    if (choice->inputs.count > 0)
        choice->inputs.count--;
    else
        choice->inputs = (struct tarn_list){op->inputs.ids, op->inputs.count};
    return true;
}

static bool choice_outputs(struct forgery *f, struct random_source *source)
{
    struct tarn_implementation *choice = draw_choice(f, source);
    if (!choice) return false;
    const struct tarn_op_info *op = &f->ops[f->touched];
    choice->outputs = choice->outputs.count > 0
                          ? (struct tarn_list){NULL, 0}
                          : (struct tarn_list){op->outputs.ids, op->outputs.count};
    return op->outputs.count > 0;
}

/* ---- Tensors ---- */

static bool tensor_name(struct forgery *f, struct random_source *source)
{
    struct tarn_tensor_info *tensor = draw_tensor(f, source);
    if (!tensor) return false;
    uint32_t other = random_below(source, f->tensors_count);
    tensor->name =
        strcmp(tensor->name, f->tensors[other].name) != 0 ? f->tensors[other].name : "another";
    return true;
}

/* As K of the attacks. */
static bool tensor_names_swapped(struct forgery *f, struct random_source *source)
{
    struct tarn_tensor_info *tensor = draw_tensor(f, source), *other = draw_tensor(f, source);
    if (!tensor || strcmp(tensor->name, other->name) == 0) return false;
    const char *name = tensor->name;
    tensor->name = other->name;
    other->name = name;
    return true;
}

/* With all that share the storage, which must agree. */
static void set_storage(struct forgery *f, uint32_t root, const struct tarn_tensor_info *info)
{
    for (uint32_t t = 0; t < f->tensors_count; t++) {
        if (f->root[t] != root) continue;
        f->tensors[t].size = info->size;
        f->tensors[t].kind = info->kind;
        f->tensors[t].space = info->space;
    }
}

static bool tensor_size(struct forgery *f, struct random_source *source)
{
    struct tarn_tensor_info *tensor = draw_tensor(f, source);
    if (!tensor) return false;
    struct tarn_tensor_info info = *tensor;
    info.size += info.size > 1 && random_below(source, 2) ? UINT64_MAX : 1;
    set_storage(f, f->root[f->touched], &info);
    return true;
}

static bool tensor_kind(struct forgery *f, struct random_source *source)
{
    struct tarn_tensor_info *tensor = draw_tensor(f, source);
    if (!tensor) return false;
    struct tarn_tensor_info info = *tensor;
    info.kind = (info.kind + 1 + random_below(source, 5)) % 6;
    set_storage(f, f->root[f->touched], &info);
    return true;
}

static bool may_be_merged(const struct forgery *f)
{
    for (uint32_t v = 0; v < f->source->ops_count; v++)
        if (tarn_extra(&f->source->ops[v])->inplace_count > 0) return true;
    return false;
}

/* Among those that pairs may merge, a later transform parts storages again and leaves what they
 * were together: a gradient or not, and as aligned. */
static bool is_safer(const struct forgery *f, const struct tarn_graph *final)
{
    const struct tarn_tensor_info *tensor = &f->tensors[f->root[f->touched]];
    const struct tarn_graph_tensor *was = &final->tensors[f->root[f->touched]];
    return !tarn_kind_is_persistent(tensor->kind) && may_be_merged(f) &&
           (was->kind == TARN_OUTPUT) == (tensor->kind == TARN_OUTPUT) &&
           (was->kind == tensor->kind || f->root[f->touched] < f->source->tensors_count);
}

static bool tensor_space(struct forgery *f, struct random_source *source)
{
    struct tarn_tensor_info *tensor = draw_tensor(f, source);
    if (!tensor || f->spaces_count < 2) return false;
    struct tarn_tensor_info info = *tensor;
    info.space = (info.space + 1) % f->spaces_count;
    set_storage(f, f->root[f->touched], &info);
    return true;
}

static bool tensor_alignment(struct forgery *f, struct random_source *source)
{
    if (!draw_tensor(f, source)) return false;
    struct tarn_tensor_info *root = &f->tensors[f->root[f->touched]];
    uint64_t was = root->alignment;
    root->alignment =
        was > 0 && random_below(source, 2) ? 0 : UINT64_C(1) << random_below(source, 9);
    return root->alignment != was;
}

/* Another tensor comes to lie over one of its size. */
static bool tensor_merged(struct forgery *f, struct random_source *source)
{
    if (!draw_tensor(f, source)) return false;
    uint32_t from = f->root[f->touched], first = random_below(source, f->tensors_count);
    for (uint32_t i = 0; i < f->tensors_count; i++) {
        uint32_t to = (first + i) % f->tensors_count;
        if (f->root[to] != to || to == from || f->tensors[to].size != f->tensors[from].size)
            continue;
        for (uint32_t t = 0; t < f->tensors_count; t++) {
            if (f->root[t] != from) continue;
            f->root[t] = to;
            f->tensors[t].alignment = 0;
        }
        set_storage(f, to, &f->tensors[to]);
        f->touched = from;
        return true;
    }
    return false;
}

/* An output over an input, as N of the attacks. */
static bool tensor_over_input(struct forgery *f, struct random_source *source)
{
    struct tarn_op_info *op = find_op(f, source, has_inputs);
    if (!op || op->view || op->outputs.count == 0) return false;
    uint32_t out = op->outputs.ids[random_below(source, (uint32_t)op->outputs.count)];
    uint32_t in = op->inputs.ids[random_below(source, (uint32_t)op->inputs.count)];
    uint32_t from = f->root[out], to = f->root[in];
    if (from == to || f->tensors[from].size != f->tensors[to].size) return false;
    struct tarn_tensor_info info = f->tensors[to];
    if (f->tensors[from].kind == TARN_OUTPUT) info.kind = TARN_OUTPUT;
    if (f->tensors[from].alignment > f->tensors[to].alignment)
        f->tensors[to].alignment = f->tensors[from].alignment;
    for (uint32_t t = 0; t < f->tensors_count; t++) {
        if (f->root[t] != from) continue;
        f->root[t] = to;
        f->tensors[t].alignment = 0;
    }
    set_storage(f, to, &info);
    f->touched = out;
    return true;
}

/* Some pair of that output's op allows it, or the source graph has both in one storage, which a
 * transform parted; kinds are not allowed where this is asked. */
static bool is_pair(const struct forgery *f, const struct tarn_graph *final)
{
    (void) final;
    uint32_t out = f->tensor_origin[f->touched], over = f->tensor_origin[f->root[f->touched]];
    if (f->source->tensors[out].root == f->source->tensors[over].root) return true;
    uint32_t producer = f->source->tensors[out].producer;
    const struct tarn_op_extra *extra = tarn_extra(&f->source->ops[producer]);
    for (uint32_t k = 0; k < extra->inplace_count; k++)
        if (extra->inplace[k][1] == out) return true;
    return false;
}

static bool tensor_parted(struct forgery *f, struct random_source *source)
{
    if (!draw_tensor(f, source) || f->root[f->touched] == f->touched) return false;
    f->root[f->touched] = f->touched;
    return true;
}

/* What is planned may be written elsewhere than over what it was written over. */
static bool is_planned(const struct forgery *f, const struct tarn_graph *final)
{
    return !tarn_kind_is_persistent(final->tensors[f->touched].kind);
}

static bool tensor_origin(struct forgery *f, struct random_source *source)
{
    if (!draw_tensor(f, source) || f->source->tensors_count < 2) return false;
    uint32_t *origin = &f->tensor_origin[f->touched];
    *origin = (*origin + 1 + random_below(source, f->source->tensors_count - 1)) %
              f->source->tensors_count;
    return true;
}

static bool tensor_added(struct forgery *f, struct random_source *source)
{
    uint32_t t = f->tensors_count;
    if (f->source->tensors_count == 0) return false;
    f->tensor_origin[t] = random_below(source, f->source->tensors_count);
    tarn_graph_tensor(f->source, f->tensor_origin[t], &f->tensors[t]);
    f->tensors[t].kind = TARN_PARAMETER;
    f->root[t] = t;
    f->tensors_count++;
    return true;
}

/* ---- Streams, spaces and groups ---- */

static bool stream_name(struct forgery *f, struct random_source *source)
{
    f->streams[random_below(source, f->streams_count)] = "another";
    return true;
}

static bool stream_names_swapped(struct forgery *f, struct random_source *source)
{
    if (f->streams_count < 2) return false;
    uint32_t s = random_below(source, f->streams_count - 1);
    const char *name = f->streams[s];
    f->streams[s] = f->streams[s + 1];
    f->streams[s + 1] = name;
    return strcmp(name, f->streams[s]) != 0;
}

static bool stream_added(struct forgery *f, struct random_source *source)
{
    (void)source;
    f->streams[f->streams_count++] = "another";
    return true;
}

static struct tarn_space_info *draw_space(struct forgery *f, struct random_source *source)
{
    return f->spaces_count > 0 ? &f->spaces[random_below(source, f->spaces_count)] : NULL;
}

static bool space_name(struct forgery *f, struct random_source *source)
{
    struct tarn_space_info *space = draw_space(f, source);
    if (space) space->name = "another";
    return space;
}

static bool space_kind(struct forgery *f, struct random_source *source)
{
    struct tarn_space_info *space = draw_space(f, source);
    if (space) space->kind = (space->kind + 1 + random_below(source, 2)) % 3;
    return space;
}

static bool space_alignment(struct forgery *f, struct random_source *source)
{
    struct tarn_space_info *space = draw_space(f, source);
    if (space) space->alignment = space->alignment == 64 ? 32 : 64;
    return space;
}

static bool space_capacity(struct forgery *f, struct random_source *source)
{
    struct tarn_space_info *space = draw_space(f, source);
    if (space) space->capacity = space->capacity > 0 ? 0 : UINT64_C(1) << 40;
    return space;
}

static bool space_added(struct forgery *f, struct random_source *source)
{
    (void)source;
    if (f->spaces_count == TARN_SPACES_MAX) return false;
    f->spaces[f->spaces_count++] = (struct tarn_space_info){.name = "another"};
    return true;
}

static bool group_dropped(struct forgery *f, struct random_source *source)
{
    if (f->groups_count == 0) return false;
    uint32_t g = random_below(source, f->groups_count), last = --f->groups_count;
    f->groups[g] = f->groups[last];
    f->padded[g] = f->padded[last];
    f->offsets[g] = f->offsets[last];
    f->symmetric[g] = f->symmetric[last];
    return true;
}

static bool group_added(struct forgery *f, struct random_source *source)
{
    if (!draw_tensor(f, source) || f->root[f->touched] != f->touched) return false;
    struct tarn_list one = {&f->touched, 1};
    own(f, &one);
    f->padded[f->groups_count] = false;
    f->offsets[f->groups_count] = NULL;
    f->symmetric[f->groups_count] = NULL;
    f->groups[f->groups_count++] = one;
    return true;
}

static bool group_members_swapped(struct forgery *f, struct random_source *source)
{
    if (f->groups_count == 0) return false;
    struct tarn_list *group = &f->groups[random_below(source, f->groups_count)];
    if (group->count < 2) return false;
    uint32_t *ids = own(f, group), k = random_below(source, (uint32_t)group->count - 1);
    uint32_t id = ids[k];
    ids[k] = ids[k + 1];
    ids[k + 1] = id;
    uint64_t alignment = f->tensors[ids[k + 1]].alignment;
    f->tensors[ids[k + 1]].alignment = f->tensors[ids[k]].alignment;
    f->tensors[ids[k]].alignment = alignment;
    return true;
}

static bool group_cut(struct forgery *f, struct random_source *source)
{
    if (f->groups_count == 0) return false;
    struct tarn_list *group = &f->groups[random_below(source, f->groups_count)];
    if (group->count < 2) return false;
    group->count--;
    return true;
}

static bool group_padded(struct forgery *f, struct random_source *source)
{
    if (f->groups_count == 0) return false;
    uint32_t g = random_below(source, f->groups_count);
    f->padded[g] = !f->padded[g];
    return true;
}

/* Says where the members lie, which is where they lay, or else moves one. */
static bool group_offsets(struct forgery *f, struct random_source *source)
{
    if (f->groups_count == 0) return false;
    uint32_t g = random_below(source, f->groups_count);
    size_t count = f->groups[g].count, moved = random_below(source, (uint32_t)count);
    uint64_t *offsets = tarn_region_take(&f->region, count + 1, sizeof *offsets), at = 0;
    if (!offsets) abort();
    for (size_t i = 0; i < count; i++) {
        offsets[i] = f->offsets[g] ? f->offsets[g][i] : at;
        at += f->tensors[f->groups[g].ids[i]].size;
    }
    if (f->offsets[g] || random_percent(source, 50)) offsets[moved] += 512;
    f->offsets[g] = offsets;
    return true;
}

/* Named otherwise, or not symmetric any more; only a group that collectives touch can become it. */
static bool group_symmetric(struct forgery *f, struct random_source *source)
{
    if (f->groups_count == 0) return false;
    uint32_t g = random_below(source, f->groups_count);
    bool is_dropped = f->symmetric[g] && random_percent(source, 50);
    f->symmetric[g] = is_dropped ? NULL : "another";
    return true;
}

/* ---- All kinds ---- */

static const struct forgery_kind kinds[] = {
    {"name of an op", FORGERY_REFUSED, op_name, NULL},
    {"kind of an op", FORGERY_REFUSED, op_kind, NULL},
    {"class of an op", FORGERY_REFUSED, op_class, NULL},
    {"stream of an op", FORGERY_EQUAL, op_stream, may_move},
    {"input of an op", FORGERY_EQUAL, op_input, is_name_of_content},
    {"name of an input", FORGERY_EQUAL, op_input_name, is_name_of_content},
    {"fewer inputs", FORGERY_REFUSED, op_fewer_inputs, NULL},
    {"outputs in another order", FORGERY_REFUSED, op_outputs, NULL},
    {"control arc dropped", FORGERY_EQUAL, op_control_dropped, is_added_arc},
    {"control arc added", FORGERY_EQUAL, op_control_added, is_kept},
    {"workspace", FORGERY_REFUSED, op_workspace, NULL},
    {"workspace_first", FORGERY_REFUSED, op_workspace_first, NULL},
    {"workspace_space", FORGERY_REFUSED, op_workspace_space, NULL},
    {"cost", FORGERY_REFUSED, op_cost, NULL},
    {"flops", FORGERY_REFUSED, op_flops, NULL},
    {"view", FORGERY_REFUSED, op_view, NULL},
    {"inplace dropped", FORGERY_EQUAL, op_inplace_dropped, is_kept},
    {"inplace added", FORGERY_EQUAL, op_inplace_added, is_source_pair},
    {"recomputable", FORGERY_REFUSED, op_recomputable, NULL},
    {"origin of an op", FORGERY_REFUSED, op_origin, NULL},
    {"implementation", FORGERY_REFUSED, op_implementation, NULL},
    {"common", FORGERY_REFUSED, op_common, NULL},
    {"order of ops", FORGERY_EQUAL, op_order, is_kept},
    {"implementation dropped", FORGERY_REFUSED, choice_dropped, NULL},
    {"name of an implementation", FORGERY_REFUSED, choice_name, NULL},
    {"cost of an implementation", FORGERY_REFUSED, choice_cost, NULL},
    {"workspace of an implementation", FORGERY_REFUSED, choice_workspace, NULL},
    {"workspace_first of an implementation", FORGERY_REFUSED, choice_workspace_first, NULL},
    {"inputs of an implementation", FORGERY_REFUSED, choice_inputs, NULL},
    {"outputs of an implementation", FORGERY_REFUSED, choice_outputs, NULL},
    {"name of a tensor", FORGERY_REFUSED, tensor_name, NULL},
    {"names of tensors swapped", FORGERY_REFUSED, tensor_names_swapped, NULL},
    {"size of a tensor", FORGERY_REFUSED, tensor_size, NULL},
    {"kind of a tensor", FORGERY_EQUAL, tensor_kind, is_safer},
    {"space of a tensor", FORGERY_REFUSED, tensor_space, NULL},
    {"alignment of a tensor", FORGERY_EQUAL, tensor_alignment, is_safer},
    {"storages merged", FORGERY_EQUAL, tensor_merged, is_pair},
    {"output over an input", FORGERY_EQUAL, tensor_over_input, is_pair},
    {"storage parted", FORGERY_EQUAL, tensor_parted, is_planned},
    {"origin of a tensor", FORGERY_REFUSED, tensor_origin, NULL},
    {"persistent tensor added", FORGERY_REFUSED, tensor_added, NULL},
    {"name of a stream", FORGERY_REFUSED, stream_name, NULL},
    {"names of streams swapped", FORGERY_REFUSED, stream_names_swapped, NULL},
    {"stream added", FORGERY_REFUSED, stream_added, NULL},
    {"name of a space", FORGERY_REFUSED, space_name, NULL},
    {"kind of a space", FORGERY_REFUSED, space_kind, NULL},
    {"alignment of a space", FORGERY_REFUSED, space_alignment, NULL},
    {"capacity of a space", FORGERY_REFUSED, space_capacity, NULL},
    {"space added", FORGERY_REFUSED, space_added, NULL},
    {"group dropped", FORGERY_REFUSED, group_dropped, NULL},
    {"group added", FORGERY_REFUSED, group_added, NULL},
    {"members of a group swapped", FORGERY_REFUSED, group_members_swapped, NULL},
    {"member of a group left out", FORGERY_REFUSED, group_cut, NULL},
    {"padding of a group", FORGERY_REFUSED, group_padded, NULL},
    {"offsets of a group", FORGERY_REFUSED, group_offsets, NULL},
    {"symmetry of a group", FORGERY_REFUSED, group_symmetric, NULL},
};

size_t forgery_kinds_count(void) { return sizeof kinds / sizeof *kinds; }

const struct forgery_kind *forgery_kind(size_t kind) { return &kinds[kind]; }
