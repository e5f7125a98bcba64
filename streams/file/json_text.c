/* JSON as checked text. One pass by recursive descent finds every fault, and leaves of a string
 *
 *     "a\u00e9\n"   ->   "aé<LF><NUL><blanks>
 *
 * its decoded bytes, a NUL, and blanks up to where the closing quote was, so that nothing moves and
 * places keep their columns. Reading then passes by values: of a string to its NUL, of an array or
 * object to the bracket that closes it. Cost: linear; a value is passed by once a level above it.
 */
#include "json_text.h"

#include <stdlib.h>
#include <string.h>

#include "streams/base/csv.h"
#include "streams/base/json_write.h"
#include "streams/base/utf8.h"

struct scan {
    char *at;
    const char *line_begin;
    size_t line;
    size_t beyond;    /* bytes of the line's characters beyond their first */
    const char *what; /* the fault, or NULL */
};

static bool fail(struct scan *scan, const char *what)
{
    scan->what = *scan->at ? what : "the text ends too early";
    return false;
}

static void scan_blanks(struct scan *scan)
{
    for (;; scan->at++) {
        if (*scan->at == '\n') {
            scan->line++;
            scan->line_begin = scan->at + 1;
            scan->beyond = 0;
        } else if (*scan->at != ' ' && *scan->at != '\t' && *scan->at != '\r') {
            return;
        }
    }
}

/* ---- Strings ---- */

/* The number that four hexadecimal digits write, or -1. */
static int32_t hexadecimal(const char *digits)
{
    static const char all[] = "0123456789abcdef";
    int32_t number = 0;
    for (int i = 0; i < 4; i++) {
        char c = digits[i] >= 'A' && digits[i] <= 'F' ? (char)(digits[i] - 'A' + 'a') : digits[i];
        const char *digit = c ? strchr(all, c) : NULL;
        if (!digit) return -1;
        number = number * 16 + (int32_t)(digit - all);
    }
    return number;
}

static char *put_utf8(char *to, int32_t c)
{
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    int size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = size - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(size == 1 ? c : marks[size] | c);
    return to + size;
}

/* \uXXXX, or two of them for a character beyond the first 2^16. */
static bool scan_unicode(struct scan *scan, char **to)
{
    int32_t c = hexadecimal(scan->at + 2);
    size_t size = 6;
    if (c < 0) return fail(scan, "four hexadecimal digits must follow \\u");
    if (c == 0) return fail(scan, "a string contains \\u0000");
    if (c >= 0xd800 && c < 0xe000) {
        int32_t low = c < 0xdc00 && scan->at[6] == '\\' && scan->at[7] == 'u'
                          ? hexadecimal(scan->at + 8)
                          : -1;
        if (low < 0xdc00 || low >= 0xe000)
            return fail(scan, "half of a surrogate pair is no character");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        size = 12;
    }
    *to = put_utf8(*to, c);
    scan->at += size;
    return true;
}

static bool scan_escape(struct scan *scan, char **to)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    char c = scan->at[1];
    if (c == 'u') return scan_unicode(scan, to);
    const char *name = c ? strchr(names, c) : NULL;
    if (!name) return fail(scan, "JSON has no such escape");
    *(*to)++ = bytes[name - names];
    scan->at += 2;
    return true;
}

/* Any character but a quote and a backslash. */
static bool scan_character(struct scan *scan, char **to)
{
    if ((unsigned char)*scan->at < 0x20)
        return fail(scan, "a string contains a control character; write it as an escape");
    size_t size = tarn_utf8_size(scan->at);
    if (size == 0) return fail(scan, "a string is not valid UTF-8");
    scan->beyond += size - 1;
    while (size-- > 0) *(*to)++ = *scan->at++;
    return true;
}

static bool scan_string(struct scan *scan)
{
    char *to = ++scan->at;
    while (*scan->at != '"') {
        if (!(*scan->at == '\\' ? scan_escape(scan, &to) : scan_character(scan, &to))) return false;
    }
    *to++ = '\0';
    while (to <= scan->at) *to++ = ' ';
    scan->at++;
    return true;
}

/* ---- Other values ---- */

static bool scan_value(struct scan *scan, int depth);

static bool scan_digits(struct scan *scan)
{
    char *begin = scan->at;
    while (*scan->at >= '0' && *scan->at <= '9') scan->at++;
    return scan->at > begin;
}

static bool scan_number(struct scan *scan)
{
    static const char what[] = "JSON has no such number";
    if (*scan->at == '-') scan->at++;
    if (*scan->at == '0') {
        scan->at++;
        if (*scan->at >= '0' && *scan->at <= '9') return fail(scan, what);
    } else if (!scan_digits(scan)) {
        return fail(scan, what);
    }
    if (*scan->at == '.') {
        scan->at++;
        if (!scan_digits(scan)) return fail(scan, what);
    }
    if (*scan->at == 'e' || *scan->at == 'E') {
        scan->at++;
        if (*scan->at == '+' || *scan->at == '-') scan->at++;
        if (!scan_digits(scan)) return fail(scan, what);
    }
    return true;
}

static bool scan_word(struct scan *scan, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(scan->at, word, length) != 0) return fail(scan, "a value was expected");
    scan->at += length;
    return true;
}

/* "key": value */
static bool scan_member(struct scan *scan, int depth)
{
    if (*scan->at != '"') return fail(scan, "a key in quotes was expected");
    if (!scan_string(scan)) return false;
    scan_blanks(scan);
    if (*scan->at != ':') return fail(scan, "\":\" was expected behind a key");
    scan->at++;
    return scan_value(scan, depth);
}

/* An array or an object, from its bracket on. */
static bool scan_list(struct scan *scan, int depth)
{
    bool is_object = *scan->at == '{';
    char end = is_object ? '}' : ']';
    if (depth == TARN_JSON_DEPTH_MAX) return fail(scan, "nested deeper than 128 levels");
    scan->at++;
    scan_blanks(scan);
    if (*scan->at == end) {
        scan->at++;
        return true;
    }
    for (;;) {
        if (!(is_object ? scan_member(scan, depth + 1) : scan_value(scan, depth + 1))) return false;
        char c = *scan->at;
        if (c != ',' && c != end)
            return fail(scan,
                        is_object ? "\",\" or \"}\" was expected" : "\",\" or \"]\" was expected");
        scan->at++;
        if (c == end) return true;
        scan_blanks(scan);
    }
}

/* With the blanks around it. */
static bool scan_value(struct scan *scan, int depth)
{
    bool ok;
    scan_blanks(scan);
    switch (*scan->at) {
    case '{':
    case '[': ok = scan_list(scan, depth); break;
    case '"': ok = scan_string(scan); break;
    case 't': ok = scan_word(scan, "true"); break;
    case 'f': ok = scan_word(scan, "false"); break;
    case 'n': ok = scan_word(scan, "null"); break;
    case '-': ok = scan_number(scan); break;
    default:
        ok = *scan->at >= '0' && *scan->at <= '9' ? scan_number(scan)
                                                  : fail(scan, "a value was expected");
    }
    if (ok) scan_blanks(scan);
    return ok;
}

static bool scan_document(struct scan *scan, const char *end)
{
    scan_blanks(scan);
    if (*scan->at != '{' && *scan->at != '[') {
        scan->what = "an object or array was expected";
        return false;
    }
    if (!scan_value(scan, 0)) return false;
    if (scan->at == end) return true;
    scan->what = "something follows the end of the document";
    return false;
}

const struct tarn_json *tarn_json_check(char *text, size_t size, struct tarn_json_fault *fault)
{
    struct scan scan = {.at = text, .line_begin = text, .line = 1};
    if (scan_document(&scan, text + size)) return (const void *)(text + strspn(text, " \t\r\n"));
    fault->line = scan.line > UINT32_MAX ? UINT32_MAX : (uint32_t)scan.line;
    size_t column = (size_t)(scan.at - scan.line_begin) - scan.beyond + 1;
    fault->column = column > UINT32_MAX ? UINT32_MAX : (uint32_t)column;
    fault->what = scan.what;
    fault->found = scan.at;
    return NULL;
}

/* ---- Reading ---- */

static const char *text_of(const struct tarn_json *value) { return (const void *)value; }

static const struct tarn_json *value_at(const char *text) { return (const void *)text; }

static const char *without_blanks(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') at++;
    return at;
}

static size_t token_size(const char *at) { return strcspn(at, ",]} \n\t\r"); }

/* Behind the value that begins there. */
static const char *behind(const char *at)
{
    size_t depth = 0;
    do {
        if (*at == '"') {
            at += strlen(at) + 1;
        } else if (*at == '[' || *at == '{') {
            depth++;
            at++;
        } else if (*at == ']' || *at == '}') {
            depth--;
            at++;
        } else if (depth > 0) {
            at++;
        } else {
            at += token_size(at);
        }
    } while (depth > 0);
    return at;
}

enum tarn_json_type tarn_json_type_of(const struct tarn_json *value)
{
    const char *text = text_of(value);
    switch (*text) {
    case '{': return TARN_JSON_OBJECT;
    case '[': return TARN_JSON_ARRAY;
    case '"': return TARN_JSON_STRING;
    case 't':
    case 'f': return TARN_JSON_BOOLEAN;
    case 'n': return TARN_JSON_NULL;
    }
    text += *text == '-';
    text += strspn(text, "0123456789");
    return *text == '.' || *text == 'e' || *text == 'E' ? TARN_JSON_REAL : TARN_JSON_INTEGER;
}

const struct tarn_json *tarn_json_first(const struct tarn_json *array)
{
    if (!array || *text_of(array) != '[') return NULL;
    const char *at = without_blanks(text_of(array) + 1);
    return *at == ']' ? NULL : value_at(at);
}

const struct tarn_json *tarn_json_next(const struct tarn_json *element)
{
    const char *at = without_blanks(behind(text_of(element)));
    return *at == ',' ? value_at(without_blanks(at + 1)) : NULL;
}

const struct tarn_json *tarn_json_element(const struct tarn_json *array, size_t index)
{
    const struct tarn_json *element = tarn_json_first(array);
    while (element && index-- > 0) element = tarn_json_next(element);
    return element;
}

bool tarn_json_next_member(const struct tarn_json *object, struct tarn_json_member *member)
{
    const char *at =
        without_blanks(member->key ? behind(text_of(member->value)) : text_of(object) + 1);
    if (*at == ',') at = without_blanks(at + 1);
    if (*at == '}') return false;
    member->key = at + 1;
    at = without_blanks(behind(at));
    member->value = value_at(without_blanks(at + 1)); /* behind the colon */
    return true;
}

const char *tarn_json_characters(const struct tarn_json *string) { return text_of(string) + 1; }

const char *tarn_json_token(const struct tarn_json *value, size_t *size)
{
    *size = token_size(text_of(value));
    return text_of(value);
}

/* ---- Whole values ---- */

size_t tarn_json_depth(const struct tarn_json *value)
{
    const char *at = text_of(value), *end = behind(at);
    size_t depth = 0, deepest = 0;
    while (at < end) {
        depth += *at == '[' || *at == '{';
        depth -= *at == ']' || *at == '}';
        if (depth > deepest) deepest = depth;
        at += *at == '"' ? strlen(at) + 1 : 1;
    }
    return deepest;
}

void tarn_json_write_compact(const struct tarn_json *value, FILE *file)
{
    const char *at = text_of(value), *end = behind(at);
    while (at < end) {
        if (*at == '"') {
            tarn_json_write_string(file, at + 1);
            at = behind(at);
        } else {
            fputc(*at, file);
            at++;
        }
        at = without_blanks(at);
    }
}

/* The keys of the objects that are open, those of the innermost last. */
struct keys {
    struct tarn_csv_name *names;
    uint32_t count, capacity;
    uint32_t begin[TARN_JSON_DEPTH_MAX]; /* level -> its first key */
    size_t depth;
};

static bool push_key(struct keys *keys, const char *key)
{
    if (keys->count == keys->capacity) {
        uint32_t larger = keys->capacity < 16 ? 16 : 2 * keys->capacity;
        struct tarn_csv_name *moved = realloc(keys->names, larger * sizeof *moved);
        if (!moved) return false;
        keys->names = moved;
        keys->capacity = larger;
    }
    keys->names[keys->count] = (struct tarn_csv_name){key, keys->count};
    keys->count++;
    return true;
}

/* Closes a level; its key that is there twice, or NULL. */
static const char *pop_keys(struct keys *keys)
{
    uint32_t begin = keys->begin[--keys->depth], count = keys->count - begin;
    keys->count = begin;
    const struct tarn_csv_name *twin =
        count > 1 ? tarn_csv_find_twin(keys->names + begin, count) : NULL;
    return twin ? twin->text : NULL;
}

bool tarn_json_find_twin(const struct tarn_json *value, const char **twin)
{
    struct keys keys = {0};
    const char *at = text_of(value), *end = behind(at);
    bool ok = true;
    *twin = NULL;
    while (ok && !*twin && at < end) {
        const char *next = *at == '"' ? at + strlen(at) + 1 : at + 1;
        if (*at == '[' || *at == '{')
            keys.begin[keys.depth++] = keys.count;
        else if (*at == ']' || *at == '}')
            *twin = pop_keys(&keys);
        else if (*at == '"' && *without_blanks(next) == ':')
            ok = push_key(&keys, at + 1);
        at = next;
    }
    free(keys.names);
    return ok;
}
