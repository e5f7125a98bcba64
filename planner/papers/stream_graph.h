/* The paper's values on the stream graph (section 3.2), apart from the pairs so that tests can look
 * at them. Orders are 1-based places in a stream, views included; 0 means none. */
#ifndef TARN_PLANNER_PAPERS_STREAM_GRAPH_H
#define TARN_PLANNER_PAPERS_STREAM_GRAPH_H

#include "streams/base/region.h"
#include "streams/graph/graph.h"

/* EndTime of an output: the end of the iteration, after every op of every stream. */
#define TARN_ORDER_END UINT32_MAX

/* Tensors are planned storages; a tensor's stream is its producer's. */
struct tarn_stream_graph {
    uint32_t streams_count;
    uint32_t *start_time;  /* [t] order of the producer */
    uint32_t *end_time;    /* [t][s] highest order of a consumer in s; 0: s is not in DestStreams */
    uint32_t *max_anc_id;  /* [t][s] highest order in s of an ancestor of the producer */
    bool *between_streams; /* [t] is there a consumer outside the producer's stream? */
    bool *anc_streams;     /* [s1][s2] is s2 another stream and an ancestor of s1? */
    uint32_t *tensors;     /* T_s: those of stream s are tensors[begin[s]..begin[s + 1]) */
    uint32_t *begin;       /* streams_count + 2, of which the last one is not read */
};

/* Taken from the region. TARN_SYSTEM: no memory. O((V + E + T) S). */
enum tarn_status tarn_stream_graph_init(struct tarn_stream_graph *streams,
                                        struct tarn_region *region, const struct tarn_graph *graph);

#endif
