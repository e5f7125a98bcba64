/* Tables in text: lines of cells between commas, without quotes. Cutting writes into the text. */
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
/* Cuts the next line off, without blanks and carriage return at its ends; NULL after the last. */
char *tarn_csv_next_line(char **text);
/* The same for the next cell of a line. */
char *tarn_csv_next_cell(char **line);

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
