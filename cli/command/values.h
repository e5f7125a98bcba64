/* The values of options, by kind. */
#ifndef TARN_CLI_COMMAND_VALUES_H
#define TARN_CLI_COMMAND_VALUES_H

#include "command.h"

/* Reads a value and writes it to option->value. False: the text is none of the option's kind. */
bool tarn_option_parse(const struct tarn_option *option, const char *text);

/* What such a value looks like, for a message: "a whole number". */
const char *tarn_option_wanted(const struct tarn_option *option);

#endif
