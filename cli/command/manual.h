/* Manual pages in the language of man(7). */
#ifndef TARN_CLI_COMMAND_MANUAL_H
#define TARN_CLI_COMMAND_MANUAL_H

#include "command.h"

/* The first lines of the page `page`: its title and NAME. On standard output, as what follows. */
void tarn_manual_begin(const char *page, const char *brief);

/* The rest of a verb's page, from SYNOPSIS on. */
void tarn_manual_print(const struct tarn_command *command);

/* Whole lines, as they are. */
void tarn_manual_lines(const char *lines);

#endif
