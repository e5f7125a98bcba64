/* The two things in our files that printf cannot write: strings with escapes (RFC 8259, section 7)
 * and lists of ids. Errors are the stream's: ferror says in the end.
 */
#include "json_write.h"

#include <inttypes.h>

#include "streams/base/escape.h"

void tarn_json_write_string(FILE *file, const char *text)
{
    fputc('"', file);
    tarn_escape_write(file, TARN_JSON, text);
    fputc('"', file);
}

void tarn_json_write_ids(FILE *file, const uint32_t *ids, size_t count)
{
    fputc('[', file);
    for (size_t i = 0; i < count; i++) fprintf(file, "%s%" PRIu32, i > 0 ? "," : "", ids[i]);
    fputc(']', file);
}
