/* Reports: "FILE: /json/pointer: what is wrong with op 12 "relu"". Validation locates errors by
 * JSON pointers. A graph built by calls has no file, so its messages have only names and ids.
 */
#include "report.h"

#include <stdio.h>
#include <string.h>

#include "streams/base/escape.h"

/* ---- Places ---- */

struct tarn_location tarn_location_at(uint32_t op, uint32_t tensor, const char *format, ...)
{
    struct tarn_location location = {.op = op, .tensor = tensor};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(location.pointer, sizeof location.pointer, format, arguments);
    va_end(arguments);
    return location;
}

void tarn_location_append_key(struct tarn_location *location, const char *key)
{
    size_t used = strlen(location->pointer);
    char *end =
        location->pointer + sizeof location->pointer - 3; /* room for an escape and the NUL */
    char *p = location->pointer + used;
    if (p < end) *p++ = '/';
    for (; *key && p < end; key++) {
        bool escaped = *key == '~' || *key == '/';
        if (escaped) *p++ = '~';
        *p++ = !escaped ? *key : *key == '~' ? '0' : '1';
    }
    *p = '\0';
}

/* Writes "FILE: POINTER: " and returns its length. */
static size_t write_prefix(char *text, size_t size, const char *path, const char *pointer)
{
    text[0] = '\0';
    if (!path) return 0;
    /* the end of a long path is more useful than its beginning */
    size_t length = strlen(path);
    bool is_long = length > 120;
    snprintf(text, size, "%s%s: %s%s", is_long ? "..." : "", is_long ? path + length - 120 : path,
             pointer, pointer[0] ? ": " : "");
    return strlen(text);
}

enum tarn_status tarn_report_bad(const struct tarn_report *report, struct tarn_location location,
                                 const char *format, ...)
{
    struct tarn_error *error = report->error;
    if (!error || error->status != TARN_OK) return TARN_BAD_INPUT;
    error->status = TARN_BAD_INPUT;
    error->op = location.op;
    error->tensor = location.tensor;
    if (report->path)
        snprintf(error->pointer, sizeof error->pointer, "%s%s", report->base ? report->base : "",
                 location.pointer);
    size_t begin = write_prefix(error->text, sizeof error->text, report->path, error->pointer);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text + begin, sizeof error->text - begin, format, arguments);
    va_end(arguments);
    tarn_escape_message(error->text);
    tarn_escape_message(error->pointer);
    return TARN_BAD_INPUT;
}

/* ---- Names ---- */

#define NAME_MAX_SHOWN 64

/* A name, safe to print, cut between two characters. */
static void write_name(char *text, size_t size, const char *name)
{
    if (tarn_text_escape(TARN_PLAIN, name, text, size) < size) return;
    tarn_text_escape(TARN_PLAIN, name, text, size - 3);
    strcat(text, "...");
}

static struct tarn_label label(const char *what, uint32_t id, const char *name)
{
    struct tarn_label result;
    char shown[NAME_MAX_SHOWN];
    write_name(shown, sizeof shown, name);
    if (shown[0])
        snprintf(result.text, sizeof result.text, "%s %u \"%s\"", what, id, shown);
    else
        snprintf(result.text, sizeof result.text, "%s %u", what, id);
    return result;
}

struct tarn_label tarn_op_label(const struct tarn_graph *graph, tarn_op op)
{
    return label("op", op, op < graph->ops_count ? graph->ops[op].name : "");
}

struct tarn_label tarn_stream_label(const struct tarn_graph *graph, tarn_stream stream)
{
    return label("stream", stream,
                 stream < graph->streams_count ? graph->streams[stream].name : "");
}

struct tarn_label tarn_tensor_label(const struct tarn_graph *graph, tarn_tensor tensor)
{
    return label("tensor", tensor,
                 tensor < graph->tensors_count ? graph->tensors[tensor].name : "");
}

struct tarn_label tarn_storage_label(const struct tarn_graph *graph, uint32_t storage)
{
    const struct tarn_storage *record = &graph->storages[storage];
    if (record->tensor != TARN_NONE) return tarn_tensor_label(graph, record->tensor);
    return label("workspace of op", record->producer, graph->ops[record->producer].name);
}

struct tarn_label tarn_space_phrase(const struct tarn_graph *graph, uint32_t space)
{
    struct tarn_label result = {""};
    if (space < graph->spaces_count)
        snprintf(result.text, sizeof result.text, " of memory space %u %.64s", space,
                 tarn_quote(graph->spaces[space].name).text);
    return result;
}

struct tarn_label tarn_quote(const char *text)
{
    struct tarn_label result;
    char shown[NAME_MAX_SHOWN];
    write_name(shown, sizeof shown, text);
    snprintf(result.text, sizeof result.text, "\"%s\"", shown);
    return result;
}
