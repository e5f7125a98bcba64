/* Unsafe pairs as a full matrix: what the paper's algorithms produce, and what clocks expand to
 * when somebody wants to compare. Only the tests and `tarn pairs` need it. */
#ifndef TARN_PLANNER_PAPERS_PAIRS_H
#define TARN_PLANNER_PAPERS_PAIRS_H

#include "streams/graph/graph.h"

/* Symmetric bit matrix over planned storages; row a is words [a * words, (a + 1) * words). A set
 * bit is an unsafe pair; the diagonal is clear. */
struct tarn_pair_matrix {
    uint32_t count;
    uint32_t words; /* 64-bit words per row */
    uint64_t *bits;
};

static inline bool tarn_pair_matrix_get(const struct tarn_pair_matrix *matrix, uint32_t a,
                                        uint32_t b)
{
    return matrix->bits[(size_t)a * matrix->words + b / 64] >> (b % 64) & 1;
}

static inline void tarn_pair_matrix_clear(struct tarn_pair_matrix *matrix, uint32_t a, uint32_t b)
{
    matrix->bits[(size_t)a * matrix->words + b / 64] &= ~(UINT64_C(1) << (b % 64));
    matrix->bits[(size_t)b * matrix->words + a / 64] &= ~(UINT64_C(1) << (a % 64));
}

/* All pairs unsafe, as the algorithms start. TARN_SYSTEM when out of memory. */
enum tarn_status tarn_pair_matrix_init(struct tarn_pair_matrix *matrix, uint32_t count);
void tarn_pair_matrix_finish(struct tarn_pair_matrix *matrix);

/* The four methods; each fills an uninitialised matrix (finish it afterwards). */
enum tarn_status tarn_pairs_clocks(const struct tarn_graph *graph, struct tarn_pair_matrix *matrix);
enum tarn_status tarn_pairs_ancestors(const struct tarn_graph *graph,
                                      struct tarn_pair_matrix *matrix);
enum tarn_status tarn_pairs_ancestors_opt(const struct tarn_graph *graph,
                                          struct tarn_pair_matrix *matrix);
enum tarn_status tarn_pairs_stream_graph(const struct tarn_graph *graph,
                                         struct tarn_pair_matrix *matrix);

#endif
