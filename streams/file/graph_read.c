/* `tarn.graph` version 1: JSON in, builder calls out. The loader checks what only a file can get
 * wrong (types, fields, ids that do not number the list); every other rule is the builder's.
 * Cost: linear.
 */
#include "graph_read.h"

#include <string.h>

#include "interval_read.h"
#include "streams/base/escape.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/graph/builder.h"
#include "streams/graph/validate.h"
#include "streams/text/text_file.h"

#define META_DEPTH_MAX 64

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
    TENSOR_ALIGNMENT,
    TENSOR_ORIGIN,
    TENSOR_SPACE
};
static const struct tarn_json_field tensor_fields[] = {
    [TENSOR_ID] = {"id", true},
    [TENSOR_NAME] = {"name", true},
    [TENSOR_SIZE] = {"size", true},
    [TENSOR_KIND] = {"kind", true},
    [TENSOR_ALIAS_OF] = {"alias_of", false},
    [TENSOR_ALIGNMENT] = {"alignment", false},
    [TENSOR_ORIGIN] = {"origin", false},
    [TENSOR_SPACE] = {"space", false},
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- Records ---- */

static enum tarn_status read_stream(struct tarn_graph_loader *loader, const struct tarn_json_at *at,
                                    const struct tarn_json *value)
{
    const struct tarn_json *fields[COUNT_OF(stream_fields)];
    const char *text = NULL;
    struct tarn_json_at name = tarn_json_in(at, "name", 0);
    enum tarn_status status =
        tarn_json_fields(loader->report, at, value, stream_fields, COUNT_OF(stream_fields), fields);
    if (!status) status = tarn_json_own_id(loader->report, at, fields[STREAM_ID]);
    if (!status) status = tarn_json_string(loader->report, &name, fields[STREAM_NAME], &text);
    if (!status) tarn_builder_stream(loader->builder, text);
    return status;
}

static enum tarn_status read_kind(const struct tarn_graph_loader *loader,
                                  const struct tarn_json_at *at, const struct tarn_json *value,
                                  enum tarn_tensor_kind *kind)
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

static enum tarn_status read_space_kind(const struct tarn_graph_loader *loader,
                                        const struct tarn_json_at *at,
                                        const struct tarn_json *value, enum tarn_space_kind *kind)
{
    const char *text = "device";
    enum tarn_status status = value ? tarn_json_string(loader->report, at, value, &text) : TARN_OK;
    if (status != TARN_OK) return status;
    for (*kind = TARN_SPACE_DEVICE; *kind <= TARN_SPACE_SCRATCH;
         *kind = (enum tarn_space_kind)(*kind + 1)) {
        if (strcmp(text, tarn_space_kind_text(*kind)) == 0) return TARN_OK;
    }
    return tarn_json_bad(loader->report, at,
                         "unknown kind %s; kinds of memory spaces are device, pinned, scratch",
                         tarn_quote(text).text);
}

static enum tarn_status read_space(struct tarn_graph_loader *loader, const struct tarn_json_at *at,
                                   const struct tarn_json *value)
{
    static const struct tarn_json_field names[] = {
        {"id", true}, {"name", true}, {"kind", false}, {"alignment", false}, {"capacity", false}};
    const struct tarn_json *fields[COUNT_OF(names)];
    struct tarn_space_info info = {0};
    struct tarn_json_at name = tarn_json_in(at, "name", 0), kind = tarn_json_in(at, "kind", 0),
                        alignment = tarn_json_in(at, "alignment", 0),
                        capacity = tarn_json_in(at, "capacity", 0);
    enum tarn_status status =
        tarn_json_fields(loader->report, at, value, names, COUNT_OF(names), fields);
    if (!status) status = tarn_json_own_id(loader->report, at, fields[0]);
    if (!status) status = tarn_json_string(loader->report, &name, fields[1], &info.name);
    if (!status) status = read_space_kind(loader, &kind, fields[2], &info.kind);
    if (!status)
        status = tarn_json_integer(loader->report, &alignment, fields[3], TARN_JSON_INTEGER_MAX,
                                   &info.alignment);
    if (!status)
        status = tarn_json_integer(loader->report, &capacity, fields[4], TARN_JSON_INTEGER_MAX,
                                   &info.capacity);
    if (!status) tarn_builder_space(loader->builder, &info);
    return status;
}

static enum tarn_status read_tensor(struct tarn_graph_loader *loader, const struct tarn_json_at *at,
                                    const struct tarn_json *value)
{
    const struct tarn_report *report = loader->report;
    const struct tarn_json *fields[COUNT_OF(tensor_fields)];
    struct tarn_tensor_info info = {0};
    tarn_tensor root = TARN_NONE, origin = (uint32_t)at->index;
    struct tarn_json_at name = tarn_json_in(at, "name", 0), size = tarn_json_in(at, "size", 0),
                        kind = tarn_json_in(at, "kind", 0), alias = tarn_json_in(at, "alias_of", 0),
                        alignment = tarn_json_in(at, "alignment", 0),
                        space = tarn_json_in(at, "space", 0),
                        origin_at = tarn_json_in(at, "origin", 0);
    enum tarn_status status =
        tarn_json_fields(report, at, value, tensor_fields, COUNT_OF(tensor_fields), fields);
    if (!status) status = tarn_json_own_id(loader->report, at, fields[TENSOR_ID]);
    if (!status) status = tarn_json_string(report, &name, fields[TENSOR_NAME], &info.name);
    if (!status)
        status = tarn_json_integer(report, &size, fields[TENSOR_SIZE], TARN_JSON_INTEGER_MAX,
                                   &info.size);
    if (!status) status = read_kind(loader, &kind, fields[TENSOR_KIND], &info.kind);
    if (!status) status = tarn_json_id(report, &alias, fields[TENSOR_ALIAS_OF], &root);
    if (!status)
        status = tarn_json_integer(report, &alignment, fields[TENSOR_ALIGNMENT],
                                   TARN_JSON_INTEGER_MAX, &info.alignment);
    if (!status) status = tarn_json_id(report, &space, fields[TENSOR_SPACE], &info.space);
    if (!status) status = tarn_json_id(report, &origin_at, fields[TENSOR_ORIGIN], &origin);
    if (status != TARN_OK) return status;
    tarn_builder_alias_of(loader->builder, &info, root);
    tarn_builder_tensor_origin(loader->builder, origin);
    return TARN_OK;
}

/* A list of tensors, or an object with such a list that says more of the group. */
static enum tarn_status read_group(struct tarn_graph_loader *loader, const struct tarn_json_at *at,
                                   const struct tarn_json *value)
{
    static const struct tarn_json_field fields[] = {{"tensors", true}, {"padded", false}};
    const struct tarn_json *values[COUNT_OF(fields)] = {value, NULL};
    struct tarn_json_at tensors_at = *at, padded_at = tarn_json_in(at, "padded", 0);
    enum tarn_status status = TARN_OK;
    bool padded = false;
    if (tarn_json_type_of(value) == TARN_JSON_OBJECT) {
        status = tarn_json_fields(loader->report, at, value, fields, COUNT_OF(fields), values);
        tensors_at = tarn_json_in(at, "tensors", 0);
    }
    if (!status) status = tarn_json_boolean(loader->report, &padded_at, values[1], &padded);
    if (!status) status = tarn_json_ids(loader->report, &tensors_at, values[0], &loader->members);
    if (status != TARN_OK) return status;
    struct tarn_list tensors = {loader->members.ids, loader->members.count};
    if (padded)
        tarn_builder_group_padded(loader->builder, tensors);
    else
        tarn_builder_group(loader->builder, tensors);
    return TARN_OK;
}

/* What is wrong with a record's fields is said with the record's name. */
static void name_record(const struct tarn_graph_loader *loader, const char *list, size_t index,
                        const struct tarn_json *record)
{
    struct tarn_error *error = loader->report->error;
    struct tarn_json_member member = {0};
    const char *name = NULL;
    if (!error || error->status != TARN_BAD_INPUT) return;
    bool is_object = tarn_json_type_of(record) == TARN_JSON_OBJECT;
    while (is_object && !name && tarn_json_next_member(record, &member)) {
        bool is_name = strcmp(member.key, "name") == 0;
        if (is_name && tarn_json_type_of(member.value) == TARN_JSON_STRING)
            name = tarn_json_characters(member.value);
    }
    if (strcmp(list, "ops") == 0) error->op = (uint32_t)index;
    if (strcmp(list, "tensors") == 0) error->tensor = (uint32_t)index;
    size_t used = strlen(error->text);
    if (name)
        snprintf(error->text + used, sizeof error->text - used, " (in %s)", tarn_quote(name).text);
    tarn_escape_message(error->text);
}

static enum tarn_status
read_list(struct tarn_graph_loader *loader, const char *key, const struct tarn_json *value,
          enum tarn_status (*read)(struct tarn_graph_loader *, const struct tarn_json_at *,
                                   const struct tarn_json *))
{
    struct tarn_json_at at = tarn_json_in(NULL, key, 0);
    size_t count = 0;
    enum tarn_status status = tarn_json_array(loader->report, &at, value, &count);
    const struct tarn_json *record = tarn_json_first(value);
    for (size_t i = 0; record && !status; i++, record = tarn_json_next(record)) {
        struct tarn_json_at place = tarn_json_in(&at, NULL, i);
        status = read(loader, &place, record);
        if (status != TARN_OK) name_record(loader, key, i, record);
    }
    return status;
}

/* ---- The document ---- */

static void print_meta(const void *value, FILE *file) { tarn_json_write_compact(value, file); }

static enum tarn_status read_meta(struct tarn_graph_loader *loader, const struct tarn_json *value)
{
    struct tarn_json_at at = tarn_json_in(NULL, "meta", 0);
    const struct tarn_report *report = loader->report;
    const char *twin = NULL;
    if (!value) return TARN_OK;
    if (tarn_json_type_of(value) != TARN_JSON_OBJECT)
        return tarn_json_bad(report, &at, "must be an object");
    if (tarn_json_depth(value) > META_DEPTH_MAX)
        return tarn_json_bad(report, &at, "is nested deeper than %d levels", META_DEPTH_MAX);
    if (!tarn_json_find_twin(value, &twin)) return tarn_error_no_memory(report->error);
    if (twin)
        return tarn_json_bad(report, &at, "an object has the key %s twice", tarn_quote(twin).text);
    char *text = tarn_text_print(print_meta, value, NULL);
    if (!text) return tarn_error_no_memory(report->error);
    tarn_builder_meta(loader->builder, text);
    tarn_free(text);
    return TARN_OK;
}

static enum tarn_status read_document(struct tarn_graph_loader *loader,
                                      const struct tarn_json **fields)
{
    enum tarn_status status = read_meta(loader, fields[TOP_META]);
    if (!status && fields[TOP_SPACES])
        status = read_list(loader, "spaces", fields[TOP_SPACES], read_space);
    if (!status) status = read_list(loader, "streams", fields[TOP_STREAMS], read_stream);
    if (!status) status = read_list(loader, "ops", fields[TOP_OPS], tarn_load_op);
    if (!status) status = read_list(loader, "tensors", fields[TOP_TENSORS], read_tensor);
    if (!status) status = read_list(loader, "contiguous", fields[TOP_GROUPS], read_group);
    return status;
}

static void loader_finish(struct tarn_graph_loader *loader)
{
    tarn_builder_destroy(loader->builder);
    tarn_region_finish(&loader->region);
}

enum tarn_status tarn_graph_decode(const struct tarn_report *report,
                                   const struct tarn_json *document, struct tarn_graph **graph)
{
    struct tarn_graph_loader loader = {.report = report};
    struct tarn_json_ids *lists[] = {&loader.inputs,  &loader.outputs, &loader.control,
                                     &loader.inplace, &loader.members, &loader.choices,
                                     &loader.common};
    for (size_t i = 0; i < COUNT_OF(lists); i++) lists[i]->region = &loader.region;
    const struct tarn_json *fields[COUNT_OF(top_fields)];
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

static enum tarn_status load_json(const struct tarn_report *report, char *text, size_t size,
                                  struct tarn_graph **graph)
{
    const struct tarn_json *document;
    enum tarn_status status = tarn_json_parse(report, text, size, &document);
    return status ? status : tarn_graph_decode(report, document, graph);
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
    report.text_max = !status && options.text_max > 0 ? options.text_max : TARN_TEXT_MAX;
    if (!status) status = tarn_text_take(reader, report.text_max, &text, &size, error);
    if (!status)
        status = tarn_interval_is(reader->name, text)
                     ? tarn_interval_decode(&report, text, size, graph)
                     : load_json(&report, text, size, graph);
    if (!status) (*graph)->text_max = report.text_max;
    tarn_free(text);
    return status;
}

enum tarn_status tarn_graph_load_with(const char *path, const struct tarn_load_options *options,
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
    return status ? status : load(&reader, options, graph, error);
}

enum tarn_status tarn_graph_load(const char *path, struct tarn_graph **graph,
                                 struct tarn_error *error)
{
    return tarn_graph_load_with(path, NULL, graph, error);
}
