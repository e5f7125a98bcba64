/* Reads and writes graphs as JSON inside other documents: a plan file embeds its final graph. */
#ifndef TARN_STREAMS_FILE_GRAPH_READ_H
#define TARN_STREAMS_FILE_GRAPH_READ_H

#include <stdio.h>

#include "json_read.h"

/* Makes a graph of a parsed `tarn.graph` object, which is the field "graph" of a document. */
enum tarn_status tarn_graph_decode_inside(const struct tarn_json_at *at, struct tarn_graph **graph);
/* Writes the object, without a final newline; errors are the stream's. */
void tarn_graph_print(const struct tarn_graph *graph, FILE *file);

#endif
