/* Computes lifetimes. Of the storages that stream s produces, the last one before first[a][s] is in
 * conflict with a, or may be, and the next one is not. So with the last of these over all streams
 * as the end of a, storages in conflict have lifetimes that meet. Streams that produce none of the
 * listed storages do not count, so that storages which they release late do not get late ends.
 * Source: docs/how-it-works.md, "Windows". Cost: O(T S), 12 bytes for each storage listed. */
#include "problem.h"

#include <string.h>

static void begin_all(const struct tarn_lifetimes *lifetimes)
{
    const struct tarn_problem *problem = lifetimes->problem;
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        lifetimes->since[i] = tarn_problem_begin(problem, lifetimes->storages[i]);
        lifetimes->until[i] = lifetimes->since[i] + 1;
        lifetimes->whole[i] = problem->ops_count;
    }
}

/* By position in a stream: when the last of its storages listed was produced that comes before, and
 * when the next one; `since` of that, plus 1, and the same without. */
struct neighbour {
    uint32_t last_end, next;
};

static void find_neighbours(const struct tarn_lifetimes *lifetimes, uint32_t begin, uint32_t end,
                            uint32_t length, struct neighbour *at)
{
    const struct tarn_problem *problem = lifetimes->problem;
    const uint32_t *position = problem->conflicts.reuse.position;
    struct neighbour now = {0, problem->ops_count};
    uint32_t p = 0;
    for (uint32_t i = begin; i < end; i++) {
        now.next = lifetimes->since[i];
        while (p <= position[lifetimes->storages[i]]) at[p++] = now;
        now.last_end = lifetimes->since[i] + 1;
    }
    now.next = problem->ops_count;
    while (p <= length) at[p++] = now;
}

/* One stream's part in the ends of all. */
static void extend_all(const struct tarn_lifetimes *lifetimes, uint32_t s, struct neighbour *at)
{
    const struct tarn_conflicts *conflicts = &lifetimes->problem->conflicts;
    const uint32_t *first = conflicts->reuse.first + (size_t)s * conflicts->reuse.count;
    uint32_t begin = tarn_slot_set_below(&lifetimes->listed, conflicts->begin[s]);
    uint32_t end = tarn_slot_set_below(&lifetimes->listed, conflicts->begin[s + 1]);
    if (begin == end) return;
    find_neighbours(lifetimes, begin, end, conflicts->reuse.length[s], at);
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        struct neighbour own = at[first[lifetimes->storages[i]]];
        if (own.last_end > lifetimes->until[i]) lifetimes->until[i] = own.last_end;
        if (own.next < lifetimes->whole[i]) lifetimes->whole[i] = own.next;
    }
}

static bool find_ends(const struct tarn_lifetimes *lifetimes, struct tarn_region *region)
{
    const struct tarn_reuse *reuse = &lifetimes->problem->conflicts.reuse;
    size_t longest = tarn_reuse_longest(reuse);
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct neighbour *at = tarn_region_take(region, longest + 1, sizeof *at);
    for (uint32_t s = 0; at && s < reuse->streams_count; s++) extend_all(lifetimes, s, at);
    tarn_region_release(region, mark);
    return at != NULL;
}

enum tarn_status tarn_lifetimes_begin(struct tarn_lifetimes *lifetimes, struct tarn_region *region,
                                      const struct tarn_problem *problem, const uint32_t *storages,
                                      uint32_t count)
{
    *lifetimes = (struct tarn_lifetimes){problem, storages, count, .since = NULL};
    lifetimes->since = tarn_region_take(region, count, sizeof *lifetimes->since);
    lifetimes->until = tarn_region_take(region, count, sizeof *lifetimes->until);
    lifetimes->whole = tarn_region_take(region, count, sizeof *lifetimes->whole);
    if (!lifetimes->since || !lifetimes->until || !lifetimes->whole ||
        tarn_slot_set_init(&lifetimes->listed, region, &problem->conflicts, storages, count) !=
            TARN_OK)
        return TARN_SYSTEM;
    begin_all(lifetimes);
    return TARN_OK;
}

enum tarn_status tarn_lifetimes_init(struct tarn_lifetimes *lifetimes, struct tarn_region *region,
                                     const struct tarn_problem *problem, const uint32_t *storages,
                                     uint32_t count)
{
    enum tarn_status status = tarn_lifetimes_begin(lifetimes, region, problem, storages, count);
    if (status != TARN_OK) return status;
    return find_ends(lifetimes, region) ? TARN_OK : TARN_SYSTEM;
}

bool tarn_lifetimes_end(const struct tarn_lifetimes *lifetimes, struct tarn_region *region,
                        const uint32_t *line_of, uint32_t line)
{
    const struct tarn_reuse *reuse = &lifetimes->problem->conflicts.reuse;
    struct tarn_region_mark mark = tarn_region_mark(region);
    size_t longest = tarn_reuse_longest(reuse);
    struct neighbour *at = tarn_region_take(region, longest + 1, sizeof *at);
    memset(lifetimes->until, 0, lifetimes->count * sizeof *lifetimes->until);
    for (uint32_t s = 0; at && s < reuse->streams_count; s++)
        if (line_of[s] == line) extend_all(lifetimes, s, at);
    tarn_region_release(region, mark);
    return at != NULL;
}

void tarn_lifetimes_of_block(const struct tarn_lifetimes *lifetimes, struct tarn_block block,
                             uint32_t i, uint32_t *begin, uint32_t *end)
{
    const uint32_t *slot_of = lifetimes->problem->conflicts.slot_of;
    *begin = lifetimes->since[i];
    *end = lifetimes->until[i];
    for (uint32_t m = 0; block.members_count > 1 && m < block.members_count; m++) {
        i = tarn_slot_set_below(&lifetimes->listed, slot_of[block.members[m]]);
        if (lifetimes->since[i] < *begin) *begin = lifetimes->since[i];
        if (lifetimes->until[i] > *end) *end = lifetimes->until[i];
    }
}
