/* Fields: the state of a placement by windows, of which a part at a time is decoded by
 * lowest-offset-first. Cost: for a part, a decode for every key and promotion (decode.c). */
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

/* Of a part, the storages that live where most bytes do, in place of those of the heaviest
 * antichain of the whole. */
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

/* ---- Decoding ---- */

/* Keys decoded at once where a team is given, and blocks placed between two looks at whether an
 * earlier key has met the aim. */
enum { KEYS_AT_ONCE = 2, SLICE = 1024 };

/* What keys are decoded with, one after the other. */
struct trial {
    struct tarn_region own, *region;
    struct tarn_decoder decoder;
    int32_t *key; /* by place */
    bool placed;  /* lower than the plan before the round */
    bool no_memory;
};

/* A subproblem that is decoded. */
struct decoding {
    const struct tarn_field *field;
    struct tarn_region *region;
    const struct tarn_windows_settings *settings;
    struct tarn_part *part;
    struct tarn_lowest lowest;
    struct tarn_traits traits;
    struct trial trials[KEYS_AT_ONCE];
    uint32_t trials_count;
    int32_t *floor;    /* by place */
    uint32_t best_key; /* of the keys decoded */
    uint64_t work;     /* of all decodes so far */
};

/* A key in each of the first trials. */
struct round {
    struct decoding *decoding;
    uint32_t key; /* of the first trial; the others follow */
    int32_t top;  /* before the round */
    struct tarn_winner winner;
};

static uint32_t block_at(const struct decoding *decoding, uint32_t place)
{
    return decoding->part->origin_block[decoding->lowest.block[place]];
}

static void take_offsets(const struct decoding *decoding, const int32_t *offset)
{
    for (uint32_t place = 0; place < decoding->lowest.count; place++)
        decoding->field->offset[block_at(decoding, place)] = offset[place];
}

static bool fill_key(const struct decoding *decoding, const struct trial *trial, uint32_t i)
{
    return tarn_keys_fill(&decoding->lowest, trial->region, &decoding->traits, i, trial->key) ==
           TARN_OK;
}

static bool place_in_slices(const struct round *round, uint32_t i)
{
    const struct decoding *decoding = round->decoding;
    struct trial *trial = &round->decoding->trials[i];
    uint32_t count = decoding->lowest.count, placed = 0;
    uint32_t slice = decoding->trials_count > 1 ? SLICE : count;
    while (placed < count) {
        placed = count - placed > slice ? placed + slice : count;
        if (tarn_winner_is_before(&round->winner, i)) return false;
        if (!tarn_decoder_advance(&trial->decoder, trial->key, decoding->floor,
                                  (struct tarn_objective){0, 1, 0}, round->top - 1, placed))
            return false;
    }
    return true;
}

static void decode_key(void *user, uint32_t thread, uint32_t i)
{
    struct round *round = user;
    struct decoding *decoding = round->decoding;
    struct trial *trial = &decoding->trials[i];
    uint64_t work_max = decoding->settings->work_max;
    (void)thread;
    trial->placed = false;
    trial->no_memory = !fill_key(decoding, trial, round->key + i);
    if (trial->no_memory) return;
    trial->decoder.work = decoding->work;
    trial->decoder.work_max = work_max;
    tarn_decoder_start(&trial->decoder, decoding->floor);
    trial->placed = place_in_slices(round, i);
    if (trial->placed && trial->decoder.top <= decoding->settings->aim)
        tarn_winner_note(&round->winner, i);
}

/* As if one key came after the other: of equal plans the first one is taken, and what follows upon
 * the first that meets the aim is neither taken nor paid for. So nothing depends on the number of
 * threads. */
static bool take_round(const struct round *round, uint32_t count, int32_t *top)
{
    struct decoding *decoding = round->decoding;
    uint64_t before = decoding->work;
    for (uint32_t i = 0; i<count && * top> decoding->settings->aim; i++) {
        const struct trial *trial = &decoding->trials[i];
        if (trial->no_memory) return false;
        decoding->work += trial->decoder.work - before;
        if (!trial->placed || trial->decoder.top >= *top) continue;
        *top = trial->decoder.top;
        decoding->best_key = round->key + i;
        take_offsets(decoding, trial->decoder.offset);
    }
    return true;
}

static bool decode_keys(struct decoding *decoding, struct tarn_decodes keys, int32_t *top)
{
    struct tarn_team *team = decoding->settings->team;
    decoding->best_key = keys.begin;
    for (uint32_t i = keys.begin; i < keys.end; i += decoding->trials_count) {
        struct round round = {.decoding = decoding, .key = i, .top = *top};
        uint32_t left = keys.end - i;
        uint32_t count = left < decoding->trials_count ? left : decoding->trials_count;
        if (*top <= decoding->settings->aim) break;
        tarn_winner_clear(&round.winner);
        if (team)
            tarn_team_run(team, count, decode_key, &round);
        else
            decode_key(&round, 0, 0);
        if (!take_round(&round, count, top)) return false;
    }
    return true;
}

static int32_t target_at(const struct decoding *decoding, uint32_t place)
{
    const struct tarn_problem *problem = decoding->field->problem;
    const struct tarn_windows_settings *settings = decoding->settings;
    if (!settings->target) return settings->aim;
    struct tarn_block block = tarn_block_at(&problem->blocks, block_at(decoding, place));
    int32_t target = settings->target[tarn_problem_begin(problem, block.members[0])];
    return target > settings->least ? target : settings->least;
}

/* Begins with the best key. */
static bool decode_promoted(struct decoding *decoding, uint32_t promotions, int32_t *top)
{
    const struct tarn_windows_settings *settings = decoding->settings;
    struct trial *trial = &decoding->trials[0];
    uint32_t count = decoding->lowest.count;
    int32_t *target = tarn_region_take(decoding->region, count, sizeof *target);
    struct tarn_promotion promotion = {
        .floor = decoding->floor,
        .target = target,
        .key = trial->key,
        .decodes_max = promotions,
        .excess = settings->target ? INT32_MAX : *top - settings->aim,
        .offset = tarn_region_take(decoding->region, count, sizeof *promotion.offset),
        .top = *top};
    int32_t before = promotion.excess;
    if (!target || !promotion.offset || !fill_key(decoding, trial, decoding->best_key))
        return false;
    trial->decoder.work = decoding->work;
    for (uint32_t place = 0; place < count; place++) target[place] = target_at(decoding, place);
    if (tarn_promote(&promotion, &trial->decoder, decoding->region) != TARN_OK) return false;
    decoding->work = trial->decoder.work;
    if (promotion.excess < before) take_offsets(decoding, promotion.offset);
    *top = promotion.top;
    return true;
}

static bool trial_init(const struct decoding *decoding, struct trial *trial)
{
    const struct tarn_windows_settings *settings = decoding->settings;
    const struct tarn_lowest *lowest = &decoding->lowest;
    if (tarn_decoder_init(&trial->decoder, trial->region, lowest) != TARN_OK) return false;
    trial->decoder.deadline = settings->deadline;
    trial->decoder.hurries = true;
    trial->decoder.work_max = settings->work_max;
    trial->key = tarn_region_take(trial->region, lowest->count, sizeof *trial->key);
    return trial->key;
}

/* The first in the caller's region, the others, which other threads may use, in their own. */
static bool trials_init(struct decoding *decoding)
{
    decoding->trials_count = decoding->settings->team ? KEYS_AT_ONCE : 1;
    for (uint32_t i = 0; i < decoding->trials_count; i++) {
        struct trial *trial = &decoding->trials[i];
        trial->region = i == 0 ? decoding->region : &trial->own;
        if (!trial_init(decoding, trial)) return false;
    }
    return true;
}

static bool decode_part(struct decoding *decoding, const struct tarn_obstacles *obstacles,
                        struct tarn_decodes decodes, int32_t *top)
{
    const struct tarn_windows_settings *settings = decoding->settings;
    struct tarn_lowest *lowest = &decoding->lowest;
    if (decodes.promotions > 0 && !find_own_antichain(&decoding->part->problem, decoding->region))
        return false;
    if (tarn_lowest_init_around(lowest, decoding->region, &decoding->part->problem, obstacles) !=
            TARN_OK ||
        tarn_traits_init(&decoding->traits, decoding->region, lowest) != TARN_OK ||
        !trials_init(decoding))
        return false;
    decoding->floor = tarn_region_take(decoding->region, lowest->count, sizeof *decoding->floor);
    if (!decoding->floor) return false;
    for (uint32_t place = 0; place < lowest->count; place++)
        decoding->floor[place] = decoding->field->floor[block_at(decoding, place)];

    bool ok = decode_keys(decoding, decodes, top);
    if (ok && decodes.promotions > 0) ok = decode_promoted(decoding, decodes.promotions, top);
    if (settings->effort) tarn_effort_spend(settings->effort, decoding->work);
    return ok;
}

bool tarn_field_decode(const struct tarn_field *field, struct tarn_region *region,
                       const struct tarn_windows_settings *settings, const uint32_t *storages,
                       uint32_t count, struct tarn_obstacles *obstacles,
                       struct tarn_decodes decodes, int32_t *top)
{
    struct tarn_part part;
    struct decoding decoding = {
        .field = field, .region = region, .settings = settings, .part = &part};
    struct tarn_region_mark mark = tarn_region_mark(region);
    assert(decodes.begin < decodes.end && decodes.end <= TARN_KEYS_COUNT);
    if (settings->deadline && tarn_deadline_is_over(settings->deadline)) return true;
    if (tarn_part_init(&part, region, field->problem, field->block_of, storages, count) != TARN_OK)
        return false;
    obstacles->origin = part.origin;
    bool ok = decode_part(&decoding, obstacles, decodes, top);
    for (uint32_t i = 0; i < KEYS_AT_ONCE; i++) tarn_region_finish(&decoding.trials[i].own);
    tarn_region_release(region, mark);
    return ok;
}
