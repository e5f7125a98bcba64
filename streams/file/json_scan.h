/* Finds where the values of a JSON text (RFC 8259) begin and end, without reading them. It splits
 * large arrays and objects, so that no tree of a whole file is ever made. */
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
    size_t commas;           /* of an array or object: commas between its members */
};

const char *tarn_json_skip_blanks(const char *at);
/* The character after the string that begins at `at`; NULL: there is no string. */
const char *tarn_json_skip_string(const char *at);

/* Finds the value at `at`, in a text that a NUL ends, up to the next character of the enclosing
 * array or object. Returns NULL, or an error message for span->next: the text or a line ends inside
 * of a string, the text inside of a value, or it is nested deeper than TARN_JSON_DEPTH_MAX. The
 * reader of the value finds all other errors. Cost: linear. */
const char *tarn_json_scan(const char *at, struct tarn_json_span *span);

/* Line and column of a place in a text, starting at 1; columns count characters. */
void tarn_json_count_lines(const char *text, const char *at, uint32_t *line, uint32_t *column);

#endif
