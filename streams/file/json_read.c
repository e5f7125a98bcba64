/* Decoding JSON. Syntax errors come with line and column, errors of meaning with a JSON pointer
 * (RFC 6901), which is spelt out from a chain of places only when it is needed. Cost: linear in the
 * text times the levels of nesting; finding an object's fields is linear in fields times known
 * names, and about as fast as their number when files list them in a fixed order.
 */
#include "json_read.h"

#include <inttypes.h>
#include <string.h>

#include "streams/base/memory.h"
#include "streams/text/text_file.h"

/* ---- Syntax ---- */

static enum tarn_status syntax_error(const struct tarn_report *report,
                                     const struct tarn_json_fault *fault)
{
    struct tarn_error *error = report->error;
    char found[32];
    snprintf(found, sizeof found, "%.*s", (int)strcspn(fault->found, " \t\r\n"), fault->found);
    tarn_error_set(error, TARN_BAD_INPUT, "%s: line %" PRIu32 ", column %" PRIu32 ": %s%s%s",
                   report->path, fault->line, fault->column, fault->what,
                   found[0] ? ", found " : "", found[0] ? tarn_quote(found).text : "");
    if (error) {
        error->line = fault->line;
        error->column = fault->column;
    }
    return TARN_BAD_INPUT;
}

enum tarn_status tarn_json_parse(const struct tarn_report *report, char *text, size_t size,
                                 const struct tarn_json **document)
{
    struct tarn_json_fault fault;
    *document = NULL;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return tarn_json_bad(report, NULL,
                             "the text begins with a byte order mark; save it as plain UTF-8");
    *document = tarn_json_check(text, size, &fault);
    return *document ? TARN_OK : syntax_error(report, &fault);
}

enum tarn_status tarn_json_load(struct tarn_report *report, const struct tarn_reader *reader,
                                char **text, const struct tarn_json **document)
{
    size_t size = 0;
    report->path = strcmp(reader->name, "-") == 0 ? "standard input" : reader->name;
    *text = NULL;
    *document = NULL;
    enum tarn_status status = tarn_text_take(reader, report->text_max, text, &size, report->error);
    if (!status) status = tarn_json_parse(report, *text, size, document);
    if (!status) return TARN_OK;
    tarn_free(*text);
    *text = NULL;
    return status;
}

/* ---- Places ---- */

static void spell(struct tarn_location *location, const struct tarn_json_at *at)
{
    if (!at) return;
    spell(location, at->parent);
    if (at->key) {
        tarn_location_append_key(location, at->key);
    } else {
        char number[24];
        snprintf(number, sizeof number, "%zu", at->index);
        tarn_location_append_key(location, number);
    }
}

enum tarn_status tarn_json_bad(const struct tarn_report *report, const struct tarn_json_at *at,
                               const char *format, ...)
{
    char text[sizeof((struct tarn_error *)0)->text];
    struct tarn_location location = {.op = TARN_NONE, .tensor = TARN_NONE};
    spell(&location, at);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tarn_report_bad(report, location, "%s", text);
}

/* ---- Types ---- */

static const char *const type_texts[] = {
    [TARN_JSON_OBJECT] = "an object",
    [TARN_JSON_ARRAY] = "an array",
    [TARN_JSON_STRING] = "a string",
    [TARN_JSON_INTEGER] = "an integer",
    [TARN_JSON_REAL] = "a number with a fraction or exponent",
    [TARN_JSON_BOOLEAN] = "true or false",
    [TARN_JSON_NULL] = "null",
};

static enum tarn_status wrong_type(const struct tarn_report *report, const struct tarn_json_at *at,
                                   const struct tarn_json *value, const char *wanted)
{
    return tarn_json_bad(report, at, "must be %s, not %s", wanted,
                         type_texts[tarn_json_type_of(value)]);
}

static bool is_of(const struct tarn_json *value, enum tarn_json_type type)
{
    return tarn_json_type_of(value) == type;
}

enum tarn_status tarn_json_integer(const struct tarn_report *report, const struct tarn_json_at *at,
                                   const struct tarn_json *value, uint64_t max, uint64_t *result)
{
    if (!value) return TARN_OK;
    if (!is_of(value, TARN_JSON_INTEGER)) return wrong_type(report, at, value, "an integer");
    size_t size;
    const char *token = tarn_json_token(value, &size);
    uint64_t number = 0;
    bool fits = *token != '-' || (size == 2 && token[1] == '0'); /* minus nothing is nothing */
    for (size_t i = *token == '-'; i < size && fits; i++) {
        number = number * 10 + (uint64_t)(token[i] - '0');
        fits = number <= max;
    }
    if (!fits)
        return tarn_json_bad(report, at, "must be an integer from 0 to %" PRIu64 ", not %.*s%s",
                             max, size > 24 ? 24 : (int)size, token, size > 24 ? "..." : "");
    *result = number;
    return TARN_OK;
}

enum tarn_status tarn_json_id(const struct tarn_report *report, const struct tarn_json_at *at,
                              const struct tarn_json *value, uint32_t *result)
{
    uint64_t number = *result;
    enum tarn_status status = tarn_json_integer(report, at, value, TARN_NONE - 1, &number);
    *result = (uint32_t)number;
    return status;
}

enum tarn_status tarn_json_own_id(const struct tarn_report *report,
                                  const struct tarn_json_at *record, const struct tarn_json *value)
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
                                   const struct tarn_json *value, bool *result)
{
    if (!value) return TARN_OK;
    if (!is_of(value, TARN_JSON_BOOLEAN)) return wrong_type(report, at, value, "true or false");
    size_t size;
    *result = *tarn_json_token(value, &size) == 't';
    return TARN_OK;
}

enum tarn_status tarn_json_string(const struct tarn_report *report, const struct tarn_json_at *at,
                                  const struct tarn_json *value, const char **result)
{
    if (!value) return TARN_OK;
    if (!is_of(value, TARN_JSON_STRING)) return wrong_type(report, at, value, "a string");
    *result = tarn_json_characters(value);
    return TARN_OK;
}

enum tarn_status tarn_json_array(const struct tarn_report *report, const struct tarn_json_at *at,
                                 const struct tarn_json *value, size_t *count)
{
    if (!value) return TARN_OK;
    if (!is_of(value, TARN_JSON_ARRAY)) return wrong_type(report, at, value, "an array");
    *count = 0;
    const struct tarn_json *element = tarn_json_first(value);
    for (; element; element = tarn_json_next(element)) (*count)++;
    return TARN_OK;
}

/* ---- Lists of ids ---- */

bool tarn_json_ids_reserve(struct tarn_json_ids *ids, size_t count)
{
    uint32_t *larger =
        tarn_region_grow(ids->region, ids->ids, &ids->capacity, ids->count + count, sizeof *larger);
    if (larger) ids->ids = larger;
    return larger != NULL;
}

enum tarn_status tarn_json_ids_append(const struct tarn_report *report,
                                      const struct tarn_json_at *at, const struct tarn_json *value,
                                      struct tarn_json_ids *ids, size_t *count)
{
    enum tarn_status status = tarn_json_array(report, at, value, count);
    if (status != TARN_OK) return status;
    if (!tarn_json_ids_reserve(ids, *count)) return tarn_error_no_memory(report->error);
    const struct tarn_json *element = tarn_json_first(value);
    for (size_t i = 0; element && !status; i++, element = tarn_json_next(element)) {
        struct tarn_json_at place = tarn_json_in(at, NULL, i);
        status = tarn_json_id(report, &place, element, &ids->ids[ids->count++]);
    }
    return status;
}

enum tarn_status tarn_json_ids(const struct tarn_report *report, const struct tarn_json_at *at,
                               const struct tarn_json *value, struct tarn_json_ids *ids)
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

static enum tarn_status field_twice(const struct tarn_report *report, const struct tarn_json_at *at,
                                    const char *name)
{
    struct tarn_json_at place = tarn_json_in(at, name, 0);
    return tarn_json_bad(report, &place, "the field \"%s\" is there twice", name);
}

enum tarn_status tarn_json_fields(const struct tarn_report *report, const struct tarn_json_at *at,
                                  const struct tarn_json *object,
                                  const struct tarn_json_field *fields, size_t fields_count,
                                  const struct tarn_json **values)
{
    struct tarn_json_member member = {0};
    size_t hint = 0;
    if (!is_of(object, TARN_JSON_OBJECT)) return wrong_type(report, at, object, "an object");
    for (size_t i = 0; i < fields_count; i++) values[i] = NULL;
    while (tarn_json_next_member(object, &member)) {
        size_t k = find_field(fields, fields_count, hint, member.key);
        if (k == fields_count) return unknown_field(report, at, member.key, fields, fields_count);
        if (values[k]) return field_twice(report, at, fields[k].name);
        values[k] = member.value;
        hint = k + 1;
    }
    for (size_t i = 0; i < fields_count; i++) {
        if (!fields[i].required || values[i]) continue;
        return tarn_json_bad(report, at, "the field \"%s\" is missing", fields[i].name);
    }
    return TARN_OK;
}

enum tarn_status tarn_json_check_format(const struct tarn_report *report,
                                        const struct tarn_json *document, const char *format)
{
    struct tarn_json_at format_at = tarn_json_in(NULL, "format", 0),
                        version_at = tarn_json_in(NULL, "version", 0);
    const struct tarn_json *format_value = NULL, *version_value = NULL;
    struct tarn_json_member member = {0};
    const char *found = NULL;
    uint64_t version = 1;
    if (!is_of(document, TARN_JSON_OBJECT))
        return tarn_json_bad(report, NULL, "the document must be an object");
    while (tarn_json_next_member(document, &member)) {
        if (strcmp(member.key, "format") == 0) format_value = member.value;
        if (strcmp(member.key, "version") == 0) version_value = member.value;
    }
    enum tarn_status status = tarn_json_string(report, &format_at, format_value, &found);
    if (!status && !found)
        return tarn_json_bad(report, NULL,
                             "the field \"format\" is missing; such a file begins with "
                             "{\"format\":\"%s\",\"version\":1",
                             format);
    if (!status && strcmp(found, format) != 0)
        return tarn_json_bad(report, &format_at, "this is a %s, not a \"%s\"",
                             tarn_quote(found).text, format);
    if (!status)
        status =
            tarn_json_integer(report, &version_at, version_value, TARN_JSON_INTEGER_MAX, &version);
    if (!status && version != 1)
        return tarn_json_bad(report, &version_at, "version %llu is not supported, only version 1",
                             (unsigned long long)version);
    return status;
}
