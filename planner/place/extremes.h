/* The highest and lowest entries of lanes' rows by run of 64 places, and by span of 64 runs: where
 * no place of one, or every place, is in conflict with a storage is known without looking at it. */
#ifndef TARN_PLANNER_PLACE_EXTREMES_H
#define TARN_PLANNER_PLACE_EXTREMES_H

#include "lanes.h"

enum { TARN_SPAN_RUNS = 64, TARN_SPAN = TARN_SPAN_RUNS * TARN_LANE_RUN };

struct tarn_extreme {
    int32_t highest, lowest;
};

struct tarn_extremes {
    uint32_t runs_count, spans_count;
    struct tarn_extreme *runs;  /* [stream][run] */
    struct tarn_extreme *spans; /* [stream][span] */
};

/* TARN_SYSTEM: no memory. */
enum tarn_status tarn_extremes_init(struct tarn_extremes *extremes, const struct tarn_lanes *lanes);
/* Room for the extremes of the same lanes. */
enum tarn_status tarn_extremes_init_copy(struct tarn_extremes *extremes,
                                         const struct tarn_extremes *other, uint32_t streams_count);
void tarn_extremes_finish(struct tarn_extremes *extremes);

void tarn_extremes_copy(struct tarn_extremes *extremes, const struct tarn_extremes *other,
                        uint32_t streams_count);

/* Narrows a run of stream t to the places whose limit is not INT32_MAX. */
void tarn_extremes_narrow(struct tarn_extremes *extremes, const struct tarn_lanes *lanes,
                          uint32_t t, uint32_t run, const int32_t *limit);
/* Narrows a span to what its runs have. */
void tarn_extremes_narrow_span(struct tarn_extremes *extremes, uint32_t t, uint32_t span);

#endif
