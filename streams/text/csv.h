/* Tables in text: lines of cells between commas, semicolons or tabs, quoted or not (RFC 4180, but a
 * cell ends with its line). Cutting writes into the text. */
#ifndef TARN_STREAMS_TEXT_CSV_H
#define TARN_STREAMS_TEXT_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the lines of a whole file begin: behind the mark that spreadsheets begin a text with. NULL:
 * one of the `size` bytes is NUL. */
char *tarn_csv_begin(char *text, size_t size);
/* At least as many as there will be; 1 for none. */
size_t tarn_csv_lines_count(const char *text);
/* Cuts the next line off, without spaces and carriage return at its ends; NULL after the last. One
 * of blanks alone is empty. */
char *tarn_csv_next_line(char **text);
/* What stands between the cells of a table with this header: the first comma, semicolon or tab
 * outside of quotes; a comma if there is none. */
char tarn_csv_separator(const char *header);
/* Does every quoted cell of a line end with a quote, and nothing but blanks follow it? To be asked
 * before the line is cut. */
bool tarn_csv_quotes_close(const char *line, char separator);
/* Cuts the next cell of a line off, without blanks at its ends and without its quotes; NULL after
 * the last. */
char *tarn_csv_next_cell(char **line, char separator);
/* Are these the same words, whatever the case of their letters? */
bool tarn_csv_is(const char *cell, const char *name);

/* A whole decimal number from 0 to 2^53 - 1, nothing else. */
bool tarn_csv_number(const char *cell, uint64_t *number);

/* What a row is called, and which row it is. */
struct tarn_csv_name {
    const char *text;
    uint32_t index;
};

/* Sorts by name, then row. The second of two equal names, behind the first; NULL: all differ. */
const struct tarn_csv_name *tarn_csv_find_twin(struct tarn_csv_name *names, uint32_t count);

#endif
