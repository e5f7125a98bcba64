/* Parses the values of options, by kind (values.c), and compares the files that two paths lead to
 * (files.c). */
#ifndef TARN_CLI_COMMAND_VALUES_H
#define TARN_CLI_COMMAND_VALUES_H

#include <stdbool.h>

#include "command.h"

/* Reads a value and writes it to option->value. False: the text is no value of the option's
 * kind. */
bool tarn_option_parse(const struct tarn_option *option, const char *text);

/* What such a value looks like, for a message: "a whole number". */
const char *tarn_option_wanted(const struct tarn_option *option);

/* What to write instead of a value that could not be read, as the end of a message: ": write
 * 1536MiB" for "1.5GiB", whose number is not whole. Empty: no hint is known. */
enum { TARN_HINT_MAX = 64 };
void tarn_option_hint(const struct tarn_option *option, const char *text, char hint[TARN_HINT_MAX]);

/* Do two paths lead to one regular file, through any spelling, symbolic links or hard links, even
 * if the file does not exist yet? "-" is standard output if `is_output` is true, else standard
 * input. Pipes and devices are never the same. */
bool tarn_is_same_file(const char *a, bool a_is_output, const char *b, bool b_is_output);

#endif
