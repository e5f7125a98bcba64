/* The moves of a walk. Keys decide who comes first at an offset, floors keep a block from dropping
 * into a hole; together they can express every plan in which no block can sink.
 *
 *   - Raise the keys of all blocks that end above the aim by the same random amount (squeaky wheel
 *     optimization, Joslin and Clements 1999).
 *   - Let one of them come right before a random one in conflict that lies lower, or give that one
 *     a random key.
 *   - Pick a hole: bytes below the antichain's top that the antichain does not cover, and let a
 *     block of the antichain from above drop into it by floors for the others that lie there; or
 *     take a floor away.
 *
 * A step that is no worse than the present plan, or than that of `lateness` steps ago (late
 * acceptance, Burke and Bykov 2017), is kept. Decoding stops as soon as a step is sure to be
 * taken back.
 * Source: docs/how-it-works.md, "Placement". Moves along chains of supporters reached the bound
 * half as often in as many steps. Cost: a step is one replay. */
#include "moves.h"

#include <assert.h>
#include <string.h>

#include "streams/base/random.h"

/* Of a hundred moves that are not for holes. */
enum { RAISE_PERCENT = 52, PASS_PERCENT = 24, SCATTER_PERCENT = 20 };

/* ---- Chance ---- */

static uint32_t draw_below(struct tarn_walk *walk, uint32_t limit)
{
    return tarn_random_below(&walk->random, limit);
}

/* ---- Changes ---- */

static void change(struct tarn_walk *walk, uint32_t place, int32_t key, int32_t floor)
{
    if (walk->changes_count == TARN_CHANGES_MAX) return;
    assert(place < walk->lowest->count && key >= 0 && floor >= 0);
    walk->changes[walk->changes_count].place = place;
    walk->changes[walk->changes_count].key = walk->key[place];
    walk->changes[walk->changes_count++].floor = walk->floor[place];
    walk->key[place] = key;
    walk->floor[place] = floor;
}

static void set_key(struct tarn_walk *walk, uint32_t place, int32_t key)
{
    change(walk, place, key < TARN_KEY_MAX ? key : TARN_KEY_MAX, walk->floor[place]);
}

static void set_floor(struct tarn_walk *walk, uint32_t place, int32_t floor)
{
    change(walk, place, walk->key[place], floor < TARN_UNITS_MAX ? floor : TARN_UNITS_MAX);
}

static void take_back(struct tarn_walk *walk)
{
    while (walk->changes_count > 0) {
        uint32_t i = --walk->changes_count, place = walk->changes[i].place;
        walk->key[place] = walk->changes[i].key;
        walk->floor[place] = walk->changes[i].floor;
    }
}

/* ---- Moves ---- */

static int32_t end_of(const struct tarn_walk *walk, uint32_t place)
{
    return walk->replay.offset[place] + walk->lowest->size[place];
}

/* Only for lone storages. */
static bool is_unsafe(const struct tarn_lowest *lowest, uint32_t a, uint32_t b)
{
    return !tarn_reuse_is_safe(&lowest->problem->conflicts.reuse, lowest->lone.storage[a],
                               lowest->lone.storage[b]);
}

/* Lists the blocks that end above the aim; returns how many. */
static uint32_t list_above_aim(struct tarn_walk *walk)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < walk->lowest->count; i++)
        if (end_of(walk, i) > walk->setting.objective.aim) walk->list[count++] = i;
    return count;
}

static void raise_above_aim(struct tarn_walk *walk)
{
    uint32_t count = list_above_aim(walk);
    int32_t amount = (int32_t)draw_below(walk, TARN_KEY_MAX / 8);
    for (uint32_t i = 0; i < count && i < TARN_CHANGES_MAX; i++)
        set_key(walk, walk->list[i], walk->key[walk->list[i]] + amount);
}

/* A random lone storage that ends above the aim, and a random one in conflict that lies lower;
 * false when there are none. */
static bool draw_pair(struct tarn_walk *walk, uint32_t *above, uint32_t *lower)
{
    const struct tarn_lowest *lowest = walk->lowest;
    uint32_t count = list_above_aim(walk), seen = 0;
    *above = count > 0 ? walk->list[draw_below(walk, count)] : lowest->count;
    if (*above >= lowest->lone.count) return false;
    for (uint32_t i = 0; i < lowest->lone.count; i++)
        if (walk->replay.offset[i] < walk->replay.offset[*above] && is_unsafe(lowest, i, *above) &&
            draw_below(walk, ++seen) == 0)
            *lower = i;
    return seen > 0;
}

static void pass_lower(struct tarn_walk *walk)
{
    uint32_t above, lower;
    if (draw_pair(walk, &above, &lower)) set_key(walk, above, walk->key[lower] + 1);
}

static void scatter_lower(struct tarn_walk *walk)
{
    uint32_t above, lower;
    if (draw_pair(walk, &above, &lower))
        set_key(walk, lower, (int32_t)draw_below(walk, TARN_KEY_MAX));
}

static void clear_floor(struct tarn_walk *walk)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < walk->lowest->count; i++)
        if (walk->floor[i] > 0) walk->list[count++] = i;
    if (count > 0) set_floor(walk, walk->list[draw_below(walk, count)], 0);
}

/* Where a random hole of the antichain begins, or -1. */
static int32_t draw_hole(struct tarn_walk *walk)
{
    const struct tarn_lowest *lowest = walk->lowest;
    int32_t found = -1;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < lowest->count; i++) {
        int32_t end = end_of(walk, i);
        bool covered = !walk->traits->in_antichain[i], is_below = false;
        if (covered || end >= walk->setting.objective.aim) continue;
        for (uint32_t k = 0; k < lowest->count && !covered; k++) {
            if (!walk->traits->in_antichain[k]) continue;
            covered = walk->replay.offset[k] <= end && end < end_of(walk, k);
            is_below = is_below || walk->replay.offset[k] > end;
        }
        if (!covered && is_below && draw_below(walk, ++seen) == 0) found = end;
    }
    return found;
}

static void close_hole(struct tarn_walk *walk)
{
    const struct tarn_lowest *lowest = walk->lowest;
    int32_t hole = draw_hole(walk);
    uint32_t chosen = TARN_NONE, seen = 0;
    if (hole < 0) return;
    for (uint32_t i = 0; i < lowest->lone.count; i++)
        if (walk->traits->in_antichain[i] && walk->replay.offset[i] > hole &&
            draw_below(walk, ++seen) == 0)
            chosen = i;
    if (chosen == TARN_NONE) return;
    int32_t end = hole + lowest->size[chosen], highest = 0;
    for (uint32_t i = 0; i < lowest->lone.count; i++) {
        if (i == chosen || walk->traits->in_antichain[i] || walk->replay.offset[i] >= end ||
            end_of(walk, i) <= hole || !is_unsafe(lowest, i, chosen))
            continue;
        set_floor(walk, i, end);
        if (walk->key[i] > highest) highest = walk->key[i];
    }
    set_key(walk, chosen, highest + 1 > walk->key[chosen] ? highest + 1 : walk->key[chosen]);
}

/* ---- Steps ---- */

static void propose(struct tarn_walk *walk)
{
    uint32_t percent = draw_below(walk, 100);
    if (draw_below(walk, 100) < walk->setting.hole_percent)
        close_hole(walk);
    else if (percent < RAISE_PERCENT)
        raise_above_aim(walk);
    else if (percent < RAISE_PERCENT + PASS_PERCENT)
        pass_lower(walk);
    else if (percent < RAISE_PERCENT + PASS_PERCENT + SCATTER_PERCENT)
        scatter_lower(walk);
    else
        clear_floor(walk);
}

void tarn_walk_step(struct tarn_walk *walk)
{
    int64_t *late = &walk->late[walk->steps++ % walk->setting.lateness];
    assert(walk->changes_count == 0);
    int64_t allowed = *late > walk->replay.miss ? *late : walk->replay.miss;
    propose(walk);
    if (!tarn_replay_try(&walk->replay, walk->key, walk->floor, walk->changes, walk->changes_count,
                         walk->setting.objective, allowed))
        take_back(walk);
    walk->changes_count = 0;
    *late = walk->replay.miss;
}

bool tarn_walk_start(struct tarn_walk *walk, const int32_t *key, const int32_t *floor)
{
    memcpy(walk->key, key, walk->lowest->count * sizeof *key);
    memcpy(walk->floor, floor, walk->lowest->count * sizeof *floor);
    bool ok = tarn_replay_start(&walk->replay, walk->key, walk->floor, walk->setting.objective);
    for (uint32_t i = 0; i < TARN_LATENESS_MAX; i++) walk->late[i] = walk->replay.miss;
    return ok;
}

/* ---- Making ---- */

enum tarn_status tarn_walk_init(struct tarn_walk *walk, struct tarn_region *region,
                                const struct tarn_lowest *lowest, const struct tarn_traits *traits,
                                const struct tarn_walk_setting *setting, uint64_t seed)
{
    assert(setting->lateness > 0 && setting->lateness <= TARN_LATENESS_MAX);
    assert(setting->hole_percent <= 100);
    size_t count = lowest->count;
    *walk =
        (struct tarn_walk){.lowest = lowest, .traits = traits, .setting = *setting, .random = seed};
    walk->key = tarn_region_take(region, count, sizeof *walk->key);
    walk->floor = tarn_region_take(region, count, sizeof *walk->floor);
    walk->list = tarn_region_take(region, count, sizeof *walk->list);
    if (!walk->key || !walk->floor || !walk->list) return TARN_SYSTEM;
    return tarn_replay_init(&walk->replay, region, lowest);
}
