/* The two things in our files that printf cannot write: strings with escapes (RFC 8259, section 7)
 * and lists of ids. Errors are the stream's: ferror says in the end.
 */
#include "json_write.h"

#include <inttypes.h>

void tarn_json_write_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20)
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
    fputc('"', file);
}

void tarn_json_write_ids(FILE *file, const uint32_t *ids, size_t count)
{
    fputc('[', file);
    for (size_t i = 0; i < count; i++) fprintf(file, "%s%" PRIu32, i > 0 ? "," : "", ids[i]);
    fputc(']', file);
}
