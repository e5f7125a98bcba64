/* Recognises files of other programs that are given as a graph, so that the error can name them. */
#ifndef TARN_STREAMS_FILE_FOREIGN_H
#define TARN_STREAMS_FILE_FOREIGN_H

#include "streams/graph/report.h"

/* The first bytes of a file, kept while a loader takes the text apart. */
struct tarn_foreign_head {
    unsigned char bytes[1 << 12];
    size_t size;
};

void tarn_foreign_keep(struct tarn_foreign_head *head, const char *bytes, size_t size);

/* For a file that is no graph: if it looks like another program's file, replaces the error by one
 * that names its kind and the call that reads it. */
void tarn_foreign_explain(const struct tarn_report *report, const struct tarn_foreign_head *head);

#endif
