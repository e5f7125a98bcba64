/* Reads `tarn.graph` version 1: JSON in, builder calls out. The loader checks the rules that only
 * files can break (types, fields, ids that do not number the list); the builder checks all other
 * rules.
 * Cost: linear.
 */
#include "graph_read.h"

#include <string.h>

#include "foreign.h"
#include "interval_read.h"
#include "streams/base/array.h"
#include "streams/base/escape.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/graph/builder.h"
#include "streams/text/text_file.h"

/* The lists belong to the record that is being read; their memory is reused for the next record. */
struct loader {
    struct tarn_builder *builder;
    struct tarn_json_ids inputs, outputs, control, inplace, branch, members, choices, common;
    struct tarn_implementation *implementations;
    size_t implementations_capacity;
    uint64_t *offsets; /* of a group */
    size_t offsets_capacity;
    struct tarn_region region; /* of the lists above */
};

/* The ops of a `tarn.graph`: their fields, lists and implementations.
 * Cost: linear. */

enum {
    OP_ID,
    OP_NAME,
    OP_KIND,
    OP_STREAM,
    OP_INPUTS,
    OP_OUTPUTS,
    OP_CONTROL,
    OP_WORKSPACE,
    OP_WORKSPACE_FIRST,
    OP_WORKSPACE_SPACE,
    OP_COST,
    OP_FLOPS,
    OP_VIEW,
    OP_MOVE,
    OP_INPLACE,
    OP_BRANCH,
    OP_CLASS,
    OP_RECOMPUTABLE,
    OP_IMPLEMENTATIONS,
    OP_COMMON,
    OP_ORIGIN,
    OP_IMPLEMENTATION
};
static const struct tarn_json_field op_fields[] = {
    [OP_ID] = {"id", true},
    [OP_NAME] = {"name", true},
    [OP_KIND] = {"kind", true},
    [OP_STREAM] = {"stream", true},
    [OP_INPUTS] = {"inputs", true},
    [OP_OUTPUTS] = {"outputs", true},
    [OP_CONTROL] = {"control", false},
    [OP_WORKSPACE] = {"workspace", false},
    [OP_WORKSPACE_FIRST] = {"workspace_first", false},
    [OP_WORKSPACE_SPACE] = {"workspace_space", false},
    [OP_COST] = {"cost", false},
    [OP_FLOPS] = {"flops", false},
    [OP_VIEW] = {"view", false},
    [OP_MOVE] = {"move", false},
    [OP_INPLACE] = {"inplace", false},
    [OP_BRANCH] = {"branch", false},
    [OP_CLASS] = {"class", false},
    [OP_RECOMPUTABLE] = {"recomputable", false},
    [OP_IMPLEMENTATIONS] = {"implementations", false},
    [OP_COMMON] = {"common", false},
    [OP_ORIGIN] = {"origin", false},
    [OP_IMPLEMENTATION] = {"implementation", false},
};

enum {
    IMPLEMENTATION_NAME,
    IMPLEMENTATION_COST,
    IMPLEMENTATION_WORKSPACE,
    IMPLEMENTATION_WORKSPACE_FIRST,
    IMPLEMENTATION_INPUTS,
    IMPLEMENTATION_OUTPUTS
};
static const struct tarn_json_field implementation_fields[] = {
    [IMPLEMENTATION_NAME] = {"name", true},
    [IMPLEMENTATION_COST] = {"cost", true},
    [IMPLEMENTATION_WORKSPACE] = {"workspace", false},
    [IMPLEMENTATION_WORKSPACE_FIRST] = {"workspace_first", false},
    [IMPLEMENTATION_INPUTS] = {"inputs", false},
    [IMPLEMENTATION_OUTPUTS] = {"outputs", false},
};

/* ---- Lists ---- */

static enum tarn_status read_pair(const struct tarn_json_at *at, const char *names, uint32_t *pair)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(at, &count);
    if (status == TARN_OK && count != 2) return tarn_json_bad(at, "must be a pair [%s]", names);
    struct tarn_json_at id = tarn_json_items(at);
    while (tarn_json_next(&id, &status)) status = tarn_json_id(&id, &pair[id.index]);
    return status;
}

static enum tarn_status read_pairs(struct tarn_json_ids *list, const struct tarn_json_at *at,
                                   const char *names)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(at, &count);
    if (status != TARN_OK) return status;
    list->count = 0;
    if (!tarn_json_ids_reserve(list, 2 * count)) return tarn_error_no_memory(at->report->error);
    struct tarn_json_at pair = tarn_json_items(at);
    while (tarn_json_next(&pair, &status)) {
        status = read_pair(&pair, names, &list->ids[list->count]);
        list->count += 2;
    }
    return status;
}

/* Its lists are appended to `choices`: only their counts are known so far. Its name outlives the
 * item, so it is copied. */
static enum tarn_status read_implementation(const struct tarn_json_at *at,
                                            struct tarn_json_ids *choices,
                                            struct tarn_implementation *made)
{
    struct tarn_json_at fields[TARN_COUNT_OF(implementation_fields)];
    *made = (struct tarn_implementation){0};
    enum tarn_status status =
        tarn_json_fields(at, implementation_fields, TARN_COUNT_OF(implementation_fields), fields);
    if (status == TARN_OK) status = tarn_json_string(&fields[IMPLEMENTATION_NAME], &made->name);
    if (status == TARN_OK && !(made->name = tarn_region_string(choices->region, made->name)))
        status = tarn_error_no_memory(at->report->error);
    if (status == TARN_OK) status = tarn_json_integer(&fields[IMPLEMENTATION_COST], &made->cost);
    if (status == TARN_OK)
        status = tarn_json_integer(&fields[IMPLEMENTATION_WORKSPACE], &made->workspace);
    if (status == TARN_OK)
        status = tarn_json_boolean(&fields[IMPLEMENTATION_WORKSPACE_FIRST], &made->workspace_first);
    if (status == TARN_OK)
        status = tarn_json_ids_append(&fields[IMPLEMENTATION_INPUTS], choices, &made->inputs.count);
    if (status == TARN_OK)
        status =
            tarn_json_ids_append(&fields[IMPLEMENTATION_OUTPUTS], choices, &made->outputs.count);
    return status;
}

/* Called when `choices` no longer moves. */
static void find_choices(struct loader *loader, size_t count)
{
    const uint32_t *ids = loader->choices.ids;
    for (size_t i = 0; i < count && ids; i++) { /* NULL: no list has any */
        struct tarn_implementation *implementation = &loader->implementations[i];
        implementation->inputs.ids = ids;
        ids += implementation->inputs.count;
        implementation->outputs.ids = ids;
        ids += implementation->outputs.count;
    }
}

static enum tarn_status read_implementations(struct loader *loader, const struct tarn_json_at *at,
                                             size_t *count)
{
    enum tarn_status status = tarn_json_array(at, count);
    if (status != TARN_OK) return status;
    struct tarn_implementation *larger =
        tarn_region_grow(&loader->region, loader->implementations,
                         &loader->implementations_capacity, *count, sizeof *larger);
    if (!larger) return tarn_error_no_memory(at->report->error);
    loader->implementations = larger;
    loader->choices.count = 0;
    struct tarn_json_at item = tarn_json_items(at);
    while (tarn_json_next(&item, &status))
        status = read_implementation(&item, &loader->choices, &larger[item.index]);
    if (status == TARN_OK) find_choices(loader, *count);
    return status;
}

/* ---- The op ---- */

static enum tarn_status read_class(const struct tarn_json_at *at, enum tarn_op_class *op_class)
{
    const char *text = NULL;
    enum tarn_status status = tarn_json_string(at, &text);
    if (status != TARN_OK || !at->value) return status;
    for (int c = TARN_CLASS_PURE; c <= TARN_CLASS_OPTIMIZER; c++) {
        *op_class = (enum tarn_op_class)c;
        if (strcmp(text, tarn_op_class_text(*op_class)) == 0) return TARN_OK;
    }
    return tarn_json_bad(at,
                         "unknown class %s; classes are pure, random, collective, copy, optimizer",
                         tarn_quote(text).text);
}

/* name, kind, stream and the numbers. */
static enum tarn_status read_op_plain(const struct tarn_json_at *fields, struct tarn_op_info *info)
{
    bool may_run_twice = false;
    enum tarn_status status = tarn_json_string(&fields[OP_NAME], &info->name);
    if (status == TARN_OK) status = tarn_json_string(&fields[OP_KIND], &info->kind);
    if (status == TARN_OK) status = tarn_json_id(&fields[OP_STREAM], &info->stream);
    if (status == TARN_OK) status = tarn_json_integer(&fields[OP_WORKSPACE], &info->workspace);
    if (status == TARN_OK) status = tarn_json_integer(&fields[OP_COST], &info->cost);
    if (status == TARN_OK) status = tarn_json_integer(&fields[OP_FLOPS], &info->flops);
    if (status == TARN_OK) status = tarn_json_boolean(&fields[OP_VIEW], &info->view);
    if (status == TARN_OK) status = tarn_json_boolean(&fields[OP_MOVE], &info->move);
    if (status == TARN_OK)
        status = tarn_json_boolean(&fields[OP_WORKSPACE_FIRST], &info->workspace_first);
    if (status == TARN_OK)
        status = tarn_json_id(&fields[OP_WORKSPACE_SPACE], &info->workspace_space);
    if (status == TARN_OK) status = read_class(&fields[OP_CLASS], &info->op_class);
    if (status == TARN_OK) status = tarn_json_boolean(&fields[OP_RECOMPUTABLE], &may_run_twice);
    if (fields[OP_RECOMPUTABLE].value)
        info->recomputable = may_run_twice ? TARN_RECOMPUTABLE : TARN_NOT_RECOMPUTABLE;
    return status;
}

static const uint32_t no_ids[1]; /* an empty list, which differs from NULL */

static enum tarn_status read_op_lists(struct loader *loader, const struct tarn_json_at *fields,
                                      struct tarn_op_info *info)
{
    enum tarn_status status = tarn_json_ids(&fields[OP_INPUTS], &loader->inputs);
    if (status == TARN_OK) status = tarn_json_ids(&fields[OP_OUTPUTS], &loader->outputs);
    if (status == TARN_OK) status = tarn_json_ids(&fields[OP_CONTROL], &loader->control);
    if (status == TARN_OK)
        status = read_pairs(&loader->inplace, &fields[OP_INPLACE], "input, output");
    if (status == TARN_OK)
        status = read_pairs(&loader->branch, &fields[OP_BRANCH], "conditional, arm");
    if (status == TARN_OK)
        status =
            read_implementations(loader, &fields[OP_IMPLEMENTATIONS], &info->implementations_count);
    if (status == TARN_OK) status = tarn_json_ids(&fields[OP_COMMON], &loader->common);
    if (fields[OP_COMMON].value)
        info->common = (struct tarn_list){loader->common.count > 0 ? loader->common.ids : no_ids,
                                          loader->common.count};
    info->inputs = (struct tarn_list){loader->inputs.ids, loader->inputs.count};
    info->outputs = (struct tarn_list){loader->outputs.ids, loader->outputs.count};
    info->control = (struct tarn_list){loader->control.ids, loader->control.count};
    info->inplace = (const uint32_t(*)[2])loader->inplace.ids;
    info->inplace_count = loader->inplace.count / 2;
    info->branch = (const uint32_t(*)[2])loader->branch.ids;
    info->branch_count = loader->branch.count / 2;
    info->implementations = loader->implementations;
    return status;
}

static enum tarn_status load_op(struct loader *loader, const struct tarn_json_at *at)
{
    struct tarn_json_at fields[TARN_COUNT_OF(op_fields)];
    struct tarn_op_info info = {0};
    uint32_t origin = (uint32_t)at->index, implementation = TARN_NONE;
    enum tarn_status status = tarn_json_fields(at, op_fields, TARN_COUNT_OF(op_fields), fields);
    if (status == TARN_OK) status = tarn_json_own_id(&fields[OP_ID]);
    if (status == TARN_OK) status = read_op_plain(fields, &info);
    if (status == TARN_OK) status = read_op_lists(loader, fields, &info);
    if (info.move) origin = TARN_NONE;
    if (status == TARN_OK) status = tarn_json_id(&fields[OP_ORIGIN], &origin);
    if (status == TARN_OK) status = tarn_json_id(&fields[OP_IMPLEMENTATION], &implementation);
    if (status != TARN_OK) return status;
    tarn_builder_op(loader->builder, &info);
    tarn_builder_origin(loader->builder, origin, implementation);
    return TARN_OK;
}

/* ---- Fields ---- */

enum {
    TOP_FORMAT,
    TOP_VERSION,
    TOP_NAME,
    TOP_META,
    TOP_SPACES,
    TOP_STREAMS,
    TOP_OPS,
    TOP_TENSORS,
    TOP_GROUPS
};
static const struct tarn_json_field top_fields[] = {
    [TOP_FORMAT] = {"format", true},
    [TOP_VERSION] = {"version", true},
    [TOP_NAME] = {"name", true},
    [TOP_META] = {"meta", false},
    [TOP_SPACES] = {"spaces", false},
    [TOP_STREAMS] = {"streams", true},
    [TOP_OPS] = {"ops", true},
    [TOP_TENSORS] = {"tensors", true},
    [TOP_GROUPS] = {"contiguous", false},
};

enum { STREAM_ID, STREAM_NAME };
static const struct tarn_json_field stream_fields[] = {
    [STREAM_ID] = {"id", true},
    [STREAM_NAME] = {"name", true},
};

enum {
    TENSOR_ID,
    TENSOR_NAME,
    TENSOR_SIZE,
    TENSOR_KIND,
    TENSOR_ALIAS_OF,
    TENSOR_OFFSET,
    TENSOR_ALIGNMENT,
    TENSOR_FIXED_OFFSET,
    TENSOR_PREFERRED_OFFSET,
    TENSOR_ORIGIN,
    TENSOR_SPACE
};
static const struct tarn_json_field tensor_fields[] = {
    [TENSOR_ID] = {"id", true},
    [TENSOR_NAME] = {"name", true},
    [TENSOR_SIZE] = {"size", true},
    [TENSOR_KIND] = {"kind", true},
    [TENSOR_ALIAS_OF] = {"alias_of", false},
    [TENSOR_OFFSET] = {"offset", false},
    [TENSOR_ALIGNMENT] = {"alignment", false},
    [TENSOR_FIXED_OFFSET] = {"fixed_offset", false},
    [TENSOR_PREFERRED_OFFSET] = {"preferred_offset", false},
    [TENSOR_ORIGIN] = {"origin", false},
    [TENSOR_SPACE] = {"space", false},
};

/* ---- Records ---- */

static enum tarn_status read_stream(struct loader *loader, const struct tarn_json_at *at)
{
    struct tarn_json_at fields[TARN_COUNT_OF(stream_fields)];
    const char *name = NULL;
    enum tarn_status status =
        tarn_json_fields(at, stream_fields, TARN_COUNT_OF(stream_fields), fields);
    if (status == TARN_OK) status = tarn_json_own_id(&fields[STREAM_ID]);
    if (status == TARN_OK) status = tarn_json_string(&fields[STREAM_NAME], &name);
    if (status == TARN_OK) tarn_builder_stream(loader->builder, name);
    return status;
}

static enum tarn_status read_kind(const struct tarn_json_at *at, enum tarn_tensor_kind *kind)
{
    const char *text = NULL;
    enum tarn_status status = tarn_json_string(at, &text);
    if (status != TARN_OK) return status;
    for (*kind = TARN_INTERMEDIATE; *kind <= TARN_INPUT;
         *kind = (enum tarn_tensor_kind)(*kind + 1)) {
        if (strcmp(text, tarn_kind_text(*kind)) == 0) return TARN_OK;
    }
    return tarn_json_bad(at,
                         "unknown kind %s; kinds are intermediate, gradient, output, parameter, "
                         "optimizer_state, input",
                         tarn_quote(text).text);
}

static enum tarn_status read_space_kind(const struct tarn_json_at *at, enum tarn_space_kind *kind)
{
    const char *text = "device";
    enum tarn_status status = tarn_json_string(at, &text);
    if (status != TARN_OK) return status;
    for (*kind = TARN_SPACE_DEVICE; *kind <= TARN_SPACE_SCRATCH;
         *kind = (enum tarn_space_kind)(*kind + 1)) {
        if (strcmp(text, tarn_space_kind_text(*kind)) == 0) return TARN_OK;
    }
    return tarn_json_bad(at, "unknown kind %s; kinds of memory spaces are device, pinned, scratch",
                         tarn_quote(text).text);
}

static enum tarn_status read_space(struct loader *loader, const struct tarn_json_at *at)
{
    static const struct tarn_json_field names[] = {
        {"id", true}, {"name", true}, {"kind", false}, {"alignment", false}, {"capacity", false}};
    struct tarn_json_at fields[TARN_COUNT_OF(names)];
    struct tarn_space_info info = {0};
    enum tarn_status status = tarn_json_fields(at, names, TARN_COUNT_OF(names), fields);
    if (status == TARN_OK) status = tarn_json_own_id(&fields[0]);
    if (status == TARN_OK) status = tarn_json_string(&fields[1], &info.name);
    if (status == TARN_OK) status = read_space_kind(&fields[2], &info.kind);
    if (status == TARN_OK) status = tarn_json_integer(&fields[3], &info.alignment);
    if (status == TARN_OK) status = tarn_json_integer(&fields[4], &info.capacity);
    if (status == TARN_OK) tarn_builder_space(loader->builder, &info);
    return status;
}

static enum tarn_status read_wanted_offset(const struct tarn_json_at *fields,
                                           struct tarn_tensor_info *info)
{
    bool is_fixed = fields[TENSOR_FIXED_OFFSET].value != NULL;
    bool is_preferred = fields[TENSOR_PREFERRED_OFFSET].value != NULL;
    if (is_fixed && is_preferred)
        return tarn_json_bad(&fields[TENSOR_PREFERRED_OFFSET],
                             "says again where the tensor is to lie; fixed_offset does already");
    if (is_fixed) info->offset_rule = TARN_OFFSET_FIXED;
    if (is_preferred) info->offset_rule = TARN_OFFSET_PREFERRED;
    return tarn_json_integer(&fields[is_fixed ? TENSOR_FIXED_OFFSET : TENSOR_PREFERRED_OFFSET],
                             &info->wanted_offset);
}

static enum tarn_status read_tensor(struct loader *loader, const struct tarn_json_at *at)
{
    struct tarn_json_at fields[TARN_COUNT_OF(tensor_fields)];
    struct tarn_tensor_info info = {0};
    tarn_tensor root = TARN_NONE, origin = (uint32_t)at->index;
    enum tarn_status status =
        tarn_json_fields(at, tensor_fields, TARN_COUNT_OF(tensor_fields), fields);
    if (status == TARN_OK) status = tarn_json_own_id(&fields[TENSOR_ID]);
    if (status == TARN_OK) status = tarn_json_string(&fields[TENSOR_NAME], &info.name);
    if (status == TARN_OK) status = tarn_json_integer(&fields[TENSOR_SIZE], &info.size);
    if (status == TARN_OK) status = read_kind(&fields[TENSOR_KIND], &info.kind);
    if (status == TARN_OK) status = tarn_json_id(&fields[TENSOR_ALIAS_OF], &root);
    if (status == TARN_OK) status = tarn_json_integer(&fields[TENSOR_OFFSET], &info.offset);
    if (status == TARN_OK) status = tarn_json_integer(&fields[TENSOR_ALIGNMENT], &info.alignment);
    if (status == TARN_OK) status = read_wanted_offset(fields, &info);
    if (status == TARN_OK) status = tarn_json_id(&fields[TENSOR_SPACE], &info.space);
    if (status == TARN_OK) status = tarn_json_id(&fields[TENSOR_ORIGIN], &origin);
    if (status != TARN_OK) return status;
    tarn_builder_alias_of(loader->builder, &info, root);
    tarn_builder_tensor_origin(loader->builder, origin);
    return TARN_OK;
}

/* One for each member. */
static enum tarn_status read_offsets(struct loader *loader, const struct tarn_json_at *at,
                                     bool padded)
{
    size_t count = 0, filled = 0, members = loader->members.count;
    enum tarn_status status = tarn_json_array(at, &count);
    if (status != TARN_OK) return status;
    if (padded)
        return tarn_json_bad(at, "a group with offsets cannot be padded: the offsets say where its "
                                 "members begin");
    if (count != members)
        return tarn_json_bad(at, "there are %zu offsets for %zu tensors", count, members);
    uint64_t *offsets = tarn_region_grow(&loader->region, loader->offsets,
                                         &loader->offsets_capacity, count + 1, sizeof *offsets);
    if (!offsets) return tarn_error_no_memory(at->report->error);
    loader->offsets = offsets;
    struct tarn_json_at item = tarn_json_items(at);
    while (tarn_json_next(&item, &status)) status = tarn_json_integer(&item, &offsets[filled++]);
    return status;
}

/* A list of tensors, or an object with such a list and more fields of the group. */
static enum tarn_status read_group(struct loader *loader, const struct tarn_json_at *at)
{
    static const struct tarn_json_field names[] = {
        {"tensors", true}, {"padded", false}, {"offsets", false}, {"symmetric", false}};
    struct tarn_json_at fields[TARN_COUNT_OF(names)] = {*at};
    enum tarn_status status = TARN_OK;
    const char *symmetric = NULL;
    bool padded = false;
    if (tarn_json_is_object(at)) status = tarn_json_fields(at, names, TARN_COUNT_OF(names), fields);
    if (status == TARN_OK) status = tarn_json_boolean(&fields[1], &padded);
    if (status == TARN_OK) status = tarn_json_ids(&fields[0], &loader->members);
    if (status == TARN_OK) status = tarn_json_string(&fields[3], &symmetric);
    if (status == TARN_OK && fields[2].value) status = read_offsets(loader, &fields[2], padded);
    if (status != TARN_OK) return status;
    struct tarn_list tensors = {loader->members.ids, loader->members.count};
    if (fields[2].value)
        tarn_builder_group_offsets(loader->builder, tensors, loader->offsets);
    else if (padded)
        tarn_builder_group_padded(loader->builder, tensors);
    else
        tarn_builder_group(loader->builder, tensors);
    if (symmetric) tarn_builder_group_symmetric(loader->builder, (uint32_t)at->index, symmetric);
    return TARN_OK;
}

/* Adds the record's name to errors of its fields. */
static void name_record(const struct tarn_json_at *record)
{
    struct tarn_error *error = record->report->error;
    const char *list = record->parent->key;
    if (!error || error->status != TARN_BAD_INPUT) return;
    if (strcmp(list, "ops") == 0) error->op = (uint32_t)record->index;
    if (strcmp(list, "tensors") == 0) error->tensor = (uint32_t)record->index;
    struct tarn_json_at name = tarn_json_in(record, "name");
    size_t used = strlen(error->text);
    if (tarn_json_text(&name))
        snprintf(error->text + used, sizeof error->text - used, " (in %s)",
                 tarn_quote(tarn_json_text(&name)).text);
    tarn_escape_message(error->text);
}

static enum tarn_status read_list(struct loader *loader, const struct tarn_json_at *at,
                                  enum tarn_status (*read)(struct loader *,
                                                           const struct tarn_json_at *))
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(at, &count);
    struct tarn_json_at record = tarn_json_items(at);
    while (tarn_json_next(&record, &status)) {
        status = read(loader, &record);
        if (status != TARN_OK) name_record(&record);
    }
    return status;
}

/* ---- The document ---- */

static enum tarn_status read_meta(struct loader *loader, const struct tarn_json_at *at)
{
    const char *text = NULL;
    if (!at->value) return TARN_OK;
    enum tarn_status status = tarn_json_keep(at, &loader->region, &text);
    if (status == TARN_OK) tarn_builder_meta(loader->builder, text);
    return status;
}

static enum tarn_status read_document(struct loader *loader, const struct tarn_json_at *fields)
{
    enum tarn_status status = read_meta(loader, &fields[TOP_META]);
    if (status == TARN_OK) status = read_list(loader, &fields[TOP_SPACES], read_space);
    if (status == TARN_OK) status = read_list(loader, &fields[TOP_STREAMS], read_stream);
    if (status == TARN_OK) status = read_list(loader, &fields[TOP_OPS], load_op);
    if (status == TARN_OK) status = read_list(loader, &fields[TOP_TENSORS], read_tensor);
    if (status == TARN_OK) status = read_list(loader, &fields[TOP_GROUPS], read_group);
    return status;
}

static enum tarn_status decode(const struct tarn_json_at *document, struct tarn_graph **graph)
{
    struct loader loader = {.builder = NULL};
    struct tarn_json_ids *lists[] = {&loader.inputs,  &loader.outputs, &loader.control,
                                     &loader.inplace, &loader.members, &loader.choices,
                                     &loader.common,  &loader.branch};
    for (size_t i = 0; i < TARN_COUNT_OF(lists); i++) lists[i]->region = &loader.region;
    struct tarn_json_at fields[TARN_COUNT_OF(top_fields)];
    const char *name = NULL;
    *graph = NULL;
    enum tarn_status status = tarn_json_check_format(document, "tarn.graph");
    if (status == TARN_OK)
        status = tarn_json_fields(document, top_fields, TARN_COUNT_OF(top_fields), fields);
    if (status == TARN_OK) status = tarn_json_string(&fields[TOP_NAME], &name);
    if (status != TARN_OK) return status;
    loader.builder = tarn_builder_create(name);
    tarn_builder_read_from(loader.builder, document->report);
    status = read_document(&loader, fields);
    if (status == TARN_OK)
        status = tarn_builder_finish(loader.builder, graph, document->report->error);
    else
        tarn_builder_destroy(loader.builder);
    tarn_region_finish(&loader.region);
    return status;
}

enum tarn_status tarn_graph_decode_inside(const struct tarn_json_at *at, struct tarn_graph **graph)
{
    struct tarn_report report = *at->report;
    report.base = "/graph"; /* the builder's errors are relative to it, too */
    return decode(&(struct tarn_json_at){.report = &report, .value = at->value}, graph);
}

static enum tarn_status load_json(struct tarn_report *report, const char *text, size_t size,
                                  struct tarn_graph **graph)
{
    struct tarn_json_at document;
    enum tarn_status status = tarn_json_parse(report, text, size, &document);
    if (status == TARN_OK) status = decode(&document, graph);
    tarn_json_close(&document, NULL);
    return status;
}

static enum tarn_status load(const struct tarn_reader *reader,
                             const struct tarn_load_options *given, struct tarn_graph **graph,
                             struct tarn_error *error)
{
    struct tarn_load_options options;
    struct tarn_report report = {.error = error, .path = reader->name};
    char *text = NULL;
    size_t size = 0;
    if (strcmp(reader->name, "-") == 0) report.path = "standard input";
    enum tarn_status status =
        tarn_options_take(&options, sizeof options, given, "load options", error);
    report.text_max = status == TARN_OK && options.text_max > 0 ? options.text_max : TARN_TEXT_MAX;
    if (status == TARN_OK) status = tarn_text_take(reader, report.text_max, &text, &size, error);
    if (status == TARN_OK) {
        struct tarn_foreign_head head;
        tarn_foreign_keep(&head, text, size);
        status = tarn_interval_is(reader->name, text)
                     ? tarn_interval_decode(&report, text, size, graph)
                     : load_json(&report, text, size, graph);
        if (status == TARN_BAD_INPUT) tarn_foreign_explain(&report, &head);
    }
    if (status == TARN_OK) (*graph)->text_max = report.text_max;
    tarn_free(text);
    return status;
}

enum tarn_status tarn_graph_load(const char *path, const struct tarn_load_options *options,
                                 struct tarn_graph **graph, struct tarn_error *error)
{
    if (graph) *graph = NULL;
    if (!path || !graph) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    return load(&(struct tarn_reader){.name = path}, options, graph, error);
}

enum tarn_status tarn_graph_read(const struct tarn_reader *given,
                                 const struct tarn_load_options *options, struct tarn_graph **graph,
                                 struct tarn_error *error)
{
    struct tarn_reader reader;
    if (graph) *graph = NULL;
    if (!graph) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = tarn_reader_check(&reader, given, __func__, error);
    return status != TARN_OK ? status : load(&reader, options, graph, error);
}
