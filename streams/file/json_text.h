/* JSON (RFC 8259) that stays a text: it is checked once, its strings are decoded where they stand,
 * and a value is a pointer to where it begins. So a document takes no memory beyond its text. */
#ifndef TARN_STREAMS_FILE_JSON_TEXT_H
#define TARN_STREAMS_FILE_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The levels of objects and arrays that a text may have. */
#define TARN_JSON_DEPTH_MAX 128

/* A value: the first of its bytes in a text that was checked, as long as the text. Never defined.
 */
struct tarn_json;

struct tarn_json_fault {
    uint32_t line, column; /* 1-based; columns count characters */
    const char *what;      /* static */
    const char *found;     /* in the text, from the fault on */
};

/* Checks a text of one object or array, which a NUL ends at text[size], and decodes its strings in
 * place. NULL: it breaks a rule of JSON or is nested deeper than TARN_JSON_DEPTH_MAX, *fault says
 * how, and the text is spoilt. Objects may have a key twice: who reads them has to look. */
const struct tarn_json *tarn_json_check(char *text, size_t size, struct tarn_json_fault *fault);

enum tarn_json_type {
    TARN_JSON_OBJECT,
    TARN_JSON_ARRAY,
    TARN_JSON_STRING,
    TARN_JSON_INTEGER, /* without fraction and exponent, however large */
    TARN_JSON_REAL,
    TARN_JSON_BOOLEAN,
    TARN_JSON_NULL
};
enum tarn_json_type tarn_json_type_of(const struct tarn_json *value);

/* The elements of an array, one after the other: NULL behind the last, or where there is no array
 * at all (NULL or another value). Cost: linear in the text of the elements that are passed by. */
const struct tarn_json *tarn_json_first(const struct tarn_json *array);
const struct tarn_json *tarn_json_next(const struct tarn_json *element);

/* The members of an object, one after the other. Begin with all zero; false behind the last. */
struct tarn_json_member {
    const char *key; /* NUL-terminated UTF-8 */
    const struct tarn_json *value;
};
bool tarn_json_next_member(const struct tarn_json *object, struct tarn_json_member *member);

/* Of a string: its NUL-terminated UTF-8, which holds no other NUL. */
const char *tarn_json_characters(const struct tarn_json *string);
/* Of any other value but objects and arrays: its bytes in the text, *size of them. */
const char *tarn_json_token(const struct tarn_json *value, size_t *size);

/* How many objects and arrays lie in each other, this one counted. */
size_t tarn_json_depth(const struct tarn_json *value);
/* Looks for an object, here or inside, that has a key twice: *twin is that key, or NULL where there
 * is none. False: no memory. Cost: O(n log n). */
bool tarn_json_find_twin(const struct tarn_json *value, const char **twin);
/* Writes the value without blanks; errors are the stream's. */
void tarn_json_write_compact(const struct tarn_json *value, FILE *file);

#endif
