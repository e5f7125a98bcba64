/* `tarn.graph` version 1: JSON in, builder calls out, and back. The loader checks what only a file
 * can get wrong (types, fields, ids that do not number the list); every other rule is the
 * builder's. The writer puts one record on a line, keys in the order of the tables below, absent
 * where they say nothing, so that equal graphs give equal bytes. Cost: linear.
 */
#include "file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "interval_file.h"
#include "json_write.h"
#include "text_file.h"
#include "validate.h"

#define META_DEPTH_MAX 64

/* ---- Fields ---- */

enum { TOP_FORMAT, TOP_VERSION, TOP_NAME, TOP_META, TOP_STREAMS, TOP_OPS, TOP_TENSORS, TOP_GROUPS };
static const struct tarn_json_field top_fields[] = {
    [TOP_FORMAT] = {"format", true},   [TOP_VERSION] = {"version", true},
    [TOP_NAME] = {"name", true},       [TOP_META] = {"meta", false},
    [TOP_STREAMS] = {"streams", true}, [TOP_OPS] = {"ops", true},
    [TOP_TENSORS] = {"tensors", true}, [TOP_GROUPS] = {"contiguous", false},
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
    TENSOR_ALIGNMENT,
    TENSOR_ORIGIN
};
static const struct tarn_json_field tensor_fields[] = {
    [TENSOR_ID] = {"id", true},
    [TENSOR_NAME] = {"name", true},
    [TENSOR_SIZE] = {"size", true},
    [TENSOR_KIND] = {"kind", true},
    [TENSOR_ALIAS_OF] = {"alias_of", false},
    [TENSOR_ALIGNMENT] = {"alignment", false},
    [TENSOR_ORIGIN] = {"origin", false},
};

enum {
    OP_ID,
    OP_NAME,
    OP_KIND,
    OP_STREAM,
    OP_INPUTS,
    OP_OUTPUTS,
    OP_CONTROL,
    OP_WORKSPACE,
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
    IMPLEMENTATION_INPUTS,
    IMPLEMENTATION_OUTPUTS
};
static const struct tarn_json_field implementation_fields[] = {
    [IMPLEMENTATION_NAME] = {"name", true},
    [IMPLEMENTATION_COST] = {"cost", true},
    [IMPLEMENTATION_WORKSPACE] = {"workspace", false},
    [IMPLEMENTATION_INPUTS] = {"inputs", false},
    [IMPLEMENTATION_OUTPUTS] = {"outputs", false},
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- Reading lists ---- */

/* The lists of the op that is being read; the arrays are used again for the next one. */
struct list {
    uint32_t *ids;
    size_t count, capacity;
};

struct loader {
    const struct tarn_report *report;
    struct tarn_builder *builder;
    struct list inputs, outputs, control, inplace, members, choices, common;
    struct tarn_implementation *implementations;
    size_t implementations_capacity;
};

/* Room for so many more. */
static bool reserve(struct list *list, size_t count)
{
    count += list->count;
    if (count <= list->capacity) return true;
    uint32_t *ids = realloc(list->ids, 2 * count * sizeof *ids);
    if (!ids) return false;
    list->ids = ids;
    list->capacity = 2 * count;
    return true;
}

static enum tarn_status append_ids(const struct loader *loader, const struct tarn_json_at *at,
                                   json_t *value, struct list *list, size_t *count)
{
    enum tarn_status status = tarn_json_array(loader->report, at, value, count);
    if (status != TARN_OK) return status;
    if (!reserve(list, *count)) return tarn_error_no_memory(loader->report->error);
    for (size_t i = 0; i < *count && status == TARN_OK; i++) {
        struct tarn_json_at place = tarn_json_in(at, NULL, i);
        status = tarn_json_id(loader->report, &place, json_array_get(value, i),
                              &list->ids[list->count++]);
    }
    return status;
}

static enum tarn_status read_ids(const struct loader *loader, const struct tarn_json_at *at,
                                 json_t *value, struct list *list)
{
    size_t count = 0;
    list->count = 0;
    return append_ids(loader, at, value, list, &count);
}

static enum tarn_status read_pair(const struct loader *loader, const struct tarn_json_at *at,
                                  json_t *value, uint32_t *pair)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(loader->report, at, value, &count);
    if (status == TARN_OK && count != 2)
        return tarn_json_bad(loader->report, at, "must be a pair [input, output]");
    for (size_t i = 0; i < 2 && status == TARN_OK; i++) {
        struct tarn_json_at place = tarn_json_in(at, NULL, i);
        status = tarn_json_id(loader->report, &place, json_array_get(value, i), &pair[i]);
    }
    return status;
}

static enum tarn_status read_inplace(struct loader *loader, const struct tarn_json_at *at,
                                     json_t *value)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(loader->report, at, value, &count);
    if (status != TARN_OK) return status;
    struct list *list = &loader->inplace;
    list->count = 0;
    if (!reserve(list, 2 * count)) return tarn_error_no_memory(loader->report->error);
    for (size_t i = 0; i < count && status == TARN_OK; i++, list->count += 2) {
        struct tarn_json_at place = tarn_json_in(at, NULL, i);
        status = read_pair(loader, &place, json_array_get(value, i), &list->ids[2 * i]);
    }
    return status;
}

/* Its lists are appended to the loader's `choices`: only their counts are known so far. */
static enum tarn_status read_implementation(struct loader *loader, const struct tarn_json_at *at,
                                            json_t *value,
                                            struct tarn_implementation *implementation)
{
    const struct tarn_report *report = loader->report;
    json_t *fields[COUNT_OF(implementation_fields)];
    *implementation = (struct tarn_implementation){0};
    enum tarn_status status = tarn_json_fields(report, at, value, implementation_fields,
                                               COUNT_OF(implementation_fields), fields);
    struct tarn_json_at name = tarn_json_in(at, "name", 0), cost = tarn_json_in(at, "cost", 0),
                        workspace = tarn_json_in(at, "workspace", 0),
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
        status = append_ids(loader, &inputs, fields[IMPLEMENTATION_INPUTS], &loader->choices,
                            &implementation->inputs.count);
    if (!status)
        status = append_ids(loader, &outputs, fields[IMPLEMENTATION_OUTPUTS], &loader->choices,
                            &implementation->outputs.count);
    return status;
}

/* Now that `choices` moves no more. */
static void find_choices(struct loader *loader, size_t count)
{
    const uint32_t *ids = loader->choices.ids;
    for (size_t i = 0; i < count; i++) {
        struct tarn_implementation *implementation = &loader->implementations[i];
        implementation->inputs.ids = ids;
        ids += implementation->inputs.count;
        implementation->outputs.ids = ids;
        ids += implementation->outputs.count;
    }
}

static enum tarn_status read_implementations(struct loader *loader, const struct tarn_json_at *at,
                                             json_t *value, size_t *count)
{
    enum tarn_status status = tarn_json_array(loader->report, at, value, count);
    if (status != TARN_OK) return status;
    if (*count > loader->implementations_capacity) {
        struct tarn_implementation *larger =
            realloc(loader->implementations, *count * sizeof *larger);
        if (!larger) return tarn_error_no_memory(loader->report->error);
        loader->implementations = larger;
        loader->implementations_capacity = *count;
    }
    loader->choices.count = 0;
    for (size_t i = 0; i < *count && status == TARN_OK; i++) {
        struct tarn_json_at place = tarn_json_in(at, NULL, i);
        status = read_implementation(loader, &place, json_array_get(value, i),
                                     &loader->implementations[i]);
    }
    if (status == TARN_OK) find_choices(loader, *count);
    return status;
}

/* ---- Reading records ---- */

static enum tarn_status check_id(const struct loader *loader, const struct tarn_json_at *record,
                                 json_t *value)
{
    struct tarn_json_at at = tarn_json_in(record, "id", 0);
    uint32_t id = 0;
    enum tarn_status status = tarn_json_id(loader->report, &at, value, &id);
    if (status == TARN_OK && id != record->index)
        return tarn_json_bad(loader->report, &at,
                             "the id is %" PRIu32 ", but ids number the list from 0, so %zu is "
                             "expected here",
                             id, record->index);
    return status;
}

static enum tarn_status read_stream(struct loader *loader, const struct tarn_json_at *at,
                                    json_t *value)
{
    json_t *fields[COUNT_OF(stream_fields)];
    const char *text = NULL;
    struct tarn_json_at name = tarn_json_in(at, "name", 0);
    enum tarn_status status =
        tarn_json_fields(loader->report, at, value, stream_fields, COUNT_OF(stream_fields), fields);
    if (!status) status = check_id(loader, at, fields[STREAM_ID]);
    if (!status) status = tarn_json_string(loader->report, &name, fields[STREAM_NAME], &text);
    if (!status) tarn_builder_stream(loader->builder, text);
    return status;
}

static enum tarn_status read_kind(const struct loader *loader, const struct tarn_json_at *at,
                                  json_t *value, enum tarn_tensor_kind *kind)
{
    const char *text = NULL;
    enum tarn_status status = tarn_json_string(loader->report, at, value, &text);
    if (status != TARN_OK) return status;
    for (*kind = TARN_INTERMEDIATE; *kind <= TARN_INPUT;
         *kind = (enum tarn_tensor_kind)(*kind + 1)) {
        if (strcmp(text, tarn_kind_text(*kind)) == 0) return TARN_OK;
    }
    return tarn_json_bad(loader->report, at,
                         "unknown kind %s; kinds are intermediate, gradient, output, parameter, "
                         "optimizer_state, input",
                         tarn_quote(text).text);
}

static enum tarn_status read_tensor(struct loader *loader, const struct tarn_json_at *at,
                                    json_t *value)
{
    const struct tarn_report *report = loader->report;
    json_t *fields[COUNT_OF(tensor_fields)];
    struct tarn_tensor_info info = {0};
    tarn_tensor root = TARN_NONE, origin = (uint32_t)at->index;
    struct tarn_json_at name = tarn_json_in(at, "name", 0), size = tarn_json_in(at, "size", 0),
                        kind = tarn_json_in(at, "kind", 0), alias = tarn_json_in(at, "alias_of", 0),
                        alignment = tarn_json_in(at, "alignment", 0),
                        origin_at = tarn_json_in(at, "origin", 0);
    enum tarn_status status =
        tarn_json_fields(report, at, value, tensor_fields, COUNT_OF(tensor_fields), fields);
    if (!status) status = check_id(loader, at, fields[TENSOR_ID]);
    if (!status) status = tarn_json_string(report, &name, fields[TENSOR_NAME], &info.name);
    if (!status)
        status = tarn_json_integer(report, &size, fields[TENSOR_SIZE], TARN_JSON_INTEGER_MAX,
                                   &info.size);
    if (!status) status = read_kind(loader, &kind, fields[TENSOR_KIND], &info.kind);
    if (!status) status = tarn_json_id(report, &alias, fields[TENSOR_ALIAS_OF], &root);
    if (!status)
        status = tarn_json_integer(report, &alignment, fields[TENSOR_ALIGNMENT],
                                   TARN_JSON_INTEGER_MAX, &info.alignment);
    if (!status) status = tarn_json_id(report, &origin_at, fields[TENSOR_ORIGIN], &origin);
    if (status != TARN_OK) return status;
    tarn_builder_alias_of(loader->builder, &info, root);
    tarn_builder_tensor_origin(loader->builder, origin);
    return TARN_OK;
}

/* name, kind, stream and the numbers. */
static enum tarn_status read_op_plain(const struct loader *loader, const struct tarn_json_at *at,
                                      json_t **fields, struct tarn_op_info *info)
{
    const struct tarn_report *report = loader->report;
    const struct {
        unsigned field;
        uint64_t *number;
    } numbers[] = {
        {OP_WORKSPACE, &info->workspace}, {OP_COST, &info->cost}, {OP_FLOPS, &info->flops}};
    struct tarn_json_at name = tarn_json_in(at, "name", 0), kind = tarn_json_in(at, "kind", 0),
                        stream = tarn_json_in(at, "stream", 0), view = tarn_json_in(at, "view", 0),
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
    bool may_run_twice = false;
    if (!status)
        status = tarn_json_boolean(report, &recomputable, fields[OP_RECOMPUTABLE], &may_run_twice);
    if (fields[OP_RECOMPUTABLE])
        info->recomputable = may_run_twice ? TARN_RECOMPUTABLE : TARN_NOT_RECOMPUTABLE;
    return status;
}

static const uint32_t no_ids[1]; /* where an empty list differs from none */

static enum tarn_status read_op_lists(struct loader *loader, const struct tarn_json_at *at,
                                      json_t **fields, struct tarn_op_info *info)
{
    struct tarn_json_at inputs = tarn_json_in(at, "inputs", 0),
                        outputs = tarn_json_in(at, "outputs", 0),
                        control = tarn_json_in(at, "control", 0),
                        inplace = tarn_json_in(at, "inplace", 0),
                        implementations = tarn_json_in(at, "implementations", 0),
                        common = tarn_json_in(at, "common", 0);
    enum tarn_status status = read_ids(loader, &inputs, fields[OP_INPUTS], &loader->inputs);
    if (!status) status = read_ids(loader, &outputs, fields[OP_OUTPUTS], &loader->outputs);
    if (!status) status = read_ids(loader, &control, fields[OP_CONTROL], &loader->control);
    if (!status) status = read_inplace(loader, &inplace, fields[OP_INPLACE]);
    if (!status)
        status = read_implementations(loader, &implementations, fields[OP_IMPLEMENTATIONS],
                                      &info->implementations_count);
    if (!status) status = read_ids(loader, &common, fields[OP_COMMON], &loader->common);
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

static enum tarn_status read_op(struct loader *loader, const struct tarn_json_at *at, json_t *value)
{
    const struct tarn_report *report = loader->report;
    json_t *fields[COUNT_OF(op_fields)];
    struct tarn_op_info info = {0};
    uint32_t origin = (uint32_t)at->index, implementation = TARN_NONE;
    struct tarn_json_at origin_at = tarn_json_in(at, "origin", 0),
                        implementation_at = tarn_json_in(at, "implementation", 0);
    enum tarn_status status =
        tarn_json_fields(report, at, value, op_fields, COUNT_OF(op_fields), fields);
    if (!status) status = check_id(loader, at, fields[OP_ID]);
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

static enum tarn_status read_group(struct loader *loader, const struct tarn_json_at *at,
                                   json_t *value)
{
    enum tarn_status status = read_ids(loader, at, value, &loader->members);
    if (status != TARN_OK) return status;
    tarn_builder_group(loader->builder,
                       (struct tarn_list){loader->members.ids, loader->members.count});
    return TARN_OK;
}

/* What is wrong with a record's fields is said with the record's name. */
static void name_record(const struct loader *loader, const char *list, size_t index, json_t *record)
{
    struct tarn_error *error = loader->report->error;
    const char *name = json_string_value(json_object_get(record, "name"));
    if (!error || error->status != TARN_BAD_INPUT) return;
    if (strcmp(list, "ops") == 0) error->op = (uint32_t)index;
    if (strcmp(list, "tensors") == 0) error->tensor = (uint32_t)index;
    size_t used = strlen(error->text);
    if (name)
        snprintf(error->text + used, sizeof error->text - used, " (in %s)", tarn_quote(name).text);
}

static enum tarn_status read_list(struct loader *loader, const char *key, json_t *value,
                                  enum tarn_status (*read)(struct loader *,
                                                           const struct tarn_json_at *, json_t *))
{
    struct tarn_json_at at = tarn_json_in(NULL, key, 0);
    size_t count = 0;
    enum tarn_status status = tarn_json_array(loader->report, &at, value, &count);
    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        struct tarn_json_at place = tarn_json_in(&at, NULL, i);
        status = read(loader, &place, json_array_get(value, i));
        if (status != TARN_OK) name_record(loader, key, i, json_array_get(value, i));
    }
    return status;
}

/* ---- Reading the document ---- */

static bool is_deeper_than(json_t *value, int depth)
{
    const char *key;
    size_t i;
    json_t *child;
    if (!json_is_object(value) && !json_is_array(value)) return false;
    if (depth == 0) return true;
    json_object_foreach(value, key, child)
    {
        if (is_deeper_than(child, depth - 1)) return true;
    }
    json_array_foreach(value, i, child)
    {
        if (is_deeper_than(child, depth - 1)) return true;
    }
    return false;
}

static enum tarn_status read_meta(struct loader *loader, json_t *value)
{
    struct tarn_json_at at = tarn_json_in(NULL, "meta", 0);
    if (!value) return TARN_OK;
    if (!json_is_object(value)) return tarn_json_bad(loader->report, &at, "must be an object");
    if (is_deeper_than(value, META_DEPTH_MAX))
        return tarn_json_bad(loader->report, &at, "is nested deeper than %d levels",
                             META_DEPTH_MAX);
    char *text = json_dumps(value, JSON_COMPACT);
    if (!text) return tarn_error_no_memory(loader->report->error);
    tarn_builder_meta(loader->builder, text);
    free(text);
    return TARN_OK;
}

static enum tarn_status read_document(struct loader *loader, json_t **fields)
{
    enum tarn_status status = read_meta(loader, fields[TOP_META]);
    if (!status) status = read_list(loader, "streams", fields[TOP_STREAMS], read_stream);
    if (!status) status = read_list(loader, "ops", fields[TOP_OPS], read_op);
    if (!status) status = read_list(loader, "tensors", fields[TOP_TENSORS], read_tensor);
    if (!status) status = read_list(loader, "contiguous", fields[TOP_GROUPS], read_group);
    return status;
}

static void loader_finish(struct loader *loader)
{
    tarn_builder_destroy(loader->builder);
    free(loader->inputs.ids);
    free(loader->outputs.ids);
    free(loader->control.ids);
    free(loader->inplace.ids);
    free(loader->members.ids);
    free(loader->choices.ids);
    free(loader->common.ids);
    free(loader->implementations);
}

enum tarn_status tarn_graph_decode(const struct tarn_report *report, json_t *document,
                                   struct tarn_graph **graph)
{
    struct loader loader = {.report = report};
    json_t *fields[COUNT_OF(top_fields)];
    const char *name = NULL;
    struct tarn_json_at name_at = tarn_json_in(NULL, "name", 0);
    *graph = NULL;
    enum tarn_status status = tarn_json_check_format(report, document, "tarn.graph");
    if (!status)
        status = tarn_json_fields(report, NULL, document, top_fields, COUNT_OF(top_fields), fields);
    if (!status) status = tarn_json_string(report, &name_at, fields[TOP_NAME], &name);
    if (status != TARN_OK) return status;
    loader.builder = tarn_builder_create(name);
    tarn_builder_read_from(loader.builder, report);
    status = read_document(&loader, fields);
    if (!status) {
        status = tarn_builder_finish(loader.builder, graph, report->error);
        loader.builder = NULL;
    }
    loader_finish(&loader);
    return status;
}

static enum tarn_status load_json(const struct tarn_report *report, const char *text, size_t size,
                                  struct tarn_graph **graph)
{
    json_t *document = NULL;
    enum tarn_status status = tarn_json_parse(report, text, size, &document);
    if (!status) status = tarn_graph_decode(report, document, graph);
    json_decref(document);
    return status;
}

enum tarn_status tarn_graph_load(const char *path, struct tarn_graph **graph,
                                 struct tarn_error *error)
{
    struct tarn_report report = {.error = error, .path = path};
    char *text = NULL;
    size_t size = 0;
    tarn_error_clear(error);
    *graph = NULL;
    if (strcmp(path, "-") == 0) report.path = "standard input";
    enum tarn_status status = tarn_text_read(path, &text, &size, error);
    if (!status)
        status = tarn_interval_is(path, text) ? tarn_interval_decode(&report, text, size, graph)
                                              : load_json(&report, text, size, graph);
    free(text);
    return status;
}

/* ---- Writing ---- */

static void write_number(FILE *file, const char *key, uint64_t number, uint64_t usual)
{
    if (number != usual) fprintf(file, ",\"%s\":%" PRIu64, key, number);
}

static void write_list(FILE *file, const char *key, const uint32_t *ids, size_t count)
{
    fprintf(file, ",\"%s\":", key);
    tarn_json_write_ids(file, ids, count);
}

static void write_choices(const struct tarn_graph_op *op, FILE *file)
{
    for (uint32_t i = 0; i < op->inplace_count; i++) {
        fputs(i > 0 ? "," : ",\"inplace\":[", file);
        tarn_json_write_ids(file, op->inplace[i], 2);
    }
    if (op->inplace_count > 0) fputc(']', file);
    if (op->recomputable != TARN_RECOMPUTABLE_BY_RULE)
        fprintf(file, ",\"recomputable\":%s",
                op->recomputable == TARN_RECOMPUTABLE ? "true" : "false");
    for (uint32_t i = 0; i < op->implementations_count; i++) {
        fputs(i > 0 ? ",{\"name\":" : ",\"implementations\":[{\"name\":", file);
        tarn_json_write_string(file, op->implementations[i].name);
        fprintf(file, ",\"cost\":%" PRIu64, op->implementations[i].cost);
        write_number(file, "workspace", op->implementations[i].workspace, 0);
        if (op->implementations[i].inputs.count > 0)
            write_list(file, "inputs", op->implementations[i].inputs.ids,
                       op->implementations[i].inputs.count);
        if (op->implementations[i].outputs.count > 0)
            write_list(file, "outputs", op->implementations[i].outputs.ids,
                       op->implementations[i].outputs.count);
        fputc('}', file);
    }
    if (op->implementations_count > 0) fputc(']', file);
    if (op->common_is_given) write_list(file, "common", op->common, op->common_count);
}

static void write_op(const struct tarn_graph *graph, uint32_t v, FILE *file)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    fprintf(file, "{\"id\":%" PRIu32 ",\"name\":", v);
    tarn_json_write_string(file, op->name);
    fputs(",\"kind\":", file);
    tarn_json_write_string(file, op->kind);
    fprintf(file, ",\"stream\":%" PRIu32, op->stream);
    write_list(file, "inputs", op->inputs, op->inputs_count);
    write_list(file, "outputs", op->outputs, op->outputs_count);
    if (op->control_count > 0) write_list(file, "control", op->control, op->control_count);
    write_number(file, "workspace", op->workspace, 0);
    write_number(file, "cost", op->cost, 0);
    write_number(file, "flops", op->flops, 0);
    if (op->view) fputs(",\"view\":true", file);
    write_choices(op, file);
    write_number(file, "origin", op->origin, v);
    write_number(file, "implementation", op->implementation, TARN_NONE);
    fputc('}', file);
}

static void write_tensor(const struct tarn_graph *graph, uint32_t t, FILE *file)
{
    const struct tarn_graph_tensor *tensor = &graph->tensors[t];
    fprintf(file, "{\"id\":%" PRIu32 ",\"name\":", t);
    tarn_json_write_string(file, tensor->name);
    fprintf(file, ",\"size\":%" PRIu64 ",\"kind\":\"%s\"", tensor->size,
            tarn_kind_text(tensor->kind));
    write_number(file, "alias_of", tensor->root, t);
    write_number(file, "alignment", tensor->alignment, 0);
    write_number(file, "origin", tensor->origin, t);
    fputc('}', file);
}

static void write_stream(const struct tarn_graph *graph, uint32_t s, FILE *file)
{
    fprintf(file, "{\"id\":%" PRIu32 ",\"name\":", s);
    tarn_json_write_string(file, graph->streams[s].name);
    fputc('}', file);
}

static void write_group(const struct tarn_graph *graph, uint32_t g, FILE *file)
{
    const struct tarn_group *group = &graph->groups[g];
    for (uint32_t i = 0; i < group->storages_count; i++)
        fprintf(file, "%s%" PRIu32, i > 0 ? "," : "[", graph->storages[group->storages[i]].tensor);
    fputc(']', file);
}

static void write_records(const struct tarn_graph *graph, FILE *file, const char *key,
                          uint32_t count,
                          void (*write)(const struct tarn_graph *, uint32_t, FILE *))
{
    fprintf(file, ",\n\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", file);
        write(graph, i, file);
    }
    fputs(count > 0 ? "\n]" : "]", file);
}

void tarn_graph_write(const struct tarn_graph *graph, FILE *file)
{
    fputs("{\"format\":\"tarn.graph\",\"version\":1,\"name\":", file);
    tarn_json_write_string(file, graph->name);
    fprintf(file, ",\n\"meta\":%s", graph->meta);
    write_records(graph, file, "streams", graph->streams_count, write_stream);
    write_records(graph, file, "ops", graph->ops_count, write_op);
    write_records(graph, file, "tensors", graph->tensors_count, write_tensor);
    write_records(graph, file, "contiguous", graph->groups_count, write_group);
    fputc('}', file);
}

static void print_graph(const void *graph, FILE *file)
{
    tarn_graph_write(graph, file);
    fputc('\n', file);
}

enum tarn_status tarn_graph_save(const struct tarn_graph *graph, const char *path,
                                 struct tarn_error *error)
{
    tarn_error_clear(error);
    if (tarn_text_is_named(path, "csv")) return tarn_interval_save(graph, NULL, path, error);
    return tarn_text_save(path, print_graph, graph, error);
}
