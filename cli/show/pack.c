/* Compresses data by gzip (RFC 1952, by zlib), and encodes it by base64 (RFC 4648). Cost:
 * linear. */
#include "words.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

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

bool tarn_pack(FILE *file, const char *text, size_t size)
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
