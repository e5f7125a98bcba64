/* Decoding JSON with errors that name the place: the loaders of graphs, plans and orders. */
#ifndef TARN_STREAMS_FILE_JSON_READ_H
#define TARN_STREAMS_FILE_JSON_READ_H

#include "json_text.h"
#include "streams/base/region.h"
#include "streams/graph/report.h"
#include "tarn/bytes.h"

/* Every integer in a file lies in 0 .. 2^53 - 1, so that every JSON reader agrees on it. */
#define TARN_JSON_INTEGER_MAX ((UINT64_C(1) << 53) - 1)

/* Where a value stands in the document: a chain on the stack, spelt out only for an error.
 *     struct tarn_json_at at = tarn_json_in(&ops_at, NULL, 12);    .../ops/12          */
struct tarn_json_at {
    const struct tarn_json_at *parent; /* NULL: the document itself */
    const char *key;                   /* of an object, or NULL: `index` of an array */
    size_t index;
};

static inline struct tarn_json_at tarn_json_in(const struct tarn_json_at *parent, const char *key,
                                               size_t index)
{
    return (struct tarn_json_at){parent, key, index};
}

/* Checks a text and decodes it where it stands: UTF-8, one object or array. The document is as good
 * as the text is there. TARN_BAD_INPUT with line and column. */
enum tarn_status tarn_json_parse(const struct tarn_report *report, char *text, size_t size,
                                 const struct tarn_json **document);
/* The same of a reader, or of the file of its name ("-": standard input; may be compressed), of up
 * to report->text_max bytes. Sets report->path. The caller gives *text up with free, NULL after an
 * error. */
enum tarn_status tarn_json_load(struct tarn_report *report, const struct tarn_reader *reader,
                                char **text, const struct tarn_json **document);

/* TARN_BAD_INPUT at a place. at NULL: the document itself. */
enum tarn_status tarn_json_bad(const struct tarn_report *report, const struct tarn_json_at *at,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Is the document a file of that format, version 1? Before all else, since a file of another kind
 * or version has other fields. */
enum tarn_status tarn_json_check_format(const struct tarn_report *report,
                                        const struct tarn_json *document, const char *format);

struct tarn_json_field {
    const char *name;
    bool required;
};

/* Finds the fields of an object: values[i], borrowed, is that of fields[i] or NULL. A field that is
 * not in the table or there twice, or a required one that is absent, is an error. */
enum tarn_status tarn_json_fields(const struct tarn_report *report, const struct tarn_json_at *at,
                                  const struct tarn_json *object,
                                  const struct tarn_json_field *fields, size_t fields_count,
                                  const struct tarn_json **values);

/* Each checks the type; a NULL value (an absent optional field) leaves *result alone. */
enum tarn_status tarn_json_integer(const struct tarn_report *report, const struct tarn_json_at *at,
                                   const struct tarn_json *value, uint64_t max, uint64_t *result);
/* 0 .. 2^32 - 2: never TARN_NONE. */
enum tarn_status tarn_json_id(const struct tarn_report *report, const struct tarn_json_at *at,
                              const struct tarn_json *value, uint32_t *result);
enum tarn_status tarn_json_boolean(const struct tarn_report *report, const struct tarn_json_at *at,
                                   const struct tarn_json *value, bool *result);
/* Borrowed from the document. */
enum tarn_status tarn_json_string(const struct tarn_report *report, const struct tarn_json_at *at,
                                  const struct tarn_json *value, const char **result);
/* The "id" of a record in a list: ids number the list from 0, so that it is the place's index. */
enum tarn_status tarn_json_own_id(const struct tarn_report *report,
                                  const struct tarn_json_at *record, const struct tarn_json *value);
/* The number of elements of an array. */
enum tarn_status tarn_json_array(const struct tarn_report *report, const struct tarn_json_at *at,
                                 const struct tarn_json *value, size_t *count);

/* A list of ids whose memory is used again. */
struct tarn_json_ids {
    struct tarn_region *region; /* of the ids */
    uint32_t *ids;
    size_t count, capacity;
};

/* Room for `count` more ids; false: no memory. */
bool tarn_json_ids_reserve(struct tarn_json_ids *ids, size_t count);
/* Appends those of an array, `count` of them; tarn_json_ids puts them in the place of others. */
enum tarn_status tarn_json_ids_append(const struct tarn_report *report,
                                      const struct tarn_json_at *at, const struct tarn_json *value,
                                      struct tarn_json_ids *ids, size_t *count);
enum tarn_status tarn_json_ids(const struct tarn_report *report, const struct tarn_json_at *at,
                               const struct tarn_json *value, struct tarn_json_ids *ids);

#endif
