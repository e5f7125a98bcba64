/* Text for a page, compressed, in letters that have no special meaning in HTML. */
#ifndef TARN_CLI_SHOW_PACK_H
#define TARN_CLI_SHOW_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes gzip in base64. False: no memory. */
bool tarn_pack(FILE *file, const char *text, size_t size);

#endif
