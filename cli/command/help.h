/* Prints the texts that are made from an option table: --help and --help-all, manual pages,
 * completion scripts for shells. */
#ifndef TARN_CLI_COMMAND_HELP_H
#define TARN_CLI_COMMAND_HELP_H

#include "command.h"

/* Prints help on standard output; unless `in_full`, only what fits a screen of 24 lines. */
void tarn_help_print(const struct tarn_command *command, bool in_full);

/* Writes "-o, --output PLAN" to form. */
#define TARN_FORM_MAX 80
void tarn_help_form(const struct tarn_option *option, char form[TARN_FORM_MAX]);

/* The status codes that a verb can end with, in increasing order; returns their number. */
#define TARN_EXITS_MAX 12
size_t tarn_help_exits(const struct tarn_command *command, enum tarn_status exits[TARN_EXITS_MAX]);
const char *tarn_help_exit_text(const struct tarn_command *command, enum tarn_status status);

/* ---- Manual pages, in the language of man(7) ---- */

/* Prints the first lines of the page `page`: its title and NAME. This function and the next two
 * print on standard output. */
void tarn_manual_begin(const char *page, const char *brief);

/* Prints the rest of a verb's page, starting at SYNOPSIS. */
void tarn_manual_print(const struct tarn_command *command);

/* Prints whole lines, unchanged. */
void tarn_manual_lines(const char *lines);

/* ---- What a shell completes: verbs, options, words of a choice, and files ---- */

struct tarn_verb {
    const char *name;
    enum tarn_status (*run)(char **words);
    const char *brief;
};

/* A verb's part of the script for "bash", "zsh" or "fish", on standard output. */
void tarn_completion_print(const struct tarn_command *command, const char *shell);

/* The whole script. False: no such shell. */
bool tarn_completion_script(const struct tarn_verb *verbs, size_t count, const char *shell);

#endif
