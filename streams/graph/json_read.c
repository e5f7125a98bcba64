/* Decoding JSON with jansson. Syntax errors come with line and column, errors of meaning with a
 * JSON pointer (RFC 6901), which is spelt out from a chain of places only when it is needed. Cost:
 * one pass; finding an object's fields is linear in fields times known names, and about as fast as
 * their number when files list them in a fixed order.
 */
#include "json_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text_file.h"

/* ---- Syntax ---- */

static enum tarn_status syntax_error(const struct tarn_report *report, const json_error_t *error)
{
    struct tarn_error *result = report->error;
    bool has_no_memory = json_error_code(error) == json_error_out_of_memory ||
                         error->text[0] == '\0'; /* jansson mostly has nothing to say then */
    if (has_no_memory) return tarn_error_no_memory(result);
    bool is_first = result && result->status == TARN_OK;
    char text[sizeof error->text];
    size_t length = strnlen(error->text, sizeof text - 1);
    for (size_t i = 0; i < length; i++)
        text[i] = (unsigned char)error->text[i] < 0x20 ? '?' : error->text[i];
    text[length] = '\0';
    int column = error->column > 0 ? error->column : 1;
    bool has_null = json_error_code(error) == json_error_null_character;
    tarn_error_set(result, TARN_BAD_INPUT, "%s: line %d, column %d: %s",
                   report->path ? report->path : "", error->line, column,
                   has_null ? "a string contains \\u0000" : text);
    if (is_first) {
        result->line = error->line > 0 ? (uint32_t)error->line : 0;
        result->column = (uint32_t)column;
    }
    return TARN_BAD_INPUT;
}

enum tarn_status tarn_json_parse(const struct tarn_report *report, const char *text, size_t size,
                                 json_t **document)
{
    json_error_t error;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return tarn_json_bad(report, NULL,
                             "the text begins with a byte order mark; save it as plain UTF-8");
    *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    return *document ? TARN_OK : syntax_error(report, &error);
}

enum tarn_status tarn_json_load(struct tarn_report *report, const char *path, json_t **document)
{
    char *text = NULL;
    size_t size = 0;
    report->path = strcmp(path, "-") == 0 ? "standard input" : path;
    *document = NULL;
    enum tarn_status status = tarn_text_read(path, &text, &size, report->error);
    if (!status) status = tarn_json_parse(report, text, size, document);
    free(text);
    return status;
}

/* ---- Places ---- */

static void spell(struct tarn_spot *spot, const struct tarn_json_at *at)
{
    if (!at) return;
    spell(spot, at->parent);
    if (at->key) {
        tarn_spot_append_key(spot, at->key);
    } else {
        char number[24];
        snprintf(number, sizeof number, "%zu", at->index);
        tarn_spot_append_key(spot, number);
    }
}

enum tarn_status tarn_json_bad(const struct tarn_report *report, const struct tarn_json_at *at,
                               const char *format, ...)
{
    char text[sizeof((struct tarn_error *)0)->text];
    struct tarn_spot spot = {.op = TARN_NONE, .tensor = TARN_NONE};
    spell(&spot, at);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tarn_report_bad(report, spot, "%s", text);
}

/* ---- Types ---- */

static const char *type_text(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number with a fraction or exponent";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: return "null";
    }
    return "something else";
}

static enum tarn_status wrong_type(const struct tarn_report *report, const struct tarn_json_at *at,
                                   const json_t *value, const char *wanted)
{
    return tarn_json_bad(report, at, "must be %s, not %s", wanted, type_text(value));
}

enum tarn_status tarn_json_integer(const struct tarn_report *report, const struct tarn_json_at *at,
                                   json_t *value, uint64_t max, uint64_t *result)
{
    if (!value) return TARN_OK;
    if (!json_is_integer(value)) return wrong_type(report, at, value, "an integer");
    json_int_t number = json_integer_value(value);
    if (number < 0 || (uint64_t)number > max)
        return tarn_json_bad(report, at,
                             "must be an integer from 0 to %llu, not %" JSON_INTEGER_FORMAT,
                             (unsigned long long)max, number);
    *result = (uint64_t)number;
    return TARN_OK;
}

enum tarn_status tarn_json_id(const struct tarn_report *report, const struct tarn_json_at *at,
                              json_t *value, uint32_t *result)
{
    uint64_t number = *result;
    enum tarn_status status = tarn_json_integer(report, at, value, TARN_NONE - 1, &number);
    *result = (uint32_t)number;
    return status;
}

enum tarn_status tarn_json_own_id(const struct tarn_report *report,
                                  const struct tarn_json_at *record, json_t *value)
{
    struct tarn_json_at at = tarn_json_in(record, "id", 0);
    uint32_t id = 0;
    enum tarn_status status = tarn_json_id(report, &at, value, &id);
    if (status == TARN_OK && id != record->index)
        return tarn_json_bad(report, &at,
                             "the id is %" PRIu32 ", but ids number the list from 0, so %zu is "
                             "expected here",
                             id, record->index);
    return status;
}

enum tarn_status tarn_json_boolean(const struct tarn_report *report, const struct tarn_json_at *at,
                                   json_t *value, bool *result)
{
    if (!value) return TARN_OK;
    if (!json_is_boolean(value)) return wrong_type(report, at, value, "true or false");
    *result = json_is_true(value);
    return TARN_OK;
}

enum tarn_status tarn_json_string(const struct tarn_report *report, const struct tarn_json_at *at,
                                  json_t *value, const char **result)
{
    if (!value) return TARN_OK;
    if (!json_is_string(value)) return wrong_type(report, at, value, "a string");
    *result = json_string_value(value);
    return TARN_OK;
}

enum tarn_status tarn_json_array(const struct tarn_report *report, const struct tarn_json_at *at,
                                 json_t *value, size_t *count)
{
    if (!value) return TARN_OK;
    if (!json_is_array(value)) return wrong_type(report, at, value, "an array");
    *count = json_array_size(value);
    return TARN_OK;
}

/* ---- Lists of ids ---- */

bool tarn_json_ids_reserve(struct tarn_json_ids *ids, size_t count)
{
    count += ids->count;
    if (count <= ids->capacity) return true;
    uint32_t *larger = realloc(ids->ids, 2 * count * sizeof *larger);
    if (!larger) return false;
    ids->ids = larger;
    ids->capacity = 2 * count;
    return true;
}

enum tarn_status tarn_json_ids_append(const struct tarn_report *report,
                                      const struct tarn_json_at *at, json_t *value,
                                      struct tarn_json_ids *ids, size_t *count)
{
    enum tarn_status status = tarn_json_array(report, at, value, count);
    if (status != TARN_OK) return status;
    if (!tarn_json_ids_reserve(ids, *count)) return tarn_error_no_memory(report->error);
    for (size_t i = 0; i < *count && status == TARN_OK; i++) {
        struct tarn_json_at place = tarn_json_in(at, NULL, i);
        status = tarn_json_id(report, &place, json_array_get(value, i), &ids->ids[ids->count++]);
    }
    return status;
}

enum tarn_status tarn_json_ids(const struct tarn_report *report, const struct tarn_json_at *at,
                               json_t *value, struct tarn_json_ids *ids)
{
    size_t count = 0;
    ids->count = 0;
    return tarn_json_ids_append(report, at, value, ids, &count);
}

/* ---- Objects ---- */

/* Looks from `hint` on, round: fields mostly come in the table's order. */
static size_t find_field(const struct tarn_json_field *fields, size_t count, size_t hint,
                         const char *key)
{
    for (size_t i = 0; i < count; i++) {
        size_t k = hint + i < count ? hint + i : hint + i - count;
        if (strcmp(fields[k].name, key) == 0) return k;
    }
    return count;
}

static enum tarn_status unknown_field(const struct tarn_report *report,
                                      const struct tarn_json_at *at, const char *key,
                                      const struct tarn_json_field *fields, size_t count)
{
    char known[256] = "";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", fields[i].name);
    }
    struct tarn_json_at place = tarn_json_in(at, key, 0);
    return tarn_json_bad(report, &place, "unknown field %s; known here are: %s",
                         tarn_quote(key).text, known);
}

enum tarn_status tarn_json_fields(const struct tarn_report *report, const struct tarn_json_at *at,
                                  json_t *object, const struct tarn_json_field *fields,
                                  size_t fields_count, json_t **values)
{
    if (!json_is_object(object)) return wrong_type(report, at, object, "an object");
    for (size_t i = 0; i < fields_count; i++) values[i] = NULL;
    const char *key;
    json_t *value;
    size_t hint = 0;
    json_object_foreach(object, key, value)
    {
        size_t k = find_field(fields, fields_count, hint, key);
        if (k == fields_count) return unknown_field(report, at, key, fields, fields_count);
        values[k] = value;
        hint = k + 1;
    }
    for (size_t i = 0; i < fields_count; i++) {
        if (!fields[i].required || values[i]) continue;
        return tarn_json_bad(report, at, "the field \"%s\" is missing", fields[i].name);
    }
    return TARN_OK;
}

enum tarn_status tarn_json_check_format(const struct tarn_report *report, json_t *document,
                                        const char *format)
{
    struct tarn_json_at format_at = tarn_json_in(NULL, "format", 0),
                        version_at = tarn_json_in(NULL, "version", 0);
    const char *found = NULL;
    uint64_t version = 1;
    if (!json_is_object(document))
        return tarn_json_bad(report, NULL, "the document must be an object");
    enum tarn_status status =
        tarn_json_string(report, &format_at, json_object_get(document, "format"), &found);
    if (!status && !found)
        return tarn_json_bad(report, NULL,
                             "the field \"format\" is missing; such a file begins with "
                             "{\"format\":\"%s\",\"version\":1",
                             format);
    if (!status && strcmp(found, format) != 0)
        return tarn_json_bad(report, &format_at, "this is a %s, not a \"%s\"",
                             tarn_quote(found).text, format);
    if (!status)
        status = tarn_json_integer(report, &version_at, json_object_get(document, "version"),
                                   TARN_JSON_INTEGER_MAX, &version);
    if (!status && version != 1)
        return tarn_json_bad(report, &version_at, "version %llu is not supported, only version 1",
                             (unsigned long long)version);
    return status;
}
