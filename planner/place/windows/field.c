/* Fields: the state of a placement by windows, of which a part at a time is placed by
 * lowest-offset-first. Cost: for a part, a placement for every priority order and promotion
 * (greedy.c). */
#include "field.h"

#include <assert.h>

bool tarn_field_init(struct tarn_field *field, struct tarn_region *region,
                     const struct tarn_problem *problem)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    assert(blocks->storages_begin == 0);
    field->problem = problem;
    field->block_of = tarn_region_take(region, blocks->storages_count, sizeof *field->block_of);
    field->floor = tarn_region_take(region, blocks->count, sizeof *field->floor);
    field->offset = tarn_region_take(region, blocks->count, sizeof *field->offset);
    if (region->is_exhausted) return false;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t i = 0; i < block.members_count; i++) field->block_of[block.members[i]] = b;
    }
    return true;
}

struct tarn_span tarn_field_span(const struct tarn_field *field, uint32_t unit_shift, uint32_t a)
{
    const struct tarn_blocks *blocks = &field->problem->blocks;
    uint64_t unit = (UINT64_C(1) << unit_shift) - 1;
    uint64_t begin = blocks->within[a] >> unit_shift;
    uint64_t end = (blocks->within[a] + blocks->reserved[a] + unit) >> unit_shift;
    int32_t offset = field->offset[field->block_of[a]];
    return (struct tarn_span){offset + (int32_t)begin, offset + (int32_t)end};
}

/* ---- The own antichain ---- */

/* Finds the storages of a part that live at its peak. They replace the storages of the heaviest
 * antichain of the whole problem. */
static bool find_own_antichain(struct tarn_problem *part, struct tarn_region *region)
{
    uint32_t count = part->conflicts.reuse.count, heaviest = 0;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint32_t *storages = tarn_region_take(region, count, sizeof *storages);
    int64_t *bytes = tarn_region_take(region, (size_t)part->ops_count + 1, sizeof *bytes);
    struct tarn_lifetimes lifetimes;
    for (uint32_t a = 0; storages && a < count; a++) storages[part->conflicts.slot_of[a]] = a;
    if (!storages || !bytes ||
        tarn_lifetimes_init(&lifetimes, region, part, storages, count) != TARN_OK)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        bytes[lifetimes.since[i]] += (int64_t)part->blocks.reserved[storages[i]];
        bytes[lifetimes.until[i]] -= (int64_t)part->blocks.reserved[storages[i]];
    }
    for (uint32_t i = 1; i <= part->ops_count; i++) {
        bytes[i] += bytes[i - 1];
        if (bytes[i] > bytes[heaviest]) heaviest = i;
    }
    for (uint32_t i = 0; i < count; i++)
        part->in_antichain[storages[i]] =
            lifetimes.since[i] <= heaviest && heaviest < lifetimes.until[i];
    tarn_region_release(region, mark);
    return true;
}

/* ---- Placing ---- */

/* Priority orders placed at once if a team is given, and blocks placed between two checks whether
 * an earlier priority order has met the aim. */
enum { PRIORITIES_AT_ONCE = 2, SLICE = 1024 };

/* The memory for placing priority orders, one after the other. */
struct trial {
    struct tarn_region own, *region;
    struct tarn_greedy greedy;
    int32_t *priority; /* by place */
    bool placed;       /* lower than the plan before the round */
    bool no_memory;
};

/* A subproblem that is placed. */
struct placing {
    const struct tarn_field *field;
    struct tarn_region *region;
    const struct tarn_windows_settings *settings;
    struct tarn_part *part;
    struct tarn_lowest lowest;
    struct tarn_traits traits;
    struct trial trials[PRIORITIES_AT_ONCE];
    uint32_t trials_count;
    int32_t *floor;         /* by place */
    uint32_t best_priority; /* of the priority orders placed */
    uint64_t work;          /* of all placements so far */
};

/* A priority order in each of the first trials. */
struct round {
    struct placing *placing;
    uint32_t priority; /* of the first trial; the others follow */
    int32_t top;       /* before the round */
    struct tarn_winner winner;
};

static uint32_t block_at(const struct placing *placing, uint32_t place)
{
    return placing->part->origin_block[placing->lowest.block[place]];
}

static void take_offsets(const struct placing *placing, const int32_t *offset)
{
    for (uint32_t place = 0; place < placing->lowest.count; place++)
        placing->field->offset[block_at(placing, place)] = offset[place];
}

static bool fill_priority(const struct placing *placing, const struct trial *trial, uint32_t i)
{
    return tarn_priorities_fill(&placing->lowest, trial->region, &placing->traits, i,
                                trial->priority) == TARN_OK;
}

static bool place_in_slices(const struct round *round, uint32_t i)
{
    const struct placing *placing = round->placing;
    struct trial *trial = &round->placing->trials[i];
    uint32_t count = placing->lowest.count, placed = 0;
    uint32_t slice = placing->trials_count > 1 ? SLICE : count;
    while (placed < count) {
        placed = count - placed > slice ? placed + slice : count;
        if (tarn_winner_is_before(&round->winner, i)) return false;
        if (!tarn_greedy_advance(&trial->greedy, trial->priority, placing->floor,
                                 (struct tarn_objective){0, 1, 0}, round->top - 1, placed))
            return false;
    }
    return true;
}

static void place_priority(void *user, uint32_t thread, uint32_t i)
{
    struct round *round = user;
    struct placing *placing = round->placing;
    struct trial *trial = &placing->trials[i];
    uint64_t work_max = placing->settings->work_max;
    (void)thread;
    trial->placed = false;
    trial->no_memory = !fill_priority(placing, trial, round->priority + i);
    if (trial->no_memory) return;
    trial->greedy.work = placing->work;
    trial->greedy.work_max = work_max;
    tarn_greedy_start(&trial->greedy, placing->floor);
    trial->placed = place_in_slices(round, i);
    if (trial->placed && trial->greedy.top <= placing->settings->aim)
        tarn_winner_note(&round->winner, i);
}

/* Takes results as if one priority order came after the other: of equal plans the first one is
 * taken, and plans after the first one that meets the aim are neither taken nor counted as work. So
 * nothing depends on the number of threads. */
static bool take_round(const struct round *round, uint32_t count, int32_t *top)
{
    struct placing *placing = round->placing;
    uint64_t before = placing->work;
    for (uint32_t i = 0; i<count && * top> placing->settings->aim; i++) {
        const struct trial *trial = &placing->trials[i];
        if (trial->no_memory) return false;
        placing->work += trial->greedy.work - before;
        if (!trial->placed || trial->greedy.top >= *top) continue;
        *top = trial->greedy.top;
        placing->best_priority = round->priority + i;
        take_offsets(placing, trial->greedy.offset);
    }
    return true;
}

static bool place_priorities(struct placing *placing, struct tarn_placements priorities,
                             int32_t *top)
{
    struct tarn_team *team = placing->settings->team;
    placing->best_priority = priorities.begin;
    for (uint32_t i = priorities.begin; i < priorities.end; i += placing->trials_count) {
        struct round round = {.placing = placing, .priority = i, .top = *top};
        uint32_t left = priorities.end - i;
        uint32_t count = left < placing->trials_count ? left : placing->trials_count;
        if (*top <= placing->settings->aim) break;
        tarn_winner_clear(&round.winner);
        if (team)
            tarn_team_run(team, count, place_priority, &round);
        else
            place_priority(&round, 0, 0);
        if (!take_round(&round, count, top)) return false;
    }
    return true;
}

static int32_t target_at(const struct placing *placing, uint32_t place)
{
    const struct tarn_problem *problem = placing->field->problem;
    const struct tarn_windows_settings *settings = placing->settings;
    if (!settings->target) return settings->aim;
    struct tarn_block block = tarn_block_at(&problem->blocks, block_at(placing, place));
    int32_t target = settings->target[tarn_problem_begin(problem, block.members[0])];
    return target > settings->least ? target : settings->least;
}

/* Starts with the best priority order. */
static bool place_promoted(struct placing *placing, uint32_t promotions, int32_t *top)
{
    const struct tarn_windows_settings *settings = placing->settings;
    struct trial *trial = &placing->trials[0];
    uint32_t count = placing->lowest.count;
    int32_t *target = tarn_region_take(placing->region, count, sizeof *target);
    struct tarn_promotion promotion = {
        .floor = placing->floor,
        .target = target,
        .priority = trial->priority,
        .placements_max = promotions,
        .excess = settings->target ? INT32_MAX : *top - settings->aim,
        .offset = tarn_region_take(placing->region, count, sizeof *promotion.offset),
        .top = *top};
    int32_t before = promotion.excess;
    if (!target || !promotion.offset || !fill_priority(placing, trial, placing->best_priority))
        return false;
    trial->greedy.work = placing->work;
    for (uint32_t place = 0; place < count; place++) target[place] = target_at(placing, place);
    if (tarn_promote(&promotion, &trial->greedy, placing->region) != TARN_OK) return false;
    placing->work = trial->greedy.work;
    if (promotion.excess < before) take_offsets(placing, promotion.offset);
    *top = promotion.top;
    return true;
}

static bool trial_init(const struct placing *placing, struct trial *trial)
{
    const struct tarn_windows_settings *settings = placing->settings;
    const struct tarn_lowest *lowest = &placing->lowest;
    if (tarn_greedy_init(&trial->greedy, trial->region, lowest) != TARN_OK) return false;
    trial->greedy.deadline = settings->deadline;
    trial->greedy.hurries = true;
    trial->greedy.work_max = settings->work_max;
    trial->priority = tarn_region_take(trial->region, lowest->count, sizeof *trial->priority);
    return trial->priority;
}

/* The first in the caller's region, the others, which other threads may use, in their own. */
static bool trials_init(struct placing *placing)
{
    placing->trials_count = placing->settings->team ? PRIORITIES_AT_ONCE : 1;
    for (uint32_t i = 0; i < placing->trials_count; i++) {
        struct trial *trial = &placing->trials[i];
        trial->region = i == 0 ? placing->region : &trial->own;
        if (!trial_init(placing, trial)) return false;
    }
    return true;
}

static bool place_part(struct placing *placing, const struct tarn_obstacles *obstacles,
                       struct tarn_placements placements, int32_t *top)
{
    const struct tarn_windows_settings *settings = placing->settings;
    struct tarn_lowest *lowest = &placing->lowest;
    if (placements.promotions > 0 && !find_own_antichain(&placing->part->problem, placing->region))
        return false;
    if (tarn_lowest_init_around(lowest, placing->region, &placing->part->problem, obstacles) !=
            TARN_OK ||
        tarn_traits_init(&placing->traits, placing->region, lowest) != TARN_OK ||
        !trials_init(placing))
        return false;
    placing->floor = tarn_region_take(placing->region, lowest->count, sizeof *placing->floor);
    if (!placing->floor) return false;
    for (uint32_t place = 0; place < lowest->count; place++)
        placing->floor[place] = placing->field->floor[block_at(placing, place)];

    bool ok = place_priorities(placing, placements, top);
    if (ok && placements.promotions > 0) ok = place_promoted(placing, placements.promotions, top);
    if (settings->effort) tarn_effort_spend(settings->effort, placing->work);
    return ok;
}

bool tarn_field_place(const struct tarn_field *field, struct tarn_region *region,
                      const struct tarn_windows_settings *settings, const uint32_t *storages,
                      uint32_t count, struct tarn_obstacles *obstacles,
                      struct tarn_placements placements, int32_t *top)
{
    struct tarn_part part;
    struct placing placing = {
        .field = field, .region = region, .settings = settings, .part = &part};
    struct tarn_region_mark mark = tarn_region_mark(region);
    assert(placements.begin < placements.end && placements.end <= TARN_PRIORITIES_COUNT);
    if (settings->deadline && tarn_deadline_is_over(settings->deadline)) return true;
    if (tarn_part_init(&part, region, field->problem, field->block_of, storages, count) != TARN_OK)
        return false;
    obstacles->origin = part.origin;
    bool ok = place_part(&placing, obstacles, placements, top);
    for (uint32_t i = 0; i < PRIORITIES_AT_ONCE; i++) tarn_region_finish(&placing.trials[i].own);
    tarn_region_release(region, mark);
    return ok;
}
