/* Cuts. If the lifetime of a (lifetimes.h) ends at or before a cut and b is produced at or behind
 * it, a precedes b. So the global order is cut where the lifetimes of few blocks cross.
 * Source: DESIGN.md, section 3 (Windows). Cost: O(T S + V). */
#include "cuts.h"

#include <stdlib.h>
#include <string.h>

/* Being cut. */
struct cutting {
    const struct tarn_blocks *blocks;
    const uint32_t *block_of;
    struct tarn_lifetimes lifetimes;
    uint32_t ops_count;
    uint32_t *window_of; /* place in the order -> window */
    uint32_t windows_count;
};

/* The block of which storage i of the list is the first member; false where it is another one. */
static bool begins_block(const struct cutting *cutting, uint32_t i, struct tarn_block *block)
{
    uint32_t a = cutting->lifetimes.storages[i];
    *block = tarn_block_at(cutting->blocks, cutting->block_of[a]);
    return block->members[0] == a;
}

/* ---- Cutting ---- */

/* crossing[i]: how many storages a cut before the i-th op crosses; produced[i]: how many storages
 * the ops before it produce. */
static void count_crossings(const struct cutting *cutting, int32_t *crossing, uint32_t *produced)
{
    for (uint32_t i = 0; i < cutting->lifetimes.count; i++) {
        struct tarn_block block;
        uint32_t begin, end;
        produced[cutting->lifetimes.since[i] + 1]++;
        if (!begins_block(cutting, i, &block)) continue;
        tarn_lifetimes_of_block(&cutting->lifetimes, block, i, &begin, &end);
        crossing[begin + 1] += (int32_t)block.members_count;
        crossing[end] -= (int32_t)block.members_count;
    }
    for (uint32_t i = 0; i < cutting->ops_count; i++) {
        crossing[i + 1] += crossing[i];
        produced[i + 1] += produced[i];
    }
}

/* Ends the window at hand before the op `at`. */
static void end_window(struct cutting *cutting, uint32_t begin, uint32_t at)
{
    for (uint32_t i = begin; i < at; i++) cutting->window_of[i] = cutting->windows_count;
    cutting->windows_count++;
}

static void cut_where_few_cross(struct cutting *cutting, uint32_t width, const int32_t *crossing,
                                const uint32_t *produced)
{
    uint32_t ops_count = cutting->ops_count, begin = 0, best = 0;
    for (uint32_t i = 1; i <= ops_count; i++) {
        uint32_t many = produced[i] - produced[begin];
        if (many < width / 2 + 1) continue;
        if (best == begin || crossing[i] < crossing[best]) best = i;
        if (many < width + width / 2 || produced[ops_count] - produced[best] < width / 2) continue;
        end_window(cutting, begin, best);
        i = begin = best;
    }
    if (begin < ops_count) end_window(cutting, begin, ops_count);
    cutting->window_of[ops_count] = cutting->windows_count;
}

static bool cut(struct cutting *cutting, uint32_t width)
{
    int32_t *crossing = calloc((size_t)cutting->ops_count + 2, sizeof *crossing);
    uint32_t *produced = calloc((size_t)cutting->ops_count + 2, sizeof *produced);
    cutting->window_of = malloc(((size_t)cutting->ops_count + 1) * sizeof *cutting->window_of);
    bool ok = crossing && produced && cutting->window_of;
    if (ok) {
        count_crossings(cutting, crossing, produced);
        cut_where_few_cross(cutting, width, crossing, produced);
    }
    free(crossing);
    free(produced);
    return ok;
}

/* ---- Who is where ---- */

/* Storage of the list -> window; windows_count for what crosses. */
static void find_windows(const struct cutting *cutting, uint32_t *window)
{
    const struct tarn_lifetimes *lifetimes = &cutting->lifetimes;
    const uint32_t *slot_of = lifetimes->problem->conflicts->slot_of;
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        struct tarn_block block;
        uint32_t begin, end;
        if (!begins_block(cutting, i, &block)) continue;
        tarn_lifetimes_of_block(lifetimes, block, i, &begin, &end);
        uint32_t own = cutting->window_of[begin];
        if (cutting->window_of[end - 1] != own) own = cutting->windows_count;
        window[i] = own;
        for (uint32_t m = 1; m < block.members_count; m++)
            window[tarn_slot_set_below(&lifetimes->listed, slot_of[block.members[m]])] = own;
    }
}

static struct tarn_crossing crossing_at(const struct cutting *cutting, uint32_t i)
{
    const struct tarn_lifetimes *lifetimes = &cutting->lifetimes;
    return (struct tarn_crossing){cutting->window_of[lifetimes->since[i]],
                                  cutting->window_of[lifetimes->whole[i]],
                                  cutting->window_of[lifetimes->until[i] - 1] + 1};
}

static bool allocate(struct tarn_cuts *cuts, uint32_t windows_count, uint32_t count)
{
    cuts->count = windows_count;
    cuts->begin = calloc((size_t)windows_count + 2, sizeof *cuts->begin);
    cuts->storages = malloc(((size_t)count + 1) * sizeof *cuts->storages);
    return cuts->begin && cuts->storages;
}

/* Counting sort: begin[w] is moved along, and back at the end. */
static bool fill_cuts(const struct cutting *cutting, const uint32_t *window, struct tarn_cuts *cuts)
{
    uint32_t count = cutting->lifetimes.count, crosses = cuts->count;
    for (uint32_t i = 0; i < count; i++) cuts->begin[window[i] + 1]++;
    uint32_t crossing_count = cuts->begin[crosses + 1];
    cuts->crossing = malloc(((size_t)crossing_count + 1) * sizeof *cuts->crossing);
    if (!cuts->crossing) return false;
    for (uint32_t w = 0; w <= crosses; w++) cuts->begin[w + 1] += cuts->begin[w];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = cuts->begin[window[i]]++;
        cuts->storages[at] = cutting->lifetimes.storages[i];
        if (window[i] == crosses)
            cuts->crossing[at - (count - crossing_count)] = crossing_at(cutting, i);
    }
    for (uint32_t w = crosses + 1; w > 0; w--) cuts->begin[w] = cuts->begin[w - 1];
    cuts->begin[0] = 0;
    return true;
}

static bool sort_storages(const struct cutting *cutting, struct tarn_cuts *cuts)
{
    uint32_t count = cutting->lifetimes.count;
    uint32_t *window = malloc(((size_t)count + 1) * sizeof *window);
    bool ok = window && allocate(cuts, cutting->windows_count, count);
    if (ok) find_windows(cutting, window);
    ok = ok && fill_cuts(cutting, window, cuts);
    free(window);
    return ok;
}

enum tarn_status tarn_cuts_init(struct tarn_cuts *cuts, const struct tarn_problem *problem,
                                const uint32_t *block_of, const uint32_t *storages, uint32_t count,
                                uint32_t width)
{
    struct cutting cutting = {
        .blocks = problem->blocks, .block_of = block_of, .ops_count = problem->graph->ops_count};
    memset(cuts, 0, sizeof *cuts);
    bool ok = tarn_lifetimes_init(&cutting.lifetimes, problem, storages, count) == TARN_OK &&
              cut(&cutting, width) && sort_storages(&cutting, cuts);
    tarn_lifetimes_finish(&cutting.lifetimes);
    free(cutting.window_of);
    if (ok) return TARN_OK;
    tarn_cuts_finish(cuts);
    return TARN_SYSTEM;
}

void tarn_cuts_finish(struct tarn_cuts *cuts)
{
    free(cuts->storages);
    free(cuts->begin);
    free(cuts->crossing);
    memset(cuts, 0, sizeof *cuts);
}
