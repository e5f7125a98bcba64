/* Splits a comma-separated list of op kinds, as --in-place-kinds takes it. The list says what a
 * plan may do, and what is allowed in a plan that comes from elsewhere. */
#ifndef TARN_CLI_KINDS_H
#define TARN_CLI_KINDS_H

#include "command/command.h"

#define TARN_KINDS_MAX 32

struct tarn_kinds {
    const char *text; /* as it was given; NULL: not at all */
    char copy[1024];  /* the text that `words` points into */
    const char *words[TARN_KINDS_MAX];
    size_t count;
    struct tarn_verify_options allowed; /* the same for the verifier */
};

/* Row of an option table, of verbs that read a plan. */
#define TARN_ALLOW_OPTION(kinds)                                                                   \
    TARN_ROW("in-place-kinds", TEXT, &(kinds).text, "KIND,KIND...",                                \
             "kinds of op that the plan may let write over their inputs whatever the graph says; " \
             "as when it was planned",                                                             \
             SPECIAL)

/* Cuts the text at its commas. Returns NULL, or what is wrong with the text. */
const char *tarn_kinds_split(struct tarn_kinds *kinds);

#endif
