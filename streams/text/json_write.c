/* Makes records of files as jansson values, and writes their text. Cost: linear. */
#include "json_write.h"

#include <stdlib.h>
#include <string.h>

void tarn_json_put(json_t **object, const char *key, json_t *value)
{
    if (json_object_set_new_nocheck(*object, key, value) == 0) return;
    json_decref(*object);
    *object = NULL;
}

void tarn_json_append(json_t **array, json_t *value)
{
    if (json_array_append_new(*array, value) == 0) return;
    json_decref(*array);
    *array = NULL;
}

json_t *tarn_json_list(const uint32_t *ids, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) tarn_json_append(&list, json_integer(ids[i]));
    return list;
}

/* 15 digits, or 17 for a number that 15 do not represent exactly. */
static size_t digits_of(const json_t *value)
{
    char text[40];
    double number = json_real_value(value);
    snprintf(text, sizeof text, "%.15g", number);
    return strtod(text, NULL) == number ? JSON_REAL_PRECISION(15) : JSON_REAL_PRECISION(17);
}

/* DEL, which is ASCII and which jansson leaves as it is, is only in strings. Only one thread uses
 * the stream, so no locks are taken: jansson writes a few bytes at a time, and locks would
 * dominate. */
static int write_escaped(const char *text, size_t size, void *file)
{
    const char *end = text + size;
    for (const char *del; (del = memchr(text, 0x7f, (size_t)(end - text))); text = del + 1) {
        fwrite_unlocked(text, 1, (size_t)(del - text), file);
        fputs("\\u007F", file);
    }
    fwrite_unlocked(text, 1, (size_t)(end - text), file);
    return 0;
}

void tarn_json_write(FILE *file, json_t *value)
{
    static const size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY;
    if (json_dump_callback(value, write_escaped, file, flags | digits_of(value)) != 0)
        fgetc(file); /* sets the stream's error */
    json_decref(value);
}
