/* Reads JSON with jansson, without a tree of the whole file. A value of up to PIECE bytes of text
 * is read whole. A larger array stays text, and each of its elements is read when it is needed and
 * freed afterwards. Arrays in a larger object also stay text:
 *
 *     {"name":"x", "ops":[{...}, {...}, ...]}   ->   {"name":"x", "ops":<place in the text>}
 *
 * In the tree such an array is a string that begins with NUL, which no string in a file does:
 * jansson refuses it. Syntax errors come with line and column, errors of meaning with a JSON
 * pointer (RFC 6901), which is spelt out from a chain of places only when it is needed. Cost:
 * linear in the text times the levels of large objects; finding an object's fields is about linear
 * in them when files list them in a fixed order. */
#include "json_read.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "json_scan.h"
#include "streams/base/memory.h"
#include "streams/text/json_write.h"
#include "streams/text/text_file.h"

#define PIECE 65536
#define KEPT_DEPTH_MAX 64

static const char after_object[] = "\"}\" or the end of the object was expected",
                  after_array[] = "something follows the end of the array";

/* ---- Syntax ---- */

static enum tarn_status syntax_error(const struct tarn_report *report, uint32_t line,
                                     uint32_t column, const char *what)
{
    struct tarn_error *error = report->error;
    tarn_error_set(error, TARN_BAD_INPUT, "%s: line %" PRIu32 ", column %" PRIu32 ": %s",
                   report->path, line, column, what);
    if (error) {
        error->line = line;
        error->column = column;
    }
    return TARN_BAD_INPUT;
}

static enum tarn_status fault_at(const struct tarn_report *report, const char *at, const char *what)
{
    uint32_t line, column;
    tarn_json_count_lines(report->text, at, &line, &column);
    return syntax_error(report, line, column, what);
}

/* Our messages for errors; NULL: use jansson's. */
static const char *meaning(enum json_error_code code)
{
    switch (code) {
    case json_error_duplicate_key: return "the object has this key twice";
    case json_error_end_of_input_expected: return "something follows the end of the value";
    case json_error_invalid_utf8: return "a string is not valid UTF-8";
    case json_error_null_character: return "a string contains \\u0000";
    case json_error_numeric_overflow: return "a number is too large";
    default: return NULL;
    }
}

/* Converts jansson's error for a text that begins at `begin`. jansson has no code for refused
 * memory while it reads: errno shows it, or an empty message. */
static enum tarn_status explain(const struct tarn_report *report, const char *begin,
                                const json_error_t *fault)
{
    uint32_t line, column;
    char what[JSON_ERROR_TEXT_LENGTH + 64];
    enum json_error_code code = json_error_code(fault);
    if (errno == ENOMEM || !fault->text[0]) return tarn_error_no_memory(report->error);
    tarn_json_count_lines(report->text, begin, &line, &column);
    column = (fault->line > 1 ? 0 : column - 1) + (uint32_t)fault->column;
    line += (uint32_t)fault->line - 1;
    if (code == json_error_invalid_utf8) column++; /* the byte comes next */
    const char *words = meaning(code), *near = strstr(fault->text, " near ");
    if (words)
        snprintf(what, sizeof what, "%s%s", words, near ? near : "");
    else
        snprintf(what, sizeof what, "%s", fault->text);
    return syntax_error(report, line, column, what);
}

/* ---- Reading a value ---- */

/* A large array in the tree. */
struct large {
    char mark; /* '\0' */
    struct tarn_json_span span;
};

static bool is_large(const json_t *value, struct large *large)
{
    if (!json_is_string(value) || json_string_value(value)[0] != '\0') return false;
    if (json_string_length(value) != sizeof *large) return false;
    memcpy(large, json_string_value(value), sizeof *large);
    return true;
}

static enum tarn_status read_small(const struct tarn_report *report, const char *begin,
                                   const char *end, json_t **value)
{
    json_error_t fault;
    if (begin == end) return fault_at(report, begin, "a value was expected");
    errno = 0;
    *value =
        json_loadb(begin, (size_t)(end - begin), JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &fault);
    return *value ? TARN_OK : explain(report, begin, &fault);
}

static enum tarn_status read_members(const struct tarn_report *report, const char *begin,
                                     json_t *object, const char **end);

/* Reads a value whole if it has at most that many bytes, or is neither array nor object. */
static enum tarn_status read_value(const struct tarn_report *report,
                                   const struct tarn_json_span *span, ptrdiff_t piece,
                                   json_t **value)
{
    struct large large;
    if (span->end - span->begin <= piece || !strchr("[{", *span->begin))
        return read_small(report, span->begin, span->end, value);
    memset(&large, 0, sizeof large);
    large.span = *span;
    bool is_object = *span->begin == '{';
    *value = is_object ? json_object() : json_stringn_nocheck((const char *)&large, sizeof large);
    if (!*value) return tarn_error_no_memory(report->error);
    const char *end = span->end;
    enum tarn_status status = is_object ? read_members(report, span->begin, *value, &end) : TARN_OK;
    if (status == TARN_OK && end != span->end) status = fault_at(report, end, after_object);
    if (status != TARN_OK) {
        json_decref(*value);
        *value = NULL;
    }
    return status;
}

/* "key":value */
static enum tarn_status read_member(const struct tarn_report *report, const char *at,
                                    struct tarn_json_span *span, json_t *object)
{
    json_t *key, *value;
    const char *end = tarn_json_skip_string(at);
    if (!end) return fault_at(report, at, "a key in quotes was expected");
    const char *colon = tarn_json_skip_blanks(end);
    if (*colon != ':') return fault_at(report, colon, "\":\" was expected after a key");
    const char *what = tarn_json_scan(colon + 1, span);
    if (what) return fault_at(report, span->next, what);
    enum tarn_status status = read_small(report, at, end, &key);
    if (status != TARN_OK) return status;
    const char *name = json_string_value(key);
    if (json_object_get(object, name))
        status = fault_at(report, at, "the object has this key twice");
    if (status == TARN_OK) status = read_value(report, span, 0, &value);
    if (status == TARN_OK && json_object_set_new_nocheck(object, name, value) != 0)
        status = tarn_error_no_memory(report->error);
    json_decref(key);
    return status;
}

/* Reads the members of the object that begins there, up to the character after it. */
static enum tarn_status read_members(const struct tarn_report *report, const char *begin,
                                     json_t *object, const char **end)
{
    struct tarn_json_span member = {.next = begin};
    const char *at = tarn_json_skip_blanks(begin + 1);
    enum tarn_status status = TARN_OK;
    if (*at == '}') member.next = at;
    while (status == TARN_OK && member.next < at) {
        status = read_member(report, at, &member, object);
        if (status == TARN_OK && *member.next == ',') at = tarn_json_skip_blanks(member.next + 1);
    }
    if (status == TARN_OK && *member.next != '}')
        status = fault_at(report, member.next, after_object);
    *end = member.next + 1;
    return status;
}

/* Is the text UTF-8 without a mark and without NUL, and does it begin with an object or array? */
static enum tarn_status check_begin(const struct tarn_json_at *document, const char *text,
                                    size_t size)
{
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return tarn_json_bad(document,
                             "the text begins with a byte order mark; save it as plain UTF-8");
    if (size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return tarn_json_bad(document, "the text is UTF-16; save it as plain UTF-8");
    const char *at = tarn_json_skip_blanks(text), *nul = memchr(text, '\0', size);
    if (!strchr("[{", *at) || !*at)
        return fault_at(document->report, at, "an object or array was expected");
    return nul ? fault_at(document->report, nul, "a NUL byte") : TARN_OK;
}

enum tarn_status tarn_json_parse(struct tarn_report *report, const char *text, size_t size,
                                 struct tarn_json_at *document)
{
    const char *end;
    *document = (struct tarn_json_at){.report = report};
    report->text = text;
    enum tarn_status status = check_begin(document, text, size);
    if (status != TARN_OK) return status;
    const char *begin = tarn_json_skip_blanks(text);
    if (size > PIECE && *begin == '{') { /* as read_value, but its end is not known yet */
        document->value = json_object();
        if (!document->value) return tarn_error_no_memory(report->error);
        status = read_members(report, begin, document->value, &end);
    } else {
        struct tarn_json_span span;
        const char *what = tarn_json_scan(begin, &span);
        end = span.next;
        status =
            what ? fault_at(report, end, what) : read_value(report, &span, PIECE, &document->value);
    }
    if (status != TARN_OK) return status;
    end = tarn_json_skip_blanks(end);
    return *end ? fault_at(report, end, "something follows the end of the document") : TARN_OK;
}

enum tarn_status tarn_json_load(struct tarn_report *report, const struct tarn_reader *reader,
                                char **text, struct tarn_json_at *document)
{
    size_t size = 0;
    report->path = strcmp(reader->name, "-") == 0 ? "standard input" : reader->name;
    *text = NULL;
    *document = (struct tarn_json_at){.report = report};
    enum tarn_status status = tarn_text_take(reader, report->text_max, text, &size, report->error);
    return status != TARN_OK ? status : tarn_json_parse(report, *text, size, document);
}

void tarn_json_close(struct tarn_json_at *document, char *text)
{
    json_decref(document->value);
    document->value = NULL;
    tarn_free(text);
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

/* As messages call it. */
static const char *type_text(const json_t *value)
{
    struct large large;
    if (is_large(value, &large)) return "an array";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number with a fraction or exponent";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: break;
    }
    return "null";
}

static enum tarn_status check_type(const struct tarn_json_at *at, bool is_right, const char *right)
{
    if (is_right) return TARN_OK;
    return tarn_json_bad(at, "must be %s, not %s", right, type_text(at->value));
}

bool tarn_json_is_object(const struct tarn_json_at *at) { return json_is_object(at->value); }

bool tarn_json_is_array(const struct tarn_json_at *at)
{
    struct large large;
    return json_is_array(at->value) || is_large(at->value, &large);
}

bool tarn_json_is_null(const struct tarn_json_at *at) { return json_is_null(at->value); }

static enum tarn_status read_number(const struct tarn_json_at *at, uint64_t max, uint64_t *result)
{
    enum tarn_status status = check_type(at, json_is_integer(at->value), "an integer");
    if (status != TARN_OK) return status;
    json_int_t number = json_integer_value(at->value);
    if (number < 0 || (uint64_t)number > max)
        return tarn_json_bad(
            at, "must be an integer from 0 to %" PRIu64 ", not %" JSON_INTEGER_FORMAT, max, number);
    *result = (uint64_t)number;
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

enum tarn_status tarn_json_real(const struct tarn_json_at *at, double *result)
{
    enum tarn_status status =
        at->value ? check_type(at, json_is_number(at->value), "a number") : TARN_OK;
    if (at->value && status == TARN_OK) *result = json_number_value(at->value);
    return status;
}

enum tarn_status tarn_json_boolean(const struct tarn_json_at *at, bool *result)
{
    enum tarn_status status =
        at->value ? check_type(at, json_is_boolean(at->value), "true or false") : TARN_OK;
    if (at->value && status == TARN_OK) *result = json_is_true(at->value);
    return status;
}

const char *tarn_json_text(const struct tarn_json_at *at)
{
    struct large large;
    return is_large(at->value, &large) ? NULL : json_string_value(at->value);
}

enum tarn_status tarn_json_string(const struct tarn_json_at *at, const char **result)
{
    const char *text = tarn_json_text(at);
    enum tarn_status status = at->value ? check_type(at, text != NULL, "a string") : TARN_OK;
    if (text) *result = text;
    return status;
}

/* ---- Arrays ---- */

enum tarn_status tarn_json_array(const struct tarn_json_at *at, size_t *count)
{
    struct large large;
    enum tarn_status status =
        at->value ? check_type(at, tarn_json_is_array(at), "an array") : TARN_OK;
    if (!at->value || status != TARN_OK) return status;
    *count = json_array_size(at->value);
    if (is_large(at->value, &large))
        *count = *tarn_json_skip_blanks(large.span.begin + 1) == ']' ? 0 : large.span.commas + 1;
    return TARN_OK;
}

struct tarn_json_at tarn_json_items(const struct tarn_json_at *array)
{
    return (struct tarn_json_at){.report = array->report, .parent = array, .index = SIZE_MAX};
}

/* Reads an element of up to PIECE bytes of a large array without looking for its end first. Leaves
 * *value NULL if it is larger, or wrong, which the slower way then explains. */
static enum tarn_status read_element(const struct tarn_report *report, const char *begin,
                                     const char *array_end, json_t **value, const char **next)
{
    json_error_t fault;
    ptrdiff_t rest = array_end - begin;
    size_t size = (size_t)(rest < PIECE ? rest : PIECE);
    errno = 0;
    *value = json_loadb(begin, size,
                        JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &fault);
    if (!*value) return errno == ENOMEM ? tarn_error_no_memory(report->error) : TARN_OK;
    *next = tarn_json_skip_blanks(begin + fault.position);
    if ((size_t)fault.position < size) return TARN_OK;
    json_decref(*value); /* a number may go on */
    *value = NULL;
    return TARN_OK;
}

/* The next element of a large array, which the item owns. */
static enum tarn_status read_next(struct tarn_json_at *item, const struct tarn_json_span *array)
{
    struct tarn_json_span span;
    const struct tarn_report *report = item->report;
    json_decref(item->value);
    item->value = NULL;
    if (!item->next) {
        const char *first = tarn_json_skip_blanks(array->begin + 1);
        item->next = *first == ']' ? first : array->begin;
    }
    if (item->next + 1 == array->end) return TARN_OK;
    if (*item->next == ']') return fault_at(report, item->next, after_array);
    span.begin = tarn_json_skip_blanks(item->next + 1);
    enum tarn_status status =
        read_element(report, span.begin, array->end, &item->value, &span.next);
    if (status != TARN_OK) return status;
    if (!item->value) {
        const char *what = tarn_json_scan(span.begin, &span);
        if (what) return fault_at(report, span.next, what);
        status = read_value(report, &span, PIECE, &item->value);
    }
    bool is_last = span.next + 1 == array->end;
    if (status == TARN_OK && *span.next != (is_last ? ']' : ',')) {
        json_decref(item->value);
        item->value = NULL;
        return fault_at(report, span.next, *span.next == ']' ? after_array : "\",\" was expected");
    }
    item->next = span.next;
    return status;
}

bool tarn_json_next(struct tarn_json_at *item, enum tarn_status *status)
{
    struct large large;
    const json_t *array = item->parent->value;
    item->index++;
    if (!is_large(array, &large)) {
        item->value = *status ? NULL : json_array_get(array, item->index);
        return item->value != NULL;
    }
    if (*status == TARN_OK) {
        *status = read_next(item, &large.span);
        return item->value != NULL;
    }
    json_decref(item->value);
    item->value = NULL;
    return false;
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
    while (tarn_json_next(&item, &status)) status = tarn_json_id(&item, &ids->ids[ids->count++]);
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
    return (struct tarn_json_at){
        .report = at->report, .value = json_object_get(at->value, key), .parent = at, .key = key};
}

/* Searches cyclically, starting at `hint`: fields mostly come in the table's order. */
static size_t find_field(const struct tarn_json_field *fields, size_t count, size_t hint,
                         const char *key)
{
    for (size_t i = 0; i < count; i++) {
        size_t k = hint + i < count ? hint + i : hint + i - count;
        const char *name = fields[k].name;
        if (name[0] == key[0] && name[1] == key[1] && strcmp(name, key) == 0) return k;
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
    const char *key;
    json_t *member;
    size_t hint = 0;
    enum tarn_status status = check_type(at, json_is_object(at->value), "an object");
    if (status != TARN_OK) return status;
    for (size_t i = 0; i < fields_count; i++)
        values[i] =
            (struct tarn_json_at){.report = at->report, .parent = at, .key = fields[i].name};
    json_object_foreach(at->value, key, member)
    {
        size_t k = find_field(fields, fields_count, hint, key);
        if (k == fields_count) return unknown_field(at, key, fields, fields_count);
        values[k].value = member;
        hint = k + 1;
    }
    for (size_t i = 0; i < fields_count; i++) {
        if (!fields[i].required || values[i].value) continue;
        return tarn_json_bad(at, "the field \"%s\" is missing", fields[i].name);
    }
    return TARN_OK;
}

/* ---- Objects that are kept ---- */

struct kept {
    const struct tarn_json_at *at;
    enum tarn_status status;
};

/* Writes piece by piece, as it is read: a whole large object would take too much memory. */
static enum tarn_status write_kept(const struct tarn_json_at *at, const struct tarn_json_at *whole,
                                   unsigned levels, FILE *file)
{
    const char *key;
    json_t *member;
    enum tarn_status status = TARN_OK;
    bool is_object = json_is_object(at->value), is_first = true;
    if (!is_object && !tarn_json_is_array(at)) {
        tarn_json_write(file, json_incref(at->value));
        return TARN_OK;
    }
    if (levels == 0) return tarn_json_bad(whole, "is nested deeper than %d levels", KEPT_DEPTH_MAX);
    fputc(is_object ? '{' : '[', file);
    json_object_foreach(at->value, key, member)
    {
        struct tarn_json_at field = tarn_json_in(at, key);
        if (!is_first) fputc(',', file);
        is_first = false;
        tarn_json_write(file, json_string(key));
        fputc(':', file);
        if (status == TARN_OK) status = write_kept(&field, whole, levels - 1, file);
    }
    struct tarn_json_at item = tarn_json_items(at);
    while (tarn_json_next(&item, &status)) {
        if (item.index > 0) fputc(',', file);
        status = write_kept(&item, whole, levels - 1, file);
    }
    fputc(is_object ? '}' : ']', file);
    return status;
}

static void print_kept(const void *subject, FILE *file)
{
    struct kept *kept = (struct kept *)(uintptr_t)subject;
    kept->status = write_kept(kept->at, kept->at, KEPT_DEPTH_MAX, file);
}

enum tarn_status tarn_json_keep(const struct tarn_json_at *at, struct tarn_region *region,
                                const char **text)
{
    struct kept kept = {at, check_type(at, json_is_object(at->value), "an object")};
    if (kept.status != TARN_OK) return kept.status;
    char *printed = tarn_text_print(print_kept, &kept, NULL);
    *text = printed && !kept.status ? tarn_region_string(region, printed) : NULL;
    tarn_free(printed);
    if (kept.status != TARN_OK) return kept.status;
    return *text ? TARN_OK : tarn_error_no_memory(at->report->error);
}

enum tarn_status tarn_json_check_format(const struct tarn_json_at *document, const char *format)
{
    const char *found = NULL;
    uint64_t number = 1;
    if (!tarn_json_is_object(document))
        return tarn_json_bad(document, "the document must be an object");
    struct tarn_json_at name = tarn_json_in(document, "format");
    struct tarn_json_at version = tarn_json_in(document, "version");
    enum tarn_status status = tarn_json_string(&name, &found);
    if (status == TARN_OK && !found)
        return tarn_json_bad(document,
                             "the field \"format\" is missing; such a file begins with "
                             "{\"format\":\"%s\",\"version\":1",
                             format);
    if (status == TARN_OK && strcmp(found, format) != 0)
        return tarn_json_bad(&name, "this is a %s, not a \"%s\"", tarn_quote(found).text, format);
    if (status == TARN_OK) status = tarn_json_integer(&version, &number);
    if (status == TARN_OK && number != 1)
        return tarn_json_bad(&version, "version %" PRIu64 " is not supported, only version 1",
                             number);
    return status;
}
