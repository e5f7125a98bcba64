/* Estimates work from the number of unsafe pairs, which is counted without looking at single pairs.
 * A placement raises limits in runs of 64 places, many at a time. A method of the paper looks at
 * each conflict twice, and at all storages for each one that it places. Cost: O(T S) if that is not
 * too much; else every pair is assumed to be unsafe. */
#include "work.h"

#define ENTRIES_MAX ((uint64_t)1 << 22)
/* Picoseconds of a placement for each unsafe pair, and for each of its streams. */
enum { PAIR_WORK = 150, PAIR_STREAM_WORK = 10 };
/* How many times that a placement may take at worst. */
#define PLACEMENT_WORST 2.0
#define METHOD_PAIR 4.0
#define METHOD_STORAGES 0.3 /* for each pair of storages, safe or not */

static enum tarn_status count_pairs(const struct tarn_problem *problem, double *pairs)
{
    const struct tarn_reuse *reuse = &problem->conflicts.reuse;
    double count = reuse->count;
    *pairs = count * count / 2;
    if ((uint64_t)reuse->count * reuse->streams_count > ENTRIES_MAX) return TARN_OK;
    uint64_t counted;
    enum tarn_status status = tarn_conflicts_pairs(&problem->conflicts, &counted);
    if (status == TARN_OK) *pairs = (double)counted;
    return status;
}

uint64_t tarn_work_of_pairs(uint64_t pairs, uint32_t streams_count)
{
    return pairs * (PAIR_WORK + PAIR_STREAM_WORK * (uint64_t)streams_count) / 1000;
}

enum tarn_status tarn_work_estimate(const struct tarn_problem *problem,
                                    struct tarn_work_costs *costs)
{
    const struct tarn_reuse *reuse = &problem->conflicts.reuse;
    double pairs, count = reuse->count;
    enum tarn_status status = count_pairs(problem, &pairs);
    if (status != TARN_OK) return status;
    double pair = (PAIR_WORK + PAIR_STREAM_WORK * (double)reuse->streams_count) / 1000;
    costs->place = (uint64_t)(pairs * pair * PLACEMENT_WORST + TARN_WORK_PLACE * count);
    costs->method = (uint64_t)(pairs * METHOD_PAIR + count * count * METHOD_STORAGES);
    return TARN_OK;
}
