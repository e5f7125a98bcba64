/* The transforms that a command line asks for: flags in, library options out, and what came of
 * them. `tarn plan` and `tarn transform` have the same flags. */
#ifndef TARN_CLI_TRANSFORMS_H
#define TARN_CLI_TRANSFORMS_H

#include "command/command.h"

#define TARN_KINDS_MAX 32

struct tarn_transforms {
    bool assign, reorder, couple, in_place;
    enum tarn_group_padding pad_groups;
    uint32_t wait_ns;       /* 0: not given */
    const char *kinds_text; /* words between commas */
    char kinds_copy[1024];  /* what `kinds` points into */
    const char *kinds[TARN_KINDS_MAX];
    struct tarn_assign_options assign_options;
    struct tarn_assign_report assign_report;
    struct tarn_budget_options budget_options;
    struct tarn_budget_report budget_report;
    struct tarn_reorder_options reorder_options;
    struct tarn_reorder_report reorder_report;
    struct tarn_couple_options couple_options;
    struct tarn_couple_report couple_report;
    struct tarn_in_place_options in_place_options;
    struct tarn_in_place_report in_place_report;
};

/* Rows of an option table. */
#define TARN_TRANSFORM_OPTIONS(transforms)                                                       \
    {"pad-groups",                                                                               \
     0,                                                                                          \
     TARN_OPTION_CHOICE,                                                                         \
     &(transforms).pad_groups,                                                                   \
     "graph|exact|padded|auto",                                                                  \
     "members of contiguous groups end to end, or each up to the alignment; auto: the smaller "  \
     "plan of the two (default: as the graph says)",                                             \
     TARN_SPECIAL},                                                                              \
        {"assign",                                                                               \
         0,                                                                                      \
         TARN_OPTION_FLAG,                                                                       \
         &(transforms).assign,                                                                   \
         NULL,                                                                                   \
         "put the ops into streams that run side by side,\nwhatever streams they are in",        \
         TARN_EVERYDAY},                                                                         \
        {"streams",                                                                              \
         0,                                                                                      \
         TARN_OPTION_TIMES,                                                                      \
         &(transforms).assign_options.streams,                                                   \
         "N",                                                                                    \
         "streams to compute in (default 2); communication and copies get one of their own",     \
         TARN_SPECIAL},                                                                          \
        {"assign-mode",                                                                          \
         0,                                                                                      \
         TARN_OPTION_CHOICE,                                                                     \
         &(transforms).assign_options.mode,                                                      \
         "schedule|concurrency",                                                                 \
         "by a schedule of the ops' costs (default), or as many streams as it takes to lose no " \
         "concurrency",                                                                          \
         TARN_SPECIAL},                                                                          \
        {"wait-ns",                                                                              \
         0,                                                                                      \
         TARN_OPTION_TIMES,                                                                      \
         &(transforms).wait_ns,                                                                  \
         "NS",                                                                                   \
         "what an event wait between two streams takes in the model (default 3000)",             \
         TARN_SPECIAL},                                                                          \
        {"budget",                                                                               \
         0,                                                                                      \
         TARN_OPTION_SIZE,                                                                       \
         &(transforms).budget_options.budget,                                                    \
         "BYTES",                                                                                \
         "the arena keeps within that,\nby computing forward results again instead of keeping "  \
         "them, and "                                                                            \
         "by other implementations, for the least modelled time",                                \
         TARN_EVERYDAY},                                                                         \
        {"budget-method",                                                                        \
         0,                                                                                      \
         TARN_OPTION_CHOICE,                                                                     \
         &(transforms).budget_options.method,                                                    \
         "search|keep|chen|checkmate|gist",                                                      \
         "search (default); keep everything; keep the ends of square-root-many segments; "       \
         "recompute only; other implementations only",                                           \
         TARN_SPECIAL},                                                                          \
        {"reorder",                                                                              \
         0,                                                                                      \
         TARN_OPTION_FLAG,                                                                       \
         &(transforms).reorder,                                                                  \
         NULL,                                                                                   \
         "look for an order of ops in which less is alive",                                      \
         TARN_EVERYDAY},                                                                         \
        {"reorder-keep-time",                                                                    \
         0,                                                                                      \
         TARN_OPTION_FLAG,                                                                       \
         &(transforms).reorder_options.keep_time,                                                \
         NULL,                                                                                   \
         "several streams: no order whose modelled critical path is longer",                     \
         TARN_SPECIAL},                                                                          \
        {"couple",                                                                               \
         0,                                                                                      \
         TARN_OPTION_FLAG,                                                                       \
         &(transforms).couple,                                                                   \
         NULL,                                                                                   \
         "add event waits, so that less is alive at once\nin the worst case: down to the "       \
         "capacity if there is one, else to the serial peak",                                    \
         TARN_EVERYDAY},                                                                         \
        {"couple-keep",       0,                                                                 \
         TARN_OPTION_PERCENT, &(transforms).couple_options.keep,                                 \
         "PERCENT",           "of the excess over the serial peak that may stay (default 0)",    \
         TARN_SPECIAL},                                                                          \
        {"slowdown-max",                                                                         \
         0,                                                                                      \
         TARN_OPTION_PERCENT,                                                                    \
         &(transforms).couple_options.slowdown_max,                                              \
         "PERCENT",                                                                              \
         "by which waits may make the modelled critical path longer (default 0)",                \
         TARN_SPECIAL},                                                                          \
        {"in-place",                                                                             \
         0,                                                                                      \
         TARN_OPTION_FLAG,                                                                       \
         &(transforms).in_place,                                                                 \
         NULL,                                                                                   \
         "let ops write over inputs that nobody needs any more,\nwhere the graph allows it",     \
         TARN_EVERYDAY},                                                                         \
    {                                                                                            \
        "in-place-kinds", 0, TARN_OPTION_TEXT, &(transforms).kinds_text, "KIND,KIND...",         \
            "kinds of op that may do so whatever the graph says", TARN_SPECIAL                   \
    }

/* Lets the options ask for what the flags ask for; they point into *transforms. NULL, or what is
 * wrong with the flags. */
const char *tarn_transforms_ask(struct tarn_transforms *transforms,
                                struct tarn_plan_options *options);
/* What the transforms that were asked for have found. */
void tarn_transforms_print(struct tarn_printer *printer, const struct tarn_transforms *transforms);
void tarn_transforms_finish(struct tarn_transforms *transforms);

#endif
