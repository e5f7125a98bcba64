/* The set of unsafe pairs by four independent methods, which must agree. */
#ifndef TARN_PLANNER_PAPERS_PAIRS_H
#define TARN_PLANNER_PAPERS_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "streams/base/bitset.h"
#include "streams/base/region.h"
#include "streams/graph/graph.h"
#include "tarn/error.h"

/* Unsafe pairs as a full matrix: the result of the SOMAS paper's algorithms, and the matrix that
 * vector clocks expand to when both are compared. */

/* Symmetric bit matrix over planned storages. A set bit is an unsafe pair; the diagonal is clear,
 * and so are the bits of a row after the last storage. */
struct tarn_pair_matrix {
    uint32_t count; /* of storages */
    uint32_t words; /* 64-bit words of a row */
    uint64_t *bits; /* row a is words [a * words, (a + 1) * words) */
};

static inline bool tarn_pair_matrix_get(const struct tarn_pair_matrix *matrix, uint32_t a,
                                        uint32_t b)
{
    return tarn_set_has(matrix->bits + (size_t)a * matrix->words, b);
}

static inline void tarn_pair_matrix_clear(struct tarn_pair_matrix *matrix, uint32_t a, uint32_t b)
{
    tarn_set_drop(matrix->bits + (size_t)a * matrix->words, b);
    tarn_set_drop(matrix->bits + (size_t)b * matrix->words, a);
}

/* All pairs unsafe, as the algorithms start. TARN_SYSTEM: no memory. */
enum tarn_status tarn_pair_matrix_init(struct tarn_pair_matrix *matrix, uint32_t count);
void tarn_pair_matrix_finish(struct tarn_pair_matrix *matrix);

/* How many pairs are unsafe. */
uint64_t tarn_pair_matrix_count(const struct tarn_pair_matrix *matrix);
/* Of the set of unsafe pairs: equal for equal sets. */
uint64_t tarn_pair_matrix_hash(const struct tarn_pair_matrix *matrix);

/* Whether it is symmetric, with a clear diagonal and clear padding. For assertions; cost: T^2. */
bool tarn_pair_matrix_is_valid(const struct tarn_pair_matrix *matrix);

/* The paper's values on the stream graph (section 3.2), separate from the pairs so that tests can
 * read them. Orders are 1-based places in a stream, views included; 0 means none. */

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
    uint32_t *tensors;     /* T_s: the tensors of stream s are tensors[begin[s]..begin[s + 1]) */
    uint32_t *begin;       /* streams_count + 2, of which the last one is not read */
};

/* Taken from the region. TARN_SYSTEM: no memory. O((V + E + T) S). */
enum tarn_status tarn_stream_graph_init(struct tarn_stream_graph *streams,
                                        struct tarn_region *region, const struct tarn_graph *graph);

/* Each function fills a matrix, which the caller finishes if TARN_OK is returned. TARN_SYSTEM: no
 * memory.
 */
enum tarn_status tarn_pairs_clocks(const struct tarn_graph *graph, struct tarn_pair_matrix *matrix);
enum tarn_status tarn_pairs_ancestors(const struct tarn_graph *graph,
                                      struct tarn_pair_matrix *matrix);
enum tarn_status tarn_pairs_ancestors_opt(const struct tarn_graph *graph,
                                          struct tarn_pair_matrix *matrix);
enum tarn_status tarn_pairs_stream_graph(const struct tarn_graph *graph,
                                         struct tarn_pair_matrix *matrix);

/* tarn_pairs_clocks, and when (tarn_now_ms) the clocks could answer for any pair, which is before
 * the matrix is written. */
enum tarn_status tarn_pairs_clocks_timed(const struct tarn_graph *graph,
                                         struct tarn_pair_matrix *matrix, double *ready_ms);

#endif
