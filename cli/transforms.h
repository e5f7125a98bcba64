/* Turns the flags of a command line into the library's options for transforms, and prints the
 * results. `tarn plan` and `tarn transform` have the same flags. */
#ifndef TARN_CLI_TRANSFORMS_H
#define TARN_CLI_TRANSFORMS_H

#include "command/command.h"
#include "kinds.h"

/* The progress line while transforms search: the last step that a transform reported, maybe from a
 * thread of its own. */
struct tarn_watch {
    const char *graph_path;
    _Atomic(const char *) transform; /* NULL: no step was reported yet */
    _Atomic uint64_t step, bytes;
};

struct tarn_transforms {
    bool assign, reorder, couple, in_place;
    enum tarn_group_padding pad_groups;
    uint32_t wait_ns; /* 0: not given */
    struct tarn_size_or_share budget;
    double reorder_slowdown; /* share; below 0: not given */
    struct tarn_kinds kinds; /* that --in-place-kinds allows */
    struct tarn_assign_options assign_options;
    struct tarn_assign_report assign_report;
    struct tarn_budget_options budget_options;
    struct tarn_budget_report budget_report;
    struct tarn_rates offload;
    const char *offload_kinds;    /* as given: words with commas between them */
    const char *offload_streams;  /* as given: two names, a comma between them */
    char offload_out_stream[128]; /* the first of them */
    struct tarn_offload_options offload_options;
    struct tarn_offload_report offload_report;
    struct tarn_reorder_options reorder_options;
    struct tarn_reorder_report reorder_report;
    struct tarn_couple_options couple_options;
    struct tarn_couple_report couple_report;
    struct tarn_in_place_options in_place_options;
    struct tarn_in_place_report in_place_report;
    struct tarn_transform_control control; /* of those that are watched */
    struct tarn_watch watch;
};

/* Rows of an option table. */
#define TARN_TRANSFORM_OPTIONS(transforms)                                                         \
    TARN_ROW("pad-groups", CHOICE, &(transforms).pad_groups, "graph|exact|padded|auto",            \
             "members of contiguous groups end to end, or each up to the alignment; auto: the "    \
             "smaller plan of the two (default: as the graph says)",                               \
             SPECIAL),                                                                             \
        TARN_ROW("assign", FLAG, &(transforms).assign, NULL,                                       \
                 "put the ops into streams that run side by side,\nwhatever streams they are in",  \
                 EVERYDAY),                                                                        \
        TARN_ROW(                                                                                  \
            "streams", TIMES, &(transforms).assign_options.streams, "N",                           \
            "streams to compute in (default 2); communication and copies get one of their own",    \
            SPECIAL),                                                                              \
        TARN_ROW("assign-mode", CHOICE, &(transforms).assign_options.mode, "schedule|concurrency", \
                 "by a schedule of the ops' costs (default), or as many streams as it takes to "   \
                 "lose no concurrency",                                                            \
                 SPECIAL),                                                                         \
        TARN_ROW("wait-ns", TIMES, &(transforms).wait_ns, "NS",                                    \
                 "what an event wait between two streams takes in the model (default 3000)",       \
                 SPECIAL),                                                                         \
        TARN_ROW("budget", BUDGET, &(transforms).budget, "BYTES|PERCENT%",                         \
                 "the arena keeps within that,\nby computing forward results again instead of "    \
                 "keeping them, and by other implementations, for the least modelled time; 70%: "  \
                 "of the footprint that the same command has without it, which is planned first",  \
                 EVERYDAY),                                                                        \
        TARN_ROW("budget-method", CHOICE, &(transforms).budget_options.method,                     \
                 "search|keep|chen|checkmate|gist|offload",                                        \
                 "search (default); keep everything; keep the ends of square-root-many segments; " \
                 "recompute only; other implementations only; moves only, with --offload",         \
                 SPECIAL),                                                                         \
        TARN_ROW("offload", RATES, &(transforms).offload, "RATE[,RATE]",                           \
                 "storages that idle wait in the host's memory, copied there and back at these "   \
                 "rates, for example 50GB/s,45GB/s, where that keeps to the budget in less "       \
                 "modelled time; without a budget where no op waits for it",                       \
                 SPECIAL),                                                                         \
        TARN_ROW("offload-latency-ns", NUMBER, &(transforms).offload_options.latency_ns, "NS",     \
                 "what a copy takes beside its bytes (default 5000)", SPECIAL),                    \
        TARN_ROW("offload-kinds", TEXT, &(transforms).offload_kinds, "KIND,KIND...",               \
                 "what may move: activations (default), states (of optimizers), parameters; the "  \
                 "last two then lie in the other memory, and in the arena around their uses",      \
                 SPECIAL),                                                                         \
        TARN_ROW("offload-margin", PERCENT, &(transforms).offload_options.margin, "PERCENT",       \
                 "by which copies are planned slower than that (default 0)", SPECIAL),             \
        TARN_ROW("offload-min", SIZE, &(transforms).offload_options.bytes_min, "BYTES",            \
                 "smaller storages stay (default 1MiB)", SPECIAL),                                 \
        TARN_ROW("offload-space", TIMES, &(transforms).offload_options.space, "ID",                \
                 "memory space to move to (default: the first one of kind pinned, or a new one)",  \
                 SPECIAL),                                                                         \
        TARN_ROW("offload-capacity", SIZE, &(transforms).offload_options.capacity, "BYTES",        \
                 "most that the new memory space holds (default: no limit)", SPECIAL),             \
        TARN_ROW("offload-streams", TEXT, &(transforms).offload_streams, "NAME,NAME",              \
                 "names of the streams that copy out and back (default d2h,h2d)", SPECIAL),        \
        TARN_ROW("known-only", FLAG, &(transforms).budget_options.known_only, NULL,                \
                 "a budget runs no op again whose kind Tarn does not know, unless the graph says " \
                 "that it is pure or recomputable ('tarn info' lists these kinds)",                \
                 SPECIAL),                                                                         \
        TARN_ROW("reorder", FLAG, &(transforms).reorder, NULL,                                     \
                 "look for an order of ops in which less is alive", EVERYDAY),                     \
        TARN_ROW("reorder-keep-time", FLAG, &(transforms).reorder_options.keep_time, NULL,         \
                 "several streams: no order whose modelled critical path is longer", SPECIAL),     \
        TARN_ROW("reorder-slowdown", PERCENT, &(transforms).reorder_slowdown, "PERCENT",           \
                 "several streams: by which another order may make the modelled critical path "    \
                 "longer (implies --reorder; 0: --reorder-keep-time)",                             \
                 SPECIAL),                                                                         \
        TARN_ROW("couple", FLAG, &(transforms).couple, NULL,                                       \
                 "add event waits, so that less is alive at once\nin the worst case: down to the " \
                 "capacity if there is one, else to the serial peak",                              \
                 EVERYDAY),                                                                        \
        TARN_ROW("couple-keep", PERCENT, &(transforms).couple_options.keep, "PERCENT",             \
                 "of the excess over the serial peak that may stay (default 0)", SPECIAL),         \
        TARN_ROW("slowdown-max", PERCENT, &(transforms).couple_options.slowdown_max, "PERCENT",    \
                 "by which waits may make the modelled critical path longer (default 0)",          \
                 SPECIAL),                                                                         \
        TARN_ROW(                                                                                  \
            "in-place", FLAG, &(transforms).in_place, NULL,                                        \
            "let ops write over inputs that no op needs any more,\nwhere the graph allows it",     \
            EVERYDAY),                                                                             \
        TARN_ROW("in-place-kinds", TEXT, &(transforms).kinds.text, "KIND,KIND...",                 \
                 "kinds of op that may do so whatever the graph says", SPECIAL)

/* Sets the options to what the flags ask for; they point into *transforms. Returns NULL, or what is
 * wrong with the flags. */
const char *tarn_transforms_ask(struct tarn_transforms *transforms,
                                struct tarn_plan_options *options);
/* After this call the transforms' searches note their results for tarn_watch_tell. */
void tarn_transforms_watch(struct tarn_transforms *transforms, const char *graph_path);
/* Shows the terminal the last note, once it is late (command/messages.h). */
void tarn_watch_tell(const struct tarn_watch *watch);
/* Prints the results of the requested transforms. */
void tarn_transforms_print(struct tarn_printer *printer, const struct tarn_transforms *transforms);
void tarn_transforms_finish(struct tarn_transforms *transforms);

#endif
