/* A 128-bit content hash: equal graphs have equal hashes on every machine. It guards against
 * mistakes (a plan used with another graph), not against attackers. */
#ifndef TARN_STREAMS_GRAPH_HASH_H
#define TARN_STREAMS_GRAPH_HASH_H

#include "graph.h"

/* State of a hash: begin, add words and lists, end. */
struct tarn_hasher {
    uint64_t a, b;
};

struct tarn_hasher tarn_hasher_begin(void);
void tarn_hasher_add(struct tarn_hasher *hasher, uint64_t word);
void tarn_hasher_add_list(struct tarn_hasher *hasher, const uint32_t *ids, size_t count);
struct tarn_hash tarn_hasher_end(const struct tarn_hasher *hasher);

/* The hash of everything that defines the graph: all but its name, its meta and derived data. */
struct tarn_hash tarn_hash_of_graph(const struct tarn_graph *graph);

/* Parses the text of tarn_hash_format; false for any other text. */
bool tarn_hash_parse(const char *text, struct tarn_hash *hash);

#endif
