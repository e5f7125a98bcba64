/* Sorts blocks into the orders in which they are placed: the paper's Greedy Size, Breadth, Source
 * and Unsafe (section 5.2), and longest lifetime first. Lifetimes follow list order: from the
 * producer to the last user. Cost: O(T log T + V), for unsafe pairs O(T S). */
#include <stdlib.h>

#include "somas.h"

struct ranked_block {
    uint64_t priority; /* descending */
    uint32_t block;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked_block *a = left, *b = right;
    if (a->priority != b->priority) return a->priority > b->priority ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* ---- Priority orders by storage, for descending order ---- */

static void priority_by_source(const struct tarn_problem *problem, uint64_t *priority)
{
    for (uint32_t a = 0; a < problem->blocks.storages_count; a++)
        priority[a] = problem->ops_count - tarn_problem_begin(problem, a);
}

static void priority_by_lifetime(const struct tarn_problem *problem, uint64_t *priority)
{
    for (uint32_t a = 0; a < problem->blocks.storages_count; a++)
        priority[a] = tarn_problem_end(problem, a) - tarn_problem_begin(problem, a);
}

/* Computes the bytes alive at each op, from the storages that begin and end there. */
static enum tarn_status priority_by_breadth(const struct tarn_problem *problem,
                                            struct tarn_region *region, uint64_t *priority)
{
    uint32_t count = problem->blocks.storages_count;
    uint64_t *alive = tarn_region_take(region, (size_t)problem->ops_count + 1, sizeof *alive);
    if (!alive) return TARN_SYSTEM;
    for (uint32_t a = 0; a < count; a++) {
        alive[tarn_problem_begin(problem, a)] += problem->graph->storages[a].size;
        alive[tarn_problem_end(problem, a)] -= problem->graph->storages[a].size;
    }
    for (uint32_t r = 1; r < problem->ops_count; r++) alive[r] += alive[r - 1];
    for (uint32_t a = 0; a < count; a++) priority[a] = alive[tarn_problem_begin(problem, a)];
    return TARN_OK;
}

static enum tarn_status priority_by_unsafe(const struct tarn_problem *problem,
                                           struct tarn_region *region, uint64_t *priority)
{
    uint32_t count = problem->blocks.storages_count;
    uint32_t *degree = tarn_region_take(region, count, sizeof *degree);
    if (!degree) return TARN_SYSTEM;
    enum tarn_status status = tarn_conflicts_count(&problem->conflicts, degree);
    for (uint32_t a = 0; status == TARN_OK && a < count; a++) priority[a] = degree[a];
    return status;
}

/* ---- Sorting ---- */

static enum tarn_status priority_storages(const struct tarn_problem *problem,
                                          struct tarn_region *region, enum tarn_sort sort,
                                          uint64_t *priority)
{
    switch (sort) {
    case TARN_SORT_BREADTH: return priority_by_breadth(problem, region, priority);
    case TARN_SORT_SOURCE: priority_by_source(problem, priority); break;
    case TARN_SORT_UNSAFE: return priority_by_unsafe(problem, region, priority);
    case TARN_SORT_LIFETIME: priority_by_lifetime(problem, priority); break;
    case TARN_SORT_SIZE: break; /* a block has a size of its own */
    }
    return TARN_OK;
}

static uint64_t priority_block(struct tarn_block block, enum tarn_sort sort,
                               const uint64_t *priority)
{
    if (sort == TARN_SORT_SIZE) return block.size;
    uint64_t most = 0;
    for (uint32_t i = 0; i < block.members_count; i++)
        if (priority[block.members[i]] > most) most = priority[block.members[i]];
    return most;
}

enum tarn_status tarn_blocks_sort(const struct tarn_problem *problem, struct tarn_region *region,
                                  enum tarn_sort sort, uint32_t *order)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    enum tarn_status status = TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint64_t *priority = tarn_region_take(region, blocks->storages_count, sizeof *priority);
    struct ranked_block *ranked = tarn_region_take(region, blocks->count, sizeof *ranked);
    if (priority && ranked) status = priority_storages(problem, region, sort, priority);
    if (status == TARN_OK) {
        for (uint32_t b = 0; b < blocks->count; b++)
            ranked[b] =
                (struct ranked_block){priority_block(tarn_block_at(blocks, b), sort, priority), b};
        qsort(ranked, blocks->count, sizeof *ranked, compare_ranked);
        for (uint32_t b = 0; b < blocks->count; b++) order[b] = ranked[b].block;
    }
    tarn_region_release(region, mark);
    return status;
}
