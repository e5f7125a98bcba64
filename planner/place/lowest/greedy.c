/* Runs the greedy placement: each step places the block with the smallest limit (found by select.c)
 * at this limit, and limits rise (limits.c). For lone storages below their ceilings, limits are
 * exact. A group, or a block that is about to be placed through its ceiling, is checked exactly
 * (settle), and is selected again later if that has raised it. Source: docs/how-it-works.md,
 * "Placement". Cost: the cost of limits.c for each storage. An exact check costs as many steps as
 * there are placed groups, or members of the groups in its way. */
#include <assert.h>
#include <string.h>

#include "limits.h"
#include "planner/place/effort/effort.h"
#include "streams/base/bisect.h"

enum { PLACED = INT32_MAX, LOOK_EVERY = 1024, RISES_A_PLACE = 64, RISES_LEAST = 1 << 16 };

/* ---- Exact looks ---- */

static int32_t align(const struct tarn_lowest *lowest, uint32_t place, int32_t offset)
{
    int32_t mask = lowest->alignment[place] - 1;
    assert(offset >= 0 && (lowest->alignment[place] & mask) == 0);
    return (offset + mask) & ~mask;
}

static bool is_unsafe(const struct tarn_lowest *lowest, uint32_t a, uint32_t b)
{
    return !tarn_reuse_is_safe(&lowest->problem->conflicts.reuse, a, b);
}

/* The first member of a list, begin..end, that ends above `inside` of its block. */
static uint32_t find_member(const struct tarn_lowest *lowest, uint32_t begin, uint32_t end,
                            int32_t inside)
{
    TARN_BISECT(begin, end, middle, lowest->member_end[lowest->member[middle]] <= inside);
    return begin;
}

static bool meet(struct tarn_span a, struct tarn_span b)
{
    return a.begin < b.end && b.begin < a.end;
}

/* Looks along a placed group for the first member in conflict with a lone storage that would begin
 * at `offset` and that ends above it. Writes its bytes; false if there is none. A group, or a run
 * of members, whose lifetimes all miss the storage's lifetime is skipped. */
static bool first_conflict(struct tarn_greedy *greedy, uint32_t place, int32_t offset,
                           uint32_t group, struct tarn_span *span)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    const struct tarn_span life = lowest->lone_life[place];
    int32_t start = greedy->offset[lowest->lone.count + group];
    greedy->work += TARN_WORK_OBSTACLE;
    if (!meet(life, lowest->group_life[group])) return false;
    uint32_t end = lowest->group_begin[group + 1];
    uint32_t i = find_member(lowest, lowest->group_begin[group], end, offset - start);
    while (i < end) {
        uint32_t run = i / TARN_MEMBERS_RUN, run_end = (run + 1) * TARN_MEMBERS_RUN;
        greedy->work += TARN_WORK_MEMBER;
        if (!meet(life, lowest->run_life[run])) i = run_end;
        for (; i < run_end && i < end; i++) {
            uint32_t m = lowest->member[i];
            greedy->work += TARN_WORK_MEMBER;
            if (!meet(life, lowest->member_life[i]) ||
                !is_unsafe(lowest, lowest->lone.storage[place], lowest->members.storage[m]))
                continue;
            *span = (struct tarn_span){start + lowest->within[m], start + lowest->member_end[m]};
            return true;
        }
    }
    return false;
}

/* Finds the lowest offset, at least `offset`, at which a lone storage overlaps no placed member,
 * and the ceiling above it. */
static int32_t settle_lone(struct tarn_greedy *greedy, uint32_t place, int32_t offset)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    const struct tarn_obstacles *obstacles = lowest->obstacles;
    struct tarn_span span;
    uint64_t looked = 0;
    bool moved = true;
    while (moved) {
        int32_t least = offset = align(lowest, place, offset);
        greedy->ceiling[place] = lowest->ceiling[place];
        if (obstacles) {
            offset = tarn_obstacles_clear(obstacles, lowest->lone.storage[place], offset,
                                          lowest->size[place], &greedy->ceiling[place], &looked);
            greedy->work += TARN_WORK_PLACE;
        }
        if ((moved = offset > least)) continue;
        for (uint32_t i = 0; i < greedy->groups_count && !moved; i++) {
            if (!first_conflict(greedy, place, offset, (uint32_t)greedy->groups[i], &span))
                continue;
            moved = span.begin < offset + lowest->size[place];
            if (moved)
                offset = span.end;
            else if (span.begin < greedy->ceiling[place])
                greedy->ceiling[place] = span.begin;
        }
    }
    greedy->work += TARN_WORK_OBSTACLE * looked;
    return offset;
}

/* The lowest offset of a group, at least `offset`, at which none of its members overlaps a member
 * of a placed group that it overlaps now. Members are in order, so the members that one member may
 * overlap are consecutive. */
static int32_t clear_of(struct tarn_greedy *greedy, uint32_t group, int32_t offset, uint32_t other)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    int32_t away = greedy->offset[lowest->lone.count + other] - offset, least = 0;
    uint32_t i_end = lowest->group_begin[group + 1], k_end = lowest->group_begin[other + 1];
    uint32_t i = find_member(lowest, lowest->group_begin[group], i_end, away);
    uint32_t first = lowest->group_begin[other];
    for (; i < i_end; i++) {
        uint32_t m = lowest->member[i];
        first = find_member(lowest, first, k_end, lowest->within[m] - away);
        greedy->work += TARN_WORK_GROUP;
        for (uint32_t k = first; k < k_end; k++) {
            greedy->work += TARN_WORK_MEMBER;
            uint32_t n = lowest->member[k];
            int32_t clear = away + lowest->member_end[n] - lowest->within[m];
            if (away + lowest->within[n] >= lowest->member_end[m]) break;
            if (clear > least &&
                is_unsafe(lowest, lowest->members.storage[m], lowest->members.storage[n]))
                least = clear;
        }
        if (first == k_end) break;
    }
    return offset + least;
}

/* The lowest offset of a group, at least `offset`, at which its members overlap no obstacle. */
static int32_t clear_obstacles(struct tarn_greedy *greedy, uint32_t group, int32_t offset)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    const struct tarn_obstacles *obstacles = lowest->obstacles;
    uint64_t looked = 0;
    uint32_t begin = lowest->group_begin[group], end = lowest->group_begin[group + 1];
    if (!obstacles || obstacles->count == 0) return offset;
    for (uint32_t i = begin; i < end; i++) {
        uint32_t m = lowest->member[i];
        int32_t within = lowest->within[m], ceiling = INT32_MAX;
        offset = tarn_obstacles_clear(obstacles, lowest->members.storage[m], offset + within,
                                      lowest->member_end[m] - within, &ceiling, &looked) -
                 within;
    }
    greedy->work += TARN_WORK_OBSTACLE * looked;
    return offset;
}

static int32_t settle_group(struct tarn_greedy *greedy, uint32_t place, int32_t offset)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    uint32_t group = place - lowest->lone.count;
    greedy->work +=
        (uint64_t)TARN_WORK_MEMBER * (lowest->group_begin[group + 1] - lowest->group_begin[group]);
    for (uint32_t i = lowest->group_begin[group]; i < lowest->group_begin[group + 1]; i++)
        if (greedy->member_limit[lowest->member[i]] > offset)
            offset = greedy->member_limit[lowest->member[i]];
    for (bool moved = true; moved;) {
        int32_t least = offset = align(lowest, place, offset);
        offset = clear_obstacles(greedy, group, offset);
        moved = offset > least;
        for (uint32_t i = 0; i < greedy->groups_count && !moved; i++) {
            int32_t cleared = clear_of(greedy, group, offset, (uint32_t)greedy->groups[i]);
            moved = cleared > offset;
            offset = cleared;
        }
    }
    return offset;
}

/* Groups that end at or below the current offset meet no block any more. */
static void drop_passed(struct tarn_greedy *greedy, int32_t current)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < greedy->groups_count; i++) {
        uint32_t place = lowest->lone.count + (uint32_t)greedy->groups[i];
        if (greedy->offset[place] + lowest->size[place] > current)
            greedy->groups[kept++] = greedy->groups[i];
    }
    greedy->groups_count = kept;
}

/* The offset at which the place can really be put, at its limit or above. */
static int32_t settle(struct tarn_greedy *greedy, uint32_t place, const int32_t *floor)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    int32_t offset = greedy->limit[place];
    assert(offset != PLACED);
    if (offset + lowest->size[place] <= greedy->ceiling[place]) return offset;
    if (floor && floor[place] > offset) {
        offset = floor[place];
        if (greedy->lifted[place] == TARN_NONE) greedy->lifted[place] = greedy->done;
    }
    drop_passed(greedy, greedy->limit[place]);
    greedy->work += TARN_WORK_PLACE + (uint64_t)TARN_WORK_GROUP * greedy->groups_count;
    if (place < lowest->lone.count) return settle_lone(greedy, place, offset);
    return settle_group(greedy, place, offset);
}

/* ---- Placing ---- */

void tarn_greedy_start(struct tarn_greedy *greedy, const int32_t *floor)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    tarn_limits_start(greedy);
    memset(greedy->lifted, 0xff, lowest->count * sizeof *greedy->lifted);
    if (lowest->obstacles)
        memset(greedy->ceiling, 0, lowest->count * sizeof *greedy->ceiling);
    else
        memcpy(greedy->ceiling, lowest->ceiling, lowest->count * sizeof *greedy->ceiling);
    greedy->groups_count = greedy->done = 0;
    greedy->rises = 0;
    greedy->current = greedy->top = 0;
    greedy->miss = 0;
    if (floor) tarn_greedy_forget(greedy, floor);
}

void tarn_greedy_forget(struct tarn_greedy *greedy, const int32_t *floor)
{
    for (uint32_t place = 0; place < greedy->lowest->count; place++)
        greedy->ceiling[place] = floor[place] > greedy->limit[place] ? 0 : greedy->ceiling[place];
    tarn_limits_forget(greedy);
}

static void place_at(struct tarn_greedy *greedy, uint32_t place, int32_t offset)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    greedy->offset[place] = greedy->current = offset;
    greedy->step[place] = greedy->done++;
    tarn_limits_remove(greedy, place);
    if (place < lowest->lone.count) {
        struct tarn_span span = {offset, offset + lowest->size[place]};
        tarn_limits_raise(greedy, place, span);
        return;
    }
    uint32_t group = place - lowest->lone.count;
    greedy->groups[greedy->groups_count++] = (int32_t)group;
    for (uint32_t i = lowest->group_begin[group]; i < lowest->group_begin[group + 1]; i++) {
        uint32_t m = lowest->member[i];
        struct tarn_span span = {offset + lowest->within[m], offset + lowest->member_end[m]};
        tarn_limits_raise_or_cap(greedy, m, span);
    }
}

/* The amount that a block with this end adds to the miss, if the blocks before it reach up to
 * `top`. */
static int64_t miss_of(struct tarn_objective objective, int32_t size, int32_t end, int32_t top)
{
    int32_t above = end - objective.aim, rise = end - (top > objective.aim ? top : objective.aim);
    if (above <= 0) return 0;
    return (int64_t)(above < size ? above : size) * objective.bytes_weight +
           (int64_t)(rise > 0 ? rise : 0) * objective.top_weight;
}

static bool is_over(const struct tarn_greedy *greedy)
{
    if (greedy->work_max > 0 && greedy->work > greedy->work_max) return true;
    return greedy->deadline && greedy->done % LOOK_EVERY == 0 &&
           tarn_deadline_is_over(greedy->deadline);
}

bool tarn_greedy_hurried(const struct tarn_greedy *greedy)
{
    return greedy->hurries &&
           greedy->rises > RISES_LEAST + (uint64_t)RISES_A_PLACE * greedy->lowest->count;
}

/* A place whose offset is above its limit rises, and is selected again later: with many alignments
 * nearly all places rise after each placement. A greedy placement that hurries stops this after
 * RISES_LEAST rises and RISES_A_PLACE for each place; after that lone places are placed at once.
 * That is as safe: the places in conflict with them are raised above them. */
static bool may_rise(struct tarn_greedy *greedy, uint32_t place)
{
    greedy->work += TARN_WORK_RISE;
    greedy->rises++;
    return !tarn_greedy_hurried(greedy) || place >= greedy->lowest->lone.count;
}

bool tarn_greedy_advance(struct tarn_greedy *greedy, const int32_t *priority, const int32_t *floor,
                         struct tarn_objective objective, int64_t miss_max, uint32_t wanted)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    while (greedy->done < wanted) {
        if (is_over(greedy)) return false;
        greedy->work += TARN_WORK_PLACE;
        uint32_t place = tarn_limits_select(greedy, priority);
        int32_t offset = settle(greedy, place, floor), size = lowest->size[place];
        if (offset > TARN_UNITS_MAX - size) return false;
        if (offset > greedy->limit[place] && may_rise(greedy, place)) {
            tarn_limits_rise(greedy, place, offset);
            continue;
        }
        greedy->miss += miss_of(objective, size, offset + size, greedy->top);
        if (greedy->miss > miss_max) return false;
        place_at(greedy, place, offset);
        if (offset + size > greedy->top) greedy->top = offset + size;
    }
    tarn_limits_flush(greedy);
    return true;
}

int64_t tarn_greedy_expect(const struct tarn_greedy *greedy, struct tarn_objective objective)
{
    const int32_t *size = greedy->lowest->size;
    int64_t bytes = 0;
    int32_t top = greedy->top;
    for (uint32_t i = 0; i < greedy->lowest->count; i++) {
        int32_t end = greedy->limit[i] == PLACED ? 0 : greedy->limit[i] + size[i];
        int32_t above = end > objective.aim ? end - objective.aim : 0;
        bytes += above < size[i] ? above : size[i];
        top = end > top ? end : top;
    }
    return greedy->miss + bytes * objective.bytes_weight +
           miss_of((struct tarn_objective){objective.aim, objective.top_weight, 0}, 0, top,
                   greedy->top);
}

/* ---- Making ---- */

static int32_t *take(int32_t **next, size_t count)
{
    int32_t *taken = *next;
    *next += count;
    return taken;
}

static size_t nodes_in_all(const struct tarn_extremes *extremes)
{
    size_t nodes = 0;
    for (uint32_t level = 0; level < extremes->levels_count; level++)
        nodes += extremes->nodes_count[level];
    return nodes;
}

static void take_levels(struct tarn_greedy *greedy, int32_t **next)
{
    const struct tarn_extremes *extremes = greedy->extremes;
    struct tarn_leader *leaders = greedy->leaders;
    for (uint32_t n = 0; n < extremes->levels_count; n++) {
        struct tarn_limits_level *level = &greedy->levels[n];
        level->count = extremes->nodes_count[n];
        level->least = take(next, level->count);
        level->greatest = take(next, level->count);
        level->pending = take(next, level->count);
        level->first = leaders;
        level->champion = leaders + level->count;
        leaders += 2 * (size_t)level->count;
    }
}

enum tarn_status tarn_greedy_init(struct tarn_greedy *greedy, struct tarn_region *region,
                                  const struct tarn_lowest *lowest)
{
    size_t count = lowest->count, nodes = nodes_in_all(&lowest->extremes);
    *greedy = (struct tarn_greedy){
        .lowest = lowest, .extremes = &lowest->extremes, .kernels = tarn_kernels_choose()};
    greedy->state_size = 2 * count + lowest->members.count + 3 * nodes + lowest->groups_count;
    greedy->state = tarn_region_take(region, greedy->state_size, sizeof *greedy->state);
    greedy->offset = tarn_region_take(region, count, sizeof *greedy->offset);
    greedy->step = tarn_region_take(region, count, sizeof *greedy->step);
    greedy->lifted = tarn_region_take(region, count, sizeof *greedy->lifted);
    greedy->leaders = tarn_region_take(region, 2 * nodes, sizeof *greedy->leaders);
    if (!greedy->state || !greedy->offset || !greedy->step || !greedy->lifted || !greedy->leaders)
        return TARN_SYSTEM;
    int32_t *next = greedy->state;
    greedy->limit = take(&next, count);
    greedy->ceiling = take(&next, count);
    greedy->member_limit = take(&next, lowest->members.count);
    take_levels(greedy, &next);
    greedy->groups = take(&next, lowest->groups_count);
    assert(next == greedy->state + greedy->state_size);
    return TARN_OK;
}

enum tarn_status tarn_greedy_narrow(struct tarn_greedy *greedy, struct tarn_region *region)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    uint32_t streams_count = lowest->problem->conflicts.reuse.streams_count;
    size_t runs_count = lowest->extremes.nodes_count[0];
    greedy->placed = tarn_region_take(region, runs_count, sizeof *greedy->placed);
    greedy->narrowed_at =
        tarn_region_take(region, runs_count * streams_count, sizeof *greedy->narrowed_at);
    if (!greedy->placed || !greedy->narrowed_at ||
        tarn_extremes_init_copy(&greedy->narrowed, region, &lowest->extremes, streams_count) !=
            TARN_OK)
        return TARN_SYSTEM;
    greedy->narrows = true;
    greedy->extremes = &greedy->narrowed;
    return TARN_OK;
}
