/* Makes the portfolio of priority orders. A priority is a number made of a block's traits; blocks
 * of the heaviest antichain may come before all others, since a plan at the bound must stack
 * exactly these without a gap. Source: docs/how-it-works.md, "Placement"; which priority orders and
 * in what order was measured. Cost: traits O(T S), a priority order O(T). */
#include "priorities.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "streams/base/radix.h"

/* ---- Traits ---- */

/* Adds to `sum`, for the storages of stream t, the sizes of the storages that precede them, by
 * position: released[p] is the bytes of storages whose first[.][t] is p or less. */
static void sum_preceding(const struct tarn_reuse *reuse, const uint64_t *reserved, uint32_t t,
                          double *released, uint32_t length, double *sum)
{
    memset(released, 0, ((size_t)length + 1) * sizeof *released);
    for (uint32_t a = 0; a < reuse->count; a++)
        released[reuse->first[(size_t)t * reuse->count + a]] += (double)reserved[a];
    for (uint32_t p = 0; p < length; p++) released[p + 1] += released[p];
    for (uint32_t a = 0; a < reuse->count; a++)
        if (reuse->stream[a] == t) sum[a] += released[reuse->position[a]];
}

/* Adds to `sum`, for all storages, the sizes of the storages that they precede in stream t: the
 * ones produced at or beyond their first. */
static void sum_following(const struct tarn_reuse *reuse, const uint64_t *reserved, uint32_t t,
                          double *produced, uint32_t length, double *sum)
{
    memset(produced, 0, ((size_t)length + 1) * sizeof *produced);
    for (uint32_t a = 0; a < reuse->count; a++)
        if (reuse->stream[a] == t) produced[reuse->position[a]] += (double)reserved[a];
    for (uint32_t p = length; p-- > 0;) produced[p] += produced[p + 1];
    for (uint32_t a = 0; a < reuse->count; a++)
        sum[a] += produced[reuse->first[(size_t)t * reuse->count + a]];
}

/* By storage: the bytes that are not safe with it, its own included. */
static bool sum_conflicts(const struct tarn_problem *problem, struct tarn_region *region,
                          double *sum)
{
    const struct tarn_reuse *reuse = &problem->conflicts.reuse;
    const uint64_t *reserved = problem->blocks.reserved;
    size_t longest = tarn_reuse_longest(reuse);
    double all = 0, *scratch = tarn_region_take(region, longest + 1, sizeof *scratch);
    if (!scratch) return false;
    memset(sum, 0, reuse->count * sizeof *sum);
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t length = reuse->length[s];
        sum_preceding(reuse, reserved, s, scratch, length, sum);
        sum_following(reuse, reserved, s, scratch, length, sum);
    }
    for (uint32_t a = 0; a < reuse->count; a++) all += (double)reserved[a];
    for (uint32_t a = 0; a < reuse->count; a++) sum[a] = all - sum[a];
    return true;
}

/* A block has the longest life of its members, and the most conflicts. */
static void take_traits(struct tarn_traits *traits, const struct tarn_lowest *lowest,
                        const double *sum)
{
    const struct tarn_problem *problem = lowest->problem;
    for (uint32_t place = 0; place < lowest->count; place++) {
        const struct tarn_block block =
            tarn_block_at(&lowest->problem->blocks, lowest->block[place]);
        for (uint32_t i = 0; i < block.members_count; i++) {
            uint32_t a = block.members[i];
            double life = tarn_problem_end(problem, a) - tarn_problem_begin(problem, a);
            assert(life > 0);
            if (tarn_problem_in_antichain(problem, a)) traits->in_antichain[place] = true;
            if (life > traits->life[place]) traits->life[place] = life;
            if (sum[a] > traits->conflict_bytes[place]) traits->conflict_bytes[place] = sum[a];
        }
    }
}

enum tarn_status tarn_traits_init(struct tarn_traits *traits, struct tarn_region *region,
                                  const struct tarn_lowest *lowest)
{
    size_t count = lowest->count;
    traits->in_antichain = tarn_region_take(region, count, sizeof *traits->in_antichain);
    traits->life = tarn_region_take(region, count, sizeof *traits->life);
    traits->conflict_bytes = tarn_region_take(region, count, sizeof *traits->conflict_bytes);
    struct tarn_region_mark mark = tarn_region_mark(region);
    double *sum = tarn_region_take(region, lowest->problem->blocks.storages_count, sizeof *sum);
    bool ok = sum && traits->in_antichain && traits->life && traits->conflict_bytes &&
              sum_conflicts(lowest->problem, region, sum);
    if (ok) take_traits(traits, lowest, sum);
    tarn_region_release(region, mark);
    return ok ? TARN_OK : TARN_SYSTEM;
}

/* ---- Priority orders ---- */

enum measure { LIFE, CONFLICTS, SIZE_LIFE, CONFLICTS_LIFE, SIZE };

static const struct {
    const char *name;
    bool antichain_first;
    enum measure measure;
} priorities[TARN_PRIORITIES_COUNT] = {
    {"antichain-life", true, LIFE},
    {"antichain-conflicts", true, CONFLICTS},
    {"size-life", false, SIZE_LIFE},
    {"conflicts-life", false, CONFLICTS_LIFE},
    {"size", false, SIZE},
    {"antichain-size-life", true, SIZE_LIFE},
    {"antichain-conflicts-life", true, CONFLICTS_LIFE},
    {"antichain-size", true, SIZE},
    {"life", false, LIFE},
    {"conflicts", false, CONFLICTS},
};

const char *tarn_priorities_name(uint32_t i) { return priorities[i].name; }

/* Maps greater numbers, which are not negative, to smaller ones; the highest bit is set. */
static uint64_t descending(double value)
{
    uint64_t bits;
    assert(value >= 0);
    memcpy(&bits, &value, sizeof bits);
    return ~bits;
}

static double value_of(const struct tarn_lowest *lowest, const struct tarn_traits *traits,
                       enum measure measure, uint32_t place)
{
    switch (measure) {
    case LIFE: return traits->life[place];
    case CONFLICTS: return traits->conflict_bytes[place];
    case SIZE_LIFE: return lowest->size[place] * traits->life[place];
    case CONFLICTS_LIFE: return traits->conflict_bytes[place] * sqrt(traits->life[place]);
    case SIZE: break;
    }
    return lowest->size[place];
}

/* Turns numbers by place into priorities: the smallest number, of equal ones the first place, has
 * the highest one. Sorted by their lower halves, then by their higher ones. */
static enum tarn_status spread(struct tarn_region *region, uint32_t count, const uint64_t *number,
                               int32_t *priority)
{
    uint64_t *packed = tarn_region_take(region, count, sizeof *packed);
    uint64_t *spare = tarn_region_take(region, count, sizeof *spare);
    bool ok = packed && spare;
    if (ok) {
        for (uint32_t place = 0; place < count; place++)
            packed[place] = tarn_radix_pack((uint32_t)number[place], place);
        uint64_t *sorted = tarn_radix_sort(packed, spare, count, UINT32_MAX);
        for (uint32_t rank = 0; rank < count; rank++) {
            uint32_t place = tarn_radix_number(sorted[rank]);
            sorted[rank] = tarn_radix_pack((uint32_t)(number[place] >> 32), place);
        }
        sorted = tarn_radix_sort(sorted, sorted == packed ? spare : packed, count, UINT32_MAX);
        for (uint32_t rank = 0; rank < count; rank++)
            priority[tarn_radix_number(sorted[rank])] =
                (int32_t)((uint64_t)(count - rank) * TARN_PRIORITY_MAX / ((uint64_t)count + 1));
    }
    return ok ? TARN_OK : TARN_SYSTEM;
}

enum tarn_status tarn_priorities_fill(const struct tarn_lowest *lowest, struct tarn_region *region,
                                      const struct tarn_traits *traits, uint32_t i,
                                      int32_t *priority)
{
    assert(i < TARN_PRIORITIES_COUNT);
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint64_t *number = tarn_region_take(region, lowest->count, sizeof *number);
    if (!number) return TARN_SYSTEM;
    for (uint32_t place = 0; place < lowest->count; place++) {
        number[place] = descending(value_of(lowest, traits, priorities[i].measure, place));
        if (priorities[i].antichain_first && traits->in_antichain[place])
            number[place] &= INT64_MAX;
    }
    enum tarn_status status = spread(region, lowest->count, number, priority);
    tarn_region_release(region, mark);
    return status;
}

enum tarn_status tarn_priorities_of_plan(const struct tarn_lowest *lowest,
                                         struct tarn_region *region, const uint64_t *offset,
                                         int32_t *priority)
{
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint64_t *number = tarn_region_take(region, lowest->count, sizeof *number);
    if (!number) return TARN_SYSTEM;
    for (uint32_t place = 0; place < lowest->count; place++) {
        const struct tarn_blocks *blocks = &lowest->problem->blocks;
        number[place] = offset[tarn_block_at(blocks, lowest->block[place]).members[0]];
    }
    enum tarn_status status = spread(region, lowest->count, number, priority);
    tarn_region_release(region, mark);
    return status;
}
