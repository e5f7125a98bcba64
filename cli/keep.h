/* Implements tarn plan --keep: takes the offsets of an earlier plan for storages that are still in
 * the graph. */
#ifndef TARN_CLI_KEEP_H
#define TARN_CLI_KEEP_H

#include "command/command.h"

struct tarn_keep {
    const char *plan_path; /* NULL: nothing is kept */
    /* Of the graph that the plan was made for; NULL: the graph in the plan, or else ids are equal.
     */
    const char *graph_path;
    struct tarn_placed *list;
    size_t count;
};

/* Reads the plan, and finds its storages in the graph: by their names if the plan's graph is known,
 * else by their ids; storages whose size or name differs, or that are not planned, are left out. */
enum tarn_status tarn_keep_load(struct tarn_keep *keep, const struct tarn_load_options *load,
                                const struct tarn_graph *graph, struct tarn_error *error);
/* Prints how many storages kept their offset and how many did not. */
void tarn_keep_print(struct tarn_printer *printer, const struct tarn_keep *keep,
                     const struct tarn_plan *plan);
void tarn_keep_finish(struct tarn_keep *keep);

#endif
