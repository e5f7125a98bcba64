/* UTF-8 (RFC 3629), and what may be a name. */
#ifndef TARN_STREAMS_BASE_UTF8_H
#define TARN_STREAMS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define TARN_NAME_MAX 4096 /* bytes of a name or op kind */
#define TARN_NOT_UTF8 "is not valid UTF-8"

/* Bytes of the character that a text begins with; 0: the text begins with none. */
size_t tarn_utf8_size(const char *text);

bool tarn_utf8_is_valid(const char *text);

/* The error of a text as a name, to be appended to it in messages; NULL: none. */
const char *tarn_name_fault(const char *name);

#endif
