/* The ops of a `tarn.graph`: their fields, lists and implementations. Cost: linear.
 */
#include "graph_read.h"

#include <string.h>

#include "streams/base/array.h"
#include "streams/graph/builder.h"

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
    OP_INPLACE,
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
    [OP_INPLACE] = {"inplace", false},
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

static enum tarn_status read_pair(const struct tarn_json_at *at, uint32_t *pair)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(at, &count);
    if (status == TARN_OK && count != 2) return tarn_json_bad(at, "must be a pair [input, output]");
    struct tarn_json_at id = tarn_json_items(at);
    while (tarn_json_next(&id, &status)) status = tarn_json_id(&id, &pair[id.index]);
    return status;
}

static enum tarn_status read_inplace(struct tarn_json_ids *list, const struct tarn_json_at *at)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(at, &count);
    if (status != TARN_OK) return status;
    list->count = 0;
    if (!tarn_json_ids_reserve(list, 2 * count)) return tarn_error_no_memory(at->report->error);
    struct tarn_json_at pair = tarn_json_items(at);
    while (tarn_json_next(&pair, &status)) {
        status = read_pair(&pair, &list->ids[list->count]);
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
    if (!status) status = tarn_json_string(&fields[IMPLEMENTATION_NAME], &made->name);
    if (!status && !(made->name = tarn_region_string(choices->region, made->name)))
        status = tarn_error_no_memory(at->report->error);
    if (!status) status = tarn_json_integer(&fields[IMPLEMENTATION_COST], &made->cost);
    if (!status) status = tarn_json_integer(&fields[IMPLEMENTATION_WORKSPACE], &made->workspace);
    if (!status)
        status = tarn_json_boolean(&fields[IMPLEMENTATION_WORKSPACE_FIRST], &made->workspace_first);
    if (!status)
        status = tarn_json_ids_append(&fields[IMPLEMENTATION_INPUTS], choices, &made->inputs.count);
    if (!status)
        status =
            tarn_json_ids_append(&fields[IMPLEMENTATION_OUTPUTS], choices, &made->outputs.count);
    return status;
}

/* Now that `choices` moves no more. */
static void find_choices(struct tarn_graph_loader *loader, size_t count)
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

static enum tarn_status read_implementations(struct tarn_graph_loader *loader,
                                             const struct tarn_json_at *at, size_t *count)
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
    if (!status) status = tarn_json_string(&fields[OP_KIND], &info->kind);
    if (!status) status = tarn_json_id(&fields[OP_STREAM], &info->stream);
    if (!status) status = tarn_json_integer(&fields[OP_WORKSPACE], &info->workspace);
    if (!status) status = tarn_json_integer(&fields[OP_COST], &info->cost);
    if (!status) status = tarn_json_integer(&fields[OP_FLOPS], &info->flops);
    if (!status) status = tarn_json_boolean(&fields[OP_VIEW], &info->view);
    if (!status) status = tarn_json_boolean(&fields[OP_WORKSPACE_FIRST], &info->workspace_first);
    if (!status) status = tarn_json_id(&fields[OP_WORKSPACE_SPACE], &info->workspace_space);
    if (!status) status = read_class(&fields[OP_CLASS], &info->op_class);
    if (!status) status = tarn_json_boolean(&fields[OP_RECOMPUTABLE], &may_run_twice);
    if (fields[OP_RECOMPUTABLE].value)
        info->recomputable = may_run_twice ? TARN_RECOMPUTABLE : TARN_NOT_RECOMPUTABLE;
    return status;
}

static const uint32_t no_ids[1]; /* where an empty list differs from none */

static enum tarn_status read_op_lists(struct tarn_graph_loader *loader,
                                      const struct tarn_json_at *fields, struct tarn_op_info *info)
{
    enum tarn_status status = tarn_json_ids(&fields[OP_INPUTS], &loader->inputs);
    if (!status) status = tarn_json_ids(&fields[OP_OUTPUTS], &loader->outputs);
    if (!status) status = tarn_json_ids(&fields[OP_CONTROL], &loader->control);
    if (!status) status = read_inplace(&loader->inplace, &fields[OP_INPLACE]);
    if (!status)
        status =
            read_implementations(loader, &fields[OP_IMPLEMENTATIONS], &info->implementations_count);
    if (!status) status = tarn_json_ids(&fields[OP_COMMON], &loader->common);
    if (fields[OP_COMMON].value)
        info->common = (struct tarn_list){loader->common.count > 0 ? loader->common.ids : no_ids,
                                          loader->common.count};
    info->inputs = (struct tarn_list){loader->inputs.ids, loader->inputs.count};
    info->outputs = (struct tarn_list){loader->outputs.ids, loader->outputs.count};
    info->control = (struct tarn_list){loader->control.ids, loader->control.count};
    info->inplace = (const uint32_t(*)[2])loader->inplace.ids;
    info->inplace_count = loader->inplace.count / 2;
    info->implementations = loader->implementations;
    return status;
}

enum tarn_status tarn_load_op(struct tarn_graph_loader *loader, const struct tarn_json_at *at)
{
    struct tarn_json_at fields[TARN_COUNT_OF(op_fields)];
    struct tarn_op_info info = {0};
    uint32_t origin = (uint32_t)at->index, implementation = TARN_NONE;
    enum tarn_status status = tarn_json_fields(at, op_fields, TARN_COUNT_OF(op_fields), fields);
    if (!status) status = tarn_json_own_id(&fields[OP_ID]);
    if (!status) status = read_op_plain(fields, &info);
    if (!status) status = read_op_lists(loader, fields, &info);
    if (!status) status = tarn_json_id(&fields[OP_ORIGIN], &origin);
    if (!status) status = tarn_json_id(&fields[OP_IMPLEMENTATION], &implementation);
    if (status != TARN_OK) return status;
    tarn_builder_op(loader->builder, &info);
    tarn_builder_origin(loader->builder, origin, implementation);
    return TARN_OK;
}
