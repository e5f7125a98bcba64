/* What a shell completes: verbs, options, words of a choice, and files. */
#ifndef TARN_CLI_COMMAND_COMPLETION_H
#define TARN_CLI_COMMAND_COMPLETION_H

#include "command.h"

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
