/* The ops of a `tarn.graph`: their fields, lists and implementations. Cost: linear.
 */
#include "graph_read.h"

#include <stdlib.h>

#include "streams/graph/builder.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

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

static enum tarn_status read_pair(const struct tarn_graph_loader *loader,
                                  const struct tarn_json_at *at, const struct tarn_json *value,
                                  uint32_t *pair)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(loader->report, at, value, &count);
    if (status == TARN_OK && count != 2)
        return tarn_json_bad(loader->report, at, "must be a pair [input, output]");
    for (size_t i = 0; i < 2 && status == TARN_OK; i++) {
        struct tarn_json_at place = tarn_json_in(at, NULL, i);
        status = tarn_json_id(loader->report, &place, tarn_json_element(value, i), &pair[i]);
    }
    return status;
}

static enum tarn_status read_inplace(struct tarn_graph_loader *loader,
                                     const struct tarn_json_at *at, const struct tarn_json *value)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(loader->report, at, value, &count);
    if (status != TARN_OK) return status;
    struct tarn_json_ids *list = &loader->inplace;
    list->count = 0;
    if (!tarn_json_ids_reserve(list, 2 * count)) return tarn_error_no_memory(loader->report->error);
    const struct tarn_json *pair = tarn_json_first(value);
    for (size_t i = 0; pair && !status; i++, pair = tarn_json_next(pair), list->count += 2) {
        struct tarn_json_at place = tarn_json_in(at, NULL, i);
        status = read_pair(loader, &place, pair, &list->ids[2 * i]);
    }
    return status;
}

/* Its lists are appended to the loader's `choices`: only their counts are known so far. */
static enum tarn_status read_implementation(struct tarn_graph_loader *loader,
                                            const struct tarn_json_at *at,
                                            const struct tarn_json *value,
                                            struct tarn_implementation *implementation)
{
    const struct tarn_report *report = loader->report;
    const struct tarn_json *fields[COUNT_OF(implementation_fields)];
    *implementation = (struct tarn_implementation){0};
    enum tarn_status status = tarn_json_fields(report, at, value, implementation_fields,
                                               COUNT_OF(implementation_fields), fields);
    struct tarn_json_at name = tarn_json_in(at, "name", 0), cost = tarn_json_in(at, "cost", 0),
                        workspace = tarn_json_in(at, "workspace", 0),
                        first = tarn_json_in(at, "workspace_first", 0),
                        inputs = tarn_json_in(at, "inputs", 0),
                        outputs = tarn_json_in(at, "outputs", 0);
    if (!status)
        status =
            tarn_json_string(report, &name, fields[IMPLEMENTATION_NAME], &implementation->name);
    if (!status)
        status = tarn_json_integer(report, &cost, fields[IMPLEMENTATION_COST],
                                   TARN_JSON_INTEGER_MAX, &implementation->cost);
    if (!status)
        status = tarn_json_integer(report, &workspace, fields[IMPLEMENTATION_WORKSPACE],
                                   TARN_JSON_INTEGER_MAX, &implementation->workspace);
    if (!status)
        status = tarn_json_boolean(report, &first, fields[IMPLEMENTATION_WORKSPACE_FIRST],
                                   &implementation->workspace_first);
    if (!status)
        status = tarn_json_ids_append(report, &inputs, fields[IMPLEMENTATION_INPUTS],
                                      &loader->choices, &implementation->inputs.count);
    if (!status)
        status = tarn_json_ids_append(report, &outputs, fields[IMPLEMENTATION_OUTPUTS],
                                      &loader->choices, &implementation->outputs.count);
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
                                             const struct tarn_json_at *at,
                                             const struct tarn_json *value, size_t *count)
{
    enum tarn_status status = tarn_json_array(loader->report, at, value, count);
    if (status != TARN_OK) return status;
    struct tarn_implementation *larger =
        tarn_region_grow(&loader->region, loader->implementations,
                         &loader->implementations_capacity, *count, sizeof *larger);
    if (!larger) return tarn_error_no_memory(loader->report->error);
    loader->implementations = larger;
    loader->choices.count = 0;
    const struct tarn_json *element = tarn_json_first(value);
    for (size_t i = 0; element && !status; i++, element = tarn_json_next(element)) {
        struct tarn_json_at place = tarn_json_in(at, NULL, i);
        status = read_implementation(loader, &place, element, &loader->implementations[i]);
    }
    if (status == TARN_OK) find_choices(loader, *count);
    return status;
}

/* ---- The op ---- */

/* name, kind, stream and the numbers. */
static enum tarn_status read_op_plain(const struct tarn_graph_loader *loader,
                                      const struct tarn_json_at *at,
                                      const struct tarn_json **fields, struct tarn_op_info *info)
{
    const struct tarn_report *report = loader->report;
    const struct {
        unsigned field;
        uint64_t *number;
    } numbers[] = {
        {OP_WORKSPACE, &info->workspace}, {OP_COST, &info->cost}, {OP_FLOPS, &info->flops}};
    struct tarn_json_at name = tarn_json_in(at, "name", 0), kind = tarn_json_in(at, "kind", 0),
                        stream = tarn_json_in(at, "stream", 0), view = tarn_json_in(at, "view", 0),
                        first = tarn_json_in(at, "workspace_first", 0),
                        space = tarn_json_in(at, "workspace_space", 0),
                        recomputable = tarn_json_in(at, "recomputable", 0);
    enum tarn_status status = tarn_json_string(report, &name, fields[OP_NAME], &info->name);
    if (!status) status = tarn_json_string(report, &kind, fields[OP_KIND], &info->kind);
    if (!status) status = tarn_json_id(report, &stream, fields[OP_STREAM], &info->stream);
    for (size_t i = 0; i < COUNT_OF(numbers) && !status; i++) {
        struct tarn_json_at number = tarn_json_in(at, op_fields[numbers[i].field].name, 0);
        status = tarn_json_integer(report, &number, fields[numbers[i].field], TARN_JSON_INTEGER_MAX,
                                   numbers[i].number);
    }
    if (!status) status = tarn_json_boolean(report, &view, fields[OP_VIEW], &info->view);
    if (!status)
        status =
            tarn_json_boolean(report, &first, fields[OP_WORKSPACE_FIRST], &info->workspace_first);
    if (!status)
        status = tarn_json_id(report, &space, fields[OP_WORKSPACE_SPACE], &info->workspace_space);
    bool may_run_twice = false;
    if (!status)
        status = tarn_json_boolean(report, &recomputable, fields[OP_RECOMPUTABLE], &may_run_twice);
    if (fields[OP_RECOMPUTABLE])
        info->recomputable = may_run_twice ? TARN_RECOMPUTABLE : TARN_NOT_RECOMPUTABLE;
    return status;
}

static const uint32_t no_ids[1]; /* where an empty list differs from none */

static enum tarn_status read_op_lists(struct tarn_graph_loader *loader,
                                      const struct tarn_json_at *at,
                                      const struct tarn_json **fields, struct tarn_op_info *info)
{
    struct tarn_json_at inputs = tarn_json_in(at, "inputs", 0),
                        outputs = tarn_json_in(at, "outputs", 0),
                        control = tarn_json_in(at, "control", 0),
                        inplace = tarn_json_in(at, "inplace", 0),
                        implementations = tarn_json_in(at, "implementations", 0),
                        common = tarn_json_in(at, "common", 0);
    enum tarn_status status =
        tarn_json_ids(loader->report, &inputs, fields[OP_INPUTS], &loader->inputs);
    if (!status)
        status = tarn_json_ids(loader->report, &outputs, fields[OP_OUTPUTS], &loader->outputs);
    if (!status)
        status = tarn_json_ids(loader->report, &control, fields[OP_CONTROL], &loader->control);
    if (!status) status = read_inplace(loader, &inplace, fields[OP_INPLACE]);
    if (!status)
        status = read_implementations(loader, &implementations, fields[OP_IMPLEMENTATIONS],
                                      &info->implementations_count);
    if (!status)
        status = tarn_json_ids(loader->report, &common, fields[OP_COMMON], &loader->common);
    if (fields[OP_COMMON])
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

enum tarn_status tarn_load_op(struct tarn_graph_loader *loader, const struct tarn_json_at *at,
                              const struct tarn_json *value)
{
    const struct tarn_report *report = loader->report;
    const struct tarn_json *fields[COUNT_OF(op_fields)];
    struct tarn_op_info info = {0};
    uint32_t origin = (uint32_t)at->index, implementation = TARN_NONE;
    struct tarn_json_at origin_at = tarn_json_in(at, "origin", 0),
                        implementation_at = tarn_json_in(at, "implementation", 0);
    enum tarn_status status =
        tarn_json_fields(report, at, value, op_fields, COUNT_OF(op_fields), fields);
    if (!status) status = tarn_json_own_id(report, at, fields[OP_ID]);
    if (!status) status = read_op_plain(loader, at, fields, &info);
    if (!status) status = read_op_lists(loader, at, fields, &info);
    if (!status) status = tarn_json_id(report, &origin_at, fields[OP_ORIGIN], &origin);
    if (!status)
        status =
            tarn_json_id(report, &implementation_at, fields[OP_IMPLEMENTATION], &implementation);
    if (status != TARN_OK) return status;
    tarn_builder_op(loader->builder, &info);
    tarn_builder_origin(loader->builder, origin, implementation);
    return TARN_OK;
}
