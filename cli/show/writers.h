/* The kinds of files that a picture becomes. */
#ifndef TARN_CLI_SHOW_WRITERS_H
#define TARN_CLI_SHOW_WRITERS_H

#include <stdio.h>

#include "picture.h"

/* Each writes the whole file; errors are the stream's. False: no memory. */
bool tarn_write_text(FILE *file, const struct tarn_picture *picture);  /* 80 columns, UTF-8 */
bool tarn_write_trace(FILE *file, const struct tarn_picture *picture); /* Chrome trace events */
bool tarn_write_svg(FILE *file, const struct tarn_picture *picture);   /* about 300 kB at most */
bool tarn_write_table(FILE *file, const struct tarn_picture *picture); /* CSV */
bool tarn_write_page(FILE *file, const struct tarn_picture *picture);  /* HTML, all in one */

/* Writes the page's data as JSON; see columns.c. */
bool tarn_write_columns(FILE *file, const struct tarn_picture *picture);

#endif
