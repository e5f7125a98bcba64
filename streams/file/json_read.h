/* Decodes JSON with errors that name the place, for the loaders of graphs, plans and orders. */
#ifndef TARN_STREAMS_FILE_JSON_READ_H
#define TARN_STREAMS_FILE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "streams/base/checked.h"
#include "streams/base/region.h"
#include "streams/graph/report.h"
#include "tarn/bytes.h"

struct json_t; /* jansson's */

/* A value and its place in the document: a chain on the stack, which is turned into a JSON pointer
 * only for an error. */
struct tarn_json_at {
    const struct tarn_report *report;
    struct json_t *value;              /* NULL: an absent field, or before or after all items */
    const struct tarn_json_at *parent; /* NULL: the document itself */
    const char *key;                   /* of an object, or NULL: `index` of an array */
    size_t index;
    const char *next; /* of an item of a large array: the text after it */
};

/* Reads a text of one object or array, except elements of large arrays, which are read on demand:
 * the text must live until tarn_json_close. A NUL ends it at text[size]. Sets report->text.
 * TARN_BAD_INPUT with line and column, no key twice; TARN_SYSTEM: no memory. */
enum tarn_status tarn_json_parse(struct tarn_report *report, const char *text, size_t size,
                                 struct tarn_json_at *document);
/* Reads the text from a reader, or from the file of its name ("-": standard input; may be
 * compressed), up to report->text_max bytes. Sets report->path, and *text for tarn_json_close,
 * after errors too. */
enum tarn_status tarn_json_load(struct tarn_report *report, const struct tarn_reader *reader,
                                char **text, struct tarn_json_at *document);
/* Frees the document, and its text unless that is NULL. */
void tarn_json_close(struct tarn_json_at *document, char *text);

/* TARN_BAD_INPUT at a place. */
enum tarn_status tarn_json_bad(const struct tarn_json_at *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Is the document a file of that format, version 1? Called first, since a file of another kind or
 * version has other fields. */
enum tarn_status tarn_json_check_format(const struct tarn_json_at *document, const char *format);

/* ---- Objects ---- */

struct tarn_json_field {
    const char *name;
    bool required;
};

/* The member of that name; its value is NULL if there is none, or if `at` is no object. */
struct tarn_json_at tarn_json_in(const struct tarn_json_at *at, const char *key);

/* Finds the fields of an object: values[i] is the value of fields[i], present or absent. A field
 * that is not in the table, or a required one that is absent, is an error. */
enum tarn_status tarn_json_fields(const struct tarn_json_at *at,
                                  const struct tarn_json_field *fields, size_t fields_count,
                                  struct tarn_json_at *values);

/* Keeps an object unread: its text without blanks, in the region. TARN_BAD_INPUT: no object, or
 * nested deeper than 64 levels. */
enum tarn_status tarn_json_keep(const struct tarn_json_at *at, struct tarn_region *region,
                                const char **text);

/* ---- Arrays ---- */

/* Checks that it is an array, and counts its items. */
enum tarn_status tarn_json_array(const struct tarn_json_at *at, size_t *count);
/* Iterates over the items of an array while the status is TARN_OK; an item that cannot be read also
 *     ends the loop. An item and its texts are valid until the next item; leaving the loop in
 *     another way leaks the item. struct tarn_json_at item = tarn_json_items(at); while
 *     (tarn_json_next(&item, &status)) status = ...; */
struct tarn_json_at tarn_json_items(const struct tarn_json_at *array);
bool tarn_json_next(struct tarn_json_at *item, enum tarn_status *status);

/* ---- Plain values: each checks the type; if the value is absent, *result stays ---- */

/* 0 .. TARN_NUMBER_MAX, so that every JSON reader agrees on it. */
enum tarn_status tarn_json_integer(const struct tarn_json_at *at, uint64_t *result);
/* 0 .. 2^32 - 2: never TARN_NONE. */
enum tarn_status tarn_json_id(const struct tarn_json_at *at, uint32_t *result);
enum tarn_status tarn_json_real(const struct tarn_json_at *at, double *result);
enum tarn_status tarn_json_boolean(const struct tarn_json_at *at, bool *result);
/* Borrowed from the document. */
enum tarn_status tarn_json_string(const struct tarn_json_at *at, const char **result);
/* The field "id" of a record in a list: ids number the list from 0, so it is the record's index. */
enum tarn_status tarn_json_own_id(const struct tarn_json_at *at);

bool tarn_json_is_object(const struct tarn_json_at *at);
bool tarn_json_is_array(const struct tarn_json_at *at);
bool tarn_json_is_null(const struct tarn_json_at *at);
/* NULL: it is no string. */
const char *tarn_json_text(const struct tarn_json_at *at);

/* ---- Lists of ids ---- */

/* A list whose memory is reused. */
struct tarn_json_ids {
    struct tarn_region *region; /* of the ids */
    uint32_t *ids;
    size_t count, capacity;
};

/* Room for `count` more ids; false: no memory. */
bool tarn_json_ids_reserve(struct tarn_json_ids *ids, size_t count);
/* Appends the `count` ids of an array; tarn_json_ids replaces the list by them. */
enum tarn_status tarn_json_ids_append(const struct tarn_json_at *at, struct tarn_json_ids *ids,
                                      size_t *count);
enum tarn_status tarn_json_ids(const struct tarn_json_at *at, struct tarn_json_ids *ids);

#endif
