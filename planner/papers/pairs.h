/* The set of unsafe pairs by four independent methods, which must agree. */
#ifndef TARN_PLANNER_PAPERS_PAIRS_H
#define TARN_PLANNER_PAPERS_PAIRS_H

#include "pair_matrix.h"
#include "streams/graph/graph.h"

/* Each fills a matrix, which is to be finished where TARN_OK is returned. TARN_SYSTEM: no memory.
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
