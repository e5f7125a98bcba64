/* Escaping for the library's own writers; see tarn/text.h. */
#ifndef TARN_STREAMS_BASE_ESCAPE_H
#define TARN_STREAMS_BASE_ESCAPE_H

#include <stdio.h>

#include "tarn/text.h"

/* Writes the text, escaped; errors are the stream's. */
void tarn_escape_write(FILE *file, enum tarn_language language, const char *text);

/* Makes a message plain in place; it never gets longer. An incomplete character at the end is
 * removed. */
void tarn_escape_message(char *text);

#endif
