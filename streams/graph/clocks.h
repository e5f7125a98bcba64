/* What each op strictly reaches, and from where on a storage's bytes may be reused.
 *
 * Positions count all ops of a stream, views included; len[s] also means "never". */
#ifndef TARN_STREAMS_GRAPH_CLOCKS_H
#define TARN_STREAMS_GRAPH_CLOCKS_H

#include "graph.h"

/* R[v][s]: the smallest position in stream s of an op that v strictly reaches. Ops without
 * cross-stream successors share the row of the next op in their stream; the entry of v's own stream
 * is pos(v) + 1 and not looked up. */
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

/* The graph needs ops, streams, order and arcs only. TARN_SYSTEM when out of memory. */
enum tarn_status tarn_clocks_init(struct tarn_clocks *clocks, const struct tarn_graph *graph);
void tarn_clocks_finish(struct tarn_clocks *clocks);

/* first[a][s]: the position in stream s from which on an op may overwrite planned storage a.
 *     a precedes b   <=>   pos(producer b) >= first[a][stream(producer b)]
 * Stored by stream, first[s * count + a], so that conflict tests stream through it. */
struct tarn_reuse {
    uint32_t streams_count;
    uint32_t count;     /* planned storages */
    uint32_t *first;    /* [stream][storage] */
    uint32_t *position; /* storage -> position of its producer */
    uint32_t *stream;   /* storage -> stream of its producer */
};

enum tarn_status tarn_reuse_init(struct tarn_reuse *reuse, const struct tarn_clocks *clocks,
                                 const struct tarn_graph *graph);
void tarn_reuse_finish(struct tarn_reuse *reuse);

static inline bool tarn_reuse_precedes(const struct tarn_reuse *reuse, uint32_t a, uint32_t b)
{
    return reuse->position[b] >= reuse->first[(size_t)reuse->stream[b] * reuse->count + a];
}

static inline bool tarn_reuse_is_safe(const struct tarn_reuse *reuse, uint32_t a, uint32_t b)
{
    return tarn_reuse_precedes(reuse, a, b) || tarn_reuse_precedes(reuse, b, a);
}

#endif
