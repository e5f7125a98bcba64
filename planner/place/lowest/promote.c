/* Promotion. Every place that ends above its target comes before all places that have done so less
 * often; of those that have done so equally often, the higher priority comes first. Then everything
 * is placed again. The few places that are hard to place are soon known, and priority orders say
 * the rest. Source: squeaky wheel optimization (Joslin, Clements 1999). Cost: a placement for each
 * round. */
#include "greedy.h"

#include <assert.h>
#include <string.h>

#include "streams/base/radix.h"

struct promoting {
    struct tarn_promotion *of;
    uint32_t count;
    uint32_t *by_priority; /* places, those with the highest priorities first */
    uint32_t *times;       /* place -> in how many placements it has ended above its target */
    uint32_t *begin;       /* times -> start of the places that have been promoted as often */
};

static bool promoting_init(struct promoting *promoting, struct tarn_region *region)
{
    uint32_t count = promoting->count;
    promoting->by_priority = tarn_region_take(region, count, sizeof *promoting->by_priority);
    promoting->times = tarn_region_take(region, count, sizeof *promoting->times);
    promoting->begin = tarn_region_take(region, (size_t)promoting->of->placements_max + 2,
                                        sizeof *promoting->begin);
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint64_t *packed = tarn_region_take(region, count, sizeof *packed);
    uint64_t *spare = tarn_region_take(region, count, sizeof *spare);
    if (region->is_exhausted) return false;
    for (uint32_t place = 0; place < count; place++)
        packed[place] =
            tarn_radix_pack((uint32_t)(TARN_PRIORITY_MAX - promoting->of->priority[place]), place);
    const uint64_t *sorted = tarn_radix_sort(packed, spare, count, TARN_PRIORITY_MAX);
    for (uint32_t i = 0; i < count; i++) promoting->by_priority[i] = tarn_radix_number(sorted[i]);
    tarn_region_release(region, mark);
    return true;
}

/* Counting sort by the times, the highest first. */
static void fill_priorities(const struct promoting *promoting, uint32_t rounds)
{
    uint32_t count = promoting->count, *begin = promoting->begin;
    memset(begin, 0, ((size_t)rounds + 2) * sizeof *begin);
    for (uint32_t place = 0; place < count; place++) {
        assert(promoting->times[place] <= rounds);
        begin[rounds - promoting->times[place] + 1]++;
    }
    for (uint32_t n = 0; n < rounds; n++) begin[n + 1] += begin[n];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = promoting->by_priority[i];
        uint32_t rank = begin[rounds - promoting->times[place]]++;
        assert(rank < count);
        promoting->of->priority[place] =
            (int32_t)((uint64_t)(count - rank) * TARN_PRIORITY_MAX / ((uint64_t)count + 1));
    }
}

/* Promotes places that end above their targets; returns the largest excess of a place. */
static int32_t note_excess(const struct promoting *promoting, const struct tarn_greedy *greedy)
{
    int32_t most = INT32_MIN;
    for (uint32_t place = 0; place < promoting->count; place++) {
        int32_t end = greedy->offset[place] + greedy->lowest->size[place];
        int32_t excess = end - promoting->of->target[place];
        promoting->times[place] += excess > 0;
        if (excess > most) most = excess;
    }
    return most;
}

static void take_better(const struct promoting *promoting, const struct tarn_greedy *greedy,
                        int32_t excess)
{
    if (excess >= promoting->of->excess) return;
    promoting->of->excess = excess;
    promoting->of->top = greedy->top;
    memcpy(promoting->of->offset, greedy->offset, promoting->count * sizeof *greedy->offset);
}

enum tarn_status tarn_promote(struct tarn_promotion *promotion, struct tarn_greedy *greedy,
                              struct tarn_region *region)
{
    struct promoting promoting = {.of = promotion, .count = greedy->lowest->count};
    const struct tarn_objective top = {0, 1, 0};
    struct tarn_region_mark mark = tarn_region_mark(region);
    if (!promoting_init(&promoting, region)) return TARN_SYSTEM;
    for (uint32_t n = 0; n < promotion->placements_max && promotion->excess > 0; n++) {
        fill_priorities(&promoting, n);
        tarn_greedy_start(greedy, promotion->floor);
        if (!tarn_greedy_advance(greedy, promotion->priority, promotion->floor, top, TARN_MISS_MAX,
                                 promoting.count))
            break;
        take_better(&promoting, greedy, note_excess(&promoting, greedy));
    }
    tarn_region_release(region, mark);
    return TARN_OK;
}
