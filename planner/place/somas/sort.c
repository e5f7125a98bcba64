/* The orders in which blocks are placed: the paper's Greedy Size, Breadth, Source and Unsafe
 * (section 5.2), and longest lifetime first. Lifetimes are those of list order: from the producer
 * to the last user.
 * Cost: O(T log T + V), for unsafe pairs O(T S). */
#include <stdlib.h>

#include "somas.h"

struct keyed_block {
    uint64_t key; /* descending */
    uint32_t block;
};

static int compare_keyed(const void *left, const void *right)
{
    const struct keyed_block *a = left, *b = right;
    if (a->key != b->key) return a->key > b->key ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* ---- Keys by storage, for descending order ---- */

static void key_by_source(const struct tarn_problem *problem, uint64_t *key)
{
    for (uint32_t a = 0; a < problem->blocks.storages_count; a++)
        key[a] = problem->ops_count - tarn_problem_begin(problem, a);
}

static void key_by_lifetime(const struct tarn_problem *problem, uint64_t *key)
{
    for (uint32_t a = 0; a < problem->blocks.storages_count; a++)
        key[a] = tarn_problem_end(problem, a) - tarn_problem_begin(problem, a);
}

/* The bytes alive at each op, from what begins and ends there. */
static enum tarn_status key_by_breadth(const struct tarn_problem *problem,
                                       struct tarn_region *region, uint64_t *key)
{
    uint32_t count = problem->blocks.storages_count;
    uint64_t *alive = tarn_region_take(region, (size_t)problem->ops_count + 1, sizeof *alive);
    if (!alive) return TARN_SYSTEM;
    for (uint32_t a = 0; a < count; a++) {
        alive[tarn_problem_begin(problem, a)] += problem->graph->storages[a].size;
        alive[tarn_problem_end(problem, a)] -= problem->graph->storages[a].size;
    }
    for (uint32_t r = 1; r < problem->ops_count; r++) alive[r] += alive[r - 1];
    for (uint32_t a = 0; a < count; a++) key[a] = alive[tarn_problem_begin(problem, a)];
    return TARN_OK;
}

static enum tarn_status key_by_unsafe(const struct tarn_problem *problem,
                                      struct tarn_region *region, uint64_t *key)
{
    uint32_t count = problem->blocks.storages_count;
    uint32_t *degree = tarn_region_take(region, count, sizeof *degree);
    if (!degree) return TARN_SYSTEM;
    enum tarn_status status = tarn_conflicts_count(&problem->conflicts, degree);
    for (uint32_t a = 0; status == TARN_OK && a < count; a++) key[a] = degree[a];
    return status;
}

/* ---- Sorting ---- */

static enum tarn_status key_storages(const struct tarn_problem *problem, struct tarn_region *region,
                                     enum tarn_sort sort, uint64_t *key)
{
    switch (sort) {
    case TARN_SORT_BREADTH: return key_by_breadth(problem, region, key);
    case TARN_SORT_SOURCE: key_by_source(problem, key); break;
    case TARN_SORT_UNSAFE: return key_by_unsafe(problem, region, key);
    case TARN_SORT_LIFETIME: key_by_lifetime(problem, key); break;
    case TARN_SORT_SIZE: break; /* a block has a size of its own */
    }
    return TARN_OK;
}

static uint64_t key_block(struct tarn_block block, enum tarn_sort sort, const uint64_t *key)
{
    if (sort == TARN_SORT_SIZE) return block.size;
    uint64_t most = 0;
    for (uint32_t i = 0; i < block.members_count; i++)
        if (key[block.members[i]] > most) most = key[block.members[i]];
    return most;
}

enum tarn_status tarn_blocks_sort(const struct tarn_problem *problem, struct tarn_region *region,
                                  enum tarn_sort sort, uint32_t *order)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    enum tarn_status status = TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint64_t *key = tarn_region_take(region, blocks->storages_count, sizeof *key);
    struct keyed_block *keyed = tarn_region_take(region, blocks->count, sizeof *keyed);
    if (key && keyed) status = key_storages(problem, region, sort, key);
    if (status == TARN_OK) {
        for (uint32_t b = 0; b < blocks->count; b++)
            keyed[b] = (struct keyed_block){key_block(tarn_block_at(blocks, b), sort, key), b};
        qsort(keyed, blocks->count, sizeof *keyed, compare_keyed);
        for (uint32_t b = 0; b < blocks->count; b++) order[b] = keyed[b].block;
    }
    tarn_region_release(region, mark);
    return status;
}
