/* JSON is checked once. One pass by recursive descent finds every fault, and leaves of a string
 *
 *     "a\u00e9\n"   ->   "aé<LF><NUL><blanks>
 *
 * its decoded bytes, a NUL, and blanks up to where the closing quote was, so that nothing moves and
 * places keep their columns. Source: RFC 8259. Cost: linear. */
#include "json_text.h"

#include <string.h>

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
