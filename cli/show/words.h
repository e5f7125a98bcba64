/* Writes names and amounts in pictures. Names come from files and may hold any bytes: they are made
 * plain (see tarn/text.h), and escaped for the language that they are written in. */
#ifndef TARN_CLI_SHOW_WORDS_H
#define TARN_CLI_SHOW_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tarn.h"

/* Maximum bytes, in pictures, of a name, and of a line that says what is wrong. */
#define TARN_NAME_MAX 200
#define TARN_LINE_MAX 520

/* Writes a name, made plain, cut to `limit` bytes with a mark for the omitted bytes, and escaped
 * for the language; in TARN_JSON with its quotes. */
void tarn_write_name(FILE *file, enum tarn_language language, const char *name, size_t limit);

/* The same without quotes. */
void tarn_write_inside(FILE *file, enum tarn_language language, const char *name, size_t limit);

/* "84.69 MiB". */
struct tarn_amount {
    char text[24];
};
struct tarn_amount tarn_amount(uint64_t bytes);
/* "16 MiB" if only zeros would follow. */
struct tarn_amount tarn_round_amount(uint64_t bytes);
/* "1,099". */
struct tarn_amount tarn_grouped(uint64_t number);

#endif
