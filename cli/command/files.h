/* The files of a command line: what it reads must not be what it writes. */
#ifndef TARN_CLI_FILES_H
#define TARN_CLI_FILES_H

#include <stdbool.h>

/* Do two paths lead to one regular file, by whatever spelling, links or hard links, also where none
 * of them is there yet? "-" is standard input as `is_output` says false, else standard output.
 * Pipes and devices are nobody's contents and never the same. */
bool tarn_is_same_file(const char *a, bool a_is_output, const char *b, bool b_is_output);

#endif
