/* Prepares a problem for lowest-offset-first: lone storages and members of groups in lanes of their
 * own, sizes in units. The unit is the largest power of two that divides the plan's sizes and
 * borders, or more if the arena would have 2^30 units: then sizes round outward, members to both
 * sides, which keeps every plan safe and costs at most one unit for each storage in a stack.
 * Source: docs/how-it-works.md, "Placement". Cost: O(T S), 4 bytes per storage and stream. */
#include "greedy.h"

#include <string.h>

/* ---- Units ---- */

static uint64_t round_units(const struct tarn_lowest *lowest, uint64_t bytes, bool up)
{
    uint64_t units = bytes >> lowest->unit_shift;
    if (up && units << lowest->unit_shift != bytes) units++;
    return units;
}

int32_t tarn_lowest_units(const struct tarn_lowest *lowest, uint64_t bytes)
{
    uint64_t units = round_units(lowest, bytes, false);
    return (int32_t)(units < TARN_UNITS_MAX ? units : TARN_UNITS_MAX);
}

/* A size beyond all limits only has to stay beyond them. */
static int32_t units_up(const struct tarn_lowest *lowest, uint64_t bytes)
{
    uint64_t units = round_units(lowest, bytes, true);
    return (int32_t)(units <= TARN_UNITS_MAX ? units : TARN_UNITS_MAX + 1);
}

uint32_t tarn_lowest_unit_shift(const struct tarn_blocks *blocks, uint64_t bytes_max)
{
    uint64_t bits = UINT64_C(1) << 62;
    for (uint32_t b = 0; b < blocks->count; b++)
        bits |= tarn_block_at(blocks, b).size | tarn_block_at(blocks, b).alignment;
    for (uint32_t a = 0; a < blocks->storages_count; a++)
        bits |= blocks->within[a] | blocks->reserved[a];
    uint32_t shift = (uint32_t)__builtin_ctzll(bits);
    while (bytes_max >> shift > TARN_UNITS_MAX) shift++;
    return shift;
}

/* ---- Making ---- */

enum kind { ALONE, GROUPED, HEAD };

static enum tarn_status init_some(struct tarn_lowest *lowest, struct tarn_region *region,
                                  enum kind kind, struct tarn_lanes *lanes, bool *chosen)
{
    const struct tarn_blocks *blocks = &lowest->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t i = 0; i < block.members_count; i++)
            chosen[block.members[i]] =
                (block.members_count == 1) == (kind == ALONE) && (kind != HEAD || i == 0);
    }
    return tarn_lanes_init(lanes, region, &lowest->problem->conflicts, chosen);
}

static enum tarn_status init_lanes(struct tarn_lowest *lowest, struct tarn_region *region)
{
    bool *chosen = tarn_region_take(region, lowest->problem->blocks.storages_count, sizeof *chosen);
    enum tarn_status status = chosen ? TARN_OK : TARN_SYSTEM;
    if (status == TARN_OK) status = init_some(lowest, region, ALONE, &lowest->lone, chosen);
    if (status == TARN_OK) status = init_some(lowest, region, GROUPED, &lowest->members, chosen);
    if (status == TARN_OK) status = init_some(lowest, region, HEAD, &lowest->heads, chosen);
    if (status == TARN_OK)
        status = tarn_extremes_init(&lowest->extremes, region, &lowest->lone,
                                    lowest->lone.count + lowest->heads.count);
    lowest->groups_count = lowest->heads.count;
    return status;
}

static bool take_places(struct tarn_lowest *lowest, struct tarn_region *region)
{
    size_t members = lowest->members.count, lone = lowest->lone.count, count;
    size_t streams_count = lowest->lone.conflicts->reuse.streams_count;
    lowest->count = lowest->lone.count + lowest->groups_count;
    count = lowest->count;
    lowest->block = tarn_region_take(region, count, sizeof *lowest->block);
    lowest->size = tarn_region_take(region, count, sizeof *lowest->size);
    lowest->alignment = tarn_region_take(region, count, sizeof *lowest->alignment);
    lowest->ceiling = tarn_region_take(region, count, sizeof *lowest->ceiling);
    lowest->within = tarn_region_take(region, members, sizeof *lowest->within);
    lowest->member_end = tarn_region_take(region, members, sizeof *lowest->member_end);
    lowest->member = tarn_region_take(region, members, sizeof *lowest->member);
    lowest->group_begin =
        tarn_region_take(region, (size_t)lowest->groups_count + 1, sizeof *lowest->group_begin);
    lowest->reach = tarn_region_take(region, lone * streams_count, sizeof *lowest->reach);
    return lowest->reach && lowest->block && lowest->size && lowest->alignment && lowest->ceiling &&
           lowest->within && lowest->member_end && lowest->member && lowest->group_begin;
}

static uint32_t place_in(const struct tarn_lanes *lanes, uint32_t storage)
{
    return lanes->below[lanes->conflicts->slot_of[storage]];
}

static void fill_place(struct tarn_lowest *lowest, uint32_t place, uint32_t b)
{
    const struct tarn_block block = tarn_block_at(&lowest->problem->blocks, b);
    uint64_t alignment = round_units(lowest, block.alignment, true);
    lowest->block[place] = b;
    lowest->size[place] = units_up(lowest, block.size);
    lowest->alignment[place] =
        (int32_t)(alignment <= TARN_UNITS_MAX ? alignment : TARN_UNITS_MAX + 1);
    lowest->ceiling[place] = alignment > 1 || block.members_count > 1 ? 0 : INT32_MAX;
}

static void fill_group(struct tarn_lowest *lowest, uint32_t group)
{
    const struct tarn_blocks *blocks = &lowest->problem->blocks;
    const struct tarn_block block =
        tarn_block_at(blocks, lowest->block[lowest->lone.count + group]);
    uint32_t at = lowest->group_begin[group];
    for (uint32_t i = 0; i < block.members_count; i++) {
        uint32_t a = block.members[i], m = place_in(&lowest->members, a);
        lowest->within[m] =
            (int32_t)(round_units(lowest, blocks->within[a], false) & TARN_UNITS_MAX);
        lowest->member_end[m] = units_up(lowest, blocks->within[a] + blocks->reserved[a]);
        lowest->member[at++] = m;
    }
    lowest->group_begin[group + 1] = at;
}

/* The same numbers could be looked up one by one, each in another part of memory. */
static void fill_reach(const struct tarn_lowest *lowest)
{
    const struct tarn_lanes *lone = &lowest->lone;
    uint32_t streams_count = lone->conflicts->reuse.streams_count;
    for (uint32_t begin = 0; begin < lone->count; begin += TARN_LANE_RUN) {
        uint32_t left = lone->count - begin, count = left < TARN_LANE_RUN ? left : TARN_LANE_RUN;
        for (uint32_t s = 0; s < streams_count; s++) {
            const int32_t *row = lone->row + (size_t)s * lone->count;
            for (uint32_t place = begin; place < begin + count; place++)
                lowest->reach[(size_t)place * streams_count + s] =
                    tarn_lanes_end(lone, s, (uint32_t)row[place]);
        }
    }
}

/* One pass over the places of s: the highest row up to a place only rises. */
static void fill_since_of(const struct tarn_lowest *lowest, uint32_t t, uint32_t s)
{
    const struct tarn_lanes *lone = &lowest->lone;
    const struct tarn_conflicts *conflicts = lone->conflicts;
    const int32_t *row = lone->row + (size_t)t * lone->count;
    uint32_t streams_count = conflicts->reuse.streams_count, k = lowest->since_begin[t];
    uint32_t k_begin = k, k_end = lowest->since_begin[t + 1];
    uint32_t begin = tarn_lanes_begin(lone, s), end = lone->below[conflicts->begin[s + 1]];
    for (uint32_t place = begin; place < end; place++)
        while (k < k_end && row[place] > (int32_t)((k - k_begin) * TARN_LANE_RUN))
            lowest->since[(size_t)k++ * streams_count + s] = place;
    while (k < k_end) lowest->since[(size_t)k++ * streams_count + s] = end;
}

static enum tarn_status fill_since(struct tarn_lowest *lowest, struct tarn_region *region)
{
    const struct tarn_reuse *reuse = &lowest->problem->conflicts.reuse;
    uint32_t streams_count = lowest->lone.conflicts->reuse.streams_count;
    lowest->since_begin =
        tarn_region_take(region, (size_t)streams_count + 1, sizeof *lowest->since_begin);
    if (!lowest->since_begin) return TARN_SYSTEM;
    for (uint32_t t = 0; t < streams_count; t++)
        lowest->since_begin[t + 1] = lowest->since_begin[t] + reuse->length[t] / TARN_LANE_RUN + 1;
    lowest->since = tarn_region_take(
        region, (size_t)lowest->since_begin[streams_count] * streams_count, sizeof *lowest->since);
    if (!lowest->since) return TARN_SYSTEM;
    for (uint32_t t = 0; t < streams_count; t++)
        for (uint32_t s = 0; s < streams_count; s++) fill_since_of(lowest, t, s);
    return TARN_OK;
}

/* ---- Lifetimes ---- */

static struct tarn_span life_of(const struct tarn_lifetimes *lifetimes, uint32_t storage)
{
    uint32_t slot = lifetimes->problem->conflicts.slot_of[storage];
    return (struct tarn_span){(int32_t)lifetimes->since[slot], (int32_t)lifetimes->until[slot]};
}

static void extend(struct tarn_span *life, struct tarn_span other)
{
    if (other.begin < life->begin) life->begin = other.begin;
    if (other.end > life->end) life->end = other.end;
}

static bool take_lives(struct tarn_lowest *lowest, struct tarn_region *region)
{
    size_t members = lowest->members.count, runs = members / TARN_MEMBERS_RUN + 1;
    lowest->lone_life = tarn_region_take(region, lowest->lone.count, sizeof *lowest->lone_life);
    lowest->member_life = tarn_region_take(region, members, sizeof *lowest->member_life);
    lowest->group_life = tarn_region_take(region, lowest->groups_count, sizeof *lowest->group_life);
    lowest->run_life = tarn_region_take(region, runs, sizeof *lowest->run_life);
    return lowest->lone_life && lowest->member_life && lowest->group_life && lowest->run_life;
}

static void fill_lives(const struct tarn_lowest *lowest, const struct tarn_lifetimes *lifetimes)
{
    for (uint32_t place = 0; place < lowest->lone.count; place++)
        lowest->lone_life[place] = life_of(lifetimes, lowest->lone.storage[place]);
    for (uint32_t group = 0; group < lowest->groups_count; group++) {
        lowest->group_life[group] = (struct tarn_span){INT32_MAX, 0};
        for (uint32_t i = lowest->group_begin[group]; i < lowest->group_begin[group + 1]; i++) {
            uint32_t run = i / TARN_MEMBERS_RUN;
            struct tarn_span life = life_of(lifetimes, lowest->members.storage[lowest->member[i]]);
            lowest->member_life[i] = life;
            extend(&lowest->group_life[group], life);
            if (i % TARN_MEMBERS_RUN == 0) lowest->run_life[run] = life;
            extend(&lowest->run_life[run], life);
        }
    }
}

static enum tarn_status find_lives(struct tarn_lowest *lowest, struct tarn_region *region)
{
    const struct tarn_conflicts *conflicts = &lowest->problem->conflicts;
    uint32_t count = conflicts->reuse.count;
    if (lowest->groups_count == 0) return TARN_OK;
    if (!take_lives(lowest, region)) return TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct tarn_lifetimes lifetimes;
    uint32_t *storages = tarn_region_take(region, count, sizeof *storages);
    if (!storages) return TARN_SYSTEM;
    for (uint32_t a = 0; a < count; a++) storages[conflicts->slot_of[a]] = a;
    enum tarn_status status =
        tarn_lifetimes_init(&lifetimes, region, lowest->problem, storages, count);
    if (status == TARN_OK) fill_lives(lowest, &lifetimes);
    tarn_region_release(region, mark);
    return status;
}

static enum tarn_status init(struct tarn_lowest *lowest, struct tarn_region *region)
{
    const struct tarn_blocks *blocks = &lowest->problem->blocks;
    if (init_lanes(lowest, region) != TARN_OK || !take_places(lowest, region) ||
        fill_since(lowest, region) != TARN_OK)
        return TARN_SYSTEM;
    for (uint32_t b = 0; b < blocks->count; b++) {
        uint32_t a = tarn_block_at(blocks, b).members[0];
        fill_place(lowest,
                   tarn_block_at(blocks, b).members_count == 1
                       ? place_in(&lowest->lone, a)
                       : lowest->lone.count + place_in(&lowest->heads, a),
                   b);
    }
    for (uint32_t group = 0; group < lowest->groups_count; group++) fill_group(lowest, group);
    fill_reach(lowest);
    return find_lives(lowest, region);
}

enum tarn_status tarn_lowest_init(struct tarn_lowest *lowest, struct tarn_region *region,
                                  const struct tarn_problem *problem, uint64_t bytes_max)
{
    memset(lowest, 0, sizeof *lowest);
    lowest->problem = problem;
    lowest->unit_shift = tarn_lowest_unit_shift(&problem->blocks, bytes_max);
    return init(lowest, region);
}

enum tarn_status tarn_lowest_init_around(struct tarn_lowest *lowest, struct tarn_region *region,
                                         const struct tarn_problem *problem,
                                         const struct tarn_obstacles *obstacles)
{
    memset(lowest, 0, sizeof *lowest);
    lowest->problem = problem;
    lowest->obstacles = obstacles;
    lowest->unit_shift = obstacles->unit_shift;
    return init(lowest, region);
}

/* ---- Back to bytes ---- */

static uint64_t start_of(const struct tarn_lowest *lowest, const int32_t *place_offset,
                         uint32_t place)
{
    return (uint64_t)place_offset[place] << lowest->unit_shift;
}

uint64_t tarn_lowest_footprint(const struct tarn_lowest *lowest, const int32_t *place_offset)
{
    uint64_t footprint = 0;
    for (uint32_t place = 0; place < lowest->count; place++) {
        uint64_t end = start_of(lowest, place_offset, place) +
                       tarn_block_at(&lowest->problem->blocks, lowest->block[place]).size;
        if (end > footprint) footprint = end;
    }
    return footprint;
}

void tarn_lowest_offsets(const struct tarn_lowest *lowest, const int32_t *place_offset,
                         uint64_t *offset)
{
    const struct tarn_blocks *blocks = &lowest->problem->blocks;
    for (uint32_t place = 0; place < lowest->count; place++)
        tarn_block_put(blocks, tarn_block_at(blocks, lowest->block[place]),
                       start_of(lowest, place_offset, place), offset);
}
