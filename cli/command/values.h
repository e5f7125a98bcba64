/* What the words behind a verb mean: the values of options, by kind, and which file a path leads
 * to. */
#ifndef TARN_CLI_COMMAND_VALUES_H
#define TARN_CLI_COMMAND_VALUES_H

#include <stdbool.h>

#include "command.h"

/* Reads a value and writes it to option->value. False: the text is none of the option's kind. */
bool tarn_option_parse(const struct tarn_option *option, const char *text);

/* What such a value looks like, for a message: "a whole number". */
const char *tarn_option_wanted(const struct tarn_option *option);

/* What to write instead of a value that could not be read, as the end of a message: ": write
 * 1536MiB" for "1.5GiB", whose number is none that is whole. Empty: there is no telling. */
enum { TARN_HINT_MAX = 64 };
void tarn_option_hint(const struct tarn_option *option, const char *text, char hint[TARN_HINT_MAX]);

/* Do two paths lead to one regular file, by whatever spelling, links or hard links, also where none
 * of them is there yet? "-" is standard input as `is_output` says false, else standard output.
 * Pipes and devices are nobody's contents and never the same. */
bool tarn_is_same_file(const char *a, bool a_is_output, const char *b, bool b_is_output);

#endif
