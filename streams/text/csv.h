/* Tables in text: lines of cells between commas, semicolons or tabs, quoted or not (RFC 4180, but a
 * cell ends with its line). Cutting writes into the text. */
#ifndef TARN_STREAMS_TEXT_CSV_H
#define TARN_STREAMS_TEXT_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The start of a file's lines, after the byte order mark of spreadsheets. NULL: one of the `size`
 * bytes is NUL. */
char *tarn_csv_begin(char *text, size_t size);
/* An upper bound on the number of lines; at least 1. */
size_t tarn_csv_lines_count(const char *text);
/* Cuts the next line off, without spaces and carriage return at its ends; NULL after the last. A
 * line of blanks is empty. */
char *tarn_csv_next_line(char **text);
/* The separator of a table with this header: the first comma, semicolon or tab outside of quotes; a
 * comma if there is none. */
char tarn_csv_separator(const char *header);
/* Does every quoted cell of a line end with a quote, followed only by blanks? Call it before the
 * line is cut. */
bool tarn_csv_quotes_close(const char *line, char separator);
/* Cuts the next cell of a line off, without blanks at its ends and without its quotes; NULL after
 * the last. */
char *tarn_csv_next_cell(char **line, char separator);
/* Are these the same words, whatever the case of their letters? */
bool tarn_csv_is(const char *cell, const char *name);

/* A whole decimal number from 0 to 2^53 - 1, nothing else. */
bool tarn_csv_number(const char *cell, uint64_t *number);

/* The name of a row, and its number. */
struct tarn_csv_name {
    const char *text;
    uint32_t index;
};

/* Sorts by name, then row. Returns the second of two equal names, which follows the first; NULL:
 * all differ. */
const struct tarn_csv_name *tarn_csv_find_twin(struct tarn_csv_name *names, uint32_t count);

#endif
