/* Extremes, once for all places, and again for those that are left: a decode which never goes back
 * may forget what is placed. Cost: O(T S) at first, 64 numbers for each narrowing; T S / 8 bytes.
 */
#include "extremes.h"

#include <stdlib.h>
#include <string.h>

enum { RUN = TARN_LANE_RUN };

static struct tarn_extreme nothing(void) { return (struct tarn_extreme){0, INT32_MAX}; }

static struct tarn_extreme join(struct tarn_extreme a, struct tarn_extreme b)
{
    return (struct tarn_extreme){a.highest > b.highest ? a.highest : b.highest,
                                 a.lowest < b.lowest ? a.lowest : b.lowest};
}

static uint32_t places_in_run(const struct tarn_lanes *lanes, uint32_t run)
{
    uint32_t begin = run * RUN, left = begin < lanes->count ? lanes->count - begin : 0;
    return left < RUN ? left : RUN;
}

/* limit: NULL for all places. */
static struct tarn_extreme measure(const struct tarn_lanes *lanes, uint32_t t, uint32_t run,
                                   const int32_t *limit)
{
    const int32_t *row = lanes->row + (size_t)t * lanes->count + (size_t)run * RUN;
    int32_t highest = 0, lowest = INT32_MAX;
    uint32_t count = places_in_run(lanes, run);
    for (uint32_t i = 0; i < count; i++) {
        bool placed = limit && limit[run * RUN + i] == INT32_MAX;
        int32_t high = placed ? 0 : row[i], low = placed ? INT32_MAX : row[i];
        highest = high > highest ? high : highest;
        lowest = low < lowest ? low : lowest;
    }
    return (struct tarn_extreme){highest, lowest};
}

void tarn_extremes_narrow(struct tarn_extremes *extremes, const struct tarn_lanes *lanes,
                          uint32_t t, uint32_t run, const int32_t *limit)
{
    extremes->runs[(size_t)t * extremes->runs_count + run] = measure(lanes, t, run, limit);
}

void tarn_extremes_narrow_span(struct tarn_extremes *extremes, uint32_t t, uint32_t span)
{
    uint32_t end = (span + 1) * TARN_SPAN_RUNS;
    struct tarn_extreme *all = &extremes->spans[(size_t)t * extremes->spans_count + span];
    if (end > extremes->runs_count) end = extremes->runs_count;
    *all = nothing();
    for (uint32_t run = span * TARN_SPAN_RUNS; run < end; run++)
        *all = join(*all, extremes->runs[(size_t)t * extremes->runs_count + run]);
}

static enum tarn_status allocate(struct tarn_extremes *extremes, size_t streams_count)
{
    extremes->spans_count = extremes->runs_count / TARN_SPAN_RUNS + 1;
    extremes->runs = malloc((streams_count * extremes->runs_count + 1) * sizeof *extremes->runs);
    extremes->spans = malloc((streams_count * extremes->spans_count + 1) * sizeof *extremes->spans);
    if (extremes->runs && extremes->spans) return TARN_OK;
    tarn_extremes_finish(extremes);
    return TARN_SYSTEM;
}

enum tarn_status tarn_extremes_init(struct tarn_extremes *extremes, const struct tarn_lanes *lanes)
{
    uint32_t streams_count = lanes->conflicts->reuse->streams_count;
    *extremes = (struct tarn_extremes){.runs_count = lanes->runs_count};
    if (allocate(extremes, streams_count) != TARN_OK) return TARN_SYSTEM;
    for (uint32_t t = 0; t < streams_count; t++) {
        for (uint32_t run = 0; run < extremes->runs_count; run++)
            tarn_extremes_narrow(extremes, lanes, t, run, NULL);
        for (uint32_t span = 0; span < extremes->spans_count; span++)
            tarn_extremes_narrow_span(extremes, t, span);
    }
    return TARN_OK;
}

enum tarn_status tarn_extremes_init_copy(struct tarn_extremes *extremes,
                                         const struct tarn_extremes *other, uint32_t streams_count)
{
    *extremes = (struct tarn_extremes){.runs_count = other->runs_count};
    return allocate(extremes, streams_count);
}

void tarn_extremes_finish(struct tarn_extremes *extremes)
{
    free(extremes->runs);
    free(extremes->spans);
    memset(extremes, 0, sizeof *extremes);
}

void tarn_extremes_copy(struct tarn_extremes *extremes, const struct tarn_extremes *other,
                        uint32_t streams_count)
{
    size_t streams = streams_count;
    memcpy(extremes->runs, other->runs, streams * other->runs_count * sizeof *other->runs);
    memcpy(extremes->spans, other->spans, streams * other->spans_count * sizeof *other->spans);
}
