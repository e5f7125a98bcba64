/* Graphs as JSON inside other documents: a plan file embeds its final graph. */
#ifndef TARN_STREAMS_FILE_GRAPH_READ_H
#define TARN_STREAMS_FILE_GRAPH_READ_H

#include <stdio.h>

#include "json_read.h"

/* Makes a graph of a parsed `tarn.graph` object, which is the field "graph" of a document. */
enum tarn_status tarn_graph_decode_inside(const struct tarn_json_at *at, struct tarn_graph **graph);
/* Writes the object, without a final newline; errors are the stream's. */
void tarn_graph_print(const struct tarn_graph *graph, FILE *file);

/* ---- Between the two parts of the loader: the document, and its ops ---- */

/* The lists are those of the record that is being read; their memory is used again for the next. */
struct tarn_graph_loader {
    struct tarn_builder *builder;
    struct tarn_json_ids inputs, outputs, control, inplace, members, choices, common;
    struct tarn_implementation *implementations;
    size_t implementations_capacity;
    struct tarn_region region; /* of the lists above */
};

#endif
