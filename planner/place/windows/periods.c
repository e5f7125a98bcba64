/* Divides the global order into periods. Bytes alive at once are counted by lifetimes in the global
 * order (lifetimes.h) alone, which never gives too few. The difference to the aim is free, and the
 * storages that come and go in a period may take half of it for as long as the period lasts. If the
 * load rises to a peak and falls, as in a training step, periods become smaller towards the peak
 * like a geometric series. Source: docs/how-it-works.md, "Windows". Cost: O(T S). */
#include "window.h"

#include <assert.h>

/* A period may move one part in FREE_SHARE of the bytes that are free in it. */
enum { FREE_SHARE = 2 };

/* By rank of an op in the global order: bytes whose lifetime begins at it, or ends after it. */
struct flow {
    uint64_t comes, goes;
};

static void count_flow(const struct tarn_lifetimes *lifetimes, const uint32_t *block_of,
                       struct flow *flow)
{
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        uint32_t begin, end, a = lifetimes->storages[i];
        struct tarn_block block = tarn_block_at(&lifetimes->problem->blocks, block_of[a]);
        if (block.members[0] != a) continue;
        tarn_lifetimes_of_block(lifetimes, block, i, &begin, &end);
        assert(begin < end);
        flow[begin].comes += block.size;
        flow[end - 1].goes += block.size;
    }
}

/* A period ends when its part of the free bytes would be exceeded, but is not made too small. */
static void divide(const struct flow *flow, uint32_t ops_count, uint64_t aim, uint64_t least,
                   uint32_t *period_of)
{
    uint64_t alive = 0, moved = 0, free_bytes = 0;
    uint32_t period = 0;
    for (uint32_t i = 0; i < ops_count; i++) {
        alive += flow[i].comes;
        moved += flow[i].comes + flow[i].goes;
        uint64_t here = aim - (alive < aim ? alive : aim);
        if (i == 0 || here < free_bytes) free_bytes = here;
        if (i > 0 && moved > free_bytes / FREE_SHARE && moved > least) {
            period++;
            moved = flow[i].comes + flow[i].goes;
            free_bytes = here;
        }
        period_of[i] = period;
        assert(alive >= flow[i].goes);
        alive -= flow[i].goes;
    }
}

uint32_t *tarn_periods_find(struct tarn_region *region, const struct tarn_problem *problem,
                            const uint32_t *block_of, const uint32_t *storages, uint32_t count,
                            uint64_t aim, uint32_t parts)
{
    uint32_t ops_count = problem->ops_count;
    uint32_t *period_of = tarn_region_take(region, ops_count, sizeof *period_of);
    struct tarn_region work = {.chunks = NULL};
    struct flow *flow = tarn_region_take(&work, ops_count, sizeof *flow);
    struct tarn_lifetimes lifetimes;
    bool ok = period_of && flow &&
              tarn_lifetimes_init(&lifetimes, &work, problem, storages, count) == TARN_OK;
    if (ok) {
        count_flow(&lifetimes, block_of, flow);
        divide(flow, ops_count, aim, aim / parts, period_of);
    }
    tarn_region_finish(&work);
    return ok ? period_of : NULL;
}
