/* UTF-8, byte by byte: the first byte says how many follow, and the second one excludes forms that
 * are too long, surrogates, and values above U+10FFFF. Source: RFC 3629, section 4. Cost: linear.
 */
#include "utf8.h"

#include <string.h>

size_t tarn_utf8_size(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] < 0x80) return 1;
    if (c[0] < 0xc2 || c[0] > 0xf4) return 0;
    size_t size = c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < size; i++) {
        if ((c[i] & 0xc0) != 0x80) return 0;
    }
    bool is_too_long = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool is_surrogate = c[0] == 0xed && c[1] > 0x9f;
    bool is_too_large = c[0] == 0xf4 && c[1] > 0x8f;
    return is_too_long || is_surrogate || is_too_large ? 0 : size;
}

bool tarn_utf8_is_valid(const char *text)
{
    for (size_t size; *text; text += size) {
        size = tarn_utf8_size(text);
        if (size == 0) return false;
    }
    return true;
}

const char *tarn_name_fault(const char *name)
{
    if (strnlen(name, TARN_NAME_MAX + 1) > TARN_NAME_MAX) return "is longer than 4096 bytes";
    return tarn_utf8_is_valid(name) ? NULL : TARN_NOT_UTF8;
}
