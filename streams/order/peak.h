/* The serial list-order peak: the maximum of bytes alive in one step if the ops run one after
 * another in list order. Exact bytes; not a bound if there are several streams. */
#ifndef TARN_STREAMS_ORDER_PEAK_H
#define TARN_STREAMS_ORDER_PEAK_H

#include "streams/graph/graph.h"

/* TARN_SYSTEM: no memory, here and below. */
enum tarn_status tarn_peak_serial(const struct tarn_graph *graph, uint64_t *peak);
/* The peak with other sizes, by planned storage, whose sum fits in 64 bits. */
enum tarn_status tarn_peak_of(const struct tarn_graph *graph, const uint64_t *size, uint64_t *peak);

#endif
