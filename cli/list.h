/* List files: the path of a graph in each line, for tarn plan --batch, and for --family and
 * --ranks of tarn plan and tarn verify. */
#ifndef TARN_CLI_LIST_H
#define TARN_CLI_LIST_H

#include "command/command.h"

struct tarn_graph_list {
    const char *path; /* as given; "-": standard input */
    uint64_t number;  /* of the line that was read last, from 1 on */
    FILE *file;
    char *line;
    size_t room;
    bool failed; /* a line could not be read, or there was no memory for it */
};

/* Says why not if it cannot. */
bool tarn_list_open(struct tarn_graph_list *list, const char *path);
/* The next line that is not empty, until the next call; NULL: there is none, or no more could be
 * read. */
const char *tarn_list_next(struct tarn_graph_list *list);
/* TARN_SYSTEM: not all of it could be read, which this says. */
enum tarn_status tarn_list_close(struct tarn_graph_list *list);

/* "LIST, line 3": where the line is that was read last. */
struct tarn_list_place {
    char text[256];
};
struct tarn_list_place tarn_list_place(const struct tarn_graph_list *list);

#endif
