/* Where the values of a JSON text (RFC 8259) begin and end, found without reading them: large
 * arrays and objects are taken apart by it, so that no tree of a whole file is ever made. */
#ifndef TARN_STREAMS_FILE_JSON_SCAN_H
#define TARN_STREAMS_FILE_JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The levels of objects and arrays that a text may have. */
#define TARN_JSON_DEPTH_MAX 128

/* A value in a text. */
struct tarn_json_span {
    const char *begin, *end; /* without the blanks around it */
    const char *next;        /* the comma, bracket or NUL that follows it */
    size_t commas;           /* of an array or object: those between its members */
};

const char *tarn_json_skip_blanks(const char *at);
/* The character after the string that begins at `at`; NULL: no string does. */
const char *tarn_json_skip_string(const char *at);

/* Finds the value at `at`, in a text that a NUL ends, up to what follows it in the array or object
 * that it is in. Returns NULL, or what is wrong at span->next: the text or a line ends inside of a
 * string, the text inside of a value, or it is nested deeper than TARN_JSON_DEPTH_MAX. All other
 * faults are for the reader of the value to find. Cost: linear. */
const char *tarn_json_scan(const char *at, struct tarn_json_span *span);

/* Line and column of a place in a text, from 1; columns count characters. */
void tarn_json_count_lines(const char *text, const char *at, uint32_t *line, uint32_t *column);

#endif
