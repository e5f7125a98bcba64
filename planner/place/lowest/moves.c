/* Makes the moves of a local search. Priority orders decide which block comes first at an offset,
 * and floors keep a block from dropping into a hole. Together they can express every plan in which
 * no block can sink.
 *
 *   - Raise the priority orders of all blocks that end above the aim by the same random amount
 *     (squeaky wheel optimization, Joslin and Clements 1999).
 *   - Let one of them come right before a random conflicting block that lies lower, or give that
 *     block a random priority.
 *   - Pick a hole: bytes below the antichain's top that the antichain does not cover, and let a
 *     block of the antichain from above drop into it by floors for the others that lie there; or
 *     take a floor away.
 *
 * A step that is no worse than the present plan, or than the plan of `lateness` steps ago (late
 * acceptance, Burke and Bykov 2017), is kept. A placement stops as soon as its step is sure to be
 * undone. Source: docs/how-it-works.md, "Placement". Moves along chains of supporters reached the
 * bound half as often in as many steps. Cost: a step is one replay. */
#include "moves.h"

#include <assert.h>
#include <string.h>

#include "streams/base/random.h"

/* Of a hundred moves that are not for holes. */
enum { RAISE_PERCENT = 52, PASS_PERCENT = 24, SCATTER_PERCENT = 20 };

/* ---- Chance ---- */

static uint32_t draw_below(struct tarn_local_search *local, uint32_t limit)
{
    return tarn_random_below(&local->random, limit);
}

/* ---- Changes ---- */

static void change(struct tarn_local_search *local, uint32_t place, int32_t priority, int32_t floor)
{
    if (local->changes_count == TARN_CHANGES_MAX) return;
    assert(place < local->lowest->count && priority >= 0 && floor >= 0);
    local->changes[local->changes_count].place = place;
    local->changes[local->changes_count].priority = local->priority[place];
    local->changes[local->changes_count++].floor = local->floor[place];
    local->priority[place] = priority;
    local->floor[place] = floor;
}

static void set_priority(struct tarn_local_search *local, uint32_t place, int32_t priority)
{
    change(local, place, priority < TARN_PRIORITY_MAX ? priority : TARN_PRIORITY_MAX,
           local->floor[place]);
}

static void set_floor(struct tarn_local_search *local, uint32_t place, int32_t floor)
{
    change(local, place, local->priority[place], floor < TARN_UNITS_MAX ? floor : TARN_UNITS_MAX);
}

static void take_back(struct tarn_local_search *local)
{
    while (local->changes_count > 0) {
        uint32_t i = --local->changes_count, place = local->changes[i].place;
        local->priority[place] = local->changes[i].priority;
        local->floor[place] = local->changes[i].floor;
    }
}

/* ---- Moves ---- */

static int32_t end_of(const struct tarn_local_search *local, uint32_t place)
{
    return local->replay.offset[place] + local->lowest->size[place];
}

/* Only for lone storages. */
static bool is_unsafe(const struct tarn_lowest *lowest, uint32_t a, uint32_t b)
{
    return !tarn_reuse_is_safe(&lowest->problem->conflicts.reuse, lowest->lone.storage[a],
                               lowest->lone.storage[b]);
}

/* Lists the blocks that end above the aim; returns how many. */
static uint32_t list_above_aim(struct tarn_local_search *local)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < local->lowest->count; i++)
        if (end_of(local, i) > local->setting.objective.aim) local->list[count++] = i;
    return count;
}

static void raise_above_aim(struct tarn_local_search *local)
{
    uint32_t count = list_above_aim(local);
    int32_t amount = (int32_t)draw_below(local, TARN_PRIORITY_MAX / 8);
    for (uint32_t i = 0; i < count && i < TARN_CHANGES_MAX; i++)
        set_priority(local, local->list[i], local->priority[local->list[i]] + amount);
}

/* A random lone storage that ends above the aim, and a random one in conflict that lies lower;
 * false if there are none. */
static bool draw_pair(struct tarn_local_search *local, uint32_t *above, uint32_t *lower)
{
    const struct tarn_lowest *lowest = local->lowest;
    uint32_t count = list_above_aim(local), seen = 0;
    *above = count > 0 ? local->list[draw_below(local, count)] : lowest->count;
    if (*above >= lowest->lone.count) return false;
    for (uint32_t i = 0; i < lowest->lone.count; i++)
        if (local->replay.offset[i] < local->replay.offset[*above] &&
            is_unsafe(lowest, i, *above) && draw_below(local, ++seen) == 0)
            *lower = i;
    return seen > 0;
}

static void pass_lower(struct tarn_local_search *local)
{
    uint32_t above, lower;
    if (draw_pair(local, &above, &lower)) set_priority(local, above, local->priority[lower] + 1);
}

static void scatter_lower(struct tarn_local_search *local)
{
    uint32_t above, lower;
    if (draw_pair(local, &above, &lower))
        set_priority(local, lower, (int32_t)draw_below(local, TARN_PRIORITY_MAX));
}

static void clear_floor(struct tarn_local_search *local)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < local->lowest->count; i++)
        if (local->floor[i] > 0) local->list[count++] = i;
    if (count > 0) set_floor(local, local->list[draw_below(local, count)], 0);
}

/* The start of a random hole of the antichain, or -1. */
static int32_t draw_hole(struct tarn_local_search *local)
{
    const struct tarn_lowest *lowest = local->lowest;
    int32_t found = -1;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < lowest->count; i++) {
        int32_t end = end_of(local, i);
        bool covered = !local->traits->in_antichain[i], is_below = false;
        if (covered || end >= local->setting.objective.aim) continue;
        for (uint32_t k = 0; k < lowest->count && !covered; k++) {
            if (!local->traits->in_antichain[k]) continue;
            covered = local->replay.offset[k] <= end && end < end_of(local, k);
            is_below = is_below || local->replay.offset[k] > end;
        }
        if (!covered && is_below && draw_below(local, ++seen) == 0) found = end;
    }
    return found;
}

static void close_hole(struct tarn_local_search *local)
{
    const struct tarn_lowest *lowest = local->lowest;
    int32_t hole = draw_hole(local);
    uint32_t chosen = TARN_NONE, seen = 0;
    if (hole < 0) return;
    for (uint32_t i = 0; i < lowest->lone.count; i++)
        if (local->traits->in_antichain[i] && local->replay.offset[i] > hole &&
            draw_below(local, ++seen) == 0)
            chosen = i;
    if (chosen == TARN_NONE) return;
    int32_t end = hole + lowest->size[chosen], highest = 0;
    for (uint32_t i = 0; i < lowest->lone.count; i++) {
        if (i == chosen || local->traits->in_antichain[i] || local->replay.offset[i] >= end ||
            end_of(local, i) <= hole || !is_unsafe(lowest, i, chosen))
            continue;
        set_floor(local, i, end);
        if (local->priority[i] > highest) highest = local->priority[i];
    }
    set_priority(local, chosen,
                 highest + 1 > local->priority[chosen] ? highest + 1 : local->priority[chosen]);
}

/* ---- Steps ---- */

static void propose(struct tarn_local_search *local)
{
    uint32_t percent = draw_below(local, 100);
    if (draw_below(local, 100) < local->setting.hole_percent)
        close_hole(local);
    else if (percent < RAISE_PERCENT)
        raise_above_aim(local);
    else if (percent < RAISE_PERCENT + PASS_PERCENT)
        pass_lower(local);
    else if (percent < RAISE_PERCENT + PASS_PERCENT + SCATTER_PERCENT)
        scatter_lower(local);
    else
        clear_floor(local);
}

void tarn_local_search_step(struct tarn_local_search *local)
{
    int64_t *late = &local->late[local->steps++ % local->setting.lateness];
    assert(local->changes_count == 0);
    int64_t allowed = *late > local->replay.miss ? *late : local->replay.miss;
    propose(local);
    if (!tarn_replay_try(&local->replay, local->priority, local->floor, local->changes,
                         local->changes_count, local->setting.objective, allowed))
        take_back(local);
    local->changes_count = 0;
    *late = local->replay.miss;
}

bool tarn_local_search_start(struct tarn_local_search *local, const int32_t *priority,
                             const int32_t *floor)
{
    memcpy(local->priority, priority, local->lowest->count * sizeof *priority);
    memcpy(local->floor, floor, local->lowest->count * sizeof *floor);
    bool ok =
        tarn_replay_start(&local->replay, local->priority, local->floor, local->setting.objective);
    for (uint32_t i = 0; i < TARN_LATENESS_MAX; i++) local->late[i] = local->replay.miss;
    return ok;
}

/* ---- Making ---- */

enum tarn_status tarn_local_search_init(struct tarn_local_search *local, struct tarn_region *region,
                                        const struct tarn_lowest *lowest,
                                        const struct tarn_traits *traits,
                                        const struct tarn_local_search_setting *setting,
                                        uint64_t seed)
{
    assert(setting->lateness > 0 && setting->lateness <= TARN_LATENESS_MAX);
    assert(setting->hole_percent <= 100);
    size_t count = lowest->count;
    *local = (struct tarn_local_search){
        .lowest = lowest, .traits = traits, .setting = *setting, .random = seed};
    local->priority = tarn_region_take(region, count, sizeof *local->priority);
    local->floor = tarn_region_take(region, count, sizeof *local->floor);
    local->list = tarn_region_take(region, count, sizeof *local->list);
    if (!local->priority || !local->floor || !local->list) return TARN_SYSTEM;
    return tarn_replay_init(&local->replay, region, lowest);
}
