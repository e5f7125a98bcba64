/* Places by longest-lived first, best-fit, with a skyline over list order, from the bottom up. The
 * lowest line of the skyline is taken, and of the blocks whose lifetime lies within this line the
 * longest-lived one is put on it. If there is none, the line is raised to the lower of its
 * neighbours.
 *
 *     offset │      ┌────┐            1. the lowest line is [3, 6)
 *            │──┐   │    │            2. it takes the longest block within [3, 6), and is split,
 *            │  └───┘    └─────          or rises to the height of [1, 3)
 *            └──────────────── time
 *
 * With several streams a lifetime ends when no conflicting storage can begin any more, so storages
 * that do not meet in time are safe. A group moves as one, over the time of all its members.
 * Source: T. Sekiyama et al., "Profile-guided memory optimization for deep neural networks",
 * section 3.2. Cost: O(T) for each block and line: quadratic. */
#include "papers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/checked.h"
#include "streams/base/region.h"

struct line {
    uint32_t begin; /* in time; it ends when the next line begins */
    uint64_t height;
};

/* A block that has no place yet, and its lifetime: ranks in the global order. */
struct waiting {
    uint32_t begin, end, block;
};

struct skyline {
    const struct tarn_problem *problem;
    uint64_t *offset;
    struct line *lines; /* by time, without gaps; after the last one is the end of time */
    uint32_t lines_count;
    struct waiting *waiting; /* the longest-lived first */
    uint32_t waiting_count;
};

/* ---- Blocks that wait ---- */

static int compare_life(const void *left, const void *right)
{
    const struct waiting *a = left, *b = right;
    uint32_t life_a = a->end - a->begin, life_b = b->end - b->begin;
    if (life_a != life_b) return life_a > life_b ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* One after the last op, in the global order, that may be in conflict with it. */
static uint32_t death_of(const struct tarn_problem *problem, uint32_t a)
{
    const struct tarn_reuse *reuse = &problem->conflicts.reuse;
    uint32_t end = tarn_problem_begin(problem, a) + 1;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t first = reuse->first[(size_t)s * reuse->count + a];
        if (first == 0) continue;
        uint32_t last = problem->graph->rank[problem->graph->streams[s].ops[first - 1]];
        if (last + 1 > end) end = last + 1;
    }
    return end;
}

static void queue_blocks(struct skyline *skyline)
{
    const struct tarn_blocks *blocks = &skyline->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct waiting *own = &skyline->waiting[skyline->waiting_count++];
        *own = (struct waiting){UINT32_MAX, 0, b};
        for (uint32_t i = 0; i < tarn_block_at(blocks, b).members_count; i++) {
            uint32_t a = tarn_block_at(blocks, b).members[i], end = death_of(skyline->problem, a);
            if (tarn_problem_begin(skyline->problem, a) < own->begin)
                own->begin = tarn_problem_begin(skyline->problem, a);
            if (end > own->end) own->end = end;
        }
    }
    qsort(skyline->waiting, skyline->waiting_count, sizeof *skyline->waiting, compare_life);
}

/* The longest-lived block within a line, taken out; false: there is none. */
static bool take_block(struct skyline *skyline, uint32_t line, struct waiting *taken)
{
    uint32_t begin = skyline->lines[line].begin, end = skyline->lines[line + 1].begin;
    for (uint32_t i = 0; i < skyline->waiting_count; i++) {
        if (skyline->waiting[i].begin < begin || skyline->waiting[i].end > end) continue;
        *taken = skyline->waiting[i];
        memmove(&skyline->waiting[i], &skyline->waiting[i + 1],
                (--skyline->waiting_count - i) * sizeof *skyline->waiting);
        return true;
    }
    return false;
}

/* ---- Lines ---- */

static uint32_t lowest_line(const struct skyline *skyline)
{
    uint32_t lowest = 0;
    for (uint32_t i = 1; i < skyline->lines_count; i++)
        if (skyline->lines[i].height < skyline->lines[lowest].height) lowest = i;
    return lowest;
}

static void remove_line(struct skyline *skyline, uint32_t line)
{
    assert(line < skyline->lines_count && skyline->lines_count > 1);
    memmove(&skyline->lines[line], &skyline->lines[line + 1],
            (skyline->lines_count - line) * sizeof *skyline->lines);
    skyline->lines_count--;
}

/* Joins a line with neighbours of the same height. */
static void join_lines(struct skyline *skyline, uint32_t line)
{
    const struct line *lines = skyline->lines;
    if (line + 1 < skyline->lines_count && lines[line + 1].height == lines[line].height)
        remove_line(skyline, line + 1);
    if (line > 0 && lines[line - 1].height == lines[line].height) remove_line(skyline, line);
}

/* Raises a line to the lower of its neighbours. */
static void raise_line(struct skyline *skyline, uint32_t line)
{
    struct line *lines = skyline->lines;
    bool left = line > 0, right = line + 1 < skyline->lines_count;
    assert(left || right); /* the only line has all of time, and takes any block */
    bool to_right = right && (!left || lines[line + 1].height < lines[line - 1].height);
    lines[line].height = lines[to_right ? line + 1 : line - 1].height;
    join_lines(skyline, line);
}

/* Cuts a line in two at the start of a new line, if it does not begin there. */
static uint32_t split_line(struct skyline *skyline, uint32_t line, uint32_t time)
{
    struct line *lines = skyline->lines;
    if (lines[line].begin == time) return line;
    memmove(&lines[line + 2], &lines[line + 1], (skyline->lines_count - line) * sizeof *lines);
    lines[line + 1] = (struct line){time, lines[line].height};
    skyline->lines_count++;
    return line + 1;
}

/* Puts a block on a line within which it lies. */
static void put_block(struct skyline *skyline, uint32_t line, const struct waiting *waiting)
{
    const struct tarn_blocks *blocks = &skyline->problem->blocks;
    const struct tarn_block block = tarn_block_at(blocks, waiting->block);
    uint64_t start = skyline->lines[line].height;
    (void)tarn_size_round_up(start, block.alignment, &start); /* stacked blocks are addressable */
    line = split_line(skyline, line, waiting->begin);
    if (skyline->lines[line + 1].begin != waiting->end) split_line(skyline, line, waiting->end);
    skyline->lines[line].height = start + block.size;
    join_lines(skyline, line);
    tarn_block_put(blocks, block, start, skyline->offset);
}

/* ---- The layout ---- */

static void place_blocks(struct skyline *skyline)
{
    struct waiting next;
    while (skyline->waiting_count > 0) {
        uint32_t line = lowest_line(skyline);
        if (take_block(skyline, line, &next))
            put_block(skyline, line, &next);
        else
            raise_line(skyline, line);
    }
}

enum tarn_status tarn_llfb_place(const struct tarn_problem *problem, uint32_t node_limit,
                                 uint64_t *offset, uint64_t *footprint)
{
    (void)node_limit;
    const struct tarn_blocks *blocks = &problem->blocks;
    struct tarn_region region = {.chunks = NULL};
    struct skyline skyline = {.problem = problem, .offset = offset, .lines_count = 1};
    skyline.lines = tarn_region_take(&region, 2 * (size_t)blocks->count + 4, sizeof *skyline.lines);
    skyline.waiting = tarn_region_take(&region, blocks->count, sizeof *skyline.waiting);
    bool ok = !region.is_exhausted;
    if (ok) {
        skyline.lines[1].begin = problem->ops_count;
        queue_blocks(&skyline);
        place_blocks(&skyline);
        *footprint = tarn_blocks_footprint(blocks, offset);
    }
    tarn_region_finish(&region);
    return ok ? TARN_OK : TARN_SYSTEM;
}
