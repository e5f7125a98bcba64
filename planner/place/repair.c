/* Re-optimising the part under the peak: large-neighbourhood search (Shaw 1998) with exact search
 * as its step. A plan above the aim has a few blocks that stick out:
 *
 *     aim ──────────┬───┬──────      free: a block v that sticks out, and some dozens around it
 *     │   fixed     │ v │  fixed     fixed: all others, those that stick out elsewhere included
 *     │       ┌─────┴──┬┴───┐        a step: exact search for a placement of the free blocks
 *     └───────┴────────┴────┘        among the fixed ones, all of them below the aim
 *
 * A step that succeeds leaves fewer blocks above the aim, and one in between rearranges blocks that
 * do not stick out, for the next to find other holes. What is around v: the closest in list order,
 * or those in conflict with it, or what a random walk along conflicts meets. Where the aim itself
 * is not reached, one half, a quarter, an eighth of the way is tried.
 *
 * Cost: a step looks at all blocks once, and searches a thousand nodes of a few dozen blocks. */
#include "repair.h"

#include <stdlib.h>
#include <string.h>

#include "exact.h"

enum { FREE_MIN = 12, FREE_MAX = 80, NODES_A_BLOCK = 16, LEVELS = 4, MOST_AT_ONCE = 64 };

struct candidate {
    double distance;
    uint32_t block;
};

struct repair {
    const struct tarn_problem *problem;
    const struct tarn_improve_options *options;
    uint64_t aim;
    uint64_t random;
    uint64_t steps; /* done */
    double deadline_ms;
    uint64_t *offset;   /* the plan being worked on */
    uint8_t *role;      /* by block */
    uint32_t *block_of; /* slot of a storage -> block */
    double *time;       /* block -> place in list order of its first producer */
    uint32_t *above;    /* blocks that end above the aim */
    uint64_t *mask;     /* of slots */
    bool *near;         /* block -> in conflict with the one in the middle */
    struct candidate *candidates;
    uint32_t above_count;
};

static uint64_t draw(struct repair *repair)
{
    uint64_t z = repair->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double draw_unit(struct repair *repair)
{
    return (double)(draw(repair) >> 11) / (double)(UINT64_C(1) << 53);
}

/* ---- What sticks out ---- */

static const struct tarn_block *block_at(const struct repair *repair, uint32_t b)
{
    return &repair->problem->blocks->blocks[b];
}

static bool is_above(const struct repair *repair, uint32_t b)
{
    const struct tarn_block *block = block_at(repair, b);
    return repair->offset[block->members[0]] + block->size > repair->aim;
}

static void find_above(struct repair *repair)
{
    repair->above_count = 0;
    for (uint32_t b = 0; b < repair->problem->blocks->count; b++) {
        if (is_above(repair, b)) repair->above[repair->above_count++] = b;
    }
}

/* ---- What is around it ---- */

static void find_near(struct repair *repair, uint32_t b)
{
    const struct tarn_conflicts *conflicts = repair->problem->conflicts;
    const struct tarn_block *block = block_at(repair, b);
    memset(repair->near, 0, repair->problem->blocks->count * sizeof *repair->near);
    for (uint32_t k = 0; k < block->members_count; k++) {
        tarn_conflicts_mask(conflicts, block->members[k], repair->mask);
        for (uint32_t w = 0; w < conflicts->words_count; w++) {
            for (uint64_t rest = repair->mask[w]; rest != 0; rest &= rest - 1)
                repair->near[repair->block_of[w * 64 + (uint32_t)__builtin_ctzll(rest)]] = true;
        }
    }
    repair->near[b] = false;
}

static bool may_be_free(const struct repair *repair, uint32_t b, bool shake)
{
    return repair->role[b] == TARN_EXACT_FIXED && !(shake && is_above(repair, b));
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return (x->block > y->block) - (x->block < y->block);
}

/* Frees up to `count` blocks, the closest to `middle` first, more or less. */
static void free_closest(struct repair *repair, uint32_t middle, uint32_t count, bool conflicts,
                         bool shake)
{
    uint32_t found = 0;
    for (uint32_t b = 0; b < repair->problem->blocks->count; b++) {
        double apart = repair->time[b] - repair->time[middle];
        if (!may_be_free(repair, b, shake) || (conflicts && !repair->near[b])) continue;
        repair->candidates[found++] =
            (struct candidate){(0.2 + draw_unit(repair)) * (conflicts   ? 1
                                                            : apart < 0 ? -apart
                                                                        : apart),
                               b};
    }
    qsort(repair->candidates, found, sizeof *repair->candidates, compare_candidates);
    for (uint32_t i = 0; i < found && i < count; i++)
        repair->role[repair->candidates[i].block] = TARN_EXACT_FREE;
}

/* Frees what a random walk along conflicts meets, some of each block's at a time. */
static void free_on_walk(struct repair *repair, uint32_t middle, uint32_t count, bool shake)
{
    uint32_t at = middle, part = 1 + (uint32_t)(draw(repair) % 8);
    for (uint32_t freed = 0; freed < count; freed += part) {
        find_near(repair, at);
        free_closest(repair, at, part, true, shake);
        for (uint32_t i = 0; i < MOST_AT_ONCE; i++) {
            uint32_t next = (uint32_t)(draw(repair) % repair->problem->blocks->count);
            if (!repair->near[next] || repair->role[next] != TARN_EXACT_FREE) continue;
            at = next;
            break;
        }
    }
}

/* shake: rearranges what does not stick out around a block that does. */
static void choose_free(struct repair *repair, bool shake)
{
    uint32_t middle = repair->above[draw(repair) % repair->above_count];
    uint32_t count = FREE_MIN + (uint32_t)(draw(repair) % (FREE_MAX - FREE_MIN));
    memset(repair->role, TARN_EXACT_FIXED, repair->problem->blocks->count);
    if (!shake) repair->role[middle] = TARN_EXACT_FREE;
    find_near(repair, middle);
    switch (draw(repair) % 3) {
    case 0: free_closest(repair, middle, count, false, shake); break;
    case 1: free_closest(repair, middle, count, true, shake); break;
    default: free_on_walk(repair, middle, count, shake); break;
    }
}

/* ---- Steps ---- */

static bool is_over(const struct repair *repair)
{
    const atomic_bool *stop = repair->options->stop;
    if (repair->steps >= repair->options->steps) return true;
    if (stop && atomic_load_explicit(stop, memory_order_relaxed)) return true;
    return repair->deadline_ms > 0 && tarn_exact_now_ms() > repair->deadline_ms;
}

static enum tarn_status step(struct repair *repair)
{
    struct tarn_exact_report report;
    const struct tarn_exact_options options = {.seed = draw(repair),
                                               .nodes_max = NODES_A_BLOCK * (uint64_t)FREE_MAX,
                                               .threads = 1,
                                               .stop = repair->options->stop};
    choose_free(repair, repair->steps++ % 2 == 1);
    enum tarn_status status = tarn_exact_place(repair->problem, repair->role, repair->aim, &options,
                                               repair->offset, &report);
    if (status == TARN_USAGE) return TARN_OK;
    if (status == TARN_OK && report.result == TARN_EXACT_FOUND) find_above(repair);
    return status;
}

/* Steps from the plan at hand on until nothing sticks out of the aim. */
static enum tarn_status lower(struct repair *repair, uint64_t aim, uint64_t steps)
{
    uint64_t last = repair->steps + steps;
    enum tarn_status status = TARN_OK;
    repair->aim = aim;
    find_above(repair);
    while (status == TARN_OK && repair->above_count > 0 && repair->steps < last && !is_over(repair))
        status = step(repair);
    return status;
}

/* The aim, then places on the way to it that are ever nearer to the footprint; from the start when
 * one was reached. */
static enum tarn_status approach(struct repair *repair, uint64_t *offset, uint64_t *footprint)
{
    const struct tarn_improve_options *options = repair->options;
    uint64_t aim = options->bound > options->capacity ? options->bound : options->capacity;
    size_t size = repair->problem->blocks->storages_count * sizeof *offset;
    enum tarn_status status = TARN_OK;
    for (uint32_t level = 0; level<LEVELS && * footprint> aim && !is_over(repair); level++) {
        uint64_t down = (*footprint - aim) >> level;
        if (down == 0) break;
        memcpy(repair->offset, offset, size);
        status = lower(repair, *footprint - down, options->steps / LEVELS + 1);
        if (status != TARN_OK) return status;
        if (repair->above_count > 0) continue;
        memcpy(offset, repair->offset, size);
        *footprint = tarn_blocks_footprint(repair->problem->blocks, offset);
        level = UINT32_MAX;
    }
    return status;
}

/* ---- The whole ---- */

static bool repair_init(struct repair *repair)
{
    const struct tarn_blocks *blocks = repair->problem->blocks;
    const struct tarn_conflicts *conflicts = repair->problem->conflicts;
    const struct tarn_graph *graph = repair->problem->graph;
    size_t count = (size_t)blocks->count + 1;
    repair->offset = calloc((size_t)blocks->storages_count + 1, sizeof *repair->offset);
    repair->role = calloc(count, sizeof *repair->role);
    repair->block_of = calloc(((size_t)conflicts->words_count + 1) * 64, sizeof *repair->block_of);
    repair->time = calloc(count, sizeof *repair->time);
    repair->above = calloc(count, sizeof *repair->above);
    repair->mask = calloc((size_t)conflicts->words_count + 1, sizeof *repair->mask);
    repair->near = calloc(count, sizeof *repair->near);
    repair->candidates = calloc(count, sizeof *repair->candidates);
    if (!repair->offset || !repair->role || !repair->block_of || !repair->time || !repair->above ||
        !repair->mask || !repair->near || !repair->candidates)
        return false;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block *block = &blocks->blocks[b];
        repair->time[b] = graph->rank[graph->storages[block->members[0]].producer];
        for (uint32_t k = 0; k < block->members_count; k++)
            repair->block_of[conflicts->slot_of[block->members[k]]] = b;
    }
    return true;
}

static void repair_finish(struct repair *repair)
{
    free(repair->offset);
    free(repair->role);
    free(repair->block_of);
    free(repair->time);
    free(repair->above);
    free(repair->mask);
    free(repair->near);
    free(repair->candidates);
}

enum tarn_status tarn_repair_place(const struct tarn_problem *problem,
                                   const struct tarn_improve_options *options, uint64_t *offset,
                                   uint64_t *footprint)
{
    struct repair repair = {.problem = problem, .options = options, .random = options->seed};
    if (options->seconds > 0) repair.deadline_ms = tarn_exact_now_ms() + options->seconds * 1e3;
    enum tarn_status status =
        repair_init(&repair) ? approach(&repair, offset, footprint) : TARN_SYSTEM;
    repair_finish(&repair);
    return status;
}
