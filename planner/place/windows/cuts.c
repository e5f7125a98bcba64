/* Finds cuts. If the lifetime of storage `a` (problem.h) ends at or before a cut and storage `b` is
 * produced at or after it, `a` precedes `b`. So the global order is cut at points that the
 * lifetimes of few blocks cross. A large group that lies in one window counts as crossing, too:
 * around placed storages it would find room only on top of them. Source: docs/how-it-works.md,
 * "Windows". Cost: O(T S + V). */
#include "cuts.h"

#include <assert.h>

/* The state of cutting. */
struct cutting {
    const struct tarn_blocks *blocks;
    const uint32_t *block_of; /* storage -> block */
    struct tarn_lifetimes lifetimes;
    uint32_t ops_count;
    uint32_t *window_of; /* rank of an op in the global order -> window; one more at the end */
    uint32_t windows_count;
    uint64_t large; /* bytes: such groups cross */
    bool has_large;
    struct tarn_region work; /* memory that is needed until the cuts are made */
};

/* The block of which storage i of the list is the first member; false if it is no first member. */
static bool begins_block(const struct cutting *cutting, uint32_t i, struct tarn_block *block)
{
    uint32_t a = cutting->lifetimes.storages[i];
    *block = tarn_block_at(cutting->blocks, cutting->block_of[a]);
    return block->members[0] == a;
}

/* ---- Cutting ---- */

/* crossing[i]: how many storages cross a cut before the i-th op; produced[i]: how many storages
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

/* The ops from `begin` to before `at` are the next window. */
static void end_window(struct cutting *cutting, uint32_t begin, uint32_t at)
{
    assert(begin < at && at <= cutting->ops_count);
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
    struct tarn_region *work = &cutting->work;
    size_t count = (size_t)cutting->ops_count + 2;
    cutting->window_of = tarn_region_take(work, count, sizeof *cutting->window_of);
    struct tarn_region_mark mark = tarn_region_mark(work);
    int32_t *crossing = tarn_region_take(work, count, sizeof *crossing);
    uint32_t *produced = tarn_region_take(work, count, sizeof *produced);
    if (work->is_exhausted) return false;
    count_crossings(cutting, crossing, produced);
    cut_where_few_cross(cutting, width, crossing, produced);
    tarn_region_release(work, mark);
    return true;
}

/* ---- Storages by window ---- */

/* Fills storage of the list -> window; windows_count if it crosses. */
static void find_windows(struct cutting *cutting, uint32_t *window)
{
    const struct tarn_lifetimes *lifetimes = &cutting->lifetimes;
    const uint32_t *slot_of = lifetimes->problem->conflicts.slot_of;
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        struct tarn_block block;
        uint32_t begin, end;
        if (!begins_block(cutting, i, &block)) continue;
        tarn_lifetimes_of_block(lifetimes, block, i, &begin, &end);
        uint32_t own = cutting->window_of[begin];
        bool is_large = block.members_count > 1 && block.size >= cutting->large;
        cutting->has_large = cutting->has_large || is_large;
        if (is_large || cutting->window_of[end - 1] != own) own = cutting->windows_count;
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

/* Counting sort: begin[w] is moved along, and back at the end. */
static bool fill_cuts(const struct cutting *cutting, struct tarn_region *region,
                      const uint32_t *window, struct tarn_cuts *cuts)
{
    uint32_t count = cutting->lifetimes.count, crosses = cuts->count;
    for (uint32_t i = 0; i < count; i++) cuts->begin[window[i] + 1]++;
    uint32_t crossing_count = cuts->begin[crosses + 1];
    assert(crossing_count <= count);
    cuts->crossing = tarn_region_take(region, crossing_count, sizeof *cuts->crossing);
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

static bool sort_storages(struct cutting *cutting, struct tarn_region *region,
                          struct tarn_cuts *cuts)
{
    uint32_t count = cutting->lifetimes.count;
    uint32_t *window = tarn_region_take(&cutting->work, count, sizeof *window);
    cuts->count = cutting->windows_count;
    cuts->begin = tarn_region_take(region, (size_t)cuts->count + 2, sizeof *cuts->begin);
    cuts->storages = tarn_region_take(region, count, sizeof *cuts->storages);
    if (!window || !cuts->begin || !cuts->storages) return false;
    find_windows(cutting, window);
    cuts->has_large = cutting->has_large;
    return fill_cuts(cutting, region, window, cuts);
}

enum tarn_status tarn_cuts_init(struct tarn_cuts *cuts, struct tarn_region *region,
                                const struct tarn_problem *problem, const uint32_t *block_of,
                                const uint32_t *storages, uint32_t count, uint32_t width,
                                uint64_t large)
{
    struct cutting cutting = {.blocks = &problem->blocks,
                              .block_of = block_of,
                              .ops_count = problem->ops_count,
                              .large = large};
    assert(width > 0);
    bool ok = tarn_lifetimes_init(&cutting.lifetimes, &cutting.work, problem, storages, count) ==
                  TARN_OK &&
              cut(&cutting, width) && sort_storages(&cutting, region, cuts);
    tarn_region_finish(&cutting.work);
    assert(!ok || tarn_cuts_are_valid(cuts, count));
    return ok ? TARN_OK : TARN_SYSTEM;
}

bool tarn_cuts_are_valid(const struct tarn_cuts *cuts, uint32_t listed)
{
    uint32_t crossing_count = cuts->begin[cuts->count + 1] - cuts->begin[cuts->count];
    if (cuts->begin[0] != 0 || cuts->begin[cuts->count + 1] != listed) return false;
    for (uint32_t w = 0; w <= cuts->count; w++)
        if (cuts->begin[w] > cuts->begin[w + 1]) return false;
    for (uint32_t i = 0; i < crossing_count; i++)
        if (cuts->crossing[i].first >= cuts->crossing[i].end || cuts->crossing[i].end > cuts->count)
            return false;
    return true;
}
