/* Clocks: the ops that each op strictly reaches. Positions count all ops of a stream, views
 * included; the length of the stream also means "never". */
#ifndef TARN_STREAMS_GRAPH_CLOCKS_H
#define TARN_STREAMS_GRAPH_CLOCKS_H

#include "graph.h"

struct tarn_region;

/* R[v][s]: the smallest position in stream s of an op that v strictly reaches. Ops without
 * cross-stream successors share the row of the next op in their stream; the entry of v's own stream
 * is pos(v) + 1 and not stored. */
struct tarn_clocks {
    uint32_t streams_count;
    uint32_t *row_of; /* op -> row; rows[row * streams_count + s] */
    uint32_t *rows;
    uint32_t rows_count;
};

static inline uint32_t tarn_clocks_reach(const struct tarn_clocks *clocks,
                                         const struct tarn_graph *graph, uint32_t op, uint32_t s)
{
    if (graph->ops[op].stream == s) return graph->ops[op].position + 1;
    return clocks->rows[(size_t)clocks->row_of[op] * clocks->streams_count + s];
}

/* Does a happen strictly before b? */
static inline bool tarn_clocks_before(const struct tarn_clocks *clocks,
                                      const struct tarn_graph *graph, uint32_t a, uint32_t b)
{
    return graph->ops[b].position >= tarn_clocks_reach(clocks, graph, a, graph->ops[b].stream);
}

/* All arrays from the region. The graph needs ops, streams, order and arcs only. TARN_SYSTEM: no
 * memory. */
enum tarn_status tarn_clocks_init(struct tarn_clocks *clocks, struct tarn_region *region,
                                  const struct tarn_graph *graph);

/* Does every op reach the next op in its stream, its successors, and all ops that these reach? For
 * tests; cost: that of tarn_clocks_init. */
bool tarn_clocks_is_valid(const struct tarn_clocks *clocks, const struct tarn_graph *graph);

#endif
