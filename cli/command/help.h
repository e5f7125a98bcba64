/* What --help and --help-all print. */
#ifndef TARN_CLI_COMMAND_HELP_H
#define TARN_CLI_COMMAND_HELP_H

#include "command.h"

/* On standard output. Not `in_full`: what fits a screen of 24 lines. */
void tarn_help_print(const struct tarn_command *command, bool in_full);

/* Writes "-o, --output PLAN" to form. */
#define TARN_FORM_MAX 80
void tarn_help_form(const struct tarn_option *option, char form[TARN_FORM_MAX]);

/* The status codes that a verb can end with, in increasing order; returns their number. */
#define TARN_EXITS_MAX 12
size_t tarn_help_exits(const struct tarn_command *command, enum tarn_status exits[TARN_EXITS_MAX]);
const char *tarn_help_exit_text(const struct tarn_command *command, enum tarn_status status);

#endif
