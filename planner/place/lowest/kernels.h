/* The inner loops of the greedy placement, for the widest vectors that the processor has. All work
 * on runs of TARN_LANE_RUN places, or on fewer at the end. */
#ifndef TARN_PLANNER_PLACE_LOWEST_KERNELS_H
#define TARN_PLANNER_PLACE_LOWEST_KERNELS_H

#include <stdint.h>

struct tarn_span {
    int32_t begin, end;
};

struct tarn_lane_kernels {
    /* For places with row > position: limit = max(limit, end). Returns the lowest limit. */
    int32_t (*raise)(int32_t *restrict limit, const int32_t *restrict row, uint32_t count,
                     int32_t position, int32_t end);
    /* The same, but end counts from the block's start. */
    void (*raise_members)(int32_t *restrict limit, const int32_t *restrict row,
                          const int32_t *restrict within, uint32_t count, int32_t position,
                          int32_t end);
    /* For places with row > position: a place that ends at or below span.begin notes it as a
     * ceiling; the limits of the other places rise to span.end. */
    void (*raise_or_cap)(int32_t *restrict limit, int32_t *restrict ceiling,
                         const int32_t *restrict row, const int32_t *restrict size, uint32_t count,
                         int32_t position, struct tarn_span span);
    int32_t (*least)(const int32_t *values, uint32_t count);
    /* The highest and the lowest row of the places whose limit is not INT32_MAX; 0 and INT32_MAX if
     * there are no such places. */
    void (*extremes)(const int32_t *restrict row, const int32_t *restrict limit, uint32_t count,
                     int32_t *highest, int32_t *lowest);
    /* Of the places of a run with this limit, the one with the highest priority, the first of equal
     * ones: as priority * TARN_LANE_RUN + (TARN_LANE_RUN - 1 - i). Priorities are at most
     * TARN_PRIORITY_MAX. */
    int32_t (*foremost)(const int32_t *restrict limit, const int32_t *restrict priority,
                        uint32_t count, int32_t at);
    /* The same of all places whose limit is not INT32_MAX. */
    int32_t (*champion)(const int32_t *restrict limit, const int32_t *restrict priority,
                        uint32_t count);
};

/* The best for this processor. */
const struct tarn_lane_kernels *tarn_kernels_choose(void);

#endif
