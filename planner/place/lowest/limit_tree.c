/* Implements the tree of limits: starts it, changes the limit of one place, and raises every limit
 * to the limits pending above it. Source: docs/how-it-works.md, "Placement". Cost: O(T) for the
 * whole tree; for one place a run, and the children of one node of every level. */
#include "limit_tree.h"

#include <assert.h>
#include <string.h>

#include "limits.h"

void tarn_limits_flush(struct tarn_greedy *greedy)
{
    for (uint32_t level = greedy->extremes->levels_count; --level > 0;)
        for (uint32_t node = 0; node < greedy->levels[level].count; node++)
            tarn_flush_node(greedy, level, node);
    for (uint32_t run = 0; run < greedy->levels[0].count; run++) tarn_flush_run(greedy, run);
}

void tarn_limits_rise(struct tarn_greedy *greedy, uint32_t place, int32_t limit)
{
    assert(limit >= greedy->limit[place] && limit < TARN_PLACED);
    greedy->limit[place] = limit;
    tarn_measure(greedy, place / TARN_LANE_RUN, limit);
}

void tarn_limits_remove(struct tarn_greedy *greedy, uint32_t place)
{
    assert(place < greedy->lowest->count && greedy->limit[place] != TARN_PLACED);
    greedy->limit[place] = TARN_PLACED;
    if (greedy->narrows) greedy->placed[place / TARN_LANE_RUN]++;
    for (uint32_t level = 0; level < greedy->extremes->levels_count; level++)
        greedy->levels[level].champion[place >> tarn_node_shift(level)] = tarn_nobody;
    tarn_measure(greedy, place / TARN_LANE_RUN, 0);
}

void tarn_limits_forget(struct tarn_greedy *greedy)
{
    for (uint32_t level = 0; level < greedy->extremes->levels_count; level++)
        for (uint32_t node = 0; node < greedy->levels[level].count; node++)
            greedy->levels[level].first[node] = greedy->levels[level].champion[node] = tarn_nobody;
}

void tarn_limits_start(struct tarn_greedy *greedy)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    memset(greedy->limit, 0, lowest->count * sizeof *greedy->limit);
    memset(greedy->member_limit, 0, lowest->members.count * sizeof *greedy->member_limit);
    for (uint32_t n = 0; n < greedy->extremes->levels_count; n++) {
        struct tarn_limits_level *level = &greedy->levels[n];
        memset(level->pending, 0, level->count * sizeof *level->pending);
        memset(level->greatest, 0, level->count * sizeof *level->greatest);
        for (uint32_t node = 0; node < level->count; node++)
            level->least[node] =
                (uint64_t)node << tarn_node_shift(n) < lowest->count ? 0 : TARN_PLACED;
    }
    tarn_limits_forget(greedy);
    if (!greedy->narrows) return;
    uint32_t streams_count = lowest->problem->conflicts.reuse.streams_count;
    tarn_extremes_copy(&greedy->narrowed, &lowest->extremes, streams_count);
    memset(greedy->placed, 0, lowest->extremes.nodes_count[0]);
    memset(greedy->narrowed_at, 0, (size_t)streams_count * lowest->extremes.nodes_count[0]);
}

/* ---- Validity ---- */

static int32_t greater(int32_t a, int32_t b) { return a > b ? a : b; }

static bool run_is_valid(const struct tarn_greedy *greedy, uint32_t run)
{
    const struct tarn_limits_level *runs = &greedy->levels[0];
    const int32_t *limit = greedy->limit + (size_t)run * TARN_LANE_RUN;
    uint32_t size = tarn_run_size(greedy->lowest, run), placed = 0;
    int32_t least = TARN_PLACED, greatest = 0;
    for (uint32_t i = 0; i < size; i++) {
        int32_t up_to_date = greater(limit[i], runs->pending[run]);
        if (limit[i] < 0) return false;
        placed += limit[i] == TARN_PLACED;
        if (limit[i] == TARN_PLACED) continue;
        least = up_to_date < least ? up_to_date : least;
        greatest = greater(greatest, up_to_date);
    }
    if (greedy->narrows && greedy->placed[run] != placed) return false;
    return runs->least[run] == least && runs->greatest[run] >= greatest;
}

static bool node_is_valid(const struct tarn_greedy *greedy, uint32_t level, uint32_t node)
{
    const struct tarn_limits_level *children = &greedy->levels[level - 1];
    const struct tarn_limits_level *nodes = &greedy->levels[level];
    uint32_t end = tarn_children_end(greedy, level, node);
    int32_t least = TARN_PLACED, greatest = 0;
    for (uint32_t child = node * TARN_NODE_CHILDREN; child < end; child++) {
        int32_t up_to_date = greater(children->least[child], nodes->pending[node]);
        if (children->least[child] == TARN_PLACED) continue;
        least = up_to_date < least ? up_to_date : least;
        greatest = greater(greatest, greater(children->greatest[child], nodes->pending[node]));
    }
    return nodes->least[node] == least && nodes->greatest[node] >= greatest;
}

static bool leaders_are_valid(const struct tarn_greedy *greedy, uint32_t level, uint32_t node)
{
    const struct tarn_leader leaders[] = {greedy->levels[level].first[node],
                                          greedy->levels[level].champion[node]};
    for (uint32_t i = 0; i < 2; i++) {
        if (leaders[i].code == TARN_UNKNOWN) continue;
        uint32_t place = tarn_place_of(leaders[i]);
        if (place >= greedy->lowest->count || place >> tarn_node_shift(level) != node) return false;
        if (i == 1 && greedy->limit[place] == TARN_PLACED) return false;
    }
    return true;
}

bool tarn_limits_is_valid(const struct tarn_greedy *greedy)
{
    for (uint32_t level = 0; level < greedy->extremes->levels_count; level++)
        for (uint32_t node = 0; node < greedy->levels[level].count; node++) {
            bool is_valid =
                level == 0 ? run_is_valid(greedy, node) : node_is_valid(greedy, level, node);
            if (!is_valid || !leaders_are_valid(greedy, level, node)) return false;
        }
    return true;
}
