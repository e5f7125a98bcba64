/* Gaps of an antichain A. Members of A are unsafe with each other, so in every safe plan their
 * bytes are disjoint. A group's members are disjoint too, and lie in a fixed order:
 *
 *     group G   │ A member │ gap: no members of A │ A member │ gap, open at its end │
 *     elsewhere             ▐item▌   ▐item▌                      ▐A member▌▐A mem|ber▌
 *
 * How many bytes of A can lie inside a gap?
 *   (1) A byte of an A member b inside the gap is a byte of some gap member too, so b is safe with
 *       that gap member. Hence at most the sum of all A members that are safe with some gap member.
 *   (2) Closed gap (an A member on both sides): an item is an interval of A bytes. It is disjoint
 *       from the members at the gap's sides, so it lies inside the gap as a whole or not at all.
 *       Then all its members are safe with some gap member; it fits at an offset that is, modulo
 *       the alignment, a legal start of its group or of the lone item; and the sizes of all items
 *       in the gap sum to at most the gap's size. Hence at most the best such subset sum.
 * The rest of the gap's bytes is waste: bytes of the arena in addition to the bytes of A. The waste
 * of two gaps adds up if they are disjoint, which they are if
 *   (3) they belong to one group, or every member of one is unsafe with every member of the other;
 *   (4) or both are closed and neither can reach into the other: if they overlap, then the item at
 *       a side of one is inside the other (their ends differ, else the items after those ends would
 *       overlap). Either they cross, and then the right item of the first is inside the second and
 *       the left item of the second is inside the first; or one contains the other with both its
 *       items.
 * So no safe plan is smaller than the weight of A plus the waste of pairwise disjoint gaps.
 * Cost: O(T S) to take an antichain; each gap costs a safety test for every item and gap member,
 * and the subset sums a bit for every sum and item; all work is counted, and never exceeds the
 * limit.
 */
#include "gaps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/bitset.h"
#include "streams/base/checked.h"
#include "streams/base/region.h"

enum { SUMS_WORDS = 4096, SUMS_MAX = 64 * SUMS_WORDS };

/* ---- Making ---- */

/* The number of leading zero bits of a storage's size; a size of 0 counts as 1. */
static uint32_t zeros_before(const struct tarn_reserve *reserve, uint32_t a)
{
    return (uint32_t)__builtin_clzll(reserve->reserved[a] | 1);
}

/* Sorts by the number of binary digits, which is enough to process large storages first. */
static void sort_by_size(const struct tarn_reserve *reserve, uint32_t *by_size)
{
    uint32_t begin[66] = {0};
    for (uint32_t a = 0; a < reserve->reuse->count; a++) begin[1 + zeros_before(reserve, a)]++;
    for (uint32_t digits = 1; digits < 66; digits++) begin[digits] += begin[digits - 1];
    for (uint32_t a = 0; a < reserve->reuse->count; a++)
        by_size[begin[zeros_before(reserve, a)]++] = a;
}

enum tarn_status tarn_gaps_init(struct tarn_gaps *gaps, struct tarn_region *region,
                                const struct tarn_reserve *reserve, uint64_t steps)
{
    size_t count = reserve->reuse->count;
    *gaps = (struct tarn_gaps){.reserve = reserve, .steps_left = steps};
    gaps->by_size = tarn_region_take(region, count, sizeof *gaps->by_size);
    gaps->inside = tarn_region_take(region, count, sizeof *gaps->inside);
    gaps->items = tarn_region_take(region, count, sizeof *gaps->items);
    gaps->gaps = tarn_region_take(region, count, sizeof *gaps->gaps);
    gaps->sums = tarn_region_take(region, SUMS_WORDS, sizeof *gaps->sums);
    if (!gaps->by_size || !gaps->inside || !gaps->items || !gaps->gaps || !gaps->sums)
        return TARN_SYSTEM;
    sort_by_size(reserve, gaps->by_size);
    return TARN_OK;
}

bool tarn_gaps_spend(struct tarn_gaps *gaps, uint64_t steps)
{
    bool enough = gaps->steps_left >= steps;
    gaps->steps_left = enough ? gaps->steps_left - steps : 0;
    return enough;
}

/* ---- Taking an antichain ---- */

static void take_members(struct tarn_gaps *gaps, const uint32_t *threshold)
{
    const struct tarn_reuse *reuse = gaps->reserve->reuse;
    gaps->weight = 0;
    for (uint32_t a = 0; a < reuse->count; a++) {
        gaps->inside[a] = tarn_antichain_has(threshold, reuse, a);
        if (gaps->inside[a]) gaps->weight += gaps->reserve->reserved[a];
    }
}

static void add_lone_item(struct tarn_gaps *gaps, const uint32_t *storage)
{
    uint64_t size = gaps->reserve->reserved[*storage];
    gaps->items[gaps->items_count++] = (struct tarn_item){storage, 1, TARN_NONE, size, 0};
}

static void add_gap(struct tarn_gaps *gaps, const struct tarn_item *run, uint32_t left)
{
    gaps->gaps[gaps->gaps_count++] = (struct tarn_gap){.members = run->members,
                                                       .members_count = run->members_count,
                                                       .group = run->group,
                                                       .left = left,
                                                       .right = TARN_NONE,
                                                       .size = run->size,
                                                       .within = run->within};
    gaps->gaps_size += run->size;
}

/* A group in another memory space reserves nothing. */
static bool is_reserved(const struct tarn_gaps *gaps, const struct tarn_group *group)
{
    return !group->persistent && group->storages_count > 0 &&
           gaps->reserve->reserved[group->storages[0]] > 0;
}

/* Cuts a group into items and gaps, which alternate. */
static void cut_group(struct tarn_gaps *gaps, uint32_t g)
{
    const struct tarn_group *group = &gaps->reserve->graph->groups[g];
    uint32_t left = TARN_NONE; /* the item before */
    uint64_t end = 0;
    for (uint32_t i = 0, begin = 0; begin < group->storages_count; begin = i) {
        bool inside = gaps->inside[group->storages[begin]];
        struct tarn_item run = {group->storages + begin, 0, g, 0, end};
        for (; i < group->storages_count && gaps->inside[group->storages[i]] == inside; i++)
            run.size += gaps->reserve->reserved[group->storages[i]];
        run.members_count = i - begin;
        assert(run.members_count > 0 && run.size > 0);
        end += run.size;
        if (!inside) {
            add_gap(gaps, &run, left);
            continue;
        }
        left = gaps->items_count;
        gaps->items[gaps->items_count++] = run;
        if (begin > 0) gaps->gaps[gaps->gaps_count - 1].right = left;
    }
}

/* Members that may overlap leave no gaps; each member of the antichain is an item. */
static void add_layers(struct tarn_gaps *gaps, uint32_t g)
{
    const struct tarn_group *group = &gaps->reserve->graph->groups[g];
    for (uint32_t i = 0; i < group->storages_count; i++) {
        const uint32_t *a = &group->storages[i];
        uint64_t size = gaps->reserve->reserved[*a];
        if (gaps->inside[*a])
            gaps->items[gaps->items_count++] = (struct tarn_item){a, 1, g, size, group->within[i]};
    }
}

void tarn_gaps_take(struct tarn_gaps *gaps, const uint32_t *threshold)
{
    const struct tarn_graph *graph = gaps->reserve->graph;
    tarn_gaps_spend(gaps, gaps->reserve->reuse->count);
    gaps->items_count = gaps->gaps_count = 0;
    gaps->gaps_size = 0;
    take_members(gaps, threshold);
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (is_reserved(gaps, &graph->groups[g])) {
            if (graph->groups[g].within)
                add_layers(gaps, g);
            else
                cut_group(gaps, g);
        }
    for (uint32_t i = 0; i < graph->planned_count; i++) {
        const uint32_t *a = &gaps->by_size[i];
        if (gaps->inside[*a] && graph->storages[*a].group == TARN_NONE) add_lone_item(gaps, a);
    }
    assert(gaps->items_count + gaps->gaps_count <= graph->planned_count);
}

/* ---- What can lie in a gap ---- */

static bool is_closed(const struct tarn_gap *gap)
{
    return gap->left != TARN_NONE && gap->right != TARN_NONE;
}

/* Is the storage safe with some member of the gap? */
static bool reaches(const struct tarn_gaps *gaps, uint32_t storage, const struct tarn_gap *gap)
{
    for (uint32_t i = 0; i < gap->members_count; i++)
        if (tarn_reuse_is_safe(gaps->reserve->reuse, storage, gap->members[i])) return true;
    return false;
}

static bool fits(const struct tarn_gaps *gaps, const struct tarn_item *item,
                 const struct tarn_gap *gap)
{
    uint64_t skipped = (item->within - gap->within) & (gaps->reserve->alignment - 1);
    return item->size <= gap->size && skipped <= gap->size - item->size;
}

/* Can all of the item be inside a closed gap of another group? */
static bool may_lie_in(struct tarn_gaps *gaps, const struct tarn_item *item,
                       const struct tarn_gap *gap)
{
    if (item->group == gap->group || !fits(gaps, item, gap)) return false;
    if (!tarn_gaps_spend(gaps, (uint64_t)item->members_count * gap->members_count)) return true;
    for (uint32_t i = 0; i < item->members_count; i++)
        if (!reaches(gaps, item->members[i], gap)) return false;
    return true;
}

/* ---- Waste ---- */

/* Rule (1). */
static uint64_t fill_of_open(struct tarn_gaps *gaps, const struct tarn_gap *gap)
{
    const struct tarn_graph *graph = gaps->reserve->graph;
    uint64_t fill = 0;
    for (uint32_t i = 0; i < graph->planned_count && fill < gap->size; i++) {
        uint32_t a = gaps->by_size[i];
        if (!gaps->inside[a] || graph->storages[a].group == gap->group) continue;
        if (!tarn_gaps_spend(gaps, gap->members_count)) return gap->size;
        if (reaches(gaps, a, gap)) fill += gaps->reserve->reserved[a];
    }
    return fill < gap->size ? fill : gap->size;
}

/* sums |= sums << shift. */
static void add_to_sums(uint64_t *sums, uint32_t words, uint64_t shift)
{
    uint32_t far = (uint32_t)(shift / 64), near = shift % 64;
    for (uint32_t i = words; i-- > far;) {
        uint64_t moved = sums[i - far] << near;
        if (near && i > far) moved |= sums[i - far - 1] >> (64 - near);
        sums[i] |= moved;
    }
}

/* The largest sum, up to the gap's size, of sizes of items that may lie in the gap; the unit
 * divides all sizes. */
static uint64_t best_sum(struct tarn_gaps *gaps, const struct tarn_gap *gap, uint64_t unit)
{
    uint64_t room = gap->size / unit;
    assert(room < SUMS_MAX);
    uint32_t words = (uint32_t)(room / 64) + 1;
    memset(gaps->sums, 0, words * sizeof *gaps->sums);
    gaps->sums[0] = 1;
    for (uint32_t i = 0; i < gaps->items_count; i++) {
        if (!may_lie_in(gaps, &gaps->items[i], gap)) continue;
        if (!tarn_gaps_spend(gaps, words)) return gap->size;
        add_to_sums(gaps->sums, words, gaps->items[i].size / unit);
    }
    while (!tarn_set_has(gaps->sums, (uint32_t)room)) room--;
    return room * unit;
}

/* Rule (2). */
static uint64_t fill_of_closed(struct tarn_gaps *gaps, const struct tarn_gap *gap)
{
    uint64_t sum = 0, unit = 0;
    for (uint32_t i = 0; i < gaps->items_count; i++) {
        if (!may_lie_in(gaps, &gaps->items[i], gap)) continue;
        sum += gaps->items[i].size;
        unit = tarn_common_divisor(gaps->items[i].size, unit);
    }
    if (gaps->steps_left == 0) return gap->size;
    if (sum <= gap->size) return sum;
    return gap->size / unit < SUMS_MAX ? best_sum(gaps, gap, unit) : gap->size;
}

/* ---- Choosing ---- */

static bool are_all_unsafe(struct tarn_gaps *gaps, const struct tarn_gap *a,
                           const struct tarn_gap *b)
{
    if (!tarn_gaps_spend(gaps, (uint64_t)a->members_count * b->members_count)) return false;
    for (uint32_t i = 0; i < a->members_count; i++)
        if (reaches(gaps, a->members[i], b)) return false;
    return true;
}

/* Rules (3) and (4). */
static bool are_disjoint(struct tarn_gaps *gaps, const struct tarn_gap *a, const struct tarn_gap *b)
{
    if (a->group == b->group || are_all_unsafe(gaps, a, b)) return true;
    if (!is_closed(a) || !is_closed(b)) return false;
    bool left_in_b = may_lie_in(gaps, &gaps->items[a->left], b);
    bool right_in_b = may_lie_in(gaps, &gaps->items[a->right], b);
    bool left_in_a = may_lie_in(gaps, &gaps->items[b->left], a);
    bool right_in_a = may_lie_in(gaps, &gaps->items[b->right], a);
    bool cross = (right_in_b && left_in_a) || (left_in_b && right_in_a);
    bool contain = (left_in_b && right_in_b) || (left_in_a && right_in_a);
    return gaps->steps_left > 0 && !cross && !contain;
}

static int compare_waste(const void *left, const void *right)
{
    const struct tarn_gap *a = left, *b = right;
    if (a->waste != b->waste) return a->waste > b->waste ? -1 : 1;
    return a->members[0] < b->members[0] ? -1 : a->members[0] > b->members[0];
}

uint32_t tarn_gaps_choose(struct tarn_gaps *gaps)
{
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < gaps->gaps_count; i++) {
        struct tarn_gap *gap = &gaps->gaps[i];
        uint64_t fill = is_closed(gap) ? fill_of_closed(gaps, gap) : fill_of_open(gaps, gap);
        gap->waste = gap->size - fill;
    }
    qsort(gaps->gaps, gaps->gaps_count, sizeof *gaps->gaps, compare_waste);
    for (uint32_t i = 0; i < gaps->gaps_count && gaps->gaps[i].waste > 0; i++) {
        bool fit = true;
        for (uint32_t k = 0; k < chosen && fit; k++)
            fit = are_disjoint(gaps, &gaps->gaps[k], &gaps->gaps[i]);
        if (fit) gaps->gaps[chosen++] = gaps->gaps[i];
    }
    return chosen;
}
