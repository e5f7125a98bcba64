/* Between the two parts of the loader of graph files: the document, and its ops. */
#ifndef TARN_STREAMS_FILE_GRAPH_READ_OP_H
#define TARN_STREAMS_FILE_GRAPH_READ_OP_H

#include "json_read.h"

/* The lists are those of the record that is being read; their memory is used again for the next. */
struct tarn_graph_loader {
    const struct tarn_report *report;
    struct tarn_builder *builder;
    struct tarn_json_ids inputs, outputs, control, inplace, members, choices, common;
    struct tarn_implementation *implementations;
    size_t implementations_capacity;
    struct tarn_region region; /* of the lists above */
};

/* Adds the op to the builder, whose errors come when it finishes. */
enum tarn_status tarn_load_op(struct tarn_graph_loader *loader, const struct tarn_json_at *at,
                              const struct tarn_json *value);

#endif
