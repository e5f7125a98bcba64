/* Writing JSON with jansson: a file is written record by record, each a value of jansson's that is
 * made, written and given up. All of it is ASCII: no name in a file reaches a terminal as it is.
 * What cannot be made, because there is no memory, is NULL, and so is all that it is put into. */
#ifndef TARN_STREAMS_TEXT_JSON_WRITE_H
#define TARN_STREAMS_TEXT_JSON_WRITE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Values. Both take what they are given; if one is NULL, the object or array becomes NULL. */
void tarn_json_put(json_t **object, const char *key, json_t *value);
void tarn_json_append(json_t **array, json_t *value);
json_t *tarn_json_list(const uint32_t *ids, size_t count);

/* Writes a value without blanks, and gives it up; reals in lists and objects have 15 digits, others
 * as many as they need. NULL sets the error of the stream, which is one that is only written to. */
void tarn_json_write(FILE *file, json_t *value);

#endif
