/* Finds the ends of JSON values: a pass over strings, escapes and levels of nesting. It does not
 * match kinds of brackets: the reader of the value finds wrong ones. Cost: linear. */
#include "json_scan.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

static const char blanks[] = " \t\r\n", too_early[] = "the text ends too early";

const char *tarn_json_skip_blanks(const char *at) { return at + strspn(at, blanks); }

/* The quote that ends a string, or a character that cannot be in one. */
static const char *find_quote(const char *at)
{
    for (at++; *at != '"'; at++) {
        if (*at == '\\' && at[1]) at++;
        if (*at == '\n' || *at == '\0') break;
    }
    return at;
}

const char *tarn_json_skip_string(const char *at)
{
    if (*at != '"') return NULL;
    at = find_quote(at);
    return *at == '"' ? at + 1 : NULL;
}

/* Characters that the end of a value depends on; all others are skipped. */
static const bool matters[UCHAR_MAX + 1] = {
    ['"'] = true, ['['] = true, ['{'] = true, [']'] = true, ['}'] = true, [','] = true, [0] = true};

/* Finds the end of the value that `at` is in; returns an error message. */
static const char *find_end(const char **end, size_t *commas)
{
    unsigned depth = 0;
    for (const char *at = *end;; at++) {
        while (!matters[(unsigned char)*at]) at++;
        *end = at;
        switch (*at) {
        case '"':
            *end = at = find_quote(at);
            if (*at == '\0') return too_early;
            if (*at == '\n') return "a string contains a control character, the end of its line";
            break;
        case '[':
        case '{':
            if (++depth > TARN_JSON_DEPTH_MAX) return "nested deeper than 128 levels";
            break;
        case ']':
        case '}':
            if (depth == 0) return NULL;
            depth--;
            break;
        case ',':
            if (depth == 0) return NULL;
            *commas += depth == 1;
            break;
        default: return depth > 0 ? too_early : NULL;
        }
    }
}

const char *tarn_json_scan(const char *at, struct tarn_json_span *span)
{
    at = tarn_json_skip_blanks(at);
    *span = (struct tarn_json_span){.begin = at, .next = at};
    const char *what = find_end(&span->next, &span->commas);
    span->end = span->next;
    while (span->end > at && strchr(blanks, span->end[-1])) span->end--;
    return what;
}

void tarn_json_count_lines(const char *text, const char *at, uint32_t *line, uint32_t *column)
{
    *line = 1;
    for (const char *end; (end = memchr(text, '\n', (size_t)(at - text))); text = end + 1)
        *line += *line < UINT32_MAX;
    *column = 1;
    for (; text < at; text++) *column += (*text & 0xc0) != 0x80 && *column < UINT32_MAX;
}
