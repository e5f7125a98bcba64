/* A 128-bit content hash: equal graphs have equal hashes on every machine. It guards against
 * mistakes (a plan used with another graph), not against attackers. */
#ifndef TARN_STREAMS_GRAPH_HASH_H
#define TARN_STREAMS_GRAPH_HASH_H

#include "graph.h"

/* A hash in the making: begin, add words and lists, end. */
struct tarn_hasher {
    uint64_t a, b;
};

struct tarn_hasher tarn_hasher_begin(void);
void tarn_hasher_add(struct tarn_hasher *hasher, uint64_t word);
void tarn_hasher_add_list(struct tarn_hasher *hasher, const uint32_t *ids, size_t count);
struct tarn_hash tarn_hasher_end(const struct tarn_hasher *hasher);

/* Of everything that defines the graph: all but its name, its meta and what is derived. */
struct tarn_hash tarn_hash_of_graph(const struct tarn_graph *graph);

/* Reads what tarn_hash_format writes; false when the text is anything else. */
bool tarn_hash_parse(const char *text, struct tarn_hash *hash);

#endif
