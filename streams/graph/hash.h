/* A 128-bit content hash: equal graphs have equal hashes on every machine. It guards against
 * mistakes (a plan used with another graph), not against attackers. */
#ifndef TARN_STREAMS_GRAPH_HASH_H
#define TARN_STREAMS_GRAPH_HASH_H

#include "graph.h"

/* Of everything that defines the graph: all but its name, its meta and what is derived. */
struct tarn_hash tarn_hash_of_graph(const struct tarn_graph *graph);

/* 32 lower-case hexadecimal digits. */
struct tarn_hash_text {
    char text[33];
};
struct tarn_hash_text tarn_hash_format(struct tarn_hash hash);
/* False when the text is anything else. */
bool tarn_hash_parse(const char *text, struct tarn_hash *hash);

#endif
