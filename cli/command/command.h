/* A verb's command line as a table: its options, the variables that they set, and their help texts.
 * The command line's parser, both lengths of help, the manual page and the shells' completion are
 * made from this table. The public header of this directory. */
#ifndef TARN_CLI_COMMAND_H
#define TARN_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "messages.h"
#include "print.h"
#include "suggest.h"
#include "tarn.h"

enum tarn_option_kind {
    TARN_OPTION_FLAG,    /* bool: set when given */
    TARN_OPTION_TEXT,    /* const char *: borrowed from the command line */
    TARN_OPTION_INPUT,   /* the same, the path of a file that is read */
    TARN_OPTION_OUTPUT,  /* the same, the path of a file that is written */
    TARN_OPTION_COUNT,   /* uint32_t: decimal */
    TARN_OPTION_TIMES,   /* uint32_t: decimal, at least 1 */
    TARN_OPTION_NUMBER,  /* uint64_t: decimal */
    TARN_OPTION_SIZE,    /* uint64_t: bytes, at least 1, with an optional unit: 512, 10MB, 8GiB */
    TARN_OPTION_BUDGET,  /* struct tarn_size_or_share: the same, or a share: 70% */
    TARN_OPTION_RATES,   /* struct tarn_rates: one or two sizes per second: 50GB/s,45GB/s */
    TARN_OPTION_SECONDS, /* uint64_t nanoseconds, at least 1: decimal seconds, for example 0.5 */
    TARN_OPTION_PERCENT, /* double, a share: decimal percent, for example 0.5 */
    TARN_OPTION_CHOICE   /* an enum: which of the words of value_name, "first|second" */
};

/* --help shows everyday options, --help-all special ones, too. */
enum tarn_option_rank { TARN_EVERYDAY, TARN_SPECIAL };

/* Bytes, or a share of a size that is known later; the other member is 0. */
struct tarn_size_or_share {
    uint64_t bytes;
    double share; /* above 0, at most 1 */
};

/* Bytes per second, to somewhere and back. */
struct tarn_rates {
    uint64_t out, into; /* 0: not given */
};

struct tarn_option {
    const char *name; /* without the two dashes */
    char letter;      /* of the short form, or 0 */
    enum tarn_option_kind kind;
    void *value;            /* keeps its default when the option is not given */
    const char *value_name; /* in --help; NULL for a flag */
    const char *help; /* --help shows the text before a line break, --help-all the whole text */
    enum tarn_option_rank rank;
};

/* A row without a short form, for rows that several verbs have; kind and rank without prefix. */
#define TARN_ROW(name, kind, value, value_name, help, rank)               \
    {                                                                     \
        name, 0, TARN_OPTION_##kind, value, value_name, help, TARN_##rank \
    }

struct tarn_command {
    const char *verb;
    const char *usage; /* the files that follow `tarn VERB`, and the option that most give */
    const char *about; /* whole lines; --help shows those before the first empty one */
    const struct tarn_option *options;
    size_t options_count;
    size_t arguments_min, arguments_max; /* files, not options */
    size_t arguments_written; /* how many of the last of them are written; the others are read */
    const enum tarn_status *exits; /* exit codes besides 0, 2, 8 and 130; ends with 0 */
    const char *refusal;           /* what exit code 1 means; NULL: a plan that does not fit */
    const char *example;           /* whole lines */
};

/* Reads the words that follow the verb. Fills option values and arguments[0..arguments_max), NULL
 * if absent. An output file must be neither an input file nor another output file, standard
 * output's file included. Returns false if the verb has nothing more to do: help was printed
 * (*status TARN_OK), or the command line is wrong (*status TARN_USAGE, after a message on
 * stderr). */
bool tarn_options_parse(const struct tarn_command *command, char **words, const char **arguments,
                        enum tarn_status *status);

/* Says what is wrong with the command line and where help is; returns TARN_USAGE. */
enum tarn_status tarn_options_refuse(const struct tarn_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Words by which `tarn help --man` and `tarn completion SHELL` ask a verb for its part. */
#define TARN_ASK_MANUAL "--help-man"
#define TARN_ASK_COMPLETION "--help-completion=" /* bash, zsh or fish follows */

/* Is the path "-", standard input or output, or another name of standard output? NULL: no. */
bool tarn_is_dash(const char *path);

/* Parses a decimal number without sign or space. False: the text is no such number, or it does not
 * fit. */
bool tarn_number_parse(const char *text, uint64_t *number);

#endif
