/* The moves of a walk. Keys decide who comes first at an offset, floors keep a block from dropping
 * into a hole; together they can express every plan in which no block can sink.
 *
 *   - Pick a block that ends above the aim, walk down 0 to 5 supporters (a block in conflict that
 *     ends exactly where it starts), then let the two change places in one of several ways.
 *   - Or pick a hole: bytes below the antichain's top that the antichain does not cover, and let a
 *     block of the antichain from above drop into it by floors for the others that lie there.
 *
 * A step that is no worse than the plan at hand, or than that of `lateness` steps ago (late
 * acceptance, Burke and Bykov 2017), is kept. Decoding stops as soon as a step is sure to be
 * taken back.
 * Source: DESIGN.md, section 3 (Placement). Cost: a step is one decode. */
#include "moves.h"

#include <stdlib.h>
#include <string.h>

enum { DOWN_MAX = 6, MOVES = 6 };

/* ---- Chance ---- */

/* splitmix64 */
static uint64_t draw(struct tarn_walk *walk)
{
    uint64_t z = walk->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t draw_below(struct tarn_walk *walk, uint32_t limit)
{
    return (uint32_t)((draw(walk) >> 32) * limit >> 32);
}

/* ---- Changes ---- */

static void change(struct tarn_walk *walk, uint32_t place, int32_t key, int32_t floor)
{
    if (walk->changes_count == TARN_CHANGES_MAX) return;
    walk->changes[walk->changes_count].place = place;
    walk->changes[walk->changes_count].key = walk->key[place];
    walk->changes[walk->changes_count++].floor = walk->floor[place];
    walk->key[place] = key;
    walk->floor[place] = floor;
}

static void set_key(struct tarn_walk *walk, uint32_t place, int32_t key)
{
    change(walk, place,
           key < 0                ? 0
           : key > TARN_UNITS_MAX ? TARN_UNITS_MAX
                                  : key,
           walk->floor[place]);
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

/* ---- Supporters ---- */

static int32_t end_of(const struct tarn_walk *walk, uint32_t place)
{
    return walk->replay.offset[place] + walk->lowest->size[place];
}

static bool is_unsafe(const struct tarn_lowest *lowest, uint32_t a, uint32_t b)
{
    return !tarn_reuse_is_safe(lowest->problem->conflicts->reuse, a, b);
}

/* Does a member of the block at `below` end exactly where an unsafe one of the block at `place`
 * begins? */
static bool supports(const struct tarn_walk *walk, uint32_t below, uint32_t place)
{
    const struct tarn_lowest *lowest = walk->lowest;
    const struct tarn_blocks *blocks = lowest->problem->blocks;
    const struct tarn_block *b = &blocks->blocks[lowest->block[below]];
    const struct tarn_block *a = &blocks->blocks[lowest->block[place]];
    for (uint32_t i = 0; i < b->members_count; i++) {
        uint32_t lower = b->members[i];
        int64_t end = ((int64_t)walk->replay.offset[below] << lowest->unit_shift) +
                      (int64_t)(blocks->within[lower] + blocks->reserved[lower]);
        for (uint32_t k = 0; k < a->members_count; k++) {
            int64_t begin = ((int64_t)walk->replay.offset[place] << lowest->unit_shift) +
                            (int64_t)blocks->within[a->members[k]];
            int64_t gap = begin - end;
            if (gap >= 0 && gap >> lowest->unit_shift < lowest->alignment[place] &&
                is_unsafe(lowest, lower, a->members[k]))
                return true;
        }
    }
    return false;
}

/* A random supporter, or TARN_NONE. */
static uint32_t draw_supporter(struct tarn_walk *walk, uint32_t place)
{
    const struct tarn_lowest *lowest = walk->lowest;
    uint32_t chosen = TARN_NONE, seen = 0;
    int32_t begin = walk->replay.offset[place];
    for (uint32_t i = 0; i < lowest->count; i++) {
        bool grouped = i >= lowest->lone.count || place >= lowest->lone.count;
        if (!grouped &&
            (end_of(walk, i) > begin || end_of(walk, i) + lowest->alignment[place] <= begin))
            continue;
        if (i == place || !supports(walk, i, place)) continue;
        if (draw_below(walk, ++seen) == 0) chosen = i;
    }
    return chosen;
}

static uint32_t draw_above_aim(struct tarn_walk *walk)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < walk->lowest->count; i++)
        if (end_of(walk, i) > walk->setting.objective.aim) walk->list[count++] = i;
    return count > 0 ? walk->list[draw_below(walk, count)] : TARN_NONE;
}

/* ---- Moves ---- */

static void clear_floor(struct tarn_walk *walk)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < walk->lowest->count; i++)
        if (walk->floor[i] > 0) walk->list[count++] = i;
    if (count > 0) set_floor(walk, walk->list[draw_below(walk, count)], 0);
}

static void move_support(struct tarn_walk *walk)
{
    uint32_t place = draw_above_aim(walk), support;
    if (place == TARN_NONE) return;
    for (uint32_t down = draw_below(walk, DOWN_MAX); down > 0; down--) {
        if ((support = draw_supporter(walk, place)) == TARN_NONE) break;
        place = support;
    }
    if ((support = draw_supporter(walk, place)) == TARN_NONE) support = place;
    int32_t key = walk->key[place];
    switch (draw_below(walk, MOVES)) {
    case 0: set_key(walk, place, walk->key[support] + 1); break;
    case 1:
        set_key(walk, place, walk->key[support]);
        set_key(walk, support, key);
        break;
    case 2: set_floor(walk, support, walk->replay.offset[support] + 1); break;
    case 3: set_floor(walk, support, walk->replay.offset[place]); break;
    case 4: set_key(walk, place, (int32_t)draw_below(walk, TARN_KEY_MAX)); break;
    case 5: clear_floor(walk); break;
    }
}

/* Where the antichain's lowest hole at or above a random height begins, or -1. */
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

static void move_hole(struct tarn_walk *walk)
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
            end_of(walk, i) <= hole ||
            !is_unsafe(lowest, lowest->lone.storage[i], lowest->lone.storage[chosen]))
            continue;
        set_floor(walk, i, end);
        if (walk->key[i] > highest) highest = walk->key[i];
    }
    set_key(walk, chosen, highest + 1 > walk->key[chosen] ? highest + 1 : walk->key[chosen]);
}

/* ---- Steps ---- */

void tarn_walk_step(struct tarn_walk *walk)
{
    int64_t *late = &walk->late[walk->steps++ % walk->setting.lateness];
    int64_t allowed = *late > walk->replay.miss ? *late : walk->replay.miss;
    if (draw_below(walk, 100) < walk->setting.hole_percent)
        move_hole(walk);
    else
        move_support(walk);
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

enum tarn_status tarn_walk_init(struct tarn_walk *walk, const struct tarn_lowest *lowest,
                                const struct tarn_traits *traits,
                                const struct tarn_walk_setting *setting, uint64_t seed)
{
    size_t count = (size_t)lowest->count + 1;
    memset(walk, 0, sizeof *walk);
    walk->lowest = lowest;
    walk->traits = traits;
    walk->setting = *setting;
    walk->random = seed;
    walk->key = calloc(count, sizeof *walk->key);
    walk->floor = calloc(count, sizeof *walk->floor);
    walk->list = malloc(count * sizeof *walk->list);
    if (tarn_replay_init(&walk->replay, lowest) == TARN_OK && walk->key && walk->floor &&
        walk->list)
        return TARN_OK;
    tarn_walk_finish(walk);
    return TARN_SYSTEM;
}

void tarn_walk_finish(struct tarn_walk *walk)
{
    tarn_replay_finish(&walk->replay);
    free(walk->key);
    free(walk->floor);
    free(walk->list);
    memset(walk, 0, sizeof *walk);
}
