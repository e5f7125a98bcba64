/* `tarn.graph` version 1: JSON in, builder calls out. The loader checks what only a file can get
 * wrong (types, fields, ids that do not number the list); every other rule is the builder's.
 * Cost: linear.
 */
#include "graph_read.h"

#include <string.h>

#include "interval_read.h"
#include "streams/base/array.h"
#include "streams/base/escape.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/graph/builder.h"
#include "streams/text/text_file.h"

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

/* ---- Records ---- */

static enum tarn_status read_stream(struct tarn_graph_loader *loader, const struct tarn_json_at *at)
{
    struct tarn_json_at fields[TARN_COUNT_OF(stream_fields)];
    const char *name = NULL;
    enum tarn_status status =
        tarn_json_fields(at, stream_fields, TARN_COUNT_OF(stream_fields), fields);
    if (!status) status = tarn_json_own_id(&fields[STREAM_ID]);
    if (!status) status = tarn_json_string(&fields[STREAM_NAME], &name);
    if (!status) tarn_builder_stream(loader->builder, name);
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

static enum tarn_status read_space(struct tarn_graph_loader *loader, const struct tarn_json_at *at)
{
    static const struct tarn_json_field names[] = {
        {"id", true}, {"name", true}, {"kind", false}, {"alignment", false}, {"capacity", false}};
    struct tarn_json_at fields[TARN_COUNT_OF(names)];
    struct tarn_space_info info = {0};
    enum tarn_status status = tarn_json_fields(at, names, TARN_COUNT_OF(names), fields);
    if (!status) status = tarn_json_own_id(&fields[0]);
    if (!status) status = tarn_json_string(&fields[1], &info.name);
    if (!status) status = read_space_kind(&fields[2], &info.kind);
    if (!status) status = tarn_json_integer(&fields[3], &info.alignment);
    if (!status) status = tarn_json_integer(&fields[4], &info.capacity);
    if (!status) tarn_builder_space(loader->builder, &info);
    return status;
}

static enum tarn_status read_tensor(struct tarn_graph_loader *loader, const struct tarn_json_at *at)
{
    struct tarn_json_at fields[TARN_COUNT_OF(tensor_fields)];
    struct tarn_tensor_info info = {0};
    tarn_tensor root = TARN_NONE, origin = (uint32_t)at->index;
    enum tarn_status status =
        tarn_json_fields(at, tensor_fields, TARN_COUNT_OF(tensor_fields), fields);
    if (!status) status = tarn_json_own_id(&fields[TENSOR_ID]);
    if (!status) status = tarn_json_string(&fields[TENSOR_NAME], &info.name);
    if (!status) status = tarn_json_integer(&fields[TENSOR_SIZE], &info.size);
    if (!status) status = read_kind(&fields[TENSOR_KIND], &info.kind);
    if (!status) status = tarn_json_id(&fields[TENSOR_ALIAS_OF], &root);
    if (!status) status = tarn_json_integer(&fields[TENSOR_ALIGNMENT], &info.alignment);
    if (!status) status = tarn_json_id(&fields[TENSOR_SPACE], &info.space);
    if (!status) status = tarn_json_id(&fields[TENSOR_ORIGIN], &origin);
    if (status != TARN_OK) return status;
    tarn_builder_alias_of(loader->builder, &info, root);
    tarn_builder_tensor_origin(loader->builder, origin);
    return TARN_OK;
}

/* A list of tensors, or an object with such a list that says more of the group. */
static enum tarn_status read_group(struct tarn_graph_loader *loader, const struct tarn_json_at *at)
{
    static const struct tarn_json_field names[] = {{"tensors", true}, {"padded", false}};
    struct tarn_json_at fields[TARN_COUNT_OF(names)] = {*at, {.value = NULL}};
    enum tarn_status status = TARN_OK;
    bool padded = false;
    if (tarn_json_is_object(at)) status = tarn_json_fields(at, names, TARN_COUNT_OF(names), fields);
    if (!status) status = tarn_json_boolean(&fields[1], &padded);
    if (!status) status = tarn_json_ids(&fields[0], &loader->members);
    if (status != TARN_OK) return status;
    struct tarn_list tensors = {loader->members.ids, loader->members.count};
    if (padded)
        tarn_builder_group_padded(loader->builder, tensors);
    else
        tarn_builder_group(loader->builder, tensors);
    return TARN_OK;
}

/* What is wrong with a record's fields is said with the record's name. */
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

static enum tarn_status read_list(struct tarn_graph_loader *loader, const struct tarn_json_at *at,
                                  enum tarn_status (*read)(struct tarn_graph_loader *,
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

static enum tarn_status read_meta(struct tarn_graph_loader *loader, const struct tarn_json_at *at)
{
    const char *text = NULL;
    if (!at->value) return TARN_OK;
    enum tarn_status status = tarn_json_keep(at, &loader->region, &text);
    if (!status) tarn_builder_meta(loader->builder, text);
    return status;
}

static enum tarn_status read_document(struct tarn_graph_loader *loader,
                                      const struct tarn_json_at *fields)
{
    enum tarn_status status = read_meta(loader, &fields[TOP_META]);
    if (!status) status = read_list(loader, &fields[TOP_SPACES], read_space);
    if (!status) status = read_list(loader, &fields[TOP_STREAMS], read_stream);
    if (!status) status = read_list(loader, &fields[TOP_OPS], tarn_load_op);
    if (!status) status = read_list(loader, &fields[TOP_TENSORS], read_tensor);
    if (!status) status = read_list(loader, &fields[TOP_GROUPS], read_group);
    return status;
}

static enum tarn_status decode(const struct tarn_json_at *document, struct tarn_graph **graph)
{
    struct tarn_graph_loader loader = {.builder = NULL};
    struct tarn_json_ids *lists[] = {&loader.inputs,  &loader.outputs, &loader.control,
                                     &loader.inplace, &loader.members, &loader.choices,
                                     &loader.common};
    for (size_t i = 0; i < TARN_COUNT_OF(lists); i++) lists[i]->region = &loader.region;
    struct tarn_json_at fields[TARN_COUNT_OF(top_fields)];
    const char *name = NULL;
    *graph = NULL;
    enum tarn_status status = tarn_json_check_format(document, "tarn.graph");
    if (!status) status = tarn_json_fields(document, top_fields, TARN_COUNT_OF(top_fields), fields);
    if (!status) status = tarn_json_string(&fields[TOP_NAME], &name);
    if (status != TARN_OK) return status;
    loader.builder = tarn_builder_create(name);
    tarn_builder_read_from(loader.builder, document->report);
    status = read_document(&loader, fields);
    if (!status)
        status = tarn_builder_finish(loader.builder, graph, document->report->error);
    else
        tarn_builder_destroy(loader.builder);
    tarn_region_finish(&loader.region);
    return status;
}

enum tarn_status tarn_graph_decode_inside(const struct tarn_json_at *at, struct tarn_graph **graph)
{
    struct tarn_report report = *at->report;
    report.base = "/graph"; /* the builder's errors count from there too */
    return decode(&(struct tarn_json_at){.report = &report, .value = at->value}, graph);
}

static enum tarn_status load_json(struct tarn_report *report, const char *text, size_t size,
                                  struct tarn_graph **graph)
{
    struct tarn_json_at document;
    enum tarn_status status = tarn_json_parse(report, text, size, &document);
    if (!status) status = decode(&document, graph);
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
