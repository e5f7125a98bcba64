/* Escapes one character; all other functions are loops over that. Hidden characters are: Unicode
 * 15, general categories Cc, Zl, Zp, and of Cf the bidirectional controls (UAX #9), the byte order
 * mark and the tags. Cost: linear. */
#include "escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "utf8.h"

struct piece {
    char text[16];
    size_t size;
};

/* Of a valid character of `size` bytes. */
static uint32_t decode(const char *text, size_t size)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t c = bytes[0] & masks[size];
    for (size_t i = 1; i < size; i++) c = c << 6 | (bytes[i] & 0x3f);
    return c;
}

static bool is_hidden(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},   {0x2028, 0x202e},
        {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
    return false;
}

static void put(struct piece *piece, const char *text)
{
    piece->size = strlen(text);
    memcpy(piece->text, text, piece->size + 1);
}

static void put_json(struct piece *piece, uint32_t c)
{
    if (c < 0x10000) {
        piece->size = (size_t)snprintf(piece->text, sizeof piece->text, "\\u%04x", (unsigned)c);
        return;
    }
    c -= 0x10000;
    piece->size = (size_t)snprintf(piece->text, sizeof piece->text, "\\u%04x\\u%04x",
                                   (unsigned)(0xd800 + (c >> 10)), (unsigned)(0xdc00 + c % 1024));
}

static const char *xml_entity(uint32_t c)
{
    switch (c) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    case 0xfffe:
    case 0xffff: return "?"; /* no characters of XML */
    }
    return NULL;
}

/* Escapes the first character or byte of a non-empty text; returns its size. */
static size_t escape(enum tarn_language language, const char *text, struct piece *piece)
{
    size_t size = tarn_utf8_size(text);
    if (size == 0) {
        put(piece, language == TARN_JSON ? "\\ufffd" : "?");
        return 1;
    }
    uint32_t c = decode(text, size);
    const char *entity = language == TARN_XML ? xml_entity(c) : NULL;
    if (entity) {
        put(piece, entity);
    } else if (language == TARN_JSON && (c == '"' || c == '\\')) {
        put(piece, c == '"' ? "\\\"" : "\\\\");
    } else if (!is_hidden(c)) {
        memcpy(piece->text, text, size);
        piece->size = size;
    } else if (language == TARN_JSON) {
        put_json(piece, c);
    } else {
        put(piece, "?");
    }
    return size;
}

size_t tarn_text_escape(enum tarn_language language, const char *text, char *to, size_t size)
{
    size_t whole = 0, end = 0; /* of the whole text, of its written part */
    struct piece piece;
    while (text && *text) {
        text += escape(language, text, &piece);
        if (end == whole && size > 0 && piece.size < size - end) {
            memcpy(to + end, piece.text, piece.size);
            end += piece.size;
        }
        whole += piece.size;
    }
    if (size > 0) to[end] = '\0';
    return whole;
}

/* The number of leading bytes that are unchanged in every language; most texts are mostly such
 * bytes. */
static size_t unescaped_run(const char *text)
{
    size_t size = 0;
    while (text[size] >= ' ' && text[size] <= '~' && !strchr("\"\\<>&'", text[size])) size++;
    return size;
}

void tarn_escape_write(FILE *file, enum tarn_language language, const char *text)
{
    struct piece piece;
    for (;;) {
        size_t run = unescaped_run(text);
        fwrite(text, 1, run, file);
        text += run;
        if (!*text) return;
        text += escape(language, text, &piece);
        fwrite(piece.text, 1, piece.size, file);
    }
}

/* Is the rest of the text an incomplete character? */
static bool is_cut_off(const char *text)
{
    unsigned char first = (unsigned char)*text;
    size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4, rest = strnlen(text, 4);
    if (first < 0xc2 || first > 0xf4 || rest >= size) return false;
    for (size_t i = 1; i < rest; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80) return false;
    return true;
}

void tarn_escape_message(char *text)
{
    struct piece piece;
    char *to = text;
    while (*text) {
        if (is_cut_off(text)) break;
        text += escape(TARN_PLAIN, text, &piece);
        memcpy(to, piece.text, piece.size);
        to += piece.size;
    }
    *to = '\0';
}
