/* Writes the page: the template that the build has joined from cli/show/page, with the plan's name
 * as title and its columns as data, which the page unpacks. No text of a plan is in the page
 * unescaped. Cost: compressing. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "words.h"
#include "writers.h"

extern const unsigned char tarn_page[]; /* text, NUL-terminated */

static void write_letters(FILE *file, const unsigned char *bytes, size_t size)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        unsigned three = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? bytes[i + 2] : 0);
        fputc(letters[three >> 18], file);
        fputc(letters[three >> 12 & 63], file);
        fputc(left > 1 ? letters[three >> 6 & 63] : '=', file);
        fputc(left > 2 ? letters[three & 63] : '=', file);
    }
}

/* Compresses a text by gzip (RFC 1952, by zlib), and writes it as base64 (RFC 4648), whose
 * letters have no special meaning in HTML. False: no memory. */
static bool pack(FILE *file, const char *text, size_t size)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)size};
    if (size > UINT_MAX / 2 ||
        deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t room = deflateBound(&stream, (uLong)size);
    unsigned char *packed = malloc(room);
    stream.next_out = packed;
    stream.avail_out = (uInt)room;
    bool is_packed = packed && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    if (is_packed) write_letters(file, packed, room - stream.avail_out);
    deflateEnd(&stream);
    free(packed);
    return is_packed;
}

/* Writes the template up to a mark; returns what follows the mark. */
static const char *write_until(FILE *file, const char *page, const char *mark)
{
    const char *at = strstr(page, mark);
    fwrite(page, 1, (size_t)(at - page), file);
    return at + strlen(mark);
}

static bool write_data(FILE *file, const struct tarn_picture *picture)
{
    char *text = NULL;
    size_t size = 0;
    FILE *columns = open_memstream(&text, &size);
    if (!columns) return false;
    bool is_complete = tarn_write_columns(columns, picture);
    bool is_written = fclose(columns) == 0 && is_complete && pack(file, text, size);
    free(text);
    return is_written;
}

bool tarn_write_page(FILE *file, const struct tarn_picture *picture)
{
    const char *page = write_until(file, (const char *)tarn_page, "@TITLE@");
    tarn_write_name(file, TARN_XML, tarn_graph_name(picture->model.graph), TARN_NAME_MAX);
    page = write_until(file, page, "@DATA@");
    bool is_written = write_data(file, picture);
    fputs(page, file);
    return is_written;
}
