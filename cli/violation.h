/* Rows of violations, for the verbs that verify. */
#ifndef TARN_CLI_VIOLATION_H
#define TARN_CLI_VIOLATION_H

#include "command/command.h"

/* An item of a list. graph, plan: paths, or NULL if the answer is about one plan. */
void tarn_print_violation(struct tarn_printer *printer, const struct tarn_violation *violation,
                          const char *graph, const char *plan);

#endif
