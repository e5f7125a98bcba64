/* Finds the bound with groups: the antichain that proves the largest bound, gaps included (gaps.c
 * has the proof). Every antichain is part of one that thresholds name. Three ways to search for the
 * best:
 *
 *   1. The heaviest antichain itself.
 *   2. For a group member m between l and r: the heaviest antichain with l and r, with weight 0 for
 *      m and for all storages that could fill m's gap. Its weight plus the size of m is the largest
 *      bound that a gap of m alone can prove, so one antichain decides about m; large members
 *      first.
 *   3. Local search: from the best so far, move every threshold a few steps down and up (members
 *      change only when it passes a producer or a first), continue with the best antichain found,
 *      and repeat.
 *
 * An antichain that would weigh too little even with all its gaps empty is skipped. Every block
 * begins and ends at a multiple of the plan's alignment, so the bound is rounded up to such a
 * multiple.
 * Cost: about 2 x effort steps of a few nanoseconds each. */
#include "gap_bound.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gaps.h"
#include "streams/base/checked.h"
#include "streams/base/region.h"

/* WALK: thresholds that a walk passes in one direction. TRY_WORK: of one antichain, for each
 * storage on each stream. */
enum { WALK = 16, TRY_WORK = 8 };

struct search {
    struct tarn_region *region;
    struct tarn_gaps gaps;
    struct tarn_gap_bound *best;
    uint64_t heaviest; /* antichain's weight */
    uint32_t effort;
    uint32_t *threshold; /* where the search is */
    uint32_t *cut;       /* the thresholds moved to right after launches */
};

/* Moves thresholds back to right after a launch (or to 0). This loses no member: producers before
 * the cut stay before it, since views produce nothing, and first[a][s] >= x only becomes easier to
 * meet. A plan's certificate counts launches. */
static void cut_behind_launches(uint32_t *cut, const uint32_t *threshold,
                                const struct tarn_graph *graph)
{
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        cut[s] = threshold[s];
        while (cut[s] > 0 && graph->ops[graph->streams[s].ops[cut[s] - 1]].view) cut[s]--;
    }
}

static bool has_groups(const struct tarn_graph *graph)
{
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (!graph->groups[g].persistent && graph->groups[g].storages_count > 1) return true;
    return false;
}

static int compare_ids(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static void keep(struct search *search, uint64_t bound, uint32_t chosen)
{
    struct tarn_gap_bound *best = search->best;
    assert(bound > best->bound && chosen <= search->gaps.reserve->reuse->count);
    for (uint32_t i = 0; i < chosen; i++) best->gaps[i] = search->gaps.gaps[i].members[0];
    qsort(best->gaps, chosen, sizeof *best->gaps, compare_ids);
    best->gaps_count = chosen;
    best->bound = bound;
    memcpy(best->threshold, search->cut, best->streams_count * sizeof *best->threshold);
}

/* Evaluates the antichain of the present thresholds, and keeps it if it is better than the best so
 * far. */
static bool look(struct search *search)
{
    struct tarn_gaps *gaps = &search->gaps;
    cut_behind_launches(search->cut, search->threshold, gaps->reserve->graph);
    tarn_gaps_take(gaps, search->cut);
    if (gaps->weight + gaps->gaps_size <= search->best->bound) return false;
    uint32_t chosen = tarn_gaps_choose(gaps);
    uint64_t bound = gaps->weight;
    for (uint32_t i = 0; i < chosen; i++) bound += gaps->gaps[i].waste;
    if (bound <= search->best->bound) return false;
    keep(search, bound, chosen);
    return true;
}

/* ---- A gap of one member ---- */

struct candidate {
    const uint32_t *member; /* in its group's list */
    uint32_t group;
    uint64_t size, within;
};

static int compare_candidates(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return *a->member < *b->member ? -1 : *a->member > *b->member;
}

/* Writes all members between two others, the largest first. */
static uint32_t list_candidates(const struct tarn_reserve *reserve, struct candidate *candidates)
{
    uint32_t count = 0;
    for (uint32_t g = 0; g < reserve->graph->groups_count; g++) {
        const struct tarn_group *group = &reserve->graph->groups[g];
        if (group->persistent || group->within) continue;
        uint64_t within = 0;
        for (uint32_t i = 0; i < group->storages_count; i++) {
            const uint32_t *member = &group->storages[i];
            uint64_t size = reserve->reserved[*member];
            bool between = i > 0 && i + 1 < group->storages_count &&
                           !tarn_reuse_is_safe(reserve->reuse, member[-1], member[1]);
            if (between && size > 0)
                candidates[count++] = (struct candidate){member, g, size, within};
            within += size;
        }
    }
    qsort(candidates, count, sizeof *candidates, compare_candidates);
    return count;
}

/* Could the storage be an item in the gap? */
static bool may_fill(const struct tarn_reserve *reserve, uint32_t storage,
                     const struct candidate *gap)
{
    uint32_t group = reserve->graph->storages[storage].group;
    uint64_t size = reserve->reserved[storage], skipped = -gap->within & (reserve->alignment - 1);
    if (group == gap->group || size > gap->size) return false;
    if (group == TARN_NONE && size + skipped > gap->size) return false;
    return tarn_reuse_is_safe(reserve->reuse, storage, *gap->member);
}

static void weigh(uint64_t *weight, const struct tarn_reserve *reserve, const struct candidate *gap,
                  uint64_t bonus)
{
    for (uint32_t a = 0; a < reserve->reuse->count; a++)
        weight[a] = may_fill(reserve, a, gap) ? 0 : reserve->reserved[a];
    weight[gap->member[0]] = 0;
    weight[gap->member[-1]] += bonus;
    weight[gap->member[1]] += bonus;
}

/* bonus: more than the weight of any antichain. */
static bool try_gap(struct search *search, const struct candidate *gap, uint64_t bonus,
                    uint64_t *weight)
{
    const struct tarn_reserve *reserve = search->gaps.reserve;
    struct tarn_antichain antichain;
    struct tarn_region_mark mark = tarn_region_mark(search->region);
    weigh(weight, reserve, gap, bonus);
    assert(bonus > search->heaviest);
    uint64_t work = TRY_WORK * (uint64_t)reserve->reuse->count * reserve->reuse->streams_count;
    if (tarn_antichain_init_within(&antichain, search->region, reserve->reuse, reserve->graph,
                                   weight, work) != TARN_OK)
        return false;
    if (antichain.bound + gap->size > search->best->bound + 2 * bonus) {
        memcpy(search->threshold, antichain.threshold,
               antichain.streams_count * sizeof *search->threshold);
        look(search);
    }
    tarn_region_release(search->region, mark);
    return true;
}

/* Do all weights with their bonuses fit in 64 bits together? */
static bool is_sum_small(const struct tarn_reserve *reserve, uint64_t bonus)
{
    uint64_t sum;
    if (!tarn_size_multiply(bonus, 2, &sum)) return false;
    for (uint32_t a = 0; a < reserve->reuse->count; a++)
        if (!tarn_size_add(sum, reserve->reserved[a], &sum)) return false;
    return true;
}

static bool try_gaps(struct search *search)
{
    const struct tarn_reserve *reserve = search->gaps.reserve;
    size_t count = (size_t)reserve->reuse->count;
    uint64_t heaviest = search->heaviest;
    uint64_t tries = search->effort / (2 * (count + 1) * (reserve->reuse->streams_count + 1));
    if (tries == 0 || !is_sum_small(reserve, heaviest + 1)) return true;
    struct tarn_region_mark mark = tarn_region_mark(search->region);
    struct candidate *candidates = tarn_region_take(search->region, count, sizeof *candidates);
    uint64_t *weight = tarn_region_take(search->region, count, sizeof *weight);
    bool ok = candidates && weight;
    uint32_t candidates_count = ok ? list_candidates(reserve, candidates) : 0;
    for (uint32_t i = 0; i < candidates_count && i < tries && ok; i++) {
        if (heaviest + candidates[i].size <= search->best->bound) break;
        ok = try_gap(search, &candidates[i], heaviest + 1, weight);
    }
    tarn_region_release(search->region, mark);
    return ok;
}

/* ---- Steps ---- */

/* Would the storage be in the antichain if stream s did not count? */
static bool is_near(const struct search *search, uint32_t a, uint32_t s)
{
    const struct tarn_reuse *reuse = search->gaps.reserve->reuse;
    if (reuse->stream[a] != s && reuse->position[a] >= search->threshold[reuse->stream[a]])
        return false;
    for (uint32_t t = 0; t < reuse->streams_count; t++) {
        if (t != s && reuse->first[(size_t)t * reuse->count + a] < search->threshold[t])
            return false;
    }
    return true;
}

/* The next lower (higher) threshold of stream s at which the antichain gains or loses a storage;
 * UINT32_MAX if there is none. */
static uint32_t next_threshold(struct search *search, uint32_t s, bool higher)
{
    const struct tarn_reuse *reuse = search->gaps.reserve->reuse;
    uint32_t now = search->threshold[s], next = UINT32_MAX;
    tarn_gaps_spend(&search->gaps, reuse->count);
    for (uint32_t a = 0; a < reuse->count; a++) {
        /* a member for thresholds above its position and up to its first */
        uint32_t edges[2] = {reuse->first[(size_t)s * reuse->count + a], reuse->position[a]};
        for (int i = 0; i < (reuse->stream[a] == s ? 2 : 1); i++) {
            if (higher ? edges[i] < now : edges[i] >= now) continue;
            uint32_t other = higher ? edges[i] + 1 : edges[i];
            bool closer = next == UINT32_MAX || (higher ? other < next : other > next);
            if (closer && is_near(search, a, s)) next = other;
        }
    }
    return next;
}

/* Is something better met? */
static bool walk(struct search *search, uint32_t s, bool higher)
{
    uint32_t length = search->gaps.reserve->graph->streams[s].ops_count;
    bool better = false;
    for (uint32_t i = 0; i < WALK && search->gaps.steps_left > 0; i++) {
        uint32_t next = next_threshold(search, s, higher);
        if (next == UINT32_MAX || next > length) break;
        search->threshold[s] = next;
        better |= look(search);
    }
    return better;
}

static void walk_from_best(struct search *search)
{
    struct tarn_gap_bound *best = search->best;
    size_t bytes = best->streams_count * sizeof *best->threshold;
    for (bool better = true; better && search->gaps.steps_left > 0;) {
        better = false;
        for (uint32_t i = 0; i < 2 * best->streams_count; i++) {
            memcpy(search->threshold, best->threshold, bytes);
            better |= walk(search, i / 2, i % 2);
        }
    }
}

/* ---- The bound ---- */

static bool improve(struct tarn_gap_bound *bound, struct tarn_region *region,
                    const struct tarn_reserve *reserve, uint32_t effort)
{
    size_t streams_count = bound->streams_count;
    struct search search = {
        .region = region, .best = bound, .heaviest = bound->bound, .effort = effort};
    bound->gaps = tarn_region_take(region, reserve->reuse->count, sizeof *bound->gaps);
    struct tarn_region_mark mark = tarn_region_mark(region);
    search.threshold = tarn_region_take(region, streams_count, sizeof *search.threshold);
    search.cut = tarn_region_take(region, streams_count, sizeof *search.cut);
    bool ok = bound->gaps && search.threshold && search.cut &&
              tarn_gaps_init(&search.gaps, region, reserve, effort) == TARN_OK;
    if (ok) {
        memcpy(search.threshold, bound->threshold, streams_count * sizeof *search.threshold);
        look(&search);
        ok = try_gaps(&search);
    }
    if (ok) walk_from_best(&search);
    tarn_region_release(region, mark);
    return ok;
}

enum tarn_status tarn_gap_bound_init(struct tarn_gap_bound *bound, struct tarn_region *region,
                                     const struct tarn_antichain *antichain,
                                     const struct tarn_reserve *reserve, uint32_t effort)
{
    assert(tarn_is_power_of_two(reserve->alignment));
    assert(antichain->streams_count == reserve->graph->streams_count);
    *bound = (struct tarn_gap_bound){.bound = antichain->bound,
                                     .streams_count = antichain->streams_count};
    bound->threshold = tarn_region_take(region, bound->streams_count, sizeof *bound->threshold);
    if (!bound->threshold) return TARN_SYSTEM;
    cut_behind_launches(bound->threshold, antichain->threshold, reserve->graph);
    if (has_groups(reserve->graph) && !improve(bound, region, reserve, effort)) return TARN_SYSTEM;
    bound->bound += -bound->bound & (reserve->alignment - 1);
    assert(bound->bound % reserve->alignment == 0);
    return TARN_OK;
}
