/* The verbs of `tarn`. Each function gets the words after the verb's name (NULL-terminated) and
 * returns the exit code, after it has printed any error on stderr. */
#ifndef TARN_CLI_VERBS_H
#define TARN_CLI_VERBS_H

#include "command/command.h"

enum tarn_status tarn_verb_info(char **words);
enum tarn_status tarn_verb_pairs(char **words);
enum tarn_status tarn_verb_plan(char **words);
enum tarn_status tarn_verb_verify(char **words);
enum tarn_status tarn_verb_run(char **words);
enum tarn_status tarn_verb_show(char **words);
enum tarn_status tarn_verb_convert(char **words);
enum tarn_status tarn_verb_transform(char **words);
enum tarn_status tarn_verb_assign(char **words);
enum tarn_status tarn_verb_compare(char **words);
enum tarn_status tarn_verb_explain(char **words);

/* Rows of an option table for a struct tarn_plan_options. */
#define TARN_PLANNING_OPTIONS(planning)                                                           \
    TARN_ROW("alignment", SIZE, &(planning).alignment, "BYTES",                                   \
             "a power of two that every offset is a multiple of (default 512)", SPECIAL),         \
        TARN_ROW("capacity", SIZE, &(planning).capacity, "BYTES",                                 \
                 "the most that the footprint may be, for example 8GiB", EVERYDAY),               \
        TARN_ROW("method", TEXT, &(planning).method, "NAME",                                      \
                 "how to place: all (default: every one until the bound is met), lowest, exact; " \
                 "baseline or somas (the best of the SOMAS paper's twenty), or one of these as "  \
                 "ALGORITHM:SORT:FIT, for example many-objects:size:first-fit (single-object, "   \
                 "many-objects; size, breadth, source, unsafe, lifetime; first-fit, best-fit); "  \
                 "roam-tree or roam (the ROAM paper's tree); llfb (lowest line, longest life "    \
                 "first: Sekiyama et al., Profile-guided memory optimization for deep neural "    \
                 "networks)",                                                                     \
                 SPECIAL),                                                                        \
        TARN_ROW("boundary", CHOICE, &(planning).boundary, "refined|simple",                      \
                 "which ops of the previous iteration are waited for: users of the same bytes "   \
                 "(default), or every stream's last",                                             \
                 SPECIAL),                                                                        \
        TARN_ROW("threads", COUNT, &(planning).threads, "N",                                      \
                 "threads to plan with (default: OMP_NUM_THREADS, or all cores); the plan does "  \
                 "not depend on it",                                                              \
                 SPECIAL)

/* Row of an option table for a struct tarn_load_options. */
#define TARN_LOAD_OPTION(load)                                                               \
    TARN_ROW("text-max", SIZE, &(load).text_max, "BYTES",                                    \
             "bytes of text that graph and plan may have each, decompressed (default 1GiB)", \
             SPECIAL)

#define TARN_JSON_OPTION(json) \
    TARN_ROW("json", FLAG, &(json), NULL, "one JSON object on standard output", EVERYDAY)

#define TARN_COUNT(array) (sizeof(array) / sizeof *(array))

/* A command's option table. */
#define TARN_OPTIONS(table) .options = (table), .options_count = TARN_COUNT(table)

#endif
