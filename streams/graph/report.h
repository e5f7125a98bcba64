/* Reports which rule is broken, and where, in the same way for files and for graphs built by
 * calls; and names ops, tensors and storages in messages. */
#ifndef TARN_STREAMS_GRAPH_REPORT_H
#define TARN_STREAMS_GRAPH_REPORT_H

#include "graph.h"
#include "streams/base/error.h"

struct tarn_report {
    const char *path;         /* the file being read, at the start of messages; NULL: no file */
    const char *text;         /* text of the file, for line numbers; NULL: not read yet */
    struct tarn_error *error; /* may be NULL */
    const char *base;         /* JSON pointer that locations are relative to; NULL: the document */
    uint64_t text_max;        /* bytes of text that the file may have; 0: no file */
};

/* The place of a broken rule. The JSON pointer is reported only if there is a file. */
struct tarn_location {
    uint32_t op, tensor; /* TARN_NONE: not concerned */
    char pointer[sizeof((struct tarn_error *)0)->pointer];
};

/* format: the JSON pointer, for example "/ops/%u/inputs/%u"; "" for the whole document. */
struct tarn_location tarn_location_at(uint32_t op, uint32_t tensor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends a key from a file to the JSON pointer, with "~" and "/" escaped. Cuts the key if it does
 * not fit. */
void tarn_location_append_key(struct tarn_location *location, const char *key);

/* Sets the error (the first one wins) to TARN_BAD_INPUT with location and text, and returns it. */
enum tarn_status tarn_report_bad(const struct tarn_report *report, struct tarn_location location,
                                 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The label of an object in messages: id and quoted name, long names shortened, one line. Meant to
 * be used inside the call that formats: tarn_op_label(graph, v).text */
struct tarn_label {
    char text[96];
};
struct tarn_label tarn_op_label(const struct tarn_graph *graph, tarn_op op);
struct tarn_label tarn_stream_label(const struct tarn_graph *graph, tarn_stream stream);
struct tarn_label tarn_tensor_label(const struct tarn_graph *graph, tarn_tensor tensor);
/* A root tensor, or the workspace of an op. */
struct tarn_label tarn_storage_label(const struct tarn_graph *graph, uint32_t storage);
/* The text after an offset or a size: " of memory space 1 "sram""; "" if the graph declares no
 * spaces.
 */
struct tarn_label tarn_space_phrase(const struct tarn_graph *graph, uint32_t space);
/* Any text, in quotes. */
struct tarn_label tarn_quote(const char *text);

#endif
