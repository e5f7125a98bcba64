/* The command line. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>

struct options {
    const char *network, *optimizer, *memory;
    int steps, batch, shards, width, bucket;
    bool second_stream;
    const char *budget;
    bool reorder, couple, in_place;
    const char *plan, *graph, *save_plan, *save_graph, *trace;
    const char *data, *checkpoint, *resume;
    int every, wire;
    double deadline;
    bool check_gradient;
    const char *fault;
    bool help;
};

/* Ends the program when an option is wrong; with --help, after printing them all. */
void options_parse(struct options *options, int argc, char **argv);

/* Is this fault to happen on this rank? "hang:1:5": at step 5 (at: where to leave it; or NULL). */
bool options_fault(const struct options *options, const char *kind, int *at);

#endif
