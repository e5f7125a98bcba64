/* Fields: the state of a placement by windows, of which a part at a time is decoded by
 * lowest-offset-first. Cost: for a part, a decode for every key and promotion (decode.c). */
#include "field.h"

#include <assert.h>

#include "planner/place/lowest/lowest.h"

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

/* A subproblem that is decoded. */
struct decoding {
    const struct tarn_field *field;
    struct tarn_region *region;
    const struct tarn_windows_settings *settings;
    struct tarn_part *part;
    struct tarn_lowest lowest;
    struct tarn_traits traits;
    struct tarn_decoder decoder;
    int32_t *key, *floor; /* by place */
    uint32_t best_key;    /* of the keys decoded */
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

static bool fill_key(const struct decoding *decoding, uint32_t i)
{
    return tarn_keys_fill(&decoding->lowest, decoding->region, &decoding->traits, i,
                          decoding->key) == TARN_OK;
}

static bool decode_keys(struct decoding *decoding, struct tarn_decodes keys, int32_t *top)
{
    struct tarn_decoder *decoder = &decoding->decoder;
    decoding->best_key = keys.begin;
    for (uint32_t i = keys.begin; i < keys.end; i++) {
        if (*top <= decoding->settings->aim) break;
        if (!fill_key(decoding, i)) return false;
        tarn_decoder_start(decoder, decoding->floor);
        if (!tarn_decoder_advance(decoder, decoding->key, decoding->floor,
                                  (struct tarn_objective){0, 1, 0}, *top - 1,
                                  decoding->lowest.count))
            continue;
        *top = decoder->top;
        decoding->best_key = i;
        take_offsets(decoding, decoder->offset);
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
    uint32_t count = decoding->lowest.count;
    int32_t *target = tarn_region_take(decoding->region, count, sizeof *target);
    struct tarn_promotion promotion = {
        .floor = decoding->floor,
        .target = target,
        .key = decoding->key,
        .decodes_max = promotions,
        .excess = settings->target ? INT32_MAX : *top - settings->aim,
        .offset = tarn_region_take(decoding->region, count, sizeof *promotion.offset),
        .top = *top};
    int32_t before = promotion.excess;
    if (!target || !promotion.offset || !fill_key(decoding, decoding->best_key)) return false;
    for (uint32_t place = 0; place < count; place++) target[place] = target_at(decoding, place);
    if (tarn_promote(&promotion, &decoding->decoder, decoding->region) != TARN_OK) return false;
    if (promotion.excess < before) take_offsets(decoding, promotion.offset);
    *top = promotion.top;
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
        tarn_decoder_init(&decoding->decoder, decoding->region, lowest) != TARN_OK)
        return false;
    decoding->key = tarn_region_take(decoding->region, lowest->count, sizeof *decoding->key);
    decoding->floor = tarn_region_take(decoding->region, lowest->count, sizeof *decoding->floor);
    if (!decoding->key || !decoding->floor) return false;
    decoding->decoder.deadline = settings->deadline;
    decoding->decoder.hurries = true;
    decoding->decoder.work_max = settings->work_max;
    for (uint32_t place = 0; place < lowest->count; place++)
        decoding->floor[place] = decoding->field->floor[block_at(decoding, place)];

    bool ok = decode_keys(decoding, decodes, top);
    if (ok && decodes.promotions > 0) ok = decode_promoted(decoding, decodes.promotions, top);
    if (settings->effort) tarn_effort_spend(settings->effort, decoding->decoder.work);
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
    tarn_region_release(region, mark);
    return ok;
}
