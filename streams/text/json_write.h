/* Writing JSON by hand, so that files have one record per line and keys in a fixed order. */
#ifndef TARN_STREAMS_TEXT_JSON_WRITE_H
#define TARN_STREAMS_TEXT_JSON_WRITE_H

#include <stdint.h>
#include <stdio.h>

/* A string in quotes, escaped as TARN_JSON. */
void tarn_json_write_string(FILE *file, const char *text);
/* [1,2,3] */
void tarn_json_write_ids(FILE *file, const uint32_t *ids, size_t count);

#endif
