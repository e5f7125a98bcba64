/* Writes JSON with jansson: a file is written record by record, each a jansson value that is made,
 * written and freed. The output is ASCII, so names are escaped before they reach a terminal. If
 * memory runs out, a value is NULL, and so is every value that contains it. */
#ifndef TARN_STREAMS_TEXT_JSON_WRITE_H
#define TARN_STREAMS_TEXT_JSON_WRITE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Add a value, and take ownership of it; if it is NULL, the object or array becomes NULL. */
void tarn_json_put(json_t **object, const char *key, json_t *value);
void tarn_json_append(json_t **array, json_t *value);
json_t *tarn_json_list(const uint32_t *ids, size_t count);

/* Writes a value without blanks, and frees it; reals in lists and objects have 15 digits, others as
 * many as they need. NULL sets the error of the stream, which is one that is only written to. */
void tarn_json_write(FILE *file, json_t *value);

#endif
