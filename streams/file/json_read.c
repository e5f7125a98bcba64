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

#define KEPT_DEPTH_MAX 64

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
                                 struct tarn_json_at *document)
{
    struct tarn_json_fault fault;
    *document = (struct tarn_json_at){.report = report};
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return tarn_json_bad(document,
                             "the text begins with a byte order mark; save it as plain UTF-8");
    document->value = tarn_json_check(text, size, &fault);
    return document->value ? TARN_OK : syntax_error(report, &fault);
}

enum tarn_status tarn_json_load(struct tarn_report *report, const struct tarn_reader *reader,
                                char **text, struct tarn_json_at *document)
{
    size_t size = 0;
    report->path = strcmp(reader->name, "-") == 0 ? "standard input" : reader->name;
    *text = NULL;
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
    if (!at->parent) return;
    spell(location, at->parent);
    if (at->key) {
        tarn_location_append_key(location, at->key);
    } else {
        char number[24];
        snprintf(number, sizeof number, "%zu", at->index);
        tarn_location_append_key(location, number);
    }
}

enum tarn_status tarn_json_bad(const struct tarn_json_at *at, const char *format, ...)
{
    char text[sizeof((struct tarn_error *)0)->text];
    struct tarn_location location = {.op = TARN_NONE, .tensor = TARN_NONE};
    spell(&location, at);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tarn_report_bad(at->report, location, "%s", text);
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

static bool is_of(const struct tarn_json_at *at, enum tarn_json_type type)
{
    return tarn_json_type_of(at->value) == type;
}

static enum tarn_status check_type(const struct tarn_json_at *at, enum tarn_json_type type)
{
    if (is_of(at, type)) return TARN_OK;
    return tarn_json_bad(at, "must be %s, not %s", type_texts[type],
                         type_texts[tarn_json_type_of(at->value)]);
}

static enum tarn_status read_number(const struct tarn_json_at *at, uint64_t max, uint64_t *result)
{
    enum tarn_status status = check_type(at, TARN_JSON_INTEGER);
    if (status != TARN_OK) return status;
    size_t size;
    const char *token = tarn_json_token(at->value, &size);
    uint64_t number = 0;
    bool fits = *token != '-' || (size == 2 && token[1] == '0'); /* minus nothing is nothing */
    for (size_t i = *token == '-'; i < size && fits; i++) {
        number = number * 10 + (uint64_t)(token[i] - '0');
        fits = number <= max;
    }
    if (!fits)
        return tarn_json_bad(at, "must be an integer from 0 to %" PRIu64 ", not %.*s%s", max,
                             size > 24 ? 24 : (int)size, token, size > 24 ? "..." : "");
    *result = number;
    return TARN_OK;
}

enum tarn_status tarn_json_integer(const struct tarn_json_at *at, uint64_t *result)
{
    return at->value ? read_number(at, TARN_NUMBER_MAX, result) : TARN_OK;
}

enum tarn_status tarn_json_id(const struct tarn_json_at *at, uint32_t *result)
{
    uint64_t number = *result;
    enum tarn_status status = at->value ? read_number(at, TARN_NONE - 1, &number) : TARN_OK;
    *result = (uint32_t)number;
    return status;
}

enum tarn_status tarn_json_own_id(const struct tarn_json_at *at)
{
    uint32_t id = 0;
    enum tarn_status status = tarn_json_id(at, &id);
    if (status == TARN_OK && id != at->parent->index)
        return tarn_json_bad(at,
                             "the id is %" PRIu32 ", but ids number the list from 0, so %zu is "
                             "expected here",
                             id, at->parent->index);
    return status;
}

enum tarn_status tarn_json_boolean(const struct tarn_json_at *at, bool *result)
{
    enum tarn_status status = at->value ? check_type(at, TARN_JSON_BOOLEAN) : TARN_OK;
    size_t size;
    if (at->value && !status) *result = *tarn_json_token(at->value, &size) == 't';
    return status;
}

enum tarn_status tarn_json_string(const struct tarn_json_at *at, const char **result)
{
    enum tarn_status status = at->value ? check_type(at, TARN_JSON_STRING) : TARN_OK;
    if (at->value && !status) *result = tarn_json_characters(at->value);
    return status;
}

bool tarn_json_is_null(const struct tarn_json_at *at) { return is_of(at, TARN_JSON_NULL); }

/* ---- Arrays ---- */

enum tarn_status tarn_json_array(const struct tarn_json_at *at, size_t *count)
{
    enum tarn_status status = at->value ? check_type(at, TARN_JSON_ARRAY) : TARN_OK;
    if (!at->value || status) return status;
    *count = 0;
    const struct tarn_json *element = tarn_json_first(at->value);
    for (; element; element = tarn_json_next(element)) (*count)++;
    return TARN_OK;
}

struct tarn_json_at tarn_json_items(const struct tarn_json_at *array)
{
    return (struct tarn_json_at){array->report, tarn_json_first(array->value), array, NULL, 0};
}

void tarn_json_step(struct tarn_json_at *item)
{
    item->value = tarn_json_next(item->value);
    item->index++;
}

bool tarn_json_ids_reserve(struct tarn_json_ids *ids, size_t count)
{
    uint32_t *larger =
        tarn_region_grow(ids->region, ids->ids, &ids->capacity, ids->count + count, sizeof *larger);
    if (larger) ids->ids = larger;
    return larger != NULL;
}

enum tarn_status tarn_json_ids_append(const struct tarn_json_at *at, struct tarn_json_ids *ids,
                                      size_t *count)
{
    enum tarn_status status = tarn_json_array(at, count);
    if (status != TARN_OK) return status;
    if (!tarn_json_ids_reserve(ids, *count)) return tarn_error_no_memory(at->report->error);
    struct tarn_json_at item = tarn_json_items(at);
    for (; item.value && !status; tarn_json_step(&item))
        status = tarn_json_id(&item, &ids->ids[ids->count++]);
    return status;
}

enum tarn_status tarn_json_ids(const struct tarn_json_at *at, struct tarn_json_ids *ids)
{
    size_t count = 0;
    ids->count = 0;
    return tarn_json_ids_append(at, ids, &count);
}

/* ---- Objects ---- */

struct tarn_json_at tarn_json_in(const struct tarn_json_at *at, const char *key)
{
    struct tarn_json_at field = {at->report, NULL, at, key, 0};
    struct tarn_json_member member = {0};
    if (!at->value || !is_of(at, TARN_JSON_OBJECT)) return field;
    while (!field.value && tarn_json_next_member(at->value, &member))
        if (strcmp(member.key, key) == 0) field.value = member.value;
    return field;
}

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

static enum tarn_status unknown_field(const struct tarn_json_at *at, const char *key,
                                      const struct tarn_json_field *fields, size_t count)
{
    char known[256] = "";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", fields[i].name);
    }
    const struct tarn_json_at place = {.report = at->report, .parent = at, .key = key};
    return tarn_json_bad(&place, "unknown field %s; known here are: %s", tarn_quote(key).text,
                         known);
}

enum tarn_status tarn_json_fields(const struct tarn_json_at *at,
                                  const struct tarn_json_field *fields, size_t fields_count,
                                  struct tarn_json_at *values)
{
    struct tarn_json_member member = {0};
    size_t hint = 0;
    enum tarn_status status = check_type(at, TARN_JSON_OBJECT);
    if (status != TARN_OK) return status;
    for (size_t i = 0; i < fields_count; i++)
        values[i] = (struct tarn_json_at){at->report, NULL, at, fields[i].name, 0};
    while (tarn_json_next_member(at->value, &member)) {
        size_t k = find_field(fields, fields_count, hint, member.key);
        if (k == fields_count) return unknown_field(at, member.key, fields, fields_count);
        if (values[k].value)
            return tarn_json_bad(&values[k], "the field \"%s\" is there twice", fields[k].name);
        values[k].value = member.value;
        hint = k + 1;
    }
    for (size_t i = 0; i < fields_count; i++) {
        if (!fields[i].required || values[i].value) continue;
        return tarn_json_bad(at, "the field \"%s\" is missing", fields[i].name);
    }
    return TARN_OK;
}

static void print_kept(const void *value, FILE *file) { tarn_json_write_compact(value, file); }

enum tarn_status tarn_json_keep(const struct tarn_json_at *at, struct tarn_region *region,
                                const char **text)
{
    const char *twin = NULL;
    if (tarn_json_type_of(at->value) != TARN_JSON_OBJECT)
        return tarn_json_bad(at, "must be an object");
    if (tarn_json_depth(at->value) > KEPT_DEPTH_MAX)
        return tarn_json_bad(at, "is nested deeper than %d levels", KEPT_DEPTH_MAX);
    if (!tarn_json_find_twin(at->value, &twin)) return tarn_error_no_memory(at->report->error);
    if (twin) return tarn_json_bad(at, "an object has the key %s twice", tarn_quote(twin).text);
    char *printed = tarn_text_print(print_kept, at->value, NULL);
    *text = printed ? tarn_region_string(region, printed) : NULL;
    tarn_free(printed);
    return *text ? TARN_OK : tarn_error_no_memory(at->report->error);
}

enum tarn_status tarn_json_check_format(const struct tarn_json_at *document, const char *format)
{
    const char *found = NULL;
    uint64_t number = 1;
    if (!is_of(document, TARN_JSON_OBJECT))
        return tarn_json_bad(document, "the document must be an object");
    struct tarn_json_at name = tarn_json_in(document, "format");
    struct tarn_json_at version = tarn_json_in(document, "version");
    enum tarn_status status = tarn_json_string(&name, &found);
    if (!status && !found)
        return tarn_json_bad(document,
                             "the field \"format\" is missing; such a file begins with "
                             "{\"format\":\"%s\",\"version\":1",
                             format);
    if (!status && strcmp(found, format) != 0)
        return tarn_json_bad(&name, "this is a %s, not a \"%s\"", tarn_quote(found).text, format);
    if (!status) status = tarn_json_integer(&version, &number);
    if (!status && number != 1)
        return tarn_json_bad(&version, "version %" PRIu64 " is not supported, only version 1",
                             number);
    return status;
}
